"""Columns in which all points of a tile are zero are left out of products, and features are those with them."""

import numpy as np
import pytest
import torch
from live_bytes import LiveBytes

from orbit import Gaussian, Laplacian, Matern, NoisySort, Nystrom, Orbit, Permutation, RandomFourier, RationalQuadratic
from orbit.engine import Engine, direct as direct_module
from orbit.engine.embedding import Embedding
from orbit.engine.nonzero_columns import NonzeroColumns

KERNELS = [Gaussian(3.0), RationalQuadratic(3.0), Matern(3.0, nu=0.5), Matern(3.0, nu=2.5), Laplacian(20.0)]


def molecules(rng, n: int, smallest: int = 2, largest: int = 7) -> np.ndarray:
    """Symmetric matrices of ``smallest`` to ``largest`` rows and columns, the others zero."""
    X = rng.normal(1.0, 0.3, (n, largest, largest))
    X = X + X.transpose(0, 2, 1)
    for matrix, size in zip(X, rng.integers(smallest, largest + 1, n), strict=True):
        matrix[size:], matrix[:, size:] = 0, 0
    return X


def maps(**parts):
    orb = Orbit(Permutation(mode="rows_columns"), NoisySort(), size=9, rule="monte_carlo")
    yield from (Nystrom(kernel, orb, n_components=25, **parts) for kernel in KERNELS)
    for variant in ("pairs", "offset"):
        yield RandomFourier(Gaussian(3.0), orb, n_components=40, variant=variant, **parts)


@pytest.fixture
def narrowed(monkeypatch) -> list[tuple[int, int]]:
    """The number of columns of the points that were narrowed, and of those that were left."""
    found, narrow = list[tuple[int, int]](), NonzeroColumns.narrowed

    def noted(self, points):
        embedding, left = narrow(self, points)
        found.append((points.shape[1], left.shape[1]))
        return embedding, left

    monkeypatch.setattr(NonzeroColumns, "narrowed", noted)
    return found


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_features_are_those_of_whole_points(rng, monkeypatch, narrowed, dtype, tolerance):
    X = molecules(rng, 1200).astype(dtype)
    for feature_map in maps(engine=Engine(memory=0.02, workers=2), random_state=0):
        narrowed.clear()
        psi = feature_map.fit(X).transform(X)
        assert any(left < columns for columns, left in narrowed), "columns are left out of some tiles"
        with monkeypatch.context() as patch:
            patch.setattr(direct_module, "by_nonzero_columns", lambda X, rows, n_elements: None)
            narrowed.clear()
            expected = feature_map.transform(X)
            assert not narrowed
        np.testing.assert_allclose(psi @ psi.T, expected @ expected.T, atol=tolerance)
        if dtype == np.float64:
            np.testing.assert_allclose(psi, expected, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.label())
def test_values_of_restricted_points_are_the_plain_formula(rng, kernel):
    A, B = (molecules(rng, n).reshape(n, -1) for n in (30, 20))
    A[:, 14:] = 0
    B[:5] = A[:5]  # close pairs, whose distances are computed from differences
    columns = torch.from_numpy(np.flatnonzero((A != 0).any(0)))
    kernel = kernel.fit(B)
    restricted = kernel.against(torch.from_numpy(B)).restricted(columns)
    for part in (slice(0, 20), slice(3, 11)):
        out = torch.empty(30, part.stop - part.start, dtype=torch.float64)
        values = restricted(torch.from_numpy(A)[:, columns], part, out)
        np.testing.assert_allclose(values.numpy(), kernel.gram(A, B[part]), atol=1e-13)


def test_columns_grow_with_the_elements_until_none_is_left_out():
    taken: list[list[int]] = []

    class Noted(Embedding):
        def add(self, *arguments):
            raise AssertionError

        def restricted(self, columns):
            taken.append(columns.tolist())
            return Noted()

    whole = Noted()
    support, points = NonzeroColumns(whole), torch.zeros(2, 10)
    for column, width in ((0, 1), (3, 2), (0, 2)):
        points[:] = 0
        points[1, column] = 1
        embedding, left = support.narrowed(points)
        assert embedding is not whole
        assert left.shape == (2, width)
        assert left.sum() == 1
    points[:, :9] = 1
    for _ in range(2):
        embedding, left = support.narrowed(points)
        assert embedding is whole
        assert left is points
        points = torch.zeros(2, 10)
    assert taken == [[0], [0, 3]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_points_of_zeros_are_points(rng, narrowed, dtype):
    X = molecules(rng, 1500).astype(dtype)
    X[:400] = 0
    for feature_map in maps(engine=Engine(memory=0.02, workers=2), random_state=0):
        psi = feature_map.fit(X[300:]).transform(X)
        np.testing.assert_allclose(psi[:400], np.tile(psi[0], (400, 1)), atol=2e-3 if dtype == np.float32 else 1e-9)
        np.testing.assert_allclose(psi[0], feature_map.transform(X[:1])[0], atol=2e-3 if dtype == np.float32 else 1e-9)
    assert (49, 1) in narrowed


def test_points_are_taken_whole_where_that_is_as_fast(rng, narrowed):
    X, sorted_with_noise = molecules(rng, 1200), NoisySort()
    for points, size, q in (
        (rng.random((1200, 7, 7)), 9, sorted_with_noise),  # dense
        (X, 6, sorted_with_noise),  # few elements
        (X[:100], 9, sorted_with_noise),  # few points
        (molecules(rng, 1200, smallest=6), 64, None),  # orders that spread few zeros over all columns
    ):
        orb = Orbit(Permutation(mode="rows_columns"), q, size=size, rule="monte_carlo")
        RandomFourier(Gaussian(3.0), orb, 20, random_state=0, engine=Engine(path="direct")).fit_transform(points)
    assert not narrowed


@pytest.mark.parametrize("n_components", [800, 4000])
def test_memory_is_within_the_budget(rng, narrowed, n_components):
    X, budget = molecules(rng, 1200).astype(np.float32), 2**23
    orb = Orbit(Permutation(mode="rows_columns"), NoisySort(), size=9, rule="monte_carlo")
    engine = Engine(budget / 2**30, workers=1)
    fitted = RandomFourier(Gaussian(3.0), orb, n_components, random_state=0, engine=engine).fit(X[:100])
    fitted.transform(X[:10])
    with LiveBytes() as memory:
        psi = fitted.transform(X)
    assert bool(narrowed) == (n_components == 800), "copies of many templates have no room"
    assert memory.most - psi.nbytes < 1.25 * budget
