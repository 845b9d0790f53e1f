"""Recording of runs: new databases, markers, uploads that break off, processes that die, stores that do not answer."""

import contextlib
import errno
import gc
import json
import multiprocessing
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import mlflow
import numpy as np
import pytest
import sqlalchemy
from command_line import given_away, is_owned, write_experiment
from filelock import FileLock

from orbit.core.errors import InputError
from runners.tracking import stores, upload
from runners.tracking.mlflow import Tracker
from runners.tracking.pending import Pending
from runners.tracking.record import Record, RunFolder, SweepFolder
from runners.tracking.recovery import recover

ROOT = Path(__file__).parents[2]


class Constant:
    """A model that MLflow can log."""

    def predict(self, X):
        return np.zeros(len(X))


@pytest.fixture
def out(database) -> Path:
    """An outputs folder with an empty database."""
    return database.parent


@pytest.fixture
def tracker(out) -> Tracker:
    return Tracker(out, None, "orbit")


def new_folder(out: Path, name: str = "run", status: str = "FINISHED", model: bool = False) -> RunFolder:
    folder = RunFolder(out / "2026-01-01" / name)
    folder.path.mkdir(parents=True)
    end = None if status == "RUNNING" else 2000.0
    folder.write_record(Record(name, config_hash=name, status=status, start=1000.0, end=end, params={"seed": 0}))
    folder.write_metrics({"test/accuracy": 0.5, "test/nll": 1.5})
    folder.write_history({"epoch/score": [0.1, 0.2, 0.3]})
    if model:
        folder.write_model(Constant(), np.zeros((3, 2)), np.zeros(3))
    return folder


def runs_of(out: Path) -> list:
    client = mlflow.MlflowClient(f"sqlite:///{out / 'mlflow.db'}")
    return client.search_runs([client.get_experiment_by_name("orbit").experiment_id])


class TestNewDatabase:
    def test_has_its_name_when_it_is_complete(self, tmp_path, monkeypatch):
        def create(tracking_uri: str) -> None:
            Path(tracking_uri.removeprefix("sqlite:///")).write_text("some tables")
            assert not list(tmp_path.iterdir())
            raise RuntimeError("created")

        monkeypatch.setattr(mlflow, "MlflowClient", create)
        with pytest.raises(InputError, match="created"):
            Tracker(tmp_path, None, "orbit").open()
        assert not list(tmp_path.iterdir())

    @pytest.mark.slow
    def test_by_several_processes_at_once(self, tmp_path):
        """In one file, two of three would fail: "duplicate column name", "Online migration expected"."""
        code = (
            "import sys, mlflow.sklearn\nfrom pathlib import Path\nfrom runners.tracking.mlflow import Tracker\n"
            "print('ready', flush=True); sys.stdin.readline(); Tracker(Path('out'), None, 'orbit').open()"
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        made = [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment, **pipes) for _ in "123"]
        for process in made:
            assert process.stdout.readline() == "ready\n"
        for process in made:
            process.stdin.write("\n")
            process.stdin.flush()
        assert [process.wait(120) for process in made] == [0, 0, 0]

    def test_experiment_made_meanwhile_by_another_process_is_used(self, tracker, monkeypatch):
        tracker.open()
        client, found = tracker._client, iter([None])
        ask = client.get_experiment_by_name
        monkeypatch.setattr(client, "get_experiment_by_name", lambda name: next(found, ask(name)))
        assert tracker._experiment_id() == ask("orbit").experiment_id


