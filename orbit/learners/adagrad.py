"""Linear models trained by AdaGrad on streamed features, as Daniely et al. 2017, section 5 trains its classifiers."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import MultiOutputMixin, RegressorMixin
from torch import Tensor

from orbit.core.errors import InputError
from orbit.core.linalg import is_constant, mean_and_deviation, row_norms
from orbit.core.params import NonNegativeFloat, PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.engine import Engine
from orbit.learners.base import linear_predictions
from orbit.learners.epochs import EpochClassifier, EpochLearner
from orbit.learners.targets import Numbers, check_outputs, one_column_per_class
from orbit.registry import register
from orbit.solvers.structure import Operator, Structure

_EPSILON = 1e-8


class _AdaGrad(EpochLearner):
    """Base class of the classifier and the regressor.

    The products with the features, the largest cost, are one matrix product for
    all learning rates. Features are centred by the mean of the first batch.
    """

    default_path = (0.01, 0.03, 0.1, 0.3, 1.0)
    takes_tensors = True

    regularization: NonNegativeFloat

    # coupling of the outputs (orbit/solvers/structure.py); None for independent outputs
    _operator: Operator | None = None
    # memory of a batch of centred features
    _batch: Tensor | None = None
    # index of the rate whose model has not been copied from the device
    _unpublished: int | None = None

    def _rates_for(self, X: np.ndarray) -> np.ndarray:
        # steps with the default ones are those of features scaled to a distance of one from their mean
        self._unit = 1.0
        if self.learning_rate is None:
            self._unit = _spread(X)
            self._check_unit(X.dtype)
        return self._path() / self._unit

    def _check_unit(self, dtype: np.dtype) -> None:
        """Raise ``InputError`` if squares of steps on features of this size overflow or vanish in their precision."""
        limits = np.finfo(dtype)
        low, high = np.sqrt(float(limits.tiny) / _EPSILON), np.sqrt(float(limits.max) * _EPSILON)
        if not low <= self._unit <= high:
            raise InputError(
                f"{type(self).__name__}: the distance of features from their mean must be between {low:.1e} and "
                f"{high:.1e} in {dtype}, found {self._unit:.1e}; scale the points with a representation such as "
                "UnitNorm or Standardize"
            )

    def _begin(self, X: np.ndarray, k: int) -> None:
        # invariant features vary little about their mean, which would otherwise dominate all steps
        self._mean = X.mean(0)
        self._shift = self._tensor(self._mean)
        n_rates, n_parameters = len(self._rates), k if self._operator is None else self._operator.factors.shape[2]
        self._weights = _rows_of_features(self._tensor(np.zeros((X.shape[1], n_rates, n_parameters), dtype=X.dtype)))
        self._offsets = self._tensor(np.zeros((n_rates, k), dtype=X.dtype))
        self._squares = [
            torch.full_like(self._weights, _EPSILON * self._unit**2),
            torch.full_like(self._offsets, _EPSILON),
        ]
        self._factors = None if self._operator is None else self._tensor(self._operator.factors.astype(X.dtype))

    def _training_arrays(self) -> dict[str, np.ndarray]:
        tensors = {
            "mean": self._shift,
            "unit": torch.tensor(self._unit, dtype=torch.float64),
            "weights": self._weights,
            "offsets": self._offsets,
            "weights_squares": self._squares[0],
            "offsets_squares": self._squares[1],
        }
        tensors |= {} if self._factors is None else {"factors": self._factors}
        return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}

    def _resume_training(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._mean, self._shift = arrays["mean"], self._tensor(arrays["mean"])
        self._unit = float(arrays["unit"])
        self._weights, weights_squares = (
            _rows_of_features(self._tensor(arrays[name])) for name in ("weights", "weights_squares")
        )
        self._offsets = self._tensor(arrays["offsets"])
        self._squares = [weights_squares, self._tensor(arrays["offsets_squares"])]
        self._factors = self._tensor(arrays["factors"]) if "factors" in arrays else None

    def metrics(self) -> dict[str, float]:
        return super().metrics() | {"learner/regularization": self.regularization_}

    def _dtype(self) -> str:
        return str(self._weights.dtype).removeprefix("torch.")

    def _in_training(self) -> bool:
        return "_weights" in vars(self)

    def _step(self, x: Any, y: np.ndarray) -> Tensor:
        features, targets = self._centred(x), self._tensor(y)
        rates = self._tensor(self._rates[:, None].astype(y.dtype))
        scores = torch.addmm(self._offsets.flatten(), features, self._by_output(self._weights).flatten(1))
        scores = scores.reshape(len(x), *self._offsets.shape)
        slope = self._slope(scores, targets[:, None, :]) / len(x)
        gradient = self._by_parameter((slope.flatten(1).T @ features).T.unflatten(1, self._offsets.shape))
        if self.regularization:
            gradient.add_(self._weights, alpha=2 * self.regularization)
        for part, squares, step, size in zip(
            (self._weights, self._offsets), self._squares, (gradient, slope.sum(0)), (1.0, self._unit), strict=True
        ):
            squares.addcmul_(step, step)
            part.sub_(step.mul_(rates * size).div_(squares.sqrt()))
        return self._batch_scores(scores, targets)

    def _centred(self, x: Any) -> Tensor:
        """The features of a batch less their mean.

        All steps share the memory of the result, because new pages would take as long as the products with it.
        """
        if self._batch is None or len(self._batch) < len(x):
            self._batch = self._shift.new_empty(x.shape)
        points = x if isinstance(x, Tensor) else (self.engine or Engine()).workspace().shared(x)
        return torch.sub(points, self._shift, out=self._batch[: len(x)])

    def _by_output(self, weights: Tensor) -> Tensor:
        """Coefficients of the features, shape (F, rates, k), from parameters, shape (F, rates, q)."""
        return weights if self._factors is None else weights @ self._factors.mT

    def _by_parameter(self, gradient: Tensor) -> Tensor:
        """The adjoint of :meth:`_by_output`."""
        return gradient if self._factors is None else gradient @ self._factors

    def _keep(self, best: int) -> None:
        self._weights, self._offsets = self._weights[:, best : best + 1].clone(), self._offsets[[best]]
        self._squares = [self._squares[0][:, best : best + 1].clone(), self._squares[1][[best]]]

    def _publish(self, best: int) -> None:
        self.regularization_ = float(self.regularization)
        self._unpublished = best

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients, shape (F, k), and intercepts, shape (k,), of the best rate."""
        self._copy_model()
        return self._coefficients, self._intercept

    def _copy_model(self) -> None:
        """Copy the model from the device, if it has changed.

        That is done when it is needed: for many features a copy takes longer than several steps.
        """
        if self._unpublished is not None:
            self._coefficients, self._intercept = self._trained(self._unpublished)
            self._unpublished = None

    def __getstate__(self) -> dict[str, Any]:
        self._copy_model()  # a shallow copy shares the weights, which later steps change in place
        return super().__getstate__()

    def _trained(self, rate: int) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts of a rate, for features that are not centred."""
        coefficients = self._by_output(self._weights)[:, rate].cpu().numpy().copy()
        return coefficients, self._offsets[rate].cpu().numpy() - self._mean @ coefficients

    def _is_finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self._linear())

    def _discard_training_state(self) -> None:
        self._copy_model()  # there is none if the first epoch was interrupted
        del self._weights, self._offsets, self._squares, self._factors, self._shift, self._mean, self._unit
        self._batch = None

    def _scores(self, X) -> np.ndarray:
        return linear_predictions(self._points(X), *self._linear())

    @abstractmethod
    def _slope(self, scores: Tensor, y: Tensor) -> Tensor:
        """Derivative of the loss by the scores, shape (n, rates, k)."""

    @abstractmethod
    def _batch_scores(self, scores: Tensor, y: Tensor) -> Tensor:
        """The sum over the batch of the score to maximise, for every rate: shape (rates,)."""


def _spread(X: np.ndarray) -> float:
    """Root mean square distance of points from their mean; 1 if they are equal but for rounding."""
    moved = X - X[0]  # the mean of equal points may differ from them by rounding
    spread = float(np.sqrt(np.square(row_norms(moved - moved.mean(0)).astype(np.float64)).mean()))
    return 1.0 if is_constant(spread, row_norms(X[:1])[0], X.dtype) else spread


def _rows_of_features(weights: Tensor) -> Tensor:
    """``weights``, shape (F, rates, q), with the F numbers of an output side by side in memory.

    Products with a batch, whose points are rows of F numbers, take half the time of those with (F, rates, q) in order.
    """
    return weights.permute(1, 2, 0).contiguous().permute(2, 0, 1)


@register("regressor", "adagrad")
@dataclass(eq=False, repr=False)
class AdaGradRegressor(MultiOutputMixin, RegressorMixin, _AdaGrad):
    """Least squares by AdaGrad (Duchi et al. 2011): (1/n) sum_i |W^T x_i + b - y_i|^2 + lambda |W|^2.

    On features of ``OperatorRandomFourier`` the steps update the parameters theta of
    their operator instead of W (Brault et al. 2016, section 4.1); an output matrix that depends on
    targets is computed from those of the first batch. Steps are those for targets less their mean and divided by their
    standard deviation, in a stream those of the first batch; outputs of an operator have one deviation in common.

    Parameters
    ----------
    learning_rate : float > 0, list of them, or None
        Several values are trained in parallel for one epoch, or until there were 4 steps, and
        the one with the least error, in one epoch on points not yet seen, is trained further; None is 0.01 to 1,
        divided by the root mean square distance of the features of the first batch from their mean.
    regularization : float >= 0
        lambda.
    batch_size : int >= 1
        Points a step.
    epochs : int >= 1
        Passes over the data.
    engine : Engine or None
        Its device is trained on.
    random_state : int, RandomState or None
        Seed of the order of the points.

    Attributes
    ----------
    coef_, intercept_ : arrays
    learning_rate_, regularization_ : float
    path_, path_scores_ : arrays
        The learning rates and their negative mean square errors in the epoch that compared them.
    history_ : list of float
        The negative mean square error of each epoch, on points before their steps.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import AdaGradRegressor
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> model = AdaGradRegressor(epochs=30, random_state=0).fit(X, X[:, 0])
    >>> bool(abs(model.predict([[1.0, 0.0, 0.0]])[0] - 1) < 0.05)
    True
    """

    learning_rate: PositiveFloat | list[PositiveFloat] | None = None
    regularization: NonNegativeFloat = 0.0
    batch_size: PositiveInt = 64
    epochs: PositiveInt = 5
    engine: Engine | None = None
    random_state: RandomState = None

    operator_valued = True
    saved = (*EpochLearner.saved, "_flat", "_target_mean", "_target_scale")

    def partial_fit(self, X, y):
        """Take steps on a batch, ``X`` (m, d), also a tensor on the engine's device, and ``y`` (m,) or (m, k).

        Call ``end_epoch`` after each pass over the stream, and ``finalize`` after the last.
        """
        self._steps(*self._prepared(X, y, reset=not self._in_training()))
        return self

    @property
    def _targets(self) -> Numbers:
        return Numbers(type(self).__name__, self._flat)

    def _prepared(self, X, y, reset: bool) -> tuple[Any, np.ndarray]:
        structure, _ = self._accepted(X)
        X, y = self._batch_of(X, y, reset)
        self._flat = y.ndim == 1
        Y = self._targets.encode(y)
        if reset:
            self._operator = _operator_of(structure, Y)
        else:
            check_outputs(Y, len(self._target_mean))
        return X, Y

    def _steps(self, X: Any, Y: np.ndarray) -> None:
        if not self._in_training():
            # a step moves a parameter by about its learning rate, however far the targets are
            self._target_mean, self._target_scale = self._mean_and_scale(Y)
        super()._steps(X, (Y - self._target_mean) / self._target_scale)

    def _mean_and_scale(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and divisor of each target, shape (k,); the divisor is the same for all outputs of an operator."""
        mean, each = mean_and_deviation(Y)
        common = np.full(Y.shape[1], np.sqrt(np.square(each).mean()))
        if is_constant(common, np.abs(mean).max(), Y.dtype).all():
            return mean, np.ones(Y.shape[1])
        if self._operator is not None:
            return mean, common
        # a target that is constant in the first batch may not remain so
        return mean, np.where(is_constant(each, mean, Y.dtype), common, each)

    @property
    def coef_(self) -> np.ndarray:
        return self._targets.linear_model(*self._linear())[0]

    @property
    def intercept_(self) -> np.ndarray:
        return self._targets.linear_model(*self._linear())[1]

    def _trained(self, rate: int) -> tuple[np.ndarray, np.ndarray]:
        coefficients, intercept = super()._trained(rate)
        scaled = (self._target_scale * coefficients).astype(coefficients.dtype)
        return scaled, self._target_mean + self._target_scale * intercept

    def _slope(self, scores: Tensor, y: Tensor) -> Tensor:
        return 2 * (scores - y)

    def _batch_scores(self, scores: Tensor, y: Tensor) -> Tensor:
        errors = (scores - y[:, None, :]).square().sum(0).double()
        squares = np.square(np.atleast_1d(self._target_scale))  # one number in checkpoints of earlier versions
        return -(errors * torch.from_numpy(squares).to(errors.device)).mean(1)


