"""Sweeps whose processes die or are interrupted: no run is lost, none is doubled, and no process is left over."""

import collections
import concurrent.futures
import contextlib
import gc
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import mlflow
import numpy as np
import psutil
import pytest
from command_line import SMALL, folders, is_owned, mlflow_client, mlflow_runs

from orbit.core import interruption
from orbit.core.progress import Progress
from runners.app import processes
from runners.app.run import other_code
from runners.config.names import new_folder
from runners.experiments.fit import Fit
from runners.job.job import Stopwatch
from runners.measure import machine
from runners.tracking.mlflow import Tracker
from runners.tracking.pending import Marker, Pending
from runners.tracking.record import Record, RunFolder
from runners.tracking.sweep import SweepCallback

ROOT = Path(__file__).parents[2]
TWO_PROCESSES = "-m", "torch.distributed.run", "--nproc-per-node", "2"
ARRAYS = ("dataset=arrays", "dataset.path=mine.npz", "group=identity", "approx=points", "runner.save_model=false")
PARALLEL = ("-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", *SMALL)


def children(tmp_path: Path) -> list:
    return [run for run in mlflow_runs(tmp_path) if "mlflow.parentRunId" in run.data.tags]


def statuses(tmp_path: Path) -> dict[str, int]:
    """How many runs there are of each status, sweeps included."""
    return dict(collections.Counter(run.info.status for run in mlflow_runs(tmp_path)))


