"""Threads that process tiles of work without synchronisation, with single-threaded linear algebra."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# torch.set_num_threads sets a value of the process that every new thread starts with. A thread started while others
# are single-threaded would take their 1 for the default, and restore it for all at the end. Therefore we store the
# values that active single_threaded blocks will restore, and which threads have seen the true default.
_TO_RESTORE: list[int] = []
_THREAD = threading.local()

# The system's numbers of threads that were started last, and how long a fork waits for them to be gone.
_STARTED: deque[int] = deque(maxlen=64)
_GONE_S = 1.0

# Number of multiplications, a few milliseconds, up to which several threads do not speed up linear algebra.
_SMALL_PRODUCT = 1e9


def _single_after_fork() -> None:
    """A process forked from one in which torch has used threads has none of them, and would wait for them for ever."""
    _TO_RESTORE.clear()
    torch.set_num_threads(1)


def _wait_until_gone() -> None:
    """Wait for threads that have done their work, but are still ending.

    MKL holds locks while it releases the memory of a thread, and a process that is forked at that moment would wait
    for these locks for ever. Only Linux shows which threads exist; on others there is nothing to wait for.
    """
    until = time.monotonic() + _GONE_S
    while _STARTED and time.monotonic() < until:
        if os.path.exists(f"/proc/self/task/{_STARTED[-1]}"):
            time.sleep(0.0005)
        else:
            _STARTED.pop()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_wait_until_gone, after_in_child=_single_after_fork)


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Context manager in which torch's operations use one thread.

    torch's threads synchronise at the end of every operation. For small operations, or on shared cores, that takes
    longer than the operation.
    """
    before = default_threads()
    _TO_RESTORE.append(before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _TO_RESTORE.remove(before)


def default_threads() -> int:
    """``torch.get_num_threads()``, also in a thread that was started during :func:`single_threaded` in another."""
    if "has_default" not in _THREAD.__dict__:
        _THREAD.has_default = True
        torch.set_num_threads(max(_TO_RESTORE, default=torch.get_num_threads()))
    return torch.get_num_threads()


@contextlib.contextmanager
def threads_for(multiplications: float) -> Iterator[None]:
    """Context manager in which NumPy, SciPy and torch use one thread if there are few ``multiplications``."""
    if multiplications > _SMALL_PRODUCT:
        yield
        return
    with single_threaded(), _libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def in_threads(work: Callable[[T], object], tiles: Iterable[T], count: int | None = None) -> None:
    """Call ``work`` on every tile, by threads that each take the next tile; the calling thread is one of them.

    Parameters
    ----------
    work : called with one tile
        Linear algebra in it is single-threaded.
    tiles : in the order in which they are started
    count : int or None
        Number of threads; None is the number that torch would use.

    Raises
    ------
    Whatever ``work`` raises first. No tile is started after that, or after Ctrl-C.
    """
    tasks = [functools.partial(work, tile) for tile in tiles]
    remaining, errors = iter(tasks), list[BaseException]()

    def take_tiles() -> None:
        try:
            for task in remaining:
                if errors:
                    return
                task()
        except BaseException as error:
            errors.append(error)

    def help_out() -> None:
        _THREAD.has_default = True
        torch.set_num_threads(1)  # otherwise a batched product before any other starts new threads
        take_tiles()

    try:
        with single_threaded(), _threads(help_out, min(count or default_threads(), len(tasks)) - 1):
            take_tiles()
        if errors:
            raise errors[0]
    finally:
        errors.clear()  # an error referenced by its own traceback would keep the buffers of its tile alive


@contextlib.contextmanager
def _threads(call: Callable[[], object], count: int) -> Iterator[None]:
    """Context manager that runs ``call`` in ``count`` other threads, and waits for them at the end.

    They are daemons, unlike the threads of ``concurrent.futures``, so that an exiting process does not wait for them.
    """
    ended: list[threading.Event] = []

    def run(end: threading.Event) -> None:
        _STARTED.append(threading.get_native_id())
        try:
            call()
        finally:
            end.set()

    with contextlib.suppress(RuntimeError):  # no more threads available, or the interpreter is shutting down
        for _ in range(count):
            end = threading.Event()
            threading.Thread(target=run, args=(end,), daemon=True).start()
            ended.append(end)
    try:
        yield
    finally:
        try:
            _wait(ended)
        except KeyboardInterrupt:
            _wait(ended)  # they still write to the result; a second Ctrl-C ends the wait
            raise


def _wait(ended: list[threading.Event]) -> None:
    """Wait for the events; ``Thread.join`` would return at once if Ctrl-C has interrupted it before."""
    for end in ended:
        end.wait()
