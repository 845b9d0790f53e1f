"""Least squares on kernel matrices in float32 beside plain formulas in float64: solutions, scores, memory."""

import tracemalloc
import warnings
from unittest.mock import Mock

import numpy as np
import pytest

from orbit import Exact, Gaussian, InputError, KernelRidgeRegressor, RidgeClassifier, RidgeRegressor
from orbit.solvers import kernel_matrix
from orbit.solvers.kernel_matrix import KernelMatrix
from orbit.solvers.structure import Constant, GramStructure, StructuredFeatures

N = 420


@pytest.fixture
def problem(rng, monkeypatch):
    """Kernel values in float32 of more points than are called large, and targets of two outputs."""
    monkeypatch.setattr("orbit.solvers.base.LARGE", 100)
    X = rng.standard_normal((N, 5)).astype(np.float32)
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.standard_normal((N, 2))
    K = Exact(Gaussian(2.0), precomputed=True).fit(X).transform(X)
    assert K.dtype == np.float32
    np.testing.assert_array_equal(K.values, K.values.T)
    return K, Y, 3 + 100 * Y


def plain_solution(K, Y, weights, regularization, fit_intercept):
    """Coefficients and intercept by an inverse in float64."""
    n = len(K)
    w = np.ones(n) if weights is None else weights / weights.mean()
    inverse, one = np.linalg.inv(K.astype(np.float64) + np.diag(n * regularization / w)), np.ones(n)
    b = one @ inverse @ Y / (one @ inverse @ one) if fit_intercept else w @ Y / n
    return inverse @ (Y - b), b


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learner", [RidgeRegressor, KernelRidgeRegressor])
def test_one_lambda_gives_the_solution_of_float64_and_its_error(problem, rng, learner, weighted):
    K, _, Y = problem
    given, weights = K.values.copy(), rng.random(N) + 0.1 if weighted else None
    for regularization in (1e-2, 1e-5, 1e-7):
        fitted = learner(regularization).fit(K, Y, weights)
        np.testing.assert_array_equal(K.values, given)
        alpha, b = plain_solution(given, Y, weights, regularization, learner is RidgeRegressor)
        error = np.linalg.norm(fitted.coef_.T - alpha) / np.linalg.norm(alpha)
        # the inverse has rounding errors too
        assert error < 10 * fitted.solution_error_ + 1e-14 / regularization
        assert fitted.metrics()["learner/solution_error"] == fitted.solution_error_ < 1e-7
        np.testing.assert_allclose(fitted.intercept_, b, rtol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("selection", ["loo", "gcv", "hold_out"])
def test_a_path_is_scored_as_in_float64(problem, rng, selection, weighted):
    K, Y, _ = problem
    given, weights = K.values.copy(), rng.random(N) + 0.1 if weighted else None
    path = [1e-6, 1e-5, 1e-4, 1e-2]
    in_float64 = StructuredFeatures(given.astype(np.float64), K.structure)
    found, expected = (
        RidgeRegressor(path, selection, random_state=0).fit(values, Y, weights) for values in (K, in_float64)
    )
    np.testing.assert_array_equal(K.values, given)
    np.testing.assert_allclose(found.path_scores_, expected.path_scores_, rtol=1e-2)
    np.testing.assert_allclose(found.path_scores_[1:], expected.path_scores_[1:], rtol=5e-4)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-8)
    assert expected.solution_error_ is None


def test_the_leave_one_out_error_is_that_of_fits_without_each_point(problem):
    K, Y, _ = problem
    few, kept = K.values[:30, :30].copy(), np.arange(30)
    structure = GramStructure(30, False)
    fitted = RidgeRegressor([1e-3, 1e-2]).fit(StructuredFeatures(few, structure), Y[:30])
    for value, score in zip(fitted.path_, fitted.path_scores_, strict=True):
        errors = []
        for i in kept:
            rest = np.delete(kept, i)
            # lambda is a share of the number of points
            alpha, b = plain_solution(few[np.ix_(rest, rest)], Y[rest], None, value * 30 / 29, True)
            errors.append(Y[i] - b - few[i, rest] @ alpha)
        assert -np.square(errors).mean() == pytest.approx(score, rel=1e-4)


