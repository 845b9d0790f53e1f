"""Fitted maps and features that outlive the process that computed them, under keys of all that determines them.

A store is off unless a program opens one with :func:`storing`. Then every feature map asks it before it computes. The
key is derived from the map itself, whatever its components and their parameters are, and from the content of the
points, so it holds for a part of the data, a fold or a second layer as well.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import math
import os
import pickle
import platform
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from io import BytesIO
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import joblib
import numpy as np
import torch
from sklearn.base import clone

from orbit.core.component import Component
from orbit.core.fingerprint import fingerprint

T = TypeVar("T")


class Store(ABC):
    """Keeps results by their keys.

    Attributes
    ----------
    limit_bytes : float
        The largest result that may be kept.
    """

    limit_bytes: float = math.inf

    @abstractmethod
    def get(self, key: str, make: Callable[[], tuple[T, bool]]) -> T:
        """The result kept under ``key``, or that of ``make``, which also says whether it may be kept."""


class InMemory(Store):
    """Keeps copies of the results used last, up to a number of bytes.

    Examples
    --------
    >>> results = InMemory(1e6)
    >>> results.get("key", lambda: ([1, 2], True)), results.get("key", lambda: ("not made again", True))
    ([1, 2], [1, 2])
    """

    def __init__(self, limit_bytes: float) -> None:
        self.limit_bytes = limit_bytes
        self._kept: dict[str, tuple[Any, int]] = {}

    def get(self, key: str, make: Callable[[], tuple[T, bool]]) -> T:
        if key in self._kept:
            self._kept[key] = self._kept.pop(key)  # to the end, as the last one used
            return copy.deepcopy(self._kept[key][0])
        result, may_be_kept = make()
        size = array_bytes(result)
        if may_be_kept and size <= self.limit_bytes:
            while sum(kept for _, kept in self._kept.values()) > self.limit_bytes - size:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = copy.deepcopy(result), size
        return result


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


def in_use() -> bool:
    """Whether there is a store that feature maps use."""
    return _store.get() is not None


def keeps(nbytes: float) -> bool:
    """Whether there is a store that may keep a result of a size."""
    found = _store.get()
    return found is not None and nbytes <= found.limit_bytes


def kept(key: str | None, make: Callable[[], T]) -> T:
    """What the store in use has under ``key``, or else the result of ``make``; always the latter without key or store.

    A result whose computation gave a warning is not kept, so that the warning is given every time.
    """
    store = _store.get()
    return make() if key is None or store is None else store.get(key, lambda: _alone(make))


def key(purpose: Any, feature_map: Any, X: Any) -> str | None:
    """A key equal only if a map of these parameters, fitted to or applied to ``X``, gives the same to the last bit.

    It depends on the classes and parameters of the map and of all its parts, the engine included; the content of the
    files that they read; the code of their packages, and the versions of all others; the processor, the device and the
    number of threads; and the values, shape and dtype of ``X``.

    Parameters
    ----------
    purpose : object
        What is computed, and what it depends on besides.
    feature_map : FeatureMap
        Whether it is fitted makes no difference.
    X : array

    Returns
    -------
    str or None
        None without a store, for a stream, whose batches are not used twice, and where not all of this is known: for
        points that are no array, a ``random_state`` that is no integer, or parameters that cannot be pickled.
    """
    if not in_use() or not isinstance(feature_map.random_state, int):
        return None
    streams = feature_map.engine is not None and feature_map.engine.stream
    if streams or not isinstance(X, np.ndarray) or X.dtype == object:
        return None
    unfitted = clone(feature_map)
    try:
        parts = _parts(unfitted)
        files = sorted({path for part in parts if isinstance(part, Component) for path in part.input_files()})
        packages = {(part if isinstance(part, type | FunctionType) else type(part)).__module__ for part in parts}
        code = _code(frozenset(module.partition(".")[0] for module in packages))
        read = [fingerprint(path).sha256 for path in files]
        described = joblib.hash([purpose, unfitted, read, code, _machine()], hash_name="sha1")
    except (pickle.PicklingError, AttributeError, LookupError, OSError, TypeError):
        return None
    points = hashlib.sha256(f"{described} {X.dtype.str} {X.shape}".encode())
    points.update(np.ascontiguousarray(X).reshape(-1).view(np.uint8).data)
    return points.hexdigest()


def _alone(make: Callable[[], T]) -> tuple[T, bool]:
    """The result of ``make``, which uses no store, so that locks are not nested; and whether it gave no warning."""
    with storing(None):
        result, warned = with_warnings(make)
    return result, not warned


def with_warnings(make: Callable[[], T]) -> tuple[T, bool]:
    """The result of ``make``, and whether it gave warnings, which are given after it.

    >>> with_warnings(lambda: 3)
    (3, False)
    """
    with warnings.catch_warnings(record=True) as caught:
        result = make()
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return result, bool(caught)


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
