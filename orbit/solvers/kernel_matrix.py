"""Least squares on a large kernel matrix in float32, factorised where it is: 4 n^2 bytes in all.

With M = K + n lambda W^-1 for weights W, the coefficients of the columns of K and the intercept are

    alpha = M^-1 (Y - 1 b),    b = 1^T M^-1 Y / 1^T M^-1 1,

so that K needs no centring. With C = M^-1 - M^-1 1 1^T M^-1 / 1^T M^-1 1, the residuals are n lambda W^-1 C Y, and the
residual of a point that is left out is alpha_i / C_ii (Cawley and Talbot, "Fast exact leave-one-out cross-validation of
sparse least-squares support vector machines", 2004).
"""

from typing import Any

import numpy as np
import torch

from orbit.core.device_matrix import DeviceMatrix, as_tensor, contiguous, zeros
from orbit.core.errors import InputError
from orbit.core.memory import process_bytes, size_text
from orbit.core.threads import in_threads
from orbit.solvers.band import Band
from orbit.solvers.base import PANEL, smallest_resolved
from orbit.solvers.conjugate_gradients import conjugate_gradients
from orbit.solvers.factorisations import Cholesky
from orbit.solvers.least_squares import LeastSquares
from orbit.solvers.moments import EPS, FLOAT32_ERROR, Centering
from orbit.solvers.structure import Operator

# Products with K that a refinement may take, and the largest relative error of a solution that it may leave. A factor
# in float32 leaves about 1e-3 of an error at lambda = 1e-6, and more at a smaller one.
_MAX_REFINEMENTS, _LARGEST_ERROR = 30, 1e-6
# The smallest lambda, as a share of the mean diagonal, that float32 does not limit. Below it, leave-one-out errors of
# 8,280 values of a smooth function rise in float32 where they fall in float64.
_SMALLEST_EXACT = 5e-7
# The smallest residual at which it ends, as a share of the right-hand side.
_SMALLEST_RESIDUAL = 1e-12

# Rows and columns of a tile that is multiplied in float64; sums that are added in a fixed order.
_TILE_ROWS, _TILE_COLUMNS, _SUMS = 256, 2048, 8
# Rows and columns of the blocks along the diagonal that factorisations overwrite on both sides of it.
_BLOCK = 4 * PANEL
# Rows and columns of a tile on a device, which no cache has to hold.
_DEVICE_TILE = _BLOCK, 2**14


