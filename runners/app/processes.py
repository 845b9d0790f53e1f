"""Processes of a run or sweep: they end when they are told to, and with the process that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

from orbit.core import interruption, ranks

#: Seconds in which an interrupted job may write and upload what it has.
GRACE_S = 10.0

_POLL_S = 0.5

_working = threading.Event()
_watching = threading.Event()
_ended = threading.Event()


def end_on_signals() -> None:
    """Let Ctrl-C and SIGTERM raise ``KeyboardInterrupt`` here and, if that is lost, at the next step of the work.

    In a job of several processes, SIGTERM raises ``ProcessLostError``: a run that torchrun ends has failed.
    """
    interruption.clear()
    _ended.clear()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN if _watching.is_set() else _interrupt)
        signal.signal(signal.SIGTERM, _interrupt)


def end_with(parent: int) -> None:
    """Make this process a worker of a sweep: it ends with the process of the id ``parent`` on the same machine.

    Ctrl-C in a terminal reaches both; the parent then ends its workers, by one SIGTERM.
    """
    if not _watching.is_set():
        _watching.set()
        end_on_signals()
        threading.Thread(target=_end_with, args=(parent,), name="parent", daemon=True).start()


@contextlib.contextmanager
def job() -> Iterator[None]:
    """Context manager around a job: a worker whose parent has ended still lets it write and upload its results."""
    _working.set()
    try:
        yield
    finally:
        _working.clear()


def lost(error: Exception) -> ranks.ProcessLostError | None:
    """The loss of another process, if it caused ``error``, which can be any if an import was interrupted; else None."""
    if isinstance(error, ranks.ProcessLostError):
        return error
    return _ended_by_torchrun() if _ended.is_set() else None


def _ended_by_torchrun() -> ranks.ProcessLostError:
    return ranks.ProcessLostError(
        f"process {ranks.rank()} of {ranks.world_size()} was ended by torchrun, which does so when "
        "another one has died; start the job again"
    )


def _interrupt(signum: int, frame: object) -> None:
    if signum == signal.SIGTERM and ranks.world_size() > 1:
        _ended.set()
        raise _ended_by_torchrun()
    interruption.request()
    raise KeyboardInterrupt


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, after a job in progress has written what it has."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(parent)
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_POLL_S)
    if _working.is_set():
        os.kill(os.getpid(), signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while _working.is_set() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    os._exit(1)
