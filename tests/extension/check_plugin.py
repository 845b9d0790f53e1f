"""Contract tests of the package beside this file, and runs with its components."""

import sys

import numpy as np
import plugin
import pytest

from orbit.testing import ComponentContract, DatasetContract, FiniteGroupContract, KernelContract
from runners.app import cli
from runners.tracking.record import RunFolder


class TestReversal(FiniteGroupContract):
    component, shape, wrong_shapes = plugin.Reversal, (6,), [(4, 4)]


class TestMostlyForwards(ComponentContract):
    kind, component = "distribution", plugin.MostlyForwards


class TestMultiquadric(KernelContract):
    component = plugin.Multiquadric
    evaluate = staticmethod(lambda x, z: (1 + np.square(x - z).sum() / 4) ** -0.5)


class TestThresholds(ComponentContract):
    kind, component = "approx", plugin.Thresholds


class TestCentroids(ComponentContract):
    kind, component = "classifier", plugin.Centroids


class TestPulses(DatasetContract):
    component, sizes = plugin.Pulses, (100, 50)


class TestOrbitWeights(ComponentContract):
    kind, component = "runner", plugin.OrbitWeights


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    def execute(*overrides):
        fixed = (f"outputs={tmp_path}", "tracking.enabled=false", "engine.progress=false")
        monkeypatch.setattr(sys, "argv", ["run.py", *fixed, "experiment=pulses", *overrides])
        return cli.main(), capsys.readouterr().err

    return execute


def record(tmp_path):
    (path,) = tmp_path.rglob("run.json")
    return RunFolder(path.parent)


def test_an_experiment_of_nothing_but_new_components(run, tmp_path):
    code, error = run()
    assert code == 0, error
    config, metrics = record(tmp_path).read_config(), record(tmp_path).read_metrics()
    assert config["distribution"] == {"name": "mostly_forwards", "backwards": 0.4}
    assert config["approx"]["n_components"] == 32
    assert metrics["orbit/size"] == 2
    assert metrics["features/dim"] == 32
    assert metrics["test/accuracy"] > 0.8


def test_they_work_with_the_ones_that_are_here(run, tmp_path):
    code, error = run("approx=nystrom", "learner=ridge", "kernel=wide")
    assert code == 0, error
    assert record(tmp_path).read_config()["kernel"] == {"name": "multiquadric", "width": 4.0}
    assert record(tmp_path).read_metrics()["test/accuracy"] > 0.8


def test_a_new_runner(run, tmp_path):
    code, error = run("runner=orbit_weights", "distribution=mostly_forwards", "distribution.backwards=0.25")
    assert code == 0, error
    assert record(tmp_path).read_metrics()["weight/1"] == 0.25


def test_errors_name_the_key(run):
    code, error = run("kernel.width=-1")
    assert code == 2
    assert "error: kernel.width: expected a finite number > 0, found -1" in error
