"""Ridge: the contract, solutions against scikit-learn and plain formulas, every way of choosing lambda."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge, RidgeClassifier as SklearnRidgeClassifier, RidgeClassifierCV, RidgeCV

from orbit.core.random import hold_out
from orbit.learners import GaussianProcess, NeighborsRegressor, RidgeClassifier, RidgeRegressor
from orbit.testing import ClassifierContract, PathContract, RegressorContract

PATH = [1e-6, 1e-4, 1e-2, 1.0]


class TestRidgeRegressorByGcv(PathContract, RegressorContract):
    component = RidgeRegressor


class TestRidgeRegressorByLoo(PathContract, RegressorContract):
    component, params = RidgeRegressor, {"selection": "loo"}


class TestRidgeRegressorByHoldOut(PathContract, RegressorContract):
    component, params = RidgeRegressor, {"selection": "hold_out"}


class TestRidgeClassifierByGcv(PathContract, ClassifierContract):
    component = RidgeClassifier


class TestRidgeClassifierByLoo(PathContract, ClassifierContract):
    component, params = RidgeClassifier, {"selection": "loo"}


class TestRidgeClassifierByHoldOut(PathContract, ClassifierContract):
    component, params = RidgeClassifier, {"selection": "hold_out"}


# ---- ridge: solutions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["gcv", "hold_out"])
@pytest.mark.parametrize("d", [40, 600], ids=["primal", "dual"])
def test_large_systems_choose_as_small_ones_do(rng, monkeypatch, selection, d):
    X = rng.standard_normal((400, d)) * np.geomspace(1, 1e-2, d)
    y = X[:, 0] + 0.3 * rng.standard_normal(400)
    small, large = (RidgeRegressor(selection=selection, random_state=0) for _ in range(2))
    small.fit(X, y)
    monkeypatch.setattr("orbit.solvers.base.LARGE", 10)
    monkeypatch.setattr("orbit.solvers.factorisations.BAND_FROM", 10)
    large.fit(X, y)
    # at the smallest values, by which rounding is divided, gcv scores agree to 4e-5
    np.testing.assert_allclose(large.path_scores_, small.path_scores_, rtol=1e-8 if selection == "hold_out" else 1e-3)
    assert large.regularization_ == small.regularization_
    np.testing.assert_allclose(large.predict(X), small.predict(X), atol=1e-8)
    same = RidgeRegressor(small.regularization_).fit(X, y)
    np.testing.assert_allclose(same.predict(X), small.predict(X), atol=1e-8)


def test_regressor_is_scikit_learns(system, rng):
    X, Y = system
    w = rng.random(len(X)) + 0.1
    for y, weights in ((Y, None), (Y[:, 0], None), (Y, w)):
        theirs = Ridge(alpha=0.03 * (len(X) if weights is None else w.sum())).fit(X, y, sample_weight=weights)
        ours = RidgeRegressor(0.03).fit(X, y, sample_weight=weights)
        assert ours.coef_.shape == theirs.coef_.shape
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-8)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_classifier_is_scikit_learns(n_classes):
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    ours, theirs = RidgeClassifier(0.01).fit(X, y), SklearnRidgeClassifier(alpha=0.01 * 300).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.coef_, np.reshape(theirs.coef_, ours.coef_.shape), atol=1e-8)
    assert ours.coef_.shape == (n_classes if n_classes > 2 else 1, 64)


# ---- ridge: choosing lambda ------------------------------------------------------------------------------------------


def test_leave_one_out_is_scikit_learns(rng):
    X, y = rng.standard_normal((40, 8)), rng.standard_normal(40)
    alphas = np.array(PATH) * 40
    theirs = RidgeCV(alphas, store_cv_results=True).fit(X, y)
    expected = -theirs.cv_results_.mean(0)
    np.testing.assert_allclose(RidgeRegressor(PATH, "loo").fit(X, y).path_scores_, expected, rtol=1e-6)
    assert RidgeRegressor(PATH, "loo").fit(X, y).regularization_ == pytest.approx(theirs.alpha_ / 40)
    labels = (y > 0).astype(int)
    classifier = RidgeClassifierCV(alphas, store_cv_results=True).fit(X, labels)
    expected = -classifier.cv_results_.reshape(40, 4).mean(0)
    np.testing.assert_allclose(RidgeClassifier(PATH, "loo").fit(X, labels).path_scores_, expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(60, 20), (20, 60)])
def test_leave_one_out_by_eigenvalues_is_that_of_a_reduction(rng, monkeypatch, shape):
    X, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 3))
    by_eigenvalues = RidgeRegressor(selection="loo").fit(X, Y)
    assert by_eigenvalues.path_.size > 3
    monkeypatch.setattr("orbit.solvers.selection.LEVERAGES_BY_EIGENVALUES", 0)
    monkeypatch.setattr("orbit.solvers.factorisations.TRIDIAGONAL_FROM", 4)
    reduced = RidgeRegressor(selection="loo").fit(X, Y)
    np.testing.assert_allclose(by_eigenvalues.path_scores_, reduced.path_scores_, rtol=1e-8)
    np.testing.assert_allclose(by_eigenvalues.coef_, reduced.coef_, atol=1e-10)


def test_gcv_never_chooses_an_interpolation_of_noise(rng):
    """More features than points: without regularisation the residual is zero and so is its denominator."""
    X, y = rng.standard_normal((30, 60)), rng.standard_normal(30)
    for selection in ("gcv", "loo"):
        chosen = RidgeRegressor(selection=selection).fit(X, y)
        assert np.isfinite(chosen.path_scores_[chosen.path_ == chosen.regularization_])
        assert not np.isnan(chosen.path_scores_).any()
    assert RidgeRegressor(selection="gcv").fit(X, y).regularization_ > 1e-3


@pytest.mark.parametrize("selection", ["gcv", "loo"])
@pytest.mark.parametrize("seed", range(3))
def test_as_many_features_as_points_do_not_make_rounding_the_best_score(selection, seed):
    """Interpolation leaves residuals of rounding errors, which no score may be made of."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 8))
    y = X[:, 0] + 0.3 * rng.standard_normal(100)
    features = np.linalg.cholesky(np.exp(-cdist(X, X, "sqeuclidean") / 20))
    assert RidgeRegressor(selection=selection).fit(features, y).regularization_ > 1e-6


