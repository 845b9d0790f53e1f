"""Timing two things fairly, and saying on which machine."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_info, threadpool_limits

# Threads of a BLAS go on spinning for tens of milliseconds after their last product, on a core of the next case.
_SETTLE = 0.2
# A short case runs again and again for so long: once, it is timed on cold caches and a processor at rest.
_LEAST = 0.2


def interleaved(cases: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of every case in every round, A B A B after one unmeasured round, so that a busy minute hits all alike.

    A case that takes less than 0.2 s is run several times in a row, and the mean taken.

    Returns
    -------
    dict of name -> array, shape (rounds, 2): on the clock, and of processor time over all threads, which waiting
    for cores that others use does not add to
    """
    repeats = {}
    for name, case in cases.items():
        clock, repeats[name] = time.perf_counter(), 0
        while repeats[name] == 0 or time.perf_counter() - clock < _LEAST:  # the first call is slower than others
            case()
            repeats[name] += 1
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            time.sleep(_SETTLE)
            clock, processor = time.perf_counter(), time.process_time()
            for _ in range(repeats[name]):
                case()
            elapsed = time.perf_counter() - clock, time.process_time() - processor
            seconds[name].append((elapsed[0] / repeats[name], elapsed[1] / repeats[name]))
    return {name: np.array(values) for name, values in seconds.items()}


@contextlib.contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """Every library's own threads limited to so many."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        torch.set_num_threads(before)


def describe_machine(threads: int) -> str:
    """The processor, its cores, the threads in use, the linear algebra libraries and the load of other work."""
    libraries = sorted({f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info()})
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    versions = f"torch {torch.__version__} (MKL: {torch.backends.mkl.is_available()}), numpy {np.__version__}"
    return f"{hardware()}, {threads} threads in use, load {load}; {versions}, {', '.join(libraries)}"


def hardware() -> str:
    """The processor, the GPU if there is one, and the number of cores."""
    gpu = f"{torch.cuda.get_device_name()}, " if torch.cuda.is_available() else ""
    return f"{_processor()}, {gpu}{os.cpu_count()} cores"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
