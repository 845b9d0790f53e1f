"""runner=fit: train, select, evaluate, log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from orbit import plots
from orbit.data import Dataset
from orbit.engine import Route
from orbit.learners.streaming import FeatureStream, fit_stream, sample_rows
from orbit.registry import register
from runners.app.plan import Plan
from runners.base import EXAMPLES, Job, Runner, Stopwatch, peak_memory_mb, suffix
from runners.experiments.pipeline import pipeline, predict, represented, weights, width
from runners.experiments.selection import Selected, select
from runners.experiments.training import Training
from runners.metrics import evaluate


@dataclass(frozen=True)
class Fitted:
    """A fitted pipeline and how well it does.

    Attributes
    ----------
    model : Pipeline with the steps ``representation``, ``features``, ``hyper``, ``learner``
    predicted : predictions of the test part, shape (n_test,) or (n_test, k)
    metrics : ``train/...``, ``test/...``, sizes and chosen parameters, by flat names
    selected : what inner validation chose, or None
    """

    model: Pipeline
    predicted: np.ndarray
    metrics: dict[str, float]
    selected: Selected | None


def fit_and_score(plan: Plan, data: Dataset, clock: Stopwatch, training: Training | None = None) -> Fitted:
    """dataset -> representation -> features -> hyper -> learner, each stage timed; the metrics on both parts.

    Where the plan selects settings, the best are fitted, to all training points.
    ``training`` keeps record of the epochs of a stream.
    """
    with clock.stage("selection"):
        selected = select(plan, data)
    plan = selected.plan if selected else plan
    model = pipeline(plan, data.task)
    features, learner, engine = model["features"], model["learner"], plan.engine()
    sample: Any = plan.sample(len(data.X_train)) if engine.stream else slice(None)
    with clock.stage("representation"):
        X = represented(model, data.X_train[sample], engine)
    with clock.stage("fit_features"):
        features.fit(X)
    if engine.stream:
        _fit_streamed(plan, model, data, X, clock, training)
        # features were forgotten: computing some again will do
        seen = sample[sample_rows(len(X), plan.seed("runner"), engine, learner.n_features_in_)]
        fitted_values = predict(model, data.X_train[seen], engine)
    else:
        psi = _fit_at_once(model, data, X, clock)
        seen, fitted_values = np.arange(len(X)), learner.predict(psi)
        del psi
    with clock.stage("predict"):
        predicted = predict(model, data.X_test, engine)

    scores = {f"train/{k}": v for k, v in evaluate(data.task, data.y_train[seen], fitted_values).items()}
    scores |= {f"test/{k}": v for k, v in evaluate(data.task, data.y_test, predicted).items()}
    scores |= {
        "features/dim": float(learner.n_features_in_),
        "memory/peak_mb": peak_memory_mb(),
    }
    scores |= learner.metrics() | features.metrics()
    if selected:
        scores |= selected.metrics()
    return Fitted(model, predicted, scores, selected)


def _fit_at_once(model: Pipeline, data: Dataset, X: np.ndarray, clock: Stopwatch) -> np.ndarray:
    with clock.stage("features"):
        psi = model["features"].transform(X)
    with clock.stage("hyper"):
        psi = model["hyper"].fit_transform(psi)
    with clock.stage("learner"):
        model["learner"].fit(psi, data.y_train, **weights(model["learner"], data))
    return psi


def _fit_streamed(
    plan: Plan, model: Pipeline, data: Dataset, X: np.ndarray, clock: Stopwatch, training: Training | None
) -> None:
    """The features of a batch of rows at a time are computed, learnt from and forgotten.

    ``X`` is the sample that stands for all points, represented.
    """
    features, hyper, learner, engine = model["features"], model["hyper"], model["learner"], plan.engine()
    weighted = weights(learner, data, streamed=True)
    with clock.stage("hyper"):
        columns = len(features.get_feature_names_out())
        rows = sample_rows(len(X), plan.seed("hyper"), engine, columns, hyper.points_wanted(len(X)))
        hyper.fit(features.transform(X[rows]))
    with clock.stage("learner"):
        augment = None if plan.config["augmentation"]["name"] == "none" else plan.component("augmentation").apply
        transform = model[:-1].transform
        stream = FeatureStream(transform, data.X_train, width(model), engine, plan.seed("learner"), augment)
        if training is not None:
            training.resume(learner, stream)
        fit_stream(learner, stream, data.y_train, data.task, weighted.get("sample_weight"), training)


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
        training = Training(job, job.plan)
        fitted = fit_and_score(job.plan, data, job, training)
        job.log_metrics(fitted.metrics)
        self._draw(job, data, fitted.model, fitted.predicted)
        if fitted.selected:
            record_selection(job, fitted.selected)
            job.row("selected", fitted.selected.describe())
        _tabulate(job, data, fitted.model["features"].route_)
        training.draw()
        if self.save_model:
            job.log_model(fitted.model, data.X_test[:2])
        training.end()

    def _draw(self, job: Job, data: Dataset, model: Pipeline, predicted: np.ndarray) -> None:
        features, learner = model["features"], model["learner"]
        job.log_orbit(features.orbit_, model["representation"].transform(data.X_test[:EXAMPLES]))
        job.log_skeleton(features.kernel_)
        if data.task == "classification":
            job.log_figure("confusion", plots.confusion(data.y_test, predicted))
        else:
            job.log_figure("predictions", plots.predicted_against_true(data.y_test, predicted))
        if data.X_test.shape[1:] == data.y_test.shape[1:] == (2,):
            job.log_figure("field", plots.field(data.X_test, data.y_test, predicted, "test points"))
        elif (figure := plots.error_examples(data.X_test, data.y_test, predicted, data.task)) is not None:
            job.log_figure("errors", figure)
        if (curve := learner.selection_curve()) is not None:
            criterion = curve.criterion.replace("_", "-")
            figure = plots.selection_curve(curve.path, curve.scores, curve.chosen, criterion, curve.parameter)
            job.log_figure("selection", figure)


def record_selection(job: Job, selected: Selected, name: str = "") -> None:
    """Everything that was tried, as a figure, JSON and CSV; ``name`` tells several selections of a run apart."""
    end = suffix(name)
    job.log_figure(f"grid{end}", selected.figure())
    job.log_text(f"selection{end}.json", selected.json())
    job.log_text(f"selection{end}.csv", selected.csv())
    job.record.params |= {f"selected{end}.{key}": value for key, value in selected.chosen.items()}


def _tabulate(job: Job, data: Dataset, route: Route | None) -> None:
    metrics = job.metrics
    job.row("data", data.describe())
    for key, value in metrics.items():
        if key.startswith("test/"):
            job.row(key.replace("/", " "), f"{value:.2%}" if key == "test/accuracy" else f"{value:.4g}")
    stages = ("load", "selection", "representation", "fit_features", "features", "hyper", "learner", "predict")
    times = {name: metrics.get(f"time/{name}_s") for name in stages}
    job.row("time", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items() if seconds is not None))
    size = f"{metrics['features/dim']:.0f} columns, orbit of {metrics['orbit/size']:.0f}"
    job.row("features", size + (f", {route}" if route else ""))
    job.row("peak memory", f"{metrics['memory/peak_mb']:.0f} MB")