class TestMarkers:
    def test_vanished_and_empty_markers_are_no_error(self, out, tracker):
        marker = tracker.mark(new_folder(out))
        tracker.markers.release(marker)
        marker.path.unlink()
        assert tracker.markers.take(marker) is None
        marker.path.write_text("")
        assert tracker.markers.take(marker) is None
        assert tracker.markers.markers() == []
        assert recover(out, tracker) == (0, 0)

    def test_run_of_a_living_process_is_left_alone(self, out, tracker):
        folder = new_folder(out, status="RUNNING")
        with given_away(tracker.mark(folder)):
            assert recover(out, tracker) == (0, 0)
            with pytest.raises(InputError, match=f"in use by process {os.getpid()} on {socket.gethostname()}"):
                tracker.mark(folder)

    def test_on_a_file_system_without_locks_is_one_line(self, out, monkeypatch):
        monkeypatch.setattr(FileLock, "acquire", Mock(side_effect=OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))))
        with pytest.raises(InputError, match=r"^outputs: cannot write to \S+ \(its file system has no locks\)"):
            Pending(out).add(out / "run")

    def test_folder_of_a_killed_process_is_free_when_the_process_has_ended(self, out):
        markers, folder = Pending(out), out / "run"
        marker = markers.add(folder)
        markers.release(marker)
        hold = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
        command = [sys.executable, "-c", hold, marker.path.with_suffix(".lock")]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        assert not markers.wait_until_free(folder, 0.2)
        assert markers.wait_until_free(out / "other", 0.2)
        end = threading.Timer(0.3, process.kill)
        end.start()
        assert markers.wait_until_free(folder, 60)
        assert process.wait() != 0

    def test_only_one_of_two_processes_takes_a_run(self, out, tracker):
        marker = tracker.mark(new_folder(out))
        tracker.markers.release(marker)
        assert not is_owned(marker)
        assert tracker.markers.take(marker) == marker
        assert is_owned(marker)
        with given_away(marker):
            assert tracker.markers.take(marker) is None

    def test_those_of_earlier_versions_are_of_dead_processes(self, out, tracker):
        marker = tracker.mark(new_folder(out))
        content = json.loads(marker.path.read_text()) | {"owner": {"host": "h", "pid": os.getpid(), "started": 0.0}}
        tracker.markers.release(marker)
        marker.path.write_text(json.dumps(content))
        assert recover(out, tracker) == (1, 0)


class TestUpload:
    @pytest.mark.parametrize(
        "breaks",
        ["_log_params", "_log_metrics", "log_outputs", "log_model_artifacts", "_log_model", "set_terminated", "remove"],
    )
    def test_one_that_broke_off_is_completed_and_nothing_is_doubled(self, out, tracker, monkeypatch, breaks):
        folder = new_folder(out, model=True)
        break_off(monkeypatch, tracker, breaks)
        with pytest.raises(KeyboardInterrupt):
            tracker.upload(folder)
        monkeypatch.undo()
        assert tracker.upload(folder)
        (run,) = runs_of(out)
        assert run.info.status == "FINISHED"
        assert run.data.metrics == {"test/accuracy": 0.5, "test/nll": 1.5, "epoch/score": 0.3}
        assert run.data.params == {"seed": "0"}
        history = {
            name: [m.step for m in tracker._client.get_metric_history(run.info.run_id, name)]
            for name in run.data.metrics
        }
        assert history == {"test/accuracy": [0], "test/nll": [0], "epoch/score": [1, 2, 3]}
        (model,) = run.outputs.model_outputs
        assert str(tracker._client.get_logged_model(model.model_id).status) == "READY"
        mlflow.set_tracking_uri(tracker.uri)
        assert mlflow.sklearn.load_model(f"runs:/{run.info.run_id}/model") is not None
        assert tracker.markers.markers() == []

    def test_the_model_has_the_source_and_parameters_of_its_run(self, out, tracker):
        folder = new_folder(out, model=True)
        tracker.upload(folder)
        (run,) = runs_of(out)
        model = tracker._client.get_logged_model(run.outputs.model_outputs[0].model_id)
        source = {key: value for key, value in run.data.tags.items() if key.startswith("mlflow.source.")}
        assert (model.name, model.source_run_id, model.params) == ("model", run.info.run_id, {"seed": "0"})
        assert model.tags == source

    def test_run_whose_id_was_not_written_is_found_again(self, out, tracker):
        folder = new_folder(out, status="RUNNING")
        tracker.start(folder.read_record())  # and then the process dies
        assert tracker.upload(folder)
        assert len(runs_of(out)) == 1

    def test_pools_of_threads_for_artifacts_do_not_add_up(self, out, tracker):
        def pools() -> int:
            gc.collect()
            return sum(type(kept) is ThreadPoolExecutor for kept in gc.get_objects())

        tracker.upload(new_folder(out, "0", model=True))
        first = pools()
        for name in "12":
            assert tracker.upload(new_folder(out, name, model=True))
        assert len(runs_of(out)) == 3
        assert pools() <= first


def break_off(monkeypatch, tracker: Tracker, where: str) -> None:
    """Make an upload stop after a step, as if the process had been killed."""
    in_mlflow = dict.fromkeys(("log_outputs", "log_model_artifacts"), type(tracker._client))
    owner = {"set_terminated": tracker._client, "remove": tracker.markers, **in_mlflow}.get(where, upload)
    step = getattr(owner, where)

    def stop(*args: object, **named: object) -> None:
        if where != "remove":
            step(*args, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, where, stop)


