"""Threads that do not wait for each other: one for each tile of work, and single-threaded linear algebra in them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import torch
from threadpoolctl import ThreadpoolController

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


def worker_threads(count: int) -> ThreadPoolExecutor:
    """Threads whose linear algebra is single-threaded.

    A new thread learns of ``torch.set_num_threads`` only by some operations: a batched product in it that comes first
    starts threads of its own, and takes six times as long.
    """
    return ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
