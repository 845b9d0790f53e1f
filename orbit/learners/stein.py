"""Least squares with operator-valued features, in closed form.

Both learners minimise (1/n) sum_i w_i |P(x_i) theta + b - y_i|^2 + lambda |theta|^2 (Brault et al. 2016,
eq. 10, whose weights w are one; its eq. 11 and the condition under it drop the 1/n) from
second moments of the scalar features alone, which can be summed over batches of rows.
Sample weights are scaled to a mean of one, as in ridge regression.
"""

from dataclasses import dataclass
from typing import Literal

from orbit.core.params import Fraction, PositiveFloat
from orbit.core.random import RandomState
from orbit.learners.linear import LeastSquaresClassifier, LeastSquaresLearner, LeastSquaresRegressor
from orbit.learners.targets import one_hot
from orbit.registry import register


@dataclass(eq=False, repr=False)
class _Stein(LeastSquaresLearner):
    regularization: PositiveFloat | list[PositiveFloat] | None = None
    selection: Literal["gcv", "hold_out", "two_fold"] = "gcv"
    validation_fraction: Fraction = 0.2
    fit_intercept: bool = True
    random_state: RandomState = None
    operator_valued = True


@register("regressor", "stein")
class SteinRegressor(_Stein, LeastSquaresRegressor):
    """Least squares with an operator-valued kernel in closed form, every lambda of a path from one factorisation.

    Minimises (1/n) sum_i w_i |Phi(x_i)^T theta + b - y_i|^2 + lambda |theta|^2, the sample
    weights w scaled to a mean of one, on features of ``OperatorRandomFourier`` or
    ``OperatorExact``, which include their operator. On other features outputs are
    independent, and this is ridge regression.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda. A list is a path to choose from; None is 29 values from 1e-13 to 10.
    selection : {"gcv", "hold_out", "two_fold"}
        How lambda is chosen, on training data only. ``two_fold`` is cross-validation with two halves.
    validation_fraction : float in (0, 1)
        Share of the training data held out for ``hold_out``.
    fit_intercept : bool
        Add a constant b, not regularised. Equivariant features never have one.
    random_state : int, RandomState or None
        Seed of the hold-out split.

    Attributes
    ----------
    coef_ : array, shape (d,) or (k, d), of the scalar features
    intercept_ : float or array, shape (k,)
    regularization_ : float
    path_, path_scores_ : arrays
    output_matrix_ : array, shape (k, k), for decomposable kernels
        The matrix A in use.

    References
    ----------
    Brault, Heinonen and d'Alché-Buc, 2016, section 4.1 and appendix D.1.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import SteinRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> SteinRegressor(regularization=1e-12).fit(X, 2 * X[:, 0] + 1).predict([[10.0]]).round(3)
    array([21.])
    """


@register("classifier", "stein")
class SteinClassifier(_Stein, LeastSquaresClassifier):
    """Least squares on one-hot targets with an operator-valued kernel, in closed form.

    With the kernel ``Decomposable(output="simplex")`` classes are coded by the corners
    of a simplex, as Brault et al. 2016, section 4.2 does for MNIST; other kernels are for regressors.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda, as for the regressor; None is 29 values from 1e-13 to 10.
    selection : {"gcv", "hold_out", "two_fold"}
        How lambda is chosen: squared error by generalised cross-validation, or the
        accuracy on a validation part, or on two halves in turn.
    validation_fraction : float in (0, 1)
    fit_intercept : bool
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array, shape (k,)
    coef_, intercept_ : arrays, shapes (k, d) and (k,)
    regularization_ : float
    path_, path_scores_ : arrays
    output_matrix_ : array, shape (k, k)

    References
    ----------
    Mroueh, Poggio, Rosasco and Slotine, "Multiclass Learning with Simplex Coding", 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import SteinClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(SteinClassifier().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.85)
    True
    """

    _code = staticmethod(one_hot)
