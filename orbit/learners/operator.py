"""Least squares with operator-valued features: in closed form for a whole path, or matrix free.

Both minimise (1/n) sum_i w_i |P(x_i) theta + b - y_i|^2 + lambda |theta|^2 (ORFF eq. 10,
whose weights w are one; its eq. 11 and the condition under it drop the 1/n) from second
moments of the scalar features alone, which can be summed over batches of rows. Sample
weights are scaled to a mean of one, as in ``learner=ridge``: only their ratios count.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack, solve_continuous_lyapunov
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from orbit.core.distributed import add_up
from orbit.core.errors import InputError
from orbit.core.linalg import eigh
from orbit.core.params import Fraction, PositiveFloat, PositiveInt, check_params
from orbit.core.random import RandomState, generator
from orbit.core.threads import threads_for
from orbit.kernels.structure import Blocks, Constant, Operator, Structure, structure_of, with_structure_of
from orbit.learners.base import (
    Learner,
    best_of_path,
    check_classes,
    checked_weights,
    hold_out,
    parts_of,
    present,
    regularization_path,
)
from orbit.learners.moments import Moments
from orbit.learners.ridge import SINGLE_PRECISION_FLOOR
from orbit.registry import register

# Rows that are centred at once while second moments are summed.
_BLOCK_ROWS = 4096

# Directions of the features below this share of the largest variance are rounding.
_RANK_TOLERANCE = 1e-15

# Size of the eigendecomposition, in rows, up to which the closed form is worth its cube: some gigabytes and minutes.
_MAX_PARAMETERS = 12_000

# Different scales of outputs up to which a Cholesky factorisation for each costs less than one eigendecomposition.
_MAX_SCALES = 3

# From this size on a reduction to tridiagonal form is clearly faster than an eigendecomposition.
_TRIDIAGONAL_FROM = 64
# It takes every lambda to be so many times above rounding: else the eigenvalues must be told from it one by one.
_ABOVE_ROUNDING = 100
# Reflections that LAPACK applies at once.
_REFLECTIONS = 64

# Each value costs a solve, not a division.
_CG_PATH = [10.0**k for k in range(-9, 0)]

# A learned output matrix has settled when it changes by less than this share; it does within some tens of rounds.
_SETTLED = 1e-6
_MAX_ROUNDS = 200


@dataclass(frozen=True)
class System:
    """Everything least squares needs to know of features and targets, over n rows.

    Attributes
    ----------
    n : number of rows
    cross, power : psi^T Y / n, shape (F, p), and Y^T Y / n, shape (p, p), about the means; all weighted
    x_mean, y_mean : zero where there is no intercept
    has_intercept : bool
    second : psi^T psi / n, shape (F, F); None where there are too few rows for it to pay
    """

    n: int
    cross: np.ndarray
    power: np.ndarray
    x_mean: np.ndarray
    y_mean: np.ndarray
    has_intercept: bool
    second: np.ndarray | None = None

    @classmethod
    def of(cls, moments: Moments) -> System:
        """Ends the stream of the moments."""
        second, cross, power = moments.system()
        return cls(moments.n, cross, power, moments.x_mean, moments.y_mean, moments.centred, second)

    @classmethod
    def of_rows(
        cls, psi: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, centred: bool, precise: bool
    ) -> System:
        """A block of rows at a time, because centring makes a copy."""
        moments = Moments(precise, centred)
        for start in range(0, len(psi), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            moments.add(psi[rows], Y[rows], None if weights is None else weights[rows])
        return cls.of(moments)

    @classmethod
    def of_few_rows(
        cls, psi: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, centred: bool
    ) -> tuple[System, np.ndarray]:
        """The same without ``second``, and the features in float64, centred and times the roots of their weights."""
        w, n = np.ones(len(psi)) if weights is None else weights / weights.mean(), len(psi)
        x_mean, y_mean, root = centred * (w @ psi / n), centred * (w @ Y / n), np.sqrt(w)[:, None]
        psi, Y = psi - x_mean, (Y - y_mean) * root
        psi *= root
        return cls(n, psi.T @ Y / n, Y.T @ Y / n, x_mean, y_mean, centred), psi


class ClosedForm(ABC):
    """Solutions for any lambda, and what generalised cross-validation needs to know of them."""

    operator: Constant | Blocks

    @abstractmethod
    def theta(self, regularization: float) -> np.ndarray:
        """Parameters, shape ``(F, q)``."""

    def solve(self, regularization: float) -> np.ndarray:
        """Coefficients of the scalar features, shape ``(F, p)``."""
        return self.operator.coefficients(self.theta(regularization))

    @abstractmethod
    def training_errors(self, regularization: float, power: np.ndarray) -> np.ndarray:
        """(1/n) |P theta - Y|^2 without another pass over the features, ``power`` being Y^T Y / n.

        One number for each direction of the outputs that is fitted by itself: shape
        (p,) for a constant B, in the basis of A; else shape (1,).
        """

    @abstractmethod
    def shares(self, regularization: float) -> np.ndarray:
        """Degrees of freedom by output, for each direction as above."""

    def _left(self, explained: np.ndarray, power: np.ndarray) -> np.ndarray:
        """What is not ``explained`` of the power in each direction."""
        if isinstance(self.operator, Constant):
            basis = self.operator.basis
            whole = np.einsum("ak,ab,bk->k", basis, power, basis)
        else:
            whole = np.array([np.trace(power)])
        return np.maximum(whole - explained, whole * np.finfo(float).eps)  # a perfect fit leaves rounding, not less

    def _by_output(self, freedom: np.ndarray) -> np.ndarray:
        return freedom if isinstance(self.operator, Constant) else freedom / self.operator.factors.shape[1]

    def _shaped(self, solution: np.ndarray) -> np.ndarray:
        return solution if isinstance(self.operator, Constant) else solution.reshape(len(self.operator.factors), -1)


class SteinPath(ClosedForm):
    """Closed-form solutions for every lambda, from one eigendecomposition.

    For a constant B the condition G Theta B^T B + lambda Theta = C B is a Stein equation.
    With G = U diag(e) U^T and A = V diag(s) V^T its solution is a division by
    e_i s_k + lambda, entry by entry, in the rotated bases. For any other operator
    P^T P = Q diag(t) Q^T is small enough to be formed: its blocks are G_ij B_i^T B_j.

    Parameters
    ----------
    second, cross : arrays, shapes (F, F) and (F, p)
    """

    def __init__(self, operator: Constant | Blocks, second: np.ndarray, cross: np.ndarray) -> None:
        if isinstance(operator, Constant):
            values, vectors = eigh(second)
        else:
            values, vectors = eigh(operator.normal_matrix(second))
        keep = (
            values > len(values) * np.finfo(float).eps * values[-1]
        )  # below is rounding, which a tiny lambda would amplify
        self._rotate(operator, values[keep], vectors[:, keep], cross)

    @classmethod
    def of_few_rows(cls, operator: Constant | Blocks, psi: np.ndarray, cross: np.ndarray) -> SteinPath:
        """The same from features, shape (n, F): the eigenvectors come from a Gram matrix of n, or n p, rows."""
        path = cls.__new__(cls)
        rows = psi if isinstance(operator, Constant) else operator.dense(psi)
        values, left = eigh(rows @ rows.T / len(psi))
        keep = values > _RANK_TOLERANCE * max(values[-1], np.finfo(float).tiny)
        vectors = rows.T @ (left[:, keep] / np.sqrt(len(psi) * values[keep]))
        path._rotate(operator, values[keep], vectors, cross)
        return path

    def _rotate(self, operator: Constant | Blocks, values: np.ndarray, vectors: np.ndarray, cross: np.ndarray) -> None:
        self.operator, self.vectors = operator, vectors
        target = operator.adjoint(cross)
        if isinstance(operator, Constant):
            self.values, self.rotated = np.maximum(values, 0)[:, None] * operator.scales, vectors.T @ target
        else:
            self.values, self.rotated = np.maximum(values, 0)[:, None], vectors.T @ target.reshape(-1, 1)

    def theta(self, regularization: float) -> np.ndarray:
        return self._shaped(self.vectors @ (self.rotated / (self.values + regularization)))

    def training_errors(self, regularization: float, power: np.ndarray) -> np.ndarray:
        shrunk = self.values + regularization
        return self._left((np.square(self.rotated / shrunk) * (shrunk + regularization)).sum(0), power)

    def shares(self, regularization: float) -> np.ndarray:
        return self._by_output((self.values / (self.values + regularization)).sum(0))


class TridiagonalPath(ClosedForm):
    """The same from a reduction to tridiagonal form, a third of an eigendecomposition.

    With G = Q T Q^T each lambda costs the factorisation of a tridiagonal matrix for
    every different scale of the outputs; so it is for few of them. The trace of the
    inverse comes from pivots of eliminations from both ends: its i-th diagonal entry is
    1 / (d+_i + d-_i - t_ii).

    Parameters
    ----------
    second, cross : arrays, shapes (F, F) and (F, p)
    """

    def __init__(self, operator: Constant | Blocks, second: np.ndarray, cross: np.ndarray) -> None:
        self.operator = operator
        target = operator.adjoint(cross)
        if isinstance(operator, Constant):
            matrix, scales = second, operator.scales
        else:
            matrix, scales = operator.normal_matrix(second), np.ones(1)
            target = target.reshape(-1, 1)
        self._outputs = [(scale, scales == scale) for scale in np.unique(scales)]
        lwork = int(lapack.dsytrd_lwork(len(matrix), lower=1)[0])
        with threads_for(len(matrix) ** 3):
            reduced, self.diagonal, self.beside, self._tau, _ = lapack.dsytrd(matrix, lower=1, lwork=lwork)
        self._reflectors = np.asfortranarray(reduced[1:, :-1])
        self.rotated = self._turn(target, "T")
        self._solved: dict[float, tuple[np.ndarray, np.ndarray]] = {}

    @staticmethod
    def pays(operator: Constant | Blocks, second: np.ndarray, path: np.ndarray) -> bool:
        """Whether it is faster than an eigendecomposition, and every lambda well above rounding."""
        size, rounding = operator.n_parameters(len(second)), np.finfo(float).eps
        if isinstance(operator, Constant):
            few, power = len(np.unique(operator.scales)) <= _MAX_SCALES, np.trace(second) * operator.scales.max()
        else:
            few, power = True, np.trace(second) * np.square(operator.factors).sum((1, 2)).max()
        return few and size >= _TRIDIAGONAL_FROM and path[0] > _ABOVE_ROUNDING * rounding * power

    def theta(self, regularization: float) -> np.ndarray:
        return self._shaped(self._turn(self._at(regularization)[0], "N"))

    def training_errors(self, regularization: float, power: np.ndarray) -> np.ndarray:
        solution, _ = self._at(regularization)
        return self._left((solution * (self.rotated + regularization * solution)).sum(0), power)

    def shares(self, regularization: float) -> np.ndarray:
        return self._by_output(self._at(regularization)[1])

    def _at(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """The solution in the basis Q, shape (F, k), and degrees of freedom, shape (k,)."""
        if regularization not in self._solved:
            solution, freedom = np.empty_like(self.rotated), np.empty(self.rotated.shape[1])
            for scale, alike in self._outputs:
                diagonal, beside = scale * self.diagonal + regularization, scale * self.beside
                down, multipliers, _ = lapack.dpttrf(diagonal, beside)
                up, _, _ = lapack.dpttrf(diagonal[::-1], beside[::-1])
                solution[:, alike], _ = lapack.dpttrs(down, multipliers, self.rotated[:, alike])
                freedom[alike] = len(diagonal) - regularization * (1 / (down + up[::-1] - diagonal)).sum()
            self._solved[regularization] = solution, freedom
        return self._solved[regularization]

    def _turn(self, columns: np.ndarray, transposed: Literal["T", "N"]) -> np.ndarray:
        """Q^T or Q times columns; Q leaves the first coordinate as it is."""
        turned = np.array(columns)
        lwork = max(1, columns.shape[1] * _REFLECTIONS)
        turned[1:], _, _ = lapack.dormqr("L", transposed, self._reflectors, self._tau, columns[1:], lwork)
        return turned


class SteinSolution:
    """The closed form for a single lambda: Cholesky factorisations, each a tenth of an eigendecomposition.

    One factorisation for every different scale of the outputs, so for few of them.

    Parameters
    ----------
    second, cross : arrays, shapes (F, F) and (F, p)
    """

    def __init__(self, operator: Constant | Blocks, second: np.ndarray, cross: np.ndarray) -> None:
        self.operator, self._second, self._cross = operator, second, cross

    @staticmethod
    def pays(operator: Constant | Blocks) -> bool:
        """Whether the factorisations cost clearly less than the eigendecomposition."""
        return isinstance(operator, Blocks) or len(np.unique(operator.scales)) <= _MAX_SCALES

    def solve(self, regularization: float) -> np.ndarray:
        """Coefficients of the scalar features, shape ``(F, p)``."""
        try:
            return self.operator.coefficients(self._theta(regularization))
        except (
            np.linalg.LinAlgError
        ):  # lambda is below the rounding of the moments: eigenvalues can be kept from below 0
            return SteinPath(self.operator, self._second, self._cross).solve(regularization)

    def _theta(self, regularization: float) -> np.ndarray:
        operator, target = self.operator, self.operator.adjoint(self._cross)
        if isinstance(operator, Blocks):
            normal = operator.normal_matrix(self._second)
            return _solve_shifted(normal, regularization, target.reshape(-1, 1)).reshape(target.shape)
        theta = np.empty_like(target)
        for scale in np.unique(operator.scales):
            alike = operator.scales == scale
            theta[:, alike] = _solve_shifted(scale * self._second, regularization, target[:, alike])
        return theta


def _solve_shifted(matrix: np.ndarray, shift: float, right: np.ndarray) -> np.ndarray:
    """(matrix + shift I)^-1 right; the symmetric matrix is written over.

    Raises
    ------
    LinAlgError
        If the shift is below the rounding of the matrix, so that the answer would be noise.
    """
    if shift < np.finfo(float).eps * np.trace(matrix):
        raise np.linalg.LinAlgError("the shift is below rounding")
    matrix[np.diag_indices_from(matrix)] += shift
    with threads_for(len(matrix) ** 3):
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return cho_solve(factor, right, check_finite=False)


class MatrixFree:
    """Conjugate gradients on P^T P theta + lambda theta = P^T Y, with a randomised Nyström preconditioner.

    A product costs F^2 p, whatever n is, where second moments are given, and n F p
    with the features themselves. The preconditioner inverts the leading
    eigendirections of P^T P, of which random features of a smooth kernel have few;
    one sketch serves every lambda.

    References
    ----------
    Frangella, Tropp and Udell, "Randomized Nyström Preconditioning", 2023, algorithm 2.1
    and section 5.1. Table 1 of ORFF gives P^T P of a curl-free kernel as if only the
    |w_j|^2 mattered; the products w_i . w_j do.
    """

    def __init__(
        self,
        operator: Operator,
        product: Callable[[np.ndarray], np.ndarray],
        cross: np.ndarray,
        rank: int,
        max_iter: int,
        tolerance: float,
        rng: np.random.Generator,
    ) -> None:
        self.operator, self.product = operator, product
        self.max_iter, self.tolerance = max_iter, tolerance
        self.target = operator.adjoint(cross)
        self.n_iter, self.unsettled = 0, list[float]()
        self._sketch(min(rank, self.target.size), rng)
        self._last = np.zeros_like(self.target)

    def normal(self, theta: np.ndarray) -> np.ndarray:
        """P^T P theta."""
        return self.operator.adjoint(self.product(self.operator.coefficients(theta)))

    def solve(self, regularization: float) -> np.ndarray:
        """Coefficients, shape ``(F, p)``; starts from the last solution, so go through a path from its large end."""
        theta = self._last
        residual = self.target - self.normal(theta) - regularization * theta
        direction = preconditioned = self._precondition(residual, regularization)
        energy, goal = np.vdot(residual, preconditioned), self.tolerance * np.linalg.norm(self.target)
        for done in range(self.max_iter + 1):
            if np.linalg.norm(residual) <= goal:
                break
            if done == self.max_iter:
                self.unsettled.append(float(regularization))
                break
            image = self.normal(direction) + regularization * direction
            step = energy / np.vdot(direction, image)
            theta, residual = theta + step * direction, residual - step * image
            preconditioned = self._precondition(residual, regularization)
            before, energy = energy, np.vdot(residual, preconditioned)
            direction = preconditioned + energy / before * direction
            self.n_iter += 1
        self._last = theta
        return self.operator.coefficients(theta)

    def _sketch(self, rank: int, rng: np.random.Generator) -> None:
        size, shape = self.target.size, self.target.shape
        test, _ = np.linalg.qr(rng.standard_normal((size, rank)))
        image = np.stack([self.normal(column.reshape(shape)).ravel() for column in test.T], 1)
        shift = np.finfo(float).eps * max(np.linalg.norm(image), np.finfo(float).tiny)
        image += shift * test  # keeps the next factorisation positive definite
        core = test.T @ image
        values, vectors = eigh((core + core.T) / 2)
        root = image @ (vectors / np.sqrt(np.maximum(values, shift)))
        self._vectors, singular, _ = np.linalg.svd(root, full_matrices=False)
        self._values = np.maximum(np.square(singular) - shift, 0.0)

    def _precondition(self, residual: np.ndarray, regularization: float) -> np.ndarray:
        inside = self._vectors.T @ residual.ravel()
        gain = (self._values[-1] + regularization) / (self._values + regularization) - 1
        return residual + (self._vectors @ (gain * inside)).reshape(residual.shape)


class _OperatorLearner(Learner):
    """What all solvers share: structure, intercept, targets, and choosing lambda."""

    operator_valued = True
    path_parameter = "regularization"
    takes_weights = True

    regularization: PositiveFloat | list[PositiveFloat] | None
    validation_fraction: float
    fit_intercept: bool
    random_state: RandomState

    def check(self) -> None:
        """Raise ``ParameterError`` if a parameter has the wrong type or range."""
        check_params(self)
        regularization_path(self.regularization)

    def _prepare(
        self, X, Y: np.ndarray, sample_weight: np.ndarray | None, of_batch: bool = False
    ) -> tuple[Structure | None, np.ndarray, np.ndarray, np.ndarray | None]:
        """Structure, features, targets and weights, a row for each that is solved for."""
        structure, psi = structure_of(X), np.asarray(X)
        weights = None if sample_weight is None else checked_weights(sample_weight, psi, of_batch)
        if structure is None:
            return None, psi, Y, weights
        if structure.n_features != psi.shape[1]:
            raise ValueError(
                f"the features belong to a map with {structure.n_features} columns, found {psi.shape[1]}: "
                "pass the features on as the map gives them"
            )
        structure.check_targets(Y.shape[1])
        rows = structure.rows(psi, Y)
        return structure, *rows, None if weights is None else np.repeat(weights, structure.stacked or 1)

    def _operator(
        self, structure: Structure | None, Y: np.ndarray, weights: np.ndarray | None = None
    ) -> Constant | Blocks:
        if structure is None:
            return Constant.of(np.eye(Y.shape[1]))
        return structure.operator(Y if weights is None else _unweighted(Y, weights))

    def _has_intercept(self, structure: Structure | None) -> bool:
        # a constant field is not equivariant
        return self.fit_intercept and (structure is None or structure.stacked is None)

    def _keep(self, W: np.ndarray, system: System, structure: Structure | None, dtype: np.dtype) -> None:
        b = system.y_mean - system.x_mean @ W
        if structure is not None and structure.stacked is not None:
            W, b = structure.unstacked(W), np.zeros(structure.stacked)
        self._coefficients, self._intercept = W.astype(dtype), b.astype(dtype)

    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return np.asarray(X) @ self._coefficients.astype(X.dtype) + self._intercept.astype(X.dtype)

    def _hold_out_score(
        self, psi: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, labels: np.ndarray | None
    ) -> tuple[np.ndarray, Callable[[np.ndarray, System], float]]:
        """Indices to fit on, and the score of coefficients on the others: accuracy for labels, else minus the MSE."""
        fit, validation = hold_out(len(psi), self.validation_fraction, labels, self.random_state)
        (by,) = parts_of(weights, validation)

        def score(W: np.ndarray, system: System) -> float:
            predicted = psi[validation] @ W + (system.y_mean - system.x_mean @ W)
            if labels is None:
                return -float(np.average(np.square(predicted - Y[validation]).mean(1), weights=by))
            return float(np.average(predicted.argmax(1) == Y[validation].argmax(1), weights=by))

        return fit, score


class _Stein(_OperatorLearner):
    selection: Literal["gcv", "hold_out"]

    def _criterion(self) -> str:
        return self.selection

    def _fit(self, X, Y: np.ndarray, sample_weight: np.ndarray | None, labels: np.ndarray | None = None) -> None:
        structure, psi, Y, weights = self._prepare(X, Y, sample_weight)
        weights, psi, Y, labels = present(weights, psi, Y, labels)
        self.path_ = regularization_path(self.regularization)
        self.path_scores_ = np.full(len(self.path_), np.nan)
        with threads_for(psi.shape[0] * psi.shape[1] ** 2.0):
            self._choose_and_solve(structure, psi, Y, weights, labels)

    def _choose_and_solve(
        self,
        structure: Structure | None,
        psi: np.ndarray,
        Y: np.ndarray,
        weights: np.ndarray | None,
        labels: np.ndarray | None,
    ) -> None:
        centred = self._has_intercept(structure)
        if len(self.path_) > 1 and self.selection == "hold_out":
            fit, score = self._hold_out_score(psi, Y, weights, labels)
            (w_fit,) = parts_of(weights, fit)
            part, seen = self._path_of(structure, psi[fit], Y[fit], w_fit, centred)
            scores = {value: score(part.solve(value), seen) for value in self.path_}
            self.regularization_, self.path_scores_ = best_of_path(self.path_, scores.__getitem__)
        path, system = self._path_of(structure, psi, Y, weights, centred)
        self._finish(path, system, structure, psi.dtype, self.selection)

    def _path_of(
        self, structure: Structure | None, psi: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, centred: bool
    ) -> tuple[ClosedForm | SteinSolution, System]:
        operator = self._operator(structure, Y, weights)
        learns = structure is not None and structure.learns_output
        if learns or operator.n_rows(len(psi)) >= operator.n_parameters(psi.shape[1]):
            system = System.of_rows(psi, Y, weights, centred, _is_precise(psi.dtype, self.path_))
            return self._settled(operator, system, structure), system
        system, psi = System.of_few_rows(psi, Y, weights, centred)
        return SteinPath.of_few_rows(operator, psi, system.cross), system

    def _settled(
        self, operator: Constant | Blocks, system: System, structure: Structure | None
    ) -> ClosedForm | SteinSolution:
        second = system.second
        assert second is not None
        if structure is not None and structure.learns_output and isinstance(operator, Constant):
            regularization = float(self.path_[0]) if len(self.path_) == 1 else self._chosen_for(operator, system)
            operator = learn_output(second, system.cross, regularization)
        size = operator.n_parameters(len(second))
        if size > _MAX_PARAMETERS:
            raise InputError(
                f"learner=stein: {size:,} parameters are too many for the closed form of this kernel, "
                f"at most {_MAX_PARAMETERS:,}: choose learner=cg or fewer approx.n_components"
            )
        if len(self.path_) == 1 and SteinSolution.pays(operator):
            return SteinSolution(operator, second, system.cross)
        if TridiagonalPath.pays(operator, second, self.path_):
            return TridiagonalPath(operator, second, system.cross)
        return SteinPath(operator, second, system.cross)

    def _chosen_for(self, operator: Constant, system: System) -> float:
        assert system.second is not None
        path = SteinPath(operator, system.second, system.cross)
        return best_of_path(self.path_, lambda value: gcv(path, system, value))[0]

    def _finish(
        self,
        path: ClosedForm | SteinSolution,
        system: System,
        structure: Structure | None,
        dtype: np.dtype,
        selection: str,
    ) -> None:
        if len(self.path_) == 1:
            self.regularization_ = float(self.path_[0])
        elif selection == "gcv":
            assert isinstance(path, ClosedForm)
            self.regularization_, self.path_scores_ = best_of_path(self.path_, lambda value: gcv(path, system, value))
        if isinstance(path.operator, Constant):
            self.output_matrix_ = path.operator.output_matrix
        self._keep(path.solve(self.regularization_), system, structure, dtype)


def _unweighted(Y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rows whose covariance is the weighted one of ``Y``."""
    return _with_covariance(np.cov(Y, rowvar=False, aweights=weights, ddof=0).reshape(Y.shape[1], -1))


