"""Solvers against plain formulas: moments, factorisations, conjugate gradients, passes, selection."""

from __future__ import annotations

import warnings

import numpy as np
import oracles
import pytest
from samples import batches, points_in_clusters
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from orbit.approx import CumulativeDistribution, RandomFourier
from orbit.data import XPerm
from orbit.engine import Engine
from orbit.groups import Permutation
from orbit.kernels import Gaussian
from orbit.learners import KernelRidgeRegressor, RidgeClassifier, RidgeRegressor
from orbit.learners.streaming import FeatureStream, fit_stream
from orbit.orbits import Orbit
from orbit.solvers.conjugate_gradients import NystromPreconditioner, conjugate_gradients
from orbit.solvers.factorisations import Band, Cholesky, Eigen, Tridiagonal, factorise
from orbit.solvers.least_squares import Dual, LeastSquares, Primal
from orbit.solvers.moments import Moments, System
from orbit.solvers.passes import StreamedSystem
from orbit.solvers.repeats import Repeats, equal_rows
from orbit.solvers.selection import DEFAULT_PATH, best_of_path, gcv_scores, leave_one_out, warn_at_end
from orbit.solvers.structure import Constant

PATH = [1e-6, 1e-4, 1e-2, 1.0]
REDUCTIONS = [Eigen, Tridiagonal, Band]
FACTORISATIONS = [*REDUCTIONS, Cholesky]


def factorised(X, Y, w=None, centering="both", kind=Eigen, precise=True) -> LeastSquares:
    """Least squares on rows, by one factorisation."""
    operator = Constant.identity(Y.shape[1])
    if len(X) >= X.shape[1]:
        problem: LeastSquares = Primal(operator, System.from_rows(X, Y, w, centering, precise))
    else:
        problem = Dual(operator, X, Y, w, centering, precise)
    problem.factorisation = kind(problem._A, problem._right, operator.scales)
    return problem


@pytest.mark.parametrize("kind", FACTORISATIONS)
def test_every_solution_of_the_path_is_the_minimiser(system, kind):
    X, Y = system
    problem = factorised(X, Y, kind=kind)
    for regularization in PATH:
        W, b = problem.solve(regularization)
        expected_W, expected_b = oracles.ridge(X, Y, regularization)
        np.testing.assert_allclose(W, expected_W, atol=1e-8)
        np.testing.assert_allclose(b, expected_b, atol=1e-8)


@pytest.mark.parametrize("centering", ["both", "targets", "none"])
@pytest.mark.parametrize("kind", FACTORISATIONS)
@pytest.mark.parametrize(("dtype", "precise", "tolerance"), [(float, True, 1e-9), (np.float32, False, 2e-3)])
def test_factorisations_in_blocks_are_the_eigendecomposition(
    system, rng, monkeypatch, centering, kind, dtype, precise, tolerance
):
    monkeypatch.setattr("orbit.solvers.moments.BLOCK_ROWS", 7)
    monkeypatch.setattr("orbit.solvers.factorisations.BLOCK", 3)
    monkeypatch.setattr("orbit.solvers.factorisations.PANEL", 6)
    X, Y = system[0].astype(dtype), system[1]
    w = rng.random(len(X)) + 0.2
    w /= w.mean()
    problem, expected = factorised(X, Y, w, centering, kind, precise), factorised(X.astype(float), Y, w, centering)
    for value in (1e-1, 1e-3, 1e-2):
        W, b = problem.solve(value)
        expected_W, expected_b = expected.solve(value)
        np.testing.assert_allclose(X @ W + b, X @ expected_W + expected_b, atol=tolerance)
        (errors, freedom), (exact_errors, exact_freedom) = (p.errors_and_freedom(value) for p in (problem, expected))
        np.testing.assert_allclose(errors, exact_errors, rtol=max(tolerance, 1e-6))
        if kind is not Cholesky:  # which has none
            np.testing.assert_allclose(freedom, exact_freedom, rtol=max(tolerance, 1e-6))


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
    W, b = factorised(features, Y).solve(regularization)
    exact_W, exact_b = factorised(features.astype(np.float64), Y).solve(regularization)
    np.testing.assert_allclose(features @ W + b, features @ exact_W + exact_b, atol=2e-6)


