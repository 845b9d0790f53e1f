"""State kept between calls: the templates of a map, and working memory.

A feature map keeps its templates as tensors and, on the spectral path, in Fourier
space, with the buffers of its threads. Templates and buffers each take at most 1/16 of
``Engine.memory``; neither is pickled. Without both, features took 1.1 to 3 times
the processor time; without the buffers alone, whose pages the operating system
would map and clear in every call, up to 1.2 times. Threads are not kept: that saves
nothing more.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Latest:
    """A cache of one result and its key. Pickles and copies of it start empty.

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
        """The result of ``make``, or the kept one if its key equals ``key``.

        Parameters
        ----------
        key : determines the result
        make : called without arguments
        worth : whether to keep a result
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
    """Objects used by one thread each, such as buffers, reused by the threads of the next call."""

    def __init__(self) -> None:
        self._items: list[T] = []

    @contextlib.contextmanager
    def per_thread(
        self, make: Callable[[], T], fits: Callable[[T], bool] = lambda kept: True, at_most: int = 0
    ) -> Iterator[Callable[[], T]]:
        """Context manager that gives a function that returns one object, kept or new, for each calling thread.

        Parameters
        ----------
        make : makes a new object
        fits : whether a kept object can be used
        at_most : number of objects to keep; none if the call ends in an error
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
