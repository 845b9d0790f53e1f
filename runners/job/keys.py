"""What features depend on, in one key: components, parameters, files, code, machine, and the kind of points."""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import platform
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from sklearn.base import clone

from orbit.approx import FeatureMap
from orbit.core.component import Component
from orbit.core.distinct import bytes_of_rows
from orbit.core.fingerprint import fingerprint
from orbit.registry import plugins


def digest(content: Any) -> str | None:
    """A digest of an object, equal only for equal content; None where there is none, as for functions without names."""
    try:
        return joblib.hash(content, hash_name="sha1")
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def key(purpose: Any, features: FeatureMap, X: Any) -> str | None:
    """A key equal only if a map of these parameters, fitted to or applied to points, gives the same to the last bit.

    It depends on the classes and parameters of the map and of all its parts, the engine included; the content of the
    files that they read; the code of their packages, and the versions of all others; the processor, the device and the
    number of threads; and the dtype of ``X`` and the shape of its points, not their values.

    Parameters
    ----------
    purpose : object
        What is computed, and what it depends on besides; None gives no key.
    features : FeatureMap
        Whether it is fitted makes no difference.
    X : array

    Returns
    -------
    str or None
        None where not all of this is known: for points that are no array, a ``random_state`` that is no integer, or
        parameters that cannot be pickled.
    """
    if purpose is None or not isinstance(features.random_state, int):
        return None
    if not isinstance(X, np.ndarray) or X.dtype == object:
        return None
    unfitted = clone(features)
    parts = [part for part in [unfitted, *unfitted.get_params().values()] if isinstance(part, Component)]
    try:
        files = sorted({path for part in parts for path in part.input_files()})
        read = [fingerprint(path).sha256 for path in files]
    except OSError:
        return None
    modules = [base.__module__ for part in parts for base in type(part).__mro__] + [one.module for one in plugins()]
    code = _code(frozenset(module.partition(".")[0] for module in modules))
    return digest([purpose, unfitted, read, code, _machine(), X.dtype.str, X.shape[1:]])


def with_points(key: str, X: np.ndarray) -> str:
    """A key that depends on the values of all points as well."""
    found = hashlib.sha256(f"{key} {len(X)}".encode())
    found.update(bytes_of_rows(X).data)
    return found.hexdigest()


@functools.cache
def _code(packages: frozenset[str]) -> str:
    """A digest of the source of packages that are not installed, and of the names and versions of those that are."""
    installed = [found for folder in sys.path for found in Path(folder).glob("*.dist-info")]
    sites = {found.parent for found in installed}
    digest = hashlib.sha256(str(sorted((found.name, found.stat().st_mtime_ns) for found in installed)).encode())
    for name in sorted((packages - sys.stdlib_module_names) & sys.modules.keys()):
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
