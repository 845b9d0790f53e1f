"""Features with a row for each output of a point, so that coupled outputs are one function of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from orbit.solvers.structure import Blocks, Independent, Structure


@dataclass(frozen=True)
class OutputRows:
    """How rows follow from features: p for each point if outputs are coupled, otherwise the features themselves.

    Attributes
    ----------
    p : rows of each point
    operator : Blocks or None
        None if features have an output axis, or are rows already.
    prior : float64 array, shape (p, p), or None
        The covariance of the outputs at a point; None if it is that of the features.
    unit : float
        Multiplies rows.
    """

    p: int = 1
    operator: Blocks | None = None
    prior: np.ndarray | None = None
    unit: float = 1.0

    @classmethod
    def of(cls, structure: Independent, X: np.ndarray, Y: np.ndarray) -> OutputRows:
        """Those of training points, shapes (n, F) and (n, p)."""
        prior = structure.prior if isinstance(structure, Structure) else None
        if not isinstance(structure, Structure) or not structure.is_coupled:
            return cls(prior=prior)
        structure.check_targets(Y.shape[1])
        p, operator = Y.shape[1], None
        if structure.stacked is None:
            factors = structure.operator(Y).factors
            prior = None if prior is None else prior * (factors[0] @ factors[0].T)  # of a scalar kernel
            operator = Blocks(np.broadcast_to(factors, (X.shape[1], *factors.shape[1:])))
        return cls(p, operator, prior)

    def scaled(self, X: np.ndarray) -> OutputRows:
        """Those whose prior variance at the points is one on average, if outputs are coupled."""
        if self.p == 1:
            return self
        square = float(np.square(self(X)).sum(1).mean() if self.prior is None else np.trace(self.prior) / self.p)
        unit = 1 / np.sqrt(square) if square > 0 else 1.0
        return replace(self, prior=None if self.prior is None else self.prior * unit**2, unit=unit)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Rows, float64, shape (n p, m), of features, shape (n, F)."""
        X = X.astype(np.float64)
        if self.operator is not None:
            return self.unit * self.operator.dense(X)
        return X if self.p == 1 else self.unit * X.reshape(len(X) * self.p, -1)

    def targets(self, Y: np.ndarray) -> np.ndarray:
        """Targets of the rows, shape (n p, k)."""
        return Y if self.p == 1 else Y.reshape(-1, 1)

    def coefficients(self, W: np.ndarray) -> np.ndarray:
        """Coefficients of the features, shape (F, p), from those of the rows, shape (m, k)."""
        if self.operator is not None:
            return self.unit * self.operator.from_columns(W)
        return W if self.p == 1 else self.unit * np.kron(np.eye(self.p), W)
