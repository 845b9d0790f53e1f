"""Kernel matrices that are never held: products, the preconditioner, solutions and memory beside dense ones."""

import tracemalloc

import numpy as np
import pytest
from live_bytes import LiveBytes
from pretend_gpu import DEVICE, OnGpu, on_gpu, pretended
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from orbit import Orbit, Rotation
from orbit.approx import Exact
from orbit.core.random_pivots import random_pivots
from orbit.core.tiled_matrix import TiledMatrix
from orbit.encoders import PrincipalComponents
from orbit.engine import Engine
from orbit.kernels import Gaussian
from orbit.learners import KernelRidgeRegressor, RidgeClassifier, RidgeRegressor
from orbit.solvers import tiled_system
from orbit.solvers.conjugate_gradients import CholeskyPreconditioner, conjugate_gradients
from orbit.solvers.structure import GramStructure, StructuredFeatures

N = 500
#: Of a budget in GiB that is less than a kernel matrix of N points in float64.
LITTLE = 1e-3


def features(memory: float, **options) -> Exact:
    options = {"kernel": Gaussian(2.0)} | options
    return Exact(precomputed=True, engine=Engine(memory=memory, stream=True, workers=1), random_state=0, **options)


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((N, 5))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.standard_normal((N, 2)), rng.random((40, 5))


def both(X, **options):
    """The same kernel matrix in tiles and held."""
    tiled, held = (features(memory, **options).fit(X).transform(X) for memory in (LITTLE, 1.0))
    assert isinstance(tiled.values, TiledMatrix)
    assert isinstance(held.values, np.ndarray)
    return tiled, held


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"orbit": Orbit(Rotation(), size=5, random_state=0)},
        {"orbit": Orbit(Rotation(), size=3, random_state=0), "encoder": PrincipalComponents(n_components=6)},
    ],
    ids=["points", "orbit", "encoder"],
)
def test_products_are_those_of_the_matrix(rng, monkeypatch, options):
    monkeypatch.setattr("orbit.core.tiled_matrix._CONVERTED", 5000)  # several parts of a tile, of several blocks
    monkeypatch.setattr("orbit.approx.exact.NARROWEST_BLOCK", 64)
    X, V = rng.random((N, 4, 4)), rng.standard_normal((N, 3))
    tiled, held = both(X, **options)
    assert len(list(tiled.values.tiles())) > 3
    np.testing.assert_allclose(tiled.values @ V, held.values @ V, rtol=1e-10)
    np.testing.assert_allclose(tiled.values @ V[:, 0], held.values @ V[:, 0], rtol=1e-10)
    np.testing.assert_allclose(tiled.values[np.array([3, 1])], held.values[[3, 1]], rtol=1e-10)
    np.testing.assert_allclose(tiled.values.diagonal, held.values.diagonal(), rtol=1e-10)
    with pytest.raises(TypeError, match="no array"):
        np.asarray(tiled.values)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learner", [RidgeRegressor, KernelRidgeRegressor])
@pytest.mark.parametrize("regularization", [1e-1, 1e-3, 1e-5])
def test_a_solution_is_that_of_cholesky(problem, rng, learner, weighted, regularization):
    X, Y, X_new = problem
    tiled, held = both(X)
    weights = rng.integers(0, 3, N) if weighted else None
    found, expected = (learner(regularization).fit(K, Y, weights) for K in (tiled, held))
    assert 0 < found.metrics()["learner/solution_residual"] == found.solution_residual_ < 2e-6
    assert "learner/solution_residual" not in expected.metrics()
    new = features(1.0).fit(X).transform(X_new)
    # the right-hand side has the norm of the targets of all points
    limit = found.solution_residual_ * np.linalg.norm(Y) * 10
    np.testing.assert_allclose(found.predict(new), expected.predict(new), atol=limit)
    np.testing.assert_allclose(found.predict(tiled), expected.predict(held), atol=limit)


def test_a_path_is_scored_by_generalised_cross_validation(problem):
    X, Y, _ = problem
    tiled, held = both(X)
    for learner in (RidgeRegressor, KernelRidgeRegressor):
        path = [1e-3, 1e-2, 1e-1]
        found, expected = (learner(path, selection="gcv").fit(K, Y) for K in (tiled, held))
        np.testing.assert_allclose(found.path_scores_, expected.path_scores_, rtol=0.06)  # by eight probes
        assert found.regularization_ == expected.regularization_
        assert found.selection_curve().criterion == "gcv"
        again = learner(path).fit(tiled, Y)  # leave-one-out errors would need the diagonal of the inverse
        np.testing.assert_array_equal(again.path_scores_, found.path_scores_)
        each = list(learner(path).path_predictions(tiled, Y, np.array(path), held))
        np.testing.assert_allclose(each[0], learner(1e-3).fit(held, Y).predict(held), atol=1e-4)


def test_solutions_side_by_side_are_those_one_by_one(problem, monkeypatch):
    X, Y, _ = problem
    tiled, _ = both(X)
    together = RidgeRegressor([1e-3, 1e-2, 1e-1]).fit(tiled, Y)
    monkeypatch.setattr(tiled_system, "_ARRAYS_SHARE", 1e-9)
    one_by_one = RidgeRegressor([1e-3, 1e-2, 1e-1]).fit(tiled, Y)
    np.testing.assert_allclose(one_by_one.path_scores_, together.path_scores_, rtol=1e-6)


