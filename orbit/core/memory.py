"""The memory that a process can have."""

import contextlib
from pathlib import Path

import psutil

from orbit.core.errors import InputError

#: Up to so many bytes are not compared with the free memory: reading it from files of the system takes longer.
LITTLE = 2**24

_CGROUPS = Path("/sys/fs/cgroup")


def process_bytes() -> int:
    """Bytes that this process can have in all: by what the machine has left, its control groups and ``ulimit -v``."""
    machine = psutil.virtual_memory().available + psutil.swap_memory().free + psutil.Process().memory_info().rss
    limits = [machine, *_cgroup_limits(Path("/proc/self/cgroup"))]
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
        limits += [address_space] if address_space != resource.RLIM_INFINITY else []
    return min(limits)


def check_fits(name: str, what: str, nbytes: float) -> None:
    """Raise ``InputError``, naming the parameter ``name``, if ``what`` takes more than this process can have.

    >>> check_fits("size", "elements", 1e15)
    Traceback (most recent call last):
        ...
    orbit.core.errors.InputError: size: elements take at least 931,323 GiB of memory, this process can have ...
    """
    if nbytes > LITTLE and nbytes > (limit := process_bytes()):
        raise InputError(
            f"{name}: {what} take at least {size_text(nbytes)} of memory, this process can have {size_text(limit)}"
        )


def size_text(nbytes: float) -> str:
    """A number of bytes as text.

    >>> size_text(3 * 2**29), size_text(2000 * 2**30), size_text(3e7), size_text(2**14)
    ('1.5 GiB', '2,000 GiB', '29 MiB', '16 KiB')
    """
    unit, name = next((u for u in ((2**30, "GiB"), (2**20, "MiB")) if nbytes >= 0.1 * u[0]), (2**10, "KiB"))
    count = nbytes / unit
    return f"{count:,.0f} {name}" if count >= 100 else f"{count:.2g} {name}"


def _cgroup_limits(membership: Path, root: Path = _CGROUPS) -> list[int]:
    """The limits of the control groups of a process and of those above them, of version 1 and 2."""
    if not membership.is_file():
        return []
    limits = []
    for line in membership.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            base, name = root / "memory", "memory.limit_in_bytes"
        elif not controllers:
            base, name = root, "memory.max"
        else:
            continue
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(base) and (folder / name).is_file():
                limits.append((folder / name).read_text().strip())
    return [int(limit) for limit in limits if limit.isdigit()]
