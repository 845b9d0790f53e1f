"""Parts of the points that are held out of a fit, to score it."""

import math
import warnings

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from orbit.core.errors import InputError
from orbit.core.random import RandomState, hold_out, spawn

Split = tuple[np.ndarray, np.ndarray]  # indices of the points to fit to, and of those to validate on

# Of more points, one part is held out: at a share of a fifth it has 200. Folds of fewer points are drawn anew until
# about this many predictions are scored, or _MOST_REPEATS times.
_FEW_POINTS, _PREDICTIONS, _MOST_REPEATS = 1000, 300, 3

# The folds of data with or without clusters, stratified or not.
_FOLDS = {
    (False, False): KFold,
    (False, True): StratifiedKFold,
    (True, False): GroupKFold,
    (True, True): StratifiedGroupKFold,
}


def k_folds(
    k: int, n: int, labels: np.ndarray | None, clusters: np.ndarray | None, random_state: RandomState
) -> list[Split]:
    """``k`` random folds of ``n`` points, each the validation part once; clusters stay in one fold.

    They are stratified by ``labels``. Classes of fewer than k points are in as many folds as they have points; folds
    are not stratified if all classes are so small.
    """
    stratified = labels is not None and np.unique(labels, return_counts=True)[1].max() >= k
    kind = _FOLDS[clusters is not None, stratified]
    points = np.arange(n) if labels is None else labels
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        return list(kind(k, shuffle=True, random_state=spawn(random_state, 1)[0]).split(points, points, clusters))


def validation_parts(
    n: int, fraction: float, labels: np.ndarray | None, clusters: np.ndarray | None, random_state: RandomState
) -> list[Split]:
    """The parts by which a learner chooses a parameter: a random share ``fraction`` of many points is held out once.

    Of up to 1,000 points, or points in clusters, all are held out in turn, in ``1 / fraction`` folds, which are
    repeated where points are few: a single part of some dozen points decides by chance.

    Raises
    ------
    InputError
        If there is one point or one cluster.

    >>> [len(validation) for _, validation in validation_parts(2000, 0.2, None, None, 0)]
    [400]
    >>> [len(validation) for _, validation in validation_parts(250, 0.2, None, None, 0)]
    [50, 50, 50, 50, 50, 50, 50, 50, 50, 50]
    """
    if clusters is None and not 1 < n <= _FEW_POINTS:
        return [hold_out(n, fraction, labels, random_state)]
    members = n if clusters is None else len(np.unique(clusters))
    if members < 2:
        raise InputError(f"clusters: expected at least 2 to hold one out, found {n} points of one cluster")
    k = min(max(2, round(1 / fraction)), members)
    repeats = min(math.ceil(_PREDICTIONS / n), _MOST_REPEATS)
    return [part for seed in spawn(random_state, repeats) for part in k_folds(k, n, labels, clusters, seed)]
