"""Runs that are not complete in MLflow: a marker for each, with the process that works on it.

A run has a marker from its start until everything is uploaded. Its owner is the process that
computes or uploads it; only the owner may do so. A marker whose owner has died, or that was given up
after a failed upload, is taken by the next process that calls :func:`runners.tracking.recovery.recover`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil
from filelock import FileLock

from orbit.core.errors import InputError
from orbit.core.files import write_whole
from runners.tracking.storage import writing

_BEAT_S = 10.0
_POLL_S = 0.1
_SILENT_S = 120.0  # a process of another machine that is silent for longer is taken for dead
_START_TOLERANCE_S = 2.0  # where the start time of a process moves with corrections of the clock
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Owner:
    """A process: machine, process id, and start time in seconds, because ids are used again; see :func:`_started`."""

    host: str
    pid: int
    started: float

    @property
    def machine(self) -> str:
        """The name of the machine."""
        return self.host.split()[0]

    @classmethod
    def of(cls, pid: int) -> Owner:
        """A process of this machine."""
        return cls(_host(), pid, _started(pid))

    def is_alive(self, last_sign: float) -> bool:
        """Whether the process exists. On another machine: whether its last sign of life, a time, is recent."""
        if self.host != _host():
            return time.time() - last_sign < _SILENT_S
        try:
            same = abs(_started(self.pid) - self.started) < _START_TOLERANCE_S
            return same and psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


@dataclass(frozen=True)
class Marker:
    """A run that is not complete in MLflow.

    Parameters
    ----------
    path : Path
        The file of the marker. Its time of modification is the last sign of life of the owner.
    folder : Path
        The folder of the run.
    uri, experiment : str
        Where the run is tracked; empty for a run that is not.
    identity : str
        What the run computes, if it is the only one to compute it; see :meth:`Pending.claim`.
    owner : Owner or None
        None: nobody works on it.
    """

    path: Path
    folder: Path
    uri: str = ""
    experiment: str = ""
    identity: str = ""
    owner: Owner | None = None

    @property
    def is_owned(self) -> bool:
        """Whether a living process, perhaps this one, works on the run."""
        return self.owner is not None and self.owner.is_alive(self.last_sign)

    @property
    def last_sign(self) -> float:
        """Time of the last sign of life of the owner; 0 if the marker has vanished."""
        try:
            return self.path.stat().st_mtime
        except FileNotFoundError:
            return 0.0


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
            If another living process works in the folder.
        """
        folder = folder.absolute()
        path = self._folder / f"{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}.json"
        marker = Marker(path, folder, uri, experiment, owner=_process(os.getpid()))
        with self._lock():
            found = _read(path)
            if found is not None and found.owner is not None and found.is_owned:
                if found.owner != marker.owner:
                    where = f"process {found.owner.pid} on {found.owner.machine}"
                    raise InputError(f"{folder} is in use by {where}; choose another folder")
                marker = replace(found, uri=uri or found.uri, experiment=experiment or found.experiment)
            if marker != found:  # the disk may be full by the time of the upload
                _write(marker)
        _heart.add(marker.path)
        return marker

    def wait_until_free(self, folder: Path, timeout: float) -> bool:
        """Wait until no living process works in a run folder: one that was killed may take seconds to end.

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
        """The marker, owned by this process; None if it has vanished or has another, living owner."""
        with self._lock():
            found = _read(marker.path)
            me = _process(os.getpid())
            if found is None or (found.is_owned and found.owner != me):
                return None
            taken = replace(found, owner=me)
            _write(taken)
        _heart.add(taken.path)
        return taken

    def claim(self, marker: Marker, identity: str) -> bool:
        """Give the run an identity. False while another living process has a run of this identity in the same place."""
        claimed = replace(marker, identity=identity)
        wanted = claimed.identity, claimed.uri, claimed.experiment
        with self._lock():
            others = (other for other in self.markers() if other.path != marker.path and other.is_owned)
            if any((other.identity, other.uri, other.experiment) == wanted for other in others):
                return False
            _write(claimed)
        return True

    def release(self, marker: Marker) -> None:
        """Leave the run to the next process that takes it; where that cannot be written, once this one has ended."""
        _heart.remove(marker.path)
        with contextlib.suppress(InputError), self._lock():
            _write(replace(marker, owner=None))

    def remove(self, marker: Marker) -> None:
        """The run is complete. No effect on a marker that was released, even if the disk was full then."""
        if not _heart.remove(marker.path):
            return
        found = _read(marker.path)
        if found is not None and found.owner == marker.owner:
            marker.path.unlink(missing_ok=True)

    def _lock(self) -> FileLock:
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self._folder / ".lock")


class _Heart:
    """Renews the markers of this process from a thread, so that other machines see that it is alive."""

    def __init__(self) -> None:
        self._paths: set[Path] = set()
        self._changes = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, path: Path) -> None:
        with self._changes:
            self._paths.add(path)
            if self._thread is None or not self._thread.is_alive():  # no thread survives a fork
                self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
                self._thread.start()

    def remove(self, path: Path) -> bool:
        """Renew a marker no more; False if it was not renewed."""
        with self._changes:
            renewed = path in self._paths
            self._paths.discard(path)
        return renewed

    def _beat(self) -> None:
        while True:
            time.sleep(_BEAT_S)
            with self._changes:
                paths = list(self._paths)
            for path in paths:
                with contextlib.suppress(OSError):
                    os.utime(path)


_heart = _Heart()


@functools.cache
def _process(pid: int) -> Owner:
    return Owner.of(pid)


def _host() -> str:
    """The machine since its last start and, in containers, its namespace of process ids."""
    namespace = Path("/proc/self/ns/pid")
    parts = [socket.gethostname()]
    parts += [os.readlink(namespace)] if namespace.is_symlink() else []
    parts += [_BOOT.read_text(encoding="ascii").strip()] if _BOOT.is_file() else []
    return " ".join(parts)


def _started(pid: int) -> float:
    """When a process started, in seconds since the start of the machine, where Linux says so, or else since the epoch.

    Seconds since the epoch are those from a clock that may be set while the process runs, which then seems another.

    Raises
    ------
    psutil.NoSuchProcess
    """
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        return int(after_name.split()[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return psutil.Process(pid).create_time()


def _read(path: Path) -> Marker | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        owner = content.pop("owner")
        folder = Path(content.pop("folder"))
        return Marker(path, folder, owner=Owner(**owner) if owner else None, **content)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _write(marker: Marker) -> None:
    content = asdict(marker) | {"folder": str(marker.folder)}
    del content["path"]
    with writing(marker.path.parent):
        write_whole(marker.path, json.dumps(content))
