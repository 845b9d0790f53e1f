"""runner=compare, and the warning of a fit whose group lowers validation accuracy."""

import numpy as np
import pytest
from command_line import SMALL, fitted, folders, quickly_composed
from scipy import stats

from runners.config.plan import plan
from runners.experiments import fit, without_group as checked
from runners.experiments.without_group import without_group
from runners.measure.metrics import paired_test, paired_values_test
from runners.tracking.record import RunFolder

COMPARE = ("runner=compare", *SMALL[:-1])


def test_mcnemar_is_the_binomial_test_of_the_points_that_one_model_gets_right(rng):
    y, one, two = (rng.integers(3, size=200) for _ in range(3))
    found = paired_test("classification", y, one, two)
    first, second = (one == y) & (two != y), (two == y) & (one != y)
    assert (found["only_first_right"], found["only_second_right"]) == (first.sum(), second.sum())
    tail = stats.binom.cdf(min(first.sum(), second.sum()), first.sum() + second.sum(), 0.5)
    assert found["p_mcnemar"] == pytest.approx(min(1, 2 * tail))
    assert paired_test("classification", y, one, one)["p_mcnemar"] == 1


def test_squared_errors_of_regressions_are_compared_in_pairs(rng):
    y = rng.standard_normal((60, 2))
    near, far = y + 0.1 * rng.standard_normal(y.shape), y + 0.2 * rng.standard_normal(y.shape)
    found = paired_test("regression", y, near, far)
    difference = np.square(near - y).sum(1) - np.square(far - y).sum(1)
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(60))
    assert found["p_t"] == pytest.approx(2 * stats.t.cdf(t, 59))
    assert found["p_wilcoxon"] < 0.01
    assert paired_test("regression", y, near, near) == {"p_t": 1.0, "p_wilcoxon": 1.0}


def test_equal_differences_are_no_certainty():
    found = paired_values_test(np.array([0.5, 0.75]), np.array([0.625, 0.875]))
    assert found == {"p_t": 0.5, "p_wilcoxon": 0.5}


def test_both_fits_are_those_of_runner_fit(run, tmp_path):
    compared = run.metrics(*COMPARE, "seed=3", "tracking.enabled=false")
    turned, plain = (fitted(*SMALL, "seed=3", f"group={group}").metrics for group in ("rotation", "identity"))
    assert compared["with_group/test/accuracy"] == compared["test/accuracy"] == turned["test/accuracy"]
    assert compared["without_group/test/accuracy"] == plain["test/accuracy"]
    difference = compared["paired/only_first_right"] - compared["paired/only_second_right"]
    assert difference == pytest.approx(40 * (turned["test/accuracy"] - plain["test/accuracy"]))
    table = (folders(tmp_path)[0] / "compare.md").read_text()
    assert "| group=rotation " in table
    assert "p mcnemar" in table


def test_a_regression_with_several_splits(run, tmp_path):
    np.savez(tmp_path / "own.npz", X=np.random.default_rng(0).random((60, 6, 6)), y=np.arange(60.0) + 0.5)
    settings = ("runner=compare", "runner.repeats={seed: [0, 1]}", "dataset=arrays", "dataset.task=regression")
    out = run.ok(
        *settings,
        "group=rotation",
        f"dataset.path={tmp_path / 'own.npz'}",
        "approx.n_components=20",
        "orbit.size=4",
        "kernel.lengthscale=median",  # the chosen one predicts the mean, as nothing is to be learned
        "tracking.enabled=false",
    )
    metrics = RunFolder(folders(tmp_path)[0]).read_metrics()
    rmse = [metrics[f"seed={seed}/with_group/test/rmse"] for seed in (0, 1)]
    assert rmse[0] != rmse[1]
    assert metrics["test/rmse"] == pytest.approx(np.mean(rmse))
    assert 0 <= metrics["seed=1/paired/p_wilcoxon"] <= 1
    assert out.count("p wilcoxon") == 2


def test_comparing_the_identity_with_itself_is_an_error(run):
    err = run.refused(*COMPARE, "group=identity", "tracking.enabled=false")
    assert "error: group=identity: runner=compare compares another group with it; choose one" in err


def test_without_its_group_a_plan_keeps_all_other_settings():
    grid = "selection.grid={kernel.lengthscale: [0.3, 0.5], orbit.size: [4, 8], group: [{name: rotation}]}"
    made = plan(
        quickly_composed("distribution=von_mises", "orbit.size=8", "kernel.lengthscale=0.4", "selection=k_fold", grid)
    )
    found = without_group(made).config
    assert (found["group"]["name"], found["orbit"]["size"]) == ("identity", 1)
    assert found["selection"]["grid"] == {"kernel.lengthscale": [0.3, 0.5]}
    same = [key for key in found if key not in ("group", "distribution", "orbit", "selection")]
    assert {key: found[key] for key in same} == {key: made.config[key] for key in same}
    nothing_left = plan(quickly_composed("selection=k_fold", "selection.grid={orbit.size: [4, 8]}"))
    assert without_group(nothing_left).config["selection"] == {"name": "none"}


@pytest.fixture
def upside_down(rng, tmp_path):
    """Images whose class is whether they are upside down: a full turn makes the classes equal."""
    rows = np.linspace(0, 1, 8)[:, None] * np.ones(8)
    X, y = np.array([rows, rows[::-1]] * 100), np.array([0, 1] * 100)
    np.savez(tmp_path / "own.npz", X=X + 0.3 * rng.standard_normal(X.shape), y=y)
    return ("dataset=arrays", f"dataset.path={tmp_path / 'own.npz'}", *SMALL[2:], "tracking.enabled=false")


def test_a_full_turn_that_lowers_validation_accuracy_is_a_warning_in_the_table(run, upside_down):
    turn, stream = "group=rotation", ["engine.stream=true"]
    out = run.ok(*upside_down, turn)
    assert "group=rotation lowers validation accuracy: " in out
    assert "100.0% with group=identity (75 training and 75 validation points)" in out
    for harmless in (["group=small_moves"], ["group=identity"], [turn, "runner.check_group=false"], [turn, *stream]):
        assert "lowers validation accuracy" not in run.ok(*upside_down, *harmless), harmless


def test_every_job_of_a_sweep_over_learners_warns(run, upside_down, monkeypatch):
    warned = []
    monkeypatch.setattr(
        fit, "warning_about_group", lambda *given: warned.append(checked.warning_about_group(*given)) or warned[-1]
    )
    run.ok("-m", *upside_down, "group=rotation", "learner.regularization=1,10,100")
    assert len(warned) == 3
    assert len(set(warned)) == 1
    assert warned[0].startswith("group=rotation lowers validation accuracy: ")


def test_a_group_that_helps_is_no_warning(run):
    assert "lowers validation accuracy" not in run.ok(*SMALL, "tracking.enabled=false", "dataset.n_train=300")


@pytest.mark.filterwarnings("default")
def test_the_check_of_the_group_gives_no_warnings_about_its_own_model(run):
    """The default run, whose small model would choose the smallest regularization of its path."""
    run.ok("tracking.enabled=false", "runner.save_model=false")
    assert "smallest value of its path" not in run.said