@pytest.mark.parametrize("selection", ["gcv", "loo", "hold_out"])
def test_every_selection_finds_a_lambda_near_the_best(rng, selection):
    """Excess risk against the truth at the chosen lambda, beside the best of the path."""
    truth = rng.standard_normal(40) * np.logspace(0, -2, 40)
    X, X_new = rng.standard_normal((80, 40)), rng.standard_normal((4000, 40))
    y = X @ truth + 0.5 * rng.standard_normal(80)
    chosen = RidgeRegressor(selection=selection, random_state=0).fit(X, y)

    def risk(regularization):
        return np.square(RidgeRegressor(regularization).fit(X, y).predict(X_new) - X_new @ truth).mean()

    risks = {value: risk(value) for value in chosen.path_}
    assert risks[chosen.regularization_] < 1.6 * min(risks.values())
    assert max(risks.values()) > 3 * min(risks.values()), "the choice matters"


def test_hold_out_scores_are_of_models_fitted_without_the_validation_part(rng):
    X, y = rng.standard_normal((60, 5)) + 3, rng.standard_normal(60)
    ours = RidgeRegressor(PATH, "hold_out", validation_fraction=0.3, random_state=4).fit(X, y)
    fit, validation = hold_out(60, 0.3, None, 4)
    expected = []
    for value in PATH:
        model = Ridge(alpha=value * len(fit)).fit(X[fit], y[fit])
        expected.append(-np.square(model.predict(X[validation]) - y[validation]).mean())
    np.testing.assert_allclose(ours.path_scores_, expected, rtol=1e-8)
    assert not np.allclose(ours.path_scores_[0], -np.square(Ridge(alpha=6e-5).fit(X, y).predict(X) - y).mean())
    refitted = Ridge(alpha=ours.regularization_ * 60).fit(X, y)
    np.testing.assert_allclose(ours.coef_, refitted.coef_, atol=1e-10, err_msg="the final model sees all of it")


