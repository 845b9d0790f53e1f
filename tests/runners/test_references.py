"""What the majority class, a linear model and the nearest neighbour reach, beside a fit and a comparison."""

import re

import numpy as np
import pandas as pd
import pytest
from command_line import SMALL, folders, new_job
from scipy import stats
from sklearn.linear_model import LinearRegression

from orbit.data import Dataset
from runners.experiments import references as module
from runners.experiments.fitting import fit_and_score
from runners.job.job import Stopwatch
from runners.tracking.record import RunFolder

ARRAYS = ("dataset=arrays", "dataset.path=mine.npz", "group=rotation", *SMALL[2:4], "tracking.enabled=false")
IN_FIT = ("runner.save_model=false", "runner.check_group=false")


def write(rng, y, signal):
    X = rng.standard_normal((len(y), 6, 6))
    X[:, 2:4, 2:4] += signal * np.asarray(y, dtype=float)[:, None, None]
    np.savez("mine.npz", X=X, y=y)


@pytest.mark.usefixtures("few_groups")
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_fit_that_learned_nothing_says_so(run, tmp_path, rng, task):
    y = rng.integers(3, size=200) if task == "classification" else rng.standard_normal(200)
    for signal in (0, 5):
        write(rng, y, signal)
        out = run.ok(*ARRAYS, *IN_FIT, f"dataset.task={task}")
        least = "majority class" if task == "classification" else "mean"
        assert re.search(f"references +{least} ", out)
        warned = f"not clearly better than the {least} (p = " in out
        assert warned == (signal == 0)
        assert ("50 test points); try encoder=patches, or another group" in out) == warned
    write(rng, y, 0)
    out = run.ok(*(word for word in ARRAYS if not word.startswith("group=")), *IN_FIT, f"dataset.task={task}")
    assert "try encoder=patches, another learner or more points" in out
    assert "runner=discover" not in out
    metrics = RunFolder(folders(tmp_path)[-1]).read_metrics()
    name = "majority_class/accuracy" if task == "classification" else "mean/rmse"
    assert {f"reference/{name}", f"reference/linear/{name.split('/')[1]}", "time/references_s"} < metrics.keys()


def test_a_rare_class_that_scores_rank_is_no_reason_for_other_settings(run, rng):
    write(rng, np.arange(1600) % 16 == 0, 0.5)
    out = run.ok(*ARRAYS, *IN_FIT, "dataset.task=classification", "learner=logistic")
    assert re.search(
        r"warning +not more often right than the majority class, but scores rank the classes \(roc_auc 0.", out
    )
    assert "try " not in out


def test_too_few_test_points_are_no_reason_for_other_settings(run, rng):
    y = np.arange(40) % 8 == 0
    write(rng, y.astype(int), 9)
    out = run.ok(*ARRAYS, *IN_FIT, "dataset.task=classification")
    assert re.search(r"warning +10 test points, [1-4] of them not of the majority class, are too few to tell", out)
    assert "try " not in out


def test_no_group_is_advised_for_a_table(run, rng):
    table = pd.DataFrame(rng.standard_normal((200, 3)), columns=[*"abc"]).assign(y=rng.choice(["no", "yes"], 200))
    table.to_csv("mine.csv", index=False)
    out = run.ok("dataset=table", "dataset.path=mine.csv", "dataset.target=y", "group=identity", *SMALL[2:3], *IN_FIT)
    assert "try another learner or more points" in out


def test_a_comparison_of_two_useless_models_is_none_of_groups(run, tmp_path, rng):
    write(rng, rng.integers(3, size=200), 0)
    out = run.ok("runner=compare", *ARRAYS)
    assert "neither is better than the majority class; try encoder=patches" in out
    assert "p mcnemar" not in out
    rows = [line.split("|")[1].strip() for line in (folders(tmp_path)[0] / "compare.md").read_text().splitlines()[2:]]
    assert rows == ["group=rotation", "group=identity", "majority class", "linear", "nearest neighbour"]


