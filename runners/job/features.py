"""Features kept on disk: for the jobs of a sweep that differ in what comes after them, and for the fits of one job."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from orbit.core import distributed, interruption
from orbit.core.models import read, write_model
from orbit.core.store import ByRow, Store, array_bytes, in_use, storing
from runners.config.plan import Plan
from runners.job.job import Job
from runners.job.runner import Runner

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The file of a result; its name is not that of a model.
FEATURES = "features.pkl"

#: GiB of features that are kept unless ``feature_cache`` says otherwise, by a sweep over learners and by one job.
DEFAULT_GIB = 10.0

# The share of the free disk space that the features of one job may take.
_FREE_SHARE = 0.5

# A result is kept if it took longer to compute than this and the time to write and read it at this rate, together.
_WORTH_S = 0.1
_BYTES_PER_S = 1e8

_POLL_S = 1.0


@contextlib.contextmanager
def kept_features(job: Job, runner: Runner, shared: bool) -> Iterator[None]:
    """Context manager in which feature maps use the features kept in the outputs, where a job uses them at all.

    ``shared`` says whether they do by default, as in a sweep over learners; others, which would seldom find any, do if
    ``feature_cache`` is given. No job does whose results are times.
    """
    config = job.plan.config
    limit = config["feature_cache"]
    if limit is None:
        limit = DEFAULT_GIB if shared else 0.0
    if limit == 0 or not runner.reuses_features or "time/" in json.dumps(config["runner"], default=str):
        yield
        return
    features = KeptFeatures(folder(job.plan), limit)
    with storing(features):
        yield
    if features.found:
        # among the times, which it explains: the other metrics of a job are the same with and without
        job.log_metrics({"time/features_from_disk": features.found})
        text = f"{features.found} of {features.found + features.made} fits and transforms were read from disk"
        job.row("feature cache", text)
        log.info("%s (%s); times of features are those of reading", text, features.folder)


def folder(plan: Plan) -> Path:
    """Where the features of a plan are kept."""
    return Path(plan.config["outputs"]) / "feature_cache"


def shared_in_job(plan: Plan) -> contextlib.AbstractContextManager[None]:
    """Context manager in which fits of a job share features by row, in files in its outputs that vanish with it.

    Without effect within another one, and with ``feature_cache=0``.
    """
    found, limit = in_use(), plan.config["feature_cache"]
    if limit == 0 or (found is not None and found.by_row):
        return contextlib.nullcontext()
    folder = Path(plan.config["outputs"])
    folder.mkdir(parents=True, exist_ok=True)
    room = _FREE_SHARE * shutil.disk_usage(folder).free
    limit = min((DEFAULT_GIB if limit is None else limit) * 2**30, room) / distributed.world_size()
    return storing(ByRow(limit, folder, beyond=found))


class KeptFeatures(Store):
    """Results in a folder of limited size, from which the least recently used are removed.

    Of several processes that need the same result, one computes it while the others wait. A file that is damaged, or
    that another user wrote, is computed again; where nothing can be written, nothing is kept.

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
        if content is None:
            with self._alone(key):
                content = self._read(key)
                if content is None:
                    return self._made(key, make)
        self.found += 1
        return content[0]

    def _made(self, key: str, make: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = make()
        self.made += 1
        self._write(key, result, time.perf_counter() - start)
        return result

    def _read(self, key: str) -> tuple[Any] | None:
        """What is kept under a key, as a tuple of one; None if that is nothing."""
        path = self.folder / key
        try:
            content = (read(path, name=FEATURES),)
            os.utime(path / FEATURES)  # the time of its latest use
            return content
        except FileNotFoundError:
            return None
        except Exception as error:
            log.warning("the kept features %s cannot be used (%s); they are computed again", path, error)
            shutil.rmtree(path, ignore_errors=True)
            return None

    def _write(self, key: str, result: Any, seconds: float) -> None:
        size = array_bytes(result)
        if seconds < _WORTH_S + size / _BYTES_PER_S:
            return
        if size > self.limit_bytes:
            text = "%.3g GiB of features are not kept: they are larger than feature_cache=%g GiB"
            log.info(text, size / 2**30, self.limit)
            return
        path = self.folder / key
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._shrink(self.limit_bytes - size)
            write_model(path, result, FEATURES)
        except OSError as error:
            log.warning("features are not kept: %s cannot be written (%s)", path, error.strerror or error)
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

    @contextlib.contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """Wait for other processes that have the key; without effect where files cannot be locked."""
        lock = FileLock(self.folder / f"{key}.lock")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            log.info("waiting for another process that computes the same features")
            _wait_for(lock)
        except (OSError, NotImplementedError):
            yield
            return
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.unlink(lock.lock_file)  # a process that waits for it finds the result, or computes it beside others
            lock.release()


def _wait_for(lock: FileLock) -> None:
    while True:
        interruption.check()
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=_POLL_S)
            return


def _use_and_size(path: Path) -> tuple[float, int]:
    """The time of the latest use of a folder's files, and their bytes; zeros for files that vanish."""
    found = []
    with contextlib.suppress(OSError):
        found = [file.stat() for file in path.iterdir()]
    return max((file.st_mtime for file in found), default=0.0), sum(file.st_size for file in found)
