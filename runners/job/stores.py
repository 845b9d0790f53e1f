"""Stores of features and fitted maps, each under a key of all that determines it."""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import os
import pickle
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from filelock import FileLock

from orbit.core.distinct import row_digests
from orbit.core.lru import Lru
from orbit.core.models import read, read_own, write_model, write_own
from orbit.core.warned import Warned
from runners.job.keys import with_points

log = logging.getLogger(__name__)

T = TypeVar("T")

# The values of a function of rows, a note of how they were computed, and the warnings that this gave.
Noted = tuple[np.ndarray, Any, Warned]

#: The file of a result that the processes of a sweep share; its name is not that of a model.
FEATURES = "features.pkl"

# A result is shared if it took longer to compute than this and the time to write and read it at this rate, together.
_WORTH_S = 0.1
_SHARED_BYTES_PER_S = 1e8

# A result is put in a file of this process alone if it took longer to compute than to write and read it at this rate.
_BYTES_PER_S = 5e8

# The share of its bytes that a store of rows uses for small results in memory.
_SHARE_IN_MEMORY = 0.01

# Files that a store holds open.
_MOST_FILES = 200


class Store(ABC):
    """Has results by their keys.

    Attributes
    ----------
    limit_bytes : float
        The largest result that it takes.
    by_row : bool
        Whether :meth:`rows` finds single rows, in any order, as a stream in shuffled batches needs.
    """

    limit_bytes: float = math.inf
    by_row: bool = False

    @abstractmethod
    def get(self, key: str, make: Callable[[], T]) -> T:
        """The result under ``key``, or that of ``make``."""

    def rows(self, key: str, X: np.ndarray, make: Callable[[np.ndarray], Noted]) -> Noted:
        """A function of each row of ``X``, a note and the warnings; by default stored for all rows at once.

        Parameters
        ----------
        key : str
            Determines the function.
        X : array, shape (n, ...)
        make : callable
            From rows to the values of the function, shape (rows, ...), the note and the warnings.
        """
        return self.get(with_points(key, X), lambda: make(X))

    def in_memory(self, key: str, make: Callable[[], T]) -> T:
        """As :meth:`get`, for small results that take long; by default they are not stored."""
        return make()


class RowStore(Store):
    """Has the values of functions for each row, in memory or files, and large results in files, up to a limit.

    Parameters
    ----------
    limit_bytes : float
    folder : path or None
        Of the files, which have no names and vanish with the process. Values that take less time to compute than to
        write and read are not put there. None is memory.
    beyond : Store or None
        Another store, asked for what this one does not have.

    Examples
    --------
    >>> def doubled(X):
    ...     return 2 * X, f"{len(X)} rows", ()
    >>> X, values = np.array([[1.0], [2.0], [3.0]]), RowStore(1e6)
    >>> for rows in X[:2], X[::-1]:
    ...     found, note, warned = values.rows("doubled", rows, doubled)
    ...     print(found.tolist(), note)
    [[2.0], [4.0]] 2 rows
    [[6.0], [4.0], [2.0]] 1 rows
    """

    by_row = True

    def __init__(
        self, limit_bytes: float, folder: str | os.PathLike[str] | None = None, beyond: Store | None = None
    ) -> None:
        self.limit_bytes, self.folder, self.beyond = limit_bytes, folder, beyond
        self._cached = Lru[str, Any](limit_bytes, math.inf if folder is None else _MOST_FILES)
        self._small = Lru[str, Any](limit_bytes * _SHARE_IN_MEMORY)

    def get(self, key: str, make: Callable[[], T]) -> T:
        if (file := self._cached.find(key)) is not None:
            return read_own(file)
        start = time.perf_counter()
        result = make() if self.beyond is None else self.beyond.get(key, make)
        if self.folder is not None and self._is_worth(array_bytes(result), start):
            file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115, it stays open
            self._cache(key, file, array_bytes(result), lambda: write_own(file, result))
        return result

    def rows(self, key: str, X: np.ndarray, make: Callable[[np.ndarray], Noted]) -> Noted:
        entry = self._cached.find(key) or _Rows(self.folder)
        digests = row_digests(X)
        places = np.array([entry.places.get(digest, -1) for digest in digests], dtype=np.intp)
        new = np.flatnonzero(places < 0)
        if len(X) and not len(new):
            return entry.values[places], entry.note, entry.warned
        missing, start = X if len(new) == len(X) else X[new], time.perf_counter()
        values, note, warned = make(missing) if self.beyond is None else self.beyond.rows(key, missing, make)
        of_all, warned = values, tuple(dict.fromkeys(entry.warned + warned))
        if len(new) < len(X):
            of_all = np.empty((len(X), *values.shape[1:]), values.dtype)
            known = np.flatnonzero(places >= 0)
            of_all[new], of_all[known] = values, entry.values[places[known]]
        size = entry.values.nbytes + values.nbytes
        if len(new) and size <= self.limit_bytes and (self.folder is None or self._is_worth(values.nbytes, start)):
            self._cache(key, entry, size, lambda: entry.add([digests[i] for i in new], (values, note, warned)))
        return of_all, note, warned

    def in_memory(self, key: str, make: Callable[[], T]) -> T:
        return copy.deepcopy(self._small.get(key, make, array_bytes))

    def _is_worth(self, nbytes: int, start: float) -> bool:
        """Whether bytes that have been computed since ``start`` are to be put in a file."""
        return nbytes <= self.limit_bytes and time.perf_counter() - start > nbytes / _BYTES_PER_S

    def _cache(self, key: str, entry: Any, nbytes: int, write: Callable[[], None]) -> None:
        self._cached.put(key, entry, nbytes)  # before it is written, so that others make room
        try:
            write()
        except OSError as error:
            log.warning("features are not cached: %s cannot be written (%s)", self.folder, error.strerror or error)
            self._cached.drop(key)


