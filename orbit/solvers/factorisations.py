"""Factorisations of (s_k A + lambda I) z_k = r_k for many lambda: eigenvalues, tridiagonal form, Cholesky."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
import torch
from scipy.linalg import lapack

from orbit.core.linalg import eigh
from orbit.core.threads import threads_for

# Up to this size a reduction to tridiagonal form takes seconds and gives exact degrees of freedom for every lambda;
# above it, the ten or so Cholesky factorisations of a search are faster.
LARGE = 3000
# From this size on a reduction to tridiagonal form is clearly faster than an eigendecomposition.
TRIDIAGONAL_FROM = 64
# Size up to which an eigendecomposition is feasible: some gigabytes and minutes.
MAX_EIGEN = 12_000
# Distinct scales up to which a factorisation for each costs less than one eigendecomposition.
_MAX_SCALES = 3
# Multiples of float64 rounding below which lambda is resolved by eigenvalues only.
_ABOVE_ROUNDING = 10
# Random signs for the trace: its relative error is about sqrt(2 / (probes x size)), 0.6 % at 3,000.
_PROBES = 16
# Columns of a Cholesky factor that are computed at once.
PANEL = 512
# Reflections that LAPACK applies at once.
_REFLECTIONS = 64

_EPS = np.finfo(np.float64).eps


def is_large(size: float) -> bool:
    """Whether Cholesky factorisations for some values of lambda are cheaper than one reduction for all."""
    return size > LARGE


def smallest_resolved(A: np.ndarray, scales: np.ndarray) -> float:
    """The smallest lambda that float64 resolves: below it, small eigenvalues of s A + lambda I are rounding errors."""
    return _ABOVE_ROUNDING * _EPS * float(np.trace(A) * scales.max())


class Factorisation(ABC):
    """Solutions of (s_k A + lambda I) z_k = r_k, for A symmetric and positive semi-definite, in a basis Q.

    Parameters
    ----------
    A : float64 array, shape (m, m), which may be overwritten
    right : float64 array, shape (m, k)
    scales : array s >= 0, shape (k,)

    Attributes
    ----------
    right : Q^T r, shape (m, k)
    searches : bool
        Whether every lambda takes a factorisation, so that a path is searched from coarse to fine.
    """

    searches: ClassVar[bool] = False
    right: np.ndarray
    scales: np.ndarray

    @abstractmethod
    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """Q^T z, shape (m, k), and the degrees of freedom tr s_k A (s_k A + lambda I)^-1, shape (k,)."""

    @abstractmethod
    def expand(self, z: np.ndarray) -> np.ndarray:
        """Q z for columns in the basis Q, shape (m, k)."""

    def _by_scale(self) -> list[tuple[float, np.ndarray]]:
        """Each distinct scale with the indices of its columns."""
        return [(float(scale), self.scales == scale) for scale in np.unique(self.scales)]


def factorise(
    A: np.ndarray, right: np.ndarray, scales: np.ndarray, path: np.ndarray, eigen: bool = False
) -> Factorisation:
    """The cheapest factorisation that resolves all of an ascending path; ``eigen`` requests eigenvalues.

    Parameters
    ----------
    A, right, scales : as for :class:`Factorisation`
    path : array of lambda, shape (l,)
    """
    few = len(np.unique(scales)) <= _MAX_SCALES
    resolved = path[0] > smallest_resolved(A, scales) or len(A) > MAX_EIGEN
    if eigen or not (few and resolved):
        return Eigen(A, right, scales)
    if len(path) == 1:
        return Cholesky(A, right, scales, probes=0)
    if is_large(len(A)):
        return Cholesky(A, right, scales)
    return Tridiagonal(A, right, scales) if len(A) >= TRIDIAGONAL_FROM else Eigen(A, right, scales)


class Eigen(Factorisation):
    """One symmetric eigendecomposition A = V diag(e) V^T serves every lambda and every scale.

    Attributes
    ----------
    values : e >= 0, ascending, shape (m,)
    vectors : V, shape (m, m)
    """

    def __init__(self, A: np.ndarray, right: np.ndarray, scales: np.ndarray) -> None:
        values, self.vectors = eigh(A)
        self.values, self.scales = np.maximum(values, 0.0), scales
        self.right = self.vectors.T @ right

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        scaled = self.values[:, None] * self.scales
        largest = scaled.max()
        shifted = scaled + regularization
        if regularization < _ABOVE_ROUNDING * _EPS * largest:
            # directions of rounding error, which a small lambda would amplify
            shifted[scaled <= len(scaled) * _EPS * largest] = np.inf
        return self.right / shifted, (scaled / shifted).sum(0)

    def expand(self, z: np.ndarray) -> np.ndarray:
        return self.vectors @ z

    def log_determinant(self, regularization: float) -> float:
        """log det (A + lambda I)."""
        return float(np.log(self.values + regularization).sum())

    def inverse_form(self, columns: np.ndarray, regularization: float) -> np.ndarray:
        """c^T (A + lambda I)^-1 c for every column c, shape (m, n) to (n,)."""
        return (1 / (self.values + regularization)) @ np.square(self.vectors.T @ columns)


class Tridiagonal(Factorisation):
    """A reduction to tridiagonal form A = Q T Q^T, a third of an eigendecomposition, for few distinct scales.

    Each lambda then costs the factorisation of a tridiagonal matrix for each scale. The
    trace of the inverse comes from the pivots of eliminations from both ends: its i-th
    diagonal entry is 1 / (d+_i + d-_i - t_ii).
    """

    def __init__(self, A: np.ndarray, right: np.ndarray, scales: np.ndarray) -> None:
        self.scales = scales
        lwork = int(lapack.dsytrd_lwork(len(A), lower=1)[0])
        with threads_for(len(A) ** 3):
            reduced, self.diagonal, self.beside, self._tau, _ = lapack.dsytrd(A, lower=1, lwork=lwork)
        self._reflectors = np.asfortranarray(reduced[1:, :-1])
        self.right = self._turn(right, "T")
        self._solved: dict[float, tuple[np.ndarray, np.ndarray]] = {}

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        if regularization not in self._solved:
            self._solved[regularization] = self._solve(regularization)
        return self._solved[regularization]

    def expand(self, z: np.ndarray) -> np.ndarray:
        return self._turn(z, "N")

    def _solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        z, freedom = np.empty_like(self.right), np.empty(self.right.shape[1])
        for scale, same_scale in self._by_scale():
            diagonal, beside = scale * self.diagonal + regularization, scale * self.beside
            down, multipliers, _ = lapack.dpttrf(diagonal, beside)
            up, _, _ = lapack.dpttrf(diagonal[::-1], beside[::-1])
            z[:, same_scale], _ = lapack.dpttrs(down, multipliers, self.right[:, same_scale])
            freedom[same_scale] = len(diagonal) - regularization * (1 / (down + up[::-1] - diagonal)).sum()
        return z, freedom

    def _turn(self, columns: np.ndarray, transposed: Literal["T", "N"]) -> np.ndarray:
        """Q^T or Q times columns; Q does not change the first coordinate."""
        turned = np.array(columns)
        lwork = max(1, columns.shape[1] * _REFLECTIONS)
        turned[1:], _, _ = lapack.dormqr("L", transposed, self._reflectors, self._tau, columns[1:], lwork)
        return turned


class Cholesky(Factorisation):
    """A Cholesky factorisation for each lambda; a large one in place: one triangle keeps A, the other holds the factor.

    Degrees of freedom are Hutchinson's estimate (1989) from the same random signs for
    every lambda; NaN with ``probes=0``.
    """

    searches = True

    def __init__(self, A: np.ndarray, right: np.ndarray, scales: np.ndarray, probes: int = _PROBES) -> None:
        self.scales, self.right = scales, right
        self.diagonal = A.diagonal().copy()
        self.A = np.ascontiguousarray(A)
        self._factor = self.A if len(A) > PANEL else np.empty_like(self.A)
        self._shift = np.nan
        self._signs = np.random.default_rng(0).integers(0, 2, (len(A), probes)) * 2.0 - 1.0
        self._solved: dict[float, tuple[np.ndarray, np.ndarray]] = {}

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        if regularization not in self._solved:
            with threads_for(len(self.A) ** 3):
                self._solved[regularization] = self._solve(regularization)
        return self._solved[regularization]

    def expand(self, z: np.ndarray) -> np.ndarray:
        return z

    def log_determinant(self, regularization: float) -> float:
        """log det (A + lambda I)."""
        self._factorise(regularization)
        return 2 * float(np.log(self._factor.diagonal()).sum())

    def inverse_form(self, columns: np.ndarray, regularization: float) -> np.ndarray:
        """c^T (A + lambda I)^-1 c for every column c, shape (m, n) to (n,)."""
        self._factorise(regularization)
        solved, _ = lapack.dtrtrs(self._factor.T, columns, lower=0, trans=1)
        return np.square(solved).sum(0)

    def _solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        z, freedom = self.right / regularization, np.zeros(self.right.shape[1])
        for scale, same_scale in self._by_scale():
            if scale == 0:
                continue
            shift = regularization / scale
            self._factorise(shift)
            right = np.concatenate([self.right[:, same_scale], self._signs], axis=1)
            solved, _ = lapack.dpotrs(self._factor.T, right, lower=0)
            n_columns = np.count_nonzero(same_scale)
            z[:, same_scale] = solved[:, :n_columns] / scale
            probes = self._signs.shape[1]
            trace = (self._signs * solved[:, n_columns:]).sum() / probes if probes else np.nan
            freedom[same_scale] = len(self.A) - shift * trace
        return z, freedom

    def _factorise(self, shift: float) -> None:
        if shift == self._shift:
            return
        self._shift = shift
        if self._factor is self.A:
            failed = self._factorise_panels(shift)
        else:
            np.copyto(self._factor, self.A)
            np.fill_diagonal(self._factor, self.diagonal + shift)
            _, failed = lapack.dpotrf(self._factor.T, lower=0, clean=0, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError(
                f"the second moments plus {shift:g} are not positive definite in floating point: "
                "raise the smallest regularization"
            )

    def _factorise_panels(self, shift: float) -> int:
        """Compute the factor in the lower triangle, a panel at a time from A in the upper one; 0 if it exists.

        Nearly all of the work is in matrix products, which stay fast on shared cores;
        LAPACK's own routine waits at a barrier for every panel.
        """
        A = torch.from_numpy(self.A)
        for start in range(0, len(A), PANEL):
            columns = slice(start, min(start + PANEL, len(A)))
            panel = A[columns, start:].T.clone(memory_format=torch.contiguous_format)
            block, below = panel[: columns.stop - start], panel[columns.stop - start :]
            block.diagonal().copy_(torch.from_numpy(self.diagonal[columns] + shift))
            panel.addmm_(A[start:, :start], A[columns, :start].T, alpha=-1)
            factor, info = torch.linalg.cholesky_ex(block)
            if info.item() != 0:
                return int(info.item())
            A[columns.stop :, columns] = torch.linalg.solve_triangular(factor.T, below, upper=True, left=False)
            A[columns, columns] = A[columns, columns].triu(1).add_(factor)
        return 0
