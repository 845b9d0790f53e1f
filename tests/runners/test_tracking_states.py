"""Runs that start, finish, die, lose their store and are found again, in any order, beside a model of what must be.

Hypothesis draws the order, the same ones in every run. Each step is that of a whole run, without its fit.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import mlflow
import pytest
from command_line import is_owned
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from orbit.core.errors import InputError
from runners.tracking import stores, upload
from runners.tracking.mlflow import Tracker
from runners.tracking.pending import Pending
from runners.tracking.record import Record, RunFolder
from runners.tracking.recovery import recover

CONFIGS = ("a", "b")


class Killed(BaseException):
    """Ends the code that runs, as a signal that cannot be caught does."""


def kill(*args: object) -> None:
    raise Killed


class Tracking(RuleBasedStateMachine):
    """Runs of this process, which stands for many, and what is expected of each.

    ``alive``: runs in progress. ``ended``: the status that a run must have on disk. ``waiting``: ended runs that MLflow
    may not have yet, because the store or the process was lost. ``known``: the status in MLflow of the others.
    """

    folder: Path
    new_database: Callable[[Path], None]

    def __init__(self) -> None:
        super().__init__()
        self.outputs = Path(tempfile.mkdtemp(dir=self.folder))  # MLflow keeps connections to the files it has opened
        self.new_database(self.outputs / "mlflow.db")
        self.tracker = Tracker(self.outputs, None, "orbit")
        self.alive: dict[str, Record] = {}
        self.ended: dict[str, str] = {}
        self.waiting: set[str] = set()
        self.known: dict[str, str] = {}
        self.configs: dict[str, str] = {}

    # ---- steps -------------------------------------------------------------------------------------------------------

    @rule(config=st.sampled_from(CONFIGS), stored=st.booleans())
    def start(self, config: str, stored: bool) -> None:
        """A run starts, perhaps while the store does not answer."""
        name = f"{len(self.configs):02}"
        record = Record(name, config_hash=config, params={"seed": 0})
        folder = RunFolder(self.outputs / "2026-01-01" / name)
        folder.path.mkdir(parents=True)
        folder.write_record(record)
        self.tracker.mark(folder)
        with self._store(stored):
            self.tracker.begin(record, folder)
        self.alive[name], self.configs[name] = record, config

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), status=st.sampled_from(["FINISHED", "FAILED"]), stored=st.booleans())
    def finish(self, data: st.DataObject, status: str, stored: bool) -> None:
        """A run ends and is uploaded, if the store answers."""
        name, folder = self._write_end(data, status)
        with self._store(stored):
            assert self.tracker.upload(folder) == stored
        if stored:
            self.known[name] = status
        else:
            self.waiting.add(name)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """The process of a run dies before its end."""
        name = data.draw(st.sampled_from(sorted(self.alive)))
        del self.alive[name]
        self._bury(name)
        self.ended[name] = "FAILED"
        self.waiting.add(name)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), step=st.sampled_from(["_log_params", "_log_metrics", "client"]))
    def die_in_the_upload(self, data: st.DataObject, step: str) -> None:
        """The process of a finished run dies before or after a step of its upload."""
        name, folder = self._write_end(data, "FINISHED")
        target = (mlflow.MlflowClient, "set_terminated") if step == "client" else (upload, step)
        with patch.object(*target, kill), pytest.raises(Killed):
            self.tracker.upload(folder)
        self._bury(name)
        self.waiting.add(name)

    @rule()
    def sync(self) -> None:
        """Another start, or ``runner=sync``, while the store answers."""
        assert recover(self.outputs, self.tracker) == (len(self.waiting), 0)
        self.known |= {name: self.ended[name] for name in self.waiting}
        self.waiting.clear()

    @rule()
    def sync_without_store(self) -> None:
        """Runs whose process died are ended, and nothing is lost."""
        with self._store(False):
            assert recover(self.outputs, self.tracker)[0] == 0

    @rule(config=st.sampled_from(CONFIGS))
    def resume(self, config: str) -> None:
        """A run is skipped if, and only if, MLflow has a finished one of its configuration."""
        recover(self.outputs, self.tracker)
        self.known |= {name: self.ended[name] for name in self.waiting}
        self.waiting.clear()
        done = {name for name, status in self.known.items() if status == "FINISHED" and self.configs[name] == config}
        found = self.tracker.finished(Record("new", config_hash=config))
        assert (found is None) == (not done)
        assert found is None or found.info.run_name in done

    # ---- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def runs_that_are_not_complete_are_marked(self) -> None:
        markers = Pending(self.outputs).markers()
        assert {marker.folder.name for marker in markers} == self.alive.keys() | self.waiting
        assert {marker.folder.name for marker in markers if is_owned(marker)} == self.alive.keys()

    @invariant()
    def every_run_is_in_mlflow_once_with_its_metrics(self) -> None:
        found = self._runs()
        names = [run.info.run_name for run in found]
        assert len(names) == len(set(names))
        assert set(names) <= self.configs.keys()
        for run in found:
            name = run.info.run_name
            if (status := self.known.get(name)) is not None:
                assert run.info.status == status
                assert run.data.metrics.get("test/accuracy") == self._metrics(name).get("test/accuracy")
        assert self.known.keys() <= set(names)

    def teardown(self) -> None:
        """All processes die, and the next start finds the rest."""
        for name in self.alive:
            self._bury(name)
            self.ended[name] = "FAILED"
        recover(self.outputs, self.tracker)
        assert not Pending(self.outputs).markers()
        assert {run.info.run_name: run.info.status for run in self._runs()} == self.ended
        for name, status in self.ended.items():
            assert self._folder(name).read_record().status == status

    # ---- helpers -----------------------------------------------------------------------------------------------------

    def _runs(self) -> list:
        client = mlflow.MlflowClient(self.tracker.uri)
        found = client.get_experiment_by_name("orbit")
        return [] if found is None else client.search_runs([found.experiment_id])

    def _folder(self, name: str) -> RunFolder:
        return RunFolder(self.outputs / "2026-01-01" / name)

    def _metrics(self, name: str) -> dict[str, float]:
        return self._folder(name).read_metrics()

    def _write_end(self, data: st.DataObject, status: str) -> tuple[str, RunFolder]:
        """The end of a drawn run, on disk."""
        name = data.draw(st.sampled_from(sorted(self.alive)))
        record, folder = self.alive.pop(name), self._folder(name)
        folder.write_metrics({"test/accuracy": int(name) / 100})
        record.status, record.end = status, record.start + 1
        folder.write_record(record)
        self.ended[name] = status
        return name, folder

    def _bury(self, name: str) -> None:
        """Let the process that owns a run be dead."""
        (marker,) = (marker for marker in Pending(self.outputs).markers() if marker.folder.name == name)
        Pending(self.outputs).release(marker)

    def _store(self, answers: bool):
        return patch.object(stores, "check", lambda uri: None if answers else no_answer())


def no_answer() -> None:
    raise InputError("tracking.uri: the store does not answer")


@pytest.mark.parametrize("examples", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_no_run_is_lost_doubled_or_left_running(tmp_path, new_database, examples):
    machine = type("Machine", (Tracking,), {"folder": tmp_path, "new_database": staticmethod(new_database)})
    drawn = settings(
        max_examples=examples,
        stateful_step_count=12,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    run_state_machine_as_test(machine, settings=drawn)
