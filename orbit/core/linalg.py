"""Dense linear algebra shared by feature maps and learners, always in float64."""

import contextlib
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import torch
from scipy.linalg import lapack

from orbit.core.device_matrix import DeviceMatrix, as_array, beside, like
from orbit.core.errors import InputError
from orbit.core.threads import default_threads, in_threads, single_threaded, threads_for

# Up to this many columns, second moments are computed as one product. Rows of a block of other updates, which limits
# temporary arrays.
BLOCK_COLUMNS = 2048

# Side of a tile of second moments, and the least side, for many threads.
_TILE, _SMALL_TILE = 1024, 256

# Size up to which a triangular matrix is inverted by substitution.
_TRIANGLE = 512

# Up to this size a second thread does not speed up an eigendecomposition, and on shared cores makes it up to ten times
# slower.
_SINGLE_THREADED = 512

# Range of the sizes of targets whose squares float32 can hold.
_SMALLEST_TARGET, _LARGEST_TARGET = 1e-30, 1e30

# Numbers whose standard deviation is at most this many roundings of their mean are equal but for rounding: a sum of k
# numbers is off by about sqrt(k) / 3 of them.
_ROUNDINGS = 16

# Bytes of points whose entries are squared at a time.
_NORM_BYTES = 2**26

# Numbers that a thread sums at a time.
_SUMMED = 2**20


def eigh(A: Any) -> tuple[np.ndarray, Any]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix, shape ``(n, n)``, in float64.

    Eigenvectors are where the matrix is, an array or on a device.
    """
    if isinstance(A, DeviceMatrix):
        return _eigh_on_device(A)
    A = np.array(A, dtype=np.float64)
    try:
        with single_threaded() if len(A) <= _SINGLE_THREADED else contextlib.nullcontext():
            values, vectors = torch.linalg.eigh(torch.from_numpy(A))
    except torch.linalg.LinAlgError:  # divide and conquer can fail if many eigenvalues are equal, such as zero
        return scipy.linalg.eigh(A, driver="ev")
    return values.numpy(), vectors.numpy()


def solve_lower(L: Any, columns: Any, transposed: bool = False) -> Any:
    """L^-1 c, or L^-T c, for columns c, shape (m, k), and L the lower triangle of a matrix, in the precision of it."""
    if not isinstance(L, DeviceMatrix):
        return lapack.get_lapack_funcs("trtrs", dtype=L.dtype)(L.T, columns, lower=0, trans=not transposed)[0]
    triangle, right = L.tensor.T if transposed else L.tensor, L.operand(columns).to(L.tensor.dtype)
    return like(torch.linalg.solve_triangular(triangle, right, upper=transposed), columns)


def _eigh_on_device(A: DeviceMatrix) -> tuple[np.ndarray, DeviceMatrix]:
    try:
        values, vectors = torch.linalg.eigh(A.tensor.double())
    except torch.linalg.LinAlgError:  # as above
        found, columns = scipy.linalg.eigh(as_array(A), driver="ev")
        return found, DeviceMatrix(A.operand(columns).double())
    return as_array(values), DeviceMatrix(vectors)


def check_target_size(y: np.ndarray, where: str) -> None:
    """Raise ``InputError`` for targets whose squares overflow or vanish in float32, the precision of many features."""
    largest = float(np.abs(y.astype(np.float64)).max(initial=0))
    if largest and not _SMALLEST_TARGET <= largest <= _LARGEST_TARGET:
        raise InputError(
            f"{where}: the largest target must be between {_SMALLEST_TARGET:g} and {_LARGEST_TARGET:g} in size, "
            f"found {largest:g}; divide the targets by a constant"
        )


def sum_is_finite(values: np.ndarray) -> bool:
    """Whether the sum of an array (n, m) is finite, which it is not for NaN or infinite values, or if it overflows.

    >>> sum_is_finite(np.ones((2, 3))), sum_is_finite(np.array([[1.0, np.nan]]))
    (True, False)
    """
    sums, step = list[float](), max(1, _SUMMED * len(values) // max(1, values.size))

    def add(start: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            sums.append(float(values[start : start + step].sum()))

    in_threads(add, range(0, len(values), step))
    return bool(np.isfinite(sums).all())


def is_symmetric(A: Any) -> bool:
    """Whether a square matrix equals its transpose but for rounding.

    >>> is_symmetric(np.eye(2)), is_symmetric(np.array([[0.0, 1.0], [0.0, 1.0]]))
    (True, False)
    """
    tolerance = 1e3 * float(np.finfo(A.dtype).eps) * max(float(A.max()), -float(A.min()))
    side = BLOCK_COLUMNS if isinstance(A, DeviceMatrix) else _SMALL_TILE
    tiles = [slice(start, start + side) for start in range(0, len(A), side)]
    return all(
        abs(A[rows, columns] - A[columns, rows].T).max() <= tolerance
        for rows, columns in itertools.combinations_with_replacement(tiles, 2)
    )


def is_constant(deviation: Any, mean: Any, dtype: Any) -> Any:
    """Whether numbers of a precision are equal but for rounding, so that their deviation is no scale to divide by.

    The bound of scikit-learn's ``StandardScaler`` without its factor for long sums, see :func:`mean_and_deviation`.

    Parameters
    ----------
    deviation, mean : float, array or tensor
        Standard deviation of the numbers, or their distance from a reference, and their mean, or the reference.
    dtype : NumPy or torch dtype
        Precision of the numbers; integers are taken as float64.

    >>> is_constant(np.array([1e-16, 1e-3]), 1.0, np.float64)
    array([ True, False])
    """
    finfo = torch.finfo(dtype) if isinstance(dtype, torch.dtype) else np.finfo(np.result_type(dtype, np.float32))
    return deviation <= _ROUNDINGS * float(finfo.eps) * abs(mean)


def mean_and_deviation(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the points ``X``, shape (n, *shape), in float64.

    Of equal numbers they are the number and zero: sums are of differences from the first point.

    >>> mean_and_deviation(np.full((9, 1), 0.1))
    (array([0.1]), array([0.]))
    """
    first = X[0].astype(np.float64)
    moved = X - first
    return first + moved.mean(0), moved.std(0)


