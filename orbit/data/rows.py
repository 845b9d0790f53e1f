"""Rows of a file, or of the part of an array that one process keeps, read on demand."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

from orbit.core import distributed

# Rows of a file that are mapped at a time: the operating system maps up to 64 KiB around each.
_ROWS_AT_ONCE = 256
_BYTES_AT_ONCE = 2**24

# If fewer than one row in this number is read, read-ahead is disabled.
_SPREAD = 16


class NpyFile:
    """The rows of an .npy file, read on demand.

    The file is mapped again for every few hundred rows: the pages of a permanent map count as memory of the process.

    Parameters
    ----------
    path : str
    dtype : dtype
        Type to which rows are converted.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/X.npy"
    >>> np.save(path, np.arange(6).reshape(3, 2))
    >>> NpyFile(path, np.float32)[np.array([2, 0])]
    array([[4., 5.],
           [0., 1.]], dtype=float32)
    """

    def __init__(self, path: str, dtype: Any) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        self.shape = self._map().shape

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for block in _blocks(len(rows), out[:1].nbytes):
            out[block] = self._map(_scattered(rows[block]))[rows[block]]
        return out

    def _map(self, scattered: bool = False) -> np.ndarray:
        mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if scattered and isinstance(mapped.base, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
            mapped.base.madvise(mmap.MADV_RANDOM)  # else 128 KiB are read around every row
        return mapped


class Rows:
    """Some rows of a source, indexed like an array; rows are read when they are indexed.

    Parameters
    ----------
    source : array or NpyFile, shape (m, *shape)
    indices : int array, shape (n,)
        Indices of the rows in the source.

    Examples
    --------
    >>> rows = Rows(np.array([[10.0], [11.0], [12.0]]), np.array([2, 0]))
    >>> rows.shape, rows[0], rows.subset(slice(1, None))[:]
    ((2, 1), array([12.]), array([[10.]]))
    """

    def __init__(self, source: np.ndarray | NpyFile, indices: np.ndarray) -> None:
        self.source, self.indices = source, indices
        self.dtype: np.dtype = source.dtype
        self.shape = (len(indices), *source.shape[1:])
        self.ndim = len(self.shape)
        self.size = math.prod(self.shape)

    @classmethod
    def keeping(cls, X: np.ndarray, kept: np.ndarray) -> Rows:
        """``X`` reduced to a copy of the rows ``kept``; indexing another row raises ``IndexError``."""
        positions = np.full(len(X), len(kept))
        positions[kept] = np.arange(len(kept))
        return cls(X[kept], positions)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: Any) -> np.ndarray:
        found = self.indices[rows]
        taken = self.source[np.atleast_1d(found)]
        return taken if np.ndim(found) else taken[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def subset(self, rows: Any) -> Rows:
        """Some of the rows, not read yet."""
        return Rows(self.source, self.indices[rows])

    def as_stored(self, rows: np.ndarray) -> np.ndarray:
        """``rows`` sorted by their position in the file, for sequential reads."""
        return rows[np.argsort(self.indices[rows], kind="stable")] if isinstance(self.source, NpyFile) else rows

    def blocks(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """``rows`` in blocks: their indices in the source, and their values."""
        rows = self.as_stored(rows)
        for block in _blocks(len(rows), math.prod(self.shape[1:]) * self.dtype.itemsize):
            yield self.indices[rows[block]], self[rows[block]]


def subset(X: Any, rows: Any) -> Any:
    """Some rows of an array, or of :class:`Rows`, which are not read."""
    return X.subset(rows) if isinstance(X, Rows) else X[rows]


def own_rows(X: Any) -> np.ndarray:
    """Indices of the rows of ``X`` in this process's shard, in file order for rows of a file."""
    rows = np.arange(len(X))
    return distributed.share(X.as_stored(rows) if isinstance(X, Rows) else rows)


def _scattered(rows: np.ndarray) -> bool:
    return len(rows) > 0 and int(np.ptp(rows)) > _SPREAD * len(rows)


def _blocks(n: int, row_bytes: int) -> Iterator[slice]:
    size = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(1, row_bytes)))
    for start in range(0, n, size):
        yield slice(start, start + size)