class TestMoments:
    @pytest.mark.parametrize("centering", ["both", "targets", "none"])
    def test_are_the_plain_sums(self, problem, rng, centering):
        X, Y = problem
        w = rng.random(len(X))
        moments = Moments()
        for batch in batches(X, Y, w):
            moments.add(*batch)
        x_mean, y_mean = np.average(X, axis=0, weights=w), np.average(Y, axis=0, weights=w)
        x_mean, y_mean = (centering == "both") * x_mean, (centering != "none") * y_mean
        system = moments.system(centering)
        np.testing.assert_allclose(system.x_offset, x_mean)
        np.testing.assert_allclose(system.y_offset, y_mean)
        np.testing.assert_allclose(system.A, ((X - x_mean) * w[:, None]).T @ (X - x_mean) / w.sum(), atol=1e-12)
        np.testing.assert_allclose(system.cross, ((X - x_mean) * w[:, None]).T @ (Y - y_mean) / w.sum(), atol=1e-12)
        np.testing.assert_allclose(system.power, (Y - y_mean).T @ (w[:, None] * (Y - y_mean)) / w.sum(), rtol=1e-9)

    def test_columns_in_blocks_make_no_difference(self, problem, monkeypatch):
        X, Y = problem
        whole, blocks = Moments(), Moments()
        whole.add(X, Y)
        for name in ("BLOCK_COLUMNS", "_TILE", "_SMALL_TILE"):
            monkeypatch.setattr(f"orbit.core.linalg.{name}", 5)
        blocks.add(X, Y)
        np.testing.assert_allclose(blocks.system().A, whole.system().A, atol=1e-13)

    @pytest.mark.parametrize(("precise", "tolerance"), [(False, 1e-6), (True, 1e-12)])
    def test_float32_tiles_lose_no_more_than_rounding(self, problem, precise, tolerance):
        X, Y = problem
        moments, expected = Moments(precise), Moments()
        for x, y in batches(X.astype(np.float32), Y):
            moments.add(x, y)
            expected.add(x.astype(np.float64), y)
        A, B = moments.system().A, expected.system().A
        error = np.abs(A - B).max() / np.abs(B).max()
        assert error < tolerance


