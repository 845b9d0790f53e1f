"""What a run takes, from shapes alone: fits, bytes, operations and time, before any feature is computed."""

from __future__ import annotations

import functools
import json
import logging
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from orbit.core.memory import process_bytes, size_text
from orbit.core.work import Speed, Work
from orbit.data import Dataset
from orbit.data.rows import distinct, subset
from orbit.learners.streaming import SAMPLE_ROWS, takes_passes
from runners.config.plan import Plan
from runners.experiments.selection import alike, without_path_parameter
from runners.job.memory import Part, refusal, stages

log = logging.getLogger(__name__)

# Training points to which representation and orbit are fitted for an estimate.
_SAMPLE = 64
# Parts of a stage below this share of it are not listed.
_LISTED = 0.01
# A run logs its estimate if it is expected to take more seconds than this; its time is not estimated if its operations
# are fewer than the second number.
_LONG_S, _LITTLE = 60.0, 1e11
# Said of a run on a GPU, whose speed is not measured.
_ON_GPU = "the time is that of the processor, and a GPU computes the features faster"


@dataclass(frozen=True)
class Fits:
    """A row of an experiment: plans that are fitted, each with its number of repeats on data of the same size."""

    label: str
    plans: Sequence[tuple[Plan, int]]


@dataclass(frozen=True)
class Estimate:
    """What a row takes.

    Attributes
    ----------
    label : str
    fits : int
        All fits: repeats, and those of inner validation.
    work : Work
    parts : list of Part
        The largest arrays, in the order in which they are made.
    peak : int
        Bytes of those that are in memory together, at least.
    notes : list of str
        What the run will do with results that ``engine.memory`` does not hold, and what is not in the estimate.
    refused : str or None
        Why the run will be refused.
    """

    label: str
    fits: int
    work: Work
    parts: list[Part] = field(default_factory=list)
    peak: int = 0
    notes: list[str] = field(default_factory=list)
    refused: str | None = None

    def line(self, speed: Speed) -> str:
        """The estimate in one line."""
        listed = [f"{part.what}: {size_text(part.nbytes)}" for part in self.parts if part.nbytes > _LISTED * self.peak]
        at_least = [f"at least {size_text(self.peak)} in memory of {size_text(process_bytes())}"] if self.peak else []
        said = [f"{self.fits:,} fit{'s' if self.fits != 1 else ''}", *listed, *at_least, *self.notes]
        work = f"{self.work.multiplications:.2g} multiplications, about {duration(speed.seconds(self.work))}"
        return f"{self.label}: {'; '.join([*said, work])}" + (f"; REFUSED: {self.refused}" if self.refused else "")


def report(name: str, estimates: Sequence[Estimate]) -> str:
    """The lines of ``dry_run=true``: one for each row, and their total if there are several."""
    if not estimates:
        return f"{name}: the work of this runner is not estimated; nothing was run"
    speed = Speed.measured()
    rates = f"{speed.single:.2g} multiplications a second in float32 and {speed.double:.2g} in float64, measured now"
    if len(estimates) == 1:
        return f"{replace(estimates[0], label=name).line(speed)} ({rates})"
    fits, work = sum(one.fits for one in estimates), sum((one.work for one in estimates), Work())
    total = Estimate(f"{name}, estimated: {len(estimates)} rows", fits, work)
    return "\n".join([*(one.line(speed) for one in estimates), f"{total.line(speed)} ({rates})"])


def estimated(rows: Iterable[Fits]) -> list[Estimate]:
    """The estimates of some rows. Data are opened for their shapes; repeats that an earlier row has are not counted."""
    rows, found = list(rows), dict[int, list[tuple[int, Estimate]]]()
    fits, counted = list[tuple[int, Plan, int]](), dict[str, int]()
    for i, row in enumerate(rows):
        for plan, repeats in row.plans:
            earlier = counted.get(plan.config_hash, 0)
            if repeats > earlier:
                fits.append((i, plan, repeats - earlier))
                counted[plan.config_hash] = repeats
    data: dict[str, Dataset] = {}
    for i, plan, repeats in sorted(fits, key=lambda item: (_data_key(item[1]), item[0])):
        key = _data_key(plan)
        if key not in data:
            data = {key: _load(plan)}
        found.setdefault(i, []).append((repeats, estimate_fit(plan, data[key])))
    return [_together(row.label, found.get(i, [])) for i, row in enumerate(rows)]


