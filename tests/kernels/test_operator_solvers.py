"""Solvers of operator-valued features: against dense features, weights, batches, paths, learned output matrices."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from test_operators import FIELDS, fitted_map

from orbit import CurlFree, Decomposable, Haar, InputError, OperatorRandomFourier, Orbit, Orthogonal
from orbit.core.parts import validation_parts
from orbit.core.random import hold_out
from orbit.learners import AdaGradRegressor, CGRegressor, RidgeRegressor, SteinRegressor
from orbit.solvers.band import Band
from orbit.solvers.factorisations import Eigen, Tridiagonal
from orbit.solvers.least_squares import Primal
from orbit.solvers.moments import System
from orbit.solvers.output_matrix import learn_output
from orbit.solvers.structure import Blocks, Constant, StructuredFeatures, structure_of

# ---- operators: P, its transpose and their product, against dense features -------------------------------------------


def dense(psi, factors):
    """Phi(X)^T as a matrix (n p, F q), from the definition."""
    n, (F, p, q) = len(psi), factors.shape
    return np.array([[[[psi[i, j] * factors[j, a, b] for b in range(q)] for j in range(F)] for a in range(p)]
                     for i in range(n)]).reshape(n * p, F * q)  # fmt: skip


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


@pytest.mark.parametrize("n", [25, 80], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize("copies", [1, 2])
def test_outputs_without_power_do_not_decide_on_lambda(rng, n, copies):
    X = np.repeat(rng.uniform(-1, 1, (n, 2)), copies, axis=0)
    noise = 0.01 * rng.standard_normal(len(X)) * (copies - 1)
    one = np.sin(X[:, 0] + X[:, 1]) + noise
    direction, path = rng.standard_normal(6), np.logspace(-8, 1, 10)
    targets = np.outer(one, direction / np.linalg.norm(direction)), one[:, None]
    kernel = Decomposable(lengthscale=0.8, output="covariance")
    psi = fitted_map(kernel, X).transform(X)
    scales = [structure_of(psi).operator(Y).scales.max() for Y in targets]  # lambda counts relative to them
    found, alone = (SteinRegressor(list(path * s)).fit(psi, Y) for Y, s in zip(targets, scales, strict=True))
    assert np.isfinite(alone.path_scores_[path > 1e-5]).all()
    np.testing.assert_allclose(found.path_scores_[path > 1e-5], alone.path_scores_[path > 1e-5], rtol=1e-5)
    assert found.regularization_ / scales[0] == pytest.approx(alone.regularization_ / scales[1])


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
