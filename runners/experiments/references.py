"""What a model is compared with: the majority class or the mean, a linear model, and the nearest neighbour."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from orbit.data import Dataset
from orbit.encoders import BySize
from orbit.learners import RidgeClassifier, RidgeRegressor
from runners.config.plan import Plan
from runners.experiments.advice import setting_for_rare_classes
from runners.experiments.fitting import Fitted
from runners.job.job import Job
from runners.measure.metrics import LOWER_IS_BETTER, METRICS, evaluate, paired_test, ranks_classes

# Multiplications of the linear model's Gram matrix and of the neighbours' distances: 0.1 to 0.3 s of a processor each.
_MOST_WORK = 2e9

_SIGNIFICANT = 0.05

# Points of two axes are pictures; one that is so many times as long as the other is often time beside channels.
_ELONGATED = 8

# In standard deviations: points are cut there, because a column may be nearly constant in the training part alone.
_FARTHEST = 10.0


@dataclass(frozen=True)
class Reference:
    """Predictions of a simple model for some test points.

    Attributes
    ----------
    name : str
    predicted : array, shape (m,) or (m, k)
    test : int array, shape (m,)
        The test points.
    n_train : int
        Number of training points that it is fitted to.
    """

    name: str
    predicted: np.ndarray
    test: np.ndarray
    n_train: int

    def metrics(self, data: Dataset) -> dict[str, float]:
        """Metrics on its test points."""
        return evaluate(data.task, data.y_test[self.test], self.predicted)

    def p_value(self, data: Dataset, predicted: np.ndarray) -> float:
        """Of the exact McNemar test, or of the paired t test of squared errors, against predictions of a model."""
        if len(self.test) < 2:
            return 1.0
        tested = paired_test(data.task, data.y_test[self.test], predicted[self.test], self.predicted)
        return tested["p_mcnemar" if data.task == "classification" else "p_t"]

    def is_beaten(self, data: Dataset, predicted: np.ndarray) -> bool:
        """Whether predictions of a model are better, with p below 5 %."""
        metric = METRICS[data.task][0]
        ours = evaluate(data.task, data.y_test[self.test], predicted[self.test])[metric]
        gain = (ours - self.metrics(data)[metric]) * (-1 if metric in LOWER_IS_BETTER else 1)
        return gain > 0 and self.p_value(data, predicted) < _SIGNIFICANT


def references(plan: Plan, data: Dataset, fitted: Fitted) -> list[Reference]:
    """The majority class (or the mean), then a linear model (ridge) and the nearest neighbour.

    The last two take points in the representation of a fit, flattened and standardised. They are fitted to and tested
    on at most sqrt(2e9 / d) points of d numbers, 1600 of 28 x 28 pixels, so that they cost a small part of a fit. Of a
    stream, all three take the rows that the features were fitted to.
    """
    y, test = data.y_train[fitted.sample], np.arange(len(data.y_test))
    constant = DummyClassifier() if data.task == "classification" else DummyRegressor()
    predicted = constant.fit(np.zeros((len(y), 1)), y).predict(np.zeros((len(test), 1)))
    name = "majority class" if data.task == "classification" else "mean"
    return [Reference(name, predicted, test, len(y)), *_of_points(plan, data, fitted)]


def _models(task: str) -> dict[str, BaseEstimator]:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    if task == "classification":
        return {"linear": RidgeClassifier(), "nearest neighbour": KNeighborsClassifier(1)}
    return {"linear": RidgeRegressor(), "nearest neighbour": KNeighborsRegressor(1)}


def _of_points(plan: Plan, data: Dataset, fitted: Fitted) -> Iterator[Reference]:
    def flat(X: Any) -> np.ndarray:
        points = fitted.model["representation"].transform(X).reshape(len(X), -1)
        return points.astype(np.float64)  # the smallest float32 numbers have a standard deviation of 0

    rng = np.random.default_rng(plan.seed("runner"))
    most = max(2, int((_MOST_WORK / flat(data.X_test[:1]).size) ** 0.5))
    rows = np.arange(len(data.X_train))[fitted.sample]
    train, test = (np.sort(rng.permutation(some)[:most]) for some in (rows, np.arange(len(data.X_test))))
    y = data.y_train[train]
    if data.task == "classification" and len(np.unique(y)) < 2:  # of few points
        return
    X, X_test = flat(data.X_train[train]), flat(data.X_test[test])
    cut = FunctionTransformer(np.clip, kw_args={"a_min": -_FARTHEST, "a_max": _FARTHEST})
    for name, model in _models(data.task).items():
        with warnings.catch_warnings(action="ignore"):  # they would be about the reference, not the user's model
            predicted = make_pipeline(StandardScaler(), cut, model).fit(X, y).predict(X_test)
        yield Reference(name, predicted, test, len(train))


def log_references(job: Job, found: list[Reference], data: Dataset, at: str = "") -> None:
    """Record the metrics of references, ``reference/linear/accuracy`` and so on; ``at`` names a repeat."""
    for reference in found:
        name = reference.name.replace(" ", "_")
        job.log_metrics(
            {f"{at}/reference/{name}/{key}".lstrip("/"): value for key, value in reference.metrics(data).items()}
        )


def described(found: list[Reference], data: Dataset) -> str:
    """References in one line, with the main metric of each.

    The number of points follows where there are fewer than those of the fit.
    """
    metric, form = METRICS[data.task][0], ".2%" if data.task == "classification" else ".4g"
    texts = [f"{reference.name} {format(reference.metrics(data)[metric], form)}" for reference in found]
    last = found[-1]
    if last.n_train < len(data.X_train) or len(last.test) < len(data.X_test):
        texts[-1] += f" ({last.n_train} training and {len(last.test)} test points)"
    return ", ".join(texts)


def warning_about_learning(job: Job, data: Dataset, fitted: Fitted, found: list[Reference]) -> str | None:
    """A line if a fit is not clearly better than the majority class or the mean; None if classes are balanced."""
    least = found[0]
    if least.is_beaten(data, fitted.predicted) or fitted.model["learner"].class_weight is not None:
        return None
    if data.task == "classification" and least.p_value(data, data.y_test) >= _SIGNIFICANT:
        others = int((least.predicted != data.y_test).sum())
        return (
            f"{len(least.test)} test points, {others} of them not of the {least.name}, are too few to tell whether "
            "anything was learned; runner=validate selection=k_fold scores all training points"
        )
    area = fitted.metrics.get("test/roc_auc")
    if data.task == "classification" and ranks_classes(data.y_test, area):
        return (
            f"not more often right than the {least.name}, but scores rank the classes (roc_auc {area:.3g}): of a rare "
            "class look at roc_auc and average_precision, and choose a threshold for the probabilities of "
            "learner=logistic, or set learner.class_weight=balanced"
        )
    return (
        f"not clearly better than the {least.name} (p = {least.p_value(data, fitted.predicted):.2g}, "
        f"{len(least.test)} test points); try {what_next(job, data, fitted)}"
    )


def what_next(job: Job, data: Dataset, fitted: Fitted) -> str:
    """What may learn more than the fit of a job from the same points; other groups unless they were compared.

    The columns of a table mostly have no symmetry.
    """
    config, keys = job.plan.config, []
    if data.task == "classification":
        setting = setting_for_rare_classes(job.plan.learner(data.task), data.y_train[:])
        keys += [] if setting is None else [setting]
    shape = fitted.model["representation"].transform(data.X_test[:1]).shape[1:]
    if config["encoder"]["name"] == "none" and len(shape) > 1:
        keys.append("encoder=patches" if BySize().for_shape(shape).is_identity else "encoder=by_size")
        if config["dataset"]["name"] == "arrays" and len(shape) == 2 and max(shape) >= _ELONGATED * min(shape):
            keys.append(f"dataset=series if points are series of {min(shape)} channels")
    if job.group_is_given and not data.columns:
        return ", or ".join([*([", ".join(keys)] if keys else []), "another group by runner=discover"])
    return ", ".join([*keys, "another learner or more points"])
