"""Rows of a stream drawn at random, of which the leave-one-out error is computed."""

from typing import Any

import numpy as np

from orbit.core import distributed
from orbit.core.device_matrix import as_array


class RowSample:
    """At most ``size`` of the rows of a stream, each set of them equally likely: those with the smallest random keys.

    Parameters
    ----------
    size : int
        The rows to keep; a shorter stream is kept as a whole.
    first_row : int
        The rows of the stream before the first that is added, which other processes have: the sample of all processes
        together is that of one process with all rows.

    Examples
    --------
    >>> sample = RowSample(3)
    >>> for start in (0, 4):
    ...     X = np.arange(start, start + 4.0)[:, None]
    ...     sample.add(X, 2 * X, np.ones(4))
    >>> rows, targets, weights = sample.rows()
    >>> rows.shape, bool((targets == 2 * rows).all()), weights.tolist()
    ((3, 1), True, [1.0, 1.0, 1.0])
    """

    def __init__(self, size: int, first_row: int = 0) -> None:
        self._random = np.random.Generator(np.random.PCG64(0).advance(first_row))  # a number for each row
        self._keys = np.full(size, np.inf)  # of a place without a row
        self._arrays: list[np.ndarray] = []

    def add(self, X: Any, Y: np.ndarray, weights: np.ndarray) -> None:
        """Take in a batch: features, shape (m, d), targets, shape (m, k), and weights, shape (m,)."""
        batch = X, Y, weights
        if not self._arrays:
            self._arrays = [np.empty((len(self._keys), *one.shape[1:]), one.dtype) for one in batch]
        keys = np.where(weights > 0, self._random.random(len(X)), np.inf)
        smallest = np.argsort(np.append(self._keys, keys))[: len(self._keys)]
        stays = np.zeros(len(self._keys), dtype=bool)
        stays[smallest[smallest < len(stays)]] = True
        free, new = np.flatnonzero(~stays), smallest[smallest >= len(stays)] - len(stays)
        self._keys[free] = keys[new]
        for kept, one in zip(self._arrays, batch, strict=True):
            kept[free] = as_array(one[new])

    def gather(self) -> None:
        """In each process of a distributed job: the sample of the rows of all processes."""
        keys = np.concatenate(distributed.gather(self._keys.tolist()))
        smallest = np.argsort(keys)[: len(self._keys)]
        of_process, places = np.divmod(smallest, len(self._keys))
        own = of_process == distributed.rank()
        for i, kept in enumerate(self._arrays):
            self._arrays[i] = np.zeros_like(kept)
            self._arrays[i][own] = kept[places[own]]
            distributed.all_reduce(self._arrays[i])
        self._keys = keys[smallest]

    def rows(self) -> list[np.ndarray]:
        """Features, targets and weights of the sample."""
        return [kept[np.isfinite(self._keys)] for kept in self._arrays]