def _operator_of(structure: Any, Y: np.ndarray) -> Operator | None:
    if not isinstance(structure, Structure):
        return None
    structure.check_targets(Y.shape[1])
    if structure.learns_output:
        raise InputError("AdaGradRegressor: a learned output matrix is found in closed form only; use SteinRegressor")
    if structure.stacked is not None:
        raise InputError("AdaGradRegressor takes no equivariant features; use SteinRegressor or CGRegressor")
    return structure.operator(Y)


@register("classifier", "adagrad")
@dataclass(eq=False, repr=False)
class AdaGradClassifier(EpochClassifier, _AdaGrad):
    """A linear classifier by AdaGrad (Duchi et al. 2011): (1/n) sum_i loss_i + lambda |W|^2.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared"}
        Multinomial logistic, or one against all with the hinge or squared loss.
    learning_rate : float > 0, list of them, or None
        Several values are trained in parallel for one epoch, or until there were 4 steps, and
        the one with the best accuracy, in one epoch on points not yet seen, is trained further; None is 0.01 to 1,
        divided by the root mean square distance of the features of the first batch from their mean.
    regularization : float >= 0
        lambda.
    batch_size : int >= 1
        Points a step.
    epochs : int >= 1
        Passes over the data.
    engine : Engine or None
        Its device is trained on.
    random_state : int, RandomState or None
        Seed of the order of the points.

    Attributes
    ----------
    classes_ : array, shape (k,)
    coef_, intercept_ : arrays, shape (k, d) and (k,), or (1, d) and (1,) for two classes
    regularization_ : float
    learning_rate_, path_, path_scores_, history_ : as of :class:`~orbit.learners.epochs.EpochLearner`
        Scores are accuracies.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import AdaGradClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = AdaGradClassifier(random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> bool(model.score(X[1000:] / 16, y[1000:]) > 0.85)
    True
    """

    loss: Literal["logistic", "hinge", "squared"] = "logistic"
    learning_rate: PositiveFloat | list[PositiveFloat] | None = None
    regularization: NonNegativeFloat = 0.0
    batch_size: PositiveInt = 64
    epochs: PositiveInt = 5
    engine: Engine | None = None
    random_state: RandomState = None

    _code = staticmethod(one_column_per_class)

    # for two classes one row, of the second class, as of scikit-learn's classifiers
    @property
    def coef_(self) -> np.ndarray:
        coefficients = self._linear()[0].T
        return coefficients if len(self.classes_) > 2 else np.diff(coefficients, axis=0)

    @property
    def intercept_(self) -> np.ndarray:
        intercept = self._linear()[1]
        return intercept if len(self.classes_) > 2 else np.diff(intercept)

    def _slope(self, scores: Tensor, y: Tensor) -> Tensor:
        if self.loss == "logistic":
            return torch.softmax(scores, dim=2) - (y > 0).to(scores.dtype)
        if self.loss == "hinge":
            return -y * (scores * y < 1)
        return 2 * (scores - y)

    def _batch_scores(self, scores: Tensor, y: Tensor) -> Tensor:
        return (scores.argmax(2) == y.argmax(1)[:, None]).sum(0)
