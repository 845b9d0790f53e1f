"""Values of the Laplacian kernel: the compiled loop and torch against plain float64."""

import numpy as np
import pytest
import torch

from orbit.kernels import Laplacian, l1_loops, laplacian


def plain(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.abs(A[:, None].astype(float) - B[None].astype(float)).sum(2)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-6), (np.float64, 1e-13)], ids=["f32", "f64"])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "torch"])
@pytest.mark.parametrize(
    ("n", "m", "d"), [(1, 1, 1), (5, 30, 7), (6, 30, 8), (3, 2100, 21)], ids=["one", "odd", "even", "several blocks"]
)
@pytest.mark.parametrize("columns", [slice(None), slice(3, None), slice(0, 1)], ids=str)
def test_columns_of_part_of_a_wider_matrix(rng, monkeypatch, n, m, d, columns, compiled, dtype, tolerance):
    if not compiled:
        monkeypatch.setattr(laplacian, "loops", lambda *args, **options: None)
    A, B = rng.standard_normal((n, d), dtype), rng.standard_normal((m, d), dtype)
    expected = np.exp(-plain(A, B[columns]) / 9)
    wide = torch.full((n, expected.shape[1] + 2), 7.0, dtype=torch.from_numpy(A).dtype)
    Laplacian(9.0).fit(B).against(torch.from_numpy(B))(torch.from_numpy(A), columns, wide[:, 1:-1])
    np.testing.assert_allclose(wide[:, 1:-1], expected, rtol=tolerance)
    assert (wide[:, [0, -1]] == 7).all()


def test_loops_are_plain_sums_of_differences(rng):
    A, B = rng.standard_normal((3, 18), np.float32), rng.standard_normal((11, 18), np.float32)
    out = np.full((3, 6), np.nan, np.float32)
    l1_loops.l1_distances(A, np.ascontiguousarray(B.T), 4, out)
    np.testing.assert_allclose(out, plain(A, B[4:10]), rtol=1e-6)