def test_patches_are_advised_for_points_that_have_them(tmp_path, rng):
    X, y = rng.standard_normal((40, 5, 5)), np.arange(40) % 2
    X += X.swapaxes(1, 2)
    data = Dataset("own", "classification", X[:20], y[:20], X[20:], y[20:], "generated")
    for representation, has_axes in (("unit_norm", True), ("bag", False)):
        job = new_job(tmp_path, "dataset=digits", f"representation={representation}", "group=identity", *SMALL[2:4])
        advice = module.what_next(job, data, fit_and_score(job.plan, data, Stopwatch()))
        assert advice == "encoder=patches, or " * has_axes + "another group by runner=discover"


def test_series_are_advised_for_arrays_of_a_few_long_rows(run, rng):
    np.savez("mine.npz", X=rng.standard_normal((60, 3, 24)), y=np.arange(60) % 3)
    out = run.ok("dataset=arrays", "dataset.path=mine.npz", "group=identity", *SMALL[2:3], *IN_FIT)
    assert "try encoder=patches, dataset=series if points are series of 3 channels, or another group" in out


def test_patches_by_size_are_advised_for_images_that_are_large_enough(tmp_path, rng):
    X, y = rng.standard_normal((40, 24, 25)), np.arange(40) % 2
    data = Dataset("own", "classification", X[:20], y[:20], X[20:], y[20:], "generated")
    job = new_job(tmp_path, "dataset=digits", "representation=raw", "group=identity", *SMALL[2:4])
    assert "encoder=by_size" in module.what_next(job, data, fit_and_score(job.plan, data, Stopwatch()))


def test_a_column_that_is_nearly_constant_in_training_alone(run, tmp_path, rng):
    X = rng.standard_normal((200, 5)).astype(np.float32)
    y = X[:, 0]
    X[:, 1] = 0
    X[:20, 1] = np.float32(6e-45)
    X[190:, 1] = 1e-3
    np.savez("mine.npz", X=X[:150], y=y[:150], X_test=X[150:], y_test=y[150:])
    run.ok("dataset=arrays", "dataset.path=mine.npz", "group=identity", "tracking.enabled=false", *IN_FIT)
    assert RunFolder(folders(tmp_path)[0]).read_metrics()["reference/linear/rmse"] < 0.2


def test_p_values_are_those_of_exact_tests(rng):
    X, y = rng.standard_normal((60, 2)), rng.integers(2, size=60)
    data = Dataset("own", "classification", X, y, X, y, "generated")
    found, ours = (
        module.Reference("majority class", np.zeros(60, dtype=int), np.arange(60), 60),
        rng.integers(2, size=60),
    )
    ours_only, theirs_only = ((ours == y) & (y != 0)).sum(), ((ours != y) & (y == 0)).sum()
    assert found.p_value(data, ours) == stats.binomtest(ours_only, ours_only + theirs_only).pvalue
    assert found.is_beaten(data, y)
    assert not found.is_beaten(data, np.zeros(60, dtype=int))
    assert not found.is_beaten(data, 1 - y)  # significantly worse


def test_few_points_of_many_numbers(run, tmp_path, rng, monkeypatch):
    write(rng, y := rng.standard_normal(200), 5)
    monkeypatch.setattr(module, "_MOST_WORK", 36 * 40**2)
    out = run.ok(*ARRAYS, *IN_FIT, "dataset.task=regression", "engine.stream=true")
    assert "(40 training and 40 test points)" in out
    found = RunFolder(folders(tmp_path)[-1]).read_metrics()
    X = np.load("mine.npz")["X"].reshape(200, -1)
    rough = np.sqrt(np.square(LinearRegression().fit(X[:150], y[:150]).predict(X[150:]) - y[150:]).mean())
    assert found["reference/linear/rmse"] < 3 * rough
    assert found["reference/mean/rmse"] == pytest.approx(y.std(), rel=0.3)


def test_a_regressor_of_whole_numbers_hears_of_the_task(run, rng):
    write(rng, rng.integers(6, size=60), 1)
    command = ("dataset=arrays", "dataset.path=mine.npz", "group=identity", "learner=gp", "tracking.enabled=false")
    assert "or dataset.task=regression if the targets are numbers" in run.refused(*command)
    assert "dataset.task=regression" not in run.refused(*command, "dataset.task=classification")
