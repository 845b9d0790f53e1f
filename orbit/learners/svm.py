"""Support vector machines, by scikit-learn's liblinear and libsvm, with lambda chosen from a path."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics.pairwise import linear_kernel
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from orbit.core.params import Fraction, NonNegativeFloat, PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.learners.base import ClassWeight, SolverClassifier, SolverLearner
from orbit.learners.span import InSpan
from orbit.registry import register


class _LinearSVC(InSpan, LinearSVC):
    pass


class _WeightedScaler(StandardScaler):
    """Scales by mean and standard deviation of weighted rows; ``TransformedTargetRegressor`` passes no weights on."""

    def __init__(self, weights: np.ndarray | None = None) -> None:
        super().__init__()
        self.weights = weights

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y, self.weights if sample_weight is None else sample_weight)


@register("classifier", "svm")
@dataclass(eq=False, repr=False)
class SVMClassifier(SolverClassifier):
    """A linear SVM with the squared hinge loss: (1/n) sum_i loss_i + lambda (|w|^2 + b^2), one against all.

    The intercept b is regularised with the weights, as liblinear does.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda; scikit-learn's C is 1 / (2 lambda n). A list is a path chosen from
        by validation; None is 1e-6, 1e-5, ..., 0.1.
    validation_fraction : float in (0, 1)
        Share of the training data in a validation part. Of up to 1,000 points all parts are validated in turn,
        stratified and repeated, of more points one.
    max_iter : int >= 1
        Passes of the solver.
    class_weight : "balanced", dict or None
        ``balanced`` weighs points so that all classes count the same, for classes that are rare; a mapping has the
        weights of classes.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array, shape (k,)
    coef_, intercept_ : as in ``sklearn.svm.LinearSVC``
    regularization_ : float
    path_, path_scores_ : arrays
        The values tried and their mean accuracies on the validation parts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import SVMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> svm = SVMClassifier(regularization=1e-3, random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> bool(svm.score(X[1000:] / 16, y[1000:]) > 0.85)
    True
    """

    regularization: PositiveFloat | list[PositiveFloat] | None = None
    validation_fraction: Fraction = 0.2
    max_iter: PositiveInt = 5000
    class_weight: ClassWeight = None
    random_state: RandomState = None

    published = ("coef_", "intercept_", "n_iter_")

    def _solver(self, value: float, y: np.ndarray, weights: np.ndarray | None, seed: int) -> LinearSVC:
        # the dual solver, scikit-learn's choice for fewer rows than columns, takes five times as long for small lambda
        return _LinearSVC(C=1 / (2 * value * len(y)), dual=False, max_iter=self.max_iter, random_state=seed)


@register("classifier", "kernel_svm")
@dataclass(eq=False, repr=False)
class KernelSVMClassifier(SolverClassifier):
    """A support vector machine on the Gram matrix of features: (1/n) sum_i hinge_i + lambda |f|^2, one against one.

    The Gram matrix of n training points is formed before the solver starts, so
    time and memory grow with n^2 and hardly with the number of features. On
    features of ``Exact`` it is the orbit-averaged kernel itself; on features of an
    approximation, the approximate kernel.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda; scikit-learn's C is 1 / (2 lambda n). A list is a path chosen from
        by validation; None is 1e-6, 1e-5, ..., 0.1.
    max_iter : int >= 1
        Steps of the solver, each of two points.
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
    estimator_ : the fitted ``sklearn.svm.SVC``
    regularization_ : float
    path_, path_scores_ : arrays
        The values and their mean accuracies on the validation parts; NaN as for :class:`KernelSVMRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import KernelSVMClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> svm = KernelSVMClassifier(regularization=1e-4).fit(X[:500] / 16, y[:500])
    >>> bool(svm.score(X[500:] / 16, y[500:]) > 0.85)
    True
    """

    regularization: PositiveFloat | list[PositiveFloat] | None = None
    max_iter: PositiveInt = 200_000
    validation_fraction: Fraction = 0.2
    class_weight: ClassWeight = None
    random_state: RandomState = None

    published = ("intercept_", "n_iter_")

    def _solver(self, value: float, y: np.ndarray, weights: np.ndarray | None, seed: int) -> SVC:
        # a callable kernel is evaluated once and handed to libsvm as a matrix
        return SVC(C=1 / (2 * value * len(y)), kernel=linear_kernel, break_ties=True, max_iter=self.max_iter)


@register("regressor", "kernel_svm")
@dataclass(eq=False, repr=False)
class KernelSVMRegressor(MultiOutputMixin, RegressorMixin, SolverLearner):
    """Support vector regression on the Gram matrix of features.

    Minimises (1/n) sum_i max(0, |f(x_i) - y_i| - epsilon) + lambda |f|^2 over
    targets scaled to mean 0 and standard deviation 1, each output separately.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda; scikit-learn's C is 1 / (2 lambda n). A list is a path chosen from
        by validation; None is 1e-6, 1e-5, ..., 0.1.
    epsilon : float >= 0
        Half the width of the zone without loss, in standard deviations of the targets.
    max_iter : int >= 1
        Steps of the solver, each of two points.
    validation_fraction : float in (0, 1)
        Share of the training data in a validation part. Of up to 1,000 points all parts are validated in turn,
        stratified and repeated, of more points one.
    random_state : int, RandomState or None

    Attributes
    ----------
    estimator_ : the fitted ``sklearn.compose.TransformedTargetRegressor`` around ``sklearn.svm.SVR``
    n_iter_ : int
        Steps of the solver, the largest number over outputs.
    regularization_ : float
    path_, path_scores_ : arrays
        The values and their negative mean square errors on the validation parts; NaN for values that are not tried,
        because the solver does not converge on the first part and a larger one is better there.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import KernelSVMRegressor
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> svm = KernelSVMRegressor(regularization=1e-4, epsilon=0.01).fit(X, 3 * X[:, 0] + 1)
    >>> bool(abs(svm.predict([[0.5]])[0] - 2.5) < 0.05)
    True
    """

    regularization: PositiveFloat | list[PositiveFloat] | None = None
    epsilon: NonNegativeFloat = 0.01
    max_iter: PositiveInt = 200_000
    validation_fraction: Fraction = 0.2
    random_state: RandomState = None

    def fit(self, X, y, sample_weight=None, clusters=None):
        """Fit to ``X``, shape (n, d), ``y``, shape (n,) or (n, k), and weights, shape (n,); None is equal weights.

        Points of equal ``clusters``, shape (n,), are in one validation part.
        """
        self._fit(X, y, sample_weight, clusters)
        fitted = self.estimator_.regressor_
        solvers = fitted.estimators_ if isinstance(fitted, MultiOutputRegressor) else [fitted]
        self.n_iter_ = max(int(np.max(solver.n_iter_)) for solver in solvers)
        return self

    def _solver(self, value: float, y: np.ndarray, weights: np.ndarray | None, seed: int) -> TransformedTargetRegressor:
        C = 1 / (2 * value * len(y))
        solver: Any = SVR(C=C, epsilon=self.epsilon, kernel=linear_kernel, max_iter=self.max_iter)
        if y.ndim == 2:
            solver = MultiOutputRegressor(solver)
        return TransformedTargetRegressor(solver, transformer=_WeightedScaler(weights))