def standardization(X: np.ndarray, size: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and inverse standard deviation of each column; 0 in place of the inverse for one that is constant.

    ``size`` is that of the terms of which numbers are sums, whose rounding is no deviation; None is the mean.

    >>> standardization(np.array([[1.0, 0.1], [5.0, 0.1]]))
    (array([3. , 0.1]), array([0.5, 0. ]))
    """
    mean, deviation = mean_and_deviation(X)
    constant = is_constant(deviation, mean if size is None else size, X.dtype)
    return mean, np.where(constant, 0.0, 1 / np.where(constant, 1.0, deviation))


def row_norms(X: np.ndarray) -> np.ndarray:
    """The Euclidean norms of the points ``X``, shape (n, *shape), also where squares overflow or underflow.

    Such points are scaled by a power of two before they are squared, which rounds nothing. The norms then are float64,
    and infinite only if they exceed float64 themselves.

    >>> row_norms(np.array([[3e200, 4e200], [3e-200, 4e-200]]))
    array([5.e+200, 5.e-200])
    """
    rows = X.reshape(len(X), math.prod(X.shape[1:]))
    with np.errstate(over="ignore"):
        parts = np.array_split(rows, 1 + rows.nbytes // _NORM_BYTES)  # squares of all rows would be a second copy
        norms = np.concatenate([np.linalg.norm(part, axis=1) for part in parts])
        limits = np.finfo(norms.dtype)
        lost = np.flatnonzero(~((norms > math.sqrt(limits.tiny) / limits.eps) & (norms < np.inf)))
        largest = np.abs(rows[lost]).max(1, initial=0).astype(np.float64)
        lost, largest = lost[largest > 0], largest[largest > 0]
        if not len(lost):
            return norms
        exponents = np.frexp(largest)[1]
        norms = norms.astype(np.float64)
        scaled = np.ldexp(rows[lost].astype(np.float64), -exponents[:, None])
        norms[lost] = np.ldexp(np.linalg.norm(scaled, axis=1), exponents)
    return norms


def polar(X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Norms, shape (..., 1), and directions, shape (..., d), of vectors, shape (..., d), d >= 1.

    Directions keep all digits also where squares of the entries overflow or vanish. A zero vector has direction zero.

    >>> polar(torch.tensor([[3e30, 4e30], [0.0, 0.0]]))[1]
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    largest = X.abs().amax(-1, keepdim=True)
    scaled = X / torch.where(largest > 0, largest, 1)
    norms = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return largest * norms, scaled / torch.where(norms > 0, norms, 1)


def add_second_moments(total: Any, Z: Any) -> None:
    """``total += Z^T Z`` in the upper triangle; products in the dtype of ``Z`` (m, d), sums in that of ``total``.

    Entries below the diagonal are left undefined.
    """
    if len(total) <= BLOCK_COLUMNS or isinstance(Z, DeviceMatrix):
        total += Z.T @ Z  # of which BLAS computes one triangle
        return

    def add(tile: tuple[slice, slice]) -> None:
        total[tile] += Z[:, tile[0]].T @ Z[:, tile[1]]

    threads = default_threads()
    side = max(min(_TILE, len(total) // (2 * threads)), _SMALL_TILE)  # some tiles for each thread
    blocks = [slice(start, start + side) for start in range(0, len(total), side)]
    with threads_for(0):  # a thread adds to the total, for which it waits for memory, while another one multiplies
        in_threads(add, itertools.combinations_with_replacement(blocks, 2), threads)


def add_outers(total: Any, columns: np.ndarray, signs: Sequence[float]) -> None:
    """``total += sum_i signs_i c_i c_i^T`` in the upper triangle, for the columns c_i of an array of shape (d, k)."""
    signed, columns = beside(total, columns * signs), beside(total, columns)
    for start in range(0, len(total), BLOCK_COLUMNS):
        total[start : start + BLOCK_COLUMNS, start:] += signed[start : start + BLOCK_COLUMNS] @ columns[start:].T


def mirror_upper(A: Any) -> None:
    """Copy the upper triangle of a square matrix to its lower one."""
    if isinstance(A, DeviceMatrix):
        above = A.tensor.triu(1).T
        A.tensor.triu_().add_(above)
        return

    def mirror(start: int) -> None:
        rows, below = slice(start, start + _TILE), slice(start + _TILE, None)
        block = A[rows, rows]
        np.copyto(block, block.T.copy(), where=np.tri(len(block), k=-1, dtype=bool))
        A[below, rows] = A[rows, below].T

    in_threads(mirror, range(0, len(A), _TILE))


def inverse_root(K: np.ndarray, precision: float = np.finfo(np.float64).eps) -> np.ndarray:
    """L with ``L^T L = K^+``, by eigenvalues: the normalisation of Nyström features of all landmarks.

    Parameters
    ----------
    K : float64 array, shape (m, m), positive semi-definite
    precision : float
        Relative rounding error of the kernel values to be multiplied by L, up to which
        eigenvalues count as zero. L scales their errors e along an eigenvector to
        e / sqrt(value), where the feature itself is of size sqrt(value / m): for values
        below e sqrt(m) it is only noise. The eigenvalues are accurate to float64.

    Returns
    -------
    float64 array, shape (rank, m)
        Rows in descending order of eigenvalues.

    Raises
    ------
    InputError
        If K has values that are not finite, or no positive eigenvalue.
    """
    _check_finite(K)
    values, vectors = eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = precision * np.sqrt(len(K)) * np.abs(np.diagonal(K)).max()
    rounding = max(noise, len(K) * np.finfo(np.float64).eps * values[0])
    keep = values > rounding
    _check_rank(int(keep.sum()))
    return (vectors[:, keep] / np.sqrt(values[keep])).T


def pivoted_root(K: np.ndarray, precision: float = np.finfo(np.float64).eps) -> tuple[np.ndarray, np.ndarray]:
    """Indices p and L with ``L^T L = K_pp^-1``, where the points p span all points of K up to rounding.

    They are the pivots of a Cholesky factorisation with complete pivoting, K_pp = R^T R, and L = R^-T.

    Parameters
    ----------
    K : float64 array, shape (m, m), positive semi-definite
    precision : float
        Relative rounding error of the kernel values to be multiplied by L. The
        factorisation stops when what is left of every diagonal value is at most t, with

            t = max(precision / 2 * sqrt(m), m * float64 rounding) * max_i K_ii.

        The points left out change kernel values between points of K by at most t. Row j
        of L scales errors e of kernel values to about e / sqrt(pivot), and its feature is
        of size sqrt(pivot): each row kept adds errors of about e to the approximate
        kernel, and all of them e sqrt(rank), if they are independent. At e = precision / 2,
        the error of rounding to nearest, t balances both. The second term bounds the
        rounding errors of the factorisation itself.

    Returns
    -------
    p : int array, shape (rank,)
        In descending order of pivots.
    L : float64 array, shape (rank, rank), lower triangular

    Raises
    ------
    InputError
        If K has values that are not finite, or no positive diagonal value.
    """
    _check_finite(K)
    m = len(K)
    share = max(precision / 2 * np.sqrt(m), m * np.finfo(np.float64).eps)
    with threads_for(m**3):
        # K^T, which equals K, is in LAPACK's order
        factor, pivots, rank, _ = lapack.dpstrf(K.T, tol=share * np.abs(np.diagonal(K)).max())
        _check_rank(rank)
        root = np.empty((rank, rank))
        lower = torch.tril(torch.from_numpy(factor).T[:rank, :rank], out=torch.from_numpy(root))
        _invert_lower(lower)
    return pivots[:rank] - 1, root


def _invert_lower(L: torch.Tensor) -> None:
    """Invert a lower triangular matrix in place, by halves: matrix products, two to three times as fast as LAPACK."""
    if len(L) <= _TRIANGLE:
        L.copy_(torch.linalg.solve_triangular(L, torch.eye(len(L), dtype=L.dtype), upper=False))
        return
    half = len(L) // 2
    above, below, corner = L[:half, :half], L[half:, half:], L[half:, :half]
    _invert_lower(above)
    corner.copy_(torch.linalg.solve_triangular(below, corner @ above, upper=False).neg_())
    _invert_lower(below)


def _check_finite(K: np.ndarray) -> None:
    if not np.isfinite(K).all():
        raise InputError("the kernel matrix has NaN or infinite values: change the kernel's parameters")


def _check_rank(rank: int) -> None:
    if not rank:
        raise InputError(
            "all kernel values of the points are zero: change the kernel's lengthscale, or its other parameters"
        )


def rows_with_covariance(covariance: np.ndarray) -> np.ndarray:
    """Rows, shape (2 p, p), whose covariance is the given matrix, shape (p, p), up to a factor.

    Examples
    --------
    >>> rows = rows_with_covariance(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> (rows.T @ rows / 2).round(6) + 0.0
    array([[2., 1.],
           [1., 2.]])
    """
    values, vectors = eigh(covariance)
    rows = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    return np.concatenate([rows, -rows])
