"""Learners: the contract for each; ridge against plain formulas and scikit-learn, and every way of choosing lambda."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifierCV, RidgeCV
from sklearn.linear_model import RidgeClassifier as SklearnRidgeClassifier
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, SVR, LinearSVC

from orbit.approx import Exact, Nystrom, OperatorRandomFourier, RandomFourier
from orbit.core.errors import InputError, ParameterError
from orbit.core.parts import validation_parts
from orbit.core.random import hold_out, spawn
from orbit.distributions import VonMises
from orbit.groups import Rotation
from orbit.kernels import CurlFree, Decomposable, Gaussian
from orbit.learners import (
    AdaGradRegressor,
    CGRegressor,
    GaussianProcess,
    KernelRidgeRegressor,
    KernelSVMClassifier,
    KernelSVMRegressor,
    LogisticClassifier,
    NeighborsClassifier,
    NeighborsRegressor,
    RidgeClassifier,
    RidgeRegressor,
    SteinClassifier,
    SteinRegressor,
    SVMClassifier,
)
from orbit.orbits import Orbit
from orbit.testing import ClassifierContract, PathContract, RegressorContract
from orbit.testing.samples import signals

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


class TestSVM(PathContract, ClassifierContract):
    component, params = SVMClassifier, {"random_state": 0}
    weights_error = 1e-3  # liblinear stops by the scale of its gradient


class TestLogistic(PathContract, ClassifierContract):
    component, params = LogisticClassifier, {"tolerance": 1e-8, "random_state": 0}
    weights_error = 1e-5


class TestKernelSVMClassifier(PathContract, ClassifierContract):
    component, params = KernelSVMClassifier, {"random_state": 0, "regularization": [1e-3, 1e-2]}
    weights_error = 0.02  # libsvm's tolerance of 1e-3, on dual problems of different sizes

    path = [1e-1, 1e-3, 1.0, 1e-2]

    def scores(self, fitted, X):
        """One against one: the others count votes, and jump."""
        solver = copy.deepcopy(fitted.estimator_).set_params(decision_function_shape="ovo", break_ties=False)
        return solver.decision_function(X)


class TestKernelSVMRegressor(PathContract, RegressorContract):
    component, params = KernelSVMRegressor, {"random_state": 0, "regularization": [1e-3, 1e-2]}
    exactness = weights_error = float32_error = 0.05
    weights_repeat = False  # the targets' standard deviation is not weighted

    path = [1e-1, 1e-3, 1.0, 1e-2]


class TestNeighborsClassifier(PathContract, ClassifierContract):
    component, params = NeighborsClassifier, {"random_state": 0}
    path = [60, 1, 90, 3]
    fixed = {"n_neighbors": 3}


class TestNeighborsRegressor(PathContract, RegressorContract):
    component, params = NeighborsRegressor, {"vote": "distance", "random_state": 0}
    path = [9, 1, 30, 3]
    fixed = {"n_neighbors": 3}

    def problem(self, rng, n=120):
        X = rng.standard_normal((n, 1))
        return X, X[:, 0] + 4

    def scores(self, fitted, X):
        """Not of training points, which predict themselves where votes count by distance."""
        return fitted.predict(X + 0.05)


class TestKernelRidgeByGcv(PathContract, RegressorContract):
    component = KernelRidgeRegressor


class TestKernelRidgeByLoo(PathContract, RegressorContract):
    component, params = KernelRidgeRegressor, {"selection": "loo"}


class TestGaussianProcess(PathContract, RegressorContract):
    component = GaussianProcess
    fixed = {"noise": 0.1}


# ---- ridge: solutions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["gcv", "hold_out"])
@pytest.mark.parametrize("d", [40, 600], ids=["primal", "dual"])
def test_large_systems_choose_as_small_ones_do(rng, monkeypatch, selection, d):
    X = rng.standard_normal((400, d)) * np.geomspace(1, 1e-2, d)
    y = X[:, 0] + 0.3 * rng.standard_normal(400)
    small, large = (RidgeRegressor(selection=selection, random_state=0) for _ in range(2))
    small.fit(X, y)
    monkeypatch.setattr("orbit.solvers.factorisations.LARGE", 10)
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


# ---- kernel machines by linear learners ------------------------------------------------------------------------------


@pytest.fixture
def kernel_problem(rng):
    """Turned signals: exact features with their residual, the kernel they stand for, and targets with noise."""
    X, Z = signals(rng, 40, (5, 6)), signals(rng, 15, (5, 6))
    exact = Exact(Gaussian(0.8), Orbit(Rotation(), VonMises(0.5), size=6), residual=True).fit(X)
    y = np.sin(4 * X.mean((1, 2))) + 0.1 * rng.standard_normal(40)
    return exact.transform(X), exact.transform(Z), exact.gram(X), exact.gram(Z), exact.diagonal(Z), y


def test_exact_features_with_their_residual_give_every_kernel_value(kernel_problem, rng):
    psi, psi_new, K, K_new, prior, _ = kernel_problem
    np.testing.assert_allclose(psi @ psi.T, K, atol=1e-8)
    np.testing.assert_allclose(psi_new @ psi.T, K_new, atol=1e-8)
    np.testing.assert_allclose(np.square(psi_new).sum(1), prior, rtol=1e-8)
    assert np.all(psi[:, -1] == 0), "training points have none"
    assert psi_new[:, -1].max() > 0.1


def test_the_diagonal_is_that_of_the_kernel_matrix(rng):
    Z = signals(rng, 9, (5, 6))
    for orb in (None, Orbit(Rotation(), VonMises(0.5), size=6)):
        exact = Exact(Gaussian(0.8), orb).fit(signals(rng, 4, (5, 6)))
        np.testing.assert_allclose(exact.diagonal(Z), np.diag(exact.gram(Z, Z)), rtol=1e-10)


def test_krr_on_exact_features_is_scikit_learns_on_the_orbit_averaged_kernel(kernel_problem, rng):
    psi, psi_new, K, K_new, _, y = kernel_problem
    weights = rng.random(40)
    for regularization in (1e-4, 1e-1):
        for w in (None, weights / weights.mean()):
            theirs = KernelRidge(alpha=40 * regularization, kernel="precomputed")
            mean = np.average(y, weights=w)
            theirs.fit(K, y - mean, sample_weight=w)
            ours = KernelRidgeRegressor(regularization).fit(psi, y, sample_weight=w)
            np.testing.assert_allclose(ours.predict(psi_new), theirs.predict(K_new) + mean, atol=1e-8)


def test_krr_in_primal_and_dual(rng):
    X, y = rng.standard_normal((30, 8)) + 2, rng.standard_normal(30) + 5
    for d in (8, 3):
        theirs = KernelRidge(alpha=0.3, kernel="linear").fit(X[:, :d], y - y.mean())
        expected = theirs.predict(X[:, :d]) + y.mean()
        for zeros in (0, 40):  # columns of zeros turn the primal into the dual
            padded = np.hstack([X[:, :d], np.zeros((30, zeros))])
            np.testing.assert_allclose(KernelRidgeRegressor(0.01).fit(padded, y).predict(padded), expected, atol=1e-9)


def test_krr_scores_are_leaving_one_out_and_gcv_of_its_own_hat_matrix(rng):
    """The mean as given: residuals (I - H) y over 1 - diag H, with H = K (K + n lambda I)^-1."""
    X, y = rng.standard_normal((20, 5)), rng.standard_normal(20)
    y -= y.mean()
    K = X @ X.T
    for value in (1e-2, 1.0):
        H = K @ np.linalg.inv(K + 20 * value * np.eye(20))
        residual = y - H @ y
        loo = -np.square(residual / (1 - np.diag(H))).mean()
        gcv = -np.square(residual).mean() / (1 - np.trace(H) / 20) ** 2
        for selection, expected in (("loo", loo), ("gcv", gcv)):
            found = KernelRidgeRegressor([value, 1e3], selection).fit(X, y).path_scores_[0]
            assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("two_outputs", [False, True])
def test_gp_is_scikit_learns_gaussian_process(kernel_problem, rng, normalize, two_outputs):
    """On the plain kernel, which scikit-learn has: mean, deviation and marginal likelihood."""
    X, Z, y = rng.random((30, 3)), rng.random((12, 3)), rng.standard_normal(30) + 3
    y = np.column_stack([y, y**2]) if two_outputs else y
    exact = Exact(Gaussian(0.7), residual=True).fit(X)
    amplitude, noise = 1.7, 0.02
    theirs = GaussianProcessRegressor(
        ConstantKernel(amplitude) * RBF(0.7), alpha=amplitude * noise, normalize_y=normalize, optimizer=None
    ).fit(X, y)
    ours = GaussianProcess(noise, amplitude, normalize).fit(exact.transform(X), y)
    for found, expected in zip(
        ours.predict(exact.transform(Z), return_std=True), theirs.predict(Z, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-9)


@pytest.mark.parametrize("shape", [(40, 6), (15, 60)], ids=["primal", "dual"])
def test_gp_on_any_features_is_the_formula(rng, shape):
    X, Z = rng.standard_normal(shape), rng.standard_normal((5, shape[1]))
    y, noise = rng.standard_normal(len(X)), 0.3
    C = X @ X.T + noise * np.eye(len(X))
    gp = GaussianProcess(noise, 1.0, normalize=False).fit(X, y)
    mean, std = gp.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, Z @ X.T @ np.linalg.solve(C, y), atol=1e-9)
    np.testing.assert_allclose(std**2, np.diag(Z @ Z.T - Z @ X.T @ np.linalg.solve(C, X @ Z.T)), atol=1e-9)
    expected = stats.multivariate_normal(cov=C).logpdf(y)
    assert gp.log_marginal_likelihood_ == pytest.approx(expected, rel=1e-9)


def test_gp_maximises_the_marginal_likelihood_over_noise_and_amplitude(rng):
    X = rng.random((60, 2))
    y = np.sin(5 * X[:, 0]) + 0.2 * rng.standard_normal(60)
    psi = Exact(Gaussian(0.3), residual=True).fit_transform(X)
    ours = GaussianProcess(normalize=False).fit(psi, y)
    kernel = ConstantKernel(1.0) * RBF(0.3, length_scale_bounds="fixed") + WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, alpha=1e-12, n_restarts_optimizer=2, random_state=0).fit(X, y)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)
    assert ours.noise_ * ours.amplitude_ == pytest.approx(theirs.kernel_.k2.noise_level, rel=0.02)


@pytest.mark.parametrize(
    "learner", [RidgeRegressor(1e-3), KernelRidgeRegressor(1e-3), GaussianProcess(1e-2)], ids=lambda one: one.name
)
def test_one_value_on_precomputed_kernel_values_takes_no_eigendecomposition(rng, monkeypatch, learner):
    X, Z = signals(rng, 40, (5, 6)), signals(rng, 15, (5, 6))
    y = np.sin(4 * X.mean((1, 2))) + 0.1 * rng.standard_normal(40)
    parts = Gaussian(0.8), Orbit(Rotation(), VonMises(0.5), size=6)
    coordinates = Exact(*parts, residual=True).fit(X)
    expected = clone(learner).fit(coordinates.transform(X), y)

    def refused(A):
        raise AssertionError("no eigendecomposition")

    for module in ("orbit.core.linalg.eigh", "orbit.solvers.factorisations.eigh"):
        monkeypatch.setattr(module, refused)
    values = Exact(*parts, residual=True, precomputed=True).fit(X)
    fitted = clone(learner).fit(values.transform(X), y)
    found = fitted.predict(values.transform(Z))
    np.testing.assert_allclose(found, expected.predict(coordinates.transform(Z)), atol=1e-7)
    if isinstance(learner, GaussianProcess):
        std = fitted.predict(values.transform(Z), return_std=True)[1]
        np.testing.assert_allclose(std, expected.predict(coordinates.transform(Z), return_std=True)[1], atol=1e-7)
        assert fitted.log_marginal_likelihood_ == pytest.approx(expected.log_marginal_likelihood_, rel=1e-7)


@pytest.mark.parametrize("selection", ["gcv", "loo"])
@pytest.mark.parametrize("learner", [RidgeRegressor, KernelRidgeRegressor, RidgeClassifier])
def test_weights_and_paths_on_precomputed_kernel_values(rng, selection, learner):
    X, Z, targets = rng.random((40, 3)), rng.random((9, 3)), 5 + rng.standard_normal(40)
    X[7] = X[3]
    y = np.digitize(targets, [4.5, 5.5]) if learner is RidgeClassifier else targets
    maps = Exact(Gaussian(0.4)).fit(X), Exact(Gaussian(0.4), precomputed=True).fit(X)
    for weights in (None, rng.integers(0, 3, 40)):
        for regularization in (1e-2, [1e-4, 1e-2, 1.0]):
            expected, found = (learner(regularization, selection).fit(phi.transform(X), y, weights) for phi in maps)
            np.testing.assert_allclose(found.path_scores_, expected.path_scores_, rtol=1e-6)
            scores = [
                (fitted.decision_function if learner is RidgeClassifier else fitted.predict)(phi.transform(Z))
                for fitted, phi in zip((expected, found), maps, strict=True)
            ]
            np.testing.assert_allclose(scores[1], scores[0], atol=1e-7)


def test_a_path_is_predicted_from_precomputed_kernel_values(rng):
    X, Z, y = rng.random((30, 3)), rng.random((9, 3)), rng.standard_normal(30)
    phi = Exact(Gaussian(0.4), residual=True, precomputed=True).fit(X)
    for learner, name in (
        (RidgeRegressor(), "regularization"),
        (KernelRidgeRegressor(), "regularization"),
        (GaussianProcess(), "noise"),
    ):
        predicted = learner.path_predictions(phi.transform(X), y, np.array([1e-1, 1e-3]), phi.transform(Z))
        for value, found in zip((1e-1, 1e-3), predicted, strict=True):
            one = clone(learner).set_params(**{name: value}).fit(phi.transform(X), y)
            np.testing.assert_allclose(found, one.predict(phi.transform(Z)), atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"clusters": np.arange(30) % 7}], ids=["hold_out", "folds"])
def test_parts_of_kernel_values_are_scored_as_those_of_features(rng, options):
    X, y = rng.random((30, 3)), rng.standard_normal(30)
    krr = KernelRidgeRegressor([1e-3, 1e-2, 1e-1], selection="hold_out", random_state=0)
    by_values, by_features = (
        clone(krr).fit(Exact(Gaussian(0.4), precomputed=precomputed).fit_transform(X), y, **options)
        for precomputed in (True, False)
    )
    np.testing.assert_allclose(by_values.path_scores_, by_features.path_scores_, rtol=1e-8)


def test_kernel_values_need_a_learner_that_accepts_them(rng):
    X, y = rng.random((30, 3)), rng.standard_normal(30)
    phi = Exact(Gaussian(0.4), precomputed=True).fit(X)
    with pytest.raises(InputError, match="SteinRegressor takes no kernel values: set precomputed=False"):
        SteinRegressor().fit(phi.transform(X), y)
    with pytest.raises(ValueError, match="expected those of all 30 training points"):
        KernelRidgeRegressor(1e-2).fit(phi.transform(X)[:20], y[:20])


def test_features_with_a_structure_that_a_learner_does_not_take_are_refused(rng):
    X, y = rng.random((30, 2)), rng.standard_normal(30)
    K, classes = Exact(Gaussian(0.4), precomputed=True).fit_transform(X), y > 0
    for learner in (KernelSVMRegressor(), NeighborsRegressor(), AdaGradRegressor(), CGRegressor()):
        with pytest.raises(InputError, match=f"{type(learner).__name__} takes no kernel values"):
            learner.fit(K, y)
    for learner in (KernelSVMClassifier(), SVMClassifier(), LogisticClassifier(), NeighborsClassifier()):
        with pytest.raises(InputError, match=f"{type(learner).__name__} takes no kernel values"):
            learner.fit(K, classes)
    with pytest.raises(InputError, match="partial_fit takes no kernel values"):
        RidgeRegressor(1e-3).partial_fit(K, y)
    Y = rng.standard_normal((30, 2))
    coupled = OperatorRandomFourier(CurlFree(), n_components=10, random_state=0).fit_transform(X)
    for learner in (RidgeRegressor(), KernelRidgeRegressor(), GaussianProcess(), KernelSVMRegressor()):
        with pytest.raises(InputError, match=f"{type(learner).__name__} fits each output by itself"):
            learner.fit(coupled, Y)
    single = OperatorRandomFourier(Decomposable(), n_components=10, random_state=0).fit_transform(X)
    np.testing.assert_allclose(
        RidgeRegressor(1e-3).fit(single, Y).predict(single), SteinRegressor(1e-3).fit(single, Y).predict(single)
    )


@pytest.mark.parametrize("learner", [RidgeRegressor(1e-3), SteinRegressor(1e-3), AdaGradRegressor(0.1)])
@pytest.mark.parametrize(("first", "second"), [(2, 1), (1, 2)])
def test_batches_have_one_number_of_outputs(rng, learner, first, second):
    X, Y = rng.standard_normal((30, 4)), rng.standard_normal((30, 2))
    learner = clone(learner).partial_fit(X, Y[:, :first])
    with pytest.raises(ValueError, match=f"expected targets with {first} outputs, as before, found {second}"):
        learner.partial_fit(X, Y[:, :second])


def test_a_point_without_weight_does_not_move_the_targets_of_kernel_svm(rng):
    X = rng.standard_normal((60, 4))
    y, weights = X[:, 0] + 0.1 * rng.standard_normal(60), np.ones(60)
    wrong = np.append(y[:-1], 1e4)
    weights[-1] = 1e-9
    expected = KernelSVMRegressor(1e-3).fit(X[:-1], y[:-1]).predict(X)
    np.testing.assert_allclose(KernelSVMRegressor(1e-3).fit(X, wrong, weights).predict(X), expected, atol=0.02)


@pytest.mark.parametrize("path", [np.array([1e-3, 1.0]), range(1, 3), (1e-3, 1.0)], ids=["array", "range", "tuple"])
def test_a_path_is_any_sequence_of_numbers(rng, path):
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    for learner in (RidgeRegressor, GaussianProcess, SteinRegressor, AdaGradRegressor, KernelSVMRegressor):
        found, expected = (learner(each).fit(X, y) for each in (path, [float(value) for value in path]))
        np.testing.assert_array_equal(found.path_, expected.path_)
    with pytest.raises(ParameterError, match="regularization: expected"):
        RidgeRegressor(np.ones((2, 2))).fit(X, y)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_targets_whose_squares_are_no_numbers_are_refused(rng, size):
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    for learner in (RidgeRegressor(), KernelRidgeRegressor(), GaussianProcess(), SteinRegressor(), CGRegressor()):
        with pytest.raises(InputError, match=f"{type(learner).__name__}: the largest target must be between 1e-30 and"):
            learner.fit(X, size * y)
    assert RidgeRegressor().fit(X, 0 * y).predict(X).tolist() == [0.0] * 30


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


# ---- agreement with scikit-learn, the same features given to both ----------------------------------------------------


@pytest.fixture(params=[Exact, RandomFourier, Nystrom], ids=lambda cls: cls.name)
def digit_features(request):
    X, y = load_digits(return_X_y=True)
    X = X[:300] / 16
    params = {} if request.param is Exact else {"n_components": 60, "random_state": 0}
    psi = request.param(Gaussian(2.0), **params).fit(X[:200]).transform(X)
    return psi[:200], y[:200], psi[200:]


def test_logistic_is_scikit_learns(digit_features):
    psi, y, new = digit_features
    theirs = LogisticRegression(C=1 / (2 * 1e-3 * 200), tol=1e-8, max_iter=5000).fit(psi, y)
    ours = LogisticClassifier(1e-3, tolerance=1e-8, max_iter=5000).fit(psi, y)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-9)


def test_logistic_minimises_its_objective(rng):
    """(1/n) sum_i w_i log(1 + exp(-y_i f(x_i))) + lambda |v|^2; for two classes f is the difference of two scores."""
    X, y, w = rng.standard_normal((60, 3)), rng.integers(0, 2, 60), rng.random(60)
    w, signs = w / w.mean(), 2 * y - 1

    def objective(v):
        return (w * np.log1p(np.exp(-signs * (X @ v[:3] + v[3])))).mean() + 0.02 * v[:3] @ v[:3]

    best = optimize.minimize(objective, np.zeros(4), tol=1e-12).x
    ours = LogisticClassifier(0.02, tolerance=1e-10).fit(X, y, sample_weight=w)
    np.testing.assert_allclose([*ours.coef_[0], *ours.intercept_], best, atol=1e-5)


@pytest.mark.parametrize("vote", ["uniform", "distance"])
def test_neighbors_are_scikit_learns(digit_features, vote):
    psi, y, new = digit_features
    classifier = KNeighborsClassifier(3, weights=vote).fit(psi, y)
    ours = NeighborsClassifier(3, vote).fit(psi, y)
    np.testing.assert_array_equal(ours.predict(new), classifier.predict(new))
    np.testing.assert_allclose(ours.predict_proba(new), classifier.predict_proba(new))
    regressor = KNeighborsRegressor(3, weights=vote).fit(psi, y)
    np.testing.assert_allclose(NeighborsRegressor(3, vote).fit(psi, y).predict(new), regressor.predict(new))


@pytest.mark.parametrize("vote", ["uniform", "distance"])
def test_neighbors_with_equal_shares_are_the_class_of_predict(vote, rng):
    X, y = rng.integers(0, 3, (90, 2)).astype(float), rng.integers(0, 4, 90)
    learner = NeighborsClassifier(4, vote).fit(X, y)
    new = rng.integers(0, 5, (60, 2)).astype(float)
    labels, shares = learner.predict_with_probabilities(new)
    assert (np.sort(shares, axis=1)[:, -1] == np.sort(shares, axis=1)[:, -2]).any(), "some shares are equal"
    np.testing.assert_array_equal(labels, learner.predict(new))
    np.testing.assert_array_equal(shares, learner.predict_proba(new))


def test_kernel_svm_is_scikit_learns_on_the_gram_matrix(digit_features):
    psi, y, new = digit_features
    C = 1 / (2 * 1e-4 * 200)
    theirs = SVC(C=C, kernel="precomputed", break_ties=True).fit(psi @ psi.T, y)
    ours = KernelSVMClassifier(1e-4).fit(psi, y)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new @ psi.T))
    np.testing.assert_allclose(ours.decision_function(new), theirs.decision_function(new @ psi.T), atol=1e-6)
    scaled = (y - y.mean()) / y.std()
    regressor = SVR(C=C, epsilon=0.01, kernel="precomputed").fit(psi @ psi.T, scaled)
    expected = regressor.predict(new @ psi.T) * y.std() + y.mean()
    np.testing.assert_allclose(KernelSVMRegressor(1e-4).fit(psi, y).predict(new), expected, atol=1e-4)


# ---- sample weights --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["gcv", "loo", "hold_out"])
def test_points_of_zero_weight_do_not_affect_the_lambda_of_ridge(rng, selection):
    X, Y, weights = rng.standard_normal((40, 5)), rng.standard_normal((40, 2)), rng.random(40)
    weights[::3] = 0
    kept, ridge = weights > 0, RidgeRegressor(PATH, selection=selection, random_state=0)
    expected = ridge.fit(X[kept], Y[kept], weights[kept]).path_scores_
    np.testing.assert_allclose(ridge.fit(X, Y, weights).path_scores_, expected, rtol=1e-9)


# ---- support vector machines -----------------------------------------------------------------------------------------


@pytest.fixture
def two_classes(rng):
    y = rng.integers(0, 2, 150)
    return rng.standard_normal((150, 4)) + 0.8 * y[:, None], y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_many_columns_of_few_rows_are_solved_in_their_span(rng, classes, weighted):
    X, y = rng.standard_normal((30, 400)), np.arange(30) % classes
    X[:5] = X[5:10]  # fewer independent rows than rows
    weights = rng.random(30) + 0.5 if weighted else np.ones(30)
    weights /= weights.mean()
    C, new = 1 / (2 * 0.1 * 30), rng.standard_normal((9, 400))
    for ours, theirs in (
        (SVMClassifier(0.1, random_state=0), LinearSVC(C=C, tol=1e-8, max_iter=10**6)),
        (LogisticClassifier(0.1, tolerance=1e-9), LogisticRegression(C=C, tol=1e-9, max_iter=10**4)),
    ):
        ours.fit(X, y, sample_weight=weights)
        theirs.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(ours.estimator_.decision_function(new), theirs.decision_function(new), atol=1e-3)


def test_rows_of_zeros_are_fitted_by_the_intercept():
    svm = SVMClassifier(0.1, random_state=0).fit(np.zeros((4, 40)), [0, 1, 1, 1])
    assert svm.predict(np.zeros((2, 40))).tolist() == [1, 1]


def test_time_of_an_svm_does_not_grow_with_columns_beyond_rows(rng, monkeypatch):
    seen = []
    fit = LinearSVC.fit
    monkeypatch.setattr(LinearSVC, "fit", lambda self, X, y, **more: seen.append(X.shape) or fit(self, X, y, **more))
    X, y = rng.standard_normal((20, 500)), np.arange(20) % 2
    assert SVMClassifier(0.1, random_state=0).fit(X, y).coef_.shape == (1, 500)
    assert seen == [(20, 20)]


def test_svm_minimises_its_objective(two_classes):
    """(1/n) sum max(0, 1 - y f(x))^2 + lambda |w|^2; liblinear counts the intercept as one of the weights."""
    X, y = two_classes
    signs, A, regularization = 2 * y - 1, np.hstack([X, np.ones((len(X), 1))]), 0.05

    def objective(w):
        return np.square(np.maximum(0, 1 - signs * (A @ w))).mean() + regularization * w @ w

    best = optimize.minimize(objective, np.zeros(5), tol=1e-12)
    ours = SVMClassifier(regularization, random_state=0).fit(X, y)
    np.testing.assert_allclose([*ours.coef_[0], *ours.intercept_], best.x, atol=1e-3)


def test_svm_path_scores_are_mean_accuracies_of_repeated_folds(two_classes):
    X, y = two_classes
    ours = SVMClassifier([1e-4, 1e-2, 10.0], random_state=0).fit(X, y)
    parts = validation_parts(150, 0.2, y, None, spawn(0, 1)[0])
    assert len(parts) == 10
    scores = [SVMClassifier(10.0).fit(X[fit], y[fit]).score(X[held], y[held]) for fit, held in parts]
    assert ours.path_scores_[2] == pytest.approx(np.mean(scores))
    assert ours.path_errors_[2] == pytest.approx(np.std(scores, ddof=1) / np.sqrt(10))
    np.testing.assert_array_equal(ours.selection_curve().errors, ours.path_errors_)
    assert ours.metrics()["learner/score_std_error"] in ours.path_errors_


def test_learners_that_choose_keep_clusters_together(rng):
    """Points of a cluster have one target, which a fit to the others of the cluster can look up."""
    clusters = np.repeat(np.arange(20), 5)
    X = rng.standard_normal((20, 20))[clusters] + 0.01 * rng.standard_normal((100, 20))
    y = rng.permutation(np.arange(20) % 2)[clusters]
    path = [1e-4, 1.0]
    for learner in (
        *(RidgeClassifier(path), SteinClassifier(path), SteinRegressor(path), KernelRidgeRegressor(path)),
        *(CGRegressor(path), LogisticClassifier(path), SVMClassifier(path), KernelSVMClassifier(path)),
    ):
        alone, together = (clone(learner).fit(X, y, clusters=each).path_scores_ for each in (None, clusters))
        assert alone[0] > together[0] + 0.1, type(learner).__name__
    neighbours = NeighborsClassifier([1, 3], random_state=0)
    assert neighbours.fit(X, y).path_scores_[0] > 0.95 > 0.7 > neighbours.fit(X, y, clusters).path_scores_[0]


@pytest.mark.parametrize(
    "learner",
    [
        SVMClassifier([1e-9, 1e-8], max_iter=1, random_state=0),
        KernelSVMClassifier([1e-9, 1e-8], max_iter=2, random_state=0),
        KernelSVMRegressor([1e-9, 1e-8], max_iter=2, random_state=0),
        LogisticClassifier([1e-9, 1e-8], max_iter=1, random_state=0),
    ],
)
def test_solvers_that_do_not_converge_are_warned_of_once(learner, two_classes):
    X, y = two_classes
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        learner.fit(X, y)
    found = [one for one in found if issubclass(one.category, ConvergenceWarning)]
    assert [str(one.message) for one in found] == [
        f"the solver stopped after max_iter={learner.max_iter} steps before it converged for "
        "regularization=1e-09, 1e-08: give larger values, or more steps"
    ]


def test_default_paths():
    np.testing.assert_allclose(SVMClassifier().fit(np.eye(8), [0, 1] * 4).path_, np.logspace(-6, -1, 6))
    np.testing.assert_allclose(LogisticClassifier().fit(np.eye(8), [0, 1] * 4).path_, np.logspace(-8, -1, 8))


def test_logistic_tells_apart_fits_of_one_accuracy(rng):
    X = rng.normal(size=(200, 1))
    y = np.where(X[:, 0] > 0, "b", "a")
    learner = LogisticClassifier([1e-4, 1e-2, 1.0], random_state=0)
    with pytest.warns(UserWarning, match="the smallest value of its path"):
        learner.fit(X, y)
    assert learner.regularization_ == 1e-4, "all are right, and this one is surest"
    assert (np.diff(learner.path_scores_) < 0).all()
    mixed = rng.permutation(y)
    assert learner.fit(X, mixed).regularization_ > 1e-4
    losses = [
        log_loss(mixed[held], LogisticClassifier(1e-4).fit(X[fit], mixed[fit]).predict_proba(X[held]))
        for fit, held in validation_parts(200, 0.2, mixed, None, spawn(0, 1)[0])
    ]
    assert learner.path_scores_[0] == pytest.approx(-np.mean(losses), rel=1e-4)


def test_logistic_takes_the_largest_value_where_its_log_loss_has_levelled_off(rng):
    X = np.where(np.arange(60)[:, None] % 2, 1.0, -1.0) * rng.uniform(1, 2, (60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = LogisticClassifier(random_state=0).fit(X, np.arange(60) % 2)
    gains = learner.path_scores_.max() - learner.path_scores_
    assert 0 < gains[learner.path_ == learner.regularization_] < learner.negligible_score
    assert (gains[learner.path_ > learner.regularization_] > learner.negligible_score).all()


def test_logistic_leaves_out_held_out_points_of_classes_it_was_not_fitted_to(rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    for row in range(40):  # the one point of its class is held out in some of these
        of_three = np.where(np.arange(40) == row, 2, y)
        scores = LogisticClassifier([1e-2, 1e-1], random_state=0).fit(X, of_three, np.arange(40) % 5).path_scores_
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("learner", [SVMClassifier, KernelSVMClassifier, LogisticClassifier])
def test_a_regularization_held_out_at_an_end_of_its_path_is_warned_of(learner, two_classes):
    X, y = two_classes
    with pytest.warns(UserWarning, match="the chosen learner.regularization=1 is the smallest value of its path"):
        learner([1.0, 1e3, 1e6], random_state=0).fit(np.hstack([X, np.ones((len(X), 1))]), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner([1e-3, 1e-2], random_state=0).fit(np.sign(X[:, :1]), X[:, 0] > 0)  # all values are as good


# ---- learners that know output operators; more in test_operators.py --------------------------------------------------


class TestSteinRegressorByGcv(PathContract, RegressorContract):
    component = SteinRegressor


class TestSteinRegressorByHoldOut(PathContract, RegressorContract):
    component, params = SteinRegressor, {"selection": "hold_out"}


class TestSteinRegressorByTwoFold(PathContract, RegressorContract):
    component, params = SteinRegressor, {"selection": "two_fold"}

    def test_scores_are_means_over_the_two_halves(self, rng):
        X, path = rng.standard_normal((41, 8)), [1e-3, 1e-2, 0.1, 1.0]
        y = X @ rng.standard_normal(8) + rng.standard_normal(41)
        chosen = self.create(regularization=path, random_state=3).fit(X, y)
        halves = hold_out(41, 0.5, None, 3)
        errors = [
            np.mean(
                [
                    np.square(SteinRegressor(value).fit(X[a], y[a]).predict(X[b]) - y[b]).mean()
                    for a, b in (halves, halves[::-1])
                ]
            )
            for value in path
        ]
        np.testing.assert_allclose(chosen.path_scores_, -np.array(errors), rtol=1e-6)
        assert chosen.regularization_ == path[int(np.argmin(errors))]


class TestCG(PathContract, RegressorContract):
    component = CGRegressor

    def test_early_termination_warns_once_with_the_values(self, rng):
        X = rng.standard_normal((60, 20)) * np.geomspace(1, 1e-3, 20)
        y = X @ rng.standard_normal(20)
        hurried = CGRegressor([1e-8, 1e-7, 1e3], rank=1, max_iter=3, random_state=0)
        with pytest.warns(
            ConvergenceWarning, match=r"learner.regularization=1e-08, 1e-07: .*raise learner.max_iter"
        ) as said:
            hurried.fit(X, y)
        assert len([warning for warning in said if warning.category is ConvergenceWarning]) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            hurried.set_params(max_iter=500).fit(X, y)


class TestSteinClassifierByGcv(PathContract, ClassifierContract):
    component = SteinClassifier


class TestSteinClassifierByHoldOut(PathContract, ClassifierContract):
    component, params = SteinClassifier, {"selection": "hold_out"}


def test_standard_deviations_need_the_prior_variance(rng):
    X = rng.standard_normal((10, 2))
    exact = Exact(Gaussian(1.0), precomputed=True).fit(X)
    model = GaussianProcess(noise=0.1).fit(exact.transform(X), X[:, 0])
    with pytest.raises(InputError, match=r"^return_std=True: expected kernel values .*: set residual=True$"):
        model.predict(exact.transform(X), return_std=True)


@pytest.mark.parametrize("seed", range(5))
def test_learned_outputs_of_fewer_rows_than_columns_are_no_interpolation(seed):
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((80, 6)), 0.1 * rng.standard_normal(80)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + noise
    kernel = Decomposable(lengthscale=2.0, output="learned")
    features = OperatorRandomFourier(kernel, n_components=200, random_state=seed).fit_transform(X)
    learner = SteinRegressor().fit(features, np.stack([y, y + 0.3 * np.cos(X[:, 1])], axis=1))
    assert learner.regularization_ > 1e-9


@pytest.mark.parametrize("seed", range(20, 28))
def test_large_float32_systems_of_a_given_path_are_no_interpolation(seed):
    """Whose products of operator-valued features are in float32, of any size."""
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((80, 5)), 0.1 * rng.standard_normal(80)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + noise
    features = RandomFourier(Gaussian(2.0), n_components=400, random_state=seed).fit_transform(X)
    chosen = [SteinRegressor(list(10.0 ** np.arange(-8, 1))).fit(features.astype(t), y) for t in (np.float32, float)]
    assert chosen[0].regularization_ == chosen[1].regularization_


def test_a_path_of_learned_outputs_is_one_fit_for_each_value(rng):
    X, X_new = rng.standard_normal((60, 3)), rng.standard_normal((5, 3))
    Y = np.sin(X @ rng.standard_normal((3, 2))) @ rng.standard_normal((2, 4)) + 0.1 * rng.standard_normal((60, 4))
    kernel = Decomposable(lengthscale=1.0, output="learned")
    features = OperatorRandomFourier(kernel, n_components=30, random_state=0).fit(X)
    psi, psi_new = features.transform(X), features.transform(X_new)
    found = SteinRegressor().path_predictions(psi, Y, np.array(PATH), psi_new)
    for value, predicted in zip(PATH, found, strict=True):
        np.testing.assert_allclose(predicted, SteinRegressor(value).fit(psi, Y).predict(psi_new), rtol=1e-8)


@pytest.mark.parametrize("kind", [RidgeClassifier, LogisticClassifier, SVMClassifier, KernelSVMClassifier])
def test_balanced_classes_count_the_same(rng, kind):
    y = (np.arange(400) % 20 == 0).astype(int)
    X = rng.standard_normal((400, 3)) + y[:, None]
    counts = rng.integers(1, 3, 400)
    of_class = np.bincount(y, counts)[y]
    ours = kind(1e-2, class_weight="balanced", random_state=0).fit(X, y, sample_weight=counts)
    expected = kind(1e-2, random_state=0).fit(X, y, sample_weight=counts / of_class)
    np.testing.assert_allclose(ours.decision_function(X), expected.decision_function(X), atol=1e-6)
    assert ours.predict(X).mean() > 0.15 > kind(1e-2, random_state=0).fit(X, y).predict(X).mean()


def test_a_stream_cannot_balance_classes():
    with pytest.raises(InputError, match="learner.class_weight=balanced needs the labels of all points"):
        RidgeClassifier(class_weight="balanced").partial_fit(np.eye(4), [0, 1, 0, 1])
