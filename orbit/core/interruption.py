"""Ctrl-C in long work: a flag that is checked between tiles and between stages.

Python drops an exception that a signal handler raises inside a destructor or a callback of the garbage collector.
A handler that also calls :func:`request` ends the work at its next step.
"""

import threading

_requested = threading.Event()


def request() -> None:
    """Ask for the end of the work; called by signal handlers."""
    _requested.set()


def clear() -> None:
    """Withdraw the request, before new work or before the results of interrupted work are written."""
    _requested.clear()


def check() -> None:
    """Raise ``KeyboardInterrupt`` if the end of the work was requested."""
    if _requested.is_set():
        raise KeyboardInterrupt
