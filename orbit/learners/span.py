"""Linear estimators of many columns, fitted in the span of few rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orbit.core.linalg import BLOCK_COLUMNS, pivoted_root

# Where the factorisation costs less than it saves, or little: at most this many rows, and this many columns for each.
_MOST_ROWS, _COLUMNS_PER_ROW = 1000, 4


class InSpan:
    """Mixin for scikit-learn's linear estimators with a penalty |w|^2: fits fewer columns where rows are few.

    The solution is w = X^T a. With L^T L = (X_p X_p^T)^-1 for rows p that span all rows, the rows X X_p^T L^T have the
    same inner products as those of X, and at most as many columns as X has rows. Their coefficients v give
    w = X_p^T L^T v.
    """

    coef_: np.ndarray
    n_features_in_: int

    def fit(self, X: np.ndarray, y: ArrayLike, **weights: Any) -> InSpan:
        """Fit to ``X``, shape (n, d)."""
        estimator: Any = super()
        n, d = X.shape
        if n > _MOST_ROWS or d < _COLUMNS_PER_ROW * n or not X.any():
            return estimator.fit(X, y, **weights)
        products = sum(block @ block.T for block in _blocks(X))
        spanning, root = pivoted_root(products)
        estimator.fit(products[:, spanning] @ root.T, y, **weights)
        along = self.coef_ @ root
        self.coef_ = np.concatenate([along @ block[spanning] for block in _blocks(X)], axis=1)
        self.n_features_in_ = d
        return self


def _blocks(X: np.ndarray) -> Iterator[np.ndarray]:
    """Some columns at a time, in float64."""
    return (X[:, i : i + BLOCK_COLUMNS].astype(np.float64) for i in range(0, X.shape[1], BLOCK_COLUMNS))
