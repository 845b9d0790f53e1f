"""The operations of least squares, before anything is computed."""

from __future__ import annotations

import numpy as np

from orbit.core.work import Work
from orbit.solvers.factorisations import (
    BLOCK,
    LEVERAGES_BY_EIGENVALUES,
    WIDE_BLOCK,
    Band,
    Cholesky,
    Eigen,
    cheapest,
    is_large,
)
from orbit.solvers.passes import MAX_PASSES, PROBES, sketch_rank, values_side_by_side
from orbit.solvers.selection import SAMPLED_ROWS, in_float32

# Multiplications of a factorisation of an m x m matrix, as multiples of m^3 (Golub and Van Loan, 4.2 and 8.3).
_CHOLESKY, _REDUCTION, _EIGEN = 1 / 6, 2 / 3, 4.5
# Multiplications for each lambda with a block-tridiagonal matrix in blocks of b rows, as multiples of m b^2.
_BLOCKS = 6.0
# Multiplications for each lambda and each row whose leverage is computed, as multiples of m b.
_ROW_BLOCKS = 1.5
# Passes over a stream before the first product of conjugate gradients: means, moments of the targets, the sketch.
_FIRST_PASSES = 3


def moments_multiplications(n: int, d: int) -> float:
    """Multiplications for the upper triangle of second moments of ``n`` rows of ``d`` columns.

    >>> moments_multiplications(10, 3)
    60.0
    """
    return n * d * (d + 1) / 2


def factorisation_work(
    m: int, k: int, n_values: int, eigen: bool = False, n_scales: int = 1, float32: bool = False
) -> Work:
    """The work of solving ``m`` equations with ``k`` right-hand sides for ``n_values`` values of lambda.

    Parameters
    ----------
    eigen : whether eigenvalues are needed; else the cheapest factorisation is taken
    n_scales : distinct factors of the matrix among the right-hand sides
    float32 : whether a large matrix may be reduced in float32
    """
    kind = Eigen if eigen else cheapest(m, n_scales, n_values)
    if kind is Eigen:
        return Work(double=_EIGEN * m**3)
    if kind is Cholesky:
        return Work(double=n_scales * _CHOLESKY * m**3 + float(m) ** 2 * k)
    of_system = _BLOCKS * m * (WIDE_BLOCK if is_large(m) else BLOCK) ** 2 if kind is Band else 0.0
    reduction = Work.of(np.dtype(np.float32 if float32 and kind is Band else np.float64), _REDUCTION * m**3)
    return reduction + Work(double=2.0 * m**2 * k + n_scales * n_values * of_system)


def least_squares_work(
    n: int,
    d: int,
    k: int,
    path: np.ndarray,
    default_path: bool,
    dtype: np.dtype,
    eigen: bool = False,
    n_scales: int = 1,
    left_out: bool = False,
) -> Work:
    """The work of least squares on ``n`` rows of ``d`` features and ``k`` targets, in the smaller of both forms.

    Parameters
    ----------
    path : ascending values of lambda
    default_path : whether they are the default ones, of which those below the precision of products are left out
    dtype : of the features
    eigen, n_scales : as for :func:`factorisation_work`
    left_out : whether leverages are computed for each lambda
    """
    m, rows = min(n, d), min(n, SAMPLED_ROWS)
    by_eigenvalues = left_out and m <= LEVERAGES_BY_EIGENVALUES
    float32 = in_float32(np.dtype(dtype), m, path, default_path) and not eigen
    matrix = moments_multiplications(n, d) if d <= n else moments_multiplications(d, n)
    products = Work.of(np.dtype(np.float32 if float32 else np.float64), matrix + 2.0 * n * d * k)
    leverages = Work()
    if left_out:
        of_value = 1.0 if by_eigenvalues else _ROW_BLOCKS * (WIDE_BLOCK if is_large(m) else BLOCK)
        leverages = Work(double=m * rows * (m + len(path) * of_value))
    return products + factorisation_work(m, k, len(path), eigen or by_eigenvalues, n_scales, float32) + leverages


def passes_work(n: int, d: int, k: int, n_values: int, memory: float, dtype: np.dtype) -> tuple[int, Work]:
    """The largest number of passes over a stream, and their operations without those of the features.

    Conjugate gradients mostly converge in fewer passes.
    """
    rank, together = sketch_rank(d, memory), min(n_values, values_side_by_side(d, k, memory))
    chunks = -(-n_values // together)
    columns = float(_FIRST_PASSES * (k + PROBES) + rank + (MAX_PASSES + 1) * n_values * (k + PROBES))
    return _FIRST_PASSES + chunks * (MAX_PASSES + 1), Work.of(dtype, 2.0 * n * d * columns)