class TestRecovery:
    def test_run_that_is_not_tracked(self, out):
        folder = new_folder(out, status="RUNNING")
        marker = Pending(out).add(folder.path)
        Pending(out).release(marker)
        assert recover(out, None) == (0, 0)
        ended = folder.read_record()
        assert ended.status == "FAILED"
        assert f"process {os.getpid()} on" in ended.error
        assert Pending(out).markers() == []

    def test_sweep_whose_parent_died_gets_its_summary(self, out, tracker):
        sweep = SweepFolder(out / "2026-01-01" / "12-00-00-sweep")
        sweep.path.mkdir(parents=True)
        sweep.write_record(Record("sweep", tags={"sweep": "2026-01-01/12-00-00-sweep"}))
        for job in range(2):
            folder = new_folder(out, f"12-00-00-sweep/{job}-run", status=("FINISHED", "RUNNING")[job])
            record = folder.read_record()
            record.job = job
            folder.write_record(record)
        for left in (sweep, folder):
            tracker.markers.release(tracker.mark(left))
        assert recover(out, tracker) == (2, 0)
        assert sweep.read_record().status == "FAILED"
        text = (sweep.path / "summary.md").read_text()
        assert "FINISHED" in text
        assert "FAILED" in text
        (logged,) = (run for run in runs_of(out) if run.info.run_name == "sweep")
        artifacts = {item.path for item in tracker._client.list_artifacts(logged.info.run_id)}
        assert artifacts == {"summary.md", "summary.tex", "summary.json", "metrics.json", "sweep.json"}

    def test_runs_of_another_experiment_stay_pending(self, out, tracker):
        other = Tracker(out, None, "other one")
        other.markers.release(other.mark(new_folder(out)))
        assert recover(out, tracker) == (0, 1)
        assert not is_owned(other.markers.markers()[0])
        assert recover(out, other) == (1, 0)