def test_a_classifier_predicts_as_in_float64(problem):
    K, Y, _ = problem
    y, in_float64 = np.digitize(Y[:, 0], [-0.3, 0.3]), StructuredFeatures(K.values.astype(np.float64), K.structure)
    found, expected = (RidgeClassifier(decision="largest").fit(values, y) for values in (K, in_float64))
    assert found.regularization_ == pytest.approx(expected.regularization_)
    np.testing.assert_allclose(found.decision_function(K), expected.decision_function(in_float64), atol=1e-6)


def kernel_matrix_of(K, Y, weights=None):
    made = KernelMatrix(Constant.identity(Y.shape[1]), K, Y, weights, "both")
    made.factorise(np.array([1.0]))
    return made


def test_a_value_too_small_for_a_factor_in_float32_takes_one_in_float64(rng):
    rows = rng.integers(-3, 4, (60, 4)).astype(np.float32)
    K, Y = rows @ rows.T, rng.standard_normal((60, 1))  # of rank 4, without rounding errors
    problem, shift = kernel_matrix_of(K, Y), 1e-9
    assert problem._refined(shift, np.float32) is None
    W, b = problem.solve(shift)
    alpha, expected = plain_solution(K, Y, None, shift, True)
    assert np.linalg.norm(W - alpha) < 1e-5 * np.linalg.norm(alpha)
    np.testing.assert_allclose(b, expected, rtol=1e-4)


def test_a_value_below_the_rounding_of_the_kernel_matrix_is_refused(rng, monkeypatch):
    monkeypatch.setattr("orbit.solvers.base.LARGE", 100)
    X, Y = rng.standard_normal((N, 2)).astype(np.float32), rng.standard_normal(N)
    K = Exact(Gaussian(3.0), precomputed=True).fit(X).transform(X)
    with pytest.raises(
        InputError, match=r"^learner.regularization: expected a value that .* set engine.dtype=float64$"
    ):
        RidgeRegressor(1e-13).fit(K, Y)


def test_a_factor_in_float64_that_does_not_fit_is_refused(rng, monkeypatch):
    monkeypatch.setattr(kernel_matrix, "process_bytes", lambda: 2**14)
    rows = rng.integers(-3, 4, (60, 4)).astype(np.float32)
    K, Y = rows @ rows.T, rng.standard_normal((60, 1))
    expected = r"found 1e-09, whose factor in float64 takes 42 KiB .*, this process can have 16 KiB: give a larger one"
    with pytest.raises(InputError, match=expected):
        kernel_matrix_of(K, Y).solve(1e-9)
    with pytest.raises(InputError, match=expected):
        kernel_matrix_of(K, Y).factorise(np.array([1e-9, 1.0]))


def test_a_default_path_takes_no_factorisation_in_float64(problem, monkeypatch):
    """Also where the best value is the smallest: K is in float32, of which float64 would resolve no more."""
    K, _, _ = problem
    monkeypatch.setattr(KernelMatrix, "_check_room", lambda *_: 1 / 0)
    smooth = K.values[:, :3] @ np.ones((3, 1))  # without noise
    fitted = RidgeRegressor().fit(K, smooth)
    assert 0.99e-8 < fitted.path_[0] <= fitted.regularization_ < 1e-6


def test_kernel_values_are_restored_after_an_interruption_and_copied_if_read_only(problem, monkeypatch):
    K, Y, _ = problem
    given, K = K.values, StructuredFeatures(K.values.copy(), K.structure)  # of memory that may be made read-only
    expected = RidgeRegressor(1e-4).fit(K, Y).coef_
    K.values.flags.writeable = False
    np.testing.assert_allclose(RidgeRegressor(1e-4).fit(K, Y).coef_, expected, rtol=1e-12)
    K.values.flags.writeable = True
    interrupted = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(kernel_matrix, "conjugate_gradients", interrupted)
    monkeypatch.setattr(kernel_matrix.Band, "inverse_form", interrupted)
    for regularization in (1e-4, [1e-4, 1e-3]):
        with pytest.raises(KeyboardInterrupt):
            RidgeRegressor(regularization).fit(K, Y)
        np.testing.assert_array_equal(K.values, given)