@pytest.fixture
def interruptible():
    """This process with the signal handlers of the command line, until the end of the test."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    processes.end_on_signals()
    yield
    interruption.clear()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("interruptible")
class TestInterruption:
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    @pytest.mark.parametrize("step", [lambda: Progress(1, "tiles").step(), lambda: Stopwatch().stage("s").__enter__()])
    def test_that_was_lost_in_a_callback_of_the_garbage_collector_ends_the_next_step(self, step):
        def interrupt(phase: str, info: dict) -> None:
            if phase == "start":
                os.kill(os.getpid(), signal.SIGINT)

        step()
        gc.callbacks.append(interrupt)
        try:
            gc.collect()  # Python prints the KeyboardInterrupt and drops it
        finally:
            gc.callbacks.remove(interrupt)
        with pytest.raises(KeyboardInterrupt):
            step()


def test_a_database_whose_creation_was_interrupted_is_created_by_the_next_start(tmp_path, monkeypatch):
    from mlflow.store.db import utils

    def interrupted(engine, create=utils._initialize_tables) -> None:
        create(engine)  # all tables, of which only some have been brought to their last form
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(utils, "_initialize_tables", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Tracker(tmp_path, None, "mine").open()
    assert not [*tmp_path.glob("*mlflow.db*")]
    Tracker(tmp_path, None, "mine").open()
    assert [path.name for path in tmp_path.glob("*mlflow.db*")] == ["mlflow.db"]


class TestResume:
    def test_a_run_whose_process_died_while_it_uploaded_is_uploaded_and_not_repeated(self, run, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(Tracker, "_upload", Mock(side_effect=ConnectionError("cut off")))
            assert run(*SMALL, "run_name=first")[0] == 0
        assert statuses(tmp_path) == {"RUNNING": 1}
        run.ok(*SMALL, "run_name=second", "resume=true")
        assert "skipped: run" in run.said
        (logged,) = mlflow_runs(tmp_path)
        assert (logged.info.run_name, logged.info.status) == ("first", "FINISHED")

    def test_a_run_that_is_interrupted_while_it_uploads_is_uploaded_by_the_next_start(self, run, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(Tracker, "_upload", Mock(side_effect=KeyboardInterrupt))
            assert run(*SMALL)[0] == 130
        assert statuses(tmp_path) == {"RUNNING": 1}
        assert run("runner=sync")[0] == 0
        assert statuses(tmp_path) == {"FINISHED": 1}

    @pytest.mark.parametrize("mode", [("seed=0",), ("-m", "seed=0,1")])
    def test_an_interrupted_job_is_uploaded_with_the_model_that_it_has_written(self, run, tmp_path, monkeypatch, mode):
        def interrupted(self, job, fit=Fit.run) -> None:
            fit(self, job)
            os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(Fit, "run", interrupted)
        run.ends(130, *mode, *SMALL[:-1])
        kept = "interrupted; finished results are kept, and the same command with resume=true goes on after them"
        assert run.err.splitlines()[-1] == kept
        assert statuses(tmp_path) == {"KILLED": len(mode)}
        run_id = next(run.info.run_id for run in mlflow_runs(tmp_path) if "config_hash" in run.data.tags)
        mlflow.sklearn.load_model(f"runs:/{run_id}/model")  # MLflow logs no model that it cannot predict with

    def test_an_interrupt_while_a_sweep_is_completed_is_one_line(self, run, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(SweepCallback, "close", lambda *args: os.kill(os.getpid(), signal.SIGINT))
            run.ends(130, "-m", *SMALL, "seed=0,1")
        assert run.err.splitlines()[-1] == "interrupted; the next start, or runner=sync, uploads what is missing"
        assert statuses(tmp_path) == {"FINISHED": 2, "RUNNING": 1}

    def test_an_interrupt_within_a_transaction_does_not_lock_the_database(self, run, tmp_path, monkeypatch):
        def begin(tracker, record, folder):
            record.run_id = tracker.start(record)
            folder.write_record(record)
            connection = sqlite3.connect(tmp_path / "out" / "mlflow.db")
            connection.execute("BEGIN IMMEDIATE")
            raise KeyboardInterrupt

        monkeypatch.setattr(Tracker, "begin", begin)
        run.ends(130, "-m", "seed=0,1", *SMALL)
        assert "locked" not in run.err
        assert statuses(tmp_path) == {"KILLED": 2}

    def test_data_that_changed_under_the_same_path_are_computed_again(self, run, tmp_path):
        def results(*more: str) -> tuple[str, dict[str, int]]:
            run.ok(*ARRAYS, *more)
            return run.said, statuses(tmp_path)

        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
        np.savez(tmp_path / "mine.npz", X=X, y=y)
        assert results()[1] == {"FINISHED": 1}
        os.utime(tmp_path / "mine.npz")
        text, found = results("resume=true")
        assert found == {"FINISHED": 1}
        assert "with the same configuration" in text
        assert "the same data (content of mine.npz: " in text
        np.savez(tmp_path / "mine.npz", X=X + 1, y=y)
        text, found = results("resume=true")
        assert found == {"FINISHED": 2}
        assert "skipped" not in text


class TestSeveralProcesses:
    """Jobs of torchrun, whose launcher ends all processes by SIGTERM when one dies."""

    @pytest.fixture(autouse=True)
    def _second_of_two(self, monkeypatch, interruptible):
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("RANK", "1")
        monkeypatch.setattr("orbit.core.distributed.job", lambda device: contextlib.nullcontext())

    def test_the_others_end_a_run_whose_first_process_was_killed(self, run, tmp_path, monkeypatch):
        first = RunFolder(tmp_path / "out" / "2026-01-01" / "first")
        first.path.mkdir(parents=True)
        first.write_record(Record("first"))
        pending = Pending(tmp_path / "out")
        pending.release(pending.add(first.path))
        monkeypatch.setattr(Fit, "run", lambda *args: os.kill(os.getpid(), signal.SIGTERM))
        run.ends(1, "engine.stream=true", "approx=rf", *SMALL, "tracking.enabled=false")
        assert run.err.splitlines()[-1].startswith("error: process 1 of 2 was ended by torchrun")
        assert "Traceback" not in run.err
        assert first.read_record().status == "FAILED"


def test_runs_that_start_in_the_same_second_have_folders_of_their_own(tmp_path):
    wanted = str(tmp_path / "12-00-00-run")
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        made = list(threads.map(new_folder, [wanted] * 8))
    assert sorted(made) == [wanted, *(f"{wanted}-{number}" for number in range(2, 9))]
    (tmp_path / "file").touch()
    assert new_folder(str(tmp_path / "file" / "run")) == str(tmp_path / "file" / "run")


def test_the_commit_is_that_of_a_repository_that_tracks_the_code(tmp_path, monkeypatch):
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=me", "-c", "user.email=me@host", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "machine.py").touch()
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "machine.py"))
    git("init")
    git("commit", "--allow-empty", "-m", "first")
    assert "git.commit" not in machine._tags.__wrapped__(), "an installed copy in somebody else's repository"
    git("add", "machine.py")
    assert machine._tags.__wrapped__()["git.commit"] == git("rev-parse", "HEAD")


def test_code_that_may_differ_is_named():
    ours, theirs, changed = (
        {"git.commit": letter * 40, "git.dirty": dirty}
        for letter, dirty in (("a", "false"), ("b", "false"), ("a", "true"))
    )
    record = Record("ours", tags=ours)
    assert other_code(record, "r0", ours) is None
    assert "it is of commit bbbbbbbbbb, this one of commit aaaaaaaaaa" in other_code(record, "r1", theirs)
    assert "with uncommitted changes" in other_code(record, "r2", changed)
    assert other_code(Record("changed", tags=changed), "r2", changed) is not None


@pytest.mark.slow
@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_killed_process_of_several_ends_the_run_as_failed(tmp_path, rank):
    """A fit by two processes, of which one is killed while it works."""
    work = ("engine.stream=true", "approx=rf", "approx.n_components=2000", "orbit.size=400", "tracking.enabled=false")
    launcher = start(tmp_path, *work, program=TWO_PROCESSES)
    wait_for_text(wait_for_job(tmp_path, launcher).folder / "run.log", "797 test")
    started = {child.environ()["RANK"]: child for child in psutil.Process(launcher.pid).children()}
    started[rank].kill()
    _, err = launcher.communicate(timeout=240)
    assert launcher.returncode == 1
    said = [line for line in err.splitlines() if line.startswith("error")]
    assert len(said) == 1
    # whichever is first: the signal of torchrun, or the connection that is lost in a sum over the processes
    assert any(
        reason in said[0]
        for reason in (
            "of 2 was ended by torchrun, which does so when another one has died; start the job again",
            "of 2 lost touch with another one, which died or cannot be reached",
        )
    )
    (folder,) = folders(tmp_path)
    assert RunFolder(folder).read_record().status == "FAILED"


@pytest.mark.slow
def test_a_finished_job_of_several_processes_is_skipped_by_all(tmp_path):
    work = ("engine.stream=true", "approx=rf", *SMALL, "kernel.lengthscale=median", "resume=true")
    for expected in ("finished", "skipped: run"):
        done = start(tmp_path, *work, program=TWO_PROCESSES)
        out, err = done.communicate(timeout=240)
        assert done.returncode == 0
        assert expected in out + err
        assert "rror" not in out + err


@pytest.mark.slow
def test_nobody_reads_all_that_hydra_says(tmp_path):
    with start(tmp_path, "--info", "all") as done:
        assert done.stdout.readline() == "Hydra 1.3.8\n"
        done.stdout.close()
        assert done.stderr.read() == ""


def start(tmp_path: Path, *arguments: str, program: tuple[str, ...] = ()) -> subprocess.Popen:
    command = [sys.executable, *program, str(ROOT / "run.py"), *arguments, f"outputs={tmp_path / 'out'}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes)


def jobs_in_progress(tmp_path: Path) -> list[Marker]:
    """The jobs that have written their record, so that they count as started when their process dies."""
    markers = [marker for marker in Pending(tmp_path / "out").markers() if is_owned(marker)]
    jobs = [marker for marker in markers if "-sweep" not in marker.folder.name]
    return [marker for marker in jobs if RunFolder(marker.folder).read_record() is not None]


def wait_for_job(tmp_path: Path, sweep: subprocess.Popen) -> Marker:
    """A job that has started."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if found := jobs_in_progress(tmp_path):
            return found[0]
        assert sweep.poll() is None, sweep.communicate()
        time.sleep(0.02)
    raise TimeoutError("no job has started")