class TestFactorisations:
    @pytest.fixture
    def matrix(self, rng):
        X = rng.standard_normal((400, 150)) * np.geomspace(1, 1e-3, 150)
        return X.T @ X / 400, rng.standard_normal((150, 3))

    @pytest.mark.parametrize("kind", FACTORISATIONS)
    @pytest.mark.parametrize("scales", [[1, 1, 1], [2.0, 0.3, 2.0], [0.0, 1e-3, 5.0]], ids=str)
    def test_solutions_for_several_lambdas_and_scales(self, matrix, kind, scales, monkeypatch):
        monkeypatch.setattr("orbit.solvers.factorisations.PANEL", 40)
        monkeypatch.setattr("orbit.solvers.factorisations.BLOCK", 8)
        A, right = matrix
        solved = kind(A.copy(), right, np.array(scales, dtype=float))
        for value in (1e-1, 1e-5, 1e-2):  # in no order: each starts from A itself
            z = solved.expand(solved.solve(value)[0])
            for k, scale in enumerate(scales):
                np.testing.assert_allclose((scale * A + value * np.eye(150)) @ z[:, k], right[:, k], atol=1e-9)

    @pytest.mark.parametrize("kind", REDUCTIONS)
    def test_degrees_of_freedom(self, matrix, kind):
        A, right = matrix
        values, scales = np.linalg.eigvalsh(A), np.array([1.0, 0.1, 0.0])
        for value in (1e-4, 1e-2):
            found = kind(A.copy(), right, scales).solve(value)[1]
            for freedom, scale in zip(found, scales, strict=True):
                assert abs(freedom - (scale * values / (scale * values + value)).sum()) < 1e-7

    @pytest.mark.parametrize("size", [704, 717])
    def test_matrices_by_blocks_are_the_eigendecomposition(self, rng, size):
        """With the sizes of blocks and panels in use; eigenvalues from 1 to 1e-9, and one that is zero."""
        Q = np.linalg.qr(rng.standard_normal((size, size)))[0]
        values, scales = np.append(np.geomspace(1, 1e-9, size - 1), 0.0), np.array([1.0, 0.1, 0.1])
        A, right = (Q * values) @ Q.T, rng.standard_normal((size, 3))
        path = np.geomspace(1e-8, 1, 7)
        solved = Band((A + A.T) / 2, right, scales, path)
        for value in path:
            z, freedom = solved.solve(value)
            scaled = values[:, None] * scales
            np.testing.assert_allclose(freedom, (scaled / (scaled + value)).sum(0), rtol=1e-7)
            expected = Q @ ((Q.T @ right) / (scaled + value))
            np.testing.assert_allclose(solved.expand(z), expected, atol=1e-6 * np.abs(expected).max())

    def test_a_reduction_in_float32_is_that_of_a_matrix_near_it(self, rng, monkeypatch):
        """A is off by at most 1e-6 of its largest eigenvalue, 20 roundings: so are solutions and degrees of freedom."""
        monkeypatch.setattr("orbit.solvers.factorisations.BLOCK", 8)
        monkeypatch.setattr("orbit.solvers.factorisations.PANEL", 40)
        Q, size = np.linalg.qr(rng.standard_normal((400, 400)))[0], 400
        values, scales = np.geomspace(1, 1e-9, size), np.array([1.0, 0.1, 0.1])
        A, right = (Q * values) @ Q.T, rng.standard_normal((size, 3))
        path = np.array([1e-5, 1e-3, 1e-1])
        solved = Band((A + A.T) / 2, right, scales, path, float32=True)
        for value in path:
            z, freedom = solved.solve(value)
            for k, (scale, found) in enumerate(zip(scales, freedom, strict=True)):
                left = (scale * A + value * np.eye(size)) @ solved.expand(z)[:, k] - right[:, k]
                assert np.linalg.norm(left) < 1e-6 * scale / value * np.linalg.norm(right[:, k])
                share_left = value / (scale * values + value)
                assert abs(found - (1 - share_left).sum()) < 1e-6 * scale / value * np.square(share_left).sum()

    @pytest.mark.parametrize("scales", [[1, 1, 1], [2.0, 0.3, 0.0]], ids=str)
    def test_values_outside_the_path_are_solved_when_asked_for(self, matrix, scales, monkeypatch):
        monkeypatch.setattr("orbit.solvers.factorisations._TOGETHER", 64)  # two values
        A, right = matrix
        scales, path = np.array(scales, dtype=float), np.array([1e-6, 1e-4, 1e-2])
        together, alone = Band(A.copy(), right, scales, path), Band(A.copy(), right, scales)
        for value in (*path, 0.3):
            for found, expected in zip(together.solve(value), alone.solve(value), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("kind", [Eigen, Cholesky])
    def test_determinants(self, matrix, kind):
        A, right = matrix
        solved, shifted = kind(A.copy(), right, np.ones(3)), A + 0.01 * np.eye(150)
        solved.solve(0.01)
        assert solved.log_determinant(0.01) == pytest.approx(np.linalg.slogdet(shifted)[1])

    @pytest.mark.parametrize("kind", FACTORISATIONS)
    def test_quadratic_forms_of_inverses(self, matrix, kind, monkeypatch):
        monkeypatch.setattr("orbit.solvers.factorisations.BLOCK", 8)  # the last block is not full
        A, right = matrix
        solved = kind(A.copy(), right, np.ones(3))
        in_basis = solved.to_basis(right)
        np.testing.assert_allclose(solved.expand(in_basis), right, atol=1e-10)
        for value in (1e-4, 1e-2):
            expected = np.diag(right.T @ np.linalg.solve(A + value * np.eye(150), right))
            np.testing.assert_allclose(solved.inverse_form(in_basis, value), expected)

    def test_the_cheapest_one_that_resolves_the_path_is_taken(self, matrix, monkeypatch):
        A, right = matrix[0], np.ones((150, 80))
        scales, path = np.array([1.0, 1.0, 2.0]), np.array([1e-8, 1e-2])
        take = lambda s, *args, **kwargs: type(factorise(A.copy(), right[:, : len(s)], s, *args, **kwargs))  # noqa: E731
        assert take(scales, path) is Tridiagonal
        assert take(scales, path[:1]) is Cholesky
        assert take(scales, path, eigen=True) is Eigen
        assert take(scales, np.array([1e-30, 1e-2])) is Eigen, "below rounding"
        assert take(np.arange(5.0), path[:1]) is Tridiagonal, "a factor for each scale costs more"
        assert take(np.arange(75.0), path) is Tridiagonal
        assert take(np.arange(76.0), path) is Eigen, "more systems than rows"
        monkeypatch.setattr("orbit.solvers.factorisations.BAND_FROM", 100)
        assert take(scales, path) is Band
        assert take(scales, path[:1]) is Cholesky
        assert take(np.arange(5.0), path[:1]) is Band
        assert take(np.arange(5.0), path) is Tridiagonal, "more than a system for 20 rows"

    @pytest.mark.parametrize("kind", [Cholesky, Tridiagonal, Band])
    def test_error_for_a_matrix_made_indefinite_by_rounding(self, kind):
        solved = kind(np.diag([1.0, -1.0]), np.ones((2, 1)), np.ones(1))
        with pytest.raises(np.linalg.LinAlgError, match="raise the smallest regularization"):
            solved.solve(1e-9)
        np.testing.assert_allclose(solved.expand(solved.solve(2.0)[0]), [[1 / 3], [1.0]])


class TestConjugateGradients:
    @pytest.mark.parametrize("rank", [1, 20, 60])
    def test_solutions_of_all_shifts_and_scales(self, rng, rank):
        X = rng.standard_normal((200, 60)) * np.geomspace(1, 1e-2, 60)
        A, right, scales = X.T @ X / 200, rng.standard_normal((60, 3)), np.array([1.0, 0.0, 4.0])
        preconditioner = NystromPreconditioner(A.__matmul__, 60, rank, rng, scales)
        shifts = np.array([1e-6, 1e-2])
        found, converged, n_iter = conjugate_gradients(
            lambda V, columns: A @ V * scales[columns], right, shifts, preconditioner, 1e-12, 2000
        )
        assert converged.all()
        assert n_iter < {1: 2000, 20: 300, 60: 4}[rank]
        for z, shift in zip(found, shifts, strict=True):
            for k, scale in enumerate(scales):
                expected = np.linalg.solve(scale * A + shift * np.eye(60), right[:, k])
                np.testing.assert_allclose(z[:, k], expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())

    def test_an_initial_value_saves_steps_and_early_termination_warns(self, rng):
        X = rng.standard_normal((200, 60)) * np.geomspace(1, 1e-2, 60)
        A, right = X.T @ X / 200, rng.standard_normal((60, 1))
        preconditioner = NystromPreconditioner(A.__matmul__, 60, 1, rng, np.ones(1))
        solve = lambda steps, start=None: conjugate_gradients(  # noqa: E731
            lambda V, _: A @ V, right, np.array([1e-4]), preconditioner, 1e-10, steps, start
        )
        z, converged, n_iter = solve(2000)
        assert converged.all()
        assert solve(2000, z)[2] <= 1 < n_iter
        assert not solve(3)[1].any()


class TestPasses:
    @pytest.fixture
    def weighted(self, problem, rng):
        X, Y = problem
        w = rng.random(len(X)) + 0.2
        return X, Y, w / w.mean()

    @pytest.mark.parametrize("memory", [2**20, 3e3], ids=["all lambdas at once", "one by one"])
    @pytest.mark.parametrize("rank", [1, 5, 12])
    def test_solutions_are_those_of_the_closed_form(self, weighted, memory, rank):
        system = StreamedSystem(lambda: batches(*(part.copy() for part in weighted)), memory, rank)
        expected = factorised(*weighted)
        np.testing.assert_allclose(system.x_offset, expected.x_offset)
        for value, (W, *_) in system.solve(np.array(PATH)).items():
            np.testing.assert_allclose(W, expected.solve(value)[0], atol=1e-7)

    def test_float32_batches(self, problem):
        X, Y = problem
        single = X.astype(np.float32)
        system = StreamedSystem(lambda: batches(single.copy(), Y, np.ones(len(X))), 2**20)
        for value, (W, *_) in system.solve(np.array([1e-3, 1e-1])).items():
            expected, b = factorised(X, Y).solve(value)
            np.testing.assert_allclose(X @ W + system.y_offset - system.x_offset @ W, X @ expected + b, atol=2e-3)

    def test_the_preconditioner_saves_passes(self, rng):
        X = rng.standard_normal((200, 60)) * np.geomspace(1, 1e-3, 60)
        Y = X @ rng.standard_normal((60, 1))
        passes = []
        for rank in (1, 40):
            system = StreamedSystem(lambda: batches(X.copy(), Y, np.ones(200)), 2**20, rank)
            system.solve(np.array([1e-5]))
            passes.append(system.passes)
        assert passes[1] < passes[0] / 2

    def test_early_termination_warns_once_with_the_values(self, weighted, monkeypatch):
        system = StreamedSystem(lambda: batches(*(part.copy() for part in weighted)), 3e3, rank=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            system.solve(np.array([1e-6, 1e-3, 10.0]))
        monkeypatch.setattr("orbit.solvers.passes.MAX_PASSES", 3)
        with pytest.warns(ConvergenceWarning, match=r"regularization=1e-06, 0\.001: .*more memory") as said:
            system.solve(np.array([1e-6, 1e-3, 1e9]))
        assert len(said) == 1

    def test_degrees_of_freedom_are_estimated(self, rng):
        X = rng.standard_normal((500, 300))
        system = StreamedSystem(lambda: batches(X.copy(), X[:, :1], np.ones(500)), 2**22)
        values = factorised(X, X[:, :1]).factorisation.values
        ((*_, freedom),) = system.solve(np.array([0.1])).values()
        assert freedom == pytest.approx(1 + (values / (values + 0.1)).sum(), rel=0.05)

    @pytest.mark.parametrize("kind", ["regressor", "classifier"])
    def test_a_stream_too_wide_for_its_memory_is_learnt_in_passes(self, rng, kind):
        X = rng.standard_normal((200, 30))
        y = X[:, 0] + 0.1 * rng.standard_normal(200)
        learner, task = RidgeRegressor(PATH), "regression"
        if kind == "classifier":
            learner, y, task = RidgeClassifier(PATH), (y > 0).astype(int), "classification"
        w = rng.random(200) + 0.5
        narrow = FeatureStream(lambda x: x, X, 30, Engine(memory=30 * 30 * 7 / 2**30, progress=False))
        fit_stream(learner, narrow, y, task, w)
        whole = type(learner)(learner.regularization_).fit(X, y, sample_weight=w)
        np.testing.assert_allclose(learner.coef_, whole.coef_, atol=1e-7)
        np.testing.assert_allclose(learner.intercept_, whole.intercept_, atol=1e-7)
        np.testing.assert_array_equal(learner.predict(X[:5]).shape, y[:5].shape)


@pytest.mark.parametrize("kind", FACTORISATIONS)
def test_leave_one_out_is_leaving_one_out(system, kind):
    X, Y = system
    score = leave_one_out(factorised(X, Y, kind=kind), X, Y, None)
    for value in PATH:
        assert score(value) == pytest.approx(-oracles.leave_one_out(X, Y, value), rel=1e-5)


def test_leave_one_out_of_many_rows_is_estimated_from_some(rng, monkeypatch):
    """From 400 of 800 rows within 2 %, where both errors differ by a tenth."""
    X = rng.standard_normal((800, 40)) * np.where(rng.random(800) < 0.5, 0.05, 1.0)[:, None] ** 2
    Y = rng.standard_normal((800, 2)) * (0.2 + np.linalg.norm(X, axis=1, keepdims=True))
    problem = factorised(X, Y)
    exact = leave_one_out(problem, X, Y, None)
    monkeypatch.setattr("orbit.solvers.selection.SAMPLED_ROWS", 400)
    estimated = leave_one_out(problem, X, Y, None)
    for value in (1e-6, 1e-3, 1e-1):
        assert estimated(value) == pytest.approx(exact(value), rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_the_estimate_holds_where_cross_validation_does_not(seed, monkeypatch):
    """The leave-one-out error is over 1.5 times that of generalised cross-validation; estimated within a quarter."""
    points, y = points_in_clusters(np.random.default_rng(seed), 800)
    X = RandomFourier(Gaussian(1.0), n_components=300, random_state=0).fit(points).transform(points)
    Y = y[:, None] * [1.0, 0.5]
    problem = factorised(X, Y)
    exact, general = leave_one_out(problem, X, Y, None), gcv_scores(problem)
    monkeypatch.setattr("orbit.solvers.selection.SAMPLED_ROWS", 400)
    estimated = leave_one_out(problem, X, Y, None)
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
    found = leave_one_out(factorised(X[rows], noisy, given), X[rows], noisy, given, Repeats.find(X[rows], noisy, given))
    means = np.array([np.average(noisy[rows == i], axis=0, weights=w[rows == i]) for i in range(len(X))])
    of_groups = np.bincount(rows, w)
    of_groups /= of_groups.mean()
    merged = leave_one_out(factorised(X, means, of_groups), X, means, of_groups)
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
        assert leave_one_out(problem, X, Y, w)(value) == pytest.approx(-np.mean(errors), rel=1e-6)
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
    monkeypatch.setattr("orbit.solvers.factorisations.LARGE", 20)
    monkeypatch.setattr("orbit.solvers.factorisations.BAND_FROM", 20)
    taken, original = [], Moments.__init__
    monkeypatch.setattr(
        Moments, "__init__", lambda self, precise=False: taken.append(precise) or original(self, precise)
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


def test_a_choice_at_an_end_of_the_path_warns(rng):
    X, noise = rng.standard_normal((60, 5)), rng.standard_normal(60)
    for y, end in ((X[:, 0], "smallest"), (noise, "largest")):
        with pytest.warns(UserWarning, match=f"the chosen regularization=.* is the {end} value of its path"):
            RidgeRegressor([1e-3, 1e-2, 1e-1]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RidgeRegressor(1e-2).fit(X, noise)
        RidgeRegressor([1e-2, 1e-1]).fit(X, noise)  # of two values each is an end
        RidgeRegressor([1e-9, 1e-2, 1e9]).fit(X, X[:, 0] + 0.3 * noise)
        warn_at_end(np.array([1.0, 2.0]), np.full(2, np.nan), 1.0)
        warn_at_end(np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 1.0]), 3.0)


def test_streamed_kernel_ridge_keeps_its_centring(rng):
    X, y = rng.standard_normal((80, 5)) + 2, rng.standard_normal(80) + 3
    stream = KernelRidgeRegressor([1e-3, 1.0], "gcv")
    for batch in batches(X, y, size=30):
        stream.partial_fit(*batch)
    whole = KernelRidgeRegressor([1e-3, 1.0], "gcv").fit(X, y)
    np.testing.assert_allclose(stream.finalize().path_scores_, whole.path_scores_, rtol=1e-8)
    np.testing.assert_allclose(stream.predict(X), whole.predict(X), atol=1e-9)
    passes = KernelRidgeRegressor(1e-3).fit_passes(lambda: iter([(X.copy(), y, np.ones(80))]), 2**20)
    np.testing.assert_allclose(passes.predict(X), KernelRidgeRegressor(1e-3).fit(X, y).predict(X), atol=1e-7)
