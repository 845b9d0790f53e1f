"""Operator-valued kernels and features: closed forms, exact fits, fields without curl or divergence, equivariance."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import orbit
from orbit.approx import OperatorExact, OperatorRandomFourier
from orbit.approx.frequencies import MonteCarlo
from orbit.core.errors import InputError, ParameterError
from orbit.core.parts import validation_parts
from orbit.core.random import hold_out
from orbit.distributions import Haar
from orbit.engine import Engine
from orbit.groups import Orthogonal
from orbit.kernels import (
    CurlFree,
    Decomposable,
    DivergenceFree,
    Exponential,
    Gaussian,
    Helmholtz,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from orbit.kernels.operator_bounds import operator_uniform_bound, operator_variance_bound
from orbit.kernels.operator_valued import _hessians
from orbit.learners import AdaGradRegressor, CGRegressor, RidgeRegressor, SteinRegressor
from orbit.orbits import Orbit
from orbit.solvers.factorisations import Band, Eigen, Tridiagonal
from orbit.solvers.least_squares import Primal
from orbit.solvers.moments import System
from orbit.solvers.output_matrix import learn_output
from orbit.solvers.structure import Blocks, Constant, GramStructure, StructuredFeatures, structure_of
from orbit.testing import ComponentContract, KernelMapContract, OperatorKernelContract, oracles

SIGMA = 1.3
FIELDS = [CurlFree(lengthscale=0.8), DivergenceFree(lengthscale=0.8), Helmholtz(lengthscale=0.8, curl_free_share=0.3)]


def k0(delta):
    return oracles.gaussian(delta, 0 * delta, SIGMA)


def curl_free(delta):
    return (np.eye(len(delta)) - np.outer(delta, delta) / SIGMA**2) / SIGMA**2 * k0(delta)


def divergence_free(delta):
    along, p = np.outer(delta, delta) / SIGMA**2, len(delta)
    return (along + (p - 1 - np.trace(along)) * np.eye(p)) / SIGMA**2 * k0(delta)


class TestDecomposable(OperatorKernelContract):
    def create(self):
        return Decomposable(lengthscale=SIGMA)

    def evaluate(self, delta):
        return k0(delta) * np.eye(len(delta))


class TestCurlFree(OperatorKernelContract):
    def create(self):
        return CurlFree(lengthscale=SIGMA)

    def evaluate(self, delta):
        return curl_free(delta)


class TestDivergenceFree(OperatorKernelContract):
    def create(self):
        return DivergenceFree(lengthscale=SIGMA)

    def evaluate(self, delta):
        return divergence_free(delta)


class TestDivergenceFreeInThePlane(TestDivergenceFree):
    n_features = 2


class TestHelmholtz(OperatorKernelContract):
    def create(self):
        return Helmholtz(lengthscale=SIGMA, curl_free_share=0.3)

    def evaluate(self, delta):
        return 0.3 * curl_free(delta) + 0.7 * divergence_free(delta)


class TestOperatorRandomFourier(KernelMapContract):
    gram_error = 0.35

    def create(self, **params):
        defaults = {"kernel": Gaussian(self.lengthscale), "n_components": 40, "random_state": 0}
        return OperatorRandomFourier(**{**defaults, **params})

    def evaluate(self, fitted, points, points_fit):
        return oracles.fourier_pairs(points, fitted.orbit_.weights_, fitted.frequencies_)


class TestOperatorExact(ComponentContract):
    """Of the contract of feature maps most is about orbits, over which this one does not average."""

    kind = "approx"

    def create(self):
        return OperatorExact(CurlFree(lengthscale=0.8))


# ---- kernels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 5])
def test_factors_are_roots_of_the_spectral_matrices(rng, d):
    W = rng.standard_normal((7, d))
    along = W[:, :, None] * W[:, None]
    across = np.square(W).sum(1)[:, None, None] * np.eye(d) - along
    for kernel, expected in zip(FIELDS, (along, across, 0.3 * along + 0.7 * across), strict=True):
        np.testing.assert_allclose(kernel.spectral_matrices(W), expected, atol=1e-13)
    assert CurlFree().factors(W).shape[2] == 1
    assert DivergenceFree().factors(W).shape[2] == (1 if d == 2 else d)
    np.testing.assert_allclose(DivergenceFree().factors(0 * W), 0, atol=1e-200)


@pytest.mark.parametrize("base", [RationalQuadratic(alpha=2.0), Matern(nu=1.5), Matern(nu=2.5)], ids=repr)
def test_differentiated_signatures_are_differences_of_the_kernel(rng, base):
    """Central second differences of k0, at a step whose error is far below the tolerance."""
    kernel, delta, h = CurlFree(base, lengthscale=0.9).fit(np.zeros((1, 2))), rng.standard_normal((5, 2)), 1e-3
    value = lambda x: kernel.base_.gram(x, np.zeros((1, 2)))[:, 0]  # noqa: E731
    expected = np.empty((5, 2, 2))
    for i, e in enumerate(np.eye(2) * h):
        for j, f in enumerate(np.eye(2) * h):
            second = value(delta + e + f) - value(delta + e - f) - value(delta - e + f) + value(delta - e - f)
            expected[:, i, j] = -second / (4 * h**2)
    np.testing.assert_allclose(kernel.signatures(delta), expected, atol=2e-5)


@pytest.mark.parametrize(("base", "expected"), [(Gaussian(), 1.0), (Matern(nu=1.5), 3.0), (Matern(nu=2.5), 5 / 3)])
def test_signature_at_zero_is_the_second_moment(base, expected):
    """E w w^T: a square root must not spoil the second derivative there."""
    kernel = CurlFree(base, lengthscale=1.0).fit(np.zeros((1, 3)))
    np.testing.assert_allclose(kernel.signatures(np.zeros((1, 3)))[0], expected * np.eye(3), rtol=1e-6)


def test_automatic_derivatives_are_the_closed_ones(rng):
    class Other(Matern):
        signature = Gaussian.signature

    gaussian, other, delta = Gaussian(0.7).fit(np.zeros((1, 3))), Other(0.7).fit(np.zeros((1, 3))), rng.random((6, 3))
    np.testing.assert_allclose(_hessians(other, delta), _hessians(gaussian, delta), atol=1e-12)


@pytest.mark.parametrize("kernel", [*FIELDS, Decomposable()], ids=lambda kernel: kernel.name)
def test_an_unfitted_kernel_is_fitted_by_gram_and_named_by_the_rest(rng, kernel):
    X = rng.standard_normal((5, 2))
    unfitted = clone(kernel).set_params(lengthscale="median")
    np.testing.assert_array_equal(unfitted.gram(X), clone(unfitted).fit(X).gram(X))
    for call in (lambda: unfitted.signatures(X), lambda: unfitted.lengthscale_):
        with pytest.raises(NotFittedError, match=f"This {type(kernel).__name__} instance is not fitted"):
            call()


@pytest.mark.parametrize("base", [Laplacian(), Exponential(), Matern(nu=1.0)], ids=str)
@pytest.mark.parametrize("kernel", FIELDS, ids=lambda kernel: kernel.name)
def test_bases_without_second_moment_are_refused(kernel, base):
    with pytest.raises(InputError, match=rf"kernel={kernel.name} needs frequencies with a second moment"):
        type(kernel)(base=base).check()
    Decomposable(base=base).check()


def test_invalid_bases_are_rejected():
    with pytest.raises(ParameterError, match="^kernel.base: expected a section with the name of a kernel"):
        orbit.build("kernel", "curl_free", base={"nu": 2.5})
    with pytest.raises(InputError, match="^kernel.base: .*did you mean 'gaussian'"):
        orbit.build("kernel", "curl_free", base="gausian")
    with pytest.raises(ParameterError, match="^kernel.base: expected a Kernel or null, found 'gaussian'"):
        CurlFree(base="gaussian").check()
    with pytest.raises(ParameterError, match="^kernel.lengthscale: expected None, because kernel=polynomial has none"):
        CurlFree(Polynomial(), lengthscale=1.0).check()


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        (np.ones((2, 3)), r"expected a symmetric 4 x 4 matrix.*\(2, 3\)"),
        *(
            (np.where(np.arange(16).reshape(4, 4) == 1, entry, 1.0), f"expected a symmetric 4 x 4 matrix.*{found}")
            for entry, found in ((np.nan, "NaN or inf"), (np.inf, "NaN or inf"), (-1, "negative"), (2, "not sym"))
        ),
        (np.full((4, 4), "a"), r".* found <U1 of shape \(4, 4\)"),
        ("0 1", ".* is not a readable .npy file"),
    ],
    ids=str,
)
def test_invalid_graphs_are_rejected(tmp_path, rng, graph, found):
    path = tmp_path / "graph.npy"
    path.write_text(graph) if isinstance(graph, str) else np.save(path, graph)
    with pytest.raises(InputError, match=f"^kernel.adjacency: {found}"):
        Decomposable(output="graph", adjacency=str(path)).output_matrix(rng.random((9, 4)))


class TestOutputMatrix:
    def test_covariance_and_low_rank(self, rng):
        Y = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 4))
        A = Decomposable(output="covariance").output_matrix(Y)
        np.testing.assert_allclose(A, np.cov(Y.T) / np.trace(np.cov(Y.T)) * 4)
        values, vectors = np.linalg.eigh(A)
        low = Decomposable(output="low_rank", rank=2).output_matrix(Y)
        np.testing.assert_allclose(low, vectors[:, 2:] * values[2:] @ vectors[:, 2:].T, atol=1e-12)

    def test_graph_is_the_pseudo_inverse_of_its_laplacian(self, rng, tmp_path):
        weights = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])
        np.save(tmp_path / "graph.npy", weights)
        A = Decomposable(output="graph", adjacency=str(tmp_path / "graph.npy")).output_matrix(rng.random((9, 3)))
        L = np.diag(weights.sum(1)) - weights
        np.testing.assert_allclose(L @ A @ L, L * (A[0, 0] / np.linalg.pinv(L)[0, 0]), atol=1e-12)
        np.testing.assert_allclose(A.sum(1), 0, atol=1e-12)

    def test_nearest_neighbours_join_outputs_that_move_together(self, rng):
        z = rng.standard_normal((200, 2))
        Y = np.column_stack([z[:, 0], z[:, 0], z[:, 1], z[:, 1]]) + 0.01 * rng.standard_normal((200, 4))
        A = Decomposable(output="graph", n_neighbors=1).output_matrix(Y)
        np.testing.assert_allclose(A[:2, 2:], 0, atol=1e-12)
        assert A[0, 1] < 0 < A[0, 0]

    def test_simplex_corners_are_equally_far_apart(self):
        A = Decomposable(output="simplex").output_matrix(np.eye(5))
        assert np.linalg.matrix_rank(A) == 4
        np.testing.assert_allclose(A - np.diag(np.diag(A)), -0.25 * (1 - np.eye(5)))


# ---- operators: P, its transpose and their product, against dense features -------------------------------------------


def dense(psi, factors):
    """Phi(X)^T as a matrix (n p, F q), from the definition."""
    n, (F, p, q) = len(psi), factors.shape
    return np.array([[[[psi[i, j] * factors[j, a, b] for b in range(q)] for j in range(F)] for a in range(p)]
                     for i in range(n)]).reshape(n * p, F * q)  # fmt: skip


def fitted_map(kernel, X, n_components=15, **params):
    return OperatorRandomFourier(kernel, n_components=n_components, random_state=0, **params).fit(X)


def case(kernel, rng, n=40, d=2):
    X = rng.uniform(-1, 1, (n, d))
    Y = np.column_stack([np.sin(X[:, 0] + X[:, 1]), np.cos(2 * X[:, 1]), X[:, 0] * X[:, -1]][:d])
    psi = fitted_map(kernel, X).transform(X)
    operator = structure_of(psi).operator(Y)
    if isinstance(operator, Constant):
        factors = np.broadcast_to(operator.basis * np.sqrt(operator.scales), (psi.shape[1], d, d))
    else:
        factors = operator.factors
    return np.asarray(psi), Y, operator, factors, psi


@pytest.fixture(params=[(2, 10**9), (10**9, 2), (10**9, 10**9)], ids=["tridiagonal", "band", "eigen"])
def reduction(request, monkeypatch) -> None:
    for name, size in zip(("TRIDIAGONAL_FROM", "BAND_FROM"), request.param, strict=True):
        monkeypatch.setattr(f"orbit.solvers.factorisations.{name}", size)


ALL = [*FIELDS, Decomposable(lengthscale=0.8), Decomposable(lengthscale=0.8, output="covariance")]


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kernel", ALL, ids=str)
class TestSolvers:
    def test_products_are_those_of_dense_features(self, rng, kernel, d):
        psi, Y, operator, factors, _ = case(kernel, rng, d=d)
        P, theta = dense(psi, factors), rng.standard_normal((psi.shape[1], factors.shape[2]))
        np.testing.assert_allclose(psi @ operator.coefficients(theta), (P @ theta.ravel()).reshape(Y.shape), atol=1e-12)
        np.testing.assert_allclose(operator.adjoint(psi.T @ Y).ravel(), P.T @ Y.ravel(), atol=1e-12)
        if isinstance(operator, Blocks):
            np.testing.assert_allclose(operator.normal_matrix(psi.T @ psi), P.T @ P, atol=1e-11)

    @pytest.mark.parametrize("learner", [SteinRegressor, CGRegressor])
    @pytest.mark.parametrize("n", [25, 40], ids=["fewer rows than features", "more"])
    def test_solution_is_the_dense_one(self, rng, kernel, d, learner, n):
        psi, Y, _, factors, features = case(kernel, rng, n=n, d=d)
        P, lam = dense(psi, factors), 1e-3
        theta = np.linalg.solve(P.T @ P / n + lam * np.eye(P.shape[1]), P.T @ Y.ravel() / n)
        fitted = learner(regularization=lam, fit_intercept=False, random_state=0).fit(features, Y)
        np.testing.assert_allclose(fitted.predict(psi), (P @ theta).reshape(Y.shape), atol=1e-8)

    def test_parameters_of_least_norm_have_these_coefficients(self, rng, kernel, d):
        *_, operator, factors, _ = case(kernel, rng, d=d)
        theta = rng.standard_normal((len(factors), factors.shape[2]))
        found = operator.parameters(operator.coefficients(theta))
        expected = [np.linalg.lstsq(B, B @ t, rcond=None)[0] for B, t in zip(factors, theta, strict=True)]
        np.testing.assert_allclose(found, expected, atol=1e-9)

    @pytest.mark.parametrize("lam", [1e-3, 1e-8])
    @pytest.mark.usefixtures("reduction")
    def test_one_lambda_is_that_point_of_a_path(self, rng, kernel, d, lam):
        _, Y, _, _, features = case(kernel, rng, n=80, d=d)
        path = SteinRegressor([lam, 2 * lam]).fit(features, Y)
        one = SteinRegressor(path.regularization_).fit(features, Y)
        np.testing.assert_allclose(one.predict(features), path.predict(features), atol=1e-7)

    @pytest.mark.usefixtures("reduction")
    def test_a_lambda_below_rounding_still_gives_an_answer(self, rng, kernel, d):
        _, Y, _, _, features = case(kernel, rng, n=80, d=d)
        for lam in (1e-30, [1e-30, 2e-30]):
            found = SteinRegressor(lam).fit(features, Y).predict(features)
            np.testing.assert_allclose(found, SteinRegressor(1e-12).fit(features, Y).predict(features), atol=0.03)

    def test_an_intercept_is_a_column_of_ones_that_costs_nothing(self, rng, kernel, d):
        psi, Y, _, factors, features = case(kernel, rng, d=d)
        P, lam, n = dense(psi, factors), 1e-3, len(psi)
        ones = np.tile(np.eye(d), (n, 1))
        A, penalty = np.hstack([P, ones]), np.diag([lam * n] * P.shape[1] + [0.0] * d)
        expected = A @ np.linalg.solve(A.T @ A + penalty, A.T @ (Y + 5).ravel())
        for learner in (SteinRegressor(lam), CGRegressor(lam, random_state=0)):
            np.testing.assert_allclose(learner.fit(features, Y + 5).predict(psi), expected.reshape(n, d), atol=1e-7)

    @pytest.mark.parametrize("kind", [Tridiagonal, Band])
    def test_all_reductions_are_one_path(self, rng, kernel, d, kind):
        psi, Y, operator, _, _ = case(kernel, rng, n=300, d=d)
        eigen, reduced = (Primal(operator, System.from_rows(psi, Y, None, "none", True)) for _ in range(2))
        for problem, one in ((eigen, Eigen), (reduced, kind)):
            problem.factorisation = one(problem._A.copy(), problem._right, operator.scales)
        for lam in (1e-9, 1e-5, 1.0, 1e3):
            expected = eigen.solve(lam)[0]
            np.testing.assert_allclose(reduced.solve(lam)[0], expected, atol=1e-5 * np.abs(expected).max())
            (errors, freedom), (other, other_freedom) = (p.errors_and_freedom(lam) for p in (eigen, reduced))
            np.testing.assert_allclose(other_freedom, freedom, rtol=1e-6)
            np.testing.assert_allclose(other, errors, rtol=1e-8, atol=1e-11 * np.square(Y).sum() / 300)  # a difference

    @pytest.mark.usefixtures("reduction")
    def test_gcv_is_its_definition(self, rng, kernel, d):
        psi, Y, operator, factors, features = case(kernel, rng, d=d)
        P, n, path = dense(psi, factors), len(psi), [1e-4, 1e-2]
        found = SteinRegressor(path, fit_intercept=False).fit(features, Y).path_scores_
        # the directions of the outputs that are fitted by themselves, or all outputs together
        directions = [v[:, None] for v in operator.basis.T] if isinstance(operator, Constant) else [np.eye(d)]
        for lam, score in zip(path, found, strict=True):
            H = P @ np.linalg.solve(P.T @ P + n * lam * np.eye(P.shape[1]), P.T)
            expected = 0.0
            for v in directions:
                Q = np.kron(np.eye(n), v)  # (n d, n) or (n d, n d)
                residual, share = Q.T @ (Y.ravel() - H @ Y.ravel()), np.trace(Q.T @ H @ Q) / Q.shape[1]
                expected -= residual @ residual / n / (1 - share) ** 2
            assert score == pytest.approx(expected, rel=1e-6)

    @pytest.mark.usefixtures("reduction")
    def test_batches_of_rows_give_the_model_of_all_rows(self, rng, kernel, d):
        _, Y, _, _, features = case(kernel, rng, d=d)
        whole = SteinRegressor([1e-4, 1e-2]).fit(features, Y + 3)
        batches = SteinRegressor([1e-4, 1e-2])
        for rows in (slice(0, 7), slice(7, 30), slice(30, 40)):
            batches.partial_fit(features[rows], (Y + 3)[rows])
        np.testing.assert_allclose(batches.predict(features), whole.predict(features), atol=1e-8)
        np.testing.assert_allclose(batches.coef_, whole.coef_, atol=1e-6)

    @pytest.mark.parametrize("learner", [SteinRegressor, CGRegressor])
    @pytest.mark.parametrize("n", [25, 40], ids=["fewer rows than features", "more"])
    def test_a_weight_is_a_number_of_copies(self, rng, kernel, d, learner, n):
        _, Y, _, _, features = case(kernel, rng, n=n, d=d)
        weights, fit = rng.integers(0, 3, n), learner(1e-3, random_state=0).fit
        expected = fit(features[np.repeat(np.arange(n), weights)], np.repeat(Y + 3, weights, axis=0)).predict(features)
        assert np.abs(expected - fit(features, Y + 3).predict(features)).max() > 1e-3, "weights matter"
        found = fit(features, Y + 3, sample_weight=0.1 * weights).predict(features)
        np.testing.assert_allclose(found, expected, atol=1e-7)

    @pytest.mark.parametrize(
        ("learner", "choice"),
        [(SteinRegressor, {"selection": "gcv"}), (SteinRegressor, {"selection": "hold_out"}), (CGRegressor, {})],
        ids=["gcv", "hold_out", "cg"],
    )
    def test_points_of_zero_weight_do_not_affect_lambda(self, rng, kernel, d, learner, choice):
        _, Y, _, _, features = case(kernel, rng, n=60, d=d)
        weights, path = rng.random(60) * (rng.random(60) < 0.7), [1e-4, 1e-2, 1.0]
        kept = weights > 0
        some = learner(path, random_state=0, **choice).fit(features, Y, weights)
        others_absent = learner(path, random_state=0, **choice).fit(features[kept], Y[kept], weights[kept])
        np.testing.assert_allclose(some.path_scores_, others_absent.path_scores_, rtol=1e-6)
        equal = learner(path, random_state=0, **choice).fit(features[kept], Y[kept])
        assert np.abs(some.path_scores_ / equal.path_scores_ - 1).max() > 1e-2, "weights matter"

    @pytest.mark.usefixtures("reduction")
    def test_weighted_gcv_is_that_of_rows_times_the_roots_of_weights(self, rng, kernel, d):
        _, Y, _, _, features = case(kernel, rng, d=d)
        weights = rng.random(len(Y)) + 0.1
        root = np.sqrt(weights / weights.mean())[:, None]
        learner = SteinRegressor([1e-4, 1e-2], fit_intercept=False)
        found = learner.fit(features, Y, weights).path_scores_
        if getattr(kernel, "output", "") != "covariance":  # which is about the weighted mean
            np.testing.assert_allclose(
                learner.fit(StructuredFeatures(features * root, structure_of(features)), Y * root).path_scores_,
                found,
                rtol=1e-6,
            )
        batches = SteinRegressor([1e-4, 1e-2], fit_intercept=False)
        for rows in (slice(0, 7), slice(7, 30), slice(30, 40)):
            batches.partial_fit(features[rows], Y[rows], weights[rows])
        np.testing.assert_allclose(batches.finalize().path_scores_, found, rtol=1e-6)


def held_out_parts(n, path):
    """Learners that choose from a path, and the parts of n points that they hold out."""
    return [
        (SteinRegressor(path, selection="hold_out", random_state=0), [hold_out(n, 0.2, None, 0)]),
        (CGRegressor(path, random_state=0), validation_parts(n, 0.2, None, None, 0)),
    ]


def test_weighted_hold_out_scores_weigh_the_points_held_out(rng):
    X, Y = rng.standard_normal((40, 3)), rng.standard_normal((40, 2))
    weights, path = rng.random(40) + 0.1, [1e-2, 1.0]
    for learner, parts in held_out_parts(40, path):
        for value, score in zip(path, learner.fit(X, Y, weights).path_scores_, strict=True):
            errors = []
            for fit, held in parts:
                part = SteinRegressor(value).fit(X[fit], Y[fit], weights[fit])
                of_points = np.square(part.predict(X[held]) - Y[held]).mean(1)
                errors.append(np.average(of_points, weights=weights[held]))
            assert score == pytest.approx(-np.mean(errors), rel=1e-6)


def test_hold_out_divides_points_and_not_the_rows_of_stacked_features(rng):
    X, path = rng.standard_normal((30, 2)), [1e-6, 1e-2]
    Y = np.tanh(X) + 0.3 * rng.standard_normal((30, 2))
    orb = Orbit(Orthogonal(2), Haar(), size=4, rule="quadrature")
    psi = OperatorRandomFourier(CurlFree(), orb, 40, equivariant=True, random_state=0).fit_transform(X)
    for learner, parts in held_out_parts(30, path):
        for value, score in zip(path, learner.fit(psi, Y).path_scores_, strict=True):
            fitted = [(SteinRegressor(value).fit(psi[fit], Y[fit]), held) for fit, held in parts]
            errors = [np.square(part.predict(psi[held]) - Y[held]).sum(1).mean() for part, held in fitted]
            assert score == pytest.approx(-np.mean(errors), rel=1e-4)


def test_weights_of_stacked_features_count_for_all_their_rows(rng):
    X, Y, weights = rng.standard_normal((30, 2)), rng.standard_normal((30, 2)), rng.integers(0, 3, 30)
    orb = Orbit(Orthogonal(2), Haar(), size=4, rule="quadrature")
    psi = OperatorRandomFourier(CurlFree(), orb, 10, equivariant=True, random_state=0).fit_transform(X)
    for learner in (SteinRegressor(1e-2), CGRegressor(1e-2, random_state=0)):
        expected = learner.fit(psi[np.repeat(np.arange(30), weights)], np.repeat(Y, weights, axis=0)).predict(psi)
        np.testing.assert_allclose(learner.fit(psi, Y, weights).predict(psi), expected, atol=1e-8)


@pytest.mark.parametrize("learner", [SteinRegressor, partial(RidgeRegressor, selection="gcv")], ids=["stein", "ridge"])
def test_a_batch_without_weight_changes_nothing(rng, learner):
    X, Y = rng.standard_normal((30, 4)), rng.standard_normal((30, 2))
    for first in (0, 20):
        weights = np.ones(30)
        weights[first : first + 10] = 0
        stream = learner([1e-3, 1e-1])
        for start in range(0, 30, 10):
            rows = slice(start, start + 10)
            stream.partial_fit(X[rows], Y[rows], weights[rows])
        kept = weights > 0
        whole = learner([1e-3, 1e-1]).fit(X[kept], Y[kept])
        np.testing.assert_allclose(stream.finalize().path_scores_, whole.path_scores_, rtol=1e-8)
        np.testing.assert_allclose(stream.predict(X), whole.predict(X), atol=1e-8)
    with pytest.raises(InputError, match="all of the stream's are 0"):
        learner().partial_fit(X, Y, np.zeros(30)).finalize()


def test_gcv_does_not_fit_the_noise_of_one_direction(rng):
    """Outputs that are one function and noise: the direction with nearly all of A's trace must not be interpolated."""
    X, direction = rng.uniform(-1, 1, (300, 2)), np.linspace(0.5, 1, 10)
    truth = lambda X: np.outer(np.sin(3 * X[:, 0]) * X[:, 1], direction)  # noqa: E731
    Y = truth(X) + 0.3 * np.outer(rng.standard_normal(300), direction) + 0.01 * rng.standard_normal((300, 10))
    features = fitted_map(Decomposable(lengthscale=0.3, output="covariance"), X, n_components=200)
    chosen = SteinRegressor().fit(features.transform(X), Y)
    new = rng.uniform(-1, 1, (1000, 2))
    errors = [
        np.square(
            SteinRegressor(float(lam)).fit(features.transform(X), Y).predict(features.transform(new)) - truth(new)
        ).mean()
        for lam in chosen.path_
    ]
    error = np.square(chosen.predict(features.transform(new)) - truth(new)).mean()
    assert error < 1.5 * min(errors)