def _with_covariance(covariance: np.ndarray) -> np.ndarray:
    """Rows with a covariance: all that an output matrix is made from."""
    values, vectors = eigh(covariance)
    rows = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    return np.concatenate([rows, -rows])


def _is_precise(dtype: np.dtype, path: np.ndarray) -> bool:
    return dtype == np.float64 or path[0] < SINGLE_PRECISION_FLOOR


def gcv(path: ClosedForm, system: System, regularization: float) -> float:
    """The negative generalised cross-validation score (Golub, Heath and Wahba 1979).

    Where outputs come apart in the basis of A, each has its own score and they are
    added up. In one score for all, fitting the noise of a few directions with large
    eigenvalues would be hidden by the many that are hardly fitted at all.
    """
    shares = (path.shares(regularization) + system.has_intercept) / system.n
    if (shares >= 1).any():
        return -np.inf
    return -float((path.training_errors(regularization, system.power) / np.square(1 - shares)).sum())


def learn_output(second: np.ndarray, cross: np.ndarray, regularization: float) -> Constant:
    """The output matrix A of a decomposable kernel, found together with the fit by block coordinate descent.

    Minimises |Y - K C A|^2 / (2 lambda) + tr(A C^T K C) / 2 + |A|_F^2 / 2 over C and
    positive semi-definite A in turns, with K the kernel matrix over n: C by a Stein
    equation, A by a Lyapunov equation and a projection. Both see the data through
    second moments only.

    References
    ----------
    Dinuzzo, Ong, Gehler and Pillonetto, "Learning Output Kernels with Block Coordinate
    Descent", 2011, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> A = learn_output(np.eye(2), np.array([[1.0, 1.0], [2.0, 2.0]]), 0.1)
    >>> (A.scales > 1e-3 * A.scales.max()).tolist()  # both outputs are one
    [False, True]
    """
    p = cross.shape[1]
    values, U = eigh(second)
    rotated, A = U.T @ cross, np.eye(p)
    for _ in range(_MAX_ROUNDS):
        scales, V = eigh(A)
        # Omega = psi^T C solves G Omega A + lambda Omega = psi^T Y
        omega = (rotated @ V) / (np.maximum(values, 0)[:, None] * scales + regularization) @ V.T
        S, Q = omega.T @ (values[:, None] * omega), omega.T @ omega
        right = S @ A + regularization / 2 * Q
        new = solve_continuous_lyapunov(S + regularization * np.eye(p), right + right.T)
        kept, V = eigh((new + new.T) / 2)
        new = (V * np.maximum(kept, 0)) @ V.T
        change, A = np.linalg.norm(new - A), new
        if change <= _SETTLED * np.linalg.norm(A):
            break
    return Constant.of(A)


