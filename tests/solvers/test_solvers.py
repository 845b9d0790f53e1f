"""Solvers against plain formulas: moments, factorisations, conjugate gradients, passes, selection."""

import numpy as np
import oracles
import pytest
from samples import batches
from sklearn.exceptions import ConvergenceWarning

from orbit import Engine, Gaussian, KernelRidgeRegressor, RandomFourier, RidgeClassifier, RidgeRegressor
from orbit.learners.streaming import FeatureStream, fit_stream
from orbit.solvers.band import Band
from orbit.solvers.conjugate_gradients import NystromPreconditioner, conjugate_gradients
from orbit.solvers.factorisations import Cholesky, Eigen, Tridiagonal, factorise
from orbit.solvers.least_squares import Dual, LeastSquares, Primal
from orbit.solvers.moments import Moments, System
from orbit.solvers.passes import StreamedSystem
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
    monkeypatch.setattr("orbit.solvers.band.BLOCK", 3)
    monkeypatch.setattr("orbit.solvers.band.PANEL", 6)
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
        monkeypatch.setattr("orbit.solvers.band.PANEL", 40)
        monkeypatch.setattr("orbit.solvers.factorisations.PANEL", 40)
        monkeypatch.setattr("orbit.solvers.band.BLOCK", 8)
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
        monkeypatch.setattr("orbit.solvers.band.BLOCK", 8)
        monkeypatch.setattr("orbit.solvers.band.PANEL", 40)
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
        monkeypatch.setattr("orbit.solvers.band._TOGETHER", 64)  # two values
        A, right = matrix
        scales, path = np.array(scales, dtype=float), np.array([1e-6, 1e-4, 1e-2])
        together, alone = Band(A.copy(), right, scales, path), Band(A.copy(), right, scales)
        for value in (*path, 0.3):
            for found, expected in zip(together.solve(value), alone.solve(value), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)

    @pytest.mark.parametrize("kind", FACTORISATIONS)
    def test_determinants(self, matrix, kind):
        A, right = matrix
        solved, shifted = kind(A.copy(), right, np.ones(3)), A + 0.01 * np.eye(150)
        solved.solve(0.01)
        assert solved.log_determinant(0.01) == pytest.approx(np.linalg.slogdet(shifted)[1])

    @pytest.mark.parametrize("kind", FACTORISATIONS)
    def test_quadratic_forms_of_inverses(self, matrix, kind, monkeypatch):
        monkeypatch.setattr("orbit.solvers.band.BLOCK", 8)  # the last block is not full
        A, right = matrix
        solved = kind(A.copy(), right, np.ones(3))
        in_basis = solved.to_basis(right)
        np.testing.assert_allclose(solved.expand(in_basis), right, atol=1e-10)
        for value in (1e-4, 1e-2):
            expected, half = (
                right.T @ np.linalg.solve(A + value * np.eye(150), right),
                solved.half_form(in_basis, value),
            )
            np.testing.assert_allclose(solved.inverse_form(in_basis, value), np.diag(expected))
            np.testing.assert_allclose(half.T @ half, expected, atol=1e-9 * np.abs(expected).max())

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

    @pytest.mark.filterwarnings("error")
    def test_early_termination_warns_once_with_the_values(self, weighted, monkeypatch):
        system = StreamedSystem(lambda: batches(*(part.copy() for part in weighted)), 3e3, rank=1)
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
