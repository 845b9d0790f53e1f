"""Kernel ridge regression."""

from orbit.learners.linear import LeastSquaresRegressor
from orbit.learners.ridge import Ridge
from orbit.registry import register


@register("regressor", "krr")
class KernelRidgeRegressor(Ridge, LeastSquaresRegressor):
    """Kernel ridge regression on the kernel <psi(x), psi(z)> of the features, with lambda chosen from a path.

    f(x) = m + k(x, X) (K + n lambda I)^-1 (y - m), with m the mean of the
    targets: scikit-learn's ``KernelRidge`` with alpha = n lambda on centred targets.
    On features of ``Exact`` the kernel is the orbit-averaged kernel itself. It differs from
    ``RidgeRegressor`` in the intercept, whose fit there also centres the features and
    so the kernel. One factorisation, of the second moments or of the kernel matrix,
    whichever is smaller, serves every lambda; points may be weighted as in
    ``RidgeRegressor``.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda. A list is a path to choose from; None is 29 values from 1e-13 to 10.
    selection : {"loo", "gcv", "hold_out"}
        How lambda is chosen, always on training data only: by leave-one-out or
        generalised cross-validation (both with m as given), or on a validation part; see
        ``RidgeRegressor``.
    validation_fraction : float in (0, 1)
        Share of the training data held out for ``hold_out``.
    random_state : int, RandomState or None
        Seed of the hold-out split.

    Attributes
    ----------
    coef_ : array, shape (d,) or (k, d)
    intercept_ : float or array, shape (k,)
        m.
    regularization_ : float
        The lambda in use.
    path_, path_scores_ : arrays
        The values tried and their scores, higher is better.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.approx import Exact
    >>> from orbit.learners import KernelRidgeRegressor
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> exact = Exact().fit(X)
    >>> krr = KernelRidgeRegressor().fit(exact.transform(X), np.sin(X[:, 0]))
    >>> bool(abs(krr.predict(exact.transform([[1.0]]))[0] - np.sin(1.0)) < 1e-3)
    True
    """

    centering = "targets"
