"""Processes of a run or sweep: they end when they are told to, and with the process that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

from orbit.core import interruption
from runners.tracking.sweep import PARENT_PID_ENV

#: Seconds in which an interrupted job may write and upload what it has.
GRACE_S = 10.0

_POLL_S = 0.5

_working = threading.Event()
_watching = threading.Event()


def end_on_signals() -> None:
    """Let Ctrl-C and SIGTERM raise ``KeyboardInterrupt`` here and, if that is lost, at the next step of the work."""
    interruption.clear()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGTERM, _interrupt)


@contextlib.contextmanager
def job() -> Iterator[None]:
    """Run a job. In a worker of a sweep, signals end it, and so does the end of the sweep's own process."""
    if os.environ.get(PARENT_PID_ENV) == str(os.getppid()) and not _watching.is_set():
        _watching.set()
        end_on_signals()
        threading.Thread(target=_end_with, args=(os.getppid(),), name="parent", daemon=True).start()
    _working.set()
    try:
        yield
    finally:
        _working.clear()


def _interrupt(signum: int, frame: object) -> None:
    interruption.request()
    raise KeyboardInterrupt


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, after a job in progress has written what it has."""
    while os.getppid() == parent:
        time.sleep(_POLL_S)
    if _working.is_set():
        os.kill(os.getpid(), signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while _working.is_set() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    os._exit(1)
