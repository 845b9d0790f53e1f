"""How well the probabilities of a classifier agree with the shares of correct predictions."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Reliability:
    """Predictions in bins of their confidence, the largest probability of each point.

    Attributes
    ----------
    confidence, accuracy : arrays, shape (m,)
        Mean confidence and share of correct predictions in each bin that has points.
    share : array, shape (m,)
        Share of the points in each bin.
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    share: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error: the mean over points of |accuracy - confidence| of their bins."""
        return float(self.share @ np.abs(self.accuracy - self.confidence))


def reliability(y: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, n_bins: int = 15) -> Reliability:
    """The reliability of probabilities (Guo et al. 2017, "On calibration of modern neural networks", eqs. 2 to 4).

    Parameters
    ----------
    y : array, shape (n,)
        Classes.
    probabilities : array, shape (n, k)
    classes : array, shape (k,)
        The classes of the columns.
    n_bins : int >= 1
        Bins of equal width.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.9, 0.1]])
    >>> found = reliability(np.array([0, 1]), probabilities, np.array([0, 1]))
    >>> found.accuracy.tolist(), round(found.error, 3)
    ([0.5], 0.4)
    """
    confidence = probabilities.max(1).astype(np.float64)
    correct = classes[probabilities.argmax(1)] == y
    bins = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)  # right ends belong to their bin
    counts = np.bincount(bins, minlength=n_bins)
    filled = counts > 0
    means = [np.bincount(bins, values, n_bins)[filled] / counts[filled] for values in (confidence, correct)]
    return Reliability(means[0], means[1], counts[filled] / len(y))