@pytest.mark.parametrize(
    "kernel", [CurlFree(lengthscale=0.8), Decomposable(lengthscale=0.8, output="covariance")], ids=str
)
@pytest.mark.slow
def test_adagrad_converges_to_the_closed_form(rng, kernel):
    psi, Y, operator, _, features = case(kernel, rng, n=200)
    lam = 1e-2
    exact = SteinRegressor(lam).fit(features, Y)
    steps = AdaGradRegressor(0.3, regularization=lam, batch_size=200, epochs=3000, random_state=0).fit(features, Y)

    def objective(model):
        theta = operator.parameters(model.coef_.T)
        return np.square(model.predict(psi) - Y).sum() / len(Y) + lam * np.square(theta).sum()

    assert (1 - 1e-9) * objective(exact) <= objective(steps) <= 1.001 * objective(exact)


def test_adagrad_rejects_settings_that_it_does_not_support(rng):
    X, Y = rng.standard_normal((30, 2)), rng.standard_normal((30, 2))
    learned = fitted_map(Decomposable(output="learned"), X).transform(X)
    with pytest.raises(InputError, match=r"closed form only; use SteinRegressor"):
        AdaGradRegressor().fit(learned, Y)
    with pytest.raises(InputError, match=r"one number for each coordinate"):
        AdaGradRegressor().fit(fitted_map(CurlFree(), X).transform(X), Y[:, :1])


