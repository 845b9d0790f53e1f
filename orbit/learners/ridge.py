"""Regularised least squares: one factorisation for a whole path of regularisation strengths."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from orbit.core.linalg import add_second_moments, eigh, mirror_upper
from orbit.core.params import Fraction, PositiveFloat, check_params
from orbit.core.random import RandomState
from orbit.learners.base import (
    Learner,
    best_of_path,
    check_classes,
    checked_weights,
    hold_out,
    mean_one,
    one_against_all,
    parts_of,
    present,
    regularization_path,
)
from orbit.learners.moments import Moments
from orbit.learners.passes import Batches, StreamedSystem
from orbit.learners.shifted import Cholesky, ShiftedSystem, is_large
from orbit.registry import register

# Rows, or columns of a Gram matrix, that are turned to float64 at once while second moments are summed.
_BLOCK_ROWS = 4096

# Products of float32 tiles have errors of this size next to features of norm one: a stream
# that is to tell smaller lambdas apart takes them in float64.
SINGLE_PRECISION_FLOOR = 1e-8

Selection = Literal["gcv", "loo", "hold_out"]
Centred = Literal["both", "targets", "nothing"]


class RidgePath:
    """Solutions of min_W (1/n) sum_i w_i |x_i W + b - y_i|^2 + lambda |W|^2 for every lambda, from one factorisation.

    Primal (an eigendecomposition of the d x d second moments) where d <= n,
    dual (of the n x n Gram matrix) otherwise; both in float64 whatever the
    features are, because the smallest lambdas of a path live below float32
    rounding. The intercept b is not regularised. :class:`CholeskyPath` is for
    more than a few thousand points and features.

    Parameters
    ----------
    X : array, shape (n, d)
    Y : float64 array, shape (n, k)
    weights : float64 array with a mean of one, shape (n,), or None
        w; None is one for every point.
    centred : {"both", "targets", "nothing"}
        ``both`` is a free intercept b. ``targets`` is a b fixed at the mean of the
        targets, and ``nothing`` none at all: what kernel ridge regression solves.
    """

    def __init__(
        self, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None, centred: Centred = "both"
    ) -> None:
        self.X, self.n = X, len(X)
        self.weights = np.ones(self.n) if weights is None else weights
        self.root = np.sqrt(self.weights)[:, None]
        self.free = float(centred == "both")
        self.x_mean = self._mean_point(weights) if self.free else np.zeros(X.shape[1])
        self.y_mean = np.zeros(Y.shape[1]) if centred == "nothing" else self.weights @ Y / self.n
        self.Y = (Y - self.y_mean) * self.root
        self.primal = X.shape[1] <= self.n
        self._factorise()

    def _factorise(self) -> None:
        if self.primal:
            moments, cross = self._moments()
            values, self.vectors = eigh(moments)
            self.rotated = self.vectors.T @ cross
        else:
            points = self._scaled(slice(None))
            values, self.vectors = eigh(points @ points.T / self.n)
            self.rotated = self.vectors.T @ self.Y
        self.values = np.maximum(values, 0.0)

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients, shape (d, k), and intercept, shape (k,)."""
        W = self.vectors @ (self.rotated / (self.values + regularization)[:, None])
        if not self.primal:
            W = self._centred_product(W) / self.n
        return W, self.y_mean - self.x_mean @ W

    def gcv(self, regularization: float) -> float:
        """The negative generalised cross-validation score (Golub, Heath and Wahba 1979), over all outputs."""
        freedom = self.free + (self.values / (self.values + regularization)).sum()
        if freedom >= self.n:
            return -np.inf
        return -self._residual_power(regularization) / (1 - freedom / self.n) ** 2

    def choose(self, path: np.ndarray, score: Callable[[float], float]) -> tuple[float, np.ndarray]:
        """The value of a rising path with the highest score, and all scores; NaN where none was needed."""
        return best_of_path(path, score)

    def loo(self, path: np.ndarray) -> np.ndarray:
        """The negative mean square leave-one-out error for every lambda of the path."""
        shares = self._row_shares()
        scores = []
        for regularization in path:
            filtered = self.values / (self.values + regularization)
            leverage = self.free * self.weights / self.n + shares @ filtered
            W, b = self.solve(regularization)
            residual = self.Y + (self.y_mean - (self.X @ W + b)) * self.root
            if np.any(leverage > 1 - 1e-9):
                scores.append(-np.inf)
                continue
            scores.append(-np.square(residual / (1 - leverage)[:, None]).mean())
        return np.array(scores)

    def _centred_product(self, A: np.ndarray) -> np.ndarray:
        """The scaled points' transpose times A in float64, a block of rows at a time."""
        total = np.zeros((self.X.shape[1], A.shape[1]))
        for start in range(0, self.n, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            total += self._scaled(rows).T @ A[rows]
        return total

    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        d, k = self.X.shape[1], self.Y.shape[1]
        moments, cross = np.zeros((d, d)), np.zeros((d, k))
        for start in range(0, self.n, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            block = self._scaled(rows)
            moments += block.T @ block
            cross += block.T @ self.Y[rows]
        return moments / self.n, cross / self.n

    def _residual_power(self, regularization: float) -> float:
        """(1/n) |Y - prediction|^2 on the training set, without another pass over the features."""
        total = np.square(self.Y).sum() / self.n
        power = np.square(self.rotated).sum(1)
        shrunk = self.values + regularization
        if self.primal:
            left = total - (power * (self.values + 2 * regularization) / shrunk**2).sum()
        else:
            left = (power * (regularization / shrunk) ** 2).sum() / self.n
        # a perfect fit leaves rounding, not zero and not less
        return max(left, total * np.finfo(float).eps)

    def _row_shares(self) -> np.ndarray:
        """Squared left singular vectors: the share of each direction in each row's leverage, shape (n, rank)."""
        if not self.primal:
            return np.square(self.vectors)
        positive = np.where(self.values > 0, self.values, np.inf)
        return np.square(self._scaled(slice(None)) @ self.vectors) / (self.n * positive)

    def _scaled(self, rows: slice) -> np.ndarray:
        """Centred points times the roots of their weights, float64 by promotion: an unweighted problem with them."""
        return (self.X[rows] - self.x_mean) * self.root[rows]

    def _mean_point(self, weights: np.ndarray | None) -> np.ndarray:
        if weights is None:
            return self.X.mean(0, dtype=np.float64)
        parts = (slice(start, start + _BLOCK_ROWS) for start in range(0, self.n, _BLOCK_ROWS))
        return np.sum([weights[rows] @ self.X[rows] for rows in parts], axis=0) / self.n


class CholeskyPath(RidgePath):
    """The same solutions by a Cholesky factorisation for each lambda that is tried, for large systems.

    An eigendecomposition costs as much as some 25 factorisations and three times
    their memory; the search tries ten or so. Products of float32 points are taken
    in float32 and summed in float64 unless ``precise``. Degrees of freedom are
    Hutchinson's estimate (see :class:`~orbit.learners.shifted.Cholesky`).
    """

    def __init__(self, X, Y, weights=None, centred: Centred = "both", precise: bool = True) -> None:
        self.precise = precise
        super().__init__(X, Y, weights, centred)

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        W, _ = self._solution(regularization)
        if not self.primal:
            W = np.concatenate([tile @ W for tile in self._tiles()]) / self.n
        return W, self.y_mean - self.x_mean @ W

    def gcv(self, regularization: float) -> float:
        W, freedom = self._solution(regularization)
        freedom += self.free
        if freedom >= self.n:
            return -np.inf
        total = np.square(self.Y).sum() / self.n
        if self.primal:
            left = total - float((W * self.cross).sum()) - regularization * float(np.square(W).sum())
        else:
            left = float(np.square(regularization * W).sum()) / self.n  # the residual is lambda times the dual solution
        return -max(left, total * np.finfo(float).eps) / (1 - freedom / self.n) ** 2

    def choose(self, path: np.ndarray, score: Callable[[float], float]) -> tuple[float, np.ndarray]:
        return self.system.search(path, score)

    def _factorise(self) -> None:
        size = self.X.shape[1] if self.primal else self.n
        moments, cross = np.zeros((size, size)), np.zeros((size, self.Y.shape[1]))
        start = 0
        for tile in self._tiles():
            add_second_moments(moments, tile)
            if self.primal:
                cross += tile.T @ self.Y[start : start + len(tile)]
                start += len(tile)
        moments /= self.n
        mirror_upper(moments)
        self.cross = cross / self.n
        self.system = Cholesky(moments, self.cross if self.primal else self.Y)
        self._solutions: dict[float, tuple[np.ndarray, float]] = {}

    def _tiles(self) -> Iterator[np.ndarray]:
        """The scaled points some rows at a time; in the dual their transpose, some columns at a time."""
        dtype = np.float64 if self.precise else self.X.dtype
        mean, root = self.x_mean.astype(dtype), self.root.astype(dtype)
        for start in range(0, self.n if self.primal else self.X.shape[1], _BLOCK_ROWS):
            part = slice(start, start + _BLOCK_ROWS)
            if self.primal:
                yield (self.X[part] - mean) * root[part]
            else:
                yield ((self.X[:, part] - mean[part]) * root).T

    def _solution(self, regularization: float) -> tuple[np.ndarray, float]:
        if regularization not in self._solutions:
            self._solutions[regularization] = self.system.solve(regularization)
        return self._solutions[regularization]


class _Ridge(Learner):
    """What the classifier and the regressor share: everything but the targets."""

    path_parameter = "regularization"
    takes_weights = True
    streams = True
    distributes = True
    many_passes = True
    shares_path = True
    _centred: ClassVar[Centred] = "both"

    regularization: PositiveFloat | list[PositiveFloat] | None
    selection: Selection
    validation_fraction: float
    random_state: RandomState

    def check(self) -> None:
        """Raise ``ParameterError`` if a parameter has the wrong type or range."""
        check_params(self)
        regularization_path(self.regularization)

    def path_predictions(self, X, y, path: np.ndarray, X_new, sample_weight=None) -> Iterator[np.ndarray]:
        """What :meth:`predict` gives for ``X_new`` after a fit with each lambda of ``path``, from one factorisation."""
        targets, decide = self._path_targets(np.asarray(y))
        system = RidgePath(X, targets, mean_one(sample_weight, X), self._centred)
        for regularization in path:
            W, b = system.solve(float(regularization))
            yield decide(X_new @ W + b)

    @abstractmethod
    def _path_targets(self, y: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Targets as columns of numbers, and how scores for them become predictions."""

    def _fit(self, X: np.ndarray, Y: np.ndarray, labels: np.ndarray | None, sample_weight=None) -> None:
        """Choose lambda and solve. ``Y``: (n, k) float64; ``labels`` for stratified and accuracy-scored hold-out."""
        weights, X, Y, labels = present(mean_one(sample_weight, X), X, Y, labels)
        self.__dict__.pop("_moments", None)
        self._stale = False
        self._set_path(X, large=self._is_large(X))
        system = None
        if len(self.path_) == 1:
            self.regularization_, self.path_scores_ = float(self.path_[0]), np.full(1, np.nan)
        elif self.selection == "hold_out":
            self.regularization_, self.path_scores_ = self._hold_out(X, Y, labels, weights)
        else:
            system = self._system(X, Y, weights)
            self.regularization_, self.path_scores_ = self._in_sample(system)
        W, b = (system or self._system(X, Y, weights)).solve(self.regularization_)
        self._coefficients, self._intercept = W.astype(X.dtype), b.astype(X.dtype)

    def finalize(self):
        """End a stream: choose lambda by generalised cross-validation, solve, and let go of the moments.

        :meth:`predict` does the same on a copy where it has not been called, so that
        the stream can go on.
        """
        if (moments := self.__dict__.pop("_moments", None)) is not None:
            self._solve_moments(moments)
        return self

    def gather(self) -> None:
        """Add up what all processes of a distributed job have taken in; call before :meth:`finalize`."""
        self._moments.gather()

    def _partial(self, X: np.ndarray, Y: np.ndarray, sample_weight) -> None:
        if not hasattr(self, "_moments"):
            self._set_path(X, large=True)
            self._moments = Moments(precise=self.path_[0] < SINGLE_PRECISION_FLOOR)
        if sample_weight is not None:
            sample_weight = checked_weights(sample_weight, X, of_batch=True)
        self._moments.add(X, Y, sample_weight)
        self._stale = True

    def _solve_moments(self, moments: Moments) -> None:
        A, cross, targets = moments.system()
        power = float(np.trace(targets))
        system = ShiftedSystem.of(A, cross, len(self.path_))
        solutions: dict[float, np.ndarray] = {}

        def score(regularization: float) -> float:
            solutions[regularization], freedom = system.solve(regularization)
            return _streamed_gcv(solutions[regularization], freedom, regularization, cross, power, moments.n)

        if len(self.path_) == 1:
            self.regularization_, self.path_scores_ = float(self.path_[0]), np.full(1, np.nan)
            W = system.solve(self.regularization_)[0]
        else:
            self.regularization_, self.path_scores_ = system.search(self.path_, score)
            W = solutions[self.regularization_]
        self._adopt(W, moments)

    def fit_passes(self, batches: Batches, memory: float, classes: np.ndarray | None = None):
        """Fit to a stream that is gone through again and again, where memory has no room for second moments.

        By conjugate gradients (:class:`~orbit.learners.passes.StreamedSystem`); lambda by
        generalised cross-validation.

        Parameters
        ----------
        batches : callable
            An iterator over ``(X, y, weights)``, the same at every call; ``X`` may be overwritten.
        memory : float
            Bytes that may be held between batches.
        classes : array or None
            All labels, for classifiers.
        """
        self.check()
        X, y, _ = next(batches())
        self.n_features_in_ = X.shape[1]
        encode = self._encoder(y, classes)
        self._set_path(X, large=True)
        system = StreamedSystem(lambda: ((X, encode(y), w) for X, y, w in batches()), memory)
        solutions = system.solve(self.path_)
        scores = {
            value: _streamed_gcv(*solution, value, system.cross, system.power, system.n)
            for value, solution in solutions.items()
        }
        self.regularization_, self.path_scores_ = best_of_path(self.path_, scores.__getitem__)
        self._adopt(solutions[self.regularization_][0], system)
        return self

    def _adopt(self, W: np.ndarray, moments: Moments | StreamedSystem) -> None:
        self._coefficients = W.astype(moments.dtype)
        self._intercept = (moments.y_mean - moments.x_mean @ W).astype(moments.dtype)
        self._stale = False
        self._publish()

    @abstractmethod
    def _encoder(self, y: np.ndarray, classes: np.ndarray | None) -> Callable[[np.ndarray], np.ndarray]:
        """What turns targets of a batch into columns of numbers, float64; notes what predictions need of ``y``."""

    def _criterion(self) -> str:
        return self.selection

    def _settle(self) -> None:
        if getattr(self, "_stale", False):
            self._solve_moments(copy.deepcopy(self._moments))

    @abstractmethod
    def _publish(self) -> None:
        """Set ``coef_`` and ``intercept_`` from the coefficients."""

    def _in_sample(self, system: RidgePath) -> tuple[float, np.ndarray]:
        if self.selection == "loo":
            scores = dict(zip(self.path_, system.loo(self.path_), strict=True))
            return best_of_path(self.path_, scores.__getitem__)
        return system.choose(self.path_, system.gcv)

    def _set_path(self, X: np.ndarray, large: bool) -> None:
        """The path to choose from; by default no lambda that needs more precision than large systems are summed in."""
        self.path_ = regularization_path(self.regularization)
        if large and self.regularization is None and X.dtype == np.float32:
            self.path_ = self.path_[self.path_ >= SINGLE_PRECISION_FLOOR]

    def _is_large(self, X: np.ndarray) -> bool:
        """Whether an eigendecomposition would take long; leave-one-out needs one all the same."""
        return is_large(min(X.shape)) and self.selection != "loo"

    def _system(self, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> RidgePath:
        if not self._is_large(X):
            return RidgePath(X, Y, weights, self._centred)
        return CholeskyPath(X, Y, weights, self._centred, precise=bool(self.path_[0] < SINGLE_PRECISION_FLOOR))

    def _hold_out(
        self, X: np.ndarray, Y: np.ndarray, labels: np.ndarray | None, weights: np.ndarray | None
    ) -> tuple[float, np.ndarray]:
        fit, validation = hold_out(len(X), self.validation_fraction, labels, self.random_state)
        w_fit, w_validation = parts_of(weights, fit, validation)
        system = self._system(X[fit], Y[fit], mean_one(w_fit, X[fit]))

        def score(regularization: float) -> float:
            W, b = system.solve(regularization)
            predicted = X[validation] @ W + b
            if labels is None:
                return -float(np.average(np.square(predicted - Y[validation]).mean(1), weights=w_validation))
            return float(np.average(_decide(predicted) == _decide(Y[validation]), weights=w_validation))

        return system.choose(self.path_, score)

    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self, "path_")
        self._settle()
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return X @ self._coefficients.astype(X.dtype) + self._intercept.astype(X.dtype)


def _streamed_gcv(
    W: np.ndarray, freedom: float, regularization: float, cross: np.ndarray, power: float, n: int
) -> float:
    """The negative generalised cross-validation score of a solution, from moments alone."""
    # |Y - X W|^2 / n, with A W = cross - lambda W
    left = power - float((W * cross).sum()) - regularization * float(np.square(W).sum())
    share = (1 + freedom) / n
    return -np.inf if share >= 1 else -max(left, power * np.finfo(float).eps) / (1 - share) ** 2


def _decide(scores: np.ndarray) -> np.ndarray:
    return scores.argmax(1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)


class LeastSquaresRegressor(MultiOutputMixin, RegressorMixin, _Ridge):
    """What regressors by regularised least squares share; they differ in what is centred."""

    def fit(self, X, y, sample_weight=None):
        """Fit to ``X``, shape (n, d), ``y``, shape (n,) or (n, k), and weights, shape (n,), or None for equal ones."""
        self.check()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True)
        y = y.astype(np.float64)
        self._flat = y.ndim == 1
        self._fit(X, y.reshape(len(y), -1), None, sample_weight)
        self._publish()
        return self

    def _publish(self) -> None:
        self.coef_ = self._coefficients[:, 0] if self._flat else self._coefficients.T
        self.intercept_ = self._intercept[0] if self._flat else self._intercept

    def predict(self, X) -> np.ndarray:
        """Predictions, shaped as the targets were: (n,) or (n, k)."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def _encoder(self, y: np.ndarray, classes: np.ndarray | None) -> Callable[[np.ndarray], np.ndarray]:
        self._flat = y.ndim == 1
        return lambda y: y.reshape(len(y), -1).astype(np.float64)

    def _path_targets(self, y: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        return y.reshape(len(y), -1).astype(np.float64), lambda scores: scores.reshape(len(scores), *y.shape[1:])


@register("regressor", "ridge")
class RidgeRegressor(LeastSquaresRegressor):
    """Regularised least squares with lambda chosen from a path by one factorisation.

    Minimises (1/n) sum_i w_i |W^T x_i + b - y_i|^2 + lambda |W|^2, the sample weights w
    scaled to a mean of one.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda. A list is a path to choose from; None is 23 values from 1e-10 to 10.
    selection : {"gcv", "loo", "hold_out"}
        How lambda is chosen, always on training data only: generalised
        cross-validation, leave-one-out, or a validation part.
    validation_fraction : float in (0, 1)
        Share of the training data held out for ``hold_out``.
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

    def __init__(
        self,
        regularization: PositiveFloat | list[PositiveFloat] | None = None,
        selection: Selection = "gcv",
        validation_fraction: Fraction = 0.2,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.selection = selection
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def partial_fit(self, X, y, sample_weight=None):
        """Take in a batch of a stream; see :meth:`finalize`. Needs memory for d x d numbers, not for the stream."""
        self.check()
        first = not hasattr(self, "_moments")
        X, y = validate_data(self, X, y, reset=first, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True)
        self._flat = y.ndim == 1
        self._partial(X, y.reshape(len(y), -1).astype(np.float64), sample_weight)
        return self


@register("classifier", "ridge")
class RidgeClassifier(ClassifierMixin, _Ridge):
    """Least squares on one-against-all targets of -1 and 1, lambda chosen from a path by one factorisation.

    Parameters
    ----------
    regularization : float > 0, list of them, or None
        lambda, in (1/n) sum_i w_i |W^T x_i + b - y_i|^2 + lambda |W|^2, the sample
        weights w scaled to a mean of one. A list is a path to choose from; None is
        23 values from 1e-10 to 10.
    selection : {"gcv", "loo", "hold_out"}
        How lambda is chosen, always on training data only: generalised
        cross-validation, leave-one-out squared error, or the accuracy on a
        validation part.
    validation_fraction : float in (0, 1)
        Share of the training data held out for ``hold_out``.
    random_state : int, RandomState or None
        Seed of the hold-out split.

    Attributes
    ----------
    classes_ : array, shape (k,)
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

    def __init__(
        self,
        regularization: PositiveFloat | list[PositiveFloat] | None = None,
        selection: Selection = "gcv",
        validation_fraction: Fraction = 0.2,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.selection = selection
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Fit to ``X``, shape (n, d), class labels ``y``, shape (n,), and weights, shape (n,); None is equal ones."""
        self.check()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        self.classes_ = check_classes(y)
        self._fit(X, one_against_all(y, self.classes_), y, sample_weight)
        self._publish()
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Take in a batch of a stream; see :meth:`finalize`. Needs memory for d x d numbers, not for the stream.

        Parameters
        ----------
        X : array, shape (m, d)
        y : array, shape (m,)
        classes : array or None
            All labels that will come, with the first batch; None: those in it.
        sample_weight : array, shape (m,), or None
        """
        self.check()
        first = not hasattr(self, "_moments")
        X, y = validate_data(self, X, y, reset=first, dtype=[np.float64, np.float32])
        if first:
            self.classes_ = np.unique(y if classes is None else classes)
        self._partial(X, one_against_all(y, self.classes_), sample_weight)
        return self

    def _publish(self) -> None:
        self.coef_, self.intercept_ = self._coefficients.T, self._intercept

    def decision_function(self, X) -> np.ndarray:
        """Scores, shape (n, k), or (n,) for two classes."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X) -> np.ndarray:
        """Class labels, shape (n,)."""
        scores = self._scores(X)
        return self.classes_[_decide(scores)]

    def _encoder(self, y: np.ndarray, classes: np.ndarray | None) -> Callable[[np.ndarray], np.ndarray]:
        self.classes_ = check_classes(y if classes is None else classes)
        return lambda y: one_against_all(y, self.classes_)

    def _path_targets(self, y: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        classes = check_classes(y)
        return one_against_all(y, classes), lambda scores: classes[_decide(scores)]
