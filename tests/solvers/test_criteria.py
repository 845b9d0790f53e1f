"""Choosing lambda: leave-one-out and generalised cross-validation, repeated rows, precision, ends of the path."""

import warnings

import numpy as np
import oracles
import pytest
from samples import points_in_clusters
from sklearn.linear_model import Ridge
from test_solvers import FACTORISATIONS, PATH, factorised

from orbit import Engine, Gaussian, Orbit, Permutation, RidgeClassifier, RidgeRegressor, XPerm
from orbit.approx import CumulativeDistribution, RandomFourier
from orbit.learners.streaming import FeatureStream, fit_stream
from orbit.solvers.moments import Moments
from orbit.solvers.repeats import Repeats, equal_rows
from orbit.solvers.selection import DEFAULT_PATH, LeaveOneOut, best_of_path, gcv_scores, warn_at_end


@pytest.mark.parametrize("kind", FACTORISATIONS)
def test_leave_one_out_is_leaving_one_out(system, kind):
    X, Y = system
    score = LeaveOneOut(factorised(X, Y, kind=kind), X, Y, None)
    for value in PATH:
        assert score(value) == pytest.approx(-oracles.leave_one_out(X, Y, value), rel=1e-5)


@pytest.mark.parametrize("kind", FACTORISATIONS)
def test_left_out_rows_are_predicted_by_fits_to_all_others(system, kind):
    X, Y = system
    rows = LeaveOneOut(factorised(X, Y, kind=kind), X, Y, None).rows(PATH[3])
    expected = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        model = Ridge(alpha=PATH[3] * len(X)).fit(X[others], Y[others])
        expected.append(model.predict(X[i : i + 1])[0])
    np.testing.assert_allclose(rows.predicted, np.reshape(expected, Y.shape), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(rows.targets, Y)


def test_leave_one_out_of_many_rows_is_estimated_from_some(rng, monkeypatch):
    """From 400 of 800 rows within 2 %, where both errors differ by a tenth."""
    X = rng.standard_normal((800, 40)) * np.where(rng.random(800) < 0.5, 0.05, 1.0)[:, None] ** 2
    Y = rng.standard_normal((800, 2)) * (0.2 + np.linalg.norm(X, axis=1, keepdims=True))
    problem = factorised(X, Y)
    exact = LeaveOneOut(problem, X, Y, None)
    monkeypatch.setattr("orbit.solvers.selection.SAMPLED_ROWS", 400)
    estimated = LeaveOneOut(problem, X, Y, None)
    for value in (1e-6, 1e-3, 1e-1):
        assert estimated(value) == pytest.approx(exact(value), rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_the_estimate_holds_where_cross_validation_does_not(seed, monkeypatch):
    """The leave-one-out error is over 1.5 times that of generalised cross-validation; estimated within a quarter."""
    points, y = points_in_clusters(np.random.default_rng(seed), 800)
    X = RandomFourier(Gaussian(1.0), n_components=300, random_state=0).fit(points).transform(points)
    Y = y[:, None] * [1.0, 0.5]
    problem = factorised(X, Y)
    exact, general = LeaveOneOut(problem, X, Y, None), gcv_scores(problem)
    monkeypatch.setattr("orbit.solvers.selection.SAMPLED_ROWS", 400)
    estimated = LeaveOneOut(problem, X, Y, None)
    assert exact(1e-4) < 1.5 * general(1e-4) / 2, "its score is a sum over outputs"
    for value in (1e-4, 1e-3, 1e-2):
        assert estimated(value) == pytest.approx(exact(value), rel=0.25)  # of 20 other draws the worst is 0.16


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_of_repeated_rows_is_that_of_their_weighted_means(system, rng, weighted):
    X, Y = system
    rows = rng.permutation(np.repeat(np.arange(len(X)), rng.integers(1, 4, len(X))))
    noisy = Y[rows] + 0.1 * rng.standard_normal((len(rows), 2))
    w = rng.random(len(rows)) + 0.2 if weighted else np.ones(len(rows))
    w /= w.mean()
    given = w if weighted else None
    found = LeaveOneOut(factorised(X[rows], noisy, given), X[rows], noisy, given, Repeats.find(X[rows], noisy, given))
    means = np.array([np.average(noisy[rows == i], axis=0, weights=w[rows == i]) for i in range(len(X))])
    of_groups = np.bincount(rows, w)
    of_groups /= of_groups.mean()
    merged = LeaveOneOut(factorised(X, means, of_groups), X, means, of_groups)
    for value in PATH[1:]:
        assert found(value) == pytest.approx(merged(value), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_points_in_clusters_do_not_hide_an_interpolation(seed):
    """Leverages of clustered and of isolated points differ, and generalised cross-validation sees only their mean."""
    rng = np.random.default_rng(seed)
    (X, y), (X_new, y_new) = points_in_clusters(rng, 600), points_in_clusters(rng, 600)
    features = RandomFourier(Gaussian(1.0), n_components=300, random_state=0).fit(X)
    psi, psi_new = features.transform(X), features.transform(X_new)

    def error(learner):
        return np.square(learner.fit(psi, y).predict(psi_new) - y_new).mean()

    assert error(RidgeRegressor()) < 1.25 * min(error(RidgeRegressor(value)) for value in DEFAULT_PATH)
    with pytest.warns(UserWarning, match="smallest value"):
        assert error(RidgeRegressor(selection="gcv")) > 1000


def test_gcv_is_its_formula(system):
    X, Y = system
    score = gcv_scores(factorised(X, Y))
    for regularization in (1e-3, 1e-2, 1.0):
        assert score(regularization) == pytest.approx(-oracles.gcv(X, Y, regularization), rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_lambdas_at_which_repeated_rows_leave_only_rounding_are_not_chosen(seed):
    """More features than rows: small values fit all but the deviations within groups, and rounding decided."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((30, 200)), rng.standard_normal((30, 1))
    counts = rng.integers(1, 4, len(X))
    rows = np.repeat(np.arange(len(X)), counts)
    noisy = Y[rows] + 0.1 * rng.standard_normal((len(rows), 1))
    means = np.array([noisy[rows == i].mean(0) for i in range(len(X))])
    merged = gcv_scores(factorised(X, means, counts / counts.mean()))
    best = max(merged(value) for value in np.logspace(-6, 1, 15))
    assert merged(RidgeRegressor(selection="gcv").fit(X[rows], noisy).regularization_) >= best * 1.001


def test_a_row_repeated_k_times_is_a_row_of_weight_k_for_gcv(system, rng):
    """With the mean of its targets: each solution, its score, and so the choice are those of the merged rows."""
    X, Y = system
    counts = rng.integers(1, 4, len(X))
    rows = rng.permutation(np.repeat(np.arange(len(X)), counts))
    noisy = Y[rows] + 0.1 * rng.standard_normal((len(rows), 2))
    repeats = Repeats.find(X[rows], noisy, None)
    assert repeats.distinct == len(X)
    means = np.array([noisy[rows == i].mean(0) for i in range(len(X))])
    score = gcv_scores(factorised(X[rows], noisy), repeats)
    merged = gcv_scores(factorised(X, means, counts / counts.mean()))
    for value in PATH[1:]:
        assert score(value) == pytest.approx(merged(value), rel=1e-6)
    for selection in ("loo", "gcv"):
        weighted = RidgeRegressor(selection=selection).fit(X, means, sample_weight=counts)
        whole = RidgeRegressor(selection=selection).fit(X[rows], noisy)
        assert whole.regularization_ == weighted.regularization_
        np.testing.assert_allclose(whole.predict(X), weighted.predict(X), atol=1e-6)


def test_repeats_of_weighted_rows(rng):
    """Deviations within a group are those from its weighted mean."""
    X, Y, w = np.array([[1.0], [2.0], [1.0]]), np.array([[0.0], [5.0], [3.0]]), np.array([2.0, 0.5, 0.5])
    found = Repeats.find(X, Y, w)
    assert found.distinct == 2
    np.testing.assert_allclose(found.within, [[(2.0 * 0.6**2 + 0.5 * 2.4**2) / 3]])
    alone = Repeats.find(X + rng.standard_normal((3, 1)), Y, w)
    assert alone.distinct == 3
    assert not alone.within.any()


@pytest.mark.parametrize(("d", "offset"), [(3, 1e4), (3, 1e5), (10, 1e6)])
def test_rows_that_vary_little_about_a_large_mean_are_not_equal(d, offset, rng):
    X = (rng.standard_normal((300, d)) + offset).astype(np.float32)
    assert equal_rows(X).max() + 1 == len(np.unique(X, axis=0)) > 290
    twice = np.concatenate([X, X[:40]])
    np.testing.assert_array_equal(equal_rows(twice)[300:], equal_rows(twice)[:40])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 65, 300])
def test_rows_that_are_all_equal_are_one_group(dtype, n, rng):
    row = (rng.standard_normal(40) + 3).astype(dtype)
    assert not equal_rows(np.repeat(row[None], n, 0)).any()
    assert not equal_rows((row * (1 + np.finfo(dtype).eps * rng.standard_normal((n, 1)))).astype(dtype)).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_are_those_that_differ_by_rounding_only(dtype, rng):
    distinct = (rng.standard_normal((4000, 5)) + 3).astype(dtype)
    rows = rng.integers(0, len(distinct), 12_000)
    moved = distinct[rows] * (1 + 4 * np.finfo(dtype).eps * rng.standard_normal((len(rows), 1)))
    groups = equal_rows(moved.astype(dtype))
    expected = np.unique(rows, return_inverse=True)[1]
    assert groups.max() == expected.max()
    assert len(np.unique(np.stack([groups, expected]), axis=1).T) == expected.max() + 1
    assert len(np.unique(equal_rows(distinct))) == len(distinct)
    close = np.array([[1.0, 0.0], [1.0, 1e-3]], dtype=dtype)
    assert len(np.unique(equal_rows(close))) == 2


def test_rows_that_repeat_do_not_hide_an_interpolation():
    """Invariant features of words repeat, with the same label; a fit of all of them is not the best one."""
    data = XPerm(per_class=100, n_test=2000).load(0)
    orbit = Orbit(Permutation(mode="blocks"), size=120, rule="quadrature")
    features = CumulativeDistribution(orbit, n_components=10, n_bins=25, random_state=0).fit(data.X_train)
    psi, psi_new = features.transform(data.X_train), features.transform(data.X_test)
    repeats = Repeats.find(psi, data.y_train[:, None].astype(float), None)
    assert repeats.distinct == len(np.unique(data.X_train.sum(1), axis=0)) < 0.8 * len(psi)
    assert not repeats.within.any()
    learner = RidgeClassifier().fit(psi, data.y_train)
    interpolation = RidgeClassifier(regularization=1e-13).fit(psi, data.y_train)
    assert learner.regularization_ > 1e-8
    assert learner.score(psi_new, data.y_test) > 0.05 + interpolation.score(psi_new, data.y_test)


def test_weighted_scores_are_leaving_one_out_and_gcv(system, rng):
    """By the definition: each point left out in turn, with the penalty that all points together have."""
    X, Y = system
    n, w = len(X), rng.random(len(X)) + 0.2
    w /= w.mean()
    problem = factorised(X, Y, w)
    for value in (1e-2, 1.0):
        errors = []
        for i in range(n):
            rest = np.arange(n) != i
            model = Ridge(alpha=n * value).fit(X[rest], Y[rest], sample_weight=w[rest])
            errors.append(w[i] * np.square(model.predict(X[[i]])[0] - Y[i]).mean())
        assert LeaveOneOut(problem, X, Y, w)(value) == pytest.approx(-np.mean(errors), rel=1e-6)
        fitted = Ridge(alpha=n * value).fit(X, Y, sample_weight=w)
        columns = [Ridge(alpha=n * value).fit(X, e, sample_weight=w).predict(X) for e in np.eye(n)]
        freedom = np.trace(np.array(columns))
        power = (w[:, None] * np.square(fitted.predict(X) - Y)).sum() / n
        assert gcv_scores(problem)(value) == pytest.approx(-power / (1 - freedom / n) ** 2, rel=1e-6)


@pytest.mark.parametrize("best", [0, 3, 10, 22])
def test_the_best_of_a_path_is_its_peak(best):
    path = np.geomspace(1e-8, 1, 23)
    chosen, scores = best_of_path(path, lambda value: -abs(np.log(value / path[best])))
    assert chosen == path[best]
    assert scores[best] == 0
    assert np.isfinite(scores).all()


def test_best_of_path_prefers_the_stronger_of_equals():
    assert best_of_path(np.array([1.0, 2.0, 3.0]), lambda v: min(v, 2.0))[0] == 3.0
    assert best_of_path(np.array([1.0, 2.0, 3.0]), lambda v: -abs(v - 2))[0] == 2.0
    assert best_of_path(np.array([1.0, 2.0]), lambda v: -np.inf)[0] == 2.0


# ---- a precision that follows the problem ----------------------------------------------------------------------------


@pytest.fixture
def smooth(rng):
    """Float32 features whose best lambda is far below float32 rounding, and others with noise, where it is not."""
    points = rng.random((400, 2))
    X = RandomFourier(Gaussian(0.7), n_components=40, random_state=0).fit_transform(points).astype(np.float32)
    target = np.sin(5 * points[:, 0]) * points[:, 1]
    return X, target, target + 0.3 * rng.standard_normal(400)


@pytest.fixture
def products(monkeypatch):
    """Whether the products of each system were taken in float64, in order; systems of 20 columns count as large."""
    monkeypatch.setattr("orbit.solvers.base.LARGE", 20)
    monkeypatch.setattr("orbit.solvers.factorisations.BAND_FROM", 20)
    taken, original = [], Moments.__init__
    monkeypatch.setattr(
        Moments,
        "__init__",
        lambda self, precise=False, shared=False: taken.append(precise) or original(self, precise, shared),
    )
    return taken


@pytest.mark.parametrize("selection", ["gcv", "hold_out"])
def test_large_float32_systems_switch_to_float64_if_the_minimum_needs_it(smooth, products, selection, rng):
    X, exact, noisy = smooth
    learner = RidgeRegressor(selection=selection, random_state=0).fit(X, exact)
    assert products[:2] == [False, True]
    assert learner.regularization_ < 1e-9
    error = np.square(learner.predict(X) - exact).mean()
    assert error < 0.01 * np.square(RidgeRegressor(1e-8).fit(X, exact).predict(X) - exact).mean()
    products.clear()
    X += 0.01 * rng.standard_normal(X.shape).astype(np.float32)  # so that float32 resolves all eigenvalues
    assert RidgeRegressor(selection=selection, random_state=0).fit(X, noisy).regularization_ > 1e-7
    assert not any(products), "float32 products are enough"


def test_streams_are_read_again_in_float64_if_the_minimum_needs_it(smooth, products):
    X, exact, noisy = smooth
    stream = FeatureStream(lambda x: x, X, X.shape[1], Engine(memory=1e-4, progress=False))
    expected = RidgeRegressor().fit(X.astype(float), exact)
    products.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = fit_stream(RidgeRegressor(), stream, exact, "regression")
    assert len([one for one in caught if "of its path" in str(one.message)]) <= 1, "not of the first solution"
    assert products == [False, True]
    assert learner.regularization_ < 1e-9
    np.testing.assert_allclose(learner.predict(X), expected.predict(X.astype(float)), atol=1e-3)
    products.clear()
    fit_stream(RidgeRegressor(), stream, noisy, "regression")
    assert products == [False]


def test_the_default_path_ends_where_float64_does(rng):
    X = 1e4 * rng.standard_normal((60, 5))
    path = RidgeRegressor().fit(X, X[:, 0] + 100 * rng.standard_normal(60)).path_
    assert 1e-8 < path[0] < 1e-4
    assert path[-1] == pytest.approx(10)


@pytest.mark.filterwarnings("error")
def test_a_choice_at_an_end_of_the_path_warns(rng):
    X, noise = rng.standard_normal((60, 5)), rng.standard_normal(60)
    for y, end in ((X[:, 0], "smallest"), (noise, "largest")):
        with pytest.warns(UserWarning, match=f"the chosen regularization=.* is the {end} value of its path"):
            RidgeRegressor([1e-3, 1e-2, 1e-1]).fit(X, y)
    RidgeRegressor(1e-2).fit(X, noise)
    RidgeRegressor([1e-2, 1e-1]).fit(X, noise)  # of two values each is an end
    RidgeRegressor([1e-9, 1e-2, 1e9]).fit(X, X[:, 0] + 0.3 * noise)
    warn_at_end(np.array([1.0, 2.0]), np.full(2, np.nan), 1.0)
    warn_at_end(np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 1.0]), 3.0)
