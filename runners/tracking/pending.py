"""Runs that are not complete in MLflow: a marker for each, whose lock is held by the process that works on it.

A run has a marker from its start until everything is uploaded. The process that computes or uploads it holds the lock
of the marker, and only the holder may do so. The system releases a lock when its process ends, however that happens: a
marker whose lock is free is one of a dead process, or was given up after a failed upload. The next process that calls
:func:`runners.tracking.recovery.recover` takes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from filelock import FileLock, Timeout

from orbit.core.errors import InputError
from orbit.core.files import write_whole
from runners.tracking.storage import writing

_POLL_S = 0.1

_held: dict[Path, FileLock] = {}  # the markers of this process -> their locks


@dataclass(frozen=True)
class Marker:
    """A run that is not complete in MLflow.

    Parameters
    ----------
    path : Path
        The file of the marker.
    folder : Path
        The folder of the run.
    uri, experiment : str
        Where the run is tracked; empty for a run that is not.
    host, pid : str, int
        The process that started the run, for messages.
    """

    path: Path
    folder: Path
    uri: str = ""
    experiment: str = ""
    host: str = ""
    pid: int = 0

    @property
    def is_owned(self) -> bool:
        """Whether a process, perhaps this one, works on the run."""
        with _exclusively(self.path.parent):
            return _is_locked(self.path)


class Pending:
    """The markers in the folder ``pending`` of the outputs.

    Parameters
    ----------
    outputs : Path
    """

    def __init__(self, outputs: Path) -> None:
        self._folder = Path(outputs).absolute() / "pending"

    def markers(self) -> list[Marker]:
        """All markers, oldest run first. Files that are not markers, and markers that vanish, are left out."""
        paths = self._folder.glob("*.json") if self._folder.is_dir() else []
        return sorted(filter(None, map(_read, paths)), key=lambda marker: marker.folder)

    def add(self, folder: Path, uri: str = "", experiment: str = "") -> Marker:
        """Mark a run as not complete, owned by this process. A marker that this process owns already is returned.

        Raises
        ------
        InputError
            If another process works in the folder.
        """
        folder = folder.absolute()
        path = self._folder / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}.json"
        marker = Marker(path, folder, uri, experiment, host=socket.gethostname(), pid=os.getpid())
        with _exclusively(self._folder):
            found, was_mine = _read(path), _is_mine(path)
            if not _lock(path):
                where = f"process {found.pid} on {found.host}" if found else "another process"
                raise InputError(f"{folder} is in use by {where}; choose another folder")
            if found is not None and was_mine:
                marker = replace(found, uri=uri or found.uri, experiment=experiment or found.experiment)
            if marker != found:  # the disk may be full by the time of the upload
                _write(marker)
        return marker

    def wait_until_free(self, folder: Path, timeout: float) -> bool:
        """Wait until no process works in a run folder: one that was killed may take seconds to end.

        Returns
        -------
        bool
            False if one still does after ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while any(marker.folder == folder.absolute() and marker.is_owned for marker in self.markers()):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def take(self, marker: Marker) -> Marker | None:
        """The marker, owned by this process; None if it has vanished or is owned by another one."""
        with _exclusively(self._folder):
            found = _read(marker.path)
            return found if found is not None and _lock(marker.path) else None

    def release(self, marker: Marker) -> None:
        """Leave the run to the next process that takes it."""
        if _is_mine(marker.path):
            _held.pop(marker.path).release()

    def remove(self, marker: Marker) -> None:
        """The run is complete. No effect on a marker that was released."""
        if not _is_mine(marker.path):
            return
        with _exclusively(self._folder):
            marker.path.unlink(missing_ok=True)
            _lock_file(marker.path).unlink(missing_ok=True)
            self.release(marker)


@contextlib.contextmanager
def _exclusively(folder: Path) -> Iterator[None]:
    """Context manager that one process at a time is in: nobody else asks for, takes or removes a lock meanwhile."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / ".lock").acquire()
    except NotImplementedError as error:
        raise InputError(
            f"outputs: expected a folder on a file system with locks, found {folder.parent}; set outputs to another one"
        ) from error
    with lock:
        yield


def _lock_file(path: Path) -> Path:
    return path.with_suffix(".lock")


def _is_mine(path: Path) -> bool:
    return path in _held and _held[path].is_locked


def _lock(path: Path) -> bool:
    """Take the lock of a marker, if this process does not have it; False if another one has."""
    if _is_mine(path):
        return True
    lock = FileLock(_lock_file(path), thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    _held[path] = lock
    return True


def _is_locked(path: Path) -> bool:
    """Whether a process, perhaps this one, has the lock of a marker."""
    if _is_mine(path) or not _lock_file(path).exists():
        return _is_mine(path)
    try:
        with FileLock(_lock_file(path)).acquire(timeout=0):
            return False
    except Timeout:
        return True


def _read(path: Path) -> Marker | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {key.name: content[key.name] for key in fields(Marker)[2:] if key.name in content}
        return Marker(path, Path(content["folder"]), **known)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _write(marker: Marker) -> None:
    content = asdict(marker) | {"folder": str(marker.folder)}
    del content["path"]
    with writing(marker.path.parent):
        write_whole(marker.path, json.dumps(content))
