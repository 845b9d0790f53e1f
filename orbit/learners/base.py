"""Choosing a regularisation strength: shared by every linear learner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import label_binarize

from orbit.errors import InputError, ParameterError
from orbit.random import RandomState, spawn

# Features of a bounded kernel have norm at most one, so these span from no
# regularisation worth the name to predicting the mean.
DEFAULT_PATH = tuple(10.0 ** np.arange(-10, 1.1, 0.5))


def regularization_path(regularization: float | list[float] | None) -> np.ndarray:
    """The values to choose among, rising, float64. None is the default path."""
    values = DEFAULT_PATH if regularization is None else np.atleast_1d(np.asarray(regularization, dtype=np.float64))
    if len(values) == 0:
        raise ParameterError("regularization", "at least one value", regularization)
    return np.sort(np.asarray(values))


def one_against_all(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Targets of -1 and 1, float64, shape (n, k); one column for two classes.

    Raises
    ------
    ValueError
        For a label that is not among ``classes``.
    """
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"label {unknown.tolist()[0]!r} is not one of the classes {classes.tolist()}")
    return np.asarray(label_binarize(y, classes=classes, neg_label=-1), dtype=np.float64)


def hold_out(
    n: int, fraction: float, labels: np.ndarray | None, random_state: RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Indices for fitting and for validation; stratified by ``labels`` where every class has two members."""
    if n < 2:
        raise InputError("selection by hold-out needs at least 2 points, found n_samples=1")
    n_validation = min(max(1, round(n * fraction)), n - 1)
    stratify = None
    if labels is not None:
        counts = np.unique(labels, return_counts=True)[1]
        if counts.min() >= 2 and len(counts) <= min(n_validation, n - n_validation):
            stratify = labels
    seed = spawn(random_state, 1)[0]
    fit, validation = train_test_split(np.arange(n), test_size=n_validation, stratify=stratify, random_state=seed)
    return fit, validation


def best_of_path(path: np.ndarray, score: Callable[[float], float]) -> tuple[float, np.ndarray]:
    """The value with the highest score, the larger one of equals, and all scores."""
    scores = np.array([score(float(value)) for value in path])
    return float(path[len(path) - 1 - np.argmax(scores[::-1])]), scores
