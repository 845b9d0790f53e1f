"""Choosing lambda from a path: generalised cross-validation, leave-one-out, hold-out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from orbit.core.errors import InputError
from orbit.solvers.base import is_large
from orbit.solvers.factorisations import LEVERAGES_BY_EIGENVALUES
from orbit.solvers.least_squares import ABOVE_ROUNDING, LeastSquares
from orbit.solvers.moments import EPS, FLOAT32_ERROR
from orbit.solvers.repeats import Repeats

# The default values of lambda: from near interpolation, the limit of float64 with features of norm one, to predicting
# the mean.
DEFAULT_PATH = tuple(10.0 ** np.arange(-13, 1.1, 0.5))

# The least share of the degrees of freedom, of all points or of one, that a fit has to leave over. Scores divide
# squared residuals by its square, and those of rows have rounding errors around 1e-16 of the targets' power.
_LEAST_SHARE_LEFT = 1e-6

# Rows whose leverages are computed; of more rows this many are drawn at random. It takes a quarter of the time of a
# fit to 12,000 rows.
SAMPLED_ROWS = 1000

# With fewer values every choice is an end of the path.
_FEWEST_VALUES = 3

Score = Callable[[float], float]


def best_of_path(path: np.ndarray, score: Score, negligible: float = 0.0) -> tuple[float, np.ndarray]:
    """The value of an ascending path with the highest score, and all scores.

    The largest of several whose scores are within ``negligible`` of the highest. A single value is not scored: its
    score is NaN.
    """
    if len(path) == 1:
        return float(path[0]), np.full(1, np.nan)
    scores = np.array([score(float(value)) for value in path])
    known = np.where(np.isnan(scores), -np.inf, scores)
    return float(path[np.flatnonzero(known >= known.max() - negligible)[-1]]), scores


def gcv_scores(problem: LeastSquares, repeats: Repeats | None = None) -> Score:
    """The generalised cross-validation scores of a factorised problem.

    Parameters
    ----------
    repeats : Repeats or None
        The repeated rows, which are left out together: a row is predicted without error
        from its copy, so that any interpolation of rows that have copies would be the
        best. Invariant features of points on one orbit are such rows. None takes all rows
        as different.
    """
    if repeats is None:
        return lambda regularization: gcv(problem.n, *problem.errors_and_freedom(regularization))
    within = problem.operator.powers(repeats.within)
    # outputs without power, as targets of low rank have in the basis of their covariance, are rounding errors
    repeated = within > EPS * within.sum()

    def score(regularization: float) -> float:
        errors, freedom = problem.errors_and_freedom(regularization, repeats.distinct)
        left = errors - within
        # residuals have a relative error of rounding * scale / lambda, and most of them are deviations within groups
        if (left <= ABOVE_ROUNDING * problem.rounding * problem.scale / regularization * within)[repeated].any():
            return -np.inf
        return gcv(repeats.distinct, np.maximum(left, problem.hidden), freedom)

    return score


def gcv(n: int, errors: np.ndarray, freedom: np.ndarray) -> float:
    """The negative generalised cross-validation score (Golub, Heath and Wahba 1979), summed over outputs.

    Minus infinity if the fit interpolates, so that its score would be rounding errors.

    Parameters
    ----------
    n : number of rows
    errors : mean squared residual of each output, shape (k,)
    freedom : degrees of freedom of each output, with its intercept, shape (k,)
    """
    left = 1 - freedom / n
    if (left < _LEAST_SHARE_LEFT).any():
        return -np.inf
    return -float((errors / np.square(left)).sum())


@dataclass(frozen=True)
class LeftOutRows:
    """Predictions of rows by a fit to all others: of at most ``SAMPLED_ROWS``, and one of each group of equal rows.

    Attributes
    ----------
    predicted, targets : arrays, shape (m, p)
    weights : array, shape (m,)
    """

    predicted: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Solution:
    """A linear model of features, and how its lambda was chosen.

    Attributes
    ----------
    W, b : arrays, shapes (F, k) and (k,)
        Predictions are ``X W + b``.
    value : lambda
    path, scores : arrays, shape (l,)
        The values tried and their scores, higher is better; NaN for a single one.
    below_float32 : bool
        Whether float32 products may hide a better lambda, see :class:`Choice`.
    output_matrix : array, shape (k, k), or None
        The matrix in use of a decomposable kernel.
    n_iter : int
        Iterations, of an iterative solver.
    error : float or None
        The relative error of a solution that was refined, as measured; None for others.
    residual : float or None
        The norm of what an iterative solver has left of its right-hand side, as a share of it; None for others.
    left_out : LeftOutRows or None
        Leave-one-out predictions, if lambda was chosen by them.
    """

    W: np.ndarray
    b: np.ndarray
    value: float
    path: np.ndarray
    scores: np.ndarray
    below_float32: bool = False
    output_matrix: np.ndarray | None = None
    n_iter: int = 0
    error: float | None = None
    residual: float | None = None
    left_out: LeftOutRows | None = None


@dataclass(frozen=True)
class Choice:
    """A value of lambda, the path it was chosen from with its scores, and the factorised problem.

    Attributes
    ----------
    below_float32 : bool
        Whether the value is the smallest that float32 products resolve, or its scores are within their rounding errors,
        so that another one may be better.
    left_out : LeftOutRows or None
        Leave-one-out predictions at the value, if it was chosen by them.
    """

    value: float
    path: np.ndarray
    scores: np.ndarray
    problem: LeastSquares
    below_float32: bool = False
    left_out: LeftOutRows | None = None


def in_float32(dtype: np.dtype, size: float, path: np.ndarray, trim: bool) -> bool:
    """Whether products may be taken in float32: for float32 rows, large systems, no given lambda below the floor."""
    return dtype == np.float32 and is_large(size) and (trim or bool(path[0] >= FLOAT32_ERROR))


def choose(
    problem: LeastSquares,
    path: np.ndarray,
    trim: bool,
    float32: bool,
    scorer: Callable[[LeastSquares], Score],
    leverages: bool = False,
) -> Choice:
    """Factorise a problem and choose lambda.

    Parameters
    ----------
    problem : not factorised
    path : ascending values
    trim : whether to drop values too small for the precision of the products (the default path)
    float32 : whether the products were taken in float32
    scorer : the scores of a factorised problem, higher is better
    leverages : whether the scores take those of rows
    """
    floor = max(problem.smallest_resolved, FLOAT32_ERROR * problem.scale if float32 else 0.0)
    tried = path[path >= min(floor, path[-1])] if trim else path
    by_eigenvalues = leverages and len(tried) > 1 and problem.size <= LEVERAGES_BY_EIGENVALUES
    problem.factorise(tried, by_eigenvalues, float32)
    value, scores, left_out = float(tried[0]), np.full(len(tried), np.nan), None
    if len(tried) > 1:
        score = scorer(problem)
        value, scores = best_of_path(tried, _reject_indefinite(score))
        if isinstance(score, LeaveOneOut) and np.isfinite(scores).any():
            left_out = score.rows(value)
    is_least = path[0] < value and not np.isfinite(scores[tried < value]).any()
    hidden = float32 and len(tried) > 1 and not problem.resolves(value)
    return Choice(value, tried, scores, problem, float32 and (value < floor or is_least or hidden), left_out)


def _reject_indefinite(score: Score) -> Score:
    """The score, or minus infinity for values at which rounding makes the matrix indefinite."""

    def finite(regularization: float) -> float:
        try:
            return score(regularization)
        except np.linalg.LinAlgError:
            return -np.inf

    return finite


def end_of_path(path: np.ndarray, scores: np.ndarray, value: float) -> Literal["smallest", "largest"] | None:
    """Which end of an ascending path the chosen value is, if it is one and better than the next value; else None.

    None also for fewer than three values, of which every choice is an end.

    >>> end_of_path(np.array([1.0, 2.0, 3.0]), np.array([0.7, 0.6, 0.1]), 1.0)
    'smallest'
    >>> end_of_path(np.array([1.0, 2.0, 3.0]), np.array([0.6, 0.7, 0.7]), 3.0)
    """
    if len(path) < _FEWEST_VALUES or path[0] < value < path[-1] or not np.isfinite(scores).any():
        return None
    at, inside = (0, 1) if value <= path[0] else (-1, -2)
    if scores[at] <= scores[inside]:
        return None
    return "smallest" if at == 0 else "largest"


def warn_at_end(
    path: np.ndarray,
    scores: np.ndarray,
    value: float,
    name: str = "regularization",
    grid: str | None = None,
) -> None:
    """Issue a ``UserWarning`` if the value chosen from an ascending path is an end of it by :func:`end_of_path`.

    ``grid`` is the name of the setting that lists the values; None is the list that is given as ``name`` itself.
    """
    end = end_of_path(path, scores, value)
    if end is None:
        return
    hint = {"smallest": "smaller", "largest": "larger"}[end]
    advice = f"give {grid} {hint} values" if grid else f"give a list of {hint} values, or rescale features and targets"
    warnings.warn(
        f"the chosen {name}={value:.4g} is the {end} value of its path, so the best one may lie beyond: {advice}",
        UserWarning,
        stacklevel=2,
    )


class LeaveOneOut:
    """The negative mean square leave-one-out error of independent outputs, exact or estimated, as a function of lambda.

    The residual of a row that is left out of the fit is r / (1 - h) for its residual r and leverage h. Generalised
    cross-validation takes the mean leverage in place of h, and so its score can be far too good at small lambda, where
    leverages differ by much: those of points in dense clusters are small, those of isolated points near one.

    Repeated rows are left out together, as one row whose target is their mean. With more than ``SAMPLED_ROWS``
    different rows, the score is that of generalised cross-validation, times the ratio of both errors on that many of
    them, drawn at random.

    Parameters
    ----------
    problem : factorised
    X, Y, weights : the rows of the problem
    repeats : the repeated rows; None takes all rows as different
    n_distinct : the number of different rows of the problem, if ``X`` are some of them, drawn at random; None is all
    """

    def __init__(
        self,
        problem: LeastSquares,
        X: Any,
        Y: np.ndarray,
        weights: np.ndarray | None,
        repeats: Repeats | None = None,
        n_distinct: int | None = None,
    ) -> None:
        self._problem, self._general = problem, gcv_scores(problem, repeats)
        repeats, n = repeats or Repeats.none(Y, weights), len(X)
        groups, self._n_distinct = np.arange(repeats.distinct), n_distinct or repeats.distinct
        if len(groups) > SAMPLED_ROWS:
            groups = np.sort(np.random.default_rng(0).choice(groups, SAMPLED_ROWS, replace=False))
        rows = np.unique(repeats.groups, return_index=True)[1][groups]  # one of each group
        weights_of_rows = np.ones(n) if weights is None else weights
        self._left_out, self._n_numbers = problem.left_out(rows, X, Y, weights_of_rows), Y.size
        self._weights, self._targets = repeats.weights[groups], repeats.means[groups]
        self._times = (self._weights / weights_of_rows[rows])[:, None]
        self._beside_mean = (self._targets - Y[rows]) * np.sqrt(weights_of_rows[rows])[:, None]

    def __call__(self, regularization: float) -> float:
        problem, (residuals, left) = self._problem, self._residuals(regularization)
        # rounding of A changes leverages by rounding * scale / lambda, and those of a group by a multiple of it
        unknown = ABOVE_ROUNDING * problem.rounding * problem.scale / regularization * (self._times - 1)
        if (left < np.maximum(unknown, _LEAST_SHARE_LEFT)).any():
            return -np.inf
        error = np.square(residuals / left).sum()
        if len(residuals) == self._n_distinct:
            return -float(error) / self._n_numbers
        mean_left = 1 - problem.errors_and_freedom(regularization, self._n_distinct)[1] / self._n_distinct
        of_rows = np.square(residuals / mean_left).sum()
        n_outputs = residuals.shape[1]
        return self._general(regularization) / n_outputs * float(error / of_rows) if of_rows > 0 else -np.inf

    def rows(self, regularization: float) -> LeftOutRows:
        """The predictions of the rows that the score is made of."""
        residuals, left = self._residuals(regularization)
        errors = residuals / left / np.sqrt(self._weights)[:, None]
        return LeftOutRows(self._targets - errors, self._targets, self._weights)

    def _residuals(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """Residuals times the roots of the weights, shape (m, p), and what leverages leave of 1, shape (m, 1)."""
        residuals, left = self._left_out(regularization)
        return (residuals + self._beside_mean) * np.sqrt(self._times), 1 - self._times * (1 - left[:, None])


def held_out(
    problem: LeastSquares,
    X: Any,
    Y: np.ndarray,
    weights: np.ndarray | None,
    decide: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Score:
    """The negative mean square error on rows that were held out; with ``decide``, the accuracy.

    Parameters
    ----------
    decide : callable or None
        Scores, shape (m, k), to classes, shape (m,).
    """

    def score(regularization: float) -> float:
        W, b = problem.solve(regularization)
        return validation_score(X @ W + b, Y, weights, decide)

    return score


def validation_score(
    predicted: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    decide: Callable[[np.ndarray], np.ndarray] | None = None,
) -> float:
    """The negative weighted mean square error of predictions, shape (m, k); with ``decide``, their accuracy."""
    if decide is None:
        return -float(np.average(np.square(predicted - Y).mean(1), weights=weights))
    return float(np.average(decide(predicted) == decide(Y), weights=weights))


def normalized_weights(weights: np.ndarray | None) -> np.ndarray | None:
    """Weights scaled to a mean of one, since only their ratios matter. None stays None."""
    return None if weights is None else weights / weights.mean()


def positive(weights: np.ndarray | None) -> slice | np.ndarray:
    """The index of the rows whose weight is not 0."""
    return slice(None) if weights is None or weights.all() else weights > 0


def subset_weights(weights: np.ndarray | None, *parts: np.ndarray) -> list[np.ndarray | None]:
    """The weights of each part of the rows, where ``parts`` are indices.

    Raises
    ------
    InputError
        If all rows of a part have weight 0.
    """
    if weights is None:
        return [None] * len(parts)
    if any(not weights[part].any() for part in parts):
        raise InputError("selection by hold-out: all points of one part have sample weight 0; give a single value")
    return [weights[part] for part in parts]
