"""The data set that was loaded last, kept in memory for the next job of a sweep."""

from __future__ import annotations

import json
from typing import Any

from orbit.core.fingerprint import Fingerprint, digest
from orbit.core.warned import Warned, warn, with_warnings
from orbit.data import Dataset
from orbit.data.base import Loader

_last: dict[tuple[type[Loader], str], tuple[Dataset, Warned]] = {}


def loaded(loader: Loader, settings: dict[str, Any], seed: int, files: list[Fingerprint]) -> Dataset:
    """The data set of a loader: the one loaded last if class, settings, seed and files are the same.

    Warnings that loading gave are given every time. Callers do not change the arrays.

    Parameters
    ----------
    settings : dict
        The section ``dataset`` of the configuration, which the loader was built from.
    files : list of Fingerprint
        What it reads.
    """
    key = type(loader), json.dumps([settings, seed, digest(files)], sort_keys=True, default=str)
    if key not in _last:
        _last.clear()  # before the next one is loaded, so that this function never keeps two in memory
        _last[key] = with_warnings(lambda: loader.load(seed))
    data, warned = _last[key]
    warn(warned)
    return data
