"""Disks that are full or read-only, databases that are locked, clocks that jump, and processes that fork."""

import contextlib
import errno
import json
import logging
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import SMALL, folders, is_owned, mlflow_runs
from sqlalchemy.exc import OperationalError

from orbit.core import files
from orbit.core.files import NO_ROOM, replacing, write_new, write_whole
from runners.job.job import Stopwatch
from runners.tracking import stores
from runners.tracking.pending import Pending
from runners.tracking.record import RunFolder
from runners.tracking.upload import mlflow_module

ROOT = Path(__file__).parents[2]
FULL = "No space left on device"


def no_room(*args: object) -> None:
    raise OSError(errno.ENOSPC, FULL)


# ---- files that are written whole ------------------------------------------------------------------------------------


class TestReplacing:
    def test_content_is_on_the_disk_before_it_has_the_name(self, tmp_path, monkeypatch):
        seen = []
        monkeypatch.setattr(os, "fsync", lambda number: seen.append((tmp_path / "a").exists()))
        write_whole(tmp_path / "a", "ä")
        assert seen == [False]
        assert (tmp_path / "a").read_bytes() == "ä".encode()

    @pytest.mark.parametrize("number", NO_ROOM)
    def test_a_full_disk_leaves_the_old_file_and_no_other_and_is_named(self, tmp_path, monkeypatch, number):
        write_whole(tmp_path / "a", "old")

        def fail(file: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(files, "_to_disk", fail)
        with pytest.raises(OSError, match="a") as error:
            write_whole(tmp_path / "a", "new")
        assert (error.value.errno, error.value.filename) == (number, str(tmp_path / "a"))
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]

    def test_a_missing_folder_is_named_by_the_file(self, tmp_path):
        with pytest.raises(FileNotFoundError) as error:
            write_whole(tmp_path / "gone" / "a", "")
        assert error.value.filename == str(tmp_path / "gone" / "a")

    def test_other_errors_of_the_body_are_its_own(self, tmp_path):
        with pytest.raises(ConnectionResetError) as error, replacing(tmp_path / "a"):
            raise ConnectionResetError(errno.ECONNRESET, "reset")
        assert error.value.filename is None
        assert not list(tmp_path.iterdir())

    def test_a_private_file_is_written_once(self, tmp_path):
        write_new(tmp_path / "key", b"first")
        write_new(tmp_path / "key", b"second")
        assert (tmp_path / "key").read_bytes() == b"first"
        assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
        assert len(list(tmp_path.iterdir())) == 1

    def test_nothing_else_renames_files(self):
        texts = {path: path.read_text() for folder in ("orbit", "runners") for path in (ROOT / folder).rglob("*.py")}
        naming = [path.name for path, text in texts.items() if "os.replace(" in text or "os.rename(" in text]
        assert naming == ["files.py"]


# ---- full disks ------------------------------------------------------------------------------------------------------


class Disk:
    """Stands for the disk: takes ``room`` files, and then no more."""

    def __init__(self, room: float) -> None:
        self.room, self.written = room, 0

    def __call__(self, file: object) -> None:
        if self.written >= self.room:
            no_room()
        self.written += 1


def assert_one_line(err: str, problem: str) -> None:
    """The last line names the outputs, and there is no traceback."""
    assert err.splitlines()[-1].startswith("error: outputs: cannot write to /")
    assert f"({problem}); " in err
    assert "Traceback" not in err
    assert "Logging error" not in err


def assert_ended_by_the_next_start(run, tmp_path: Path) -> None:
    """When there is room again, no run is left running, and every run that MLflow knew is ended there."""
    _all_processes_have_died(tmp_path)
    run.ok("runner=sync")
    assert "RUNNING" not in [RunFolder(folder).read_record().status for folder in folders(tmp_path)]
    assert "RUNNING" not in [found.info.status for found in mlflow_runs(tmp_path)]
    assert not Pending(tmp_path / "out").markers()


def _all_processes_have_died(tmp_path: Path) -> None:
    """What this process has in progress is taken for that of one that died."""
    for marker in Pending(tmp_path / "out").markers():
        Pending(tmp_path / "out").release(marker)


@pytest.fixture
def patient(monkeypatch) -> None:
    """A machine may be too busy for a database to answer within seconds."""
    monkeypatch.setattr(stores, "_CHECK_TIMEOUT_S", 300.0)


