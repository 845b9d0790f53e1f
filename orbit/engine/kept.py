"""All state that outlives a call: the templates of a map, ready for its next points, and working memory.

A feature map keeps its templates as tensors and, on the spectral path, in Fourier
space, with the buffers of its threads. Templates and buffers each take at most 1/16 of
``Engine.memory``; neither is part of a pickle. Measured by ``experiment=bench_state``
on two cores: without both, the polar features of ``bench_scipy`` take 1.5 to 3 times
the processor time and those of ``bench_spectral`` 1.1 times; without the buffers alone,
whose pages the operating system maps and clears in every call, those of ``bench_scipy``
1.2 times. Threads kept between calls save nothing beside that, so none are.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Latest:
    """Keeps one result, with what it was made from. Never part of a pickle or of a copy: those start empty.

    Examples
    --------
    >>> latest = Latest()
    >>> latest.get("float32", lambda: [1.0, 2.0])
    [1.0, 2.0]
    >>> latest.get("float32", lambda: "not made again")
    [1.0, 2.0]
    >>> latest.get("float64", lambda: "made for another key")
    'made for another key'
    """

    def __init__(self) -> None:
        self._entry: tuple[Any, Any] | None = None

    def get(self, key: Any, make: Callable[[], Any], worth: Callable[[Any], bool] = lambda made: True) -> Any:
        """What ``make`` returns, or what it returned last time if ``key`` is equal to that of then.

        Parameters
        ----------
        key : what the result depends on
        make : called without arguments
        worth : whether to keep what was made
        """
        entry = self._entry
        if entry is not None and entry[0] == key:
            return entry[1]
        made = make()
        self._entry = (key, made) if worth(made) else None
        return made

    def __reduce__(self) -> tuple:
        return Latest, ()


class Reused(Generic[T]):
    """Objects that threads work with, one for each thread of a call, handed to the threads of the next call."""

    def __init__(self) -> None:
        self._items: list[T] = []

    @contextlib.contextmanager
    def per_thread(
        self, make: Callable[[], T], fits: Callable[[T], bool] = lambda kept: True, at_most: int = 0
    ) -> Iterator[Callable[[], T]]:
        """A function that gives each thread that calls it one object, kept or new.

        Parameters
        ----------
        make : makes a new one
        fits : whether a kept one will do
        at_most : how many to keep; none of a call that ends in an error
        """
        local, taken = threading.local(), list[T]()

        def get() -> T:
            if "item" not in local.__dict__:
                local.item = self._take(fits) or make()
                taken.append(local.item)
            return local.item

        yield get
        self._items = (taken + self._items)[:at_most]

    def _take(self, fits: Callable[[T], bool]) -> T | None:
        with contextlib.suppress(IndexError):  # list.pop is atomic: calls from several threads never share an object
            item = self._items.pop()
            return item if fits(item) else None
        return None
