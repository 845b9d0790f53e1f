"""Metrics of predictions and of kernel matrices, under the names that runs log."""

from __future__ import annotations

import numpy as np
from scipy import stats
from sklearn import metrics

#: Task -> its metrics, the main one first.
METRICS = {"classification": ("accuracy",), "regression": ("rmse", "mae", "r2")}
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
        ``accuracy`` (0 to 1) for classification; ``rmse``, ``mae`` (units of y) and
        ``r2`` for regression.

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


def paired_test(task: str, y: np.ndarray, one: np.ndarray, two: np.ndarray) -> dict[str, float]:
    """Whether two models differ, by their predictions for the same points.

    Parameters
    ----------
    task : {"classification", "regression"}
    y, one, two : arrays, shape (n,) or (n, k)
        Targets, and the predictions of both models.

    Returns
    -------
    dict
        For classification ``only_first_right`` and ``only_second_right``, numbers of points, and ``p_mcnemar``, the
        exact McNemar test: a binomial test of these two numbers (McNemar 1947). For regression ``p_t`` and
        ``p_wilcoxon``, the paired t test and Wilcoxon's signed rank test of the squared errors of each point. All are
        two-sided, and 1 for equal predictions.

    >>> y = np.zeros(6)
    >>> paired_test("classification", y, y, np.array([1, 1, 1, 1, 1, 0]))
    {'only_first_right': 5.0, 'only_second_right': 0.0, 'p_mcnemar': 0.0625}
    """
    if task == "classification":
        first, second = one == y, two == y
        only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
        discordant = only_first + only_second
        p = stats.binomtest(only_first, discordant).pvalue if discordant else 1.0
        return {"only_first_right": float(only_first), "only_second_right": float(only_second), "p_mcnemar": float(p)}
    errors = [np.square(found - y).reshape(len(y), -1).sum(1) for found in (one, two)]
    if np.array_equal(*errors):
        return {"p_t": 1.0, "p_wilcoxon": 1.0}
    return {"p_t": float(stats.ttest_rel(*errors).pvalue), "p_wilcoxon": float(stats.wilcoxon(*errors).pvalue)}


def kernel_errors(truth: np.ndarray, estimate: np.ndarray) -> dict[str, float]:
    """Errors of an estimated kernel matrix.

    Parameters
    ----------
    truth, estimate : arrays, shape (n, n)

    Returns
    -------
    dict
        ``rel_fro_error`` and ``rel_spectral_error`` (relative errors in the Frobenius
        and the spectral norm), ``max_error``, ``mean_error`` and ``rms_error``
        (absolute, over entries), and ``correlation`` of the off-diagonal entries.

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
