"""Python's garbage collector, which would search all modules many times while they are imported."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_started = False


@contextlib.contextmanager
def start() -> Iterator[None]:
    """Context manager of a program, in which no garbage is collected until :func:`started`.

    The first run of a process imports some 500,000 objects, none of which becomes garbage.
    """
    if _started or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def started() -> None:
    """Collect garbage from here on, except among the objects that exist when a process calls this first."""
    global _started
    if not _started:
        gc.freeze()
        _started = True
    gc.enable()