def estimate_fit(plan: Plan, data: Dataset) -> Estimate:
    """What the fit of a plan takes, with the fits of its inner validation, and the prediction of the test points."""
    sizes = _Sizes.of(plan, data)
    n, selection = len(data.X_train), plan.component("selection")
    points = selection.points()
    variants = [plan.without_selection(point) for point in points] or [plan]
    finals = [_Fit.of(variant, sizes, n, len(data.X_test)) for variant in variants]
    costliest = max(finals, key=lambda fit: fit.work.multiplications)
    inner, work = 0, costliest.work
    if points:
        splits = selection.splits(data, plan.seed("selection"))
        inner = len(points) * len(splits)
        for members in alike([variant.config | {"learner": None} for variant in variants]):
            work += _validation_work([variants[i] for i in members], sizes, splits)
    each = [stages(one, data, sizes.d, fit.columns) for one, fit in zip(variants, finals, strict=True)]
    largest = max((stage for found in each for stage in found), key=_bytes)
    held = max(each, key=lambda found: max(map(_bytes, found)))
    parts = list({part.what: part for stage in held for part in stage}.values())
    parts.append(Part(f"orbit of {costliest.orbit_size} elements", costliest.orbit_bytes, ("orbit.size",)))
    on_gpu = [_ON_GPU] if plan.engine().torch_device().type == "cuda" else []
    return Estimate("", 1 + inner, work, parts, _bytes(largest), [*costliest.notes, *on_gpu], refusal(largest))


def estimate_validation(plan: Plan) -> Estimate:
    """What the fits of a plan to the parts of its selection take, each validated on the rest."""
    data, selection = _load(plan), plan.component("selection")
    splits, sizes = selection.splits(data, plan.seed("selection")), _Sizes.of(plan, data)
    one = estimate_fit(plan.without_selection({}), data)
    return replace(one, label="validation", fits=len(splits), work=_validation_work([plan], sizes, splits))


def log_if_long(plan: Plan, data: Dataset) -> None:
    """Log what a fit will do, in one line, if it is expected to take longer than a minute."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit gives them
            estimate = estimate_fit(plan, data)
    except Exception:  # what a component cannot say beforehand must not end a run
        log.debug("no estimate", exc_info=True)
        return
    if estimate.work.operations < _LITTLE:
        return
    speed = _speed()
    if speed.seconds(estimate.work) > _LONG_S:
        log.info("%s", estimate.line(speed).removeprefix(": "))


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> [duration(seconds) for seconds in (0.02, 41.3, 200, 40_000, 300_000)]
    ['0.02 s', '41 s', '3.3 min', '11 h', '3.5 days']
    """
    for unit, length, limit in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < limit * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds / 86400:.2g} days"


_speed = functools.cache(Speed.measured)


@dataclass(frozen=True)
class _Sizes:
    """What the estimates of a plan and of its inner fits have in common.

    Attributes
    ----------
    sample : represented points, shape (m, *shape)
    task : of the data
    k : columns of targets
    """

    sample: np.ndarray
    task: str
    k: int

    @classmethod
    def of(cls, plan: Plan, data: Dataset) -> _Sizes:
        rows = np.linspace(0, len(data.X_train) - 1, min(_SAMPLE, len(data.X_train))).astype(int)
        X = plan.component("representation").fit_transform(np.asarray(subset(data.X_train, rows)[:]))
        k = data.y_train.shape[1] if data.y_train.ndim == 2 else 1
        if data.task == "classification":
            classes = len(distinct(data.y_train))
            k = 1 if classes == 2 else classes
        return cls(X.astype(plan.engine().result_dtype(X), copy=False), data.task, k)

    @property
    def d(self) -> int:
        return int(self.sample[0].size)


