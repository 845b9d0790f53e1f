"""Landmark rules: their properties, and their errors compared with uniform landmarks."""

import pickle

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import orbit
from orbit import Engine, Nystrom, Orbit
from orbit.core.random_pivots import random_pivots
from orbit.kernels import ArcCos, Gaussian, Laplacian, Polynomial, landmarks
from orbit.kernels.landmarks import KMeans, Leverage, RPCholesky
from orbit.kernels.radial import RadialColumns
from orbit.testing import LandmarksContract

CAREFUL = ["kmeans", "leverage", "rpcholesky"]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Threads that meet after every small product cost more than they save, most of all on shared cores."""
    with threadpool_limits(1):
        yield


class TestKMeans(LandmarksContract):
    component = KMeans


class TestLeverage(LandmarksContract):
    component = Leverage


class TestRPCholesky(LandmarksContract):
    component = RPCholesky


def clustered(n, rng):
    """Nine points in ten in one tight cluster, the others in nineteen wide ones: uniform landmarks miss those."""
    centres = 6 * rng.standard_normal((20, 5))
    cluster = rng.choice(20, n, p=[0.9] + [0.1 / 19] * 19)
    return centres[cluster] + rng.standard_normal((n, 5)) * np.where(cluster == 0, 0.1, 0.5)[:, None]


def select(name, X, kernel, size, seed, source="data"):
    rule, orb = orbit.build("landmarks", name, source=source), Orbit().fit(X)
    return orbit.approx.landmarks.select(rule, X, kernel.fit(X), orb, Engine(), size, np.random.default_rng(seed))


def trace_error(X, Z, kernel):
    """tr(K - C K_ZZ^+ C^T) / n."""
    C, W = kernel.gram(X, Z), kernel.gram(Z)
    return (kernel.diagonal(X) - np.einsum("ij,jk,ik->i", C, np.linalg.pinv(W, rcond=1e-12, hermitian=True), C)).mean()


@pytest.fixture(scope="module")
def errors():
    """Mean trace error of each rule over seeds, 40 landmarks of 400 points."""
    found = {name: [] for name in ["uniform", *CAREFUL]}
    for seed in range(8):
        X, kernel = clustered(400, np.random.default_rng(seed)), Gaussian(2.0)
        for name, values in found.items():
            values.append(trace_error(X, select(name, X, kernel, 40, seed), kernel))
    return {name: np.mean(values) for name, values in found.items()}


@pytest.mark.parametrize("name", CAREFUL)
def test_other_rules_are_better_than_uniform_on_clusters(errors, name):
    assert errors[name] < errors["uniform"] / 2


@pytest.mark.parametrize("name", ["uniform", *CAREFUL])
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(), Polynomial(), ArcCos(0)], ids=lambda k: k.name)
def test_landmarks_are_distinct_for_every_kernel(name, kernel):
    X = clustered(150, np.random.default_rng(0))
    Z = select(name, X, kernel, 30, 1)
    assert Z.shape == (30, 5)
    assert len(np.unique(Z, axis=0)) == 30
    if name != "kmeans":
        assert {tuple(z) for z in Z} <= {tuple(x) for x in X}


@pytest.mark.parametrize("name", ["uniform", *CAREFUL])
@pytest.mark.parametrize("source", ["data", "orbit"])
def test_repeated_points(name, source):
    X = np.repeat(np.random.default_rng(0).standard_normal((6, 3)), 5, axis=0)
    Z = select(name, X, Gaussian(1.0), 10, 0, source)
    assert len(Z) <= 10
    assert np.all(np.isfinite(Z))
    if name in ("rpcholesky", "kmeans"):
        assert len(np.unique(Z, axis=0)) == 6
    phi = Nystrom(Gaussian(1.0), n_components=10, landmarks=orbit.build("landmarks", name), random_state=0).fit(X)
    assert np.all(np.isfinite(phi.transform(X)))


def test_random_pivots_are_those_of_the_plain_algorithm():
    """The law of the first two pivots, by blocks, is the definition's: P(i) = K_ii / tr K, then the residual's."""
    X = np.array([[0.0], [0.3], [1.5], [1.6], [4.0]])
    K = Polynomial(2, gamma=0.5).gram(X)
    expected = np.zeros((5, 5))
    for i in range(5):
        residual = np.maximum(np.diag(K) - K[i] ** 2 / K[i, i], 0)
        residual[i] = 0
        expected[i] = K[i, i] / np.trace(K) * residual / residual.sum()
    draws, counts = 4000, np.zeros((5, 5))
    rng = np.random.default_rng(0)
    for _ in range(draws):
        (i, j), _ = random_pivots(np.diag(K), lambda i, j: K[i][:, j], 2, rng)
        counts[i, j] += 1
    error = np.sqrt(expected * (1 - expected) / draws)
    assert np.all(np.abs(counts / draws - expected) <= 5 * error + 1e-12)


def test_random_pivots_reproduce_a_matrix_of_small_rank():
    X = np.random.default_rng(0).standard_normal((80, 3))
    kernel = Polynomial(2).fit(X)  # ten monomials of three variables up to degree two
    K = kernel.gram(X)
    pivots, F = random_pivots(np.diag(K), lambda i, j: K[i][:, j], 40, np.random.default_rng(0))
    assert len(pivots) == 10
    np.testing.assert_allclose(F @ F.T, K, atol=1e-9)
    assert trace_error(X, X[pivots], kernel) < 1e-9
    assert len(np.unique(select("rpcholesky", X, kernel, 40, 0), axis=0)) == 40


def test_leverage_scores_are_the_exact_ones_when_the_dictionary_is_everything():
    X = np.random.default_rng(0).standard_normal((30, 3))
    kernel = Gaussian(1.0).fit(X)
    K = kernel.gram(X)
    scores = landmarks._leverage_scores(K, K, np.diag(K), np.ones(30))
    values = np.linalg.eigvalsh(K)[::-1]
    ridge = values[30 // 4 :].sum() / (30 // 4)
    np.testing.assert_allclose(scores, np.diag(K @ np.linalg.inv(K + ridge * np.eye(30))), rtol=1e-9)


def test_landmarks_do_not_compute_the_whole_matrix(monkeypatch):
    asked, compute = [], RadialColumns.__call__

    def count(self, points, units, out):
        asked.append(out.numel())
        return compute(self, points, units, out)

    monkeypatch.setattr(RadialColumns, "__call__", count)
    X = np.random.default_rng(0).standard_normal((3000, 4))
    for name in ("rpcholesky", "leverage"):
        asked.clear()
        select(name, X, Gaussian(1.0), 50, 0)
        assert max(asked) <= 3000 * 64
        assert sum(asked) <= 3000 * 50 * 4


@pytest.mark.parametrize("name", CAREFUL)
def test_nystrom_uses_the_rule_and_is_reproducible(name):
    X = clustered(120, np.random.default_rng(1)).astype(np.float32)
    phi = Nystrom(Gaussian(2.0), n_components=60, landmarks=orbit.build("landmarks", name), random_state=3)
    Psi = phi.fit_transform(X)
    np.testing.assert_array_equal(Psi, pickle.loads(pickle.dumps(phi)).fit_transform(X))
    assert np.abs(Psi @ Psi.T - Gaussian(2.0).gram(X)).mean() < 0.01


@pytest.mark.parametrize("name", CAREFUL)
@pytest.mark.parametrize("kernel", [Polynomial(1, coef0=0.0), Gaussian(1e4), Gaussian(1e-4)], ids=str)
def test_every_rule_finds_landmarks_for_extreme_kernels(name, kernel):
    """Rank five, nearly rank one, and the identity matrix."""
    X = clustered(500, np.random.default_rng(0))
    X[::2] = 0  # in a kernel of inner products, points of norm zero
    Z = select(name, X, kernel, 30, 0)
    assert Z.shape == (30, 5)
    assert np.all(np.isfinite(Z))


@pytest.mark.parametrize("name", ["leverage", "rpcholesky"])
def test_a_zero_kernel_gives_uniform_landmarks(name):
    X = np.zeros((20, 3))
    assert select(name, X, Polynomial(coef0=0.0), 5, 0).shape == (5, 3)
