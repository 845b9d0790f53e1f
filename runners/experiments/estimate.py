"""What fits take, measured: small fits of the same plan, extrapolated to all points and components.

The time of a map grows with its components, that of its fit with their cube where a matrix of landmarks is factorised,
and what does not grow, such as moving points, is the difference of two sizes. That of a learner grows with the
operations that it names.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from orbit.core.memory import size_text
from orbit.data import Dataset
from orbit.data.rows import subset
from orbit.learners.protocols import Passes
from orbit.learners.streaming import epochs_to_do, takes_passes
from runners.config.plan import Plan
from runners.experiments.pipeline import pipeline, represented
from runners.experiments.selection import alike, without_path_parameter
from runners.job.estimate import Estimate
from runners.job.memory import Part, refusal, stages

T = TypeVar("T")

# Components of the two small fits, and training points of each.
_SIZES = 64, 256
# Rows and columns of the problem that a learner is timed with, at most.
_PROBLEM = 2000, 1000
# Sections that the times of a map do not depend on.
_NOT_OF_MAPS = ("learner", "selection", "runner", "seed", "run_name")


@dataclass(frozen=True)
class _Costs:
    """Seconds of a fit: of the maps before the learner, of a row of each of the two layers, and of the learner.

    ``columns`` are those of the first layer, ``width`` those that the learner takes.
    """

    fit: float
    row: float
    layer: float
    columns: int
    width: int
    learner: float = 0.0

    def of(self, n: float) -> float:
        """Seconds of the maps for ``n`` rows of features."""
        return self.fit + n * (self.row + self.layer)


class Measurements:
    """Estimates of plans; small fits of plans that differ in sizes and learner alone are made once."""

    def __init__(self) -> None:
        self._maps: dict[str, _Costs] = {}
        self._learners: dict[str, float] = {}

    def estimate(self, plan: Plan, data: Dataset) -> Estimate:
        """What the fit of a plan takes, with the fits of its inner validation and the prediction of the test points."""
        with warnings.catch_warnings(action="ignore"):  # the fit itself gives them
            return self._estimate(plan, data)

    def _estimate(self, plan: Plan, data: Dataset) -> Estimate:
        n, selection = len(data.X_train), plan.component("selection")
        points = selection.points()
        variants = [plan.without_selection(point) for point in points] or [plan]
        finals = [self._costs(variant, data, n) for variant in variants]
        passes, notes = _passes(variants[0], data, finals[0].width)
        seconds = max(cost.of(passes * n + len(data.X_test)) + cost.learner for cost in finals)
        inner = 0
        if points:
            splits = selection.splits(data, plan.seed("selection"))
            inner = len(points) * len(splits)
            seconds += self._validation(variants, data, splits)
        d = int(np.prod(data.X_train.shape[1:]))
        each = [stages(one, data, d, cost.columns) for one, cost in zip(variants, finals, strict=True)]
        largest = max((stage for found in each for stage in found), key=_bytes)
        held = max(each, key=lambda found: max(map(_bytes, found)))
        parts = list({part.what: part for stage in held for part in stage}.values())
        return Estimate("", 1 + inner, seconds, parts, _bytes(largest), notes, refusal(largest))

    def estimate_validation(self, plan: Plan, data: Dataset) -> Estimate:
        """What the fits of a plan to the parts of its selection take, each validated on the rest."""
        splits = plan.component("selection").splits(data, plan.seed("selection"))
        one = self.estimate(plan.without_selection({}), data)
        return replace(one, label="validation", fits=len(splits), seconds=self._validation([plan], data, splits))

    def _validation(
        self, plans: Sequence[Plan], data: Dataset, splits: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> float:
        """Seconds of the inner fits: features once for plans that differ in the learner, one path for its values."""
        seconds = 0.0
        for members in alike([plan.config | {"learner": None, "selection": None} for plan in plans]):
            same = [plans[i] for i in members]
            paths = alike([without_path_parameter(plan, data.task, j) for j, plan in enumerate(same)])
            for fit, validation in splits:
                cost = self._costs(same[0], data, len(fit))
                seconds += cost.of(len(fit) + len(validation)) + len(paths) * cost.learner
        return seconds

    def _costs(self, plan: Plan, data: Dataset, n: int) -> _Costs:
        """The seconds of a plan without selection, fitted to ``n`` points."""
        wanted = plan.config["approx"].get("n_components", n)  # an exact kernel grows with its points
        s, t = (min(size, wanted) for size in _SIZES)
        small, large = self._small_fit(plan, data, s), self._small_fit(plan, data, t)
        columns = round(_line(s, small.columns, t, large.columns, wanted))
        width = plan.hyper().n_columns(n, columns)
        power = 3 if plan.approx().min_fit_points(n) else 1
        fit = _line(s**power, small.fit, t**power, large.fit, wanted**power)
        row = _line(s, small.row, t, large.row, wanted)
        layer = large.layer * (columns / large.columns) * (width / large.width)
        return _Costs(fit, row, layer, columns, width, self._learner_seconds(plan, data, n, width))

    def _small_fit(self, plan: Plan, data: Dataset, size: int) -> _Costs:
        """Time the maps of a plan with at most ``size`` components on as many points, and the features of these."""
        small = _small(plan, size)
        key = json.dumps({k: v for k, v in small.config.items() if k not in _NOT_OF_MAPS}, sort_keys=True, default=str)
        if key not in self._maps:
            model, X, _ = _with_points(small, data, size)
            features, layer = model["features"], model["hyper"]
            fit, _ = _seconds(lambda: model[1:-1].fit(X))  # its transform is the first, which makes buffers
            row, psi = _seconds(lambda: features.transform(X))
            second, mapped = _seconds(lambda: layer.transform(psi))
            times = max(0.0, fit - row), row / len(X), second / len(X)
            self._maps[key] = _Costs(*times, psi.shape[1], mapped.shape[1])
        return self._maps[key]

    def _learner_seconds(self, plan: Plan, data: Dataset, n: int, width: int) -> float:
        """Seconds of a learner on ``n`` rows of ``width`` columns, from a smaller fit: to random numbers, if it can."""
        learner = plan.learner(data.task)
        is_plain = not (learner.operator_valued or learner.takes_points or plan.approx().gives_gram)
        rows, d = min(n, _PROBLEM[0]), min(width, _PROBLEM[1])
        key = json.dumps([plan.config["learner"], (rows, d) if is_plain else plan.config], sort_keys=True, default=str)
        if key not in self._learners:
            made = _random_problem(plan, data, rows, d) if is_plain else _features(plan, data, min(n, _SIZES[1]))
            seconds, fitted = _seconds(lambda: made[0].fit(*made[1:]))
            self._learners[key] = seconds / fitted.operations(*made[1].shape)
        return self._learners[key] * learner.operations(n, width)


def estimated(rows: Mapping[str, Sequence[tuple[Plan, int]]]) -> list[Estimate]:
    """The estimates of the rows of an experiment; repeats that an earlier row has are not counted.

    Parameters
    ----------
    rows : mapping
        Label -> plans that are fitted, each with its number of repeats on data of the same size.
    """
    measurements, counted, found = Measurements(), dict[str, int](), list[Estimate]()
    for label, plans in rows.items():
        fits = list[tuple[int, Estimate]]()
        for plan, repeats in plans:
            if (new := repeats - counted.get(plan.config_hash, 0)) > 0:
                fits.append((new, measurements.estimate(plan, plan.load())))
                counted[plan.config_hash] = repeats
        found.append(_together(label, fits))
    return found


def _small(plan: Plan, size: int) -> Plan:
    """The plan with at most ``size`` components."""
    sized = [kind for kind in ("approx", "hyper") if "n_components" in plan.config[kind]]
    fewer = {f"{kind}.n_components": min(size, plan.config[kind]["n_components"]) for kind in sized}
    return plan.variant({**fewer, "selection": {"name": "none"}, "engine.progress": False})


def _features(plan: Plan, data: Dataset, size: int) -> tuple[Any, ...]:
    """A learner, and the features of at most ``size`` points and components with their targets."""
    model, X, y = _with_points(_small(plan, size), data, size)
    return model["learner"], model[1:-1].fit_transform(X), y


def _random_problem(plan: Plan, data: Dataset, n: int, d: int) -> tuple[Any, ...]:
    """A learner, and ``n`` random rows of ``d`` columns with targets of the data."""
    rng = np.random.default_rng(0)
    psi = rng.standard_normal((n, d)).astype(plan.engine().result_dtype(data.X_train))
    return plan.learner(data.task), psi, np.asarray(data.y_train)[rng.permutation(len(data.y_train))[:n]]


def _with_points(plan: Plan, data: Dataset, size: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """An unfitted pipeline, and some training points in its representation with their targets."""
    rows = np.sort(np.random.default_rng(0).permutation(len(data.X_train))[:size])  # files may be ordered by class
    model = pipeline(plan, data.task)
    X = represented(model, np.asarray(subset(data.X_train, rows)[:]), plan.engine())
    return model, X, np.asarray(data.y_train)[rows]


def _passes(plan: Plan, data: Dataset, width: int) -> tuple[int, list[str]]:
    """Passes over the points whose features are counted, and notes of what a stream will do."""
    engine, learner = plan.engine(), plan.learner(data.task)
    if not engine.stream:
        return 1, []
    passes = epochs_to_do(learner)
    notes = [f"{len(data.X_train):,} x {width:,} features, in batches within engine.memory={engine.memory:g} GiB"]
    if not isinstance(learner, Passes):
        return passes, [*notes, f"{passes} passes over them" if passes > 1 else "one pass over them"]
    moments = f"second moments {size_text(8 * width**2)}"
    if not takes_passes(learner, width, engine.budget):
        return passes, [*notes, f"{moments}, kept: one pass over them"]
    return passes, [
        *notes,
        f"{moments}: more than engine.memory={engine.memory:g} GiB, so many passes, of which one is timed",
    ]


def _line(s: float, at_s: float, t: float, at_t: float, x: float) -> float:
    """The value at ``x`` of the line through two measurements that does not fall; constant through equal sizes.

    >>> _line(1, 3.0, 2, 5.0, 10), _line(1, 3.0, 2, 2.0, 10)
    (21.0, 2.0)
    """
    slope = max(0.0, (at_t - at_s) / (t - s)) if t > s else 0.0
    return at_t + slope * (x - t) if x > t else at_t


def _seconds(call: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _together(label: str, found: Sequence[tuple[int, Estimate]]) -> Estimate:
    """The estimates of a row, each with its number of repeats, as one: the sum of the times, the largest memory."""
    if not found:
        return Estimate(label, 0, 0.0, notes=["the same fits as above"])
    largest = max((one for _, one in found), key=lambda one: one.peak)
    refused = next((one.refused for _, one in found if one.refused), None)
    fits, seconds = sum(times * one.fits for times, one in found), sum(times * one.seconds for times, one in found)
    return Estimate(label, fits, seconds, largest.parts, largest.peak, largest.notes, refused)


def _bytes(parts: Sequence[Part]) -> int:
    return sum(part.nbytes for part in parts)