@pytest.mark.slow
@pytest.mark.usefixtures("database", "patient")
def test_a_run_whose_disk_is_full_at_any_write_ends_with_one_line_and_keeps_what_was_written(
    run, tmp_path, monkeypatch
):
    for room in range(100):
        disk = Disk(room)
        with monkeypatch.context() as patch:
            patch.setattr(files, "_to_disk", disk)
            code, _, err = run(*SMALL[:-1], f"run_name=r{room:02}")
        if code == 0:
            break
        assert code == 2
        assert_one_line(err, FULL)
        (folder,) = tmp_path.glob(f"out/*/*-r{room:02}")
        for path in folder.glob("*.json"):
            json.loads(path.read_text())
        assert not list(folder.rglob("*.part"))
    assert room > 10  # record, configuration, metrics, figures, model ...
    assert disk.written == room
    assert_ended_by_the_next_start(run, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("database", "patient")
def test_a_sweep_whose_disk_is_full_shows_and_keeps_the_jobs_before(run, tmp_path, monkeypatch):
    counted = Disk(np.inf)
    with monkeypatch.context() as patch:
        patch.setattr(files, "_to_disk", counted)
        assert run("-m", *SMALL, "seed=0")[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(files, "_to_disk", Disk(counted.written + 3))  # in the second of three jobs
        assert "1 of 3 jobs finished" in run.ends(1, "-m", *SMALL, "seed=0,1,2")
    assert_one_line(run.err, FULL)
    assert [RunFolder(folder).read_record().status for folder in folders(tmp_path)].count("FINISHED") == 2
    assert_ended_by_the_next_start(run, tmp_path)


@pytest.mark.usefixtures("database", "patient")
def test_a_run_whose_disk_is_full_at_its_upload_is_uploaded_by_the_next_start(run, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:

        def fill(*args: object) -> None:
            patch.setattr(files, "_to_disk", no_room)
            no_room()

        patch.setattr("runners.tracking.mlflow.upload_folder", fill)
        run.ok(*SMALL)
    assert f"Upload to MLflow failed ([Errno 28] {FULL})" in run.err
    assert len(Pending(tmp_path / "out").markers()) == 1
    assert_ended_by_the_next_start(run, tmp_path)
    (logged,) = mlflow_runs(tmp_path)
    assert logged.info.status == "FINISHED"


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A file system in memory at ``folder``; the test is skipped where it cannot be mounted."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("file systems can be mounted by root only")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("kib", [4, 8, 16, 32, 48, 56])  # a run with blank figures takes 64
@pytest.mark.parametrize("sweep", [(), ("-m", "seed=0,1,2")], ids=["run", "sweep"])
def test_a_disk_of_any_size_that_fills(run, tmp_path, kib, sweep):
    """The writes that the tests above do not see: of Hydra, of the log, and parts of a file."""
    with mounted(tmp_path / "out", f"size={kib}k"):
        code, _, err = run(*sweep, *SMALL[:-1], "tracking.enabled=false")
        assert code == 2 if not sweep else code in (1, 2)
        assert_one_line(err, FULL)
        assert str(tmp_path / "out") in err.splitlines()[-1]
        for path in (tmp_path / "out").rglob("*.json"):
            json.loads(path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("sweep", [(), ("-m", "seed=0,1")], ids=["run", "sweep"])
def test_outputs_that_cannot_be_written(run, tmp_path, sweep):
    with mounted(tmp_path / "out", "ro"):
        assert_one_line(run.refused(*sweep, *SMALL), "Read-only file system")


def test_a_full_disk_in_the_middle_of_an_upload_is_told_in_one_line(tmp_path):
    """MLflow logs tracebacks of the errors that it raises, and SQLAlchemy's first line is about its own session."""
    store = mlflow_module().MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")._tracking_client.store
    logged: list[logging.LogRecord] = []
    logger = logging.getLogger("mlflow.store.db.utils")
    handler = logging.Handler()
    handler.emit = logged.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    full = OperationalError("UPDATE runs", {}, sqlite3.OperationalError("database or disk is full"))
    full.add_detail("raised as a result of Query-invoked autoflush; consider using a no_autoflush block")
    try:
        with pytest.raises(Exception, match="disk is full") as error, store.ManagedSessionMaker():
            raise full
    finally:
        logger.removeHandler(handler)
        store._dispose_engine()
    assert stores.reason(error.value) == "(sqlite3.OperationalError) database or disk is full"
    assert not logged


# ---- databases -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(database: Path) -> Iterator[sqlite3.Connection]:
    """A database in which another connection is writing, with the default lock of SQLite against all others."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        yield connection


@pytest.mark.slow
def test_a_database_that_is_locked_for_ever_is_refused_at_the_start(run, database):
    with locked(database):
        err = run.refused(*SMALL)
    assert err.splitlines()[-1].startswith("error: tracking.uri: cannot use sqlite:////")
    assert "database is locked" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_database_that_is_locked_during_a_run_gets_its_results_later(run, database, tmp_path, monkeypatch):
    with contextlib.ExitStack() as lock:
        stage = Stopwatch.stage

        def lock_in_the_fit(self, name: str):
            if name == "learner":
                lock.enter_context(locked(database))
            return stage(self, name)

        monkeypatch.setattr(Stopwatch, "stage", lock_in_the_fit)
        assert "test accuracy" in run.ok(*SMALL)
    assert "Upload to MLflow failed" in run.err
    assert "Traceback" not in run.err
    assert run("runner=sync")[0] == 0
    (logged,) = mlflow_runs(tmp_path)
    assert logged.info.status == "FINISHED"
    assert logged.data.metrics["test/accuracy"] > 0


@pytest.mark.slow
def test_a_database_that_is_locked_for_a_moment_is_waited_for(database):
    with contextlib.ExitStack() as lock:
        connection = lock.enter_context(locked(database))
        held = threading.Timer(1.0, lambda: connection.execute("COMMIT"))
        connection.execute("PRAGMA locking_mode=NORMAL")
        held.start()
        stores.check(f"sqlite:///{database}")
        held.join()


# ---- clocks ----------------------------------------------------------------------------------------------------------


class Clock:
    """The time of day, which is set back by an hour when it is asked for the ``at``-th time."""

    def __init__(self, at: int) -> None:
        self.at, self.asked, self.now = at, 0, time.time

    def __call__(self) -> float:
        self.asked += 1
        return self.now() - (3600 if self.asked >= self.at else 0)


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2, 3, 5])
@pytest.mark.usefixtures("database", "patient")
def test_a_clock_that_is_set_back(run, tmp_path, monkeypatch, at):
    monkeypatch.setattr(time, "time", Clock(at))
    folder = RunFolder(run.finished(*SMALL))
    monkeypatch.undo()
    record, metrics = folder.read_record(), folder.read_metrics()
    assert 0 <= record.end - record.start < 3000
    assert all(seconds >= 0 for name, seconds in metrics.items() if name.startswith("time/"))
    (logged,) = mlflow_runs(tmp_path)
    assert logged.info.end_time >= logged.info.start_time
    assert not Pending(tmp_path / "out").markers()


# ---- processes -------------------------------------------------------------------------------------------------------


def _mark(outputs: Path) -> None:
    """Mark a run in a child process, which may not take that of its parent, and end."""
    markers = Pending(outputs)
    (parents,) = markers.markers()
    taken = markers.take(parents)
    os._exit(0 if taken is None and is_owned(markers.add(outputs / "child")) else 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork in a process with threads
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_runs_of_a_child_process_are_its_own(tmp_path, method):
    """A fork has the files of its parent open."""
    mine = Pending(tmp_path).add(tmp_path / "parent")
    child = multiprocessing.get_context(method).Process(target=_mark, args=(tmp_path,))
    child.start()
    child.join(300)
    assert child.exitcode == 0
    (left,) = (marker for marker in Pending(tmp_path).markers() if marker.folder.name == "child")
    assert not is_owned(left)
    assert is_owned(mine)
    Pending(tmp_path).remove(mine)


FORK_THE_ENGINE = """
import os, sys, numpy as np, orbit, torch
torch.set_num_threads(2)
(torch.ones(600, 600) @ torch.ones(600, 600)).exp()  # starts threads of OpenMP
X = np.random.default_rng(0).random((300, 8, 8)).astype(np.float32)
turns = orbit.Orbit(orbit.build("group", "rotation"), size=8, rule="quadrature")
engine = orbit.Engine(workers=2, device="cpu")
features = orbit.build("approx", "rf", orbit=turns, n_components=64, engine=engine, random_state=0).fit(X)
before = features.transform(X)
child = os.fork()
if child == 0:
    same = np.allclose(features.fit(X).transform(X), before, atol=1e-5)
    os._exit(0 if same and float((torch.ones(600, 600) @ torch.ones(600, 600)).exp().max()) > 0 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
def test_features_in_a_fork_after_threads():
    """Threads of OpenMP do not survive a fork, and a process that waits for them never ends."""
    command = [sys.executable, "-W", "ignore", "-c", FORK_THE_ENGINE]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            _, err = process.communicate(timeout=600)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, err
