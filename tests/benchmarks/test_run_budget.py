"""runner=budget: accuracy against seconds, of fits and of a network."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import composed, folders

import orbit
from benchmarks import budget
from orbit.learners import NetworkClassifier
from runners.config.plan import plan
from runners.tracking.record import RunFolder

BUDGET = (
    *("runner=budget", "runner.n_train=[200]", "dataset.n_test=60", "orbit.size=4", "tracking.enabled=false"),
    "runner.fits={few: {approx.n_components: 5}, many: {approx.n_components: 60}}",
    "runner.network={learner: {name: network, optimizer: adam, width: 16, layers: [{kind: full}]}}",
    *("runner.grid={learner.learning_rate: [1e-6, 0.01]}", "runner.tuning_seconds=0.3", "runner.seconds=[0.8, 0.1]"),
)


def test_fits_and_network_are_points_of_curves(run, tmp_path, monkeypatch):
    ticks = itertools.count(step=0.01)  # every step of the network takes 0.01 s, on a machine of any load
    monkeypatch.setattr(budget, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    out = run.ok(*BUDGET)
    found = RunFolder(folders(tmp_path)[0]).read_metrics()
    assert found["200 labels/many/accuracy"] > found["200 labels/few/accuracy"]
    assert found["200 labels/network, 0.1 s/seconds"] == pytest.approx(0.1, abs=0.011)
    assert found["200 labels/network, 0.8 s/seconds"] == pytest.approx(0.8, abs=0.011)
    assert found["200 labels/network, 0.8 s/accuracy"] > 0.3  # the rate 0.01; with 1e-6 it is a guess, 0.1
    assert "learner.learning_rate=0.01 (validation accuracy" in out


def test_every_pass_moves_each_point_by_a_new_random_element():
    X = np.arange(10.0)[:, None] * np.ones((1, 4)) + np.arange(4) / 10
    shifts = orbit.Orbit(orbit.build("group", "cyclic"), random_state=0).fit(X)
    batches = budget._moved_batches(X, np.arange(10), shifts, _Passes(batch_size=4), 0)
    points, labels = (np.concatenate(each) for each in zip(*itertools.islice(batches, 255), strict=True))
    moved = []
    for one in range(2):  # passes of ten points, of the 102 that are moved together
        rows = slice(10 * one, 10 * one + 10)
        assert sorted(labels[rows]) == list(range(10))
        np.testing.assert_allclose(np.sort(points[rows], axis=1), X[labels[rows]], atol=1e-12)  # shifts of the point
        moved.append(points[rows][np.argsort(labels[rows])])
    assert not np.array_equal(*moved)
    assert len(np.unique(moved[0][:, 0] % 1)) > 1


class _Passes(NetworkClassifier):
    def end_epoch(self) -> None:
        """Nothing was trained."""


@pytest.mark.parametrize("size", ["small", "paper"])
def test_bench_network_is_a_plan_with_all_its_fits(size, monkeypatch):
    monkeypatch.setattr(orbit.get("dataset", "rotated_mnist"), "check_files", lambda self: None)
    made = plan(composed("experiment=bench_network", f"size={size}"))
    assert len(made.component("runner").plans(made)) > 6
