"""python -m benchmarks.device: whole runs, and the peak of the device."""

import json

import numpy as np
import pytest
from command_line import composed

import orbit
from benchmarks import device
from runners.config.plan import plan


@pytest.mark.parametrize("name", device.RUNS)
def test_every_run_is_planned(name, monkeypatch):
    for loader in orbit.available("dataset"):  # the files need not be here
        monkeypatch.setattr(orbit.get("dataset", loader), "check_files", lambda self: None)
    assert plan(composed(*device.RUNS[name], "dataset.root=.")).component("runner")


@pytest.mark.slow
def test_the_second_of_two_runs_is_measured(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    arrays = {"x_train": rng.integers(0, 255, (60, 32, 32, 3), np.uint8), "y_train": np.arange(60) % 10}
    (tmp_path / "cifar10").mkdir()
    parts = {"x_test": arrays["x_train"][:20], "y_test": arrays["y_train"][:20]}
    np.savez(tmp_path / "cifar10" / "cifar10.npz", **arrays, **parts)
    file, fit = tmp_path / "device.json", ["dataset=cifar10", "dataset.n_train=40", "dataset.n_test=20", "encoder=none"]
    monkeypatch.setattr(device, "RUNS", {"tiny": [*fit, "approx=rf", "approx.n_components=8", "group=identity"]})
    device.main(
        [
            str(tmp_path),
            "--device",
            "cpu",
            "--only",
            "tiny",
            "--side",
            "64",
            "--points",
            "40",
            "--out",
            str(file),
            "seed=1",
        ]
    )
    found = json.loads(file.read_text())
    assert found["peak"]["flop_per_s"] > 0
    assert len(found["ridge"]) == 6
    assert min(found["ridge"].values()) > 0
    assert found["tiny"]["metrics"]["time/total_s"] < found["tiny"]["seconds"]
