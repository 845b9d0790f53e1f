"""runner=archive: accuracy on published sets of series."""

import importlib.util
import json

import numpy as np
import pytest

SETTINGS = ("experiment=bench_series", "runner.sets=[Made]", "dataset.bundled=Made", "runner.seeds=2")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A data set as aeon ships them: waves of two frequencies."""
    folder = tmp_path / "Made"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for part in ("TRAIN", "TEST"):
        lines = []
        for i in range(12):
            wave = np.sin(np.arange(80) * (0.3 + 0.3 * (i % 2)) + rng.uniform(0, 6)) + 0.1 * rng.normal(size=80)
            lines.append(",".join(f"{value:.4f}" for value in wave) + f":{i % 2}")
        (folder / f"Made_{part}.ts").write_text("@classLabel true 0 1\n@data\n" + "\n".join(lines))
    monkeypatch.setattr("orbit.data.series._bundled", lambda name: folder)


def test_the_plan_is_fitted_with_each_seed(made, run):
    folder = run.finished(*SETTINGS, "runner.comparators=null", "tracking.enabled=false")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["Made/orbit/accuracy"] == 1
    assert metrics["Made/orbit/cpu_s"] > 0
    assert "| Made | 100.0%" in (folder / "archive.md").read_text()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("aeon") is None, reason="needs aeon")
def test_classifiers_of_aeon_are_beside_it(made, run):
    folder = run.finished(*SETTINGS, "runner.comparators=[minirocket,dtw]", "tracking.enabled=false")
    table = (folder / "archive.md").read_text()
    assert "MiniRocket, time" in table
    assert "1-NN DTW, time" in table
