"""The operations that are estimated for least squares are those of formulas, and those that are counted."""

from __future__ import annotations

import numpy as np
import pytest

import orbit
from orbit.core.linalg import add_second_moments
from orbit.core.threads import single_threaded
from orbit.solvers import estimate
from orbit.solvers.passes import MAX_PASSES, StreamedSystem


class Counting(np.ndarray):
    """An array that counts the multiplications of matrix products in ``total``, of Z^T Z those of one triangle."""

    total = 0.0

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(part) for part in inputs]
        if ufunc is np.matmul:
            same = plain[0].ctypes.data == plain[1].ctypes.data and plain[0].shape == plain[1].shape[::-1]
            Counting.total += plain[0].size * ((plain[1].shape[-1] + 1) / 2 if same else plain[1].shape[-1])
        if (out := kwargs.get("out")) is not None:
            kwargs["out"] = tuple(np.asarray(part) for part in out)
        return getattr(ufunc, method)(*plain, **kwargs)


@pytest.mark.parametrize(("n", "d"), [(7, 5), (3, 2500), (2, 4500)])
def test_multiplications_of_second_moments_are_counted(n, d):
    Counting.total = 0.0
    with single_threaded():
        add_second_moments(np.zeros((d, d)), np.ones((n, d)).view(Counting))
    assert estimate.moments_multiplications(n, d) == Counting.total


def ridge(**parameters):
    return orbit.build("regressor", "ridge", **{"selection": "gcv"} | parameters)


@pytest.mark.parametrize(
    ("n", "d", "values", "expected"),
    [
        (500, 200, None, 500 * 200 * 201 / 2 + 2 * 500 * 200 * 3 + 2 / 3 * 200**3 + 2 * 200**2 * 3),
        (200, 500, None, 500 * 200 * 201 / 2 + 2 * 500 * 200 * 3 + 2 / 3 * 200**3 + 2 * 200**2 * 3),
        (500, 200, 1e-3, 500 * 200 * 201 / 2 + 2 * 500 * 200 * 3 + 1 / 6 * 200**3 + 200**2 * 3),
        (500, 20, None, 500 * 20 * 21 / 2 + 2 * 500 * 20 * 3 + 4.5 * 20**3),
    ],
)
def test_least_squares_in_float64(n, d, values, expected):
    work = ridge(regularization=values).work(n, d, 3, np.dtype(np.float64))
    assert work.double == pytest.approx(expected)
    assert work.single == 0


def test_large_systems_of_float32_features_take_products_and_block_tridiagonal_form_in_float32():
    n, d = 10_000, 4000
    work = ridge().work(n, d, 1, np.dtype(np.float32))
    assert work.single == pytest.approx(n * d * (d + 1) / 2 + 2 * n * d + 2 / 3 * d**3)
    assert work.double == pytest.approx(2 * d**2 + 29 * 6 * d * 64**2)


@pytest.mark.parametrize("name", ["krr", "gp"])
def test_a_given_kernel_matrix_is_factorised_only(name):
    key = "noise" if name == "gp" else "regularization"
    learner = orbit.build("regressor", name, **{key: 1e-3})
    given, made = (learner.work(200, 200, 1, np.dtype(np.float64), gram).double for gram in (True, False))
    assert given == pytest.approx(200**3 / 6 + 200**2)
    assert made == pytest.approx(given + 200 * 200 * 201 / 2 + 2 * 200**2)


@pytest.mark.parametrize(("d", "block"), [(1000, 32), (4000, 64)])
def test_leave_one_out_adds_leverages_of_at_most_1000_rows(d, block):
    n, dtype = 10 * d, np.dtype(np.float64)
    added = ridge(selection="loo").work(n, d, 1, dtype).double - ridge().work(n, d, 1, dtype).double
    assert added == pytest.approx(1000 * d * (d + 29 * 1.5 * block))
    single = {"regularization": 1e-3}
    assert ridge(selection="loo", **single).work(n, d, 1, dtype) == ridge(**single).work(n, d, 1, dtype)


def test_leverages_of_few_columns_are_those_of_eigenvalues():
    d, n, dtype = 200, 2000, np.dtype(np.float64)
    added = ridge(selection="loo").work(n, d, 1, dtype).double - ridge().work(n, d, 1, dtype).double
    factorisations = [estimate.factorisation_work(d, 1, 29, eigen).double for eigen in (True, False)]
    assert added == pytest.approx(1000 * d * (d + 29) + factorisations[0] - factorisations[1])


def test_hold_out_adds_a_fit_to_a_part():
    whole, part = (
        ridge(regularization=values).work(n, 100, 1, np.dtype(np.float64)).double
        for n, values in ((1000, 1e-3), (800, [1e-3, 1e-2]))
    )
    found = ridge(regularization=[1e-3, 1e-2], selection="hold_out").work(1000, 100, 1, np.dtype(np.float64)).double
    assert found == pytest.approx(whole + part)


def test_epochs_multiply_twice_for_every_output_and_rate():
    work = orbit.build("regressor", "adagrad", epochs=3, learning_rate=[0.1, 0.3]).work(50, 8, 2, np.dtype(np.float32))
    assert work.single == 2 * 50 * 8 * 2 * (2 + 2)


def test_learners_whose_work_depends_on_the_data_have_no_estimate():
    assert orbit.build("classifier", "svm").work(10, 3, 2, np.dtype(np.float32)) is None


def test_passes_over_a_stream_are_bounded_and_their_products_counted(rng):
    X, Y = rng.standard_normal((60, 12)), rng.standard_normal((60, 2))
    memory = 40_000.0
    Counting.total = 0.0
    system = StreamedSystem(lambda: iter([(X.copy().view(Counting), Y, np.ones(60))]), memory)
    system.solve(np.array([1e-3, 1e-1]))
    passes, work = estimate.passes_work(60, 12, 2, 2, memory, np.dtype(np.float64))
    assert system.passes <= passes <= 3 + 2 * (MAX_PASSES + 1)
    assert 0 < Counting.total <= work.double
