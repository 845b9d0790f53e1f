"""Threads that do not wait for each other: one for each tile of work, and single-threaded linear algebra in them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import torch


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


def worker_threads(count: int) -> ThreadPoolExecutor:
    """Threads whose linear algebra is single-threaded.

    A new thread learns of ``torch.set_num_threads`` only by some operations: a batched product in it that comes first
    starts threads of its own, and takes six times as long.
    """
    return ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
