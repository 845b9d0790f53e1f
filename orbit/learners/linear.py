"""Linear models of features for regression and classification, with independent or coupled outputs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from orbit.core.linalg import rows_with_covariance
from orbit.core.params import PositiveFloat
from orbit.core.random import RandomState
from orbit.learners.base import Learner, checked_weights, linear_predictions
from orbit.learners.targets import Labels, Numbers
from orbit.solvers.moments import Centering
from orbit.solvers.selection import drop_zero_weights
from orbit.solvers.structure import Constant, GramStructure, Operator, Structure


class LinearLearner(Learner):
    """Base class of linear learners: a subclass says what targets are, and solves for the coefficients.

    Attributes
    ----------
    path_, path_scores_ : arrays
        The values tried and their scores, higher is better; NaN for a single one.
    regularization_ : float
        The lambda in use.
    centering : see :data:`~orbit.solvers.moments.Centering`
    fit_intercept : whether there is an intercept; a parameter of some learners
    """

    path_parameter = "regularization"
    centering: ClassVar[Centering] = "both"
    fit_intercept: bool = True

    regularization: PositiveFloat | list[PositiveFloat] | None
    validation_fraction: float
    random_state: RandomState

    _targets: Numbers | Labels

    def _targets_of(self, y: np.ndarray, classes: np.ndarray | None = None) -> Numbers | Labels:
        """What targets like ``y`` are; ``classes`` are all labels if ``y`` is a part."""
        return Numbers(type(self).__name__, y.ndim == 1)

    @abstractmethod
    def _fit_rows(
        self,
        structure: Structure | None,
        X: np.ndarray,
        Y: np.ndarray,
        weights: np.ndarray | None,
        labels: np.ndarray | None,
    ) -> None:
        """Choose lambda and solve, for rows of positive weight; ``labels`` are the class labels of a classifier."""

    def fit(self, X, y, sample_weight=None):
        """Fit to features ``X``, shape (n, d), targets ``y``, and weights, shape (n,); None: equal.

        ``y`` are class labels, shape (n,), or real targets, shape (n,) or (n, k).
        """
        self.check()
        structure, X = self._unpacked(X)
        X, y = self._validated(X, y, reset=True)
        self._targets = self._targets_of(y)
        X, Y, weights = self._rows(structure, X, self._encoded(y), sample_weight)
        weights, X, Y, labels = drop_zero_weights(weights, X, Y, y if self._targets.decide else None)
        self._fit_rows(structure, X, Y, weights, labels)
        return self

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        """Targets as columns of numbers, float64, shape (n, k)."""
        return self._targets.encode(y).astype(np.float64, copy=False)

    def _unpacked(self, X) -> tuple[Any, np.ndarray]:
        structure, X = self._accepted(X)
        return structure if self.operator_valued or isinstance(structure, GramStructure) else None, X

    def _rows(
        self, structure: Structure | None, X: np.ndarray, Y: np.ndarray, sample_weight, of_batch: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Features, targets and weights of the rows of the least-squares problem."""
        weights = None if sample_weight is None else checked_weights(sample_weight, X, of_batch)
        if structure is None:
            return X, Y, weights
        if structure.n_features != X.shape[1]:
            raise ValueError(
                f"the features belong to a map with {structure.n_features} columns, found {X.shape[1]}: "
                "pass the features unchanged from the map"
            )
        structure.check_targets(Y.shape[1])
        rows = structure.rows(X, Y)
        return *rows, None if weights is None else np.repeat(weights, structure.rows_per_point)

    def _operator(self, structure: Structure | None, Y: np.ndarray, weights: np.ndarray | None = None) -> Operator:
        if structure is None:
            return Constant.identity(Y.shape[1])
        if weights is not None:
            covariance = np.cov(Y, rowvar=False, aweights=weights, ddof=0).reshape(Y.shape[1], -1)
            Y = rows_with_covariance(covariance)
        return structure.operator(Y)

    def _centering(self, structure: Structure | None) -> Centering:
        is_stacked = structure is not None and structure.stacked is not None  # a constant field is not equivariant
        return self.centering if self.fit_intercept and not is_stacked else "none"

    def _for_map(self, structure: Structure | None, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercept for features of the map, from those of the rows of the least-squares problem."""
        if structure is None or structure.stacked is None:
            return W, b
        return np.kron(np.eye(structure.stacked), W), np.zeros(structure.stacked)

    def _keep(self, W: np.ndarray, b: np.ndarray, dtype: np.dtype) -> None:
        self._coefficients, self._intercept = W.astype(dtype), b
        self.coef_, self.intercept_ = self._targets.linear_model(self._coefficients, self._intercept)

    def _scores(self, X) -> np.ndarray:
        return linear_predictions(self._points(X), self._coefficients, self._intercept)

    def predict(self, X) -> np.ndarray:
        """Predictions: class labels, shape (n,), or real numbers shaped like the targets, (n,) or (n, k)."""
        scores = self._scores(X)
        return self._targets.decode(scores)
