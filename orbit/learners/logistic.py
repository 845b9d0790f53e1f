"""Logistic regression, by scikit-learn, with lambda chosen from a path."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from orbit.core.params import Fraction, PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.learners.base import ClassWeight, SolverClassifier
from orbit.learners.span import InSpan
from orbit.registry import register


class _LogisticRegression(InSpan, LogisticRegression):
    pass


@register("classifier", "logistic")
@dataclass(eq=False, repr=False)
class LogisticClassifier(SolverClassifier):
    """Multinomial logistic regression: (1/n) sum_i -log p(y_i | x_i) + lambda |W|^2, with probabilities.

    The intercept is not regularised.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda; scikit-learn's C is 1 / (2 lambda n). A list is a path chosen from
        by the log loss on validation parts; None is 1e-8, 1e-7, ..., 0.1.
    tolerance : float > 0
        The solver (L-BFGS) stops where no entry of the gradient is larger.
    max_iter : int >= 1
        Iterations of the solver.
    validation_fraction : float in (0, 1)
        Share of the training data in a validation part. Of up to 1,000 points all parts are validated in turn,
        stratified and repeated, of more points one.
    class_weight : "balanced", dict or None
        ``balanced`` weighs points so that all classes count the same, for classes that are rare; a mapping has the
        weights of classes.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array, shape (k,)
    coef_, intercept_ : as in ``sklearn.linear_model.LogisticRegression``
    regularization_ : float
    path_, path_scores_ : arrays
        The values tried and their negative log losses on the validation parts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import LogisticClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> logistic = LogisticClassifier(regularization=1e-4).fit(X[:500] / 16, y[:500])
    >>> logistic.predict_proba(X[500:] / 16).shape
    (1297, 10)
    """

    regularization: PositiveFloat | list[PositiveFloat] | None = None
    tolerance: PositiveFloat = 1e-4
    max_iter: PositiveInt = 2000
    validation_fraction: Fraction = 0.2
    class_weight: ClassWeight = None
    random_state: RandomState = None

    default_path = tuple(10.0**k for k in range(-8, 0))
    # Where classes can be separated, the log loss levels off as lambda falls.
    negligible_score = 1e-3
    published = ("coef_", "intercept_", "n_iter_")

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities of the classes, shape (n, k)."""
        X = self._points(X)
        return self.estimator_.predict_proba(X)

    def _solver(self, value: float, y: np.ndarray, weights: np.ndarray | None, seed: int) -> LogisticRegression:
        C = 1 / (2 * value * len(y))
        return _LogisticRegression(C=C, tol=self.tolerance, max_iter=self.max_iter, random_state=seed)

    def _criterion(self) -> str:
        return f"{super()._criterion()}_log_loss"

    def _score(self, solver, X, y, weights) -> float:
        """The negative log loss, which tells apart fits of one accuracy; NaN without a point of a class of the fit.

        Points of other classes are left out: they have probability zero in every fit.
        """
        known = np.isin(y, solver.classes_)
        weights = np.ones(len(y)) if weights is None else weights
        if not weights[known].any():
            return np.nan
        probabilities = solver.predict_proba(X[known])
        return -float(log_loss(y[known], probabilities, sample_weight=weights[known], labels=solver.classes_))
