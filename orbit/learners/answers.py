"""All that a fitted learner says of points, under the names of results."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from orbit.learners.protocols import GivesProbabilities, GivesScores, GivesStd

#: The standard normal quantile of a two-sided interval of 95 %.
QUANTILE = 1.959964


def answers(learner: Any, X: Any) -> dict[str, np.ndarray]:
    """Predictions for features, shape (n, d), and what is known of their uncertainty.

    Returns
    -------
    dict
        ``prediction``; of a learner with standard deviations ``std``, that of the function, and, where the noise is
        known, ``std_observed``, that of an observation, and ``lower`` and ``upper``, between which 95 % of observations
        are; of a classifier ``probability``, shape (n, k), or else ``score``, if it has one of them.
    """
    if isinstance(learner, GivesStd):
        predicted, std = learner.predict(X, return_std=True)
        found = {"prediction": predicted, "std": std}
        if (noise := learner.noise_std()) is not None:
            observed = np.hypot(std, noise)
            half = QUANTILE * observed
            found |= {"std_observed": observed, "lower": predicted - half, "upper": predicted + half}
        return found
    if isinstance(learner, GivesProbabilities):
        predicted, shares = learner.predict_with_probabilities(X)
        return {"prediction": predicted, "probability": shares}
    scores = {"score": learner.decision_function(X)} if isinstance(learner, GivesScores) else {}
    return {"prediction": learner.predict(X)} | scores


def answer_table(model: Pipeline, X: Any, targets: list[str] | None = None) -> pd.DataFrame:
    """The :func:`answers` of a model for points, but scores: columns ``prediction``, ``probability_CLASS`` and so on.

    Parameters
    ----------
    model : fitted pipeline that ends in a learner
    X : points, as the model takes them
    targets : names of several outputs, ``prediction_NAME``; None numbers them
    """
    found = answers(model[-1], model[:-1].transform(X))
    found.pop("score", None)
    return pd.DataFrame(columns_of(found, model[-1], targets))


def columns_of(found: dict[str, np.ndarray], learner: Any, targets: list[str] | None = None) -> dict[str, np.ndarray]:
    """The :func:`answers` of a learner as columns of a table: ``probability_CLASS``, ``std_TARGET`` and so on."""
    columns: dict[str, np.ndarray] = {}
    for name, values in found.items():
        of_classes = name in ("probability", "score")
        names = [str(label) for label in learner.classes_] if of_classes else targets
        if name == "score" and values.ndim == 1:  # of the second of two classes
            values = np.column_stack([-values, values])
        columns |= {name: values} if values.ndim == 1 else _named(name, values, names)
    return columns


def _named(name: str, values: np.ndarray, names: list[str] | None) -> dict[str, np.ndarray]:
    """``{name_OUTPUT: values of that output}``."""
    n_outputs = values.shape[1]
    outputs = names if names is not None and len(names) == n_outputs else [str(k) for k in range(n_outputs)]
    return {f"{name}_{output}": column for output, column in zip(outputs, values.T, strict=True)}


class Answering(BaseEstimator):
    """A fitted model whose ``predict`` gives the :func:`answer_table`, for servers, which call nothing else.

    Parameters
    ----------
    model : fitted pipeline that ends in a learner
    targets : list of str or None
        Names of several outputs.
    """

    def __init__(self, model: Pipeline, targets: list[str] | None = None) -> None:
        self.model = model
        self.targets = targets

    def predict(self, X) -> pd.DataFrame:
        """The table of answers, with a row for each of the points ``X``."""
        check_is_fitted(self.model)
        return answer_table(self.model, X, self.targets)