def test_classifier_hold_out_scores_are_accuracies():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] / 16, y[:200]
    ours = RidgeClassifier(PATH, "hold_out", random_state=1).fit(X, y)
    fit, validation = hold_out(200, 0.2, y, 1)
    expected = [RidgeClassifier(v).fit(X[fit], y[fit]).score(X[validation], y[validation]) for v in PATH]
    np.testing.assert_allclose(ours.path_scores_, expected)


def test_hold_out_split():
    labels = np.repeat([0, 1, 2], [50, 30, 20])
    fit, validation = hold_out(100, 0.2, labels, 0)
    assert sorted([*fit, *validation]) == list(range(100))
    np.testing.assert_array_equal(np.bincount(labels[validation]), [10, 6, 4])
    np.testing.assert_array_equal(hold_out(100, 0.2, labels, 0)[1], validation)
    assert not np.array_equal(hold_out(100, 0.2, labels, 1)[1], validation)
    for seed in range(20):
        many = np.concatenate([labels, [3, 4], np.repeat(np.arange(5, 20), 2)])
        for classes, fraction in ((many[:102], 0.2), (many, 0.05)):
            fit, validation = hold_out(len(classes), fraction, classes, seed)
            assert not {3, 4} & set(classes[validation])
            np.testing.assert_allclose((classes[validation] < 3).mean(), (classes < 3).mean(), atol=0.15)
            assert sorted([*fit, *validation]) == list(range(len(classes)))
    for n in (2, 3, 5):
        fit, validation = hold_out(n, 0.01, np.arange(n), 0)
        assert len(validation) == 1
        assert len(fit) == n - 1


@pytest.mark.parametrize("selection", ["gcv", "loo", "hold_out"])
def test_targets_or_features_that_do_not_vary_are_predicted_by_the_mean(rng, selection):
    constant = RidgeRegressor(selection=selection).fit(np.ones((20, 3)), np.arange(20.0))
    np.testing.assert_allclose(constant.predict(np.ones((2, 3))), 9.5)
    flat = RidgeRegressor(selection=selection).fit(rng.random((20, 3)), np.full(20, 7.0))
    np.testing.assert_allclose(flat.predict(rng.random((2, 3))), 7.0, atol=1e-6)


def test_selection_curve(rng):
    X, y = rng.standard_normal((60, 5)), rng.standard_normal(60)
    ridge = RidgeRegressor(PATH, "loo").fit(X, y)
    curve = ridge.selection_curve()
    assert (curve.parameter, curve.criterion, curve.chosen) == ("regularization", "loo", ridge.regularization_)
    np.testing.assert_array_equal(curve.scores, ridge.path_scores_)
    assert ridge.metrics() == {"learner/regularization": ridge.regularization_}
    assert RidgeRegressor(1e-2).fit(X, y).selection_curve() is None
    gp = GaussianProcess().fit(X, y)
    assert set(gp.metrics()) == {"learner/noise", "learner/log_marginal_likelihood"}
    assert gp.selection_curve().criterion == "marginal_likelihood"
    assert NeighborsRegressor(3).fit(X, y).metrics() == {"learner/n_neighbors": 3.0}


# ---- sample weights --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["gcv", "loo", "hold_out"])
def test_points_of_zero_weight_do_not_affect_the_lambda_of_ridge(rng, selection):
    X, Y, weights = rng.standard_normal((40, 5)), rng.standard_normal((40, 2)), rng.random(40)
    weights[::3] = 0
    kept, ridge = weights > 0, RidgeRegressor(PATH, selection=selection, random_state=0)
    expected = ridge.fit(X[kept], Y[kept], weights[kept]).path_scores_
    np.testing.assert_allclose(ridge.fit(X, Y, weights).path_scores_, expected, rtol=1e-9)
