"""Selection of settings by inner validation: every point of a grid is scored on training points held out of its fit."""

from __future__ import annotations

import json
import logging
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from orbit import plots
from orbit.core.errors import InputError, choose_from
from orbit.core.params import allows_beyond
from orbit.data import Dataset
from orbit.learners.protocols import SharesPath
from orbit.solvers.products import sharing_products
from orbit.solvers.selection import warn_at_end
from runners.config.plan import Plan
from runners.config.schema import config_parameters
from runners.experiments.pipeline import (
    all_answers,
    evaluated,
    fit_options,
    pipeline,
    represented,
    targets,
    transformed,
    weights,
)
from runners.job.features import cached, fit, shared_in_memory, transform
from runners.job.keys import digest
from runners.measure import figures
from runners.measure.metrics import LOWER_IS_BETTER, METRICS, METRICS_OF_MORE, evaluate, score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Selected:
    """The result of a selection: the settings tried, their scores and the best.

    Attributes
    ----------
    points : list of dict
        Configuration key -> value, for every point of the grid.
    scores : array, shape (points, splits)
        The metric of each point on each validation part.
    metric : name of the metric
    best : index of the point with the best mean
    plan : the plan with the settings of the best point, without selection
    """

    points: list[dict[str, Any]]
    scores: np.ndarray
    metric: str
    best: int
    plan: Plan

    @property
    def chosen(self) -> dict[str, Any]:
        return self.points[self.best]

    def metrics(self) -> dict[str, float]:
        """The chosen values that are numbers, and the best mean score."""
        found = {key: value for key, value in self.chosen.items() if is_number(value)}
        return {
            f"selection/{key}": float(value) for key, value in (found | {self.metric: self._mean[self.best]}).items()
        }

    def describe(self) -> str:
        return ", ".join(f"{key}={plots.short(value)}" for key, value in self.chosen.items())

    def json(self) -> str:
        tried = [
            {"settings": point, "mean": mean, "std": std, "scores": list(scores)}
            for point, mean, std, scores in zip(self.points, self._mean, self._std, self.scores, strict=True)
        ]
        return json.dumps({"metric": self.metric, "chosen": self.chosen, "tried": tried}, indent=2, default=str)

    def csv(self) -> str:
        means = {f"{self.metric}_mean": self._mean, f"{self.metric}_std": self._std}
        splits = {f"{self.metric}_{i}": scores for i, scores in enumerate(self.scores.T)}
        return pd.DataFrame(self.points, dtype=object).assign(**means, **splits).to_csv(index=False)

    def figure(self) -> Figure:
        return figures.grid_scores(self.points, self.scores, self.metric, self.best)

    @property
    def _mean(self) -> np.ndarray:
        return self.scores.mean(1)

    @property
    def _std(self) -> np.ndarray:
        return self.scores.std(1)


def select(plan: Plan, data: Dataset) -> Selected | None:
    """Score every point of the plan's grid, on training points only. Returns None if the plan selects nothing.

    Points that differ only in the learner share their features, and so do splits in
    which the feature map is the same. Points that differ
    only in the learner's path parameter share one factorisation if the learner
    supports it (:class:`SharesPath`).

    Raises
    ------
    InputError
        For a metric that the task does not have, and for splits that the data do not allow.
    """
    selection = plan.component("selection")
    points = selection.points()
    if not points:
        return None
    metric = metric_of(selection.metric, data.task)
    splits = selection.splits(data, plan.seed("selection"))
    variants = [plan.without_selection(point) for point in points]
    scores = _scores(plan, data, variants, splits, metric)
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    means = np.nan_to_num(sign * scores.mean(1), nan=-np.inf)
    best = int(means.argmax())
    selected = Selected(points, scores, metric, best, variants[best])
    _warn_at_ends(variants[best], points, means, best)
    log.info("selected %s by %s %.4g", selected.describe(), metric, scores[best].mean())
    return selected


def _scores(
    plan: Plan, data: Dataset, variants: Sequence[Plan], splits: Sequence[tuple[np.ndarray, np.ndarray]], metric: str
) -> np.ndarray:
    """The metric of each variant of a plan on each validation part, shape (variants, splits)."""
    scores = np.empty((len(variants), len(splits)))
    groups = alike([variant.config | {"learner": None} for variant in variants])
    with plan.progress(len(groups) * len(splits), "selection") as progress:
        for members in groups:
            with shared_in_memory(plan), sharing_products(plan.engine().budget):
                for split, rows in enumerate(splits):
                    part = data.split(*rows)
                    scores[members, split] = _of_part([variants[i] for i in members], part, metric)
                    progress.step()
    return scores


def _of_part(plans: Sequence[Plan], part: Dataset, metric: str) -> list[float]:
    """The metric of plans that differ only in the learner, for a validation part."""
    if metric in METRICS[part.task]:
        return [score(evaluate(part.task, part.y_test, found), metric) for found in predictions(plans, part)]
    models = (fitted_to(plan, part) for plan in plans)
    return [score(evaluated(one[-1], part, all_answers(one, part.X_test, plans[0].engine())), metric) for one in models]


