"""Rows of a file, or of the part of an array that one process keeps, read on demand."""

from __future__ import annotations

import math
import mmap
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from orbit.core import distributed

# Rows of a file that are mapped at a time: the operating system maps up to 64 KiB around each.
_ROWS_AT_ONCE = 256
_BYTES_AT_ONCE = 2**24

# If fewer than one row in this number is read, read-ahead is disabled.
_SPREAD = 16

# All integers up to this one are numbers of float32.
_EXACT_INTEGER = 2**24


class Source(ABC):
    """Rows that are read on demand.

    Attributes
    ----------
    shape : tuple of int, of all rows
    dtype : of the rows that are read
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    @abstractmethod
    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """The rows of the given indices."""

    @abstractmethod
    def own(self, indices: Any) -> Any:
        """Positions in ``indices`` of the rows of this process's share, in the order in which they are best read."""


class SharedSource(Source):
    """Rows of which this process reads its own share only."""

    @abstractmethod
    def keep(self, rows: np.ndarray) -> None:
        """Check this process's share in one pass, and hold ``rows``, of all shares, in every process."""


class AllBut:
    """The integers from 0 to ``n`` without some, in the memory of those: indexed like a sorted array.

    Examples
    --------
    >>> kept = AllBut(6, np.array([0, 3]))
    >>> kept[:], kept[np.array([2])], len(kept), kept.searchsorted(np.array([4]))
    (array([1, 2, 4, 5]), array([4]), 4, array([2]))
    """

    def __init__(self, n: int, left_out: np.ndarray) -> None:
        self.n, self.left_out = n, left_out
        self._before = left_out - np.arange(len(left_out))  # how many are kept below each that is left out

    def __len__(self) -> int:
        return self.n - len(self.left_out)

    def __getitem__(self, positions: Any) -> Any:
        if isinstance(positions, slice):
            positions = np.arange(*positions.indices(len(self)))
        positions = np.asarray(positions)
        if positions.dtype == bool:
            positions = np.flatnonzero(positions)
        positions = np.where(positions < 0, positions + len(self), positions)
        return positions + np.searchsorted(self._before, positions, side="right")

    def searchsorted(self, values: np.ndarray) -> np.ndarray:
        """How many of the integers are below each value."""
        return values - np.searchsorted(self.left_out, values)


def is_rounded(values: np.ndarray, dtype: np.dtype) -> bool:
    """Whether some integers among the values are no numbers of ``dtype``, if that is float32."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 4 or dtype != np.float32:
        return False
    return max(int(values.max(initial=0)), -int(values.min(initial=0))) > _EXACT_INTEGER


def as_real(values: np.ndarray, dtype: np.dtype, where: str) -> np.ndarray:
    """Values that are read by rows, in ``dtype``; a warning names ``where`` if integers are rounded to float32."""
    if is_rounded(values, dtype):
        warnings.warn(
            f"{where}: integers larger than {_EXACT_INTEGER:,} are rounded to float32; save them as float64",
            stacklevel=2,
        )
    return values.astype(dtype, copy=False)


class NpyFile(Source):
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
            out[block] = as_real(self._map(_scattered(rows[block]))[rows[block]], self.dtype, self.path)
        return out

    def own(self, indices: np.ndarray) -> np.ndarray:
        return distributed.share(np.argsort(indices, kind="stable"))

    def _map(self, scattered: bool = False) -> np.ndarray:
        mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if scattered and isinstance(mapped.base, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
            mapped.base.madvise(mmap.MADV_RANDOM)  # else 128 KiB are read around every row
        return mapped


class Rows:
    """Some rows of a source, indexed like an array; rows are read when they are indexed.

    Parameters
    ----------
    source : array or Source, shape (m, *shape)
    indices : int array, shape (n,), or AllBut
        Indices of the rows in the source.

    Examples
    --------
    >>> rows = Rows(np.array([[10.0], [11.0], [12.0]]), np.array([2, 0]))
    >>> rows.shape, rows[0], rows.subset(slice(1, None))[:]
    ((2, 1), array([12.]), array([[10.]]))
    """

    def __init__(self, source: np.ndarray | Source, indices: np.ndarray | AllBut) -> None:
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
        if isinstance(rows, slice) and rows == slice(None):
            return self
        return Rows(self.source, self.indices[rows])

    def as_stored(self, rows: np.ndarray) -> np.ndarray:
        """``rows`` sorted by their position in the file, for sequential reads."""
        return rows[np.argsort(self.indices[rows], kind="stable")] if isinstance(self.source, Source) else rows

    def blocks(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """``rows`` in blocks: their indices in the source, and their values."""
        rows = self.as_stored(rows)
        for block in _blocks(len(rows), math.prod(self.shape[1:]) * self.dtype.itemsize):
            yield self.indices[rows[block]], self[rows[block]]


def subset(X: Any, rows: Any) -> Any:
    """Some rows of an array, not copied if they are next to each other, or of :class:`Rows`, which are not read."""
    if isinstance(X, Rows):
        return X.subset(rows)
    is_run = isinstance(rows, np.ndarray) and rows.dtype.kind in "iu" and len(rows) and (np.diff(rows) == 1).all()
    return X[rows[0] : rows[-1] + 1] if is_run and rows[0] >= 0 else X[rows]


def distinct(y: Any) -> np.ndarray:
    """The different values of targets, sorted; of :class:`Rows` those of its whole source."""
    source: Any = y.source if isinstance(y, Rows) else None
    return np.unique(y) if source is None else source.distinct


def own_rows(X: Any) -> Any:
    """Indices of the rows of ``X`` in this process's shard, in file order for rows of a file: an array or a range."""
    if isinstance(X, Rows) and isinstance(X.source, Source):
        return X.source.own(X.indices)
    return distributed.share(np.arange(len(X)))


def _scattered(rows: np.ndarray) -> bool:
    return len(rows) > 0 and int(np.ptp(rows)) > _SPREAD * len(rows)


def _blocks(n: int, row_bytes: int) -> Iterator[slice]:
    size = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(1, row_bytes)))
    for start in range(0, n, size):
        yield slice(start, start + size)
