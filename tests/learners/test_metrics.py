"""Metrics against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from runners.metrics import evaluate, kernel_errors


def test_accuracy_is_the_share_of_correct_predictions():
    assert evaluate("classification", np.array(["a", "b", "b", "a"]), np.array(["a", "b", "a", "a"])) == {
        "accuracy": 0.75
    }


@pytest.mark.parametrize("shape", [(20,), (20, 3)])
def test_regression(rng, shape):
    y = rng.standard_normal(shape)
    predicted = y + 0.1 * rng.standard_normal(shape)
    found = evaluate("regression", y, predicted)
    columns = np.square(y - predicted).reshape(20, -1).mean(0)
    assert found["rmse"] == pytest.approx(np.sqrt(columns).mean())
    assert found["mae"] == pytest.approx(np.abs(y - predicted).mean())
    assert found["r2"] == pytest.approx(np.mean(1 - columns / y.reshape(20, -1).var(0)))
    assert all(type(value) is float for value in found.values())


def test_kernel_errors(rng):
    A = rng.standard_normal((6, 6))
    truth = A @ A.T
    estimate = truth + 0.1 * (A + A.T)
    found = kernel_errors(truth, estimate)
    assert found["rel_fro_error"] == pytest.approx(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))
    singular = [np.linalg.svd(M, compute_uv=False).max() for M in (estimate - truth, truth)]
    assert found["rel_spectral_error"] == pytest.approx(singular[0] / singular[1])
    assert found["max_error"] == pytest.approx(np.abs(estimate - truth).max())
    assert found["mean_error"] == pytest.approx(np.abs(estimate - truth).mean())
    assert found["rms_error"] == pytest.approx(np.sqrt(np.mean((estimate - truth) ** 2)))
    off = ~np.eye(6, dtype=bool)
    assert found["correlation"] == pytest.approx(np.corrcoef(truth[off], estimate[off])[0, 1])


def test_kernel_errors_of_the_truth_are_zero(rng):
    A = rng.standard_normal((6, 6))
    found = kernel_errors(A @ A.T, A @ A.T)
    assert found.pop("correlation") == pytest.approx(1)
    assert set(found.values()) == {0.0}