def test_exact_features_give_kernel_ridge_regression(rng):
    X, Z, lam = rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (9, 2)), 1e-3
    Y = np.column_stack([X[:, 0] ** 2, np.sin(X[:, 1])])
    for kernel in FIELDS:
        ovk = OperatorExact(kernel).fit(X)
        K, cross = ovk.kernel_.gram(X), ovk.kernel_.gram(Z, X)
        expected = cross @ np.linalg.solve(K + 30 * lam * np.eye(60), Y.ravel())
        fitted = SteinRegressor(lam, fit_intercept=False).fit(ovk.transform(X), Y)
        np.testing.assert_allclose(fitted.predict(ovk.transform(Z)), expected.reshape(9, 2), atol=1e-7)


def test_the_exact_kernel_stops_with_a_message(rng):
    with pytest.raises(InputError, match=r"would have 60 rows.*fewer points.*max_size=50.*approx=orff"):
        OperatorExact(CurlFree(), max_size=50).fit(rng.random((30, 2)))
    OperatorExact(Decomposable(), max_size=50).fit(rng.random((30, 2)))
    with pytest.raises(InputError, match="approx=ovk does not average over group=orthogonal"):
        OperatorExact(orbit=Orbit(Orthogonal(2))).check()


def test_a_learned_output_matrix_finds_that_outputs_are_one(rng):
    X = rng.uniform(-1, 1, (80, 3))
    direction = np.array([1.0, -2.0, 0.5, 0.0])
    Y = np.outer(np.sin(2 * X[:, 0]) + X[:, 1], direction) + 0.3 * rng.standard_normal((80, 4))
    Z = rng.uniform(-1, 1, (400, 3))
    truth = np.outer(np.sin(2 * Z[:, 0]) + Z[:, 1], direction)
    errors, matrices = {}, {}
    for output in ("identity", "learned"):
        phi = fitted_map(Decomposable(lengthscale=1.5, output=output), X, 60)
        fitted = SteinRegressor(3e-3).fit(phi.transform(X), Y)
        errors[output] = np.square(fitted.predict(phi.transform(Z)) - truth).mean()
        matrices[output] = fitted.output_matrix_
    assert errors["learned"] < errors["identity"]
    values, vectors = np.linalg.eigh(matrices["learned"])
    assert values[-1] > 3 * values[-2]
    assert abs(vectors[:, -1] @ direction) / np.linalg.norm(direction) > 0.99
    with pytest.raises(InputError, match="use SteinRegressor"):
        CGRegressor().fit(phi.transform(X), Y)