def test_a_fit_takes_no_second_matrix(rng):
    n = 1500
    G = rng.standard_normal((n, 50)).astype(np.float32)
    K, Y = np.exp(0.01 * (G @ G.T) - 1), rng.standard_normal((n, 1))
    tracemalloc.start()
    kernel_matrix_of(K, Y).solve(1e-3)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 0.7 * K.nbytes  # blocks along the diagonal, which are half of such a small matrix


@pytest.mark.parametrize(
    ("learner", "noise", "warned"),
    [(RidgeRegressor, 0, True), (KernelRidgeRegressor, 0, True), (RidgeRegressor, 1, False)],
)
def test_a_choice_that_float32_limits_is_a_warning(rng, monkeypatch, learner, noise, warned):
    monkeypatch.setattr("orbit.solvers.base.LARGE", 100)
    X = rng.uniform(-1, 1, (300, 2)).astype(np.float32)
    y = np.sin(3 * X[:, 0]) * X[:, 1] + noise * rng.standard_normal(300)
    K = Exact(Gaussian(1.0), precomputed=True).fit(X).transform(X)
    with warnings.catch_warnings(record=True, action="always") as found:
        fitted = learner().fit(K, y)
    expected = f"={fitted.regularization_:.4g} is among the smallest that kernel values in float32 resolve"
    assert any(expected in str(each.message) for each in found) == warned


@pytest.mark.parametrize(("value", "warned"), [(4e-7, True), (6e-7, False)])
def test_so_is_a_choice_where_errors_in_float32_rise(problem, value, warned):
    K, Y, _ = problem
    with warnings.catch_warnings(record=True, action="always") as found:
        RidgeRegressor([value, 1.01 * value]).fit(K, Y)
    assert any("kernel values in float32 resolve" in str(each.message) for each in found) == warned


def test_kernel_values_are_float32_for_many_points_in_float32_only(rng, monkeypatch):
    monkeypatch.setattr("orbit.solvers.base.LARGE", 20)
    X = rng.standard_normal((30, 3)).astype(np.float32)
    for points, residual, dtype in (
        (X, False, np.float32),
        (X, True, np.float64),
        (X[:20], False, np.float64),
        (X.astype(np.float64), False, np.float64),
    ):
        phi = Exact(Gaussian(1.0), residual=residual, precomputed=True).fit(points)
        assert phi.transform(points).dtype == phi.features_dtype(len(points), points.dtype) == dtype
        np.testing.assert_allclose(phi.transform(points)[:, 0], phi.kernel_.gram(points)[:, 0], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_in_float32_give_the_solution_and_the_choice_of_float64(rng, monkeypatch, weighted):
    """Of many float32 rows for each column; of fewer, moments are in float64."""
    monkeypatch.setattr("orbit.solvers.weighted_rows.LEVERAGES_BY_EIGENVALUES", 20)
    n, d = 900, 60
    X = (rng.standard_normal((n, d)) @ np.diag(10.0 ** -np.linspace(0, 3, d)) + 0.3).astype(np.float32)
    Y, weights = X[:, :2] + 0.1 * rng.standard_normal((n, 2)), rng.random(n) + 0.1 if weighted else None
    for regularization in (1e-6, [1e-7, 1e-5, 1e-3, 1e-1], None):
        found, expected = (RidgeRegressor(regularization).fit(rows, Y, weights) for rows in (X, X.astype(np.float64)))
        assert found.regularization_ == expected.regularization_
        assert np.linalg.norm(found.coef_ - expected.coef_) < 1e-5 * np.linalg.norm(expected.coef_)
        np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=1e-5)
    monkeypatch.setattr("orbit.solvers.least_squares.RefinedPrimal._gradient", lambda problem, z: 1 / 0)
    RidgeRegressor(1e-6).fit(X[: 4 * d], Y[: 4 * d])
    with pytest.raises(ZeroDivisionError):
        RidgeRegressor(1e-6).fit(X, Y)
