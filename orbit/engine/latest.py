"""The only state that outlives a call: the latest result of a costly step, for the next call that needs the same.

A feature map keeps its templates as tensors and, on the spectral path, in Fourier
space, within 1/16 of the engine's memory. Without that the polar features of
experiment=bench_scipy take about twice as long, those of experiment=bench_spectral
a tenth longer (experiment=bench_state).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
