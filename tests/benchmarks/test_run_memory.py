"""runner=memory: cases in their own processes, and generated images that are never stored."""

import numpy as np
import psutil
import pytest
from command_line import quickly_composed

from benchmarks.memory import Waves, measure
from runners.config.plan import plan
from runners.measure.machine import peak_memory_mb
from runners.tracking.record import RunFolder

CASES = "runner.cases={few: {points: 60}, more: {points: 90}, images: {points: data, orbit.size: 3}}"


def test_images_do_not_depend_on_the_order_of_access():
    X, rows = Waves(50, seed=3), np.array([40, 3, 17])
    whole = X[np.arange(50)]
    assert whole.shape == (50, 28, 28)
    assert len(X) == 50
    np.testing.assert_allclose(X[rows], whole[rows], atol=1e-5)
    assert np.abs(whole - Waves(50, seed=4)[np.arange(50)]).max() > 0.1
    assert 10 < X.labels().sum() < 40


def test_the_peak_includes_memory_in_use():
    before = psutil.Process().memory_info().rss / 2**20
    held = np.ones(2**24)  # 128 MiB
    assert before + 100 < peak_memory_mb()
    assert held.sum() == 2**24


@pytest.mark.parametrize("points", [60, "data"])
def test_a_case(points):
    settings = ("runner=memory", "approx=rf", "approx.n_components=16", "dataset=digits", "engine.progress=false")
    found = measure(plan(quickly_composed(*settings, "dataset.n_train=200", "dataset.n_test=100")), points)
    assert (found["points"], found["columns"]) == (60 if points == 60 else 300, 32)
    assert found["accuracy"] > 0.3
    assert found["s"] > 0
    assert 50 < found["peak_mb"] < 20_000


def test_numbers_of_points_are_in_full(run, monkeypatch):
    found = {"points": 1e6, "columns": 14000.0, "s": 1.25, "cpu_s": 2.0, "peak_mb": 2768.4}
    monkeypatch.setattr("benchmarks.memory._in_child", lambda plan, points: found)
    folder = run.finished("runner=memory", "runner.cases={all: {points: data}}", "tracking.enabled=false")
    assert "| all  | 1,000,000 | 14,000  | 1.25 | 2 " in (folder / "table.md").read_text()


def test_some_of_the_cases(run, monkeypatch):
    measured = []
    found = dict.fromkeys(("points", "columns", "s", "cpu_s", "peak_mb"), 1.0)
    monkeypatch.setattr("benchmarks.memory._in_child", lambda plan, points: measured.append(points) or found)
    run.ok("runner=memory", CASES, "runner.only=[more]", "tracking.enabled=false")
    assert measured == [90]


@pytest.mark.slow
def test_a_case_reads_data_from_the_working_directory(run, tmp_path, rng):
    np.savez(tmp_path / "mine.npz", X=rng.normal(size=(40, 3)), y=np.arange(40) % 2)
    settings = ("dataset=arrays", "dataset.path=mine.npz", "group=identity", "approx=rf", "tracking.enabled=false")
    folder = run.finished("runner=memory", "runner.cases={all: {points: data}}", *settings)
    assert "| all  | 40 " in (folder / "table.md").read_text()


@pytest.mark.slow
def test_every_case_has_its_peak_seconds_and_accuracy(run):
    small = ("approx=rf", "approx.n_components=16", "dataset=digits", "dataset.n_train=200", "dataset.n_test=100")
    folder = run.finished("runner=memory", "tracking.enabled=false", "engine.workers=1", CASES, *small)
    metrics = RunFolder(folder).read_metrics()
    for label in ("few", "more", "images"):
        assert 50 < metrics[f"peak_mb/{label}"] < 4000
        assert metrics[f"s/{label}"] > 0
        assert metrics[f"columns/{label}"] == 32
        assert metrics[f"accuracy/{label}"] > 0.3
    assert {path.stem for path in (folder / "figures").iterdir()} == {"memory"}
    assert "| images | 300 " in (folder / "table.md").read_text()
