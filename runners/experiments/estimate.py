"""What fits take, measured: two small fits of the same plan, extrapolated to all points and components.

The time of a map grows with its components, that of its fit with their cube where a matrix of landmarks is factorised,
and that of a solver with n D min(n, D). What does not grow, such as moving points, is the difference of two sizes.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from sklearn.pipeline import Pipeline

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

# Components of the two small fits, and training points of the smaller and the larger one.
_SIZES = 64, 256
# Rows whose features are timed, at most: those of a few tiles.
_ROWS = 256
# Rows and columns of the larger problem that a learner is timed with; the smaller has half as many of both.
_PROBLEM = 2000, 1000


@dataclass(frozen=True)
class Fits:
    """A row of an experiment: plans that are fitted, each with its number of repeats on data of the same size."""

    label: str
    plans: Sequence[tuple[Plan, int]]


@dataclass(frozen=True)
class _Timed:
    """A small fit of representation, features and second layer.

    Attributes
    ----------
    fit, layer_fit : seconds of the fits of features and second layer
    row, layer_row : seconds of a row of features, and of the second layer
    columns, width : columns of the features and of the second layer
    """

    fit: float
    layer_fit: float
    row: float
    layer_row: float
    columns: int
    width: int


@dataclass(frozen=True)
class _Costs:
    """Seconds of one fit of a plan to ``n`` points: before the features, of a row of features, of the learner."""

    fit: float
    row: float
    learner: float
    columns: int
    width: int


class Measurements:
    """Estimates of plans; small fits of plans that differ in sizes and learner alone are made once."""

    def __init__(self) -> None:
        self._maps: dict[str, list[_Timed]] = {}
        self._learners: dict[str, list[tuple[float, float]]] = {}

    def estimate(self, plan: Plan, data: Dataset) -> Estimate:
        """What the fit of a plan takes, with the fits of its inner validation and the prediction of the test points."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit itself gives them
            return self._estimate(plan, data)

    def _estimate(self, plan: Plan, data: Dataset) -> Estimate:
        n, selection = len(data.X_train), plan.component("selection")
        points = selection.points()
        variants = [plan.without_selection(point) for point in points] or [plan]
        finals = [self._costs(variant, data, n) for variant in variants]
        passes, notes = _passes(variants[0], data, finals[0].width)
        seconds = max(cost.fit + cost.row * (passes * n + len(data.X_test)) + cost.learner for cost in finals)
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
                seconds += cost.fit + cost.row * (len(fit) + len(validation)) + len(paths) * cost.learner
        return seconds

    def _costs(self, plan: Plan, data: Dataset, n: int) -> _Costs:
        """The seconds of a plan without selection, fitted to ``n`` points."""
        small, large = self._timed(plan, data)
        s, t = _sizes(plan, data)
        wanted = _wanted(plan, "approx", n)
        columns = round(_line(s, small.columns, t, large.columns, wanted))
        power = 3 if plan.approx().min_fit_points(n) else 1
        fit = _line(s**power, small.fit, t**power, large.fit, wanted**power)
        row = _line(s, small.row, t, large.row, wanted)
        width = columns
        if plan.config["hyper"]["name"] != "linear":
            u = _wanted(plan, "hyper", n)
            width = round(large.width * u / min(u, _SIZES[1]))
            grown = width / large.width * columns / large.columns
            fit, row = fit + large.layer_fit * grown, row + large.layer_row * grown
        return _Costs(fit, row, self._learner_seconds(plan, data, n, width), columns, width)

    def _timed(self, plan: Plan, data: Dataset) -> list[_Timed]:
        key = _key(plan, ("learner", "selection", "runner"), ("n_components", "n_train", "n_test"))
        if key not in self._maps:
            self._maps[key] = [_small_fit(plan, data, size) for size in _sizes(plan, data)]
        return self._maps[key]

    def _learner_seconds(self, plan: Plan, data: Dataset, n: int, width: int) -> float:
        """Seconds of a learner on ``n`` rows of ``width`` columns, from two smaller fits."""
        learner = plan.learner(data.task)
        is_plain = not (learner.operator_valued or learner.takes_points or plan.approx().gives_gram)
        rows, d = min(n, _PROBLEM[0]), min(width, _PROBLEM[1])
        key = _key(plan, ("selection", "runner"), ()) + f" {is_plain and (rows, d)}"
        if key not in self._learners:
            self._learners[key] = (
                [_fit_to_random(plan, data, rows // 2, d // 2 or 1), _fit_to_random(plan, data, rows, d)]
                if is_plain
                else [_fit_to_features(plan, data, size) for size in _sizes(plan, data)]
            )
        (s, small), (t, large) = self._learners[key]
        return _line(s, small, t, large, learner.operations(n, width))


def estimated(rows: Iterable[Fits]) -> list[Estimate]:
    """The estimates of some rows; repeats that an earlier row has are not counted."""
    rows, found = list(rows), dict[int, list[tuple[int, Estimate]]]()
    fits, counted = list[tuple[int, Plan, int]](), dict[str, int]()
    for i, row in enumerate(rows):
        for plan, repeats in row.plans:
            earlier = counted.get(plan.config_hash, 0)
            if repeats > earlier:
                fits.append((i, plan, repeats - earlier))
                counted[plan.config_hash] = repeats
    measurements, data = Measurements(), dict[str, Dataset]()
    for i, plan, repeats in sorted(fits, key=lambda item: (_data_key(item[1]), item[0])):
        key = _data_key(plan)
        if key not in data:
            data = {key: loaded(plan)}
        found.setdefault(i, []).append((repeats, measurements.estimate(plan, data[key])))
    return [_together(row.label, found.get(i, [])) for i, row in enumerate(rows)]


def loaded(plan: Plan) -> Dataset:
    """The data set of a plan; of a stream, points stay in files where they can."""
    return plan.component("dataset").load(plan.seed("dataset"), lazy=plan.config["engine"]["stream"])


def _small(plan: Plan, size: int) -> Plan:
    """The plan with at most ``size`` components."""
    sized = [kind for kind in ("approx", "hyper") if "n_components" in plan.config[kind]]
    fewer = {f"{kind}.n_components": min(size, plan.config[kind]["n_components"]) for kind in sized}
    return plan.variant({**fewer, "selection": {"name": "none"}, "engine.progress": False})


def _small_fit(plan: Plan, data: Dataset, size: int) -> _Timed:
    """Time a plan with at most ``size`` components on as many points, and the features of some of them."""
    model, X, _ = _with_points(_small(plan, size), data, size)
    features, layer = model["features"], model["hyper"]
    fit, _ = _seconds(lambda: features.fit(X))
    some = X[:_ROWS]
    features.transform(some)  # the first call makes buffers
    row, psi = _seconds(lambda: features.transform(some))
    layer_fit, _ = _seconds(lambda: layer.fit(psi))
    layer_row, mapped = _seconds(lambda: layer.transform(psi))
    return _Timed(fit, layer_fit, row / len(some), layer_row / len(some), psi.shape[1], mapped.shape[1])


def _fit_to_features(plan: Plan, data: Dataset, size: int) -> tuple[float, float]:
    """Operations and seconds of a fit of the learner to the features of at most ``size`` points and components."""
    model, X, y = _with_points(_small(plan, size), data, size)
    psi = model[1:-1].fit_transform(X)
    seconds, _ = _seconds(lambda: model["learner"].fit(psi, y))
    return model["learner"].operations(*psi.shape), seconds


def _fit_to_random(plan: Plan, data: Dataset, n: int, d: int) -> tuple[float, float]:
    """Operations and seconds of a fit of the learner to ``n`` random rows of ``d`` columns."""
    learner, rng = plan.learner(data.task), np.random.default_rng(0)
    psi = rng.standard_normal((n, d)).astype(plan.engine().result_dtype(data.X_train))
    y = np.asarray(data.y_train)[rng.permutation(len(data.y_train))[:n]]
    seconds, _ = _seconds(lambda: learner.fit(psi, y))
    return learner.operations(n, d), seconds


def _with_points(plan: Plan, data: Dataset, size: int) -> tuple[Pipeline, np.ndarray, np.ndarray]:
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


def _wanted(plan: Plan, kind: str, n: int) -> int:
    """The size that the time of a map grows with: its components, or the training points of an exact kernel."""
    return plan.config[kind].get("n_components", n)


def _sizes(plan: Plan, data: Dataset) -> list[int]:
    """The sizes of the small fits, in what :func:`_wanted` counts."""
    return [min(size, _wanted(plan, "approx", len(data.X_train))) for size in _SIZES]


def _key(plan: Plan, sections: Sequence[str], keys: Sequence[str]) -> str:
    """The configuration without some sections, and without some keys of the others."""
    config = {
        name: {key: value for key, value in section.items() if key not in keys}
        if isinstance(section, Mapping)
        else section
        for name, section in plan.config.items()
        if name not in (*sections, "seed", "run_name")
    }
    return json.dumps(config, sort_keys=True, default=str)


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


def _data_key(plan: Plan) -> str:
    return json.dumps([plan.config["dataset"], plan.config["seed"], plan.config["engine"]["stream"]], sort_keys=True)
