"""runner=fit: train, select, evaluate, log."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from orbit import plots
from orbit.data import Dataset
from orbit.engine import Engine
from orbit.metrics import evaluate
from orbit.registry import register
from runners.base import Job, Runner, peak_memory_mb

log = logging.getLogger(__name__)

_EXAMPLES = 3


@register("runner", "fit")
class Fit(Runner):
    """dataset -> representation -> features -> learner, then metrics, figures and the model.

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
        representation, features = job.plan.component("representation"), job.plan.approx()
        learner, engine = job.plan.learner(data.task), job.plan.engine()

        with job.stage("representation"):
            X = _in_precision(representation.fit_transform(data.X_train), engine)
        with job.stage("fit_features"):
            features.fit(X)
        with job.stage("features"):
            psi = features.transform(X)
        with job.stage("learner"):
            learner.fit(psi, data.y_train)

        model = Pipeline([("representation", representation), ("features", features), ("learner", learner)])
        with job.stage("predict"):
            predicted = _predict(model, data.X_test, psi.shape[1], engine)
        self._record(job, data, model, evaluate(data.task, data.y_train, learner.predict(psi)), predicted)
        if self.save_model:
            job.log_model(model, data.X_test[:2])

    def _record(
        self, job: Job, data: Dataset, model: Pipeline, train_metrics: dict[str, float], predicted: np.ndarray
    ) -> None:
        features, learner = model["features"], model["learner"]
        test_metrics = evaluate(data.task, data.y_test, predicted)
        job.log_metrics({f"train/{key}": value for key, value in train_metrics.items()})
        job.log_metrics({f"test/{key}": value for key, value in test_metrics.items()})
        job.log_metrics(
            {
                "features/dim": len(features.get_feature_names_out()),
                "orbit/size": len(features.orbit_.weights_),
                "memory/peak_mb": peak_memory_mb(),
                "learner/regularization": learner.regularization_,
            }
        )
        if hasattr(features.kernel_, "lengthscale_"):
            job.log_metrics({"kernel/lengthscale": features.kernel_.lengthscale_})
        self._draw(job, data, model, predicted)
        _tabulate(job, data, test_metrics)

    def _draw(self, job: Job, data: Dataset, model: Pipeline, predicted: np.ndarray) -> None:
        features, learner = model["features"], model["learner"]
        examples = model["representation"].transform(data.X_test[:_EXAMPLES])
        if examples.ndim == 3:
            job.log_figure("orbit", plots.orbit_examples(features.orbit_, examples))
        if data.task == "classification":
            job.log_figure("confusion", plots.confusion(data.y_test, predicted))
        else:
            job.log_figure("predictions", plots.predicted_against_true(data.y_test, predicted))
        if len(learner.path_) > 1 and np.isfinite(learner.path_scores_).any():
            criterion = getattr(learner, "selection", "hold_out").replace("_", "-")
            figure = plots.selection_curve(learner.path_, learner.path_scores_, learner.regularization_, criterion)
            job.log_figure("selection", figure)


def _in_precision(X: np.ndarray, engine: Engine) -> np.ndarray:
    return X.astype(engine.result_dtype(X), copy=False)


def _predict(model: Any, X: np.ndarray, n_features: int, engine: Engine) -> np.ndarray:
    """Predictions a batch of rows at a time: the features of a large test set are never held together."""
    batches = engine.row_batches(len(X), 2 * n_features * X.itemsize)
    return np.concatenate([model.predict(X[rows]) for rows in batches])


def _tabulate(job: Job, data: Dataset, test_metrics: dict[str, float]) -> None:
    metrics = job.metrics
    job.row("data", data.describe())
    for key, value in test_metrics.items():
        job.row(f"test {key}", f"{value:.2%}" if key == "accuracy" else f"{value:.4g}")
    stages = ("load", "representation", "fit_features", "features", "learner", "predict")
    job.row("time", ", ".join(f"{name} {metrics[f'time/{name}_s']:.2f} s" for name in stages))
    job.row("features", f"{metrics['features/dim']:.0f} columns, orbit of {metrics['orbit/size']:.0f}")
    job.row("peak memory", f"{metrics['memory/peak_mb']:.0f} MB")
