"""Inner products shared by the fits of a cross-validation, against plain products."""

import numpy as np
import pytest

from orbit.learners import KernelRidgeRegressor, RidgeRegressor
from orbit.solvers import products
from orbit.solvers.moments import CentredRows
from orbit.solvers.products import SharedProducts, sharing_products


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Share products of few rows too."""
    monkeypatch.setattr(products, "_FEWEST_ROWS", 10)


@pytest.mark.parametrize("centering", ["both", "targets", "none"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_are_the_plain_products_of_centred_rows(rng, centering, dtype):
    X = (rng.standard_normal((60, 90)) + 30 * rng.standard_normal(90)).astype(dtype)
    X[7] = X[3]
    w = rng.uniform(0.1, 2, 60)
    shared = SharedProducts(1e9)
    for rows in (slice(0, 40), slice(15, 60), slice(None)):
        weights = w[rows] / w[rows].mean()
        found = CentredRows(X[rows], np.ones((len(weights), 1)), weights, centering)
        K = found.centred_products(shared.of(X[rows], np.dtype(np.float64), shifted=found.is_centred))
        points = X[rows].astype(np.float64)
        if centering == "both":
            points = points - weights @ points / len(points)
        points = points * np.sqrt(weights)[:, None]
        np.testing.assert_allclose(K, points @ points.T, rtol=1e-11, atol=1e-11 * np.square(points).sum(1).max())


def test_each_pair_is_computed_once(rng):
    X, shared = rng.standard_normal((50, 20)), SharedProducts(1e9)
    for kept_out in range(5):
        rows = np.arange(50) % 5 != kept_out
        shared.of(X[rows], X.dtype, shifted=True)
    shared.of(X, X.dtype, shifted=True)
    assert shared.computed == 50 * 51 // 2


def test_other_columns_and_precisions_are_kept_apart(rng):
    shared, X = SharedProducts(1e9), rng.standard_normal((2, 40, 20))
    for _ in range(2):
        for one in X:
            np.testing.assert_allclose(shared.of(one, one.dtype, shifted=False), one @ one.T, atol=1e-12)
    rounded = X[0].astype(np.float32)
    single = shared.of(rounded, rounded.dtype, shifted=False)
    double = shared.of(rounded, np.dtype(np.float64), shifted=False)
    assert shared.computed == 4 * 40 * 41 // 2
    assert 0 < np.abs(single - double).max() < 1e-4


def test_memory_is_bounded(rng):
    of_one = 8 * (40 * 20 + 40**2)
    X, shared = rng.standard_normal((3, 40, 20)), SharedProducts(2 * of_one)
    for one in X:
        shared.of(one, one.dtype, shifted=False)
    computed = shared.computed
    shared.of(X[2], X.dtype, shifted=False)
    shared.of(X[1], X.dtype, shifted=False)
    assert shared.computed == computed
    shared.of(X[0], X.dtype, shifted=False)  # not used for longest, so it went
    assert shared.computed > computed
    assert SharedProducts(of_one - 1).of(X[0], X.dtype, shifted=False) is None


def test_rows_that_do_not_fit_beside_known_ones_are_kept_alone(rng):
    X = rng.standard_normal((60, 20))
    shared = SharedProducts(8 * (40 * 20 + 40**2))
    shared.of(X[:40], X.dtype, shifted=False)
    found = shared.of(X[20:], X.dtype, shifted=False)
    np.testing.assert_allclose(found, X[20:] @ X[20:].T, atol=1e-12)


@pytest.mark.parametrize("learner", [RidgeRegressor, KernelRidgeRegressor])
def test_fits_with_and_without_are_equal(rng, learner):
    X = rng.standard_normal((80, 300)) + 5
    y = np.sin(X[:, :3]).sum(1)
    alone = [learner().fit(X[rows], y[rows]).predict(X) for rows in (slice(0, 60), slice(20, 80))]
    with sharing_products(1e9):
        shared = [learner().fit(X[rows], y[rows]).predict(X) for rows in (slice(0, 60), slice(20, 80))]
        assert products.in_use().computed == 80 * 81 // 2
    assert products.in_use() is None
    np.testing.assert_allclose(shared, alone, rtol=1e-8)
