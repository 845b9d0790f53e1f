"""Figures of merit, by the names that every run logs them under."""

from __future__ import annotations

import numpy as np
from sklearn import metrics


def evaluate(task: str, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Metrics of a prediction.

    Parameters
    ----------
    task : {"classification", "regression"}
    y, predicted : arrays, shape (n,) or (n, k)

    Returns
    -------
    dict
        ``accuracy`` (a share, 0 to 1) for classes; ``rmse``, ``mae`` (units of y)
        and ``r2`` for numbers.

    >>> evaluate("classification", np.array([0, 1]), np.array([0, 0]))
    {'accuracy': 0.5}
    """
    if task == "classification":
        return {"accuracy": float(metrics.accuracy_score(y, predicted))}
    return {
        "rmse": float(metrics.root_mean_squared_error(y, predicted)),
        "mae": float(metrics.mean_absolute_error(y, predicted)),
        "r2": float(metrics.r2_score(y, predicted)),
    }
