"""Threads that process tiles of work without synchronisation, with single-threaded linear algebra."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import ClassVar, TypeVar

import torch
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# torch.set_num_threads sets a value of the process that every new thread starts with. A thread started while others
# are single-threaded would take their 1 for the default, and restore it for all at the end. Therefore we store the
# values that active single_threaded blocks will restore, and which threads have seen the true default.
_TO_RESTORE: list[int] = []
_THREAD = threading.local()

# How long a fork waits for idle threads to be gone.
_GONE_S = 1.0

# Number of multiplications, a few milliseconds, up to which several threads do not speed up linear algebra.
_SMALL_PRODUCT = 1e9


class _Helper(threading.Thread):
    """A thread that runs what it is given, and is kept for the next call: MKL holds memory for each that ever used it.

    It is a daemon, unlike the threads of ``concurrent.futures``, so that an exiting process does not wait for it.
    """

    idle: ClassVar[list[_Helper]] = []

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.given: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self.start()

    @classmethod
    def take(cls) -> _Helper:
        """One that has nothing to do; ``RuntimeError`` if the system gives no more threads."""
        try:
            return cls.idle.pop()
        except IndexError:
            return cls()

    def run(self) -> None:
        _THREAD.has_default = True
        torch.set_num_threads(1)  # otherwise a batched product before any other starts new threads
        while (call := self.given.get()) is not None:
            call()
            del call  # and the arrays that it refers to

    @classmethod
    def end_idle(cls) -> None:
        """End the threads that have nothing to do, before a fork, which would not have them.

        MKL holds locks while it releases the memory of a thread, and a process that is forked at that moment would
        wait for these locks for ever. Only Linux shows which threads exist; on others there is nothing to wait for.
        """
        ending, until = list[int | None](), time.monotonic() + _GONE_S
        while cls.idle:
            helper = cls.idle.pop()
            helper.given.put(None)
            ending.append(helper.native_id)
        while any(os.path.exists(f"/proc/self/task/{thread}") for thread in ending) and time.monotonic() < until:
            time.sleep(0.0005)


def _single_after_fork() -> None:
    """A process forked from one in which torch has used threads has none of them, and would wait for them for ever."""
    _TO_RESTORE.clear()
    _Helper.idle.clear()
    _BLAS.lock = threading.Lock()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_Helper.end_idle, after_in_child=_single_after_fork)


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
    with single_threaded(), _BLAS.single_threaded():
        yield


class _Blas:
    """The libraries behind NumPy and SciPy, whose number of threads belongs to the process, like torch's."""

    def __init__(self) -> None:
        self.lock, self._users = threading.Lock(), 0

    @contextlib.contextmanager
    def single_threaded(self) -> Iterator[None]:
        """Context manager in which they use one thread; the last of several that overlap restores their number."""
        with self.lock:
            if not self._users:
                self._limits = _libraries().limit(limits=1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self.lock:
                self._users -= 1
                if not self._users:
                    self._limits.restore_original_limits()


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


_BLAS = _Blas()


def in_threads(
    work: Callable[[T], object],
    tiles: Iterable[T],
    count: int | None = None,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Call ``work`` on every tile, by threads that each take the next tile; the calling thread is one of them.

    Parameters
    ----------
    work : called with one tile
        Linear algebra of torch in it is single-threaded. That of NumPy keeps its own threads: see :func:`threads_for`.
    tiles : in the order in which they are started
    count : int or None
        Number of threads; None is the number that torch would use.
    done : called after each tile, such as ``Progress.step``

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
                done()
        except BaseException as error:
            errors.append(error)

    count = min(count or default_threads(), len(tasks))  # before the default is one
    try:
        with single_threaded(), _helped(take_tiles, count - 1):
            take_tiles()
        if errors:
            raise errors[0]
    finally:
        errors.clear()  # an error referenced by its own traceback would keep the buffers of its tile alive


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, none of them None, each made by another thread while the one before it is used.

    >>> list(one_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    context = contextvars.copy_context()  # of this thread, such as NumPy's handling of errors

    def following() -> T | None:
        return context.run(lambda: next(items, None))

    with ThreadPoolExecutor(1) as thread:
        ahead = thread.submit(following)
        while (item := ahead.result()) is not None:
            ahead = thread.submit(following)
            yield item


@contextlib.contextmanager
def _helped(call: Callable[[], object], count: int) -> Iterator[None]:
    """Context manager that runs ``call`` in ``count`` other threads, and waits for them at the end."""
    ended: list[threading.Event] = []

    def run(helper: _Helper, end: threading.Event) -> None:
        try:
            call()
        finally:
            _Helper.idle.append(helper)
            end.set()

    with contextlib.suppress(RuntimeError):  # no more threads available, or the interpreter is shutting down
        for _ in range(count):
            helper, end = _Helper.take(), threading.Event()
            helper.given.put(functools.partial(run, helper, end))
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
