"""Description of the machine and of the code, for run records."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

import torch

from orbit.version import __version__

_PACKAGES = ("numpy", "torch", "scikit-learn", "mlflow", "hydra-core")


def hardware() -> str:
    """The processor, the GPU if there is one, and the number of cores."""
    gpu = f"{torch.cuda.get_device_name()}, " if torch.cuda.is_available() else ""
    return f"{_processor()}, {gpu}{os.cpu_count()} cores"


def environment_tags() -> dict[str, str]:
    """Tags for the machine, the versions, the git commit, and whether there were uncommitted changes."""
    return dict(_tags())


@functools.cache
def _tags() -> dict[str, str]:
    tags = {"machine": hardware(), "version.orbit": __version__}
    tags |= {f"version.{name}": importlib.metadata.version(name) for name in _PACKAGES}
    root = Path(__file__).resolve().parent
    # an installed package may lie in somebody else's repository, which does not track it
    own = git(root, "ls-files", "--error-unmatch", Path(__file__).name) is not None
    if own and (commit := git(root, "rev-parse", "HEAD")) is not None:
        tags["git.commit"] = commit
        tags["git.dirty"] = str(bool(git(root, "status", "--porcelain"))).lower()
    return tags


def git(root: Path, *args: str) -> str | None:
    """What a git command prints for a folder; None where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def peak_memory_mb() -> float:
    """The largest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.is_file():  # ru_maxrss of a child process starts from its parent's
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
