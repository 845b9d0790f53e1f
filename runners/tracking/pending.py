"""Runs that are not complete in MLflow: a marker for each, whose lock is held by the process that works on it.

A run has a marker from its start until everything is uploaded. The process that computes or uploads it holds the lock
of the marker, and only the holder may do so. The system releases a lock when its process ends, however that happens: a
marker whose lock is free is one of a dead process, or was given up after a failed upload. The next process that calls
:func:`runners.tracking.recovery.recover` takes it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from filelock import FileLock, Timeout

from orbit.core.errors import InputError
from orbit.core.files import write_whole
from runners.tracking.storage import writing

# Another process may hold a lock for a moment, to see whether it is free.
_LOOK_S = 0.3

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
            If another process works in the folder, or the folder of the outputs has no locks.
        """
        folder = folder.absolute()
        path = self._path(folder)
        marker = Marker(path, folder, uri, experiment, host=socket.gethostname(), pid=os.getpid())
        found, was_mine = _read(path), _is_mine(path)
        if not was_mine and not _lock(path, _LOOK_S):
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
        path = self._path(folder.absolute())
        if _read(path) is None:
            return True
        if _is_mine(path) or not _lock(path, timeout):
            return False
        _release(path)
        return True

    def _path(self, folder: Path) -> Path:
        return self._folder / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}.json"

    def take(self, marker: Marker) -> Marker | None:
        """The marker, owned by this process from now on; None if it has vanished, or a process works on the run."""
        if _is_mine(marker.path) or not _lock(marker.path):
            return None
        found = _read(marker.path)
        if found is None:
            _release(marker.path)
        return found

    def release(self, marker: Marker) -> None:
        """Leave the run to the next process that takes it. No effect on a marker that is not this process's."""
        if _is_mine(marker.path):
            _release(marker.path)

    def remove(self, marker: Marker) -> None:
        """The run is complete. No effect on a marker that was released."""
        if _is_mine(marker.path):
            marker.path.unlink(missing_ok=True)
            _release(marker.path)


def _lock_file(path: Path) -> Path:
    return path.with_suffix(".lock")


def _is_mine(path: Path) -> bool:
    return path in _held and _held[path].is_locked


def _lock(path: Path, timeout: float = 0) -> bool:
    """Take the lock of a marker; False if another process has it. A lock is of a file that still has its name."""
    lock = FileLock(_lock_file(path), thread_local=False, fallback_to_soft=False)
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=timeout)
        except Timeout:
            return False
    _held[path] = lock
    return True


def _release(path: Path) -> None:
    """Give the lock of a marker back; the file of the lock stays as long as the marker."""
    if not path.exists():
        _lock_file(path).unlink(missing_ok=True)
    _held.pop(path).release()


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
