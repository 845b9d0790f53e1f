"""Linear estimators of many columns, fitted in the span of few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

# Columns for each row from which on the decomposition costs less than it saves.
_COLUMNS_PER_ROW = 4


class InSpan:
    """Mixin for scikit-learn's linear estimators with a penalty |w|^2: fits fewer columns where rows are few.

    The solution is w = X^T a. With the eigenvectors U and eigenvalues s of X X^T, the rows U s^(1/2) have the same
    inner products as those of X, and only as many columns as X has rows. Their coefficients v give
    w = X^T U s^(-1/2) v.
    """

    coef_: np.ndarray
    n_features_in_: int

    def fit(self, X: np.ndarray, y: ArrayLike, **weights: Any) -> InSpan:
        """Fit to ``X``, shape (n, d)."""
        estimator: Any = super()
        if X.shape[1] < _COLUMNS_PER_ROW * len(X):
            return estimator.fit(X, y, **weights)
        values, vectors = eigh(np.matmul(X, X.T, dtype=np.float64))
        kept = values > len(X) * np.finfo(np.float64).eps * values[-1]
        U, roots = vectors[:, kept], np.sqrt(values[kept])
        if not len(roots):  # all rows are zero
            return estimator.fit(X, y, **weights)
        estimator.fit(U * roots, y, **weights)
        self.coef_ = (self.coef_ / roots) @ U.T @ X
        self.n_features_in_ = X.shape[1]
        return self
