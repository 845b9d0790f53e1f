"""Threads that do not wait for each other: one for each tile of work, and single-threaded linear algebra in them."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# What the threads that are single-threaded now had before, and which threads have a number that nobody else set.
_BEFORE: list[int] = []
_KNOWN = threading.local()

# Up to so many multiplications, some milliseconds of them, the threads of a linear algebra library gain nothing.
_FEW = 1e9


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """torch's own threads wait for each other at the end of every operation: for small ones, or where other work
    takes the cores, longer than the operation takes.
    """
    before = usual_threads()
    _BEFORE.append(before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _BEFORE.remove(before)


def usual_threads() -> int:
    """``torch.get_num_threads()``; but a thread that was started while others are :func:`single_threaded` would take
    their one for its own number, and hand it on when it is done.
    """
    if not hasattr(_KNOWN, "number_is_its_own"):
        _KNOWN.number_is_its_own = True
        torch.set_num_threads(max(_BEFORE, default=torch.get_num_threads()))
    return torch.get_num_threads()


@contextlib.contextmanager
def threads_for(multiplications: float) -> Iterator[None]:
    """For NumPy, SciPy and torch alike: one thread where so little is to be done."""
    if multiplications > _FEW:
        yield
        return
    with single_threaded(), _libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def in_threads(work: Callable[[T], object], tiles: Iterable[T], count: int | None = None) -> None:
    """``work`` on every tile, by threads that each take the next one; the thread that calls is one of them.

    Parameters
    ----------
    work : called with one tile
        Linear algebra in it is single-threaded.
    tiles : in the order in which they are started
    count : int or None
        Threads; None is as many as torch would use.

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

    helpers = min(count or usual_threads(), len(tasks)) - 1
    try:
        with single_threaded(), _HELPERS.helping(take_tiles, helpers):
            take_tiles()
        if errors:
            raise errors[0]
    finally:
        # what helpers have had no time for is kept until they have; and an error that is reached from its own
        # traceback, with all else there, until the garbage collector comes
        tasks.clear()
        errors.clear()


class _Helpers:
    """Threads whose linear algebra is single-threaded, kept for the next call: a new one costs a millisecond.

    A new thread learns of ``torch.set_num_threads`` only by some operations: a batched product in it that comes first
    starts threads of its own, and takes six times as long. They are daemons, which help as long as there is anyone to
    help: a pool of the standard library takes no more calls once the main thread has ended, and keeps a process that
    wants to end until all its work is done.
    """

    def __init__(self) -> None:
        self._lock, self._count = threading.Lock(), 0
        self._asked = SimpleQueue[tuple[Future, Callable[[], object]]]()

    @contextlib.contextmanager
    def helping(self, call: Callable[[], object], times: int) -> Iterator[None]:
        """``call`` by so many of them, if they are free before the end; none of it goes on after that."""
        asked = self._ask(call, times)
        try:
            yield
        finally:
            started = [future for future in asked if not future.cancel()]
            try:
                wait(started)
            except KeyboardInterrupt:
                wait(started)  # or they would go on writing; who presses it twice does not wait
                raise

    def _ask(self, call: Callable[[], object], times: int) -> list[Future]:
        with self._lock, contextlib.suppress(RuntimeError):  # the system may give no more threads
            while self._count < times:
                is_ready = threading.Event()
                threading.Thread(target=self._serve, args=(is_ready,), name="orbit", daemon=True).start()
                is_ready.wait()
                self._count += 1
        asked = [Future[None]() for _ in range(min(times, self._count))]
        for future in asked:
            self._asked.put((future, call))
        return asked

    def _serve(self, is_ready: threading.Event) -> None:
        _KNOWN.number_is_its_own = True
        torch.set_num_threads(1)
        is_ready.set()
        while True:
            future, call = self._asked.get()
            if future.set_running_or_notify_cancel():
                call()
                future.set_result(None)


_HELPERS = _Helpers()


def _start_anew() -> None:
    global _HELPERS
    _HELPERS = _Helpers()


if hasattr(os, "register_at_fork"):  # not on Windows, which never forks
    os.register_at_fork(after_in_child=_start_anew)