class _Rows:
    """Values of a function in a file, or in memory, and the places of the rows that they belong to."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self.places = dict[bytes, int]()
        self.values: np.ndarray = np.empty(0)
        self.note: Any = None
        self.warned: Warned = ()

    def add(self, digests: list[bytes], noted: Noted) -> None:
        (values, note, warned), before = noted, len(self.values)
        if self._folder is None:
            self.values = np.concatenate([self.values, values]) if before else values.copy()
        else:
            self._file = self._file or tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115, it stays open
            self._file.seek(0, os.SEEK_END)
            self._file.write(np.ascontiguousarray(values).data)
            self._file.flush()
            shape = before + len(values), *values.shape[1:]
            self.values = np.asarray(np.memmap(self._file, values.dtype, "r", shape=shape))
        self.places.update(zip(digests, range(before, before + len(values)), strict=True))
        self.note, self.warned = note, warned


class FileStore(Store):
    """Results in a folder of limited size, from which the least recently used are removed.

    Of several processes that need the same result, one computes it while the others wait. A file that is damaged, or
    that another user wrote, is computed again; where nothing can be written, nothing is written.

    Parameters
    ----------
    folder : Path
    limit : float > 0
        GiB.

    Attributes
    ----------
    found, made : int
        Results that were read, and computed.
    """

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit, self.limit_bytes = folder.absolute(), limit, limit * 2**30
        self.found = self.made = 0

    def get(self, key: str, make: Callable[[], T]) -> T:
        content = self._read(key)
        if content is not None:
            return content[0]
        with self._alone(key):
            content = self._read(key)  # of the process that had the lock
            if content is not None:
                return content[0]
            start = time.perf_counter()
            result = make()
            self.made += 1
            self._write(key, result, time.perf_counter() - start)
            return result

    def _read(self, key: str) -> tuple[Any] | None:
        """What is stored under a key, as a tuple of one; None if that is nothing."""
        path = self.folder / key
        try:
            content = (read(path, name=FEATURES),)
            os.utime(path / FEATURES)  # the time of its latest use
            self.found += 1
            return content
        except FileNotFoundError:
            return None
        except Exception as error:
            log.warning("the cached features %s cannot be used (%s); they are computed again", path, error)
            shutil.rmtree(path, ignore_errors=True)
            return None

    def _write(self, key: str, result: Any, seconds: float) -> None:
        size = array_bytes(result)
        if seconds < _WORTH_S + size / _SHARED_BYTES_PER_S:
            return
        if size > self.limit_bytes:
            text = "%.3g GiB of features are not cached: they are larger than feature_cache=%g GiB"
            log.info(text, size / 2**30, self.limit)
            return
        path = self.folder / key
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._shrink(self.limit_bytes - size)
            write_model(path, result, FEATURES)
        except OSError as error:
            log.warning("features are not cached: %s cannot be written (%s)", path, error.strerror or error)
            shutil.rmtree(path, ignore_errors=True)

    def _shrink(self, limit: float) -> None:
        """Remove the least recently used results until the rest is within ``limit`` bytes."""
        entries = sorted((_use_and_size(path), path) for path in self.folder.iterdir() if path.is_dir())
        total = sum(size for (_, size), _ in entries)
        for (_, size), path in entries:
            if total <= limit:
                return
            if size:  # the others are about to be written
                shutil.rmtree(path, ignore_errors=True)
                total -= size

    def _alone(self, key: str) -> contextlib.AbstractContextManager[object]:
        """Context manager that one process at a time is in; without effect where files cannot be locked."""
        try:
            (self.folder / key).mkdir(parents=True, exist_ok=True)
            return FileLock(self.folder / key / ".lock").acquire()
        except (OSError, NotImplementedError):
            return contextlib.nullcontext()


def _use_and_size(path: Path) -> tuple[float, int]:
    """The time of the latest use of a folder's files, and their bytes; zeros for files that vanish."""
    found = []
    with contextlib.suppress(OSError):
        found = [file.stat() for file in path.iterdir()]
    return max((file.st_mtime for file in found), default=0.0), sum(file.st_size for file in found)


def array_bytes(result: Any) -> int:
    """Bytes of all arrays that an object refers to.

    >>> array_bytes({"a": np.zeros(3), "b": [np.zeros(2, np.float32)]})
    32
    """
    sizes = list[int]()
    pickle.dumps(result, protocol=5, buffer_callback=lambda buffer: sizes.append(buffer.raw().nbytes))
    return sum(sizes)
