"""Warnings that are kept beside a result, and given again wherever it is used."""

import warnings
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
# Warnings: text, category, file and line of each.
Warned = tuple[tuple[str, type[Warning], str, int], ...]


def with_warnings(make: Callable[[], T]) -> tuple[T, Warned]:
    """The result of ``make``, and its warnings, which are not given.

    >>> with_warnings(lambda: 3)
    (3, ())
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # whoever gives them decides which are shown
        result = make()
    return result, tuple((str(one.message), one.category, one.filename, one.lineno) for one in caught)


def warn(warned: Warned) -> None:
    """Give warnings, as those of :func:`with_warnings`."""
    for text, category, filename, line in warned:
        warnings.warn_explicit(text, category, filename, line)
