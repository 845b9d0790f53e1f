"""Learners: the contract for each; ridge against plain formulas and scikit-learn, and every way of choosing lambda."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from contracts import ClassifierContract, PathContract, RegressorContract
from samples import signals
from scipy import optimize
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifierCV, RidgeCV
from sklearn.linear_model import RidgeClassifier as SklearnRidgeClassifier
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import LinearSVC

from orbit.approx import Exact, RandomFourier
from orbit.distributions import VonMises
from orbit.errors import ParameterError
from orbit.groups import Rotation
from orbit.kernels import Gaussian
from orbit.learners import RidgeClassifier, RidgePath, RidgeRegressor, SVMClassifier
from orbit.learners.base import DEFAULT_PATH, best_of_path, hold_out, regularization_path
from orbit.orbits import Orbit

PATH = [1e-6, 1e-4, 1e-2, 1.0]


class TestRidgeRegressorByGcv(PathContract, RegressorContract):
    def create(self, **params):
        return RidgeRegressor(**params)


class TestRidgeRegressorByLoo(PathContract, RegressorContract):
    def create(self, **params):
        return RidgeRegressor(selection="loo", **params)


class TestRidgeRegressorByHoldOut(PathContract, RegressorContract):
    def create(self, **params):
        return RidgeRegressor(selection="hold_out", **params)


class TestRidgeClassifierByGcv(PathContract, ClassifierContract):
    def create(self, **params):
        return RidgeClassifier(**params)


class TestRidgeClassifierByLoo(PathContract, ClassifierContract):
    def create(self, **params):
        return RidgeClassifier(selection="loo", **params)


class TestRidgeClassifierByHoldOut(PathContract, ClassifierContract):
    def create(self, **params):
        return RidgeClassifier(selection="hold_out", **params)


class TestSVM(PathContract, ClassifierContract):
    def create(self, **params):
        return SVMClassifier(**{"random_state": 0, **params})


# ---- ridge: solutions ------------------------------------------------------------------------------------------------


@pytest.fixture(params=[(30, 6), (12, 40), (20, 20)], ids=["primal", "dual", "square"])
def system(request, rng):
    """X, Y with two outputs, features far from zero mean."""
    n, d = request.param
    X = rng.standard_normal((n, d)) @ np.diag(np.logspace(0, -2, d)) + rng.standard_normal(d)
    return X, X[:, :2] @ rng.standard_normal((2, 2)) + 0.3 * rng.standard_normal((n, 2)) + [5.0, -2.0]


def test_every_solution_of_the_path_is_the_minimiser(system):
    X, Y = system
    path = RidgePath(X, Y)
    assert path.primal == (X.shape[1] <= len(X))
    for regularization in PATH:
        W, b = path.solve(regularization)
        expected_W, expected_b = oracles.ridge(X, Y, regularization)
        np.testing.assert_allclose(W, expected_W, atol=1e-8)
        np.testing.assert_allclose(b, expected_b, atol=1e-8)
        sklearn = Ridge(alpha=regularization * len(X)).fit(X, Y)
        np.testing.assert_allclose(X @ W + b, sklearn.predict(X), atol=1e-8)


def test_primal_and_dual_agree(rng):
    """The same features, in the dual with columns of zeros added."""
    X, Y = rng.standard_normal((15, 9)) + 1, rng.standard_normal((15, 3))
    primal, dual = RidgePath(X, Y), RidgePath(np.hstack([X, np.zeros((15, 7))]), Y)
    assert primal.primal
    assert not dual.primal
    for regularization in PATH:
        W, b = dual.solve(regularization)
        np.testing.assert_allclose(W[:9], primal.solve(regularization)[0], atol=1e-8)
        np.testing.assert_allclose(b, primal.solve(regularization)[1], atol=1e-8)
        assert dual.gcv(regularization) == pytest.approx(primal.gcv(regularization), rel=1e-6)
    np.testing.assert_allclose(dual.loo(np.array(PATH)), primal.loo(np.array(PATH)), rtol=1e-6)


def test_moments_are_summed_in_blocks(rng, monkeypatch):
    X, Y = rng.standard_normal((50, 4)), rng.standard_normal((50, 1))
    expected = RidgePath(X, Y).solve(0.1)[0]
    monkeypatch.setattr("orbit.learners.ridge._BLOCK_ROWS", 7)
    np.testing.assert_allclose(RidgePath(X, Y).solve(0.1)[0], expected, atol=1e-13)


def test_the_intercept_is_not_regularised(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    near, far = (RidgeRegressor(regularization=0.5).fit(X + shift, y + 1e3) for shift in (0, 50.0))
    np.testing.assert_allclose(near.coef_, far.coef_, atol=1e-8)
    assert near.intercept_ == pytest.approx(1e3, rel=0.01)


@pytest.mark.parametrize(("n", "d"), [(300, 100), (100, 300)], ids=["primal", "dual"])
@pytest.mark.parametrize("regularization", [1e-4, 1e-7, 1e-10])
def test_float32_features_cost_their_own_rounding_only(rng, n, d, regularization):
    """The same float32 numbers solved as float64: all accuracy lost is lost in the solver.

    Random features of a smooth kernel, whose eigenvalues reach far below float32 rounding: where it shows.
    """
    points = rng.random((n, 2))
    features = (
        RandomFourier(Gaussian(0.5), n_components=d // 2, random_state=0).fit_transform(points).astype(np.float32)
    )
    Y = np.sin(5 * points[:, :1])
    W, b = RidgePath(features, Y).solve(regularization)
    exact_W, exact_b = RidgePath(features.astype(np.float64), Y).solve(regularization)
    np.testing.assert_allclose(features @ W + b, features @ exact_W + exact_b, atol=2e-6)


def test_regressor_is_scikit_learns(system):
    X, Y = system
    for y in (Y, Y[:, 0]):
        ours, theirs = RidgeRegressor(0.03).fit(X, y), Ridge(alpha=0.03 * len(X)).fit(X, y)
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


def test_leave_one_out_is_leaving_one_out(system):
    X, Y = system
    scores = RidgePath(X, Y).loo(np.array(PATH))
    np.testing.assert_allclose(scores, [-oracles.leave_one_out(X, Y, value) for value in PATH], rtol=1e-5)


def test_leave_one_out_is_scikit_learns(rng):
    X, y = rng.standard_normal((40, 8)), rng.standard_normal(40)
    alphas = np.array(PATH) * 40
    theirs = RidgeCV(alphas, store_cv_results=True).fit(X, y)
    np.testing.assert_allclose(RidgePath(X, y[:, None]).loo(np.array(PATH)), -theirs.cv_results_.mean(0), rtol=1e-6)
    assert RidgeRegressor(PATH, "loo").fit(X, y).regularization_ == pytest.approx(theirs.alpha_ / 40)
    labels = (y > 0).astype(int)
    classifier = RidgeClassifierCV(alphas, store_cv_results=True).fit(X, labels)
    expected = -classifier.cv_results_.reshape(40, 4).mean(0)
    np.testing.assert_allclose(RidgeClassifier(PATH, "loo").fit(X, labels).path_scores_, expected, rtol=1e-6)


def test_gcv_is_its_formula(system):
    X, Y = system
    path = RidgePath(X, Y)
    for regularization in (1e-3, 1e-2, 1.0):
        assert path.gcv(regularization) == pytest.approx(-oracles.gcv(X, Y, regularization), rel=1e-6)


def test_gcv_never_chooses_an_interpolation_of_noise(rng):
    """More features than points: without regularisation the residual is zero and so is its denominator."""
    X, y = rng.standard_normal((30, 60)), rng.standard_normal(30)
    for selection in ("gcv", "loo"):
        chosen = RidgeRegressor(selection=selection).fit(X, y)
        assert np.isfinite(chosen.path_scores_[chosen.path_ == chosen.regularization_])
        assert not np.isnan(chosen.path_scores_).any()
    assert RidgeRegressor(selection="gcv").fit(X, y).regularization_ > 1e-3


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


def test_classifier_hold_out_scores_are_accuracies(rng):
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
    for n in (2, 3, 5):
        fit, validation = hold_out(n, 0.01, np.arange(n), 0)
        assert len(validation) == 1
        assert len(fit) == n - 1


def test_best_of_path_prefers_the_stronger_of_equals():
    assert best_of_path(np.array([1.0, 2.0, 3.0]), lambda v: min(v, 2.0))[0] == 3.0
    assert best_of_path(np.array([1.0, 2.0, 3.0]), lambda v: -abs(v - 2))[0] == 2.0
    assert best_of_path(np.array([1.0, 2.0]), lambda v: -np.inf)[0] == 2.0


def test_regularization_path():
    np.testing.assert_array_equal(regularization_path([3.0, 1.0, 2.0]), [1, 2, 3])
    np.testing.assert_array_equal(regularization_path(0.5), [0.5])
    path = regularization_path(None)
    assert path[0] == pytest.approx(1e-10)
    assert path[-1] == pytest.approx(10)
    assert len(path) == len(DEFAULT_PATH) == 23
    with pytest.raises(ParameterError):
        regularization_path([])


@pytest.mark.parametrize("selection", ["gcv", "loo", "hold_out"])
def test_targets_or_features_that_do_not_vary_are_predicted_by_the_mean(rng, selection):
    constant = RidgeRegressor(selection=selection).fit(np.ones((20, 3)), np.arange(20.0))
    np.testing.assert_allclose(constant.predict(np.ones((2, 3))), 9.5)
    flat = RidgeRegressor(selection=selection).fit(rng.random((20, 3)), np.full(20, 7.0))
    np.testing.assert_allclose(flat.predict(rng.random((2, 3))), 7.0, atol=1e-6)


def test_unknown_selection_is_refused():
    with pytest.raises(ParameterError, match="selection: expected one of 'gcv', 'loo', 'hold_out', found 'cv'"):
        RidgeRegressor(selection="cv").check()  # type: ignore[arg-type]


# ---- kernel machines by linear learners ------------------------------------------------------------------------------


def test_ridge_on_exact_features_is_kernel_ridge_regression(rng):
    """A true identity: a free intercept centres features and targets, so the kernel is centred as KernelCenterer does.

    f(x) = mean(y) + k_c(x, X) (K_c + n lambda I)^-1 (y - mean(y)), lambda the weight of the mean loss.
    """
    X, Z = signals(rng, 30, (5, 6)), signals(rng, 12, (5, 6))
    y, regularization = rng.standard_normal(30), 1e-3
    exact = Exact(Gaussian(0.6), Orbit(Rotation(), VonMises(0.5), size=8)).fit(X)
    ridge = RidgeRegressor(regularization).fit(exact.transform(X), y)

    centre = KernelCenterer().fit(exact.gram(X))
    machine = KernelRidge(alpha=30 * regularization, kernel="precomputed")
    machine.fit(centre.transform(exact.gram(X)), y - y.mean())
    expected = machine.predict(centre.transform(exact.gram(Z))) + y.mean()
    np.testing.assert_allclose(ridge.predict(exact.transform(Z)), expected, atol=1e-8)
    assert expected.std() > 0.01


# ---- support vector machines -----------------------------------------------------------------------------------------


@pytest.fixture
def two_classes(rng):
    y = rng.integers(0, 2, 150)
    return rng.standard_normal((150, 4)) + 0.8 * y[:, None], y


def test_svm_is_linear_svc(two_classes):
    X, y = two_classes
    regularization = 0.01
    ours = SVMClassifier(regularization, random_state=0).fit(X, y)
    theirs = LinearSVC(C=1 / (2 * regularization * len(X)), random_state=3, tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.99


def test_svm_minimises_its_objective(two_classes):
    """(1/n) sum max(0, 1 - y f(x))^2 + lambda |w|^2; liblinear counts the intercept as one of the weights."""
    X, y = two_classes
    signs, A, regularization = 2 * y - 1, np.hstack([X, np.ones((len(X), 1))]), 0.05

    def objective(w):
        return np.square(np.maximum(0, 1 - signs * (A @ w))).mean() + regularization * w @ w

    best = optimize.minimize(objective, np.zeros(5), tol=1e-12)
    ours = SVMClassifier(regularization, random_state=0).fit(X, y)
    np.testing.assert_allclose([*ours.coef_[0], *ours.intercept_], best.x, atol=1e-3)


def test_svm_path_scores_are_accuracies_on_the_validation_part(two_classes):
    X, y = two_classes
    ours = SVMClassifier([1e-4, 1e-2, 10.0], random_state=0).fit(X, y)
    assert np.all((ours.path_scores_ >= 0) & (ours.path_scores_ <= 1))
    assert np.allclose(ours.path_scores_ * 30, np.round(ours.path_scores_ * 30)), "of a fifth of 150 points"


def test_svm_default_path():
    np.testing.assert_allclose(SVMClassifier().fit(np.eye(8), [0, 1] * 4).path_, [1e-6, 1e-5, 1e-4, 1e-3])
