"""Kernels: the contract for each, and the lengthscale heuristic."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel

from orbit.approx import RandomFourier
from orbit.core.errors import InputError, ParameterError
from orbit.groups import Rotation
from orbit.kernels import Gaussian, Kernel
from orbit.kernels.base import median_distance
from orbit.testing import KernelContract, oracles


class TestGaussian(KernelContract):
    component = Gaussian
    params = {"lengthscale": 1.7}

    def evaluate(self, x, z):
        return oracles.gaussian(x, z, 1.7)


def test_gaussian_is_scikit_learns(rng):
    X, Z = rng.standard_normal((6, 4)), rng.standard_normal((5, 4))
    np.testing.assert_allclose(Gaussian(0.8).gram(X, Z), rbf_kernel(X, Z, gamma=1 / (2 * 0.8**2)), rtol=1e-12)
    np.testing.assert_allclose(Gaussian(0.8).gram(X, Z), RBF(0.8)(X, Z), rtol=1e-12)


def test_gaussian_never_exceeds_one(rng):
    """|a|^2 + |b|^2 - 2 a b rounds below zero for equal points."""
    X = (rng.standard_normal((50, 30)) * 30).astype(np.float32)
    K = Gaussian(0.5).gram(np.concatenate([X, X]))
    assert K.max() <= 1
    np.testing.assert_allclose(np.diag(K), 1, atol=1e-9)


def test_gaussian_is_invariant_under_unitary_actions_only():
    assert Gaussian().is_invariant_under(Rotation("polar"), (3, 7))
    assert not Gaussian().is_invariant_under(Rotation("polar"), (3, 8))
    assert not Gaussian().is_invariant_under(Rotation(), (7, 7))


# ---- lengthscale -----------------------------------------------------------------------------------------------------


def test_median_distance_is_over_different_pairs():
    assert median_distance(np.array([[0.0], [1.0], [3.0], [10.0]])) == pytest.approx(np.median([1, 3, 10, 2, 9, 7]))


def test_median_distance_flattens_images(rng):
    X = rng.random((9, 3, 4))
    assert median_distance(X) == median_distance(X.reshape(9, 12))


def test_median_distance_of_a_large_sample_is_near_and_seeded(rng):
    X = rng.standard_normal((5000, 3))
    few, same, other = (median_distance(X, seed) for seed in (0, 0, 1))
    assert few == same != other
    exact = np.median(np.linalg.norm(X[rng.integers(0, 5000, 10**5)] - X[rng.integers(0, 5000, 10**5)], axis=1))
    assert few == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("X", [np.ones((5, 2)), np.ones((1, 2))], ids=["equal points", "one point"])
def test_median_distance_of_nothing_to_compare_is_one(X):
    assert median_distance(X) == 1.0


def test_median_lengthscale_is_settled_at_fit(rng):
    X = rng.standard_normal((12, 3))
    kernel = Gaussian("median").fit(X)
    assert kernel.lengthscale_ == median_distance(X)
    assert kernel.lengthscale == "median"
    np.testing.assert_allclose(kernel.gram(X), rbf_kernel(X, gamma=1 / (2 * kernel.lengthscale_**2)), rtol=1e-10)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "> 0"),
        (-1.5, "> 0"),
        (float("nan"), "> 0"),
        ("mean", "'median'"),
        (None, "> 0"),
        (True, "> 0"),
        ([1.0], "> 0"),
    ],
    ids=str,
)
def test_impossible_lengthscales_are_refused(value, expected):
    with pytest.raises(ParameterError, match=f"^lengthscale: expected a finite number.*{expected}"):
        Gaussian(value).fit(np.zeros((2, 2)))


# ---- kernels without a spectrum --------------------------------------------------------------------------------------


class Linear(Kernel):
    """Not registered: what a kernel without a spectrum looks like."""

    kind, name = "kernel", "linear"

    def __init__(self) -> None:
        pass

    def against(self, B):
        raise NotImplementedError


def test_kernel_without_spectrum_is_refused_by_random_features_before_the_data_is_seen():
    with pytest.raises(InputError, match="kernel=linear is not shift invariant.*choose approx=nystrom or approx=exact"):
        RandomFourier(Linear()).check()
