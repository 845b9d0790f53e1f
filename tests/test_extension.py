"""Another package adds a component of every kind: one class and contract test each, an experiment and a preset.

The package of README and the one that ``orbit init`` writes are installed in test_package.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from installed_package import write_package

MODULE = '''
"""Signals that may be played backwards."""

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import orbit
from orbit.approx.base import AveragedMap
from orbit.core.params import Fraction, PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.data.base import Dataset, Loader
from orbit.distributions.base import Distribution
from orbit.engine.embedding import Embedding
from orbit.groups.domains import Finite
from orbit.groups.reordering import Reordering
from orbit.kernels.base import Kernel
from orbit.learners.base import Learner
from runners.job import Runner


@orbit.register("group", "reversal")
class Reversal(Reordering):
    """Signals of shape (length,), forwards (0) and backwards (1)."""

    domain = Finite(2)
    default_size = 2
    default_distribution = {"name": "mostly_forwards"}

    def compose(self, left, right):
        return np.mod(np.add(left, right), 2.0)

    def inverse(self, elements):
        return np.array(elements, dtype=float)

    def check_shape(self, shape):
        if len(shape) != 1:
            raise self._refuse(shape, "signals of shape (length,)")

    def _move(self, element, X):
        return X.flip(1) if element else X


@orbit.register("distribution", "mostly_forwards")
class MostlyForwards(Distribution):
    """Backwards with some probability.

    Parameters
    ----------
    backwards : float in (0, 1)
        Probability of the second element.
    """

    domains = (Finite,)

    def __init__(self, backwards: Fraction = 0.4):
        self.backwards = backwards

    def density(self, domain, coordinates):
        return 2 * np.where(np.ravel(coordinates) == 1, self.backwards, 1 - self.backwards)

    def ppf(self, domain, u):
        return (np.ravel(u) >= 1 - self.backwards).astype(float)

    def quadrature(self, domain, size, phase):
        return np.array([0.0, 1.0]), np.array([1 - self.backwards, self.backwards])


@orbit.register("kernel", "multiquadric")
class Multiquadric(Kernel):
    """k(x, z) = (1 + |x - z|^2 / width^2)^(-1/2).

    Parameters
    ----------
    width : float > 0
    """

    def __init__(self, width: PositiveFloat = 2.0):
        self.width = width

    def against(self, B):
        def columns(A, columns, out):
            return out.copy_((1 + torch.cdist(A, B[columns]).square() / self.width**2).rsqrt())

        return columns


@orbit.register("approx", "thresholds")
class Thresholds(AveragedMap):
    """Averages of tanh(<w, x>) over random w.

    Parameters
    ----------
    n_components : int >= 1
    """

    def __init__(self, kernel: Kernel | None = None, orbit: orbit.Orbit | None = None,
                 n_components: PositiveInt = 64, engine: orbit.Engine | None = None, random_state: RandomState = None):
        self.kernel = kernel
        self.orbit = orbit
        self.n_components = n_components
        self.engine = engine
        self.random_state = random_state

    def _fit_map(self, X, random_state):
        shape = self.n_components, int(np.prod(X.shape[1:]))
        self.weights_ = np.random.default_rng(random_state).standard_normal(shape)
        self._n_features_out = self.n_components

    def _embedding(self, dtype):
        return TanhUnits(self.engine_.tensor(self.weights_, dtype))


class TanhUnits(Embedding):
    def __init__(self, W):
        self.W = W
        self.units = self.width = self.n_outputs = len(W)

    def add(self, points, weight, units, total, scratch):
        total[:, units].add_(torch.tanh(points @ self.W[units].T), alpha=weight)

    def finish(self, total):
        return total


@orbit.register("classifier", "centroids")
class Centroids(ClassifierMixin, Learner):
    """The class whose mean is nearest."""

    def __init__(self):
        pass

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == label].mean(0) for label in self.classes_])
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        return self.classes_[np.linalg.norm(X[:, None] - self.means_, axis=2).argmin(1)]


@orbit.register("dataset", "pulses")
class Pulses(Loader):
    """Signals with a pulse at their ends (1) or in their middle (0).

    Parameters
    ----------
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    """

    fixed_task = "classification"

    def __init__(self, n_train: PositiveInt | None = None, n_test: PositiveInt | None = None):
        self.n_train = n_train
        self.n_test = n_test

    def _load(self, random_state):
        rng = np.random.default_rng(0)
        X, y = 0.3 * rng.standard_normal((150, 12)).astype(np.float32), np.arange(150) % 2
        X[np.arange(150), np.where(y == 1, rng.choice([0, 11], 150), 5)] += 3
        return Dataset(self.name, "classification", X[:100], y[:100], X[100:], y[100:], "generated")


@orbit.register("runner", "orbit_weights")
class OrbitWeights(Runner):
    """Records the weights of the orbit's elements."""

    def __init__(self):
        pass

    def run(self, job):
        fitted = job.plan.orbit().fit(job.load().X_train)
        job.log_metrics({f"weight/{i}": weight for i, weight in enumerate(fitted.weights_)})
'''

EXPERIMENT = """\
# @package _global_
# Pulses, forwards and backwards
defaults:
  - override /dataset: pulses
  - override /group: reversal
  - override /kernel: multiquadric
  - override /approx: thresholds
  - override /learner: centroids

approx:
  n_components: 32

run_name: pulses-s${seed}
"""

PRESET = """\
# A multiquadric with a large width
defaults:
  - /schema/kernel/multiquadric@_here_

width: 4.0
"""

TESTS = """
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
"""


@pytest.mark.slow
def test_a_package_adds_a_component_of_every_kind_and_an_experiment(tmp_path):
    (tmp_path / "test_plugin.py").write_text(TESTS)
    files = {"__init__.py": MODULE, "conf/experiment/pulses.yaml": EXPERIMENT, "conf/kernel/wide.yaml": PRESET}
    write_package(tmp_path, "plugin", files)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parent.parent)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_plugin.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
