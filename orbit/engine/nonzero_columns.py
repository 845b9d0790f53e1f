"""Products of a tile of points without the columns in which all of its points are zero.

Molecules with fewer atoms than the largest have rows and columns of zeros, which stay where they are if atoms are
sorted with some noise. A tile of points of about as many non-zero entries then has many columns of zeros.
"""

import numpy as np
import torch
from torch import Tensor

from orbit.engine.embedding import Embedding
from orbit.engine.memory import slices

# The largest share of columns that are not zero for which leaving out the others is faster.
_WORTHWHILE = 0.8

# Fewest orbit points of a tile for which the columns of an embedding are copied: a copy takes about as long as the
# products of 60 points, and a tile makes several.
_FEWEST_ORBIT_POINTS = 2048

# Points from which the share of zeros is estimated first; points whose zeros are counted at a time.
_SAMPLE, _BLOCK = 256, 4096


def by_nonzero_columns(X: np.ndarray, rows: int, n_elements: int) -> np.ndarray | None:
    """Indices of the points, shape (n,), sorted by their number of non-zero entries; None if that would gain nothing.

    Parameters
    ----------
    X : array, shape (n, *shape)
    rows : int
        Points of a tile.
    n_elements : int
        Orbit elements of each point.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0, 0.0, 3.0], [0.0, 0.0, 0.0, 4.0], [0.0, 5.0, 0.0, 6.0]])
    >>> by_nonzero_columns(X, rows=3, n_elements=1000)
    array([1, 2, 0])
    >>> print(by_nonzero_columns(X, rows=3, n_elements=10))
    None
    """
    if min(rows, len(X)) * n_elements < _FEWEST_ORBIT_POINTS or not X.size or not has_zeros(X[:_SAMPLE]):
        return None
    blocks = (X[part].reshape(-1, X[0].size) for part in slices(len(X), _BLOCK))
    counts = np.concatenate([np.count_nonzero(block, axis=1) for block in blocks])
    return np.argsort(counts, kind="stable") if counts.mean() <= _WORTHWHILE * X[0].size else None


def has_zeros(entries: np.ndarray) -> bool:
    """Whether so many entries are zero that leaving them out is faster."""
    return bool(np.count_nonzero(entries) <= _WORTHWHILE * entries.size)


class NonzeroColumns:
    """The columns of a tile that are not zero, which grow with the elements that move its points.

    Parameters
    ----------
    embedding : Embedding

    Examples
    --------
    >>> from orbit import build
    >>> nystrom = build("approx", "nystrom", n_components=5, random_state=0)
    >>> X = torch.eye(6, dtype=torch.float64)
    >>> embedding = nystrom.fit(X.numpy())._embedding(np.dtype(np.float64))
    >>> narrow, points = NonzeroColumns(embedding).narrowed(X[:3])
    >>> points.shape, narrow.columns[0].points.shape
    (torch.Size([3, 3]), torch.Size([5, 3]))
    """

    def __init__(self, embedding: Embedding) -> None:
        self._whole, self._narrow = embedding, embedding
        self._used: np.ndarray | None = None
        self._columns: Tensor | None = None

    def narrowed(self, points: Tensor) -> tuple[Embedding, Tensor]:
        """The embedding and ``points``, shape (n, d), without columns of zeros where that is faster.

        The values of the embedding are the same as for whole points.
        """
        used = (points.numpy() != 0).any(0)
        if self._used is None or (used & ~self._used).any():
            self._used = used if self._used is None else used | self._used
            self._narrow_to(self._used)
        return self._narrow, points if self._columns is None else points.index_select(1, self._columns)

    def _narrow_to(self, used: np.ndarray) -> None:
        self._narrow, self._columns = self._whole, None
        if not has_zeros(used):
            used[:] = True  # nothing is left out from now on
            return
        used[0] |= not used.any()  # products have at least one column
        columns = torch.from_numpy(np.flatnonzero(used))
        self._narrow, self._columns = self._whole.restricted(columns), columns
