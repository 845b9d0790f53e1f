"""The machine that figures were measured on, in words."""

from __future__ import annotations

import os

import numpy as np
import torch
from threadpoolctl import threadpool_info

from runners.measure.machine import hardware


def describe_machine(threads: int) -> str:
    """The processor, its cores, the threads in use, the system load, and the linear algebra libraries."""
    libraries = sorted({f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info()})
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    versions = f"torch {torch.__version__} (MKL: {torch.backends.mkl.is_available()}), numpy {np.__version__}"
    return f"{hardware()}, {threads} threads in use, load {load}; {versions}, {', '.join(libraries)}"
