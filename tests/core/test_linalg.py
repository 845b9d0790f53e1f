"""Dense linear algebra: eigendecompositions, pseudo-inverse roots, checks of sums."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from orbit.core import linalg
from orbit.core.errors import InputError
from orbit.core.linalg import eigh, inverse_root, is_constant, mean_and_deviation, pivoted_root
from orbit.core.threads import threads_for


def gram(rng, n: int, rank: int) -> np.ndarray:
    A = rng.standard_normal((n, rank))
    return A @ A.T


def test_eigh_rebuilds_the_matrix_in_float64(rng):
    A = gram(rng, 9, 4).astype(np.float32)
    values, vectors = eigh(A)
    assert values.dtype == vectors.dtype == np.float64
    assert np.all(np.diff(values) >= 0)
    np.testing.assert_allclose((vectors * values) @ vectors.T, A, atol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(9), atol=1e-12)


def test_eigh_does_not_modify_its_input(rng):
    A = gram(rng, 5, 5)
    before = A.copy()
    A.flags.writeable = False
    eigh(A)
    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("rank", [3, 8])
def test_inverse_root_is_a_root_of_the_pseudo_inverse(rng, rank):
    K = gram(rng, 8, rank)
    L = inverse_root(K)
    assert L.shape == (rank, 8)
    np.testing.assert_allclose(L.T @ L, np.linalg.pinv(K, rcond=1e-10), atol=1e-8)
    np.testing.assert_allclose(L @ K @ L.T, np.eye(rank), atol=1e-8)


def test_rows_are_sorted_by_decreasing_eigenvalue(rng):
    L = inverse_root(gram(rng, 8, 8))
    assert np.all(np.diff(np.linalg.norm(L, axis=1)) > 0)


def test_eigenvalues_up_to_the_rounding_of_the_precision_are_dropped():
    K = np.diag([100.0, 10.0, 1.0])
    assert [len(inverse_root(K, share / np.sqrt(3))) for share in (0.0, 0.005, 0.011, 0.05, 0.2)] == [3, 3, 2, 2, 1]
    assert inverse_root(np.diag([2.0, -1.0, -1e-17])).shape == (1, 3)


def smooth(rng, m: int, lengthscale: float = 2.0) -> np.ndarray:
    """A Gaussian kernel matrix of points in the plane, whose eigenvalues fall below rounding."""
    X = rng.standard_normal((m, 2))
    return np.exp(-np.square(X[:, None] - X).sum(-1) / (2 * lengthscale**2))


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_pivots_span_the_matrix(rng, rank):
    K = gram(rng, 8, rank)
    before = K.copy()
    pivots, L = pivoted_root(K)
    np.testing.assert_array_equal(K, before)
    assert len(set(pivots)) == rank
    assert L.shape == (rank, rank)
    np.testing.assert_array_equal(L, np.tril(L))
    np.testing.assert_allclose(L.T @ L, np.linalg.inv(K[np.ix_(pivots, pivots)]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(K[:, pivots] @ L.T @ L @ K[pivots], K @ np.linalg.pinv(K, rcond=1e-10) @ K, atol=1e-10)


@pytest.mark.parametrize(("precision", "share"), [(1e-3, 0.5e-3 * 12), (1e-7, 0.5e-7 * 12), (0.0, 144 * 2.0**-52)])
def test_pivots_are_those_above_the_threshold(rng, precision, share):
    """A matrix with diagonal values up to 9, of which the pivots leave at most share * 9."""
    K = smooth(rng, 144)
    scale = rng.uniform(1, 3, 144)
    scale[0] = 3
    K *= np.outer(scale, scale)
    pivots, L = pivoted_root(K, precision=precision)
    assert 3 < len(pivots) < 100
    kept, psi = np.diagonal(L) ** -2.0, K[:, pivots] @ L.T
    assert kept.min() > share * 9
    assert np.all(np.diff(kept) <= 1e-12)
    assert np.abs(K - psi @ psi.T).max() <= share * 9 * 1.01


def test_of_equal_points_one_is_a_pivot(rng):
    points = np.arange(40) % 5
    K = smooth(rng, 5, 0.3)
    pivots, L = pivoted_root(K[np.ix_(points, points)])
    assert sorted(points[pivots]) == [0, 1, 2, 3, 4]
    order = points[pivots]
    np.testing.assert_allclose(L.T @ L, np.linalg.inv(K[np.ix_(order, order)]), rtol=1e-9, atol=1e-12)


def test_pivots_of_an_indefinite_matrix_are_positive():
    pivots, L = pivoted_root(np.diag([2.0, -1e-17, 8.0, -1.0]))
    np.testing.assert_array_equal(pivots, [2, 0])
    np.testing.assert_allclose(L, np.diag([8**-0.5, 2**-0.5]))


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.zeros((3, 3)), "change the kernel's lengthscale"),
        (-np.eye(2), "change the kernel's lengthscale"),
        (np.diag([1.0, np.nan]), "NaN or infinite"),
        (np.diag([1.0, np.inf]), "NaN or infinite"),
    ],
    ids=["zero", "negative", "nan", "infinite"],
)
def test_a_matrix_without_pivots_is_rejected(K, message):
    for root in (pivoted_root, inverse_root):
        with pytest.raises(InputError, match=message):
            root(K)


def test_eigenvalues_if_divide_and_conquer_fails(rng, monkeypatch):
    A = rng.standard_normal((6, 3))
    A = A @ A.T  # three zeros
    monkeypatch.setattr(torch.linalg, "eigh", Mock(side_effect=torch.linalg.LinAlgError("failed to converge")))
    values, vectors = eigh(A)
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, A, atol=1e-12)
    assert np.all(np.diff(values) >= 0)


def test_small_problems_use_one_thread_of_every_library():
    def threads() -> set[int]:
        return {
            torch.get_num_threads(),
            *(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"),
        }

    torch.set_num_threads(3)
    try:
        with threads_for(1e15):
            assert torch.get_num_threads() == 3
        with threads_for(1e3):
            assert threads() == {1}
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_value_in_any_block_of_rows_makes_a_sum_infinite(monkeypatch, rows, value):
    monkeypatch.setattr(linalg, "_SUMMED", 6)  # two rows
    values = np.ones((rows, 3), np.float32)
    assert linalg.sum_is_finite(values)
    for row in range(rows):
        wrong = values.copy()
        wrong[row, 1] = value
        assert not linalg.sum_is_finite(wrong)
    assert linalg.sum_is_finite(np.ones((3, 0)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 32, 33, 52])  # one product, tiles, the last of them narrower
@pytest.mark.parametrize("threads", [1, 3])
def test_second_moments_are_added_to_and_made_symmetric(rng, monkeypatch, dtype, d, threads):
    for module in ("linalg", "threads"):
        monkeypatch.setattr(f"orbit.core.{module}.default_threads", lambda: threads)
    for name, size in (("BLOCK_COLUMNS", 32), ("_TILE", 16), ("_SMALL_TILE", 4)):
        monkeypatch.setattr(linalg, name, size)
    parts = [rng.integers(-3, 4, (n, d)).astype(dtype) for n in (5, 2)]  # of which sums are exact
    total = np.zeros((d, d))
    for part in parts:
        linalg.add_second_moments(total, part)
    linalg.mirror_upper(total)
    np.testing.assert_array_equal(total, sum(part.T.astype(np.float64) @ part.astype(np.float64) for part in parts))


@pytest.mark.parametrize("smallest", [1, 3, 512])
@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_triangles_are_inverted_by_halves(rng, monkeypatch, smallest, n):
    monkeypatch.setattr("orbit.core.linalg._TRIANGLE", smallest)
    K = gram(rng, n, 2 * n) + np.eye(n)
    pivots, L = pivoted_root(K)
    np.testing.assert_allclose(L @ K[np.ix_(pivots, pivots)] @ L.T, np.eye(n), atol=1e-12)
    np.testing.assert_array_equal(L, np.tril(L))


def test_libraries_have_their_threads_again_after_limits_that_overlap():
    def of_blas():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(3, user_api="blas"):
        before, first, second = of_blas(), threads_for(0), threads_for(0)
        first.__enter__()
        second.__enter__()
        assert set(of_blas()) == {1}
        first.__exit__(None, None, None)
        assert set(of_blas()) == {1}
        second.__exit__(None, None, None)
        assert of_blas() == before


def test_many_equal_numbers_have_no_deviation(rng):
    X = np.full((100_000, 2), 0.1)
    assert [part.tolist() for part in mean_and_deviation(X)] == [[0.1, 0.1], [0.0, 0.0]]
    X += 1e-16 * rng.integers(-1, 2, X.shape)
    mean, deviation = mean_and_deviation(X)
    assert is_constant(deviation, mean, X.dtype).all()
    X = 1e9 + rng.standard_normal((1000, 3))
    np.testing.assert_allclose(mean_and_deviation(X)[1], (X - 1e9).std(0), rtol=1e-12)