def _warn_at_ends(plan: Plan, points: Sequence[dict[str, Any]], scores: np.ndarray, best: int) -> None:
    """Issue a warning for each continuous setting whose best value is an end of its grid of three or more values.

    Parameters
    ----------
    plan : that of the best point
    scores : mean scores of the points, higher is better
    """
    chosen = points[best]
    for key, value in chosen.items():
        kind, _, name = key.partition(".")
        others = [i for i, point in enumerate(points) if point | {key: value} == chosen and is_number(point[key])]
        line = {points[i][key]: scores[i] for i in others}
        known = config_parameters(kind, plan.config[kind]["name"]) if "name" in plan.config.get(kind, {}) else {}
        if not is_number(value) or name not in known:
            continue
        path = sorted(line)
        if allows_beyond(value, -1 if value == path[0] else 1, known[name].annotation):
            of_path = np.array(path, dtype=float), np.array([line[each] for each in path])
            warn_at_end(*of_path, float(value), key, "selection.grid")


def fitted_to(plan: Plan, part: Dataset) -> Pipeline:
    """The pipeline of a plan, fitted to the training points of a part."""
    model = pipeline(plan, part.task)
    X, psi = _features_of(model, plan, part)
    _fit_learner(model, X, psi, part)
    return model


def _features_of(model: Pipeline, plan: Plan, part: Dataset) -> tuple[np.ndarray, Any]:
    """Points in their representation, and their features by a map that is fitted to them."""
    X = represented(model, part.X_train, plan.engine())
    fit(model["features"], X, **targets(part))
    return X, transform(model["features"], X)


def predictions(plans: Sequence[Plan], part: Dataset, model: Pipeline | None = None) -> list[np.ndarray]:
    """Predictions for the validation part of plans that differ only in the learner.

    ``model`` is the unfitted pipeline of the first, if another than ``pipeline`` makes.
    """
    model = model or pipeline(plans[0], part.task)
    X, psi = _features_of(model, plans[0], part)
    if len(plans) == 1:
        _fit_learner(model, X, psi, part)
        return [model[-1].predict(transformed(model, part.X_test))]
    psi = model["hyper"].fit_transform(psi, **targets(part))
    psi_new = transformed(model, part.X_test)
    found: dict[int, np.ndarray] = {}
    for members in alike([without_path_parameter(plan, part.task, i) for i, plan in enumerate(plans)]):
        learner = plans[members[0]].learner(part.task)
        if len(members) == 1:
            found[members[0]] = learner.fit(psi, part.y_train, **fit_options(learner, part)).predict(psi_new)
            continue
        path = np.array([plans[i].config["learner"][learner.path_parameter] for i in members], dtype=np.float64)
        predicted: Iterator[np.ndarray] = learner.path_predictions(
            psi, part.y_train, path, psi_new, **weights(learner, part)
        )
        found |= dict(zip(members, predicted, strict=True))
    return [found[i] for i in range(len(plans))]


def _fit_learner(model: Pipeline, X: np.ndarray, psi: Any, part: Dataset) -> None:
    """Fit the second layer and the learner; a store in memory may have them from another fit to the same points.

    In nested cross-validation with given folds each training set of inner folds occurs twice: without the folds i and j
    it is that of the inner fold j for the outer fold i, and that of the inner fold i for the outer fold j.
    """
    features, hyper, learner = model["features"], model["hyper"], model["learner"]
    options = fit_options(learner, part)

    def fitted() -> tuple[Any, Any]:
        learner.fit(hyper.fit_transform(psi, **targets(part)), part.y_train, **options)
        return hyper, learner

    purpose = digest(["learner", hyper, learner, part.y_train, part.clusters, options])
    found = cached(purpose, features, X, fitted, small=True)
    model.steps[-2:] = [("hyper", found[0]), ("learner", found[1])]


def without_path_parameter(plan: Plan, task: str, i: int) -> Any:
    """A key equal for plans that one path can predict: the learner's section; ``i`` if the learner shares no path."""
    learner, section = plan.learner(task), plan.config["learner"]
    parameter = learner.path_parameter
    if not isinstance(learner, SharesPath) or not is_number(section.get(parameter)):
        return i
    return section | {parameter: None}


def alike(values: Sequence[Any]) -> list[list[int]]:
    """Group the indices of equal values, in order of first appearance."""
    groups: dict[str, list[int]] = {}
    for i, value in enumerate(values):
        groups.setdefault(json.dumps(value, sort_keys=True, default=str), []).append(i)
    return list(groups.values())


def metric_of(name: str | None, task: str) -> str:
    """The metric of a selection: ``name`` or, if it is None, the main one of the task."""
    known = (*METRICS[task], *METRICS_OF_MORE[task])
    if name is None:
        return known[0]
    if name not in known:
        raise InputError(f"selection.metric={name}: no such metric for {task}{choose_from(name, known)}")
    return name


def is_number(value: Any) -> bool:
    """Whether a setting is a number; true and false are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
