"""Factorisations of (s_k A + lambda I) z_k = r_k for many lambda: eigenvalues, tridiagonal and block-tridiagonal form,
Cholesky."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import torch
from scipy.linalg import lapack

from orbit.core.device_matrix import DeviceMatrix, as_tensor, contiguous, like
from orbit.core.linalg import eigh, solve_lower
from orbit.core.threads import in_threads, threads_for
from orbit.solvers.reflections import reduce_by_blocks

# Above this size products of float32 rows are taken in float32.
LARGE = 3000
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
# Multiple of float64 rounding below which only eigenvalues resolve lambda.
_ABOVE_ROUNDING = 10
# Columns that are factorised or updated at once: about the fastest number from 128 to 512, for sizes of 1,000 to
# 4,000.
PANEL = 192
# Panels that a reduction in float32 updates at once: it reads fewer bytes for each operation.
_PANELS_FLOAT32 = 4
# Rows of the blocks of a block-tridiagonal matrix, up to LARGE and above, divisors of PANEL: wider ones take less time
# to reduce to, and more for each lambda and each leverage.
BLOCK, WIDE_BLOCK = 32, 64
# Values of lambda whose block-tridiagonal systems a thread solves at once, times the rows of a block.
_TOGETHER = 320
# Reflections that LAPACK applies at once.
_REFLECTIONS = 64

_EPS = np.finfo(np.float64).eps


def is_large(size: float) -> bool:
    """Whether a system is so large that products of float32 rows are worth taking in float32."""
    return size > LARGE


def smallest_resolved(A: Any, scales: np.ndarray) -> float:
    """The smallest lambda that float64 resolves: below it, small eigenvalues of s A + lambda I are rounding errors."""
    return _ABOVE_ROUNDING * _EPS * float(A.trace() * scales.max())


class Factorisation(ABC):
    """Solutions of (s_k A + lambda I) z_k = r_k, for A symmetric and positive semi-definite, in a basis Q.

    Parameters
    ----------
    A : float64 array or matrix on a device, shape (m, m), which may be overwritten
    right : float64 array, shape (m, k)
    scales : array s >= 0, shape (k,)

    Attributes
    ----------
    right : Q^T r, shape (m, k)
    """

    right: np.ndarray
    scales: np.ndarray

    @abstractmethod
    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """Q^T z, shape (m, k), and the degrees of freedom tr s_k A (s_k A + lambda I)^-1, shape (k,).

        Raises
        ------
        numpy.linalg.LinAlgError
            If rounding has made s_k A + lambda I indefinite.
        """

    @abstractmethod
    def expand(self, z: np.ndarray) -> np.ndarray:
        """Q z for columns in the basis Q, shape (m, k)."""

    @abstractmethod
    def to_basis(self, columns: Any) -> Any:
        """Q^T c for columns c, shape (m, k): where they are, as an array or on a device."""

    @abstractmethod
    def inverse_form(self, in_basis: Any, regularization: float) -> np.ndarray:
        """c^T (A + lambda I)^-1 c, shape (k,), for columns in the basis Q, Q^T c, shape (m, k).

        Raises
        ------
        numpy.linalg.LinAlgError
            If rounding has made A + lambda I indefinite.
        """

    @abstractmethod
    def half_form(self, in_basis: Any, regularization: float) -> Any:
        """H with H^T H = C^T (A + lambda I)^-1 C for columns C in the basis Q, Q^T C, shape (m, k)."""

    @abstractmethod
    def log_determinant(self, regularization: float) -> float:
        """log det (A + lambda I)."""

    def _by_scale(self) -> list[tuple[float, np.ndarray]]:
        """Each distinct scale with the indices of its columns."""
        return [(float(scale), self.scales == scale) for scale in np.unique(self.scales)]


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
        if regularization < _ABOVE_ROUNDING * _EPS * largest:
            # directions of rounding error, which a small lambda would amplify
            shifted[scaled <= len(scaled) * _EPS * largest] = np.inf
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
            raise _indefinite(regularization)
        return down, multipliers

    def _solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        z, freedom = np.empty_like(self.right), np.empty(self.right.shape[1])
        for scale, same_scale in self._by_scale():
            diagonal, beside = scale * self.diagonal + regularization, scale * self.beside
            down, multipliers, failed = lapack.dpttrf(diagonal, beside)
            up, _, failed_up = lapack.dpttrf(diagonal[::-1], beside[::-1])
            if failed or failed_up:
                raise _indefinite(regularization)
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


class Band(Factorisation):
    """A reduction to a block-tridiagonal matrix, A = Q B Q^T, in place if it is in float64.

    It is the first of the two stages of Bischof, Lang and Sun, "A framework for symmetric
    band reduction", 2000: 4/3 m^3 additions and multiplications in matrix products. A
    reduction to tridiagonal form needs as many, half of them in products with vectors, an
    eigendecomposition 9 m^3. Each lambda then costs some 12 m b^2 for blocks of b rows: a
    Cholesky factorisation of B + lambda I by blocks, and the diagonal of its inverse.

    In float32 the reduction takes half to two thirds of the time. It is that of a matrix
    near A: on digits of MNIST, solutions for lambda from 1e-8 of the trace on have relative
    residuals of at most 2.5e-6. All that follows the reduction is in float64.

    Parameters
    ----------
    path : array of lambda that are solved together, or None; others are solved when asked for
    float32 : whether to reduce in float32
    """

    def __init__(
        self,
        A: Any,
        right: np.ndarray,
        scales: np.ndarray,
        path: np.ndarray | None = None,
        float32: bool = False,
    ) -> None:
        self.scales = scales
        self._A = as_tensor(contiguous(A.astype(np.float32 if float32 else np.float64, copy=False)))
        self._size = b = WIDE_BLOCK if is_large(len(A)) else BLOCK
        self._blocks = [slice(start, min(start + b, len(A))) for start in range(0, len(A), b)]
        self._identity = torch.eye(b, dtype=torch.float64, device=self._A.device)
        panel = PANEL * _PANELS_FLOAT32 if float32 else PANEL
        with threads_for(len(A) ** 3):
            self._diagonal, self._beside, self._triangles = reduce_by_blocks(self._A, self._blocks, b, panel)
            self.right = self.to_basis(right)
        self._solved: dict[float, tuple[np.ndarray, np.ndarray]] = {}
        if path is not None:
            together = max(1, _TOGETHER // b)
            in_threads(self._solve, np.split(path, range(together, len(path), together)))

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        if regularization not in self._solved:
            self._solve(np.array([regularization]))
        z, freedom = self._solved[regularization]
        if np.isnan(freedom).any():
            raise _indefinite(regularization)
        return z, freedom

    def expand(self, z: np.ndarray) -> np.ndarray:
        return self._turn(z, transposed=False)

    def to_basis(self, columns: Any) -> Any:
        return self._turn(columns, transposed=True)

    def inverse_form(self, in_basis: Any, regularization: float) -> np.ndarray:
        form = self._zeros(in_basis.shape[1])
        for _, y in self._eliminated(in_basis, regularization):
            form += y.square().sum(0)
        return form.cpu().numpy()

    def log_determinant(self, regularization: float) -> float:
        nothing, padding = np.empty((len(self.right), 0)), len(self._blocks) * self._size - len(self.right)
        factors = (C.diagonal().log().sum() for C, _ in self._eliminated(nothing, regularization))
        return 2 * float(sum(factors)) - padding * np.log(regularization)

    def half_form(self, in_basis: Any, regularization: float) -> Any:
        return like(torch.cat([y for _, y in self._eliminated(in_basis, regularization)]), in_basis)

    def _eliminated(self, in_basis: Any, regularization: float) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The blocks C_i of the diagonal of the factor of B + lambda I, and those of its solution y with columns."""
        b, k = self._size, in_basis.shape[1]
        rows, shift = self._by_block(in_basis), regularization * self._identity
        matrix, y = self._diagonal[0] + shift, rows[0]
        for i, beside in enumerate(self._beside, start=1):
            C, info = torch.linalg.cholesky_ex(matrix)
            if info:
                raise _indefinite(regularization)
            E, y = torch.linalg.solve_triangular(C, torch.cat([beside, y], dim=1), upper=False).split([b, k], dim=1)
            yield C, y
            if i < len(rows):
                matrix, y = self._diagonal[i] + shift - E.T @ E, rows[i] - E.T @ y

    def _zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self._A.device)

    def _by_block(self, in_basis: Any) -> torch.Tensor:
        """Columns (m, k) as blocks of b rows (blocks, b, k), with zeros behind the last."""
        rows = as_tensor(contiguous(in_basis)).to(self._A.device)
        if padding := len(self._blocks) * self._size - len(rows):
            rows = torch.cat([rows, self._zeros(padding, rows.shape[1])])
        return rows.view(len(self._blocks), self._size, rows.shape[1])

    def _turn(self, columns: Any, transposed: bool) -> Any:
        """Q^T or Q times columns; Q does not change the first block of coordinates."""
        turned = as_tensor(columns.copy(order="K")).to(self._A.device)
        steps = list(zip(self._blocks, self._triangles, strict=False))
        for block, T in steps if transposed else reversed(steps):
            V, part = self._A[block, block.stop :].double(), turned[block.stop :]
            part.addmm_(V.T, (T.T if transposed else T).double() @ (V @ part), alpha=-1)
        return like(turned, columns)

    def _solve(self, values: np.ndarray) -> None:
        z = np.repeat(self.right[None], len(values), axis=0) / values[:, None, None]
        freedom = np.zeros((len(values), len(self.scales)))
        for scale, same_scale in self._by_scale():
            if scale > 0:
                solved, inverse_trace = self._solve_shifted(values / scale, self.right[:, same_scale])
                z[:, :, same_scale] = solved / scale
                freedom[:, same_scale] = (len(self.right) - values / scale * inverse_trace)[:, None]
        self._solved.update((float(value), (z[i], freedom[i])) for i, value in enumerate(values))

    def _solve_shifted(self, shifts: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(B + shift I)^-1 right, shape (l, m, k), and its trace, shape (l,), NaN where B + shift I is indefinite.

        With B + shift I = C C^T, whose blocks are C_i and, below them, E_i^T: z_i = C_i^-T (y_i - E_i z_i+1), and the
        blocks of the inverse are S_i = C_i^-T (I + E_i S_i+1 E_i^T) C_i^-1.
        """
        n, b, k = len(shifts), self._size, right.shape[1]
        padding = len(self._blocks) * b - len(right)  # zeros of B, whose inverse is 1 / shift
        rows = self._by_block(right)
        identity, shift = self._identity, as_tensor(shifts).to(self._A.device)[:, None, None]
        factors, definite = [], shift[:, 0, 0] > 0
        matrix, y = self._diagonal[0] + shift * identity, rows[0].expand(n, b, k)
        for i, beside in enumerate(self._beside):
            C, info = torch.linalg.cholesky_ex(matrix)
            definite &= info == 0
            joined = torch.cat([beside.expand(n, b, b), identity.expand(n, b, b), y], dim=2)
            E, inverse, y = torch.linalg.solve_triangular(C, joined, upper=False).split([b, b, k], dim=2)
            factors.append((E, inverse, y))
            if i + 1 < len(rows):
                matrix = torch.baddbmm(self._diagonal[i + 1] + shift * identity, E.mT, E, alpha=-1)
                y = torch.baddbmm(rows[i + 1].expand(n, b, k), E.mT, y, alpha=-1)
        z, trace = self._zeros(n, len(rows), b, k), self._zeros(n)
        S, z_below = torch.zeros_like(matrix), self._zeros(n, b, k)
        while factors:
            E, inverse, y = factors.pop()
            G = inverse.mT @ E
            S = torch.baddbmm(inverse.mT @ inverse, G @ S, G.mT)
            z_below = torch.baddbmm(inverse.mT @ y, G, z_below, alpha=-1)
            z[:, len(factors)] = z_below
            trace += S.diagonal(dim1=1, dim2=2).sum(1)
        trace = torch.where(definite, trace, torch.nan) - padding / shift[:, 0, 0]
        return z.reshape(n, -1, k)[:, : len(right)].cpu().numpy(), trace.cpu().numpy()


def _indefinite(shift: float) -> np.linalg.LinAlgError:
    return np.linalg.LinAlgError(
        f"the second moments plus {shift:g} are not positive definite in floating point: "
        "raise the smallest regularization"
    )


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
            raise _indefinite(float(np.min(shift)))

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
