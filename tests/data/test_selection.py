"""Inner validation: the splits, the grid, fits shared between its points, and the files that a run writes."""

import csv
import itertools
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from command_line import SMALL, quickly_composed
from matplotlib.backends.backend_agg import FigureCanvasAgg
from selection_contract import SelectionContract, SplittingContract
from sklearn import metrics

from orbit import FeatureMap, InputError, plots
from orbit.solvers import products
from runners.config.plan import plan
from runners.experiments.fitting import fit_and_score
from runners.experiments.pipeline import weights
from runners.experiments.selection import fitted_to, select
from runners.experiments.validation import GivenFolds, HoldOut, KFolds, NoSelection
from runners.job.features import storing
from runners.job.job import Stopwatch
from runners.job.stores import RowStore
from runners.measure import figures
from runners.tracking.record import RunFolder


class TestNone(SelectionContract):
    component = NoSelection


class TestKFolds(SplittingContract):
    component = KFolds

    def test_every_point_validates_once_and_folds_are_stratified(self):
        splits = KFolds(folds=5).splits(self.data(), 0)
        assert sorted(np.concatenate([validation for _, validation in splits])) == list(range(30))
        assert all(self.data().y_train[validation].sum() == 3 for _, validation in splits)

    @pytest.mark.parametrize("groups", [None, np.arange(30)])
    def test_a_class_of_fewer_points_than_folds_is_never_missing_in_a_fit(self, groups):
        y = (np.arange(30) < 3).astype(int)
        data = replace(self.data(), y_train=y, clusters=groups)
        for seed in range(10):
            splits = KFolds(folds=5).splits(data, seed)
            assert sorted(y[validation].sum() for _, validation in splits) == [0, 0, 1, 1, 1]
            assert {len(validation) for _, validation in splits} <= {5, 6, 7}

    def test_folds_are_random_if_all_classes_are_smaller(self):
        data = replace(self.data(), y_train=np.arange(30) // 3)
        assert [len(validation) for _, validation in KFolds(folds=5).splits(data, 0)] == [6] * 5

    def test_more_folds_than_points_are_rejected(self):
        with pytest.raises(InputError, match=r"^selection.folds: expected at most 30"):
            KFolds(folds=31).splits(self.data(), 0)


class TestHoldOut(SplittingContract):
    component = HoldOut

    def test_fraction(self):
        ((fit, validation),) = HoldOut(fraction=0.4).splits(self.data(), 0)
        assert (len(fit), len(validation)) == (18, 12)


class TestGiven(SplittingContract):
    component = GivenFolds

    def test_folds_are_those_of_the_data(self):
        for fold, (_, validation) in enumerate(GivenFolds().splits(self.data())):
            np.testing.assert_array_equal(validation, np.arange(fold, 30, 3))

    @pytest.mark.parametrize(("folds", "expected"), [(None, "k_fold"), (np.zeros(30, dtype=int), "hold_out")])
    def test_data_without_folds_is_refused(self, folds, expected):
        with pytest.raises(InputError, match=f"^selection=given: rows has .* selection={expected}"):
            GivenFolds().splits(replace(self.data(), folds=folds))


# ---- the grid --------------------------------------------------------------------------------------------------------

TINY = ("dataset=digits", "dataset.n_train=80", "group=identity", "approx=nystrom", "approx.n_components=20")


def selecting(*overrides: str):
    return plan(quickly_composed(*TINY, *overrides))


def scores_alone(made, data) -> np.ndarray:
    """The accuracies of a run for each point of the grid on each part alone, shape (points, splits)."""
    parts = [data.split(*split) for split in made.component("selection").splits(data, made.seed("selection"))]
    points = made.component("selection").points()
    runs = [[fit_and_score(made.without_selection(point), part, Stopwatch()) for part in parts] for point in points]
    return np.array([[each.metrics["test/accuracy"] for each in row] for row in runs])


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        (("approx=rf", "kernel.lengthscale=3"), 1),
        (("approx=rf", "kernel.lengthscale=3", "hyper=gaussian", "hyper.n_components=15"), 4),  # and 3 second layers
        (("approx=rf", "kernel.lengthscale=3", "engine.memory=1e-6"), 3),
        (("approx=rf", "kernel.lengthscale=3", "representation=unit_norm"), 3),  # by the mean norm of other points
        (("approx=rf", "kernel.lengthscale=median"), 3),  # of other points
        (("approx=nystrom", "kernel.lengthscale=3"), 3),
    ],
)
def test_splits_share_the_features_of_a_map_that_does_not_depend_on_them(changes, passes, monkeypatch):
    """Each training point has its features computed once, and every score is that of a fit to its part alone."""
    seen, compute = [], FeatureMap.transform
    monkeypatch.setattr(FeatureMap, "transform", lambda self, X: seen.append(len(X)) or compute(self, X))
    grid = "{learner.regularization: [0.1, 0.0001]}"
    changes = ("representation=raw", *changes) if "representation=unit_norm" not in changes else changes
    made = selecting(*changes, "selection=k_fold", "selection.folds=3", f"selection.grid={grid}", "learner=logistic")
    data = made.load()
    selected = select(made, data)
    assert sum(seen) == passes * len(data.X_train)
    np.testing.assert_allclose(selected.scores, scores_alone(made, data), atol=1e-9)


