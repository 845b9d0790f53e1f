"""Least squares with operator-valued features by conjugate gradients."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from orbit.core.errors import InputError
from orbit.core.params import Fraction, PositiveFloat, PositiveInt
from orbit.core.random import RandomState, generator, hold_out
from orbit.learners.linear import LinearLearner
from orbit.registry import register
from orbit.solvers.conjugate_gradients import MatrixFree
from orbit.solvers.selection import (
    best_of_path,
    normalized_weights,
    subset_weights,
    validation_score,
    warn_at_end,
)
from orbit.solvers.structure import Structure


@register("regressor", "cg")
class CGRegressor(MultiOutputMixin, RegressorMixin, LinearLearner):
    """Least squares with an operator-valued kernel by preconditioned conjugate gradients, matrix free.

    The objective of :class:`~orbit.learners.SteinRegressor`, for any operator and any number of
    parameters: memory is that of the second moments of the scalar features, or of the
    features themselves if there are fewer rows than columns.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda. A list is a path to choose from by hold-out; each solution is the starting
        point of the next. None is 1e-9, 1e-8 and so on to 0.1.
    validation_fraction : float in (0, 1)
        Share of the training data held out.
    fit_intercept : bool
        Add a constant b, not regularised. Equivariant features never have one.
    rank : int >= 1
        Number of directions that the preconditioner inverts.
    max_iter : int >= 1
        Iterations for one lambda; a warning names the values that need more.
    tolerance : float > 0
        Stop when the residual of the normal equations is below this share of their right-hand side.
    random_state : int, RandomState or None
        Seed of the preconditioner and of the hold-out split.

    Attributes
    ----------
    coef_, intercept_, regularization_, path_, path_scores_ : as for :class:`~orbit.learners.SteinRegressor`
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

    operator_valued = True
    default_path = tuple(10.0**k for k in range(-9, 0))  # a short one: each value takes an iterative solve

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

    def _fit_rows(self, structure, X, Y, weights, labels) -> None:
        if structure is not None and structure.learns_output:
            raise InputError("CGRegressor: a learned output matrix is found in closed form only; use SteinRegressor")
        path = self._path()
        value, scores, self.n_iter_, unconverged = float(path[0]), np.full(len(path), np.nan), 0, list[float]()
        if len(path) > 1:
            rows = structure.rows_per_point if structure is not None else 1
            fit, validation = hold_out(len(X) // rows, self.validation_fraction, None, self.random_state, rows)
            w_fit, w_validation = subset_weights(weights, fit, validation)
            solver = self._solver(structure, X[fit], Y[fit], normalized_weights(w_fit))
            found = {}
            for regularization in path[::-1]:
                W, b = solver.solve(regularization)
                found[regularization] = validation_score(X[validation] @ W + b, Y[validation], w_validation)
            value, scores = best_of_path(path, found.__getitem__)
            self.n_iter_, unconverged = solver.n_iter, solver.unconverged
        solver = self._solver(structure, X, Y, weights)
        W, b = solver.solve(value)
        self.n_iter_ += solver.n_iter
        self._warn({*unconverged, *solver.unconverged})
        self.regularization_, self.path_, self.path_scores_ = value, path, scores
        warn_at_end(path, scores, value)
        self._keep(*self._for_map(structure, W, b), X.dtype)

    def _solver(self, structure: Structure | None, X: np.ndarray, Y: np.ndarray, weights) -> MatrixFree:
        operator, centering = self._operator(structure, Y, weights), self._centering(structure)
        rng = generator(self.random_state)
        return MatrixFree(operator, X, Y, weights, centering, self.rank, self.max_iter, self.tolerance, rng)

    def _warn(self, unconverged: set[float]) -> None:
        if not unconverged:
            return
        warnings.warn(
            f"conjugate gradients stopped after max_iter={self.max_iter} steps before they converged for "
            f"regularization={', '.join(f'{value:.3g}' for value in sorted(unconverged))}: choose larger values, "
            "raise max_iter or rank, or use SteinRegressor",
            ConvergenceWarning,
            stacklevel=2,
        )
