"""Threads that do not wait for each other: each takes tiles of work, with single-threaded linear algebra in them."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# torch.set_num_threads is one setting of the process that every new thread starts with. A thread that is started
# while others are single-threaded would take their 1 for the default, and set it for all when it is done. So: the
# settings that single_threaded blocks in progress will restore, and which threads have seen the true one.
_TO_RESTORE: list[int] = []
_THREAD = threading.local()

# Up to so many multiplications, some milliseconds of them, the threads of a linear algebra library gain nothing.
_FEW = 1e9


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """One thread for torch's operations inside the ``with`` statement.

    torch's own threads wait for each other at the end of every operation. For small ones, or where other
    processes use the cores, that takes longer than the operation.
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
    """One thread for NumPy, SciPy and torch inside the ``with`` statement, if there is little to compute."""
    if multiplications > _FEW:
        yield
        return
    with single_threaded(), _libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def in_threads(work: Callable[[T], object], tiles: Iterable[T], count: int | None = None) -> None:
    """``work`` on every tile, by threads that each take the next one; the calling thread is one of them.

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

    def help_out() -> None:
        _THREAD.has_default = True
        torch.set_num_threads(1)  # or a batched product that comes first starts threads of its own
        take_tiles()

    try:
        with single_threaded(), _threads(help_out, min(count or default_threads(), len(tasks)) - 1):
            take_tiles()
        if errors:
            raise errors[0]
    finally:
        errors.clear()  # an error that its own traceback refers to would keep the buffers of its tile


@contextlib.contextmanager
def _threads(call: Callable[[], object], count: int) -> Iterator[None]:
    """``call`` in ``count`` other threads, which are waited for at the end of the ``with`` statement.

    They are daemons, unlike those of ``concurrent.futures``: a process that ends does not wait for a daemon's tiles.
    """
    ended: list[threading.Event] = []

    def run(end: threading.Event) -> None:
        try:
            call()
        finally:
            end.set()

    with contextlib.suppress(RuntimeError):  # the system gives no more threads, or the interpreter is shutting down
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
            _wait(ended)  # they still write to the result; who presses Ctrl-C twice does not wait
            raise


def _wait(ended: list[threading.Event]) -> None:
    """Not ``Thread.join``, which returns at once where Ctrl-C has interrupted it before."""
    for end in ended:
        end.wait()
