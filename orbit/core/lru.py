"""The cache of what takes longer to compute again than to hold."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(Generic[K, V]):
    """A cache that drops the entries not used for longest. Several threads may use it. Pickles and copies are empty.

    Parameters
    ----------
    limit_bytes : float
        For all entries together; one that is larger alone is not cached.
    most : float
        Largest number of entries.

    Attributes
    ----------
    nbytes : float
        Bytes of all entries.

    Examples
    --------
    >>> squares = Lru(most=2)
    >>> [squares.get(n, lambda: n**2, nbytes=lambda value: 8) for n in (2, 3, 2, 4)]
    [4, 9, 4, 16]
    >>> squares.find(2), squares.find(3), squares.nbytes
    (4, None, 16.0)
    """

    def __init__(self, limit_bytes: float = math.inf, most: float = math.inf) -> None:
        self.limit_bytes, self.most, self.nbytes = limit_bytes, most, 0.0
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V], nbytes: Callable[[V], float] = attrgetter("nbytes")) -> V:
        """The value of a key, or that of ``make``, of which ``nbytes`` gives the bytes."""
        found = self.find(key)
        if found is None:
            found = make()
            self.put(key, found, nbytes(found))
        return found

    def find(self, key: K) -> V | None:
        """The value of a key, now the one used last; None if there is none."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: K, value: V, nbytes: float) -> None:
        """Cache a value, in place of that of the same key, and of others if it has no room beside them."""
        with self._lock:
            self.nbytes -= self._entries.pop(key, (None, 0.0))[1]
            if nbytes > self.limit_bytes:
                return
            self._entries[key] = value, nbytes
            self.nbytes += nbytes
            while len(self._entries) > self.most or self.nbytes > self.limit_bytes:
                self.nbytes -= self._entries.popitem(last=False)[1][1]

    def drop(self, key: K) -> None:
        """Forget the value of a key, if there is one."""
        with self._lock:
            self.nbytes -= self._entries.pop(key, (None, 0.0))[1]

    def values(self) -> list[V]:
        """All values; the one used last is the last."""
        with self._lock:
            return [value for value, _ in self._entries.values()]

    def __reduce__(self) -> tuple[Any, ...]:
        return Lru, (self.limit_bytes, self.most)
