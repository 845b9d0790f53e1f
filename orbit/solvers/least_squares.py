"""Regularised least squares for every lambda from one factorisation, of second moments or of a Gram matrix.

All problems minimise (1/n) sum_i w_i |y_i - b - C(theta)^T x_i|^2 + lambda |theta|^2 over
theta and, if it is not fixed, b. C maps parameters to coefficients of scalar features
(:mod:`orbit.solvers.structure`): the identity for independent outputs, and a small matrix
for each feature with operator-valued kernels (Brault et al. 2016, eq. 10; its eq. 11 drops the 1/n). The
outputs of a constant C decouple in its eigenbasis, so that in each case the problem is

    (s_k A + lambda I) z_k = r_k,    for every column k.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from orbit.core.device_matrix import DeviceMatrix, zeros
from orbit.core.errors import InputError
from orbit.core.linalg import add_second_moments, mirror_upper
from orbit.core.threads import in_threads
from orbit.solvers import products
from orbit.solvers.base import ABOVE_ROUNDING, Factorisation, smallest_resolved
from orbit.solvers.factorisations import MAX_EIGEN, Cholesky, factorise
from orbit.solvers.moments import EPS, FLOAT32_ERROR, Centering, CentredRows, System
from orbit.solvers.structure import Blocks, Operator

# Errors of mean squared residuals that are differences of moments, as a multiple of the rounding of these. They are at
# most 20 times it, with 100 to 500 rows and more columns.
_OF_DIFFERENCES = 100
# Rows that a refinement centres at once, few enough that they stay in a cache.
_REFINED_ROWS = 512


class LeastSquares(ABC):
    """A least-squares problem; :meth:`factorise` it before asking for solutions.

    Attributes
    ----------
    n : number of rows
    size : rows of the symmetric matrix
    operator : Operator
    x_offset, y_offset : predictions are ``y_offset + (x - x_offset) W``
    fit_intercept : whether the intercept is a free parameter
    factorisation : Factorisation
    path : the values of lambda that it was factorised for, shape (l,)
    scale : trace of the matrix, the mean square norm of the rows times the largest scale
    rounding : rounding error of the matrix, as a share of ``scale``
    hidden : the mean squared residual of each column that rounding errors may hide, shape (k,)
    smallest_resolved : the smallest lambda that float64 resolves
    error : the relative error of the latest solution, if it was refined, as measured; else None
    gains_by_float64 : whether the problem is more precise with products in float64
    """

    n: int
    size: int
    operator: Operator
    x_offset: np.ndarray
    y_offset: np.ndarray
    fit_intercept: bool
    factorisation: Factorisation
    path = np.empty(0)
    rounding = EPS
    error: float | None = None
    gains_by_float64 = True
    hidden: np.ndarray

    def _set_system(self, A: Any, right: np.ndarray, power: np.ndarray) -> None:
        self._A, self._right, self._power, self.size = A, right, power, len(A)
        self.hidden = EPS * power
        self.scale = float(A.trace() * self.operator.scales.max())
        self.smallest_resolved = smallest_resolved(A, self.operator.scales)

    def factorise(self, path: np.ndarray, eigen: bool = False, float32: bool = False) -> None:
        """Factorise for an ascending path of lambda; ``eigen`` requests eigenvalues, ``float32`` allows rounding."""
        self.path = path
        self.factorisation = factorise(self._A, self._right, self.operator.scales, path, eigen, float32)
        del self._A, self._right

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients W, shape (F, p), and intercept b, shape (p,): predictions are ``X W + b``."""
        W = self._coefficients(self.factorisation.expand(self.factorisation.solve(regularization)[0]))
        return W, self.y_offset - self.x_offset @ W

    def errors_and_freedom(self, regularization: float, n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The mean squared residual and the degrees of freedom of each group of outputs fitted independently.

        Both of shape (p,) for a constant operator, in its eigenbasis, else (1,) with the
        degrees of freedom of one output. A single score for all outputs would hide that a
        few outputs with large eigenvalues are overfitted while the others are hardly fitted.

        Both are as large as they can be within rounding, so that no interpolation is the best by rounding errors.
        ``n`` is the number of different rows; None is all.
        """
        z, freedom = self.factorisation.solve(regularization)
        errors = np.maximum(self._errors(z, regularization), self.hidden)
        freedom = freedom + self.excess(n or self.n) * self.rounding * self.scale / regularization
        return errors, freedom / self.operator.n_coupled + self.fit_intercept

    def release(self) -> None:  # noqa: B027  one of the problems overwrites something
        """End the choice of lambda: restore what :meth:`factorise` has overwritten of the problem's arguments."""

    def resolves(self, regularization: float) -> bool:
        """Whether rounding errors hide neither lambda, nor the rank of the matrix, nor the residuals."""
        if regularization < ABOVE_ROUNDING * self.rounding * self.scale or self.excess(self.n):
            return False
        errors = self._errors(self.factorisation.solve(regularization)[0], regularization)
        return bool((errors >= self.hidden).all())

    def excess(self, n: int) -> int:
        """The eigenvalues of the matrix that are zero but for rounding, with ``n`` different rows."""
        return max(0, self.size - self.operator.n_rows(n))

    @abstractmethod
    def left_out(
        self, rows: np.ndarray, X: Any, Y: np.ndarray, weights: np.ndarray
    ) -> Callable[[float], tuple[np.ndarray, np.ndarray]]:
        """A function of lambda: residuals of some rows, and what their leverages leave of 1, for independent outputs.

        A residual over what the leverage leaves is that of a fit to all other rows.

        Parameters
        ----------
        rows : indices of the rows, shape (r,)
        X, Y, weights : all rows of the problem

        Returns
        -------
        callable
            To residuals times the roots of the weights, shape (r, p), and 1 - leverage, shape (r,).
        """

    def _inverse_form(self, in_basis: Any) -> Callable[[float], np.ndarray]:
        """c^T (A + lambda I)^-1 c of columns in the basis as a function of lambda: at once for all of the path."""
        found = dict[float, np.ndarray]()

        def compute(regularization: float) -> None:
            with contextlib.suppress(np.linalg.LinAlgError):  # which is raised again for the value that is asked for
                found[regularization] = self._form(in_basis, regularization)

        # Cholesky keeps one factor at a time, and is used for a single value only
        in_threads(compute, [float(value) for value in self.path])
        return lambda value: found[value] if value in found else self._form(in_basis, value)

    def _form(self, in_basis: Any, regularization: float) -> np.ndarray:
        return self.factorisation.inverse_form(in_basis, regularization)

    @abstractmethod
    def _coefficients(self, z: np.ndarray) -> np.ndarray:
        """W for solutions z."""

    @abstractmethod
    def _errors(self, z: np.ndarray, regularization: float) -> np.ndarray:
        """The mean squared residual of every column."""


class Primal(LeastSquares):
    """The problem in the parameters: A holds second moments, or P^T P with its blocks G_ij B_i^T B_j.

    Parameters
    ----------
    operator : Operator
    system : System
        Its A may be overwritten.

    Raises
    ------
    InputError
        If there are too many parameters for a dense matrix.
    """

    def __init__(self, operator: Operator, system: System) -> None:
        size = operator.n_parameters(len(system.A))
        if isinstance(operator, Blocks) and size > MAX_EIGEN:
            raise InputError(
                f"{size:,} parameters are too many for the closed form of this kernel, at most {MAX_EIGEN:,}: "
                "choose learner 'cg' or fewer n_components"
            )
        self.operator, self.n, self.fit_intercept = operator, system.n, system.fit_intercept
        self.x_offset, self.y_offset = system.x_offset, system.y_offset
        right = operator.columns(system.cross)
        self._set_system(operator.normal_matrix(system.A), right, operator.powers(system.power))
        self.rounding = system.rounding
        self.hidden = _OF_DIFFERENCES * self.rounding * self._power

    def _coefficients(self, z: np.ndarray) -> np.ndarray:
        return self.operator.from_columns(z)

    def _errors(self, z: np.ndarray, regularization: float) -> np.ndarray:
        return self._power - (z * (self.factorisation.right + regularization * z)).sum(0)

    def left_out(self, rows, X, Y, weights):
        root = np.sqrt(weights[rows])[:, None]
        centred, targets = (X[rows] - self.x_offset) * root, (Y[rows] - self.y_offset) * root
        in_basis = self.factorisation.to_basis(centred.T)
        form, of_intercept = self._inverse_form(in_basis), self.fit_intercept * weights[rows] / self.n

        def at(regularization: float) -> tuple[np.ndarray, np.ndarray]:
            leverage = form(regularization) / self.n + of_intercept
            fitted = self.operator.from_columns(in_basis.T @ self.factorisation.solve(regularization)[0])
            return targets - fitted, 1 - leverage

        return at


class RefinedPrimal(Primal):
    """The problem in the parameters of independent outputs with moments of float32 products, and a refined solution.

    The solution for one lambda takes a step of iterative refinement: a correction by the Cholesky factor from the
    residuals of the rows, which are small, so that products in float32 give the gradient to some 1e-7 of it. On 10,000
    images of MNIST and 2,000 random Fourier features, at lambda = 1e-6, predictions are off by 2.4e-6 before the step
    and 1.7e-7 after it.

    Parameters
    ----------
    operator, system : as for :class:`Primal`
    X, Y : float32 features, shape (n, F), an array or on a device, and float64 targets, shape (n, p)
    weights : array with a mean of one, shape (n,), or None
    """

    def __init__(self, operator: Operator, system: System, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> None:
        super().__init__(operator, system)
        self._rows = X, Y, weights

    def factorise(self, path: np.ndarray, eigen: bool = False, float32: bool = False) -> None:
        kept = self._A, self._right  # reductions are of copies in float32
        super().factorise(path, eigen, float32=True)
        self._A, self._right = kept

    def release(self) -> None:
        if len(self.path) > 1:
            self.factorisation = Cholesky(self._A, self._right, self.operator.scales)
            self.path = self.path[:1]

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        z = self.factorisation.expand(self.factorisation.solve(regularization)[0])
        if isinstance(self.factorisation, Cholesky):
            z = z + self.factorisation.solve_columns(self._gradient(z) - regularization * z, regularization)
        return z, self.y_offset - self.x_offset @ z

    def _gradient(self, z: np.ndarray) -> np.ndarray:
        """X^T (Y - X z) / n of the centred and weighted rows, shape (F, p), by products in float32."""
        (X, Y, weights), total = self._rows, np.zeros(z.shape)
        offset, coefficients = self.x_offset.astype(X.dtype), z.astype(X.dtype)
        for start in range(0, len(X), _REFINED_ROWS):
            rows = slice(start, start + _REFINED_ROWS)
            centred = X[rows] - offset
            residuals = Y[rows] - self.y_offset - centred @ coefficients
            if weights is not None:
                residuals *= weights[rows, None]
            total += centred.T @ residuals.astype(X.dtype)
        return total / self.n


class Dual(LeastSquares):
    """The problem in the rows: A is their Gram matrix over n; for fewer rows than parameters.

    Parameters
    ----------
    operator : Operator
    X, Y : features, shape (n, F), an array or on a device, and float64 targets, shape (n, p)
    weights : array with a mean of one, shape (n,), or None
    centering : see :data:`~orbit.solvers.moments.Centering`
    precise : bool
        Whether products of float32 features are taken in float64.
    """

    def __init__(
        self,
        operator: Operator,
        X: Any,
        Y: np.ndarray,
        weights: np.ndarray | None,
        centering: Centering,
        precise: bool,
    ) -> None:
        self.operator, self.n, self.fit_intercept = operator, len(X), centering == "both"
        self._rows = CentredRows(X, Y, weights, centering, precise or isinstance(operator, Blocks))
        self.x_offset, self.y_offset = self._rows.x_offset, self._rows.y_offset
        self.rounding = EPS if self._rows.dtype == np.float64 else FLOAT32_ERROR
        targets = operator.row_columns(self._rows.Y)
        self._set_system(self._gram(), targets, np.square(targets).sum(0) / self.n)

    def _gram(self) -> Any:
        shared = (
            None if isinstance(self.operator, Blocks) or isinstance(self._rows.X, DeviceMatrix) else products.in_use()
        )
        found = None if shared is None else shared.of(self._rows.X, self._rows.dtype, self._rows.is_centred)
        if found is not None:
            return self._rows.centred_products(found) / self.n
        K = zeros((self.operator.n_rows(self.n),) * 2, self._rows.X)
        for columns, rows in self._rows.tiles():
            if isinstance(self.operator, Blocks):
                rows = self.operator.part(columns).dense(rows)
            add_second_moments(K, rows.T)
        K /= self.n
        mirror_upper(K)
        return K

    def _coefficients(self, z: np.ndarray) -> np.ndarray:
        by_output = self.operator.rows_to_outputs(z)  # (n, p)
        # NumPy converts float32 rows four times as fast as their transpose
        W = np.concatenate([(by_output.T @ rows).T for _, rows in self._rows.tiles()])
        return self.operator.coefficients(self.operator.adjoint(W)) / self.n

    def _errors(self, z: np.ndarray, regularization: float) -> np.ndarray:
        return np.square(regularization * z).sum(0) / self.n  # the residual is lambda times the dual solution

    def left_out(self, rows, X, Y, weights):
        of_rows = zeros((self.n, len(rows)), X)
        of_rows[rows, np.arange(len(rows))] = 1.0
        in_basis = self.factorisation.to_basis(of_rows)
        form, of_intercept = self._inverse_form(in_basis), self.fit_intercept * weights[rows] / self.n

        def at(regularization: float) -> tuple[np.ndarray, np.ndarray]:
            dual = self.operator.rows_to_outputs(in_basis.T @ self.factorisation.solve(regularization)[0])
            return regularization * dual, regularization * form(regularization) - of_intercept

        return at


class Gram(Dual):
    """The problem in the rows for a given kernel matrix; W are coefficients of its columns.

    Parameters
    ----------
    operator : Operator
    K : array or matrix on a device, shape (n, n)
    Y, weights, centering : as for :class:`Dual`
    """

    def __init__(
        self, operator: Operator, K: Any, Y: np.ndarray, weights: np.ndarray | None, centering: Centering
    ) -> None:
        self.operator, self.n, self.fit_intercept = operator, len(K), centering == "both"
        rows = CentredRows(K, Y, weights, centering)
        self.x_offset, self.y_offset, self._root = rows.x_offset, rows.y_offset, rows.root
        targets, A = operator.row_columns(rows.Y), rows.centred_products(K.astype(np.float64))
        A /= self.n
        self._set_system(A, targets, np.square(targets).sum(0) / self.n)

    def _coefficients(self, z: np.ndarray) -> np.ndarray:
        W = self._root * self.operator.rows_to_outputs(z) / self.n
        if self.fit_intercept:  # those of points less their mean
            W -= np.square(self._root) * W.sum(0) / self.n
        return W
