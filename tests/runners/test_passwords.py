"""The password of a tracking URI is in nothing that a run or sweep writes or prints."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from command_line import SMALL

from orbit.core.errors import InputError
from runners.experiments.fit import Fit
from runners.tracking.mlflow import Tracker
from runners.tracking.passwords import MaskingFormatter, conceal, mask, reveal
from runners.tracking.record import Record, RunFolder

SECRET = "pa55-%40-w0rd"


@pytest.fixture(autouse=True)
def _no_known_uris(monkeypatch):
    monkeypatch.setenv("ORBIT_URIS", "{}")


def holders(folder: Path) -> list[Path]:
    """The files, at any depth, hidden ones and databases included, that contain the password."""
    found = [path for path in folder.rglob("*") if path.is_file() and b"pa55" in path.read_bytes()]
    return [*found, *(path for path in folder.rglob("*pa55*"))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://ann:pa55@host:5432/runs", "postgresql://ann:***@host:5432/runs"),
        (
            "(Background on postgresql+psycopg2://ann:p@a/55@host/runs)",
            "(Background on postgresql+psycopg2://ann:***@host/runs)",
        ),
        ("https://:pa55@host, then", "https://:***@host, then"),
        (
            "postgresql://host/runs?user=ann&password=pa55&sslmode=off",
            "postgresql://host/runs?user=ann&password=***&sslmode=off",
        ),
        (r"{'a': \"x://h/r?password=pa\\u00e455\"}", r"{'a': \"x://h/r?password=***\"}"),
        (r"x://h/r?password=ab\cd", "x://h/r?password=***"),
        ("http://127.0.0.1:5000/#/experiments/1", "http://127.0.0.1:5000/#/experiments/1"),
        ("sqlite:////tmp/mlflow.db", "sqlite:////tmp/mlflow.db"),
    ],
)
def test_mask(text, expected):
    assert mask(text) == expected
    assert mask(expected) == expected


def test_the_record_of_a_run_can_be_read_where_a_masked_password_was_quoted(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_record(Record("mine", overrides=[f'tracking.uri="postgresql://host/runs?user=ann&password={SECRET}"']))
    assert folder.read_record().overrides == ['tracking.uri="postgresql://host/runs?user=ann&password=***"']
    assert holders(tmp_path) == []


def test_arguments_are_masked_and_the_uri_is_restored():
    uri = f"postgresql://ann:{SECRET}@host/runs"
    assert conceal(["-m", f"tracking.uri='{uri}'", "seed=0"]) == ["-m", f"tracking.uri='{mask(uri)}'", "seed=0"]
    assert reveal(mask(uri)) == uri
    with pytest.raises(InputError, match="is masked; give the URI with its password"):
        reveal("postgresql://bob:***@host/runs")
    with pytest.raises(InputError, match="^tracking.uri: expected a URI without spaces"):
        conceal(["tracking.uri=postgresql://ann:pa 55@host/runs"])


def test_tracebacks_in_the_log_are_masked():
    try:
        raise RuntimeError(f"postgresql://ann:{SECRET}@host/runs")
    except RuntimeError as error:
        record = logging.LogRecord("n", logging.ERROR, "", 0, "failed", (), (type(error), error, error.__traceback__))
    assert "postgresql://ann:***@host" in MaskingFormatter().format(record)
    assert "pa55" not in MaskingFormatter().format(record)


@pytest.fixture
def reachable(monkeypatch, tmp_path, empty_database):
    """A store whose URI has a password: ``postgresql://`` URIs lead to an SQLite database outside the outputs."""
    shutil.copy(empty_database, tmp_path / "server.db")
    init = Tracker.__init__

    def connect(self, *args, **kwargs):
        init(self, *args, **kwargs)
        assert SECRET in self.uri
        self.uri = f"sqlite:///{tmp_path / 'server.db'}"

    monkeypatch.setattr(Tracker, "__init__", connect)


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("source", ["argument", "file"])
@pytest.mark.slow
def test_sweep_leaves_no_byte_of_the_password(run, tmp_path, monkeypatch, source):
    """One job finishes and one fails with the password in its message, so that traceback, log and MLflow have it."""
    uri = f"postgresql://ann:{SECRET}@127.0.0.1:1/runs"
    where = [f"tracking.uri={uri}"]
    if source == "file":
        (tmp_path / "conf" / "experiment").mkdir(parents=True)
        (tmp_path / "conf" / "experiment" / "mine.yaml").write_text(
            f"# @package _global_\ntracking:\n  uri: {uri}\n", encoding="utf-8"
        )
        where = ["--config-dir", str(tmp_path / "conf"), "experiment=mine"]
    fit = Fit.run

    def fail_for_seed_1(self, job):
        if job.plan.config["seed"] == 1:
            raise RuntimeError(f"cannot reach {uri}")
        fit(self, job)

    monkeypatch.setattr(Fit, "run", fail_for_seed_1)
    code, out, err = run("-m", *where, *SMALL[:-1], "seed=0,1")
    assert code == 1
    assert "1 of 2 jobs finished" in out
    assert "cannot reach postgresql://ann:***@127.0.0.1:1/runs" in err
    assert "pa55" not in out + err
    assert (tmp_path / "server.db").stat().st_size > 0
    shutil.rmtree(tmp_path / "conf", ignore_errors=True)
    assert holders(tmp_path) == []


def test_unreachable_database(run, tmp_path):
    code, out, err = run(f"tracking.uri=postgresql://ann:{SECRET}@127.0.0.1:1/runs", *SMALL)
    assert code == 2
    assert err.startswith("error: tracking.uri: cannot use postgresql://ann:***@127.0.0.1:1/runs")
    assert "pa55" not in out + err
    assert holders(tmp_path) == []
