"""Figures of merit, by the names that every run logs them under."""

from __future__ import annotations

import numpy as np
from sklearn import metrics

#: The figures of merit of each task; the first is the main one.
FIGURES = {"classification": ("accuracy",), "regression": ("rmse", "mae", "r2")}
LOWER_IS_BETTER = ("rmse", "mae")


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


def kernel_errors(truth: np.ndarray, estimate: np.ndarray) -> dict[str, float]:
    """How far an estimated kernel matrix is from the exact one.

    Parameters
    ----------
    truth, estimate : arrays, shape (n, n)

    Returns
    -------
    dict
        ``rel_fro_error`` and ``rel_spectral_error`` (norms of the difference over
        norms of the truth), ``max_error`` and ``mean_error`` (absolute, by entry),
        ``rms_error``, and ``correlation`` of the entries off the diagonal.

    >>> errors = kernel_errors(np.eye(3), np.eye(3) * 1.1)
    >>> round(errors["rel_fro_error"], 6), round(errors["max_error"], 6)
    (0.1, 0.1)
    """
    truth, estimate = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    difference = estimate - truth
    off_diagonal = ~np.eye(len(truth), dtype=bool)
    spread = truth[off_diagonal].std() * estimate[off_diagonal].std()
    covariance = np.cov(truth[off_diagonal], estimate[off_diagonal], ddof=0)[0, 1]
    return {
        "rel_fro_error": float(np.linalg.norm(difference) / np.linalg.norm(truth)),
        "rel_spectral_error": float(np.linalg.norm(difference, 2) / np.linalg.norm(truth, 2)),
        "max_error": float(np.abs(difference).max()),
        "mean_error": float(np.abs(difference).mean()),
        "rms_error": float(np.sqrt(np.square(difference).mean())),
        "correlation": float(covariance / spread) if spread > 0 else 0.0,
    }
