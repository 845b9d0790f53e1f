"""Stores of results that are used more than once, such as fitted maps and features, each under a key of all that
determines it.

A store is off unless a program opens one with :func:`storing`. Then every feature map asks it before it computes. The
key is derived from the map itself, whatever its components and their parameters are, and from the content of the
points, so it holds for a part of the data, a fold or a second layer as well.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import logging
import math
import os
import pickle
import platform
import sys
import tempfile
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from types import FunctionType
from typing import IO, Any, TypeVar

import joblib
import numpy as np
import torch
from sklearn.base import clone

from orbit.core.component import Component
from orbit.core.distinct import bytes_of_rows, row_digests
from orbit.core.fingerprint import fingerprint
from orbit.core.models import read_own, write_own
from orbit.core.words import worded, wording

log = logging.getLogger(__name__)

T = TypeVar("T")
# Warnings: text, category, file and line of each.
Warned = tuple[tuple[str, type[Warning], str, int], ...]

# The values of a function of rows, how they were computed (an engine's Route), and the warnings that this gave.
Noted = tuple[np.ndarray, Any, Warned]

# The share of its bytes that a store of rows uses for other results in memory.
_SHARE_OF_RESULTS = 0.01

# A result is kept in files if it took longer to compute than it takes to write and read it at this rate.
_BYTES_PER_S = 5e8


class Store(ABC):
    """Keeps results by their keys.

    Attributes
    ----------
    limit_bytes : float
        The largest result that may be kept.
    by_row : bool
        Whether :meth:`rows` finds single rows, in any order, as a stream in shuffled batches needs.
    """

    limit_bytes: float = math.inf
    by_row: bool = False

    @abstractmethod
    def get(self, key: str, make: Callable[[], T]) -> T:
        """The result kept under ``key``, or that of ``make``."""

    def rows(self, key: str, X: np.ndarray, make: Callable[[np.ndarray], Noted]) -> Noted:
        """A function of each row of ``X``, a note and the warnings; by default kept for all rows at once.

        Parameters
        ----------
        key : str
            Determines the function.
        X : array, shape (n, ...)
        make : callable
            From rows to the values of the function, shape (rows, ...), the note and the warnings.
        """
        return self.get(_with_points(key, X), lambda: make(X))


class ByRow(Store):
    """Keeps the values of functions for each row, and other results, up to a number of bytes.

    The results that have not been used for longest are dropped first. Other results, such as fitted learners, are kept
    in memory up to a hundredth of that number of bytes in all, and the largest of these are dropped first; larger ones,
    such as factors of many landmarks, are kept in files only.

    Parameters
    ----------
    limit_bytes : float
    folder : path or None
        Where they are kept, in files without names, which vanish with the process. Values that take less time to
        compute than to write and read are not kept. None is memory.
    beyond : Store or None
        Another store, asked for what this one does not have.

    Examples
    --------
    >>> def doubled(X):
    ...     return 2 * X, f"{len(X)} rows", ()
    >>> X, values = np.array([[1.0], [2.0], [3.0]]), ByRow(1e6)
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
        self._kept: dict[str, _Rows | _Result] = {}
        self._results: dict[str, tuple[Any, int]] = {}

    def get(self, key: str, make: Callable[[], T]) -> T:
        if key in self._results:
            self._results[key] = self._results.pop(key)  # to the end, as the one used last
            return copy.deepcopy(self._results[key][0])
        if isinstance(entry := self._used(key), _Result):
            return entry.read()
        start = time.perf_counter()
        result = make() if self.beyond is None else self.beyond.get(key, make)
        seconds, size = time.perf_counter() - start, array_bytes(result)
        if size <= self.limit_bytes * _SHARE_OF_RESULTS:
            self._results[key] = copy.deepcopy(result), size
            while sum(size for _, size in self._results.values()) > self.limit_bytes * _SHARE_OF_RESULTS:
                # fitted maps are large and drawn in little time, learners are small and take long
                del self._results[max(self._results, key=lambda kept: self._results[kept][1])]
        elif self.folder is not None and seconds > size / _BYTES_PER_S and self._makes_room(key, size):
            self._keep(key, _Result(self.folder, size), result)
        return result

    def rows(self, key: str, X: np.ndarray, make: Callable[[np.ndarray], Noted]) -> Noted:
        found = self._used(key)
        entry = found if isinstance(found, _Rows) else _Rows(self.folder)
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
        worth = self.folder is None or time.perf_counter() - start > values.nbytes / _BYTES_PER_S
        if len(new) and worth and self._makes_room(key, entry.nbytes + values.nbytes):
            self._keep(key, entry, [digests[i] for i in new], (values, note, warned))
        return of_all, note, warned

    def _used(self, key: str) -> _Rows | _Result | None:
        """The entry kept under a key, now the one used last; None if there is none."""
        if key in self._kept:
            self._kept[key] = self._kept.pop(key)
        return self._kept.get(key)

    def _makes_room(self, key: str, nbytes: int) -> bool:
        """Whether ``nbytes`` under a key fit; if so, other entries are dropped, those not used for longest first."""
        if nbytes > self.limit_bytes:
            return False
        others = [(other, entry.nbytes) for other, entry in self._kept.items() if other != key]
        total = nbytes + sum(size for _, size in others)
        for other, size in others:
            if total <= self.limit_bytes:
                break
            del self._kept[other]
            total -= size
        return True

    def _keep(self, key: str, entry: _Rows | _Result, *content: Any) -> None:
        try:
            entry.add(*content)
            self._kept[key] = entry
        except OSError as error:
            log.warning("features are not kept: %s cannot be written (%s)", self.folder, error.strerror or error)
            self._kept.pop(key, None)


