"""Description of the machine, for run records and timings."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_info


def describe_machine(threads: int) -> str:
    """The processor, its cores, the threads in use, the system load, and the linear algebra libraries."""
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