@register("regressor", "stein")
class SteinRegressor(MultiOutputMixin, RegressorMixin, _Stein):
    """Least squares with an operator-valued kernel in closed form, every lambda of a path from one factorisation.

    Minimises (1/n) sum_i w_i |Phi(x_i)^T theta + b - y_i|^2 + lambda |theta|^2, the sample
    weights w scaled to a mean of one, on features of ``approx=orff`` or ``approx=ovk``,
    which bring their operator along. On other features outputs are independent, and this
    is ridge regression.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda. A list is a path to choose from; None is 23 values from 1e-10 to 10.
    selection : {"gcv", "hold_out"}
        How lambda is chosen, on training data only.
    validation_fraction : float in (0, 1)
        Share of the training data held out for ``hold_out``.
    fit_intercept : bool
        Add a constant b, not regularised. Equivariant features never have one.
    random_state : int, RandomState or None
        Seed of the hold-out split.

    Attributes
    ----------
    coef_ : array, shape (d,) or (k, d), of the scalar features
    intercept_ : float or array, shape (k,)
    regularization_ : float
    path_, path_scores_ : arrays
    output_matrix_ : array, shape (k, k), for decomposable kernels
        A in use.

    References
    ----------
    Brault, Heinonen and d'Alché-Buc, 2016, section 4.1 and appendix D.1.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import SteinRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> SteinRegressor(regularization=1e-12).fit(X, 2 * X[:, 0] + 1).predict([[10.0]]).round(3)
    array([21.])
    """

    streams = True
    distributes = True

    def __init__(
        self,
        regularization: PositiveFloat | list[PositiveFloat] | None = None,
        selection: Literal["gcv", "hold_out"] = "gcv",
        validation_fraction: Fraction = 0.2,
        fit_intercept: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.selection = selection
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Fit to features ``X``, shape (n, d), ``y``, shape (n,) or (n, k), and weights, shape (n,); None: equal."""
        self.check()
        self.__dict__.pop("_stream", None)
        features, Y = _validated(self, X, y, reset=True)
        self._fit(features, Y, sample_weight)
        _publish(self)
        return self

    def partial_fit(self, X, y, sample_weight=None):
        """Take in a batch of a stream, of which only moments are kept; see :meth:`finalize`.

        lambda is then chosen by ``gcv`` whatever ``selection`` says, since no row is left to hold out.
        """
        self.check()
        first = not hasattr(self, "_stream")
        features, Y = _validated(self, X, y, reset=first)
        structure, psi, Y, weights = self._prepare(features, Y, sample_weight, of_batch=True)
        if first:
            self.path_ = regularization_path(self.regularization)
            self.path_scores_ = np.full(len(self.path_), np.nan)
            precise = _is_precise(psi.dtype, self.path_)
            self._stream = _Stream(structure, Moments(precise, self._has_intercept(structure)), psi.dtype)
        self._stream.add(psi, Y, weights)
        self._stale = True
        return self

    def gather(self) -> None:
        """Add up what all processes of a distributed job have taken in; call before :meth:`finalize`."""
        self._stream.gather()

    def finalize(self):
        """Choose lambda and solve, from the moments of the whole stream, which end with it."""
        stream = self._stream
        self._stale = False
        del self._stream
        system = System.of(stream.moments)
        path = self._settled(self._operator(stream.structure, stream.targets_like()), system, stream.structure)
        self._finish(path, system, stream.structure, stream.dtype, "gcv")
        _publish(self)
        return self

    def predict(self, X) -> np.ndarray:
        """Predictions, shaped as the targets were: (n,) or (n, k)."""
        if getattr(self, "_stale", False):
            stream = copy.deepcopy(self._stream)  # more batches may follow
            self.finalize()
            self._stream = stream
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores


class _Stream:
    """What is kept of the rows seen so far."""

    def __init__(self, structure: Structure | None, moments: Moments, dtype: np.dtype) -> None:
        self.structure, self.moments, self.dtype = structure, moments, dtype

    def gather(self) -> None:
        self.moments.gather()
        add_up(self._sum, self._outer)

    def add(self, psi: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> None:
        if not hasattr(self, "_sum"):
            self._sum, self._outer = np.zeros(Y.shape[1]), np.zeros((Y.shape[1],) * 2)
        self.moments.add(psi, Y, weights)
        weighted = Y if weights is None else Y * weights[:, None]
        self._sum += weighted.sum(0)
        self._outer += weighted.T @ Y

    def targets_like(self) -> np.ndarray:
        """Rows with the covariance of the targets: what an output matrix can be made from."""
        mean = self._sum / self.moments.weight
        return _with_covariance(self._outer / self.moments.weight - np.outer(mean, mean))


def _validated(learner: _OperatorLearner, X, y, reset: bool) -> tuple[np.ndarray, np.ndarray]:
    """Features, with the structure they came with, and targets as float64 columns."""
    floats = [np.float64, np.float32]
    checked, y = validate_data(learner, X, y, reset=reset, dtype=floats, multi_output=True, y_numeric=True)
    learner._flat = y.ndim == 1
    return with_structure_of(X, checked), y.astype(np.float64).reshape(len(y), -1)


def _publish(learner: _OperatorLearner) -> None:
    """``coef_`` and ``intercept_`` shaped as scikit-learn has them."""
    learner.coef_ = learner._coefficients[:, 0] if learner._flat else learner._coefficients.T
    learner.intercept_ = learner._intercept[0] if learner._flat else learner._intercept


@register("classifier", "stein")
class SteinClassifier(ClassifierMixin, _Stein):
    """Least squares on one-hot targets with an operator-valued kernel, in closed form.

    With ``kernel=decomposable kernel.output=simplex`` classes are coded by the corners
    of a simplex, as ORFF section 4.2 does for MNIST; other kernels are regressors'.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda, as for the regressor; None is 23 values from 1e-10 to 10.
    selection : {"gcv", "hold_out"}
        How lambda is chosen: squared error by generalised cross-validation, or the
        accuracy on a validation part.
    validation_fraction : float in (0, 1)
    fit_intercept : bool
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array, shape (k,)
    coef_, intercept_ : arrays, shapes (k, d) and (k,)
    regularization_ : float
    path_, path_scores_ : arrays
    output_matrix_ : array, shape (k, k)

    References
    ----------
    Mroueh, Poggio, Rosasco and Slotine, "Multiclass Learning with Simplex Coding", 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import SteinClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(SteinClassifier().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    def __init__(
        self,
        regularization: PositiveFloat | list[PositiveFloat] | None = None,
        selection: Literal["gcv", "hold_out"] = "gcv",
        validation_fraction: Fraction = 0.2,
        fit_intercept: bool = True,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.selection = selection
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Fit to features ``X``, shape (n, d), class labels ``y``, shape (n,), and weights, shape (n,); None: equal."""
        self.check()
        features, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        self.classes_ = check_classes(y)
        labels = np.searchsorted(self.classes_, y)
        self._fit(with_structure_of(X, features), np.eye(len(self.classes_))[labels], sample_weight, y)
        self.coef_, self.intercept_ = self._coefficients.T, self._intercept
        return self

    def decision_function(self, X) -> np.ndarray:
        """Scores, shape (n, k); for two classes their difference, (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X) -> np.ndarray:
        """Class labels, shape (n,)."""
        chosen = self._scores(X).argmax(1)
        return self.classes_[chosen]


@register("regressor", "cg")
class CGRegressor(MultiOutputMixin, RegressorMixin, _OperatorLearner):
    """Least squares with an operator-valued kernel by preconditioned conjugate gradients, matrix free.

    The same objective as ``learner=stein``, for any operator and any number of
    parameters: memory is that of the second moments of the scalar features, or of the
    features themselves where there are fewer rows than columns.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda. A list is a path to choose from by hold-out, each solution the start of
        the next. None is 1e-9, 1e-8 and so on to 0.1.
    validation_fraction : float in (0, 1)
        Share of the training data held out.
    fit_intercept : bool
        Add a constant b, not regularised. Equivariant features never have one.
    rank : int >= 1
        Directions that the preconditioner inverts.
    max_iter : int >= 1
        Iterations for one lambda; a warning names the values that need more.
    tolerance : float > 0
        Stop when the residual of the normal equations is below this share of their right-hand side.
    random_state : int, RandomState or None
        Seed of the preconditioner and of the hold-out split.

    Attributes
    ----------
    coef_, intercept_, regularization_, path_, path_scores_ : as for ``learner=stein``
    n_iter_ : int
        Iterations of the last fit, over all lambdas.

    References
    ----------
    Brault, Heinonen and d'Alché-Buc, 2016, appendix D.1, Tables 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import CGRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> CGRegressor(regularization=1e-9).fit(X, 2 * X[:, 0] + 1).predict([[10.0]]).round(3)
    array([21.])
    """

    def __init__(
        self,
        regularization: PositiveFloat | list[PositiveFloat] | None = None,
        validation_fraction: Fraction = 0.2,
        fit_intercept: bool = True,
        rank: PositiveInt = 200,
        max_iter: PositiveInt = 500,
        tolerance: PositiveFloat = 1e-10,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.validation_fraction = validation_fraction
        self.fit_intercept = fit_intercept
        self.rank = rank
        self.max_iter = max_iter
        self.tolerance = tolerance
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Fit to features ``X``, shape (n, d), ``y``, shape (n,) or (n, k), and weights, shape (n,); None: equal."""
        self.check()
        features, Y = _validated(self, X, y, reset=True)
        structure, psi, Y, weights = self._prepare(features, Y, sample_weight)
        weights, psi, Y = present(weights, psi, Y)
        if structure is not None and structure.learns_output:
            raise InputError("learner=cg: kernel.output=learned is found in closed form only; choose learner=stein")
        self.path_ = regularization_path(_CG_PATH if self.regularization is None else self.regularization)
        self.path_scores_, self.n_iter_ = np.full(len(self.path_), np.nan), 0
        self.regularization_ = float(self.path_[0])
        unsettled = self._choose(structure, psi, Y, weights) if len(self.path_) > 1 else []
        solver, system = self._solver(structure, psi, Y, weights)
        W = solver.solve(self.regularization_)
        self.n_iter_ += solver.n_iter
        if unsettled := sorted({*unsettled, *solver.unsettled}):
            warnings.warn(
                f"conjugate gradients stopped after learner.max_iter={self.max_iter} steps before they converged for "
                f"learner.regularization={', '.join(f'{value:.3g}' for value in unsettled)}: choose larger values, "
                "raise learner.max_iter or learner.rank, or choose learner=stein",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._keep(W, system, structure, psi.dtype)
        _publish(self)
        return self

    def predict(self, X) -> np.ndarray:
        """Predictions, shaped as the targets were: (n,) or (n, k)."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def _choose(
        self, structure: Structure | None, psi: np.ndarray, Y: np.ndarray, weights: np.ndarray | None
    ) -> list[float]:
        """Set lambda by hold-out; the values for which the iterations ended early."""
        fit, score = self._hold_out_score(psi, Y, weights, None)
        solver, system = self._solver(structure, psi[fit], Y[fit], *parts_of(weights, fit))
        scores = {value: score(solver.solve(value), system) for value in self.path_[::-1]}
        self.regularization_, self.path_scores_ = best_of_path(self.path_, scores.__getitem__)
        self.n_iter_ += solver.n_iter
        return solver.unsettled

    def _solver(
        self, structure: Structure | None, psi: np.ndarray, Y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[MatrixFree, System]:
        centred = self._has_intercept(structure)
        if len(psi) >= psi.shape[1]:
            system = System.of_rows(psi, Y, weights, centred, _is_precise(psi.dtype, self.path_))
            assert system.second is not None
            product = system.second.__matmul__
        else:
            system, rows = System.of_few_rows(psi, Y, weights, centred)
            product = lambda W: rows.T @ (rows @ W) / len(rows)  # noqa: E731
        operator, rng = self._operator(structure, Y, weights), generator(self.random_state)
        solver = MatrixFree(operator, product, system.cross, self.rank, self.max_iter, self.tolerance, rng)
        return solver, system
