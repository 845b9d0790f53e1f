"""Ridge regression and classification."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from orbit.core.params import Fraction, PositiveFloat
from orbit.core.random import RandomState
from orbit.learners.base import ClassWeight
from orbit.learners.discriminant import discriminant
from orbit.learners.linear import LeastSquaresClassifier, LeastSquaresLearner, LeastSquaresRegressor
from orbit.learners.targets import one_against_all
from orbit.registry import register
from orbit.solvers.passes import Batches
from orbit.solvers.ridge import Solution


@dataclass(eq=False, repr=False)
class Ridge(LeastSquaresLearner):
    """Independent outputs: fits kernel values too, and streams in passes whose second moments do not fit in memory."""

    regularization: PositiveFloat | list[PositiveFloat] | None = None
    selection: Literal["loo", "gcv", "hold_out"] = "loo"
    validation_fraction: Fraction = 0.2
    random_state: RandomState = None

    takes_gram = True
    fits_tensors = True

    def fit_passes(self, batches: Batches, memory: float, classes: np.ndarray | None = None):
        """Fit to a stream in many passes, see :meth:`~orbit.solvers.ridge.RidgeSolver.fit_passes`.

        Parameters
        ----------
        batches : callable
            Returns an iterator over ``(X, y, weights)``, shapes (m, d), (m,) or (m, k) and (m,); the same batches at
            every call. ``X`` may be overwritten.
        memory : float
            Budget in bytes for everything held between batches.
        classes : array or None
            All labels, for classifiers.
        """
        self.check()
        self._stream, self._chosen_by = None, "gcv"
        X, y, _ = next(batches())
        self.n_features_in_, dtype = X.shape[1], X.dtype
        self._targets = self._targets_of(y, classes)
        solution = self._solver().fit_passes(lambda: ((X, self._encoded(y), w) for X, y, w in batches()), memory)
        self._set_solution(solution, dtype)
        return self


@register("regressor", "ridge")
class RidgeRegressor(Ridge, LeastSquaresRegressor):
    """Regularised least squares with lambda chosen from a path by one factorisation.

    Minimises (1/n) sum_i w_i |W^T x_i + b - y_i|^2 + lambda |W|^2, the sample weights w
    scaled to a mean of one.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda. A list is a path to choose from; None is 29 values from 1e-13 to 10.
    selection : {"loo", "gcv", "hold_out"}
        How lambda is chosen, always on training data only: by the leave-one-out error,
        by generalised cross-validation, which is wrong where leverages differ by much, or
        on a validation part. See :func:`~orbit.solvers.selection.LeaveOneOut`; equal rows
        are left out together, except those of a stream. A stream read in passes takes ``gcv``.
    validation_fraction : float in (0, 1)
        Share of the training data held out for ``hold_out``, or in a fold of clusters.
    random_state : int, RandomState or None
        Seed of the hold-out split.

    Attributes
    ----------
    coef_ : array, shape (d,) or (k, d)
    intercept_ : float or array, shape (k,)
    regularization_ : float
        The lambda in use.
    path_, path_scores_ : arrays
        The values tried and their scores, higher is better.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import RidgeRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> RidgeRegressor(regularization=1e-12).fit(X, 2 * X[:, 0] + 1).predict([[10.0]]).round(3)
    array([21.])
    """


@register("classifier", "ridge")
class RidgeClassifier(Ridge, LeastSquaresClassifier):
    """Least squares on one-against-all targets of -1 and 1, lambda chosen from a path by one factorisation.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda, in (1/n) sum_i w_i |W^T x_i + b - y_i|^2 + lambda |W|^2, the sample
        weights w scaled to a mean of one. A list is a path to choose from; None is
        29 values from 1e-13 to 10.
    selection : {"loo", "gcv", "hold_out"}
        How lambda is chosen, always on training data only: by the squared
        leave-one-out error, by generalised cross-validation, or by the accuracy on a
        validation part; see ``RidgeRegressor``.
    validation_fraction : float in (0, 1)
        Share of the training data held out for ``hold_out``, or in a fold of clusters.
    class_weight : "balanced", dict or None
        ``balanced`` weighs points so that all classes count the same, for classes that are rare; a mapping has the
        weights of classes.
    decision : {"auto", "largest"}
        The class of a point. ``largest``: that of the largest score. ``auto``: if lambda is chosen by leave-one-out
        errors, and linear discriminant analysis of the leave-one-out predictions is right for clearly more points, that
        of the analysis: for classes that lie on a line, such as degrees or sizes
        (:func:`~orbit.learners.discriminant.discriminant`). It needs three classes or more.
    random_state : int, RandomState or None
        Seed of the hold-out split.

    Attributes
    ----------
    classes_ : array, shape (k,)
    decision_ : {"largest", "discriminant"}
        The rule in use; ``coef_`` and ``intercept_`` give its scores.
    coef_ : array, shape (1 or k, d)
    intercept_ : array, shape (1 or k,)
    regularization_ : float
        The lambda in use.
    path_, path_scores_ : arrays
        The values tried and their scores, higher is better.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import RidgeClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(RidgeClassifier().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _code = staticmethod(one_against_all)

    def __init__(
        self,
        regularization: PositiveFloat | list[PositiveFloat] | None = None,
        selection: Literal["loo", "gcv", "hold_out"] = "loo",
        validation_fraction: Fraction = 0.2,
        class_weight: ClassWeight = None,
        decision: Literal["auto", "largest"] = "auto",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(regularization, selection, validation_fraction, random_state)
        self.class_weight = class_weight
        self.decision = decision

    def _set_solution(self, solution: Solution, dtype: np.dtype) -> None:
        left_out = solution.left_out if self.decision == "auto" and len(self.classes_) > 2 else None
        rule = None if left_out is None else discriminant(left_out)
        self.decision_ = "largest" if rule is None else "discriminant"
        if rule is not None:
            A, c = rule
            solution = replace(solution, W=solution.W @ A, b=solution.b @ A + c)
        super()._set_solution(solution, dtype)