@pytest.mark.parametrize("learner", ["ridge", "logistic"])
def test_scores_equal_those_of_fits_on_the_training_parts(learner):
    """With a short cut and without; features shared or not: always what a run on that part gives."""
    grid = "{kernel.lengthscale: [0.3, 1.0], learner.regularization: [0.1, 0.0001]}"
    made = selecting("selection=k_fold", "selection.folds=2", f"selection.grid={grid}", f"learner={learner}")
    data = made.load()
    selected = select(made, data)
    expected = scores_alone(made, data)
    assert expected.shape == (4, 2)
    np.testing.assert_allclose(selected.scores, expected, atol=1e-9)
    assert selected.best == expected.mean(1).argmax()
    assert len(np.unique(expected.mean(1))) > 1, "the choice matters"


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("hyper=gaussian", "hyper.n_components=9", "hyper.lengthscale=1"),
        ("approx=nystrom", "learner=svm", "learner.regularization=0.001"),
    ],
)
def test_nested_folds_share_fits_to_the_same_points(changes, monkeypatch):
    grid = "selection.grid={kernel.lengthscale: [0.3, 1.0]}"
    made, fitted = selecting("selection=given", grid, *changes), list[int]()
    data, learner = made.load(), type(made.learner("classification"))
    fit = learner.fit
    monkeypatch.setattr(learner, "fit", lambda self, X, y: fitted.append(len(y)) or fit(self, X, y))
    fold_of = np.arange(len(data.X_train)) % 4

    def scores() -> np.ndarray:
        fitted.clear()
        found = []
        for outer in range(4):
            rows = [np.flatnonzero(fold_of == fold) for fold in range(4) if fold != outer]
            part = data.split(np.concatenate(rows), np.flatnonzero(fold_of == outer))
            found.append(select(made, replace(part, folds=np.repeat(range(3), [len(one) for one in rows]))).scores)
        return np.array(found)

    alone = scores()
    assert len(fitted) == 4 * 3 * 2
    with storing(RowStore(1e9)):
        np.testing.assert_array_equal(scores(), alone)
    assert len(fitted) == 6 * 2, "one for each pair of folds that is left out"
    assert len(np.unique(alone)) > 6


@pytest.mark.parametrize("changes", [(), ("hyper=gaussian", "hyper.n_components=99", "hyper.lengthscale=1")])
def test_folds_share_the_inner_products_of_their_points(changes, monkeypatch):
    """Each pair of points is multiplied once for each map, and every score is that of a fit to its part alone."""
    monkeypatch.setattr(products, "_FEWEST_ROWS", 10)
    grid = "selection.grid={kernel.lengthscale: [0.3, 1.0]}"
    approx = "representation=raw", "approx=rf", "approx.n_components=99"
    made = selecting("selection=k_fold", "selection.folds=4", grid, *approx, *changes)
    data = made.load()
    n = len(data.X_train)
    with products.sharing_products(1e9):
        shared = select(made, data).scores
        assert products.in_use().computed == 2 * n * (n + 1) / 2
    np.testing.assert_allclose(shared, scores_alone(made, data), atol=1e-9)


def test_the_test_part_is_not_used():
    made = selecting("selection=hold_out", "selection.grid={kernel.lengthscale: [0.1, 0.5, 2]}")
    data = made.load()
    rng = np.random.default_rng(0)
    changed = replace(data, X_test=rng.random(data.X_test.shape), y_test=rng.permutation(data.y_test))
    np.testing.assert_array_equal(select(made, data).scores, select(made, changed).scores)


