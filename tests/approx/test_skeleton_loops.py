"""The compiled loop of skeleton features: against the plain formula in float64, and against torch."""

import itertools

import numpy as np
import pytest

from orbit import Orbit, Rotation, SkeletonKernel
from orbit.approx import RandomSkeleton, skeleton, skeleton_loops


@pytest.mark.parametrize("units", [1, 127, 300])
@pytest.mark.parametrize("with_sines", [True, False])
@pytest.mark.parametrize("size_rows", [1, 5])
@pytest.mark.parametrize("is_zero", [True, False])
def test_products_are_plain_sums_of_angles_then_waves(rng, units, with_sines, size_rows, is_zero):
    n, d = 5, 40
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 7, units))])  # some features have no factor
    rows, values = rng.integers(0, d, starts[-1]), rng.integers(-3, 4, starts[-1]).astype(np.float32)
    table, sizes = rng.uniform(-3, 3, (d, n)).astype(np.float32), rng.random((size_rows, units), dtype=np.float32)
    phases = rng.random(units, dtype=np.float32) if with_sines else np.empty(0, np.float32)
    total = np.zeros((n, 2 * units + 3), np.float32) if is_zero else rng.random((n, 2 * units + 3), dtype=np.float32)
    expected, before = total.astype(np.float64), total.copy()
    sums = [(values[a:b, None] * table[rows[a:b]].astype(np.float64)).sum(0) for a, b in itertools.pairwise(starts)]
    angles = np.array(sums).T + (phases if with_sines else 0)
    expected[:, 2 : 2 + units] += sizes * np.cos(angles)
    if with_sines:
        expected[:, 2 + units : 2 + 2 * units] += sizes * np.sin(angles)
    at = 2 + units if with_sines else -1
    skeleton_loops.add_products(table, starts, rows, values, phases, sizes, total, 2, at, is_zero)
    np.testing.assert_allclose(total, expected, atol=2e-5)
    outside = [0, 1, 2 + 2 * units] if with_sines else [0, 1, *range(2 + units, 2 * units + 3)]
    np.testing.assert_array_equal(total[:, outside], before[:, outside])


@pytest.mark.parametrize("variant", ["pairs", "phase"])
@pytest.mark.parametrize("base", ["circle", "gaussian", "binary"])
def test_torch_gives_the_same_features(rng, monkeypatch, variant, base):
    X = rng.choice([-1.0, 1.0], (30, 6, 6)) if base == "binary" else rng.random((30, 6, 6))
    kernel = SkeletonKernel(
        base=base, block=1 if base == "gaussian" else None, layers=[{"kind": "conv", "size": 3}, {"kind": "full"}]
    )
    orb = Orbit(Rotation(), size=4)  # turns of a quarter
    fitted = RandomSkeleton(kernel, orb, n_components=200, variant=variant, random_state=0).fit(X)
    compiled = fitted.transform(X.astype(np.float32))
    monkeypatch.setattr(skeleton, "loops", lambda *args: None)
    assert compiled.dtype == np.float32
    np.testing.assert_allclose(fitted.transform(X.astype(np.float32)), compiled, atol=2e-5)
    np.testing.assert_allclose(fitted.transform(X), compiled, atol=2e-5)
