"""Warnings that are kept beside a result, and given again wherever it is used."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from orbit.core.words import worded, wording

T = TypeVar("T")
# Warnings: text, category, file and line of each.
Warned = tuple[tuple[str, type[Warning], str, int], ...]


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
