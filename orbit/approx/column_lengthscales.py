"""Whether each column of a table gets a lengthscale of its own, by errors of points that had no part in choosing it."""

from typing import Any

import numpy as np

from orbit.approx.evidence import EvidenceChoice, choose_by_evidence
from orbit.approx.scales import clearly_lower, errors_of, kernel_features
from orbit.core.random import RandomState, generator
from orbit.solvers.left_out import encoded_targets, left_out
from orbit.solvers.repeats import equal_rows

# Points that are compared, and the fewest, below which lengthscales of the folds are too uncertain; folds. The first
# two were chosen after a look at seven tables of 60 and 200 points, seeds 10 to 13; others are in
# docs/results/discover.md.
_COMPARED, _FEWEST, _FOLDS = 400, 50, 5


def choose_columns(
    median: Any, one: Any, X: np.ndarray, y: np.ndarray, clusters: np.ndarray | None, random_state: RandomState
) -> tuple[Any, EvidenceChoice | None]:
    """The kernel with a lengthscale for each column if these lower the errors by more than chance, else ``one``, None.

    The lengthscales maximise the marginal likelihood of four fifths of the points. Compared are leave-one-out errors of
    the points of the other fifth, so that no point has a part in the lengthscales that it judges.

    Parameters
    ----------
    median : the fitted kernel with the median lengthscale
    one : the same with the lengthscale chosen for all columns
    X : array, shape (n, d)
    y, clusters : their targets, and their clusters or None, as for ``FeatureMap.fit``
    random_state : of the folds
    """
    drawn = generator(random_state)
    rows = np.sort(drawn.choice(len(X), min(len(X), _COMPARED), replace=False))
    points, targets = X[rows], y[rows]
    numbers = np.unique(equal_rows(points) if clusters is None else clusters[rows], return_inverse=True)[1]
    n_clusters = int(numbers.max()) + 1
    if n_clusters < _FEWEST:
        return one, None
    fold = (drawn.permutation(n_clusters) % _FOLDS)[numbers]
    before = after = _errors(one, points, targets, numbers)
    for held_out in range(_FOLDS):
        used = fold != held_out
        kernel, _ = choose_by_evidence(median, points[used], targets[used], each=True)
        after = np.where(used, after, _errors(kernel, points, targets, numbers))
    if (after.mean(1) > before.mean(1)).any() or not clearly_lower(after, before, numbers):
        return one, None
    return choose_by_evidence(median, X, y, each=True)


def _errors(kernel: Any, X: np.ndarray, y: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Leave-one-out errors with a kernel, shape (kinds, n)."""
    targets, of_classes = encoded_targets(y)
    (features,) = kernel_features(kernel, X, X[None], np.ones(1))(np.ones(1))
    predicted, _ = left_out(features, targets, clusters)
    return errors_of(predicted, targets, of_classes)