def test_a_learned_output_matrix_that_has_not_converged_says_so(rng):
    X, Y = rng.standard_normal((40, 4)), rng.standard_normal((40, 3))
    for regularization, converges in ((0.3, True), (1e-4, False)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            learn_output(X.T @ X / 40, X.T @ Y / 40, regularization)
        assert [each.category for each in found] == ([] if converges else [ConvergenceWarning])


# ---- fields ----------------------------------------------------------------------------------------------------------


def jacobians(phi, learner, points):
    """d f_a / d x_b of a fitted field by automatic differentiation, shape (n, p, d)."""
    W, C = torch.from_numpy(phi.frequencies_), torch.from_numpy(learner.coef_.T)

    def field(x):
        waves = torch.cat([(W @ x).cos(), (W @ x).sin()]) / len(W) ** 0.5
        return waves @ C

    x = torch.from_numpy(points)
    values = torch.func.vmap(field)(x).numpy() + learner.intercept_
    np.testing.assert_allclose(values, learner.predict(phi.transform(points)), atol=1e-10)
    return torch.func.vmap(torch.func.jacrev(field))(x).numpy()


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(
    "learner", [SteinRegressor(1e-6), CGRegressor(1e-6, random_state=0), AdaGradRegressor(0.1, random_state=0)], ids=str
)
def test_fields_have_no_curl_or_no_divergence_to_rounding(rng, d, learner):
    X = rng.uniform(-1, 1, (60, d))
    Y = X**2 @ rng.standard_normal((d, d)) + rng.standard_normal((60, d))
    largest = {}
    for kernel in (*FIELDS[:2], Decomposable(lengthscale=0.8)):
        phi = fitted_map(kernel, X, 40)
        J = jacobians(phi, learner.fit(phi.transform(X), Y), rng.uniform(-1, 1, (20, d)))
        scale = np.abs(J).max()
        curl, divergence = np.abs(J - J.swapaxes(1, 2)).max() / scale, np.abs(J.trace(axis1=1, axis2=2)).max() / scale
        largest[kernel.name] = curl, divergence
    assert largest["curl_free"][0] < 1e-12 < 1e-2 < largest["curl_free"][1]
    assert largest["divergence_free"][1] < 1e-12 < 1e-2 < largest["divergence_free"][0]
    assert min(largest["decomposable"]) > 1e-2, "otherwise the test shows nothing"


def test_targets_must_match_the_coordinates(rng):
    psi = fitted_map(CurlFree(), rng.random((20, 2))).transform(rng.random((20, 2)))
    with pytest.raises(
        InputError, match="kernel=curl_free: targets must have one number for each coordinate.*2, found 3"
    ):
        SteinRegressor().fit(psi, rng.random((20, 3)))
    with pytest.raises(ValueError, match="30 columns, found 10"):
        SteinRegressor().fit(StructuredFeatures(psi.values[:, :10], psi.structure), rng.random((20, 2)))


class TestEquivariance:
    """f(g x) = g f(x) for the turns of the orbit; for others to the accuracy of the orbit."""

    def fitted(self, rng, kernel, group, rule="quadrature", size=12, learner=None):
        d = group.dim
        X, Y = rng.standard_normal((40, d)), rng.standard_normal((40, d))
        orb = Orbit(group, Haar(), size=size, rule=rule)
        phi = OperatorRandomFourier(kernel, orb, 20, equivariant=True, random_state=0)
        return make_pipeline(phi, learner or SteinRegressor(1e-3)).fit(X, Y), X

    @pytest.mark.parametrize("kernel", [*FIELDS, Decomposable(lengthscale=0.8)], ids=lambda kernel: kernel.name)
    def test_turns_of_the_orbit_are_exact(self, rng, kernel):
        model, X = self.fitted(rng, kernel, Orthogonal(2))
        elements = model[0].orbit_.elements_
        angle = 2 * np.pi * 5 / len(elements)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose(model.predict(X @ turn.T), model.predict(X) @ turn.T, atol=1e-10)
        assert np.abs(model.predict(X)).max() > 0.05

    def test_any_turn_is_as_good_as_the_orbit(self, rng):
        angle, errors = 1.0, []
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for size in (6, 64):
            model, X = self.fitted(np.random.default_rng(3), FIELDS[0], Orthogonal(2), size=size)
            errors.append(np.abs(model.predict(X @ turn.T) - model.predict(X) @ turn.T).max())
        assert errors[0] > 1e-3
        assert errors[1] < 1e-8  # the trapezoid rule converges faster than any power

    def test_features_are_the_plain_formula(self, rng):
        orb = Orbit(Orthogonal(2), Haar(), size=3, rule="monte_carlo")
        X = rng.standard_normal((4, 2))
        for kernel in FIELDS:
            phi = OperatorRandomFourier(kernel, orb, 5, equivariant=True, random_state=0).fit(X)
            B, W = phi.kernel_.factors(phi.frequencies_), phi.frequencies_
            expected = np.zeros((4, 2, 2, 5, B.shape[2]))
            for weight, g in zip(phi.orbit_.weights_, phi.orbit_.elements_, strict=True):
                for part, wave in enumerate((np.cos, np.sin)):
                    waves = wave(X @ g.T @ W.T) / np.sqrt(5)
                    expected[:, :, part] += weight * np.einsum("nj,jab->najb", waves, np.linalg.inv(g) @ B)
            np.testing.assert_allclose(phi.transform(X), expected.reshape(4, -1), atol=1e-12)

    def test_solvers_agree_and_tiles_do_not_matter(self, rng):
        stein, X = self.fitted(np.random.default_rng(3), FIELDS[2], Orthogonal(2))
        cg, _ = self.fitted(
            np.random.default_rng(3), FIELDS[2], Orthogonal(2), learner=CGRegressor(1e-3, random_state=0)
        )
        np.testing.assert_allclose(cg.predict(X), stein.predict(X), atol=1e-8)
        small = OperatorRandomFourier(
            FIELDS[2], stein[0].orbit, 20, equivariant=True, engine=Engine(memory=1e-6, workers=2), random_state=0
        )
        np.testing.assert_allclose(small.fit_transform(X), stein[0].transform(X), atol=1e-12)

    def test_an_output_matrix_from_targets_is_refused(self, rng):
        with pytest.raises(InputError, match="kernel.output=covariance depends on the targets"):
            OperatorRandomFourier(Decomposable(output="covariance"), equivariant=True).fit(rng.random((5, 2)))

    def test_without_it_outputs_are_invariant(self, rng):
        orb = Orbit(Orthogonal(2), Haar(), size=12, rule="quadrature")
        X, Y = rng.standard_normal((40, 2)), rng.standard_normal((40, 2))
        model = make_pipeline(OperatorRandomFourier(Gaussian(1.0), orb, 20, random_state=0), SteinRegressor(1e-3))
        model.fit(X, Y)
        np.testing.assert_allclose(model.predict(X[:, ::-1] * [-1, 1]), model.predict(X), atol=1e-10)


def test_structure_goes_through_pipelines_searches_and_pickles(rng):
    X = rng.uniform(-1, 1, (60, 2))
    Y = np.column_stack([X[:, 0] ** 2, np.sin(X[:, 1])])
    model = make_pipeline(
        OperatorRandomFourier(CurlFree(lengthscale=0.5), n_components=30, random_state=0), SteinRegressor(1e-4)
    )
    search = GridSearchCV(model, {"operatorrandomfourier__kernel__lengthscale": [0.01, 1.0]}, cv=2).fit(X, Y)
    assert search.best_params_["operatorrandomfourier__kernel__lengthscale"] == 1.0
    fitted = search.best_estimator_
    J = jacobians(fitted[0], fitted[1], X[:5])
    np.testing.assert_allclose(J, J.swapaxes(1, 2), atol=1e-10)
    psi = fitted[0].transform(X)
    copied = pickle.loads(pickle.dumps(psi))
    assert structure_of(copied).kernel.name == "curl_free"
    assert structure_of(psi[3:7]) is structure_of(psi)


@pytest.mark.parametrize("has_prior", [False, True])
def test_kernel_values_are_those_of_the_training_points_with_one_another(has_prior):
    structure, K = GramStructure(3, has_prior), np.arange(12.0).reshape(3, 4)
    K[:, :3] += K[:, :3].T
    np.testing.assert_array_equal(structure.gram(K[:, : 3 + has_prior]), K[:, :3])
    for wrong in (K[:2, : 3 + has_prior], K[:, :2], K[:, : 4 - has_prior]):
        with pytest.raises(ValueError, match="^kernel values: expected those of all 3 training points"):
            structure.gram(wrong)
    with pytest.raises(ValueError, match="^kernel values: .* not symmetric: do not shuffle"):
        structure.gram(K[[1, 0, 2], : 3 + has_prior])


# ---- theory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [Decomposable(lengthscale=1.0), CurlFree(lengthscale=1.0), DivergenceFree(lengthscale=1.0)], ids=str
)
@pytest.mark.parametrize("d", [2, 4])
def test_variance_is_under_its_bound_and_not_far(kernel, d):
    rng, D = np.random.default_rng(0), 64
    kernel.fit(np.zeros((1, d)))
    for delta in (np.zeros(d), rng.uniform(-1, 1, d), rng.uniform(-2, 2, d)):
        exact = kernel.signatures(delta[None])[0]
        errors = np.array(
            [
                kernel.estimate(delta[None], MonteCarlo().draw(kernel.base_, D, d, np.random.default_rng(seed)))[0]
                - exact
                for seed in range(800)
            ]
        )
        empirical = np.linalg.norm((errors @ errors).mean(0), 2)
        bound = operator_variance_bound(kernel, delta, D)
        assert empirical <= 1.2 * bound + 1e-12  # 800 draws know a variance to some 5 to 10 percent
        assert empirical > 0.05 * bound - 1e-12


def test_bounds_reject_kernels_that_they_do_not_cover():
    with pytest.raises(ValueError, match="no closed form"):
        operator_variance_bound(Helmholtz(lengthscale=1.0).fit(np.zeros((1, 2))), np.zeros(2), 10)
    assert operator_uniform_bound(0.1, 10, 4, 4, 4.0, 6.0, 20.0, 5.0) == 1.0


def test_features_with_a_structure_are_not_changed_in_place(rng):
    features = OperatorRandomFourier(n_components=4, random_state=0).fit_transform(rng.random((6, 2)))
    before = np.array(features)
    with pytest.raises(TypeError, match="copy them"):
        features *= 2
    np.testing.assert_array_equal(np.asarray(features), before)
    np.testing.assert_array_equal(2 * features, 2 * before)
    total = np.zeros(before.shape)
    total += features
    np.testing.assert_array_equal(total, before)
