"""Timing of several cases in interleaved rounds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from orbit.core.progress import Progress

# BLAS threads spin for tens of milliseconds after their last product, and would slow down the next case.
PAUSE_S = 0.2
# Shorter cases are repeated for this time, after one call that is not measured: the first after another case has cold
# caches, and after a pause Linux may start both threads of a call on one core, until it moves one of them.
MIN_CASE_S = 0.2


def interleaved(
    cases: Mapping[str, Callable[[], object]], rounds: int, progress: bool = False
) -> dict[str, np.ndarray]:
    """Seconds of every case in every round. Cases are interleaved (A B A B), so that other load affects all equally.

    Each case runs before the first round without being measured. In every round a case shorter than ``MIN_CASE_S``
    runs once without being measured, then for that time, and the mean is taken. ``progress`` shows how many have run.

    Returns
    -------
    dict of str to array, shape (rounds, 2)
        For each case, wall-clock seconds, and processor seconds summed over threads. Processor seconds do not
        include waiting for cores that other processes use.
    """
    repeats: dict[str, int] = {}
    seconds: dict[str, list[np.ndarray]] = {name: [] for name in cases}
    with Progress((1 + rounds) * len(cases), "timing", progress) as shown:
        for name, case in cases.items():
            repeats[name] = _repeats(case)
            shown.step()
        for _ in range(rounds):
            for name, case in cases.items():
                time.sleep(PAUSE_S)
                seconds[name].append(_timed(case, repeats[name]))
                shown.step()
    return {name: np.array(values) for name, values in seconds.items()}


def _repeats(case: Callable[[], object]) -> int:
    """The number of calls that take at least ``MIN_CASE_S``, without the first, which may take ten times as long."""
    start, calls = time.perf_counter(), 0
    case()
    if time.perf_counter() - start >= 10 * MIN_CASE_S:
        return 1
    start = time.perf_counter()
    while calls == 0 or time.perf_counter() - start < MIN_CASE_S:
        case()
        calls += 1
    return calls


def _timed(case: Callable[[], object], repeats: int) -> np.ndarray:
    """Wall-clock and processor seconds of one call, the mean over ``repeats``."""
    if repeats > 1:
        case()
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        case()
    return np.array([time.perf_counter() - clock, time.process_time() - processor]) / repeats


@contextlib.contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """Limit the threads of torch, BLAS and OpenMP to ``threads`` while the body runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        torch.set_num_threads(before)
