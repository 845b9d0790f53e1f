"""Linear models of features for regression and classification, with independent or coupled outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from orbit.core.linalg import check_target_size, rows_with_covariance
from orbit.core.params import PositiveFloat
from orbit.core.random import RandomState
from orbit.learners.base import Learner, check_classes, checked_weights, linear_predictions
from orbit.solvers.moments import Centering
from orbit.solvers.selection import drop_zero_weights
from orbit.solvers.structure import Constant, GramStructure, Operator, Structure, unpacked

_FLOATS = [np.float64, np.float32]


class TargetsLearner(Learner):
    """Base class of linear learners; a mixin encodes targets, and a subclass solves for the coefficients.

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
    regularization_: float
    coef_: np.ndarray
    intercept_: Any

    @abstractmethod
    def _validated(self, X, y, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        """Validated features and targets."""

    def _checked(self, y: np.ndarray) -> np.ndarray:
        """Targets of a size that can be computed with."""
        return y

    @abstractmethod
    def _store_target_properties(self, y: np.ndarray, classes: np.ndarray | None = None) -> None:
        """Store the properties of the targets that :meth:`_encoded` and predictions need."""

    @abstractmethod
    def _encoded(self, y: np.ndarray) -> np.ndarray:
        """Targets as columns of numbers, float64, shape (n, k)."""

    @abstractmethod
    def _decoded(self, scores: np.ndarray) -> np.ndarray:
        """Predictions from scores, shape (n, k)."""

    @abstractmethod
    def _publish(self) -> None:
        """Set ``coef_`` and ``intercept_`` from the coefficients."""

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        """Indices of classes, shape (n,), from scores, shape (n, k)."""
        raise NotImplementedError

    @property
    def _accuracy(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """The function from scores to classes if predictions are scored by accuracy; None for the mean square error."""
        return None

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
        self._store_target_properties(y)
        X, Y, weights = self._rows(structure, X, self._encoded(y), sample_weight)
        weights, X, Y, labels = drop_zero_weights(weights, X, Y, y if self._accuracy else None)
        self._fit_rows(structure, X, Y, weights, labels)
        return self

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
        self._publish()

    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self, "path_")
        X = validate_data(self, unpacked(X)[1], reset=False, dtype=_FLOATS)
        return linear_predictions(X, self._coefficients, self._intercept)

    def predict(self, X) -> np.ndarray:
        """Predictions: class labels, shape (n,), or real numbers shaped like the targets, (n,) or (n, k)."""
        return self._decoded(self._scores(X))


class NumberTargets(MultiOutputMixin, RegressorMixin, TargetsLearner):
    """Regressors."""

    def _validated(self, X, y, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, reset=reset, dtype=_FLOATS, multi_output=True, y_numeric=True)
        return X, self._checked(y)

    def _checked(self, y: np.ndarray) -> np.ndarray:
        check_target_size(y, type(self).__name__)
        return y

    def _store_target_properties(self, y: np.ndarray, classes: np.ndarray | None = None) -> None:
        self._flat = y.ndim == 1

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        return y.reshape(len(y), -1).astype(np.float64)

    def _decoded(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, 0] if self._flat else scores

    def _publish(self) -> None:
        self.coef_ = self._coefficients[:, 0] if self._flat else self._coefficients.T
        self.intercept_ = self._intercept[0] if self._flat else self._intercept


class ClassTargets(ClassifierMixin, TargetsLearner):
    """Classifiers; a subclass encodes labels."""

    def decision_function(self, X) -> np.ndarray:
        """Scores, shape (n, k); for two classes the scores of the second, shape (n,)."""
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def _validated(self, X, y, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        return validate_data(self, X, y, reset=reset, dtype=_FLOATS)

    def _store_target_properties(self, y: np.ndarray, classes: np.ndarray | None = None) -> None:
        self.classes_ = check_classes(y if classes is None else np.asarray(classes))

    def _decoded(self, scores: np.ndarray) -> np.ndarray:
        return self.classes_[self._decide(scores)]

    @property
    def _accuracy(self) -> Callable[[np.ndarray], np.ndarray]:
        return self._decide

    def _decide(self, scores: np.ndarray) -> np.ndarray:
        return scores.argmax(1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)

    def _publish(self) -> None:
        self.coef_, self.intercept_ = self._coefficients.T, self._intercept
