"""Weighted sums of cosines and sines: torch, the loops, and the loops compiled, against plain float64."""

import numpy as np
import pytest
import torch

from orbit.approx import loops, waves


def sums(angles, others, weights) -> tuple[np.ndarray, np.ndarray]:
    damping = weights[:, None, None] * (1 if others is None else np.cos(others.astype(float)))
    return (damping * np.cos(angles.astype(float))).sum(0), (damping * np.sin(angles.astype(float))).sum(0)


def tiles(rng, dtype, spread: float = 4.0):
    angles, others = (spread * rng.standard_normal((2, 5, 3, 17))).astype(dtype)
    return angles, others, rng.random(5).astype(dtype)


@pytest.mark.parametrize("damped", [False, True])
@pytest.mark.parametrize(
    ("dtype", "tolerance", "available"),
    [(np.float64, 1e-13, True), (np.float32, 2e-6, False), (np.float32, 2e-6, True)],
    ids=["torch, f64", "torch, f32", "compiled"],
)
def test_sums_are_added_to_columns_of_a_wider_matrix(rng, monkeypatch, dtype, tolerance, available, damped):
    if not available:
        monkeypatch.setattr(waves, "loops", lambda *args: None)
    angles, others, weights = tiles(rng, dtype)
    expected = sums(angles, others if damped else None, weights)
    total = torch.ones(3, 40, dtype=torch.from_numpy(angles).dtype)
    columns = total[:, 1:18], total[:, 20:37]
    given = [torch.from_numpy(array.copy()) for array in (angles, others, weights)]
    spare = torch.empty_like(given[0])
    if damped:
        waves.add_damped_waves(*given, *columns, spare)
    else:
        waves.add_waves(given[0], given[2], *columns, spare)
    for found, plain in zip(columns, expected, strict=True):
        np.testing.assert_allclose(found - 1, plain, atol=tolerance)
    others_untouched = [i for i in range(40) if not (1 <= i < 18 or 20 <= i < 37)]
    assert torch.all(total[:, others_untouched] == 1)


@pytest.mark.parametrize("spread", [0.1, 3.0, 100.0, 5000.0])
def test_loops_have_float32_accuracy_for_angles_of_any_size(rng, spread):
    angles, others, weights = tiles(rng, np.float32, spread)
    angles[0, 0, :5] = np.float32([0.0, np.pi, -np.pi, np.pi / 2, 2 * np.pi])
    for damping in (None, others):
        found = np.zeros((2, 3, 17), np.float32)
        loops.add_waves(angles, angles[:0] if damping is None else damping, weights, *found)
        expected = sums(angles, damping, weights)
        np.testing.assert_allclose(found, expected, atol=5 * 8e-7)


def test_nan_angles_stay_nan():
    angles = np.full((1, 1, 3), np.nan, np.float32)
    found = np.zeros((2, 1, 3), np.float32)
    loops.add_waves(angles, angles[:0], np.ones(1, np.float32), *found)
    assert np.isnan(found).all()


@pytest.mark.parametrize("angle", [3e7, 1e9, 1e20, 3e38])
def test_waves_of_huge_angles_stay_in_range(rng, angle):
    angles = (angle * (1 - rng.random((1, 2, 9)))).astype(np.float32)
    cosines, sines = np.zeros((2, 2, 9), np.float32)
    loops.add_waves(angles, angles[:0], np.ones(1, np.float32), cosines, sines)
    assert np.abs(cosines).max() <= 1 + 1e-6
    assert np.abs(sines).max() <= 1 + 1e-6