def wait_for_text(log: Path, text: str) -> None:
    deadline = time.monotonic() + 600
    while text not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.1)


def wait_until_all_ended(sweep: subprocess.Popen, workers: list[psutil.Process], seconds: float) -> None:
    sweep.communicate(timeout=seconds)
    _, alive = psutil.wait_procs(workers, timeout=seconds)
    assert not alive


def assert_sound(tmp_path: Path, jobs: int) -> None:
    """Every combination is finished once, with single metrics; no run is left running, and the database is intact."""
    client = mlflow_client(tmp_path)
    finished = [run for run in children(tmp_path) if run.info.status == "FINISHED"]
    assert sorted(int(run.data.params["seed"]) for run in finished) == list(range(jobs))
    for run in finished:
        assert len(client.get_metric_history(run.info.run_id, "test/accuracy")) == 1
    assert "RUNNING" not in statuses(tmp_path)
    assert not Pending(tmp_path / "out").markers()
    for folder in folders(tmp_path):
        assert json.loads((folder / "run.json").read_text())["status"] != "RUNNING"


@pytest.mark.slow
def test_a_single_run_that_is_terminated_is_marked(tmp_path):
    run = start(tmp_path, "dataset=rotated_digits", "approx=exact", "orbit.size=512", "engine.workers=1")
    wait_for_text(wait_for_job(tmp_path, run).folder / "run.log", "1000 train")
    run.terminate()
    run.communicate(timeout=120)
    assert run.returncode == 130
    assert statuses(tmp_path) == {"KILLED": 1}