class _Result:
    """A result in a file without a name.

    Attributes
    ----------
    nbytes : int
        Of its arrays.
    """

    def __init__(self, folder: str | os.PathLike[str], nbytes: int) -> None:
        self._folder, self.nbytes = folder, nbytes
        self._file: IO[bytes]

    def add(self, result: Any) -> None:
        self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115, it stays open
        write_own(self._file, result)

    def read(self) -> Any:
        return read_own(self._file)


class _Rows:
    """Values of a function in a file, or in memory, and the places of the rows that they belong to."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self.places = dict[bytes, int]()
        self.values: np.ndarray = np.empty(0)
        self.note: Any = None
        self.warned: Warned = ()

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

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


def _with_points(key: str, X: np.ndarray) -> str:
    """A key that depends on the values of all points as well."""
    digest = hashlib.sha256(f"{key} {len(X)}".encode())
    digest.update(bytes_of_rows(X).data)
    return digest.hexdigest()


def array_bytes(result: Any) -> int:
    """Bytes of all arrays that an object refers to.

    >>> array_bytes({"a": np.zeros(3), "b": [np.zeros(2, np.float32)]})
    32
    """
    sizes = list[int]()
    pickle.dumps(result, protocol=5, buffer_callback=lambda buffer: sizes.append(buffer.raw().nbytes))
    return sum(sizes)


_store: ContextVar[Store | None] = ContextVar("store", default=None)


@contextlib.contextmanager
def storing(store: Store | None) -> Iterator[None]:
    """Context manager in which feature maps use ``store``; None is no store."""
    before = _store.set(store)
    try:
        yield
    finally:
        _store.reset(before)


def in_use() -> Store | None:
    """The store that feature maps use; None if there is none."""
    return _store.get()


def keeps(nbytes: float) -> bool:
    """Whether there is a store that may keep a result of a size."""
    found = _store.get()
    return found is not None and nbytes <= found.limit_bytes


def kept(purpose: Any, feature_map: Any, X: Any, make: Callable[[], T]) -> T:
    """The result of ``make`` for a map and all points ``X``, from the store in use if it has it; see :func:`key`.

    Warnings of its computation are kept with a result, and given again every time.
    """
    store, found = _store.get(), key(purpose, feature_map, X)
    if store is None or found is None:
        return make()
    result, warned = store.get(_with_points(found, X), lambda: _alone(make))
    warn(warned)
    return result


def kept_rows(
    purpose: Any, feature_map: Any, X: Any, make: Callable[[np.ndarray], tuple[np.ndarray, Any]]
) -> tuple[np.ndarray, Any]:
    """As :func:`kept`, for a function of each row of ``X``, shape (n, ...), and a note of how it was computed."""
    store, found = _store.get(), key(purpose, feature_map, X)
    if store is None or found is None:
        return make(X)

    def noted(rows: np.ndarray) -> Noted:
        (values, note), warned = _alone(make, rows)
        return values, note, warned

    values, note, warned = store.rows(found, X, noted)
    warn(warned)
    return values, note


def digest(content: Any) -> str | None:
    """A digest of an object, equal only for equal content; None where there is none, as for functions without names."""
    try:
        return joblib.hash(content, hash_name="sha1")
    except (pickle.PicklingError, AttributeError, LookupError, OSError, TypeError):
        return None


def key(purpose: Any, feature_map: Any, X: Any) -> str | None:
    """A key equal only if a map of these parameters, fitted to or applied to points, gives the same to the last bit.

    It depends on the classes and parameters of the map and of all its parts, the engine included; the content of the
    files that they read; the code of their packages, and the versions of all others; the processor, the device and the
    number of threads; and the dtype of ``X`` and the shape of its points, not their values.

    Parameters
    ----------
    purpose : object
        What is computed, and what it depends on besides; None gives no key.
    feature_map : FeatureMap
        Whether it is fitted makes no difference.
    X : array

    Returns
    -------
    str or None
        None without a store; for a stream, whose batches are never the same, with a store that does not keep rows; and
        where not all of this is known: for points that are no array, a ``random_state`` that is no integer, or
        parameters that cannot be pickled.
    """
    store = _store.get()
    if store is None or purpose is None or not isinstance(feature_map.random_state, int):
        return None
    streams = feature_map.engine is not None and feature_map.engine.stream
    if (streams and not store.by_row) or not isinstance(X, np.ndarray) or X.dtype == object:
        return None
    unfitted = clone(feature_map)
    try:
        parts = _parts(unfitted)
        files = sorted({path for part in parts if isinstance(part, Component) for path in part.input_files()})
        packages = {(part if isinstance(part, type | FunctionType) else type(part)).__module__ for part in parts}
        code = _code(frozenset(module.partition(".")[0] for module in packages))
        read = [fingerprint(path).sha256 for path in files]
    except (pickle.PicklingError, AttributeError, LookupError, OSError, TypeError):
        return None
    return digest([purpose, unfitted, read, code, _machine(), X.dtype.str, X.shape[1:]])


def _alone(make: Callable[..., T], *arguments: Any) -> tuple[T, Warned]:
    """The result of ``make``, which uses no store, so that locks are not nested; and its warnings."""
    with storing(None):
        return with_warnings(lambda: make(*arguments))


def with_warnings(make: Callable[[], T]) -> tuple[T, Warned]:
    """The result of ``make``, and its warnings, which are not given.

    >>> with_warnings(lambda: 3)
    (3, ())
    """
    caught: list[tuple[str, type[Warning], str, int]] = []

    def keep(message: Warning | str, category: type[Warning], filename: str, line: int, *more: Any) -> None:
        caught.append((worded(str(message)), category, filename, line))

    with warnings.catch_warnings():
        warnings.simplefilter("always")  # whoever gives them decides which are shown
        warnings.showwarning = keep  # type: ignore[assignment]
        result = make()
    return result, tuple(caught)


def warn(warned: Warned) -> None:
    """Give warnings, as those of :func:`with_warnings`."""
    with wording(str):  # they are worded
        for text, category, filename, line in warned:
            warnings.warn_explicit(text, category, filename, line)


def _parts(whole: Any) -> list[Any]:
    """All objects that an object consists of, classes and functions included, at any depth."""
    found: list[Any] = []

    class Walk(pickle.Pickler):
        def reducer_override(self, part: Any) -> Any:
            found.append(part)
            return NotImplemented

    Walk(BytesIO()).dump(whole)
    return found


@functools.cache
def _code(packages: frozenset[str]) -> str:
    """A digest of the source of packages that are not installed, and of the names and versions of those that are."""
    installed = [found for folder in sys.path for found in Path(folder).glob("*.dist-info")]
    sites = {found.parent for found in installed}
    digest = hashlib.sha256(str(sorted((found.name, found.stat().st_mtime_ns) for found in installed)).encode())
    for name in sorted(packages - sys.stdlib_module_names):
        module = sys.modules[name]
        own = [Path(folder) for folder in getattr(module, "__path__", [])] or [Path(str(module.__file__))]
        for path in own:
            if path.parent in sites:
                continue
            for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                digest.update(f"{name} {source.relative_to(path)}".encode())
                digest.update(source.read_bytes())
    return digest.hexdigest()


def _machine() -> list[Any]:
    """What rounding depends on besides the code: processor, device and threads."""
    threads = {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    processor = platform.machine(), torch.backends.cpu.get_cpu_capability(), os.cpu_count()
    return [*processor, device, torch.get_num_threads(), threads, sys.version]
