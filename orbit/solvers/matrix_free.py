"""Least squares by conjugate gradients, from products with second moments alone."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from orbit.core.errors import InputError
from orbit.core.parts import validation_parts
from orbit.core.random import RandomState, generator
from orbit.solvers.conjugate_gradients import NystromPreconditioner, conjugate_gradients, warn_unconverged
from orbit.solvers.moments import Centering, CentredRows
from orbit.solvers.selection import Solution, best_of_path, positive, validation_score
from orbit.solvers.structure import Independent
from orbit.solvers.weighted_rows import WeightedRows


@dataclass(frozen=True)
class ConjugateGradients:
    """The solver of least squares with any operator: memory is that of the second moments, or of the features.

    Attributes
    ----------
    path : array of lambda, ascending, to choose from on the parts of :func:`~orbit.core.parts.validation_parts`
    validation_fraction : share of the points in a part
    centering : see :data:`~orbit.solvers.moments.Centering`
    rank : number of directions that the preconditioner inverts
    max_iter, tolerance : as for :func:`~orbit.solvers.conjugate_gradients.conjugate_gradients`
    random_state : seed of the preconditioner and of the hold-out split
    """

    path: np.ndarray
    validation_fraction: float
    centering: Centering
    rank: int
    max_iter: int
    tolerance: float
    random_state: RandomState = None

    def fit(self, structure: Independent, X, Y, weights=None, labels=None, decide=None, clusters=None) -> Solution:
        """Choose lambda and solve, for points, shapes (n, F) and (n, k), with weights >= 0 and clusters, shape (n,)."""
        if structure.learns_output:
            raise InputError("CGRegressor: a learned output matrix is found in closed form only; use SteinRegressor")
        rows = WeightedRows.of(structure, X, Y, weights)
        kept = positive(weights)
        chosen, unconverged = self._chosen(rows, None if clusters is None else clusters[kept])
        problem = MatrixFree(self, rows)
        W, b = structure.for_features(*problem.solve(chosen.value), kept)
        advice = "values, raise learner.max_iter or learner.rank, or use SteinRegressor"
        warn_unconverged(
            sorted(unconverged | {*problem.unconverged}), f"learner.max_iter={self.max_iter} steps", advice
        )
        return dataclasses.replace(chosen, W=W, b=b, n_iter=chosen.n_iter + problem.n_iter)

    def _chosen(self, rows: WeightedRows, clusters: np.ndarray | None) -> tuple[Solution, set[float]]:
        """The solution of a part, for the lambda that suits the other parts best, and the values not converged."""
        if len(self.path) == 1:
            nothing = np.empty(0)
            return Solution(nothing, nothing, float(self.path[0]), self.path, np.full(1, np.nan)), set()
        parts = validation_parts(rows.n_points, self.validation_fraction, None, clusters, self.random_state)
        n_iter, unconverged, found = 0, set[float](), dict.fromkeys(self.path, 0.0)
        for points in parts:
            fit, held = rows.split(points)
            problem = MatrixFree(self, fit)
            for value in self.path[::-1]:
                W, b = problem.solve(value)
                found[value] += validation_score(held.X @ W + b, held.Y, held.weights) / len(parts)
            n_iter, unconverged = n_iter + problem.n_iter, unconverged | {*problem.unconverged}
        value, scores = best_of_path(self.path, found.__getitem__)
        return Solution(W, b, value, self.path, scores, n_iter=n_iter), unconverged


class MatrixFree:
    """One problem: products with second moments, each F^2 p operations, or n F p for fewer rows than columns.

    Table 1 of Brault et al. 2016 gives P^T P of a curl-free kernel as if only the |w_j|^2 mattered; the
    products w_i . w_j do.

    Attributes
    ----------
    n_iter : total number of iterations
    unconverged : values of lambda for which they ended before convergence
    """

    def __init__(self, solver: ConjugateGradients, weighted: WeightedRows) -> None:
        self.solver, self.operator = solver, weighted.operator
        X = weighted.X
        if len(X) >= X.shape[1]:
            system = weighted.system(solver.centering, precise=True)
            self._moments, cross = system.A.__matmul__, system.cross
            self.x_offset, self.y_offset = system.x_offset, system.y_offset
        else:
            rows = CentredRows(X, weighted.Y, weighted.weights, weighted.centering(solver.centering))
            scaled = rows.scaled()
            self._moments, cross = lambda V: scaled.T @ (scaled @ V) / len(X), scaled.T @ rows.Y / len(X)
            self.x_offset, self.y_offset = rows.x_offset, rows.y_offset
        self.right, rng = self.operator.columns(cross), generator(solver.random_state)
        scales = self.operator.scales
        self._preconditioner = NystromPreconditioner(self._normal, len(self.right), solver.rank, rng, scales)
        self.n_iter, self.unconverged = 0, list[float]()
        self._last: np.ndarray | None = None

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients W, shape (F, p), and intercept b, shape (p,).

        Starts from the previous solution, so solve a path in descending order.
        """
        self._last, converged, n_iter = conjugate_gradients(
            lambda V, columns: self._normal(V) * self.operator.scales[columns],
            self.right,
            np.array([regularization]),
            self._preconditioner,
            self.solver.tolerance,
            self.solver.max_iter,
            self._last,
        )
        self.n_iter += n_iter
        if not converged[0]:
            self.unconverged.append(float(regularization))
        W = self.operator.from_columns(self._last[0])
        return W, self.y_offset - self.x_offset @ W

    def _normal(self, V: np.ndarray) -> np.ndarray:
        return self.operator.normal_product(self._moments, V)
