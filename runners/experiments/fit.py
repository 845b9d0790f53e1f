"""runner=fit: select settings, fit, evaluate and log."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import Pipeline

from orbit import plots
from orbit.data import Dataset
from orbit.learners.base import Learner
from orbit.registry import register
from runners.base import EXAMPLES, Job, Runner, suffix
from runners.experiments.fitting import Fitted, fit_and_score
from runners.experiments.selection import Selected
from runners.experiments.training import Training
from runners.experiments.without_group import warning_about_group


@register("runner", "fit")
class Fit(Runner):
    """dataset -> representation -> features -> hyper -> learner, then metrics, figures and the model.

    Parameters
    ----------
    save_model : bool
        Keep the fitted pipeline in the run folder and in MLflow.
    check_group : bool
        Warn if the group lowers the accuracy on validation points: a small model is
        fitted with and without it to some hundred training points.
    """

    def __init__(self, save_model: bool = True, check_group: bool = True) -> None:
        self.save_model = save_model
        self.check_group = check_group

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
        if self.check_group:
            with job.stage("check_group"):
                warning = warning_about_group(job.plan, data)
            if warning:
                job.row("warning", warning)
        _tabulate(job, data, fitted)
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
    """Record all settings tried, as a figure, JSON and CSV; ``name`` distinguishes several selections of a run."""
    end = suffix(name)
    job.log_figure(f"grid{end}", selected.figure())
    job.log_text(f"selection{end}.json", selected.json())
    job.log_text(f"selection{end}.csv", selected.csv())
    job.record.params |= {f"selected{end}.{key}": value for key, value in selected.chosen.items()}


def _tabulate(job: Job, data: Dataset, fitted: Fitted) -> None:
    if fitted.problem is not None:
        job.row("warning", fitted.problem)
    metrics, features, learner = job.metrics, fitted.model["features"], fitted.model["learner"]
    job.row("data", data.describe())
    for key, value in metrics.items():
        if key.startswith("test/"):
            job.row(key.replace("/", " "), f"{value:.2%}" if key == "test/accuracy" else f"{value:.4g}")
    if learner.path_parameter is not None:
        job.row(learner.path_parameter, _chosen(learner))
    stages = ("load", "selection", "representation", "fit_features", "features", "hyper", "learner", "predict")
    times = {name: metrics.get(f"time/{name}_s") for name in stages}
    job.row("time", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items() if seconds is not None))
    size, route = f"{metrics['features/dim']:.0f} columns, orbit of {metrics['orbit/size']:.0f}", features.route_
    job.row("features", size + (f", {route}" if route else ""))
    job.row("peak memory", f"{metrics['memory/peak_mb']:.0f} MB")


def _chosen(learner: Learner) -> str:
    """The value of the learner's path parameter, with a warning if it is at an end of the path."""
    parameter, curve = learner.path_parameter, learner.selection_curve()
    value = f"{learner.metrics()[f'learner/{parameter}']:.3g}"
    if curve is None or curve.path.min() < curve.chosen < curve.path.max():
        return value
    end = "smallest" if curve.chosen <= curve.path.min() else "largest"
    return f"{value} (the {end} of {len(curve.path)} values; extend the range with learner.{parameter})"
