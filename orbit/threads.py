"""Threads that do not wait for each other: one for each tile of work, and single-threaded linear algebra in them."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# Up to so many multiplications, some milliseconds of them, the threads of a linear algebra library gain nothing.
_FEW = 1e9


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """torch's own threads wait for each other at the end of every operation: for small ones, or where other work
    takes the cores, longer than the operation takes.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
    remaining, stop = iter(list(tiles)), threading.Event()

    def take_tiles() -> None:
        try:
            for tile in remaining:
                if stop.is_set():
                    return
                work(tile)
        except BaseException:
            stop.set()
            raise

    helpers = (count or torch.get_num_threads()) - 1
    with single_threaded():
        helping = [_helpers(helpers).submit(take_tiles) for _ in range(helpers)]
        try:
            take_tiles()
        finally:
            # where other work has all helpers, this thread did everything
            started = [future for future in helping if not future.cancel()]
            wait(started)
        for future in started:
            future.result()


@functools.cache
def _helpers(count: int) -> ThreadPoolExecutor:
    """Threads whose linear algebra is single-threaded, kept for the next call: a new one costs a millisecond.

    A new thread learns of ``torch.set_num_threads`` only by some operations: a batched product in it that comes first
    starts threads of its own, and takes six times as long.
    """
    return ThreadPoolExecutor(count, "orbit", initializer=torch.set_num_threads, initargs=(1,))


if hasattr(os, "register_at_fork"):  # not on Windows, which never forks
    os.register_at_fork(after_in_child=_helpers.cache_clear)
