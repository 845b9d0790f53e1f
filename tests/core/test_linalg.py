"""Dense linear algebra: eigendecompositions, pseudo-inverse roots, checks of sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orbit.core import linalg
from orbit.core.errors import InputError
from orbit.core.linalg import eigh, inverse_root


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
    L = inverse_root(K, 1e-12)
    assert L.shape == (rank, 8)
    np.testing.assert_allclose(L.T @ L, np.linalg.pinv(K, rcond=1e-10), atol=1e-8)
    np.testing.assert_allclose(L @ K @ L.T, np.eye(rank), atol=1e-8)


def test_rows_are_sorted_by_decreasing_eigenvalue(rng):
    L = inverse_root(gram(rng, 8, 8), 0.0)
    assert np.all(np.diff(np.linalg.norm(L, axis=1)) > 0)


def test_tolerance_is_relative_to_the_largest_eigenvalue():
    K = np.diag([100.0, 10.0, 1.0])
    assert [len(inverse_root(K, t)) for t in (0.0, 0.005, 0.01, 0.05, 0.2)] == [3, 3, 2, 2, 1]


def test_negative_eigenvalues_are_dropped():
    assert inverse_root(np.diag([2.0, -1.0, -1e-17]), 0.0).shape == (1, 3)


@pytest.mark.parametrize("K", [np.zeros((3, 3)), -np.eye(2)], ids=["zero", "negative"])
def test_a_matrix_without_positive_eigenvalues_is_rejected(K):
    with pytest.raises(InputError, match="change the kernel's lengthscale"):
        inverse_root(K, 0.0)


def test_eigenvalues_if_divide_and_conquer_fails(rng, monkeypatch):
    def gives_up(A):
        raise torch.linalg.LinAlgError("failed to converge")

    A = rng.standard_normal((6, 3))
    A = A @ A.T  # three zeros
    monkeypatch.setattr(torch.linalg, "eigh", gives_up)
    values, vectors = eigh(A)
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, A, atol=1e-12)
    assert np.all(np.diff(values) >= 0)


def test_small_problems_use_one_thread_of_every_library():
    import torch
    from threadpoolctl import threadpool_info

    from orbit.core.threads import threads_for

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
