"""One fit of a plan: dataset -> representation -> features -> hyper -> learner -> metrics."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from orbit.approx import AveragedMap, diagnose
from orbit.approx.hyper import LinearLayer
from orbit.core import distributed
from orbit.core.errors import shortened
from orbit.data import Dataset
from orbit.engine import Engine
from orbit.learners.streaming import FeatureStream, fit_stream, is_repeated, sample_rows, takes_passes
from runners.config.plan import Plan
from runners.experiments.advice import setting_for_rare_classes, warn_about_combinations, warn_about_points
from runners.experiments.pipeline import (
    all_answers,
    evaluated,
    fit_options,
    has_room,
    pipeline,
    predict,
    represented,
    stays_on_device,
    targets,
    transformed,
    weights,
    width,
)
from runners.experiments.selection import Selected, select
from runners.experiments.training import Training
from runners.job.features import fit, in_use, shared_in_job, storing, takes, transform
from runners.job.job import Stopwatch
from runners.job.memory import check_fit
from runners.measure.machine import peak_memory_mb
from runners.measure.metrics import evaluate, ranks_classes

# Test points from which on equal predictions are no coincidence.
_FEWEST_POINTS = 20


@dataclass(frozen=True)
class Fitted:
    """A fitted pipeline with its predictions and metrics.

    Attributes
    ----------
    model : Pipeline with the steps ``representation``, ``features``, ``hyper``, ``learner``
    predicted : predictions for the test points, shape (n_test,) or (n_test, k)
    answers : all that the learner says of them, as :func:`~orbit.learners.answers.answers`
    metrics : ``train/...``, ``test/...``, sizes and fitted parameters, under flat names
    selected : result of the selection by inner validation, or None
    sample : training points that the features were fitted to: some rows of a stream, otherwise all
    problem : why nothing can be learned from the features, or was learned from them; None otherwise
    """

    model: Pipeline
    predicted: np.ndarray
    answers: dict[str, np.ndarray]
    metrics: dict[str, float]
    selected: Selected | None
    sample: np.ndarray | slice
    problem: str | None = None


def fit_and_score(plan: Plan, data: Dataset, clock: Stopwatch, training: Training | None = None) -> Fitted:
    """Fit a plan and evaluate it on training and test points, with each stage timed.

    If the plan selects settings, the model with the best ones is fitted to all training points.
    ``training`` records the epochs of a stream.
    """
    for point in plan.component("selection").points():
        check_fit(plan.without_selection(point), data)
    check_fit(plan, data)
    with clock.stage("selection"):
        selected = select(plan, data)
    plan = selected.plan if selected else plan
    model, engine = pipeline(plan, data.task), plan.engine()
    warn_about_combinations(plan, data.X_train.ndim - 1)
    sample: Any = plan.sample(len(data.X_train)) if engine.stream else slice(None)
    with clock.stage("representation"):
        X = represented(model, data.X_train[sample], engine)
    warn_about_points(plan, X)
    check_fit(plan, data, X[0].size)
    with clock.stage("fit_features"):
        fit(model["features"], X, **targets(data, sample))
    check_fit(plan, data, X[0].size, len(model["features"].get_feature_names_out()))
    if engine.stream and not model["features"].gives_gram:
        trained, examined, problem = _fit_streamed(plan, model, data, X, sample, clock, training)
    else:
        trained, examined, problem = _fit_at_once(model, data, X, clock)
        distributed.end_other_processes()
    with clock.stage("predict"):
        answers = all_answers(model, data.X_test, engine)
    predicted = answers["prediction"]
    scored = evaluated(model["learner"], data, answers)
    problem = problem or _constant(predicted, data, model["learner"], scored.get("roc_auc"))
    _warn_about_groups(model["learner"], data)
    if problem is not None:
        warnings.warn(problem, stacklevel=2)
    metrics = {f"train/{key}": value for key, value in trained.items()}
    metrics |= {f"test/{key}": value for key, value in scored.items()}
    metrics |= {"features/dim": float(model["learner"].n_features_in_), "memory/peak_mb": peak_memory_mb()}
    metrics |= model["learner"].metrics() | model["features"].metrics() | examined
    if selected:
        metrics |= selected.metrics()
    return Fitted(model, predicted, answers, metrics, selected, sample, problem)


def _warn_about_groups(learner: Any, data: Dataset) -> None:
    """Issue a warning if the learner has chosen its parameter by a criterion that knows no groups of points."""
    if data.clusters is None or (curve := learner.selection_curve()) is None or curve.criterion.startswith("k_fold"):
        return
    warnings.warn(
        f"learner.{curve.parameter}={curve.chosen:g} was chosen by {curve.criterion}, which knows no groups of points "
        "and may fit what those of one have in common; give one value, or choose by selection=k_fold with "
        f"'selection.grid={{learner.{curve.parameter}: [...]}}'",
        stacklevel=3,
    )


def _constant(predicted: np.ndarray, data: Dataset, learner: Any, area: float | None) -> str | None:
    """A sentence if all test points have the same prediction, but not the same target.

    ``area`` is that under the ROC curve, of classes whose scores are known.
    """
    y = data.y_test
    if len(predicted) < _FEWEST_POINTS or (predicted[:1] != predicted).any() or (y[:1] == y[:]).all():
        return None
    found = f"the prediction of all {len(predicted)} test points is {shortened(str(predicted[0]))}"
    ranks = area is not None and ranks_classes(y, area)
    found += f", though scores rank the classes (roc_auc {area:.3g})" if ranks else ": nothing was learned"
    if data.task == "classification" and (setting := setting_for_rare_classes(learner, data.y_train[:])):
        return f"{found}. Most training points are of one class: set {setting}"
    return f"{found}. Check the learner's regularization and learning rate, the kernel and the scale of the points"


# Metrics of training points, metrics of the features, and a problem of these or None.
Examined = tuple[dict[str, float], dict[str, float], str | None]


def _fit_at_once(model: Pipeline, data: Dataset, X: np.ndarray, clock: Stopwatch) -> Examined:
    """Fit second layer and learner to the features of all points."""
    with clock.stage("features"):
        psi = transform(model["features"], X, stays_on_device(model, X))
    with clock.stage("hyper"):
        psi = model["hyper"].fit_transform(psi, **targets(data))
    with clock.stage("learner"):
        model["learner"].fit(psi, data.y_train[:], **fit_options(model["learner"], data))
    trained = evaluate(data.task, data.y_train[:], model["learner"].predict(psi))
    return trained, *diagnose(model["features"], X, psi)


def _fit_streamed(
    plan: Plan,
    model: Pipeline,
    data: Dataset,
    X: np.ndarray,
    sample: np.ndarray,
    clock: Stopwatch,
    training: Training | None,
) -> Examined:
    """Fit to one batch of rows at a time. The first layer's features are cached in files for the next pass, if any.

    ``X`` are the rows ``sample``, in their representation, of which some are those that the second layer is fitted to.
    """
    features, hyper, learner, engine = model["features"], model["hyper"], model["learner"], plan.engine()
    weighted = weights(learner, data, streamed=True)
    with clock.stage("hyper"):
        columns = len(features.get_feature_names_out())
        rows = sample_rows(len(X), plan.seed("hyper"), engine, columns, hyper.min_fit_points(len(X)))
        hyper.fit(transform(features, X[rows]), **targets(data, sample[rows]))
    with clock.stage("learner"):
        augment = None if plan.config["augmentation"]["name"] == "none" else plan.component("augmentation").apply
        stream = FeatureStream(
            partial(transformed, model), data.X_train, width(model), engine, plan.seed("learner"), augment
        )
        if training is not None:
            training.resume(learner, stream)
        nbytes = len(data.X_train) * columns * engine.result_dtype(X).itemsize
        with _cached_between_passes(plan, nbytes, is_repeated(learner, stream.n_outputs, engine)) as are_cached:
            if not are_cached and _stay_on_device(model, engine):
                stream.transform = features.transform_on_device
                stream.augment = _in_representation(model["representation"], augment)
            fit_stream(learner, stream, data.y_train, data.task, weighted.get("sample_weight"), training)
    # the features of a stream are not kept; those of a sample are computed again
    seen = sample[sample_rows(len(X), plan.seed("runner"), engine, learner.n_features_in_)]
    trained = evaluate(data.task, data.y_train[seen], predict(model, data.X_train[seen], engine))
    return trained, *diagnose(features, X, lambda points: hyper.transform(transform(features, points)))


def _stay_on_device(model: Pipeline, engine: Engine) -> bool:
    """Whether a GPU's features of a stream stay there, because the learner computes on it and nothing is in between."""
    features, hyper, learner = model["features"], model["hyper"], model["learner"]
    averages = isinstance(features, AveragedMap) and not features.operator_valued
    on_gpu = engine.torch_device().type == "cuda"
    return on_gpu and averages and isinstance(hyper, LinearLayer) and _learns_on_device(learner, width(model), engine)


def _learns_on_device(learner: Any, columns: int, engine: Engine) -> bool:
    """Whether a learner takes the batches of a stream on a GPU, with room for the moments that it keeps."""
    if learner.takes_tensors or not learner.fits_tensors:
        return learner.takes_tensors
    return not takes_passes(learner, columns, engine.budget) and has_room(learner.fit_bytes(columns, columns), engine)


def _in_representation(
    representation: Any, augment: Callable[[np.ndarray, np.random.Generator], np.ndarray] | None
) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    """The augmented points of a batch in their representation: a stream makes those of the next batch meanwhile."""
    return lambda points, rng: representation.transform(points if augment is None else augment(points, rng))


@contextlib.contextmanager
def _cached_between_passes(plan: Plan, nbytes: float, repeated: bool) -> Iterator[bool]:
    """Context manager in which features of a stream, ``nbytes`` in all, are cached for its next pass or another fit.

    Yields whether they are. They are not where they have no room, nor those of augmented points, which differ in every
    pass.
    """
    with shared_in_job(plan) if repeated else contextlib.nullcontext():
        are_cached = takes(nbytes) and plan.config["augmentation"]["name"] == "none"
        with storing(in_use() if are_cached else None):
            yield are_cached
