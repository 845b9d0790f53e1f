"""Means and second moments of a stream of features: all that least squares needs to know of it."""

from __future__ import annotations

import numpy as np

from orbit.core.distributed import add_up, from_first
from orbit.core.errors import InputError
from orbit.core.linalg import add_second_moments, mirror_upper

# Rows of the second moments that are centred at once.
_BLOCK_ROWS = 2048


class Moments:
    """Sums over a stream of batches; memory d (d + k) numbers of 8 bytes, however long the stream.

    Products of a batch are taken in its own precision (float32 tiles are twice as
    fast) unless ``precise``, and accumulated in float64. Everything is relative to
    the mean of the first batch, because invariant features vary little about it.

    Parameters
    ----------
    precise : bool
        Take the products in float64 too.
    centred : bool
        False: moments about zero instead of the means, for a model without intercept.

    Attributes
    ----------
    n : int
        Rows so far that weigh something.
    """

    def __init__(self, precise: bool = False, centred: bool = True) -> None:
        self.precise = precise
        self.centred = centred
        self.n = 0
        self.weight = 0.0

    def add(self, X: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        """Add a batch: ``X``, shape (m, d); ``Y``, shape (m, k), float64; weights, shape (m,)."""
        w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if not hasattr(self, "dtype"):
            self._begin(X, Y)
        root = np.sqrt(w)[:, None]
        centred = (X - self.shift_x) if self.precise else (X - self.shift_x.astype(X.dtype))
        targets = (Y - self.shift_y) * root
        centred *= root.astype(centred.dtype)
        add_second_moments(self.xx, centred)
        self.xy += centred.T @ targets.astype(centred.dtype)
        self.sum_x += (centred.T @ root.astype(centred.dtype))[:, 0]
        self.sum_y += (targets * root).sum(0)
        self.yy += targets.T @ targets
        self.n += int(np.count_nonzero(w))
        self.weight += float(w.sum())

    def gather(self) -> None:
        """Add up the moments of all processes of a job."""
        counts = np.array([self.n, self.weight])
        add_up(counts, self.yy, self.xx, self.xy, self.sum_x, self.sum_y)
        self.n, self.weight = int(counts[0]), float(counts[1])

    def system(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centred second moments A = X^T X / n, X^T Y / n and Y^T Y / n. Ends the stream: A is made in place."""
        if self.weight == 0:
            raise InputError("sample weights: expected some above 0, all of the stream's are 0")
        A, mean_x, mean_y = self.xx, self.x_mean - self.shift_x, self.y_mean - self.shift_y
        for start in range(0, len(A), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            A[rows, start:] /= self.weight
            A[rows, start:] -= mean_x[rows, None] * mean_x[None, start:]
        mirror_upper(A)
        del self.xx
        return A, self.xy / self.weight - mean_x[:, None] * mean_y, self.yy / self.weight - np.outer(mean_y, mean_y)

    @property
    def x_mean(self) -> np.ndarray:
        return self.shift_x + self.centred * self.sum_x / self.weight

    @property
    def y_mean(self) -> np.ndarray:
        return self.shift_y + self.centred * self.sum_y / self.weight

    def _begin(self, X: np.ndarray, Y: np.ndarray) -> None:
        d, k = X.shape[1], Y.shape[1]
        self.dtype = X.dtype
        # the same in all processes of a job, so that their sums can be added up
        self.shift_x, self.shift_y = (
            self.centred * from_first(X.mean(0, dtype=np.float64)),
            self.centred * from_first(Y.mean(0)),
        )
        self.xx, self.xy, self.yy = np.zeros((d, d)), np.zeros((d, k)), np.zeros((k, k))
        self.sum_x, self.sum_y = np.zeros(d), np.zeros(k)