@dataclass(frozen=True)
class _Fit:
    """One fit: its work in parts, and what it will do."""

    fit: Work
    of_point: Work
    learner: Work
    columns: int
    orbit_size: int
    orbit_bytes: int
    points: float
    notes: list[str]

    @property
    def work(self) -> Work:
        return self.fit + self.of_point * self.points + self.learner

    @classmethod
    def of(cls, plan: Plan, sizes: _Sizes, n: int, n_new: int) -> _Fit:
        """The fit of a plan without selection to ``n`` points, with predictions for ``n_new``."""
        engine, learner, dtype = plan.engine(), plan.learner(sizes.task), sizes.sample.dtype
        features = plan.approx().estimate(sizes.sample, n)
        layer = plan.hyper().estimate(features.columns, n, dtype)
        width, passes, notes = layer.columns, 1, list[str]()
        solver = learner.work(n, width, sizes.k, dtype, features.gram)
        if engine.stream:
            passes, solver, notes = _stream(learner, n, width, sizes.k, engine.memory, dtype, solver)
        if solver is None:
            notes.append(f"learner={learner.name} not included")
        elif learner.operator_valued:
            notes.append(f"learner={learner.name} as for independent outputs")
        predictions = Work.of(dtype, float(width) * sizes.k * (n + n_new))
        again = 2 * min(n, SAMPLE_ROWS) if engine.stream else 0  # for the second layer, and for the training scores
        return cls(
            features.fit + layer.fit,
            features.of_point + layer.of_point,
            (solver or Work()) + predictions,
            features.columns,
            features.orbit_size,
            features.orbit_bytes,
            n * passes + n_new + again,
            notes,
        )


def _stream(
    learner: Any, n: int, width: int, k: int, memory: float, dtype: np.dtype, solver: Work | None
) -> tuple[int, Work | None, list[str]]:
    """Passes over a stream, the operations of the learner, and notes of what it will do."""
    features = f"{n:,} x {width:,} features, in batches within engine.memory={memory:g} GiB"
    passes = learner.remaining_epochs()
    if not learner.many_passes:
        return passes, solver, [features, f"{passes} passes over them" if passes > 1 else "one pass over them"]
    moments = f"second moments {size_text(8 * width**2)}"
    if not takes_passes(learner, width, memory * 2**30):
        return passes, solver, [features, f"{moments}, kept: one pass over them"]
    passes, solver = learner.passes_work(n, width, k, memory * 2**30, dtype)
    limit = f"more than engine.memory={memory:g} GiB, so at most {passes} passes over them"
    return passes, solver, [features, f"{moments}: {limit}"]


def _validation_work(plans: Sequence[Plan], sizes: _Sizes, splits: Sequence[tuple[np.ndarray, np.ndarray]]) -> Work:
    """That of the inner fits of plans that differ only in the learner."""
    total, shares = Work(), _shares_features(plans[0])
    for i, (fit, validation) in enumerate(splits):
        one = _Fit.of(plans[0], sizes, len(fit), len(validation))
        total += one.fit
        if i == 0 or not shares:
            total += one.of_point * one.points
        for members in alike([without_path_parameter(plan, sizes.task, j) for j, plan in enumerate(plans)]):
            together = _of_path([plans[j] for j in members], sizes.task)
            total += _Fit.of(together, sizes, len(fit), len(validation)).learner
    return total


def _of_path(plans: Sequence[Plan], task: str) -> Plan:
    """One plan with all values of the learner's path parameter, for plans that differ in it."""
    if len(plans) == 1:
        return plans[0]
    parameter = plans[0].learner(task).path_parameter
    values = [plan.config["learner"][parameter] for plan in plans]
    return plans[0].variant({f"learner.{parameter}": values})


def _shares_features(plan: Plan) -> bool:
    """Whether all splits have the same feature map, which does not depend on the points, and its features are kept."""
    features, kernel = plan.approx(), plan.config["kernel"]
    fixed = features.min_fit_points(SAMPLE_ROWS) == 0 and kernel.get("lengthscale") != "median"
    return fixed and plan.component("encoder").is_identity


def _together(label: str, found: Sequence[tuple[int, Estimate]]) -> Estimate:
    """The estimates of a row, each with its number of repeats, as one: the sum of the work, the largest memory."""
    if not found:
        return Estimate(label, 0, Work(), notes=["the same fits as above"])
    largest = max((one for _, one in found), key=lambda one: one.peak)
    refused = next((one.refused for _, one in found if one.refused), None)
    fits, work = sum(times * one.fits for times, one in found), sum((one.work * times for times, one in found), Work())
    return Estimate(label, fits, work, largest.parts, largest.peak, largest.notes, refused)


def _load(plan: Plan) -> Dataset:
    """The data set of a plan; of a stream, points stay in files where they can."""
    return plan.component("dataset").load(plan.seed("dataset"), lazy=plan.config["engine"]["stream"])


def _bytes(parts: Sequence[Part]) -> int:
    return sum(part.nbytes for part in parts)


def _data_key(plan: Plan) -> str:
    return json.dumps([plan.config["dataset"], plan.config["seed"], plan.config["engine"]["stream"]], sort_keys=True)
