"""Nearest neighbours in feature space, by scikit-learn."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from orbit.core.params import Fraction, PositiveInt
from orbit.core.parts import Split
from orbit.core.random import RandomState
from orbit.learners.base import SolverLearner
from orbit.registry import register

Vote = Literal["uniform", "distance"]


@dataclass(eq=False, repr=False)
class _Neighbors(SolverLearner):
    """Base class of the classifier and the regressor."""

    n_neighbors: PositiveInt | list[PositiveInt] | None = 5
    vote: Vote = "uniform"
    validation_fraction: Fraction = 0.2
    random_state: RandomState = None

    path_parameter = "n_neighbors"
    default_path = (1, 3, 5, 9, 15)
    value_type = int

    def fit(self, X, y, clusters=None):
        """Fit to ``X``, shape (n, d), and labels ``y``, shape (n,), or real targets, shape (n,) or (n, k).

        Points of equal ``clusters``, shape (n,), are in one validation part.
        """
        return self._fit(X, y, clusters=clusters)

    def _choose(self, X, y, weights, parts: list[Split], seed: int) -> tuple[float, np.ndarray]:
        """Choose among the values of at most the number of points, also in the parts fitted for the selection."""
        most = min((len(fit) for fit, _ in parts), default=len(X))
        self.path_ = self.path_[self.path_ <= most]
        if len(self.path_) == 0:
            expected = f"at most {most}, the number of points to learn from (n_samples={len(X)})"
            raise self.wrong("n_neighbors", expected)
        return super()._choose(X, y, weights, parts, seed)


@register("classifier", "knn")
class NeighborsClassifier(ClassifierMixin, _Neighbors):
    """The vote of the nearest training points by Euclidean distance of features (Mroueh et al. 2015, theorem 2).

    Distances of orbit-averaged features are those of the kernel's mean embeddings of the orbits.

    Parameters
    ----------
    n_neighbors : int >= 1, list of them, or None
        A list is a path chosen from by validation; None is 1, 3, 5, 9, 15.
    vote : {"uniform", "distance"}
        Equal weights of the neighbours, or weights inverse to their distances.
    validation_fraction : float in (0, 1)
        Share of the training data in a validation part. Of up to 1,000 points all parts are validated in turn,
        stratified and repeated, of more points one.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array, shape (k,)
    n_neighbors_ : int
    path_, path_scores_ : arrays
        The numbers tried and their accuracies on the validation parts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import NeighborsClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(NeighborsClassifier(n_neighbors=3).fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.9)
    True
    """

    def predict_proba(self, X) -> np.ndarray:
        """Shares of the vote, shape (n, k)."""
        X = self._points(X)
        return self.estimator_.predict_proba(X)

    def predict_with_probabilities(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Classes, shape (n,), and shares of the vote, shape (n, k). The first class of the largest share."""
        shares = self.predict_proba(X)  # the search for neighbours takes most of the time
        return self.classes_[shares.argmax(1)], shares

    def _solver(self, value: int, y: np.ndarray, weights: np.ndarray | None, seed: int) -> Any:
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier(value, weights=self.vote)


@register("regressor", "knn")
class NeighborsRegressor(MultiOutputMixin, RegressorMixin, _Neighbors):
    """The mean target of the nearest training points by Euclidean distance of features.

    Parameters
    ----------
    n_neighbors : int >= 1, list of them, or None
        A list is a path chosen from by validation; None is 1, 3, 5, 9, 15.
    vote : {"uniform", "distance"}
        Equal weights of the neighbours, or weights inverse to their distances.
    validation_fraction : float in (0, 1)
        Share of the training data in a validation part. Of up to 1,000 points all parts are validated in turn,
        stratified and repeated, of more points one.
    random_state : int, RandomState or None

    Attributes
    ----------
    n_neighbors_ : int
    path_, path_scores_ : arrays
        The numbers tried and the negative mean square errors on the validation parts.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import NeighborsRegressor
    >>> X = np.arange(10.0)[:, None]
    >>> NeighborsRegressor(n_neighbors=3).fit(X, X[:, 0]).predict([[4.1]])
    array([4.])
    """

    def _solver(self, value: int, y: np.ndarray, weights: np.ndarray | None, seed: int) -> Any:
        from sklearn.neighbors import KNeighborsRegressor

        return KNeighborsRegressor(value, weights=self.vote)