def test_the_best_settings_are_fitted_to_all_training_points():
    made = selecting("selection=hold_out", "selection.grid={kernel.lengthscale: [0.01, 0.5]}")
    data = made.load()
    fitted = fit_and_score(made, data, Stopwatch())
    assert fitted.metrics["selection/kernel.lengthscale"] == 0.5, "a hundredth sees no neighbours"
    alone = fit_and_score(made.without_selection({"kernel.lengthscale": 0.5}), data, Stopwatch())
    assert fitted.metrics["test/accuracy"] == alone.metrics["test/accuracy"]
    np.testing.assert_array_equal(fitted.predicted, alone.predicted)


def test_errors_are_minimised():
    made = selecting("selection=hold_out", "selection.grid={learner.n_neighbors: [1, 5, 60]}", "learner=knn")
    data = made.load()
    numbers = replace(data, task="regression", y_train=data.y_train.astype(float), y_test=data.y_test.astype(float))
    selected = select(made, numbers)
    assert selected.metric == "rmse"
    assert selected.scores[selected.best] == selected.scores.min() < selected.scores.max()


def test_whole_parts_can_be_selected():
    grid = "{approx: [{name: rf, n_components: 4}, {name: exact}], learner: [{name: knn}, {name: ridge}]}"
    made = selecting("selection=hold_out", f"selection.grid={grid}")
    selected = select(made, made.load())
    assert selected.chosen["approx"] == {"name": "exact"}
    assert set(json.loads(selected.json())["chosen"]) == {"approx", "learner"}


def test_an_unknown_metric_is_refused():
    made = selecting("selection=hold_out", "selection.grid={kernel.lengthscale: [1]}", "selection.metric=acuracy")
    with pytest.raises(InputError, match="did you mean 'accuracy'"):
        select(made, made.load())


@pytest.mark.parametrize(
    ("metric", "learner"), [("roc_auc", "ridge"), ("average_precision", "logistic"), ("log_loss", "logistic")]
)
def test_scores_and_probabilities_are_judged(metric, learner):
    grid = "{learner.regularization: [1.0e-5, 10.0]}"
    made = selecting("selection=k_fold", f"selection.grid={grid}", f"selection.metric={metric}", f"learner={learner}")
    data = made.load()
    data = replace(data, y_train=data.y_train == 3, y_test=data.y_test == 3)
    selected = select(made, data)
    assert selected.chosen == {"learner.regularization": 1e-5}
    fold = made.component("selection").splits(data, made.seed("selection"))[0]
    part = data.split(*fold)
    model = fitted_to(made.without_selection(selected.chosen), part)
    if metric == "log_loss":
        expected = metrics.log_loss(part.y_test, model.predict_proba(part.X_test))
    else:
        scores = model.decision_function(part.X_test) if learner == "ridge" else model.predict_proba(part.X_test)[:, 1]
        expected = getattr(metrics, f"{metric}_score")(part.y_test, scores)
    assert selected.scores[selected.best, 0] == pytest.approx(expected, rel=1e-4)


def test_metrics_that_a_learner_does_not_have_are_refused():
    grid = "selection.grid={learner.regularization: [0.1]}"
    made = selecting("selection=hold_out", grid, "selection.metric=log_loss", "learner=ridge")
    with pytest.raises(InputError, match="selection.metric=log_loss needs probabilities, as of learner=logistic"):
        select(made, made.load())


# ---- sample weights --------------------------------------------------------------------------------------------------


def test_weights_are_passed_to_the_learner_or_rejected():
    for learner in ("ridge", "stein"):
        made = selecting(f"learner={learner}")
        data = made.load()
        weighted = replace(data, sample_weight=np.where(data.y_train < 5, 1.0, 0.0))
        found = fit_and_score(made, weighted, Stopwatch())
        assert set(found.predicted) <= set(range(10))
        assert np.mean(found.predicted < 5) > 0.95, "what weighs nothing is not learnt"
    with pytest.raises(InputError, match="learner=knn takes no sample weights, which dataset=digits has: choose from"):
        weights(selecting("learner=knn").learner("classification"), weighted)
    streamed = selecting("learner=adagrad", "engine.stream=true")
    with pytest.raises(InputError, match="learner=adagrad takes no sample weights, .*: choose from ridge, stein, or"):
        fit_and_score(streamed, weighted, Stopwatch())


# ---- what a run leaves -----------------------------------------------------------------------------------------------


