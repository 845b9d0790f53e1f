"""Linear models trained by AdaGrad on streamed features, as RFS section 5 trains its classifiers."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from orbit.learners.base import check_classes, one_against_all
from orbit.params import NonNegativeFloat, PositiveFloat, PositiveInt, check_params
from orbit.random import RandomState, generator
from orbit.registry import register

DEFAULT_RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
_EPSILON = 1e-8


class _AdaGrad(BaseEstimator):
    """What the classifier and the regressor share.

    All learning rates are trained side by side: the products with the features,
    which cost the most, are one matrix product. Each batch is predicted before it
    is learnt from, so the scores of the first epoch are scores on unseen data, and
    the rate with the best is the one used. Features are taken relative to the mean
    of those that come first.
    """

    path_parameter: ClassVar[str] = "learning_rate"

    learning_rate: PositiveFloat | list[PositiveFloat] | None
    regularization: NonNegativeFloat
    batch_size: PositiveInt
    epochs: PositiveInt
    random_state: RandomState

    def check(self) -> None:
        """Raise ``ParameterError`` if a parameter has the wrong type or range."""
        check_params(self)

    def finalize(self):
        """End a stream: keep the best learning rate and let go of what only training needs."""
        if hasattr(self, "_squares"):
            self._publish()
            del self._squares, self._weights, self._shift
        return self

    def end_epoch(self) -> None:
        """Note that the stream begins again: from now on its points have been seen."""
        self.epochs_done_ = getattr(self, "epochs_done_", 0) + 1

    def _train(self, X: np.ndarray, y: np.ndarray, Y: np.ndarray) -> None:
        """Epochs over data in memory, in a new order each."""
        self.__dict__.pop("_weights", None)
        self.epochs_done_ = 0
        rng = generator(self.random_state)
        for _ in range(self.epochs):
            order = rng.permutation(len(X))
            self._steps(X[order], Y[order])
            self.end_epoch()
        self.finalize()

    def _steps(self, X: np.ndarray, Y: np.ndarray) -> None:
        if not hasattr(self, "_weights"):
            self._begin(X, Y.shape[1])
        for start in range(0, len(X), self.batch_size):
            rows = slice(start, start + self.batch_size)
            self._step(torch.from_numpy(X[rows] - self._shift), torch.from_numpy(Y[rows].astype(X.dtype)))
        self._publish()

    def _begin(self, X: np.ndarray, k: int) -> None:
        # Invariant features vary little about their mean, and steps along it would drown all others.
        self._shift = X.mean(0)
        rates = DEFAULT_RATES if self.learning_rate is None else np.atleast_1d(self.learning_rate)
        self.path_ = np.sort(np.asarray(rates, dtype=np.float64))
        self._n_outputs, self._seen, self._score_sums = k, 0, np.zeros(len(self.path_))
        # one more row for the intercepts
        self._weights = np.zeros((X.shape[1] + 1, len(self.path_) * k), dtype=X.dtype)
        self._squares = np.full_like(self._weights, _EPSILON)

    def _step(self, x: Tensor, y: Tensor) -> None:
        weights, squares = torch.from_numpy(self._weights), torch.from_numpy(self._squares)
        rates = torch.from_numpy(np.repeat(self.path_, self._n_outputs).astype(self._weights.dtype))
        scores = torch.addmm(weights[-1], x, weights[:-1]).reshape(len(x), len(self.path_), self._n_outputs)
        if getattr(self, "epochs_done_", 0) == 0:
            self._score_sums += self._batch_scores(scores, y).double().numpy()
            self._seen += len(x)
        slope = (self._slope(scores, y[:, None, :]) / len(x)).reshape(len(x), -1)
        gradient = torch.empty_like(weights)
        torch.mm(x.T, slope, out=gradient[:-1])
        gradient[:-1].add_(weights[:-1], alpha=2 * self.regularization)
        gradient[-1] = slope.sum(0)
        squares.addcmul_(gradient, gradient)
        weights.sub_(gradient.mul_(rates).div_(squares.sqrt()))

    def _publish(self) -> None:
        self.path_scores_ = self._score_sums / max(self._seen, 1)
        # a rate that diverges has scores that are not numbers
        best = int(np.argmax(np.nan_to_num(self.path_scores_, nan=-np.inf)))
        self.learning_rate_ = float(self.path_[best])
        self.regularization_ = float(self.regularization)
        columns = slice(best * self._n_outputs, (best + 1) * self._n_outputs)
        self._coefficients = self._weights[:-1, columns].copy()
        self._intercept = self._weights[-1, columns] - self._shift @ self._coefficients

    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self, "path_")
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return X @ self._coefficients.astype(X.dtype) + self._intercept.astype(X.dtype)

    @abstractmethod
    def _slope(self, scores: Tensor, y: Tensor) -> Tensor:
        """Derivative of the loss of every score, shape (n, rates, k)."""

    @abstractmethod
    def _batch_scores(self, scores: Tensor, y: Tensor) -> Tensor:
        """For every rate, the sum over the batch of what is to be maximised, shape (rates,)."""


@register("regressor", "adagrad")
class AdaGradRegressor(MultiOutputMixin, RegressorMixin, _AdaGrad):
    """Least squares by AdaGrad (Duchi et al. 2011): (1/n) sum_i |W^T x_i + b - y_i|^2 + lambda |W|^2.

    Parameters
    ----------
    learning_rate : float > 0, list of them, or None
        Several are trained side by side and the one with the least error on
        points not yet seen, over the first epoch, is kept; None is 0.01 to 1.
    regularization : float >= 0
        lambda.
    batch_size : int >= 1
        Points a step.
    epochs : int >= 1
        Passes over the data.
    random_state : int, RandomState or None
        Seed of the order of the points.

    Attributes
    ----------
    coef_, intercept_ : arrays
    learning_rate_, regularization_ : float
    path_, path_scores_ : arrays
        The learning rates and their negative mean square errors on unseen points.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.learners import AdaGradRegressor
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> model = AdaGradRegressor(epochs=30, random_state=0).fit(X, X[:, 0])
    >>> bool(abs(model.predict([[1.0, 0.0, 0.0]])[0] - 1) < 0.05)
    True
    """

    def __init__(
        self,
        learning_rate: PositiveFloat | list[PositiveFloat] | None = None,
        regularization: NonNegativeFloat = 0.0,
        batch_size: PositiveInt = 64,
        epochs: PositiveInt = 5,
        random_state: RandomState = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.batch_size = batch_size
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X, y):
        """Fit to ``X``, shape (n, d), and ``y``, shape (n,) or (n, k)."""
        X, Y = self._targets(X, y, reset=True)
        self._train(X, Y, Y)
        return self

    def partial_fit(self, X, y):
        """Take steps on a batch of a stream; call ``end_epoch`` where it begins again, ``finalize`` at its end."""
        X, Y = self._targets(X, y, reset=not hasattr(self, "_weights"))
        self._steps(X, Y)
        return self

    def predict(self, X) -> np.ndarray:
        """Predictions, shaped as the targets were: (n,) or (n, k)."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def _targets(self, X, y, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        self.check()
        X, y = validate_data(self, X, y, reset=reset, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True)
        self._flat = y.ndim == 1
        return X, y.reshape(len(y), -1)

    def _publish(self) -> None:
        super()._publish()
        self.coef_ = self._coefficients[:, 0] if self._flat else self._coefficients.T
        self.intercept_ = self._intercept[0] if self._flat else self._intercept

    def _slope(self, scores: Tensor, y: Tensor) -> Tensor:
        return 2 * (scores - y)

    def _batch_scores(self, scores: Tensor, y: Tensor) -> Tensor:
        return -(scores - y[:, None, :]).square().mean(2).sum(0)


