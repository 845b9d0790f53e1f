"""The rows of a least-squares problem: features, targets and weights of points, by the structure of the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from orbit.core.parts import Split
from orbit.solvers.factorisations import LEVERAGES_BY_EIGENVALUES
from orbit.solvers.kernel_matrix import KernelMatrix
from orbit.solvers.least_squares import Dual, Gram, LeastSquares, Primal, RefinedPrimal
from orbit.solvers.moments import Centering, System
from orbit.solvers.selection import normalized_weights, positive, subset_weights
from orbit.solvers.structure import GramStructure, Independent, Operator

# Rows for each column from which moments take most of the time of a fit, so that they are worth taking in float32.
ROWS_PER_COLUMN = 5


@dataclass(frozen=True)
class WeightedRows:
    """The rows of a least-squares problem: those of the points of positive weight.

    Attributes
    ----------
    structure : Independent, Structure or GramStructure
    X, Y : features, an array or on a device, and float64 targets, shapes (n, F) and (n, k)
    weights : array with a mean of one, shape (n,), or None
    """

    structure: Independent
    X: Any
    Y: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(cls, structure: Independent, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> WeightedRows:
        """Those of points, shapes (n, F) and (n, k), with weights >= 0, shape (n,)."""
        kept = positive(weights)
        X, Y = structure.rows(X, Y, kept)
        if weights is not None:
            weights = normalized_weights(np.repeat(weights[kept], structure.rows_per_point))
        return cls(structure, X, Y, weights)

    @property
    def n_points(self) -> int:
        return len(self.X) // self.structure.rows_per_point

    def split(self, points: Split) -> tuple[WeightedRows, WeightedRows]:
        """The rows of the points to fit to, and those of the points to validate on."""
        each = self.structure.rows_per_point
        parts = [(part[:, None] * each + np.arange(each)).ravel() for part in points]
        # kernel values are those with the points of the fit
        X = self.X[:, parts[0]] if isinstance(self.structure, GramStructure) else self.X
        fit, validation = (
            WeightedRows(self.structure, X[part], self.Y[part], normalized_weights(weights))
            for part, weights in zip(parts, subset_weights(self.weights, *parts), strict=True)
        )
        return fit, validation

    @property
    def operator(self) -> Operator:
        return self.structure.operator(self.Y, self.weights)

    def centering(self, wanted: Centering) -> Centering:
        """The wanted centering, or none where a model has no intercept."""
        return wanted if self.structure.has_intercept else "none"

    def problem(self, centering: Centering, precise: bool) -> LeastSquares:
        """The least-squares problem in the parameters or in the rows, whichever are fewer."""
        operator, centering = self.operator, self.centering(centering)
        if isinstance(self.structure, GramStructure):
            kind = KernelMatrix if self.X.dtype == np.float32 else Gram
            return kind(operator, self.X, self.Y, self.weights, centering)
        if operator.n_rows(len(self.X)) < operator.n_parameters(self.X.shape[1]):
            return Dual(operator, self.X, self.Y, self.weights, centering, precise)
        system = self.system(centering, precise)
        if self.is_refined and not precise:
            return RefinedPrimal(operator, system, self.X, self.Y, self.weights)
        return Primal(operator, system)

    @property
    def is_refined(self) -> bool:
        """Whether solutions of moments of float32 products are refined: independent outputs, and many rows for each
        column, so that the moments take most of the time."""
        (n, d), is_plain = self.X.shape, type(self.structure) is Independent
        return self.X.dtype == np.float32 and is_plain and d > LEVERAGES_BY_EIGENVALUES and n >= ROWS_PER_COLUMN * d

    def system(self, centering: Centering, precise: bool) -> System:
        """The second moments of the rows."""
        return System.from_rows(self.X, self.Y, self.weights, self.centering(centering), precise)
