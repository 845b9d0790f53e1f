"""runner=fit: train, select, evaluate, log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from orbit import plots
from orbit.data import Dataset
from orbit.engine import Engine
from orbit.metrics import evaluate
from orbit.registry import register
from orbit.streaming import FeatureStream, fit_stream, sample_rows
from runners.base import Job, Runner, Stopwatch, peak_memory_mb
from runners.plan import Plan

_EXAMPLES = 3


@dataclass(frozen=True)
class Fitted:
    """A fitted pipeline and how well it does.

    Attributes
    ----------
    model : Pipeline with the steps ``representation``, ``features``, ``hyper``, ``learner``
    predicted : predictions of the test part, shape (n_test,) or (n_test, k)
    metrics : ``train/...``, ``test/...``, sizes and chosen parameters, by flat names
    """

    model: Pipeline
    predicted: np.ndarray
    metrics: dict[str, float]


def fit_and_score(plan: Plan, data: Dataset, clock: Stopwatch) -> Fitted:
    """dataset -> representation -> features -> hyper -> learner, each stage timed; the metrics on both parts."""
    model = pipeline(plan, data.task)
    features, learner, engine = model["features"], model["learner"], plan.engine()
    with clock.stage("representation"):
        X = model["representation"].fit_transform(data.X_train)
        X = X.astype(engine.result_dtype(X), copy=False)
    with clock.stage("fit_features"):
        features.fit(X)
    if engine.stream:
        _fit_streamed(plan, model, data, X, clock)
        seen = sample_rows(len(X), plan.seed("runner"))  # features were forgotten: computing some again will do
        fitted_values = _predict(model, data.X_train[seen], _width(model), engine)
    else:
        psi = _fit_at_once(model, data, X, clock)
        seen, fitted_values = np.arange(len(X)), learner.predict(psi)
        del psi
    with clock.stage("predict"):
        predicted = _predict(model, data.X_test, _width(model), engine)

    scores = {f"train/{k}": v for k, v in evaluate(data.task, data.y_train[seen], fitted_values).items()}
    scores |= {f"test/{k}": v for k, v in evaluate(data.task, data.y_test, predicted).items()}
    scores |= {
        "features/dim": float(learner.n_features_in_),
        "orbit/size": float(len(features.orbit_.weights_)),
        "memory/peak_mb": peak_memory_mb(),
        "learner/regularization": learner.regularization_,
    }
    if hasattr(features.kernel_, "lengthscale_"):
        scores["kernel/lengthscale"] = features.kernel_.lengthscale_
    return Fitted(model, predicted, scores)


def pipeline(plan: Plan, task: str) -> Pipeline:
    """The steps of a plan, not fitted."""
    steps = {"representation": plan.component("representation"), "features": plan.approx()}
    steps |= {"hyper": plan.hyper(), "learner": plan.learner(task)}
    return Pipeline(list(steps.items()))


def _fit_at_once(model: Pipeline, data: Dataset, X: np.ndarray, clock: Stopwatch) -> np.ndarray:
    with clock.stage("features"):
        psi = model["features"].transform(X)
    with clock.stage("hyper"):
        psi = model["hyper"].fit_transform(psi)
    with clock.stage("learner"):
        model["learner"].fit(psi, data.y_train)
    return psi


def _fit_streamed(plan: Plan, model: Pipeline, data: Dataset, X: np.ndarray, clock: Stopwatch) -> None:
    """The features of a batch of rows at a time are computed, learnt from and forgotten."""
    features, hyper, learner = model["features"], model["hyper"], model["learner"]
    with clock.stage("hyper"):
        hyper.fit(features.transform(X[sample_rows(len(X), plan.seed("hyper"))]))
    with clock.stage("learner"):
        stream = FeatureStream(
            lambda points: hyper.transform(features.transform(points)),
            X,
            _width(model),
            plan.engine(),
            plan.seed("learner"),
        )
        fit_stream(learner, stream, data.y_train, data.task)


def _width(model: Pipeline) -> int:
    """Columns of the widest features on the way."""
    return max(len(model[step].get_feature_names_out()) for step in ("features", "hyper"))


@register("runner", "fit")
class Fit(Runner):
    """dataset -> representation -> features -> hyper -> learner, then metrics, figures and the model.

    Parameters
    ----------
    save_model : bool
        Keep the fitted pipeline in the run folder and in MLflow.
    """

    def __init__(self, save_model: bool = True) -> None:
        self.save_model = save_model

    def run(self, job: Job) -> None:
        with job.stage("load"):
            data = job.load()
        fitted = fit_and_score(job.plan, data, job)
        job.log_metrics(fitted.metrics)
        self._draw(job, data, fitted.model, fitted.predicted)
        _tabulate(job, data)
        if self.save_model:
            job.log_model(fitted.model, data.X_test[:2])

    def _draw(self, job: Job, data: Dataset, model: Pipeline, predicted: np.ndarray) -> None:
        features, learner = model["features"], model["learner"]
        examples = model["representation"].transform(data.X_test[:_EXAMPLES])
        if examples.ndim > 2 or features.orbit_.group_.name != "identity":
            job.log_figure("orbit", plots.orbit_examples(features.orbit_, examples))
        if data.task == "classification":
            job.log_figure("confusion", plots.confusion(data.y_test, predicted))
        else:
            job.log_figure("predictions", plots.predicted_against_true(data.y_test, predicted))
        if len(learner.path_) > 1 and np.isfinite(learner.path_scores_).any():
            criterion = getattr(learner, "selection", "hold_out").replace("_", "-")
            figure = plots.selection_curve(learner.path_, learner.path_scores_, learner.regularization_, criterion)
            job.log_figure("selection", figure)


def _predict(model: Any, X: np.ndarray, n_features: int, engine: Engine) -> np.ndarray:
    """Predictions a batch of rows at a time: the features of a large test set are never held together."""
    batches = engine.row_batches(len(X), 2 * n_features * X.itemsize)
    return np.concatenate([model.predict(X[rows]) for rows in batches])


def _tabulate(job: Job, data: Dataset) -> None:
    metrics = job.metrics
    job.row("data", data.describe())
    for key, value in metrics.items():
        if key.startswith("test/"):
            job.row(key.replace("/", " "), f"{value:.2%}" if key == "test/accuracy" else f"{value:.4g}")
    stages = ("load", "representation", "fit_features", "features", "hyper", "learner", "predict")
    times = {name: metrics.get(f"time/{name}_s") for name in stages}
    job.row("time", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items() if seconds is not None))
    job.row("features", f"{metrics['features/dim']:.0f} columns, orbit of {metrics['orbit/size']:.0f}")
    job.row("peak memory", f"{metrics['memory/peak_mb']:.0f} MB")