class KernelMatrix(LeastSquares):
    """The problem in the rows for a kernel matrix in float32; W are coefficients of its columns.

    One lambda takes a Cholesky factorisation in float32, n^3 / 3 operations, which is the preconditioner of conjugate
    gradients with products in float64: the solution is as precise as that of a factorisation in float64. A path takes
    a reduction to block-tridiagonal form in float32 before, 4/3 n^3 operations for values, degrees of freedom and
    leverages of all lambda. Each is computed in one triangle of K, which is restored from the other one.

    Parameters
    ----------
    operator : Operator
        Independent outputs.
    K : float32 array or matrix on a device, shape (n, n)
        Overwritten by :meth:`factorise` until :meth:`release`, and during :meth:`solve`; a copy is if it cannot be
        written to, and for a path with weights.
    Y : float64 array, shape (n, p)
    weights : array with a mean of one, shape (n,), or None
    centering : see :data:`~orbit.solvers.moments.Centering`

    Attributes
    ----------
    error : float
        After :meth:`solve`, the relative error of the solution for K as given: the norm of one more correction as a
        share of the solution's.
    """

    gains_by_float64 = False  # K is rounded

    def __init__(
        self, operator: Operator, K: Any, Y: np.ndarray, weights: np.ndarray | None, centering: Centering
    ) -> None:
        self.operator, self.n, self.fit_intercept = operator, len(K), centering == "both"
        w = np.ones(self.n) if weights is None else weights
        self._root = np.sqrt(w)[:, None]
        self._K = contiguous(K if isinstance(K, DeviceMatrix) or K.flags.writeable else K.copy())
        self.x_offset = np.zeros(self.n)
        self.y_offset = w @ Y / self.n if centering != "none" else np.zeros(Y.shape[1])
        targets = operator.row_columns(Y - self.y_offset)
        self._columns = np.column_stack([targets, np.ones(self.n)]) if self.fit_intercept else targets
        self._scales = np.full(self._columns.shape[1], 1 / self.n)
        self.size, self.hidden = self.n, EPS * (w @ np.square(targets)) / self.n
        self.scale = float(w @ self._K.diagonal()) / self.n
        self.smallest_resolved = smallest_resolved(self._K, self._scales)
        self.rounding = FLOAT32_ERROR
        self._along: list[Any] = []
        self._is_kept_below = False

    def factorise(self, path: np.ndarray, eigen: bool = False, float32: bool = False) -> None:
        self.path = path
        if len(path) == 1:  # solve makes the factor of a single value
            return
        if not float32:
            self._check_room(float(path[0]))
        K, root = self._K, self._root.astype(self._K.dtype)
        if (root != 1).any():
            K = K * root
            K *= root.T
        elif float32:
            self._keep(below=True)
        self.factorisation = Band(K, self._columns * self._root, self._scales, path, float32)

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients W, shape (n, p), and intercept b, shape (p,): predictions are ``K W + b``.

        Raises
        ------
        InputError
            If K + n lambda is not positive definite but for rounding, or needs a factor in float64 that does not fit
            in memory.
        """
        if "factorisation" in vars(self):  # of a path that is being chosen from
            z = self.factorisation.expand(self.factorisation.solve(regularization)[0]) * self._root / self.n
        else:
            z = self._solution(regularization)
        dual, shift = self._without_intercept(z, self._columns)
        return self._coefficients(dual), self.y_offset + self.operator.rows_to_outputs(shift)[0]

    def errors_and_freedom(self, regularization: float, n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        z, freedom = self.factorisation.solve(regularization)
        errors = np.maximum(self._errors(z, regularization), self.hidden)
        if self.fit_intercept:
            freedom = (freedom + regularization * np.square(z[:, -1]).sum() / self._of_ones(z))[:-1]
        return errors, freedom + self.excess(n or self.n) * self.rounding * self.scale / regularization

    def resolves(self, regularization: float) -> bool:
        return regularization >= _SMALLEST_EXACT * self.scale and super().resolves(regularization)

    def left_out(self, rows, X, Y, weights):
        of_rows = zeros((self.n, len(rows)), self._K)
        of_rows[rows, np.arange(len(rows))] = 1.0
        in_basis = self.factorisation.to_basis(of_rows)
        form = self._inverse_form(in_basis)

        def at(regularization: float) -> tuple[np.ndarray, np.ndarray]:
            z = self.factorisation.solve(regularization)[0]
            dual = in_basis.T @ self._without_intercept(z, self.factorisation.right)[0]
            left = form(regularization)
            if self.fit_intercept:
                left = left - np.square(in_basis.T @ z[:, -1]) / self._of_ones(z)
            return regularization * self.operator.rows_to_outputs(dual), regularization * left

        return at

    def release(self) -> None:
        """Restore K, and drop what was computed in its place."""
        K, blocks, self._along = self._K, self._along, []
        vars(self).pop("factorisation", None)

        def restore(i: int) -> None:
            rows, after = slice(i * _BLOCK, (i + 1) * _BLOCK), slice((i + 1) * _BLOCK, None)
            K[rows, rows] = blocks[i]
            if self._is_kept_below:
                K[rows, after] = K[after, rows].T
            else:
                K[after, rows] = K[rows, after].T

        in_threads(restore, range(len(blocks)))

    def _keep(self, below: bool) -> None:
        """Before one triangle is overwritten, keep what else is: the blocks along the diagonal."""
        starts = range(0, self.n, _BLOCK)
        self._along = [self._K[start : start + _BLOCK, start : start + _BLOCK].copy() for start in starts]
        self._is_kept_below = below

    def _solution(self, regularization: float) -> np.ndarray:
        """(K + n lambda W^-1)^-1 times the right-hand sides, shape (n, columns), by a factor in float32 or float64."""
        found = self._refined(regularization, np.float32)
        if found is None:
            self._check_room(regularization)
            found = self._refined(regularization, np.float64)
        if found is None:
            raise _too_small(regularization, "for which kernel values in float32 are too coarse")
        return found

    def _check_room(self, regularization: float) -> None:
        """Raise ``InputError`` if a factor in float64, beside K, does not fit in memory."""
        needed = (self._K.dtype.itemsize + 8) * self.n**2
        if needed > (limit := process_bytes() if isinstance(self._K, np.ndarray) else self._K.device_bytes()):
            needs = f"whose factor in float64 takes {size_text(needed)} of memory with the kernel matrix"
            raise _too_small(regularization, f"{needs}, this process can have {size_text(limit)}")

    def _refined(self, regularization: float, dtype: type) -> np.ndarray | None:
        """The solution by conjugate gradients that a factor preconditions; None if it is too coarse."""
        shifts = self.n * regularization / np.square(self._root)

        def product(columns: np.ndarray, _: np.ndarray | None = None) -> np.ndarray:
            return _upper_product(self._K, self._along, columns) + shifts * columns

        goal = max(_SMALLEST_RESIDUAL, EPS * self.scale / regularization)
        self._keep(below=False)
        try:
            preconditioner = _Factor(self._K.astype(dtype, copy=False), shifts[:, 0])
            found, _, _ = conjugate_gradients(
                product, self._columns, np.zeros(1), preconditioner, goal, _MAX_REFINEMENTS
            )
            z = found[0]
            missing = preconditioner.apply((self._columns - product(z))[None])[0]
        except np.linalg.LinAlgError:
            return None
        finally:
            self.release()
        sizes = np.linalg.norm(z, axis=0)
        self.error = float((np.linalg.norm(missing, axis=0) / np.where(sizes > 0, sizes, 1.0)).max())
        return z if self.error <= _LARGEST_ERROR else None

    def _without_intercept(self, z: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solutions for targets less their intercepts, shape (n, p), and the intercepts, shape (1, p)."""
        if not self.fit_intercept:
            return z, np.zeros((1, z.shape[1]))
        shift = (right[:, -1:].T @ z[:, :-1]) / (right[:, -1] @ z[:, -1])
        return z[:, :-1] - z[:, -1:] * shift, shift

    def _of_ones(self, z: np.ndarray) -> float:
        """1^T z for the solution z of the column of ones."""
        return float(self.factorisation.right[:, -1] @ z[:, -1])

    def _form(self, in_basis: Any, regularization: float) -> np.ndarray:
        return self.n * self.factorisation.inverse_form(in_basis, self.n * regularization)

    def _coefficients(self, z: np.ndarray) -> np.ndarray:
        return self.operator.rows_to_outputs(z)

    def _errors(self, z: np.ndarray, regularization: float) -> np.ndarray:
        dual = self._without_intercept(z, self.factorisation.right)[0]
        return np.square(regularization * dual).sum(0) / self.n


