"""runner=fit: select settings, fit, evaluate and log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from orbit.data import Dataset
from orbit.learners import RidgeClassifier
from orbit.learners.base import Learner
from orbit.learners.protocols import GivesStd
from orbit.registry import register
from orbit.solvers.selection import end_of_path
from runners.config.plan import Plan
from runners.experiments import advice
from runners.experiments.drawing import draw_fit
from runners.experiments.estimate import estimated
from runners.experiments.fitting import Fitted, fit_and_score
from runners.experiments.importance import importance, is_cheap
from runners.experiments.references import described, log_references, references, warning_about_learning
from runners.experiments.selection import Selected
from runners.experiments.training import Training
from runners.experiments.without_group import warning_about_group
from runners.job.estimate import Estimate
from runners.job.job import Job, suffix
from runners.job.runner import Runner
from runners.measure import figures
from runners.measure.metrics import METRICS, target_labels


@register("runner", "fit")
@dataclass(eq=False, repr=False)
class Fit(Runner):
    """dataset -> representation -> features -> hyper -> learner, then metrics, figures and the model.

    The summary has the metric of three references, on the same test points: the majority class or the mean, a linear
    model and the nearest neighbour; a fit that is not better than the first is warned of (exact McNemar test, or paired
    t test of squared errors, at 5 %).

    Parameters
    ----------
    save_model : bool
        Keep the fitted pipeline in the run folder and in MLflow.
    check_group : bool
        Warn if the group lowers the accuracy on validation points: a small model is
        fitted with and without it to some hundred training points.
    importance : bool or "auto"
        Permute each column of the points in a part of the test rows, and record how much worse the predictions are
        (``importance.csv`` and a figure). ``auto``: for tables of at most 40 columns without a group, of fewer with
        one; their number times the number of orbit elements is what it costs.
    """

    reuses_features: ClassVar[bool] = True

    save_model: bool = True
    check_group: bool = True
    importance: bool | Literal["auto"] = "auto"

    def estimates(self, plan: Plan) -> list[Estimate]:
        return estimated({"fit": [(plan, 1)]})

    def run(self, job: Job) -> None:
        data = job.load()
        training = Training(job, job.plan)
        fitted = fit_and_score(job.plan, data, job, training)
        job.log_metrics(fitted.metrics)
        if self.save_model:
            job.log_model(fitted.model, data)
        draw_fit(job, data, fitted)
        self._rank_columns(job, data, fitted)
        if fitted.selected:
            record_selection(job, fitted.selected)
            job.row("selected", fitted.selected.describe())
        with job.stage("references"):
            beside = references(job.plan, data, fitted)
        log_references(job, beside, data)
        found = [warning_about_learning(job, data, fitted, beside)]
        found.append(advice.warning_about_intervals(job.plan, fitted.metrics, len(data.X_test)))
        if self.check_group:
            with job.stage("check_group"):
                found.append(warning_about_group(job.plan, data, fitted.model["features"].encoder_))
        for warning in filter(None, found):
            job.row("warning", warning)
        _tabulate(job, data, fitted, described(beside, data))
        training.draw()
        training.end()

    def _rank_columns(self, job: Job, data: Dataset, fitted: Fitted) -> None:
        """Draw and record the importance of columns, where it is asked for, or a table is small enough."""
        if self.importance is False or (self.importance == "auto" and not is_cheap(fitted.model, data)):
            return
        with job.stage("importance"):
            found = importance(fitted.model, data, job.plan.engine(), job.plan.seed("runner"))
        job.log_text("importance.csv", found.csv())
        job.log_figure("importance", figures.importance, found.names, found.values, found.change)


def record_selection(job: Job, selected: Selected, name: str = "") -> None:
    """Record all settings tried, as a figure, JSON and CSV; ``name`` distinguishes several selections of a run."""
    end = suffix(name)
    job.log_text(f"selection{end}.json", selected.json())
    job.log_text(f"selection{end}.csv", selected.csv())
    job.log_figure(f"grid{end}", selected.figure)
    job.record.params |= {f"selected{end}.{key}": value for key, value in selected.chosen.items()}


def _tabulate(job: Job, data: Dataset, fitted: Fitted, references: str) -> None:
    if fitted.problem is not None:
        job.row("warning", fitted.problem)
    metrics, features, learner = job.metrics, fitted.model["features"], fitted.model["learner"]
    job.row("data", data.describe())
    kinds = [] if data.test_kinds is None else np.unique(data.test_kinds).tolist()
    for label, value in score_rows(metrics, data.task, data.targets, kinds):
        job.row(label, value)
    if job.plan.config["kernel"]["name"] in advice.FIELDS and "features" in data.reading:
        pairs = zip(data.targets, data.reading["features"], strict=False)
        found = ", ".join(f"{target} along {feature}" for target, feature in pairs)
        job.row("components", f"{found}, by the order of dataset.target and dataset.features")
    job.row("references", references)
    if learner.path_parameter is not None:
        job.row(learner.path_parameter, _chosen(learner))
    if isinstance(learner, GivesStd) and (std := learner.noise_std()) is not None:
        job.row("noise std", f"{', '.join(f'{value:.3g}' for value in np.ravel(std)[:6])}, in units of the target")
    if isinstance(learner, RidgeClassifier) and learner.decision_ == "discriminant":
        job.row("decision", "by discriminant analysis of leave-one-out predictions, for classes on a line")
    for label, part in (("lengthscale", features), ("hyper.lengthscale", fitted.model["hyper"])):
        if part.chosen_scale_ is not None:
            job.row(label, str(part.chosen_scale_))
    if features.uses_targets and features.chosen_scale_ is None:
        of_encoder = data.task == "classification" and not features.encoder_.is_linear
        why = "as for all classes with this encoder" if of_encoder else "because all targets are equal"
        job.row("lengthscale", f"the median, {why}")
    stages = ("load", "selection", "representation", "fit_features", "features", "hyper", "learner", "predict")
    times = {name: metrics.get(f"time/{name}_s") for name in stages}
    job.row("time", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items() if seconds is not None))
    size, route = f"{metrics['features/dim']:.0f} columns, orbit of {metrics['orbit/size']:.0f}", features.route_
    job.row("features", size + (f", {route}" if route else ""))
    if (error := metrics.get("learner/solution_error")) is not None:
        job.row(
            "solver", f"Cholesky factor of the kernel matrix in float32, refined to a relative error of {error:.1e}"
        )
    if (residual := metrics.get("learner/solution_residual")) is not None:
        job.row("solver", f"conjugate gradients on tiles of the kernel matrix, to a residual of {residual:.1e}")
    job.row("peak memory", f"{metrics['memory/peak_mb']:.0f} MB")


def score_rows(
    metrics: dict[str, float], task: str, targets: list[str], kinds: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Rows of the summary: the main metrics of the test part, then those of classes, or of each target, or each kind.

    >>> score_rows({"test/accuracy": 0.9, "test/macro_f1": 0.75}, "classification", [])
    [('test accuracy', '90.00%'), ('test', 'macro_f1 0.75')]
    """

    def of(label: str) -> list[tuple[str, str]]:
        return _row(f"test {label}", {key: metrics[key] for key in metrics if key.startswith(f"test/{label}/")})

    of_kinds = [row for kind in kinds for row in of(kind)]
    if task == "classification":
        others = {key: value for key, value in metrics.items() if re.fullmatch("test/(?!accuracy)[^/]*", key)}
        return [("test accuracy", f"{metrics['test/accuracy']:.2%}"), *_row("test", others), *of_kinds]
    names = (*METRICS[task], "nlpd", "coverage")
    found = {name: metrics[f"test/{name}"] for name in names if f"test/{name}" in metrics}
    rows = [(f"test {name}", f"{value:.4g}") for name, value in found.items()]
    for label in target_labels(targets):
        rows += of(label)
    return [*rows, *of_kinds]


def _row(label: str, metrics: dict[str, float]) -> list[tuple[str, str]]:
    text = ", ".join(f"{key.rpartition('/')[2]} {value:.4g}" for key, value in metrics.items())
    return [(label, text)] if text else []


def _chosen(learner: Learner) -> str:
    """The value of the learner's path parameter, with a warning if it is at an end of the path."""
    parameter, curve = learner.path_parameter, learner.selection_curve()
    value = f"{learner.metrics()[f'learner/{parameter}']:.3g}"
    if curve is None:
        return value
    end = end_of_path(curve.path, curve.scores, curve.chosen)
    if end is None:
        return value
    return f"{value} (the {end} of {len(curve.path)} values; extend the range with learner.{parameter})"
