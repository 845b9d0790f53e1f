"""Environment variables of other libraries, checked before the import that reads them."""

from __future__ import annotations

import os

from orbit.core.errors import InputError

_NUMBA_THREADS = "NUMBA_NUM_THREADS"


def check_environment() -> None:
    """Raise ``InputError`` if an environment variable has a value that numba does not take.

    >>> check_environment()
    """
    value = os.environ.get(_NUMBA_THREADS)
    if value is not None and not _is_positive_integer(value):
        raise InputError(f"environment variable {_NUMBA_THREADS}: expected an integer >= 1, or unset, found {value!r}")


def _is_positive_integer(text: str) -> bool:
    try:
        return int(text) >= 1
    except ValueError:
        return False
