"""Fair timing of several cases."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from threadpoolctl import threadpool_limits

# BLAS threads spin for tens of milliseconds after their last product, on a core that the next case needs.
PAUSE_S = 0.2
# A shorter case is repeated for this time: a single call would be timed with cold caches.
MIN_CASE_S = 0.2


def interleaved(cases: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of every case in every round, in turn (A B A B), so that other load on the machine affects all alike.

    Each case runs before the first round without being measured. A case shorter than ``MIN_CASE_S`` is repeated
    for that time in every round, and the mean taken.

    Returns
    -------
    dict of str to array, shape (rounds, 2)
        For each case wall-clock seconds, and processor seconds summed over threads. The latter do not include
        waiting for cores that other processes use.
    """
    repeats = {name: _repeats(case) for name, case in cases.items()}
    seconds: dict[str, list[np.ndarray]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            time.sleep(PAUSE_S)
            seconds[name].append(_timed(case, repeats[name]))
    return {name: np.array(values) for name, values in seconds.items()}


def _repeats(case: Callable[[], object]) -> int:
    """How many calls take at least ``MIN_CASE_S``, the slow first one among them."""
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < MIN_CASE_S:
        case()
        calls += 1
    return calls


def _timed(case: Callable[[], object], repeats: int) -> np.ndarray:
    """Wall-clock and processor seconds of one call."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        case()
    return np.array([time.perf_counter() - clock, time.process_time() - processor]) / repeats


@contextlib.contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """Limit the threads of torch and of the BLAS and OpenMP libraries to ``threads``, while the body runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        torch.set_num_threads(before)
