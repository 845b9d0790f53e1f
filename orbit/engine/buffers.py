"""Working memory of threads, kept for the next call.

The buffers of a map take at most 1/16 of ``Engine.memory``, and so do its templates, as
tensors and in Fourier space, which are in a :class:`~orbit.core.lru.Lru`; neither is
pickled. Without both, features took 1.1 to 3 times the processor time; without the
buffers alone, whose pages the operating system would map and clear in every call, up to
1.2 times. Threads are not kept: that saves nothing more.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


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
