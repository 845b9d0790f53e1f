"""Digests of files, by which changed data is told from equal data."""

import functools
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from orbit.core.errors import encodable


@dataclass(frozen=True)
class Fingerprint:
    """A file: its path, size in bytes, time of modification in ns since the epoch, and the sha256 of its content.

    Or, of a file that is not read for it, the sha256 of the other three. ``name`` is the path within a folder whose
    names are data too, such as those of classes.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str
    name: str = ""


def fingerprint(path: Path, name: str = "") -> Fingerprint:
    """The fingerprint of a file, whose content is read once by a process while its size and time stay the same."""
    found = path.stat()
    size, mtime_ns = found.st_size, found.st_mtime_ns
    content = _content(str(path.absolute()), size, mtime_ns)
    return Fingerprint(encodable(str(path.absolute())), size, mtime_ns, content, encodable(name))


def of_listing(path: str, size: int, mtime_ns: int) -> Fingerprint:
    """The fingerprint of a file too large to be read for it, by its size and time of modification instead of content.

    >>> of_listing("a.npy", 3, 7) == of_listing("a.npy", 3, 8)
    False
    """
    path = encodable(path)
    return Fingerprint(path, size, mtime_ns, hashlib.sha256(f"{path} {size} {mtime_ns}".encode()).hexdigest())


def digest(files: Iterable[Fingerprint]) -> str:
    """One digest of the contents of files, and of their names within folders, in their order; empty for no files.

    >>> digest([]), digest([Fingerprint("a.npy", 3, 0, "ab")])
    ('', 'fb8e20fc2e4c3f24')
    """
    contents = [f"{file.name}:{file.sha256}" if file.name else file.sha256 for file in files]
    return hashlib.sha256(" ".join(contents).encode()).hexdigest()[:16] if contents else ""


@functools.cache
def _content(path: str, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
