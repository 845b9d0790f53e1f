"""Kernels: the contract for each, and the lengthscale heuristic."""

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel

from orbit import Cyclic, Exact, Gaussian, Haar, Matern, Orbit, ParameterError, RationalQuadratic
from orbit.kernels.base import median_distance
from orbit.kernels.radial import ProjectedRadialColumns
from orbit.testing import KernelContract, oracles


class TestGaussian(KernelContract):
    component = Gaussian
    params = {"lengthscale": 1.7}

    def evaluate(self, x, z):
        return oracles.gaussian(x, z, 1.7)


@pytest.mark.parametrize("kernel", [Gaussian(0.5), RationalQuadratic(0.5), Matern(0.5, nu=1.5)], ids=str)
def test_no_value_exceeds_that_of_a_point_with_itself(rng, kernel):
    """Nor in tiles of float32 where no distance is computed from the difference, and in values from projections."""
    X = np.repeat(rng.standard_normal((100, 30)).astype(np.float32) / 4, 2, axis=0)
    A = torch.from_numpy(X)
    columns = kernel.fit(X).against(A)
    assert float(columns(A, slice(None), torch.empty(200, 200)).max()) <= 1
    if isinstance(columns, ProjectedRadialColumns):
        squares = A.square().sum(1)
        assert float(columns.from_projections(A @ A.T, squares, slice(None)).max()) <= 1


@pytest.mark.parametrize(("dtype", "farthest"), [(torch.float32, 7), (torch.float64, 30)])
def test_values_of_far_points_are_rounding_but_no_subnormal_numbers(dtype, farthest):
    """With which processors are many times slower. The exponents of the farthest points are -98 and -1800."""
    A = torch.linspace(-farthest, farthest, 1000, dtype=dtype)[:, None]
    columns = Gaussian(1.0).fit(A.numpy()).against(A)
    values = columns(A, slice(None), A.new_empty(1000, 1000))
    assert torch.finfo(dtype).tiny < float(values.min()) < torch.finfo(dtype).eps ** 4
    from_projections = columns.from_projections(A @ A.T, A.square().sum(1), slice(None))
    assert torch.finfo(dtype).tiny < float(from_projections.min()) < torch.finfo(dtype).eps ** 4


RADIAL = [
    Gaussian(1.0),
    RationalQuadratic(1.0),
    RationalQuadratic(1.0, alpha=50.0),
    Matern(1.0, nu=1.5),
    Matern(1.0, nu=0.5),
]


@pytest.mark.parametrize("kernel", RADIAL, ids=str)
@pytest.mark.parametrize("distance", [7, 30, 1000])
@pytest.mark.parametrize("d", [2, 500])
def test_float32_gram_of_points_many_lengthscales_from_their_mean(rng, kernel, distance, d):
    centres = rng.standard_normal((2, d))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    X = (np.repeat(centres, 20, axis=0) + 0.7 * rng.standard_normal((40, d)) / np.sqrt(d)).astype(np.float32)
    gram = Exact(kernel).fit(X[:2]).gram(X, X)
    assert gram.dtype == np.float32
    assert np.abs(np.diag(gram) - 1).max() < 1e-5
    differences = X[:, None].astype(np.float64) - X[None]
    expected = kernel.gram(differences.reshape(-1, d), np.zeros((1, d))).reshape(40, 40)  # near the origin, in float64
    # float32 holds the distance from the mean to 6e-8 of it, and so the differences
    np.testing.assert_allclose(gram, expected, atol=max(1e-5, 1e-7 * distance))


@pytest.mark.parametrize("kernel", RADIAL[:3], ids=str)
@pytest.mark.parametrize("distance", [5, 30, 1000])
def test_float32_orbit_averages_of_far_points_agree_with_float64(rng, kernel, distance):
    """Fourier transforms of projections lose the digits of close pairs: far from the origin they are not used."""
    X = (distance / 8 * (1 + 0.001 * rng.standard_normal((6, 64)))).astype(np.float32)  # norms near the distance
    orbit_ = Orbit(Cyclic(), Haar(), rule="quadrature")
    single, double = (Exact(kernel, orbit_).fit(P[:2]).gram(P, P) for P in (X, X.astype(np.float64)))
    np.testing.assert_allclose(single, double, atol=2e-5)


def test_a_far_outlier_does_not_reduce_the_accuracy_of_others(rng):
    X = rng.standard_normal((30, 3)).astype(np.float32)
    X[0] = 1e4
    gram = Exact(Gaussian(1.0)).fit(X).gram(X)
    expected = rbf_kernel(X.astype(np.float64), gamma=0.5)
    np.testing.assert_allclose(gram, expected, atol=2e-3)  # the mean moves by 330 lengthscales: 3e-5 a coordinate
    np.testing.assert_array_equal(np.diag(gram), 1)


# ---- lengthscale -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4,), (4, 1, 1)], ids=str)
def test_median_distance_is_over_different_pairs(shape):
    X = np.array([0.0, 1.0, 3.0, 10.0]).reshape(*shape, 1)
    assert median_distance(X) == pytest.approx(np.median([1, 3, 10, 2, 9, 7]))
    assert median_distance(X[:1]) == 1.0, "without pairs"


def test_median_distance_of_a_large_sample_is_near_and_seeded(rng):
    X = rng.standard_normal((5000, 3))
    few, same, other = (median_distance(X, seed) for seed in (0, 0, 1))
    assert few == same != other
    exact = np.median(np.linalg.norm(X[rng.integers(0, 5000, 10**5)] - X[rng.integers(0, 5000, 10**5)], axis=1))
    assert few == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("width", [3, 2000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_points_do_not_count_in_the_median_distance(rng, dtype, width):
    equal = (100 * (1 + np.finfo(dtype).eps * rng.integers(-1, 2, (20, width)))).astype(dtype)
    with pytest.warns(UserWarning, match="the median lengthscale is 1, because all points are equal but for rounding"):
        assert median_distance(equal) == 1.0
    others = (100 + rng.standard_normal((3, width))).astype(dtype)
    distances = np.linalg.norm(others.astype(float)[:, None] - np.concatenate([equal, others]), axis=2)
    expected = np.median(np.concatenate([distances[:, :20].ravel(), distances[:, 20:][np.triu_indices(3, 1)]]))
    assert median_distance(np.concatenate([equal, others])) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "> 0"), (float("nan"), "> 0"), ("mean", "'median'"), ([1.0], "> 0")]
)
def test_invalid_lengthscales_are_rejected(value, expected):
    with pytest.raises(ParameterError, match=f"^kernel.lengthscale: expected a finite number.*{expected}"):
        Gaussian(value).fit(np.zeros((2, 2)))