@register("classifier", "adagrad")
class AdaGradClassifier(ClassifierMixin, _AdaGrad):
    """A linear classifier by AdaGrad (Duchi et al. 2011): (1/n) sum_i loss_i + lambda |W|^2.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared"}
        Multinomial logistic; or one against all, with the hinge or squared loss.
    learning_rate : float > 0, list of them, or None
        Several are trained side by side and the one with the best accuracy on
        points not yet seen, over the first epoch, is kept; None is 0.01 to 1.
    regularization : float >= 0
        lambda.
    batch_size : int >= 1
        Points a step.
    epochs : int >= 1
        Passes over the data.
    random_state : int, RandomState or None
        Seed of the order of the points.

    Attributes
    ----------
    classes_ : array, shape (k,)
    coef_, intercept_ : arrays, shape (k, d) and (k,)
    learning_rate_, regularization_ : float
    path_, path_scores_ : arrays
        The learning rates and their accuracies on unseen points.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import AdaGradClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = AdaGradClassifier(random_state=0).fit(X[:1000] / 16, y[:1000])
    >>> bool(model.score(X[1000:] / 16, y[1000:]) > 0.85)
    True
    """

    def __init__(
        self,
        loss: Literal["logistic", "hinge", "squared"] = "logistic",
        learning_rate: PositiveFloat | list[PositiveFloat] | None = None,
        regularization: NonNegativeFloat = 0.0,
        batch_size: PositiveInt = 64,
        epochs: PositiveInt = 5,
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.batch_size = batch_size
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X, y):
        """Fit to ``X``, shape (n, d), and class labels ``y``, shape (n,)."""
        self.check()
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        self.classes_ = check_classes(y)
        self._train(X, y, self._coded(y))
        return self

    def partial_fit(self, X, y, classes=None):
        """Take steps on a batch of a stream; call ``end_epoch`` where it begins again, ``finalize`` at its end.

        ``classes`` are all labels that will come, given with the first batch; None: those in it.
        """
        self.check()
        first = not hasattr(self, "_weights")
        X, y = validate_data(self, X, y, reset=first, dtype=[np.float64, np.float32])
        if first:
            self.classes_ = np.unique(y if classes is None else classes)
        self._steps(X, self._coded(y))
        return self

    def decision_function(self, X) -> np.ndarray:
        """Scores, shape (n, k), or (n,) for two classes."""
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict(self, X) -> np.ndarray:
        """Class labels, shape (n,)."""
        best = self._scores(X).argmax(1)
        return self.classes_[best]

    def _coded(self, y: np.ndarray) -> np.ndarray:
        """-1 and 1, a column a class, also for two of them."""
        Y = one_against_all(y, self.classes_)
        return np.hstack([-Y, Y]) if Y.shape[1] == 1 else Y

    def _publish(self) -> None:
        super()._publish()
        self.coef_, self.intercept_ = self._coefficients.T, self._intercept

    def _slope(self, scores: Tensor, y: Tensor) -> Tensor:
        if self.loss == "logistic":
            return torch.softmax(scores, dim=2) - (y > 0).to(scores.dtype)
        if self.loss == "hinge":
            return -y * (scores * y < 1)
        return 2 * (scores - y)

    def _batch_scores(self, scores: Tensor, y: Tensor) -> Tensor:
        return (scores.argmax(2) == y.argmax(1)[:, None]).sum(0)