def test_a_run_writes_the_curve_and_all_scores(run):
    grid = "selection.grid={kernel.lengthscale: [0.05, 0.5]}"
    folder = run.finished(*SMALL, "selection=k_fold", "selection.folds=3", grid, "tracking.enabled=false")
    out = run.out
    assert (folder / "figures" / "grid.png").is_file()
    content = json.loads((folder / "selection.json").read_text())
    rows = list(csv.DictReader((folder / "selection.csv").open()))
    assert [float(row["kernel.lengthscale"]) for row in rows] == [0.05, 0.5]
    for row, tried in zip(rows, content["tried"], strict=True):
        assert float(row["accuracy_mean"]) == pytest.approx(np.mean(tried["scores"]))
        assert len(tried["scores"]) == 3
    assert RunFolder(folder).read_metrics()["selection/kernel.lengthscale"] == content["chosen"]["kernel.lengthscale"]
    assert "selected" in out


def test_a_table_selects_for_every_row(run):
    rows = "runner.rows={plain: {group: {name: identity}}, turned: {}}"
    grid = "selection.grid={kernel.lengthscale: [0.05, 0.5]}"
    folder = run.finished("runner=table", *SMALL[:-1], rows, "selection=hold_out", grid, "tracking.enabled=false")
    table = (folder / "table.md").read_text()
    assert "selected" in table.splitlines()[0]
    assert "kernel.lengthscale 0.5" in table
    assert sorted(path.stem for path in folder.glob("selection-*.json")) == ["selection-1_plain", "selection-2_turned"]


# ---- figures ---------------------------------------------------------------------------------------------------------


def test_one_key_is_a_curve_with_deviations():
    scores = np.array([[0.5, 0.7], [0.8, 0.9], [0.4, 0.4], [0.3, 0.1]])
    figure = figures.grid_scores([{"a.b": v} for v in (1, 10, 100, 1000)], scores, "accuracy", 1)
    (ax,) = figure.axes
    assert ax.get_xscale() == "log"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), scores.mean(1))


def test_two_keys_are_a_heat_map():
    points = [{"a.b": a, "c.d": c} for a in (1, 2) for c in ("x", "y", "z")]
    scores = np.arange(12.0).reshape(6, 2)
    figure = figures.grid_scores(points, scores, "rmse", 0)
    np.testing.assert_allclose(np.array(figure.axes[0].images[0].get_array()), scores.mean(1).reshape(2, 3))


@pytest.mark.parametrize("shape", [(5, 5), (8,), (4, 4, 3)])
def test_error_examples_show_misclassified_points(rng, shape):
    X, y = rng.random((6, *shape)), np.array([0, 1, 2, 0, 1, 2])
    predicted = np.array([0, 1, 2, 0, 2, 1])
    figure = plots.error_examples(X, y, predicted, "classification")
    assert [text.get_text() for text in figure.axes[0].texts] == ["1 → 2", "2 → 1"]
    assert plots.error_examples(X, y, y, "classification") is None


def test_error_examples_of_numbers_are_the_largest_residuals(rng):
    y = np.arange(40.0)
    predicted = y + np.where(np.arange(40) == 7, 5.0, 0.1)
    figure = plots.error_examples(rng.random((40, 3)), y, predicted, "regression")
    assert figure.axes[0].texts[0].get_text() == "7 → 12"


def test_error_examples_of_several_outputs_have_titles_that_do_not_touch(rng):
    y = rng.standard_normal((40, 5))
    figure = plots.error_examples(rng.random((40, 3)), y, -0.01 * y, "regression")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    titles = figure.axes[0].texts
    spans = [text.get_window_extent(canvas.get_renderer()) for text in titles[:6]]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(spans))


@pytest.mark.parametrize(
    ("grid", "warned"),
    [
        ("{kernel.lengthscale: [30, 40, 50]}", ["30 is the smallest"]),
        ("{kernel.lengthscale: [0.05, 0.1, 0.2]}", ["0.2 is the largest"]),
        ("{kernel.lengthscale: [0.01, 0.5, 50]}", []),
        ("{kernel.lengthscale: [30, 40]}", []),  # of two values either is an end
        ("{approx.n_components: [5, 20, 60]}", []),  # more are better, and cost more
        ("{kernel.name: [laplacian, gaussian, matern]}", []),
    ],
)
def test_a_number_chosen_at_an_end_of_its_grid_is_warned_of(grid, warned):
    made = selecting("selection=k_fold", "selection.folds=2", f"selection.grid={grid}", "learner.regularization=1e-4")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        selected = select(made, made.load())
    assert selected.points
    said = [str(each.message).partition(" value of its path")[0] for each in found]
    assert said == [f"the chosen kernel.lengthscale={each}" for each in warned]
