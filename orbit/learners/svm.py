"""Linear support vector machines, by scikit-learn's liblinear, with lambda chosen from a path."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import LinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from orbit.learners.base import best_of_path, hold_out, regularization_path
from orbit.params import Fraction, PositiveFloat, PositiveInt, check_params
from orbit.random import RandomState, spawn
from orbit.registry import register


@register("classifier", "svm")
class SVMClassifier(ClassifierMixin, BaseEstimator):
    """A linear SVM with the squared hinge loss: (1/n) sum_i loss_i + lambda |w|^2, one against all.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda; scikit-learn's C is 1 / (2 lambda n). A list is a path chosen from
        by hold-out; None is 1e-6, 1e-5, 1e-4, 1e-3.
    validation_fraction : float in (0, 1)
        Share of the training data held out to choose lambda.
    max_iter : int >= 1
        Passes of the solver.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array, shape (k,)
    coef_, intercept_ : as in ``sklearn.svm.LinearSVC``
    regularization_ : float
    path_, path_scores_ : arrays
        The values tried and their accuracies on the validation part.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import SVMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> svm = SVMClassifier(regularization=1e-3, random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> bool(svm.score(X[1000:] / 16, y[1000:]) > 0.85)
    True
    """

    def __init__(
        self,
        regularization: PositiveFloat | list[PositiveFloat] | None = None,
        validation_fraction: Fraction = 0.2,
        max_iter: PositiveInt = 5000,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.random_state = random_state

    def check(self) -> None:
        """Raise ``ParameterError`` if a parameter has the wrong type or range."""
        check_params(self)
        self._path()

    def fit(self, X, y):
        """Fit to ``X``, shape (n, d), and class labels ``y``, shape (n,)."""
        self.check()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"a classifier needs at least 2 classes, found one class: {self.classes_[0]!r}")
        seed = spawn(self.random_state, 1)[0]
        self.path_ = self._path()
        self.regularization_, self.path_scores_ = self._choose(X, y, seed)
        self.estimator_ = self._solver(self.regularization_, len(X), seed).fit(X, y)
        self.coef_, self.intercept_ = self.estimator_.coef_, self.estimator_.intercept_
        self.n_iter_ = self.estimator_.n_iter_
        return self

    def decision_function(self, X) -> np.ndarray:
        """Scores, shape (n, k), or (n,) for two classes."""
        check_is_fitted(self)
        return self.estimator_.decision_function(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))

    def predict(self, X) -> np.ndarray:
        """Class labels, shape (n,)."""
        check_is_fitted(self)
        return self.estimator_.predict(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))

    def _path(self) -> np.ndarray:
        return regularization_path([1e-6, 1e-5, 1e-4, 1e-3] if self.regularization is None else self.regularization)

    def _choose(self, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, np.ndarray]:
        if len(self.path_) == 1:
            return float(self.path_[0]), np.full(1, np.nan)
        fit, validation = hold_out(len(X), self.validation_fraction, y, seed)
        if len(np.unique(y[fit])) < 2:
            return float(self.path_[-1]), np.full(len(self.path_), np.nan)

        def score(regularization: float) -> float:
            solver = self._solver(regularization, len(fit), seed).fit(X[fit], y[fit])
            return float(solver.score(X[validation], y[validation]))

        return best_of_path(self.path_, score)

    def _solver(self, regularization: float, n: int, seed: int) -> LinearSVC:
        return LinearSVC(C=1 / (2 * regularization * n), max_iter=self.max_iter, random_state=seed)