def test_a_classifier_and_its_weights(problem):
    X, Y, X_new = problem
    tiled, held = both(X)
    y, new = np.digitize(Y[:, 0], [-0.9, 0.3]), features(1.0).fit(X).transform(X_new)
    found, expected = (RidgeClassifier(1e-3, class_weight="balanced").fit(K, y) for K in (tiled, held))
    np.testing.assert_allclose(found.decision_function(new), expected.decision_function(new), atol=1e-4)


def test_a_value_for_which_it_does_not_converge_is_named(problem, monkeypatch):
    X, Y, _ = problem
    monkeypatch.setattr(tiled_system, "_MAX_PRODUCTS", 2)
    with pytest.warns(ConvergenceWarning, match=r"after 2 products .* learner.regularization=1e-06: choose larger"):
        RidgeRegressor(1e-6).fit(both(X)[0], Y)


def best_of_rank(A, r):
    """The trace of what the best matrix of rank r leaves of A."""
    return np.linalg.eigvalsh(A)[:-r].sum()


def share_over_best(A, r, k):
    """The smallest epsilon with k >= r / eps + r log(1 / (eps eta)), the bound of Chen et al. (2023)."""
    eta = best_of_rank(A, r) / A.trace()
    return brentq(lambda eps: r / eps + r * np.log(1 / (eps * eta)) - k, 1e-3, 1 / eta)


def test_the_preconditioner_is_the_inverse_and_saves_steps(problem, rng):
    X, Y, _ = problem
    A = both(X)[1].values / N
    factors = [random_pivots(A.diagonal(), lambda i, j: A[i][:, j], 60, np.random.default_rng(i))[1] for i in range(8)]
    F, left = factors[0], [A.trace() - np.square(each).sum() for each in factors]
    assert np.mean(left) < best_of_rank(A, 10) * (1 + share_over_best(A, 10, 60))
    R, shifts = rng.standard_normal((2, N, 3)), np.array([1e-4, 1e-2])
    expected = [shift * np.linalg.solve(F @ F.T + shift * np.eye(N), r) for shift, r in zip(shifts, R, strict=True)]
    made = CholeskyPreconditioner(F.copy())
    np.testing.assert_allclose(made.apply(R, shifts[:, None, None]), expected, atol=1e-10)

    class Plain:
        def apply(self, R, shifts):
            return R

    steps = [conjugate_gradients(lambda V, _: A @ V, Y, shifts[:1], each, 1e-8, 500)[2] for each in (made, Plain())]
    assert 3 * steps[0] < steps[1]


def test_nothing_as_large_as_the_matrix_is_held(rng):
    """The peak of arrays and tensors is that of the engine's memory, 4 MiB, not of a matrix, 31 MiB."""

    def fit_and_predict(X: np.ndarray) -> None:
        exact = Exact(Gaussian(2.0), precomputed=True, engine=Engine(memory=2**-8, stream=True, workers=1)).fit(X)
        learner = RidgeRegressor(1e-2).fit(exact.transform(X), X[:, 0])
        learner.predict(exact.transform(X))

    X = rng.standard_normal((2000, 3))
    with LiveBytes():
        fit_and_predict(X[:1000])  # what is loaded and compiled
    tracemalloc.start()
    with LiveBytes() as live:
        fit_and_predict(X)
    peak = tracemalloc.get_traced_memory()[1] + live.most
    tracemalloc.stop()
    assert peak < 16 * 2**20 < 8 * len(X) ** 2 / 1.9


def test_tiles_stay_on_a_device(rng):
    K, V = np.cov(rng.standard_normal((60, 90))), rng.standard_normal((60, 2))
    parts = [slice(start, start + 20) for start in (0, 20, 40)]
    with pretended() as copied:
        tiles = [(slice(0, part.stop), part, on_gpu(K[: part.stop, part])) for part in parts]
        assert tiles[0][2].device == DEVICE
        assert isinstance(tiles[0][2], OnGpu)
        matrix = TiledMatrix(K.diagonal(), lambda i, j: K[i][:, j], lambda: iter(tiles), K.dtype, 2**20)
        learner = RidgeRegressor(1e-2).fit(StructuredFeatures(matrix, GramStructure(60, False)), V)
        assert max(copied) <= 60 * 3
    np.testing.assert_allclose(
        learner.coef_, RidgeRegressor(1e-2).fit(StructuredFeatures(K, GramStructure(60, False)), V).coef_, rtol=1e-4
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, True), ({"memory": 1.0}, False), ({"stream": False}, False), ({"residual": True}, False)],
)
def test_a_matrix_is_in_tiles_in_a_stream_whose_memory_it_exceeds(rng, changes, expected):
    options = {"memory": LITTLE, "stream": True} | {k: v for k, v in changes.items() if k != "residual"}
    X = rng.standard_normal((N, 2))
    exact = Exact(precomputed=True, residual=changes.get("residual", False), engine=Engine(**options)).fit(X)
    assert exact.gives_tiles(N, X.dtype) == isinstance(exact.transform(X).values, TiledMatrix) == expected
    assert isinstance(exact.transform(X[:-1]).values, np.ndarray)
