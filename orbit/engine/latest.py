"""The latest result of something costly, for the next call that would make the same again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Latest:
    """Keeps one result, with what it was made from.

    Never part of a pickle or of a copy: those start empty.

    Examples
    --------
    >>> latest, of = Latest(), [3, 4]
    >>> latest.get((of,), (2,), lambda: sum(of) ** 2)
    49
    >>> latest.get((of,), (2,), lambda: "not made again")
    49
    >>> latest.get(([3, 4],), (2,), lambda: "made of another list")
    'made of another list'
    """

    def __init__(self) -> None:
        self._entry: tuple[tuple, tuple, Any] | None = None

    def get(
        self, same: tuple, equal: tuple, make: Callable[[], Any], worth: Callable[[Any], bool] = lambda made: True
    ) -> Any:
        """What ``make`` returns, or returned last time.

        Parameters
        ----------
        same : objects that must be the very same as last time
        equal : values that must be equal to those of last time
        make : called without arguments
        worth : whether to keep what was made
        """
        entry = self._entry
        if entry is not None and entry[1] == equal and all(a is b for a, b in zip(entry[0], same, strict=True)):
            return entry[2]
        made = make()
        self._entry = (same, equal, made) if worth(made) else None
        return made

    def __reduce__(self) -> tuple:
        return Latest, ()