@pytest.mark.slow
def test_a_reader_that_stops_is_no_error(tmp_path):
    process = start(tmp_path, "--info", "encoder=patches")
    process.stdout.close()
    process.stdout = None  # or communicate would read it
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (1, "")


@pytest.mark.slow
def test_job_whose_worker_died_is_run_again_in_the_same_sweep(tmp_path):
    sweep = start(tmp_path, *PARALLEL, "seed=0,1", "retry_failed=true")
    os.kill(wait_for_job(tmp_path, sweep).pid, signal.SIGKILL)
    out, err = sweep.communicate(timeout=240)
    assert sweep.returncode == 0, err
    assert "2 of 2 jobs finished" in out
    assert_sound(tmp_path, 2)
    assert len({run.data.tags["mlflow.parentRunId"] for run in children(tmp_path)}) == 1
    assert not (tmp_path / "mlruns").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_parallel_sweep_that_is_ended_leaves_nothing_running(tmp_path, number):
    sweep = start(tmp_path, *PARALLEL, "seed=0,1,2,3,4,5")
    wait_for_job(tmp_path, sweep)
    workers = psutil.Process(sweep.pid).children(recursive=True)
    for process in (sweep, *workers) if number == signal.SIGINT else (sweep,):  # Ctrl-C in a terminal reaches all
        os.kill(process.pid, number)
    wait_until_all_ended(sweep, workers, seconds=40)
    if number == signal.SIGKILL:
        assert start(tmp_path, "runner=sync").wait(120) == 0
    else:
        assert sweep.returncode == 130
        assert "FAILED" not in statuses(tmp_path)
    assert "RUNNING" not in statuses(tmp_path)
    again = start(tmp_path, *PARALLEL, "seed=0,1,2,3,4,5", "resume=true")
    out, err = again.communicate(timeout=240)
    assert again.returncode == 0, err
    assert "6 of 6 jobs finished" in out
    assert_sound(tmp_path, 6)


@pytest.mark.slow
def test_jobs_killed_at_random_moments_are_finished_once_each(tmp_path):
    """A sweep of 64 jobs on a new database, killed ten times, parent or worker in turn, and resumed until it ends."""
    rng, n_jobs = random.Random(20170), 64
    command = (*PARALLEL, f"seed={','.join(map(str, range(n_jobs)))}", "resume=true")
    sweep = start(tmp_path, *command)
    for kill in range(10):
        if sweep.poll() is not None:
            sweep = start(tmp_path, *command)
        wait_for_job(tmp_path, sweep)
        time.sleep(rng.uniform(0, 3))
        workers = [marker.pid for marker in jobs_in_progress(tmp_path) if marker.pid != sweep.pid]
        victim = sweep.pid if kill % 2 or not workers else workers[0]
        with contextlib.suppress(ProcessLookupError):  # its job has just ended
            os.kill(victim, signal.SIGKILL)
        if victim == sweep.pid:
            sweep.communicate(timeout=400)
    sweep.communicate(timeout=2000)
    sweep = start(tmp_path, *command)
    out, err = sweep.communicate(timeout=2000)
    assert sweep.returncode == 0, err
    assert f"{n_jobs} of {n_jobs} jobs finished" in out
    assert_sound(tmp_path, n_jobs)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [60, 1000])
def test_many_jobs_take_no_more_memory_and_time_than_few(run, monkeypatch, jobs):
    """Jobs without any work: what is kept of each, and the processor time it takes, by tenths of the jobs."""
    seen, process, tenth = [], psutil.Process(), jobs // 10

    def nothing(self, job) -> None:
        if job.record.job % tenth == 0:
            gc.collect()
            seen.append((len(gc.get_objects()), process.memory_info().rss / 2**10, time.process_time()))

    monkeypatch.setattr(Fit, "run", nothing)
    assert run("-m", *SMALL, f"seed=range(0,{jobs + 1})")[0] == 0
    objects, kib, seconds = np.diff(np.array(seen), axis=0).T / tenth
    print(f"a job, by tenths: objects {objects.round(1)}, KiB {kib.round(1)}, processor seconds {seconds.round(3)}")
    assert objects[1:].max() < 100  # a configuration has some thousand
    assert seconds.max() < 1
    assert seconds[-1] < 1.5 * np.median(seconds)


@pytest.mark.parametrize("option", ["-m", "--multirun"])
def test_a_sweep_in_several_processes_is_one_line(run, monkeypatch, option):
    expected = "-m: several processes share one run, found a sweep; start each of its jobs by a command of its own"
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run(option, "seed=0,1") == (2, "", f"error: {expected}\n")
