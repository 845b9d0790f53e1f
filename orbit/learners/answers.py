"""All that a fitted learner says of points, under the names of results."""

from __future__ import annotations

from typing import Any

import numpy as np

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
