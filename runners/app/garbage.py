"""Python's garbage collector, off while a program starts: it would search all imported modules many times."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_started = False


@contextlib.contextmanager
def start() -> Iterator[None]:
    """Context manager in which no garbage is collected until :func:`started` is called.

    A process imports some 500,000 objects that the collector tracks, and few of them become garbage.
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
    """Switch the collector on. The objects that exist at the first call in a process are not searched again."""
    global _started
    if not _started:
        gc.freeze()
        _started = True
    gc.enable()
