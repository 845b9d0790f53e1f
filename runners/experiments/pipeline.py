"""The components of a plan as a scikit-learn pipeline, and functions for fitting it that runners share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from orbit.approx import FeatureMap, LinearLayer
from orbit.core.errors import InputError
from orbit.data import Dataset
from orbit.data.rows import Rows
from orbit.engine import Engine
from orbit.learners.answers import answers
from orbit.learners.base import Learner
from orbit.learners.protocols import Streams
from orbit.learners.streaming import row_batches
from runners.config.checks import learner_classes
from runners.config.plan import Plan
from runners.job.features import transform
from runners.measure.metrics import (
    ahead,
    evaluate,
    evaluate_kinds,
    evaluate_probabilities,
    evaluate_ranking,
    evaluate_std,
    evaluate_targets,
)

# The room on a GPU that a fit needs, as a multiple of features and solver: what libraries take beside them.
_ROOM = 1.5


def pipeline(plan: Plan, task: str) -> Pipeline:
    """The unfitted pipeline of a plan."""
    steps = {"representation": plan.component("representation"), "features": plan.approx()}
    steps |= {"hyper": plan.hyper(), "learner": plan.learner(task)}
    return Pipeline(list(steps.items()))


def represented(model: Pipeline, X: np.ndarray, engine: Engine) -> np.ndarray:
    """Fit the representation to training points, and return them transformed, in the engine's precision.

    Sets the parameter ``shape`` of a learner that takes points.
    """
    X, learner = model["representation"].fit_transform(X), model["learner"]
    if learner.takes_points and learner.shape is None:
        learner.set_params(shape=list(X.shape[1:]))
    return engine.cast(X)


def transformed(model: Pipeline, X: Any, on_device: bool = False) -> Any:
    """What the learner of a fitted model takes; features are from the store in use, if it has them."""
    for _, step in model.steps[:-1]:
        X = transform(step, X, on_device) if isinstance(step, FeatureMap) else step.transform(X)
    return X


def stays_on_device(model: Pipeline, X: Any) -> bool:
    """Whether features of points stay on a GPU with room for them, where the learner computes, and nothing is between.

    The one place that says for which runs they do.
    """
    features, hyper, learner = model["features"], model["hyper"], model["learner"]
    if features.operator_valued or not learner.fits_tensors or not isinstance(hyper, LinearLayer):
        return False
    (n, columns), engine = (len(X), len(features.get_feature_names_out())), features.engine_
    dtype = features.features_dtype(n, engine.result_dtype(X))
    if features.gives_tiles(n, dtype):  # whose tiles are on the device
        return False
    in_place = features.gives_gram and dtype == np.float32
    solver = 0 if in_place else learner.fit_bytes(n, columns)
    return has_room(n * columns * dtype.itemsize + solver, engine)


def has_room(nbytes: float, engine: Engine) -> bool:
    """Whether a GPU has room for features and a solver of a size, beside what libraries take."""
    return _ROOM * nbytes <= engine.free_bytes()


def predict(model: Pipeline, X: Any, engine: Engine) -> np.ndarray:
    """Predict one batch of rows at a time, so that the features of all rows are never in memory together."""
    return all_answers(model, X, engine, lambda learner, psi: {"prediction": learner.predict(psi)})["prediction"]


def all_answers(
    model: Pipeline, X: Any, engine: Engine, ask: Callable[[Learner, Any], dict[str, np.ndarray]] = answers
) -> dict[str, np.ndarray]:
    """What ``ask`` returns for learner and features, by default all that it says, one batch of rows at a time."""
    if isinstance(X, Rows):
        batches = row_batches(X, len(X), width(model), engine)
    else:
        batches = engine.row_batches(len(X), 2 * width(model) * X.itemsize)
    found = []
    for rows in batches:
        points = X[rows]
        found.append(ask(model[-1], transformed(model, points, stays_on_device(model, points))))
    return {name: np.concatenate([batch[name] for batch in found]) for name in found[0]}


def evaluated(learner: Any, data: Dataset, answers: dict[str, np.ndarray]) -> dict[str, float]:
    """All metrics of the answers of a learner for the test points of a data set."""
    y, predicted = np.asarray(data.y_test[:]), answers["prediction"]
    found = evaluate(data.task, y, predicted)
    if data.task == "regression":
        found |= evaluate_targets(y, predicted, data.targets)
    if data.test_kinds is not None:
        found |= evaluate_kinds(data.task, y, predicted, data.test_kinds)
    if "std_observed" in answers:
        found |= evaluate_std(y, predicted, answers["std_observed"])
    if "probability" in answers:
        found |= evaluate_probabilities(y, answers["probability"], learner.classes_)
        found |= evaluate_ranking(y, answers["probability"], learner.classes_)
    elif "score" in answers:
        found |= evaluate_ranking(y, ahead(answers["score"]), learner.classes_)
    return found


def width(model: Pipeline) -> int:
    """Number of columns of the feature map or the second layer, whichever has more."""
    return max(len(model[step].get_feature_names_out()) for step in ("features", "hyper"))


def targets(data: Dataset, rows: Any = slice(None)) -> dict[str, np.ndarray]:
    """Targets of training points, and their clusters if there are any, as arguments of ``fit`` of features.

    Class labels are strings and numbers float64, which features take for what they are.
    """
    y = np.asarray(data.y_train[rows]).astype(str if data.task == "classification" else np.float64)
    return {"y": y} if data.clusters is None else {"y": y, "clusters": data.clusters[rows]}


def fit_options(learner: Learner, data: Dataset) -> dict[str, np.ndarray]:
    """Sample weights and clusters of the training points as keyword arguments of ``fit``, those that there are.

    A learner that does not take clusters is fitted without them.
    """
    found = weights(learner, data)
    if data.clusters is not None and has_fit_parameter(learner, "clusters"):
        found["clusters"] = data.clusters
    return found


def weights(learner: Learner, data: Dataset, streamed: bool = False) -> dict[str, np.ndarray]:
    """The sample weights of a data set as a keyword argument of ``fit``; empty if there are none.

    Raises
    ------
    InputError
        If there are weights and the learner takes none.
    """
    if data.sample_weight is None:
        return {}
    if not has_fit_parameter(learner, "sample_weight"):
        known = learner_classes(data.task)
        known = {name: cls for name, cls in known.items() if not streamed or issubclass(cls, Streams)}
        able = [name for name, cls in known.items() if has_fit_parameter(cls, "sample_weight")]
        raise InputError(
            f"learner={learner.name} takes no sample weights, which dataset={data.name} has: "
            f"choose from {', '.join(able)}, or leave the weights out"
        )
    return {"sample_weight": data.sample_weight}
