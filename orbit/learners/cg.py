"""Least squares with operator-valued features by conjugate gradients."""

from dataclasses import dataclass

from sklearn.base import MultiOutputMixin, RegressorMixin

from orbit.core.params import Fraction, PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.learners.linear import LinearLearner
from orbit.registry import register
from orbit.solvers.matrix_free import ConjugateGradients


@register("regressor", "cg")
@dataclass(eq=False, repr=False)
class CGRegressor(MultiOutputMixin, RegressorMixin, LinearLearner):
    """Least squares with an operator-valued kernel by preconditioned conjugate gradients, matrix free.

    The objective of :class:`~orbit.learners.SteinRegressor`, for any operator and any number of
    parameters: memory is that of the second moments of the scalar features, or of the
    features themselves if there are fewer rows than columns.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda. A list is a path to choose from by validation; each solution is the starting
        point of the next. None is 1e-9, 1e-8 and so on to 0.1.
    validation_fraction : float in (0, 1)
        Share of the training data in a validation part. Of up to 1,000 points all parts are validated in turn and
        repeated, of more points one.
    fit_intercept : bool
        Add a constant b, not regularised. Equivariant features never have one.
    rank : int >= 1
        Number of directions that the preconditioner inverts.
    max_iter : int >= 1
        Iterations for one lambda; a warning names the values that need more.
    tolerance : float > 0
        Stop when the residual of the normal equations is below this share of their right-hand side.
    random_state : int, RandomState or None
        Seed of the preconditioner and of the hold-out split.

    Attributes
    ----------
    coef_, intercept_, regularization_, path_, path_scores_ : as for :class:`~orbit.learners.SteinRegressor`
    n_iter_ : int
        Iterations of the last fit, over all lambdas.

    References
    ----------
    Brault, Heinonen and d'Alché-Buc, 2016, appendix D.1, Tables 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import CGRegressor
    >>> X = np.arange(6.0)[:, None]
    >>> CGRegressor(regularization=1e-9).fit(X, 2 * X[:, 0] + 1).predict([[10.0]]).round(3)
    array([21.])
    """

    regularization: PositiveFloat | list[PositiveFloat] | None = None
    validation_fraction: Fraction = 0.2
    fit_intercept: bool = True
    rank: PositiveInt = 200
    max_iter: PositiveInt = 500
    tolerance: PositiveFloat = 1e-10
    random_state: RandomState = None

    operator_valued = True
    default_path = tuple(10.0**k for k in range(-9, 0))  # a short one: each value takes an iterative solve

    def _solver(self) -> ConjugateGradients:
        return ConjugateGradients(
            self._path(),
            self.validation_fraction,
            "both" if self.fit_intercept else "none",
            self.rank,
            self.max_iter,
            self.tolerance,
            self.random_state,
        )

    def _set_solution(self, solution, dtype) -> None:
        self.n_iter_ = solution.n_iter
        super()._set_solution(solution, dtype)
