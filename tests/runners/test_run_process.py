"""run.py as a separate process: parallel sweeps and termination."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import mlflow
import pytest

ROOT = Path(__file__).parents[2]
SMALL = ("dataset.n_train=60", "dataset.n_test=40", "approx.n_components=20", "orbit.size=4", "runner.save_model=false")


def start(tmp_path: Path, *args: str) -> subprocess.Popen:
    command = [sys.executable, str(ROOT / "run.py"), *args, f"outputs={tmp_path / 'out'}"]
    return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(tmp_path: Path) -> list:
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("orbit")
    return [r for r in client.search_runs([experiment.experiment_id]) if "mlflow.parentRunId" in r.data.tags]


@pytest.mark.slow
def test_a_parallel_sweep_on_a_new_database_records_every_job(tmp_path):
    """Workers that create the tables of a new database race; the parent does it before them."""
    process = start(tmp_path, "-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", *SMALL, "seed=0,1,2,3")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert "4 of 4 jobs finished" in out
    logged = children(tmp_path)
    assert sorted(r.data.tags["job"] for r in logged) == ["0", "1", "2", "3"]
    assert {r.info.status for r in logged} == {"FINISHED"}
    assert len({r.data.tags["mlflow.parentRunId"] for r in logged}) == 1
    assert not (tmp_path / "mlruns").exists()


@pytest.mark.slow
def test_termination_marks_the_run_killed(tmp_path):
    process = start(tmp_path, "dataset=rotated_digits", "approx=exact", "orbit.size=512", "engine.workers=1")
    deadline = time.monotonic() + 120
    while not list((tmp_path / "out").rglob("run.log")) and time.monotonic() < deadline:
        time.sleep(0.2)
    log = next((tmp_path / "out").rglob("run.log"))
    while "1000 train" not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.2)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 130
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}")
    (logged,) = client.search_runs([client.get_experiment_by_name("orbit").experiment_id])
    assert logged.info.status == "KILLED"


@pytest.mark.slow
def test_a_reader_that_stops_is_no_error(tmp_path):
    process = start(tmp_path, "--info", "encoder=patches")
    process.stdout.close()
    process.stdout = None  # or communicate would read it
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (1, "")
