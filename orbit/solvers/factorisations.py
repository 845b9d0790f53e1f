"""Factorisations of (s_k A + lambda I) z_k = r_k for many lambda: eigenvalues, tridiagonal and block-tridiagonal form,
Cholesky."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from scipy.linalg import lapack

from orbit.core.device_matrix import DeviceMatrix, as_tensor, contiguous
from orbit.core.linalg import eigh, solve_lower
from orbit.core.threads import threads_for
from orbit.solvers.band import Band
from orbit.solvers.base import ABOVE_ROUNDING, PANEL, Factorisation, indefinite, smallest_resolved
from orbit.solvers.moments import EPS

# From this size on a reduction to tridiagonal form is clearly faster than an eigendecomposition.
TRIDIAGONAL_FROM = 64
# Up to this size eigenvalues pay off where the leverages of many rows are computed for a path, which they make
# cheaper.
LEVERAGES_BY_EIGENVALUES = 768
# From about this size on a matrix leaves the caches: a reduction by matrix products is faster than one by vectors.
BAND_FROM = 1800
# Size up to which an eigendecomposition is feasible: some gigabytes and minutes.
MAX_EIGEN = 12_000
# Distinct scales up to which a Cholesky factor for each costs less than a reduction, for one lambda.
_FEW_SCALES = 3
# Rows for each system (a lambda with a scale) from which a block-tridiagonal form costs less than a tridiagonal one,
# and from which that costs less than an eigendecomposition.
_ROWS_BANDED, _ROWS_TRIDIAGONAL = 20, 1
# Reflections that LAPACK applies at once.
_REFLECTIONS = 64


def factorise(
    A: Any,
    right: np.ndarray,
    scales: np.ndarray,
    path: np.ndarray,
    eigen: bool = False,
    float32: bool = False,
) -> Factorisation:
    """The :func:`cheapest` factorisation that resolves all of an ascending path; ``eigen`` requests eigenvalues.

    Parameters
    ----------
    A, right, scales : as for :class:`Factorisation`
    path : array of lambda, shape (l,)
    float32 : whether A was rounded to float32, so that a reduction of large matrices need not be more precise
    """
    resolved = path[0] > smallest_resolved(A, scales) or len(A) > MAX_EIGEN
    kind = Eigen if eigen or not resolved else cheapest(len(A), len(np.unique(scales)), len(path))
    kind = Eigen if kind is Tridiagonal and isinstance(A, DeviceMatrix) else kind  # which is LAPACK's
    return Band(A, right, scales, path, float32) if kind is Band else kind(A, right, scales)


def cheapest(size: int, n_scales: int, n_values: int) -> type[Eigen | Tridiagonal | Band | Cholesky]:
    """The kind that costs least for matrices of ``size`` rows, distinct scales and values of lambda.

    >>> [cheapest(1000, 1, n_values).__name__ for n_values in (1, 20, 2000)]
    ['Cholesky', 'Tridiagonal', 'Eigen']
    """
    if n_values == 1 and n_scales <= _FEW_SCALES:
        return Cholesky
    n_systems = n_scales * n_values
    if size >= max(BAND_FROM, _ROWS_BANDED * n_systems):
        return Band
    return Tridiagonal if size >= max(TRIDIAGONAL_FROM, _ROWS_TRIDIAGONAL * n_systems) else Eigen


class Eigen(Factorisation):
    """One symmetric eigendecomposition A = V diag(e) V^T serves every lambda and every scale.

    Attributes
    ----------
    values : e >= 0, ascending, shape (m,)
    vectors : V, shape (m, m)
    """

    def __init__(self, A: Any, right: np.ndarray, scales: np.ndarray) -> None:
        values, self.vectors = eigh(A)
        self.values, self.scales = np.maximum(values, 0.0), scales
        self.right = self.to_basis(right)

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        scaled = self.values[:, None] * self.scales
        largest = scaled.max()
        shifted = scaled + regularization
        if regularization < ABOVE_ROUNDING * EPS * largest:
            # directions of rounding error, which a small lambda would amplify
            shifted[scaled <= len(scaled) * EPS * largest] = np.inf
        return self.right / shifted, (scaled / shifted).sum(0)

    def expand(self, z: np.ndarray) -> np.ndarray:
        return self.vectors @ z

    def log_determinant(self, regularization: float) -> float:
        return float(np.log(self.values + regularization).sum())

    def to_basis(self, columns: Any) -> Any:
        return self.vectors.T @ columns

    def inverse_form(self, in_basis: Any, regularization: float) -> np.ndarray:
        return (1 / (self.values + regularization)) @ in_basis**2

    def half_form(self, in_basis: np.ndarray, regularization: float) -> np.ndarray:
        return in_basis / np.sqrt(self.values + regularization)[:, None]


class Tridiagonal(Factorisation):
    """A reduction to tridiagonal form A = Q T Q^T, a third of an eigendecomposition.

    Each lambda then costs the factorisation of a tridiagonal matrix for each scale. The
    trace of the inverse comes from the pivots of eliminations from both ends: its i-th
    diagonal entry is 1 / (d+_i + d-_i - t_ii).
    """

    def __init__(self, A: np.ndarray, right: np.ndarray, scales: np.ndarray) -> None:
        self.scales = scales
        lwork = int(lapack.dsytrd_lwork(len(A), lower=1)[0])
        with threads_for(0):  # in the products with vectors a second thread mostly waits
            reduced, self.diagonal, self.beside, self._tau, _ = lapack.dsytrd(A, lower=1, lwork=lwork)
        self._reflectors = np.asfortranarray(reduced[1:, :-1])
        self.right = self.to_basis(right)
        self._solved: dict[float, tuple[np.ndarray, np.ndarray]] = {}

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        if regularization not in self._solved:
            self._solved[regularization] = self._solve(regularization)
        return self._solved[regularization]

    def expand(self, z: np.ndarray) -> np.ndarray:
        return self._turn(z, "N")

    def to_basis(self, columns: np.ndarray) -> np.ndarray:
        return self._turn(columns, "T")

    def inverse_form(self, in_basis: np.ndarray, regularization: float) -> np.ndarray:
        down, multipliers = self._eliminated(regularization)
        return (in_basis * lapack.dpttrs(down, multipliers, in_basis)[0]).sum(0)

    def log_determinant(self, regularization: float) -> float:
        return float(np.log(self._eliminated(regularization)[0]).sum())

    def half_form(self, in_basis: np.ndarray, regularization: float) -> np.ndarray:
        down, multipliers = self._eliminated(regularization)
        band = np.stack([np.ones_like(down), np.append(multipliers, 0.0)])
        return lapack.dtbtrs(band, in_basis, uplo="L", diag="U")[0] / np.sqrt(down)[:, None]

    def _eliminated(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """The pivots and multipliers of T + lambda I."""
        down, multipliers, failed = lapack.dpttrf(self.diagonal + regularization, self.beside)
        if failed:
            raise indefinite(regularization)
        return down, multipliers

    def _solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        z, freedom = np.empty_like(self.right), np.empty(self.right.shape[1])
        for scale, same_scale in self._by_scale():
            diagonal, beside = scale * self.diagonal + regularization, scale * self.beside
            down, multipliers, failed = lapack.dpttrf(diagonal, beside)
            up, _, failed_up = lapack.dpttrf(diagonal[::-1], beside[::-1])
            if failed or failed_up:
                raise indefinite(regularization)
            z[:, same_scale], _ = lapack.dpttrs(down, multipliers, self.right[:, same_scale])
            freedom[same_scale] = len(diagonal) - regularization * (1 / (down + up[::-1] - diagonal)).sum()
        return z, freedom

    def _turn(self, columns: np.ndarray, transposed: Literal["T", "N"]) -> np.ndarray:
        """Q^T or Q times columns; Q does not change the first coordinate."""
        turned = np.array(columns)
        lwork = max(1, columns.shape[1] * _REFLECTIONS)
        with threads_for(0):  # a second thread would wait for torch's, which do not rest at once
            turned[1:], _, _ = lapack.dormqr("L", transposed, self._reflectors, self._tau, columns[1:], lwork)
        return turned


class Cholesky(Factorisation):
    """A Cholesky factorisation for each lambda; a large one in place: one triangle keeps A, the other holds the factor.

    Degrees of freedom, which would take three times as long, are NaN. A may be in float32; so are its factor and
    solutions then.
    """

    def __init__(self, A: Any, right: np.ndarray, scales: np.ndarray) -> None:
        self.scales, self.right = scales, right
        self.diagonal = A.diagonal().copy()
        self.A = contiguous(A)
        in_place = len(A) > PANEL or isinstance(A, DeviceMatrix)
        self._factor = self.A if in_place else np.empty_like(self.A)
        self._shift: float | np.ndarray = np.nan
        self._solved: dict[float, np.ndarray] = {}

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        if regularization not in self._solved:
            with threads_for(len(self.A) ** 3):
                self._solved[regularization] = self._solve(regularization)
        return self._solved[regularization], np.full(self.right.shape[1], np.nan)

    def expand(self, z: np.ndarray) -> np.ndarray:
        return z

    def log_determinant(self, regularization: float) -> float:
        self._factorise(regularization)
        return 2 * float(np.log(self._factor.diagonal()).sum())

    def to_basis(self, columns: Any) -> Any:
        return columns

    def inverse_form(self, in_basis: Any, regularization: float) -> np.ndarray:
        return (self.half_form(in_basis, regularization) ** 2).sum(0)

    def half_form(self, in_basis: Any, regularization: float) -> Any:
        self._factorise(regularization)
        return solve_lower(self._factor, in_basis)

    def solve_columns(self, columns: np.ndarray, shift: float | np.ndarray) -> np.ndarray:
        """(A + diag(shift))^-1 c for columns c, shape (m, k), in the precision of A; shift is one, or of shape (m,)."""
        self._factorise(shift)
        return solve_lower(self._factor, solve_lower(self._factor, columns), transposed=True)

    def _solve(self, regularization: float) -> np.ndarray:
        z = self.right / regularization
        for scale, same_scale in self._by_scale():
            if scale > 0:
                z[:, same_scale] = self.solve_columns(self.right[:, same_scale], regularization / scale) / scale
        return z

    def _factorise(self, shift: float | np.ndarray) -> None:
        if np.array_equal(shift, self._shift):
            return
        self._shift = shift
        if self._factor is self.A:
            failed = self._factorise_panels(shift)
        else:
            np.copyto(self._factor, self.A)
            np.fill_diagonal(self._factor, self.diagonal + shift)
            potrf = lapack.get_lapack_funcs("potrf", dtype=self.A.dtype)
            _, failed = potrf(self._factor.T, lower=0, clean=0, overwrite_a=1)
        if failed:
            raise indefinite(float(np.min(shift)))

    def _factorise_panels(self, shift: float | np.ndarray) -> int:
        """Compute the factor in the lower triangle, a panel at a time from A in the upper one; 0 if it exists.

        Nearly all of the work is in matrix products, which stay fast on shared cores;
        LAPACK's own routine waits at a barrier for every panel.
        """
        A = as_tensor(self.A)
        diagonal = as_tensor(self.diagonal + shift).to(A.device)
        for start in range(0, len(A), PANEL):
            columns = slice(start, min(start + PANEL, len(A)))
            panel = A[columns, start:].T.clone(memory_format=torch.contiguous_format)
            block, below = panel[: columns.stop - start], panel[columns.stop - start :]
            block.diagonal().copy_(diagonal[columns])
            panel.addmm_(A[start:, :start], A[columns, :start].T, alpha=-1)
            factor, info = torch.linalg.cholesky_ex(block)
            if info.item() != 0:
                return int(info.item())
            A[columns.stop :, columns] = torch.linalg.solve_triangular(factor.T, below, upper=True, left=False)
            A[columns, columns] = A[columns, columns].triu(1).add_(factor)
        return 0
