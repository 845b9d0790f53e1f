"""Results in a folder that the processes of a sweep share."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from orbit.core.models import read, write_model
from runners.job.stores import Store, array_bytes

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The file of a result; its name is not that of a model.
FEATURES = "features.pkl"

# A result is stored if it took longer to compute than this and the time to write and read it at this rate, together.
_WORTH_S = 0.1
_BYTES_PER_S = 1e8


class FileStore(Store):
    """Results in a folder of limited size, from which the least recently used are removed.

    Of several processes that need the same result, one computes it while the others wait. A file that is damaged, or
    that another user wrote, is computed again; where nothing can be written, nothing is written.

    Parameters
    ----------
    folder : Path
    limit : float > 0
        GiB.

    Attributes
    ----------
    found, made : int
        Results that were read, and computed.
    """

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit, self.limit_bytes = folder.absolute(), limit, limit * 2**30
        self.found = self.made = 0

    def get(self, key: str, make: Callable[[], T]) -> T:
        content = self._read(key)
        if content is not None:
            return content[0]
        with self._alone(key):
            content = self._read(key)  # of the process that had the lock
            if content is not None:
                return content[0]
            start = time.perf_counter()
            result = make()
            self.made += 1
            self._write(key, result, time.perf_counter() - start)
            return result

    def _read(self, key: str) -> tuple[Any] | None:
        """What is stored under a key, as a tuple of one; None if that is nothing."""
        path = self.folder / key
        try:
            content = (read(path, name=FEATURES),)
            os.utime(path / FEATURES)  # the time of its latest use
            self.found += 1
            return content
        except FileNotFoundError:
            return None
        except Exception as error:
            log.warning("the cached features %s cannot be used (%s); they are computed again", path, error)
            shutil.rmtree(path, ignore_errors=True)
            return None

    def _write(self, key: str, result: Any, seconds: float) -> None:
        size = array_bytes(result)
        if seconds < _WORTH_S + size / _BYTES_PER_S:
            return
        if size > self.limit_bytes:
            text = "%.3g GiB of features are not cached: they are larger than feature_cache=%g GiB"
            log.info(text, size / 2**30, self.limit)
            return
        path = self.folder / key
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._shrink(self.limit_bytes - size)
            write_model(path, result, FEATURES)
        except OSError as error:
            log.warning("features are not cached: %s cannot be written (%s)", path, error.strerror or error)
            shutil.rmtree(path, ignore_errors=True)

    def _shrink(self, limit: float) -> None:
        """Remove the least recently used results until the rest is within ``limit`` bytes."""
        entries = sorted((_use_and_size(path), path) for path in self.folder.iterdir() if path.is_dir())
        total = sum(size for (_, size), _ in entries)
        for (_, size), path in entries:
            if total <= limit:
                return
            if size:  # the others are about to be written
                shutil.rmtree(path, ignore_errors=True)
                total -= size

    def _alone(self, key: str) -> contextlib.AbstractContextManager[object]:
        """Context manager that one process at a time is in; without effect where files cannot be locked."""
        try:
            (self.folder / key).mkdir(parents=True, exist_ok=True)
            return FileLock(self.folder / key / ".lock").acquire()
        except (OSError, NotImplementedError):
            return contextlib.nullcontext()


def _use_and_size(path: Path) -> tuple[float, int]:
    """The time of the latest use of a folder's files, and their bytes; zeros for files that vanish."""
    found = []
    with contextlib.suppress(OSError):
        found = [file.stat() for file in path.iterdir()]
    return max((file.st_mtime for file in found), default=0.0), sum(file.st_size for file in found)