class TestUnusableStores:
    """Each is reported within seconds, where MLflow's own retries take minutes."""

    @pytest.fixture
    def silent_server(self):
        """The port of a server that accepts connections and never answers."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]

    @pytest.mark.parametrize(
        ("uri", "expected"),
        [
            ("http://127.0.0.1:1", "no tracking server answers at http://127.0.0.1:1 ([Errno 111] Connection refused)"),
            ("http://127.0.0.1:{port}", "no tracking server answers at http://127.0.0.1:{port} ("),
            ("postgresql://ann@127.0.0.1:1/runs", "cannot use postgresql://ann@127.0.0.1:1/runs"),
            ("mysql+nothing://ann@127.0.0.1/runs", "Can't load plugin"),
            ("sqlite:////proc/runs.db", "cannot use sqlite:////proc/runs.db ("),
            ("sqlite:///{tmp}/text.db", "file is not a database"),
            ("sqlite:///{tmp}/locked.db", "database is locked"),
        ],
    )
    def test_reported_in_under_5_s(self, tmp_path, monkeypatch, silent_server, uri, expected):
        monkeypatch.setattr(stores, "_CHECK_TIMEOUT_S", 2.0)
        (tmp_path / "text.db").write_text("some text that is not a database, and longer than its header is " * 9)
        names = {"port": silent_server, "tmp": tmp_path}
        with contextlib.closing(sqlite3.connect(tmp_path / "locked.db", isolation_level=None)) as holder:
            holder.execute("begin exclusive")
            start = time.monotonic()
            with pytest.raises(InputError) as error:
                Tracker(tmp_path, uri.format(**names), "orbit").open()
            assert time.monotonic() - start < 5
        assert expected.format(**names) in str(error.value)
        assert str(error.value).startswith("tracking.uri: ")

    def test_driver_that_is_not_installed(self):
        error = stores.unusable("postgresql://host/runs", ModuleNotFoundError("No module", name="psycopg"))
        assert "install its driver with pip install 'orbit-kernels[postgres]'" in str(error)


def test_run_goes_on_when_the_database_breaks(out, tracker, log_messages):
    folder = new_folder(out, status="RUNNING")
    record = folder.read_record()
    (out / "mlflow.db").write_text("some text that is not a database, and longer than its header is " * 9)
    tracker.begin(record, folder)
    assert record.run_id is None
    assert "the run goes on" in "\n".join(log_messages)
    assert not tracker.upload(folder)
    assert [is_owned(marker) for marker in tracker.markers.markers()] == [False]


@pytest.mark.parametrize(
    ("artifacts", "expected"),
    [(None, "out/artifacts/orbit"), ("kept", "kept/orbit"), ("s3://bucket/runs/", "s3://bucket/runs/orbit")],
)
def test_artifacts_of_any_database_are_in_outputs_or_where_they_are_told(
    tmp_path, monkeypatch, new_database, artifacts, expected
):
    new_database(tmp_path / "elsewhere.db")
    monkeypatch.chdir(tmp_path)
    tracker = Tracker(tmp_path / "out", f"sqlite:///{tmp_path / 'elsewhere.db'}", "orbit", artifacts)
    tracker.open()
    location = tracker._client.get_experiment_by_name("orbit").artifact_location
    assert location == (expected if "://" in expected else (tmp_path / expected).as_uri())
    if artifacts is None:
        assert tracker.upload(new_folder(tmp_path / "out", model=True))
        assert len(list((tmp_path / "out" / "artifacts" / "orbit").rglob("metrics.json"))) == 1
    assert not (tmp_path / "mlruns").exists()


def test_a_folder_of_artifacts_that_cannot_be_made_is_refused_before_an_experiment_gets_it(tmp_path, database):
    (tmp_path / "file").touch()
    tracker = Tracker(tmp_path / "out", None, "new", str(tmp_path / "file" / "kept"))
    with pytest.raises(
        InputError, match=r"^tracking\.artifacts: cannot write to .*/file/kept \(Not a directory\); set it"
    ):
        tracker.open()
    assert tracker._client.get_experiment_by_name("new") is None


def test_only_the_answer_of_a_store_is_timed_not_the_import_of_its_driver(tmp_path, monkeypatch):
    create_engine = sqlalchemy.create_engine

    def create(*arguments, **options):
        time.sleep(0.6)  # as the first imports from a cold disk
        return create_engine(*arguments, **options)

    (tmp_path / "mlflow.db").touch()
    monkeypatch.setattr(stores, "_CHECK_TIMEOUT_S", 0.5)
    monkeypatch.setattr(sqlalchemy, "create_engine", create)
    stores.check(f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.setattr(sqlalchemy, "inspect", lambda connection: time.sleep(0.8))
    with pytest.raises(InputError, match=r"cannot use sqlite:.* .no answer in 0.5 s."):
        stores.check(f"sqlite:///{tmp_path / 'mlflow.db'}")


def _log_runs(out: Path, number: int) -> None:
    """Log five runs one after the other, in a process of its own."""
    tracker = Tracker(out, None, "orbit")
    for k in range(5):
        folder = new_folder(out, f"{number}-{k}")
        record = folder.read_record()
        tracker.mark(folder)
        tracker.begin(record, folder)
        tracker.upload(folder)


@pytest.mark.slow
def test_eight_processes_write_one_database(out):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_log_runs, args=(out, number)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(600)
    assert [writer.exitcode for writer in writers] == [0] * 8
    tracker = Tracker(out, None, "orbit")
    recover(out, tracker)  # what a busy database refused
    assert not Pending(out).markers()
    logged = runs_of(out)
    assert sorted(run.info.run_name for run in logged) == sorted(f"{i}-{k}" for i in range(8) for k in range(5))
    for run in logged:
        assert run.info.status == "FINISHED"
        assert run.data.metrics["test/accuracy"] == 0.5
        assert len(tracker._client.get_metric_history(run.info.run_id, "epoch/score")) == 3


@pytest.mark.parametrize("options", [(), ("-m",)], ids=["run", "sweep"])
@pytest.mark.parametrize("source", ["argument", "variable", "file"])
def test_a_uri_with_a_password_is_refused_and_written_nowhere(run, tmp_path, monkeypatch, source, options):
    uri = "postgresql://ann:pa55@127.0.0.1:1/runs"
    monkeypatch.setenv("STORE", uri)
    file = write_experiment(tmp_path / "conf", f"tracking:\n  uri: {uri}\n")
    given = {
        "argument": [f"tracking.uri={uri}"],
        "variable": ["tracking.uri=${oc.env:STORE}"],
        "file": [f"hydra.searchpath=[file://{tmp_path}/conf]", "experiment=mine"],
    }
    err = run.refused(*options, *given[source], "seed=0")
    assert err.startswith("error: tracking.uri: expected a URI without a password, found one; give it by PGPASSWORD")
    assert "pa55" not in run.said
    file.unlink()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and b"pa55" in path.read_bytes()] == []