class _Factor:
    """A Cholesky factor of K + diag(shifts), in the precision of K, as a preconditioner."""

    def __init__(self, K: Any, shifts: np.ndarray) -> None:
        self._factor, self._shifts = Cholesky(K, np.empty((len(K), 0)), np.ones(0)), shifts

    def apply(self, R: np.ndarray, shifts: np.ndarray | None = None) -> np.ndarray:
        return np.stack([self._factor.solve_columns(columns, self._shifts).astype(np.float64) for columns in R])


def _too_small(regularization: float, why: str) -> InputError:
    return InputError(
        f"learner.regularization: expected a value that a factor in float32 resolves, found {regularization:.3g}, "
        f"{why}: give a larger one, or set engine.dtype=float64"
    )


def _upper_product(K: Any, along: list[Any], columns: np.ndarray) -> np.ndarray:
    """K times columns, shape (n, k), in float64, from the upper triangle of K and the blocks along its diagonal."""
    values = as_tensor(K)
    Z = as_tensor(contiguous(columns.T)).to(values.device)  # rows: products of a tile with few of them are faster
    sums = torch.zeros(_SUMS, *Z.shape, dtype=torch.float64, device=Z.device)
    tile_rows, tile_columns = (_TILE_ROWS, _TILE_COLUMNS) if isinstance(K, np.ndarray) else _DEVICE_TILE

    def add(which: int) -> None:
        total = sums[which]
        for i in range(which, len(along), _SUMS):
            rows = slice(i * _BLOCK, i * _BLOCK + len(along[i]))
            total[:, rows].addmm_(Z[:, rows], as_tensor(along[i]).double())
            for first in range(rows.start, rows.stop, tile_rows):
                part = slice(first, min(first + tile_rows, rows.stop))
                for start in range(rows.stop, len(K), tile_columns):
                    after = slice(start, min(start + tile_columns, len(K)))
                    tile = values[part, after].double()
                    total[:, part].addmm_(Z[:, after], tile.T)
                    total[:, after].addmm_(Z[:, part], tile)

    in_threads(add, range(_SUMS))
    return sums.sum(0).T.cpu().numpy()
