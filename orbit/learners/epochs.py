"""Learners trained by gradient steps: passes over the points, and the choice of a learning rate during the first."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from torch import Tensor

from orbit.core.errors import InputError
from orbit.core.params import PositiveFloat, PositiveInt
from orbit.core.random import RandomState, generator
from orbit.core.threads import default_threads, single_threaded
from orbit.engine import Engine
from orbit.learners.base import Learner
from orbit.learners.targets import Labels, Numbers, check_classes

# Learning rates are compared after at least this many steps: before the first step their scores are equal.
_FEWEST_STEPS = 4

# A step on a batch of this many numbers takes a millisecond or more, and less with several threads.
_WIDE_BATCH = 2**20


class EpochLearner(Learner):
    """A learner trained on batches for several epochs, with several learning rates in parallel.

    Each batch is predicted before its step, so the scores of the first epoch are
    scores on unseen data. The rate with the best score is used; the others are
    dropped at the end of the first epoch by which at least 4 steps were taken. If that
    is a later one, its scores are on points seen before. A subclass implements the
    abstract methods.

    Attributes
    ----------
    path_, path_scores_ : arrays
        The learning rates, and their scores in the last epoch in which they were compared.
    learning_rate_ : float
    epochs_done_ : int
    history_ : list of float
        The mean score of each epoch, on points before their steps.
    saved : tuple of str
        Attributes that :meth:`checkpoint` saves; the others follow from them.
    """

    path_parameter = "learning_rate"
    saved: ClassVar[tuple[str, ...]] = (
        *("path_", "path_scores_", "_rates", "_score_sums", "_seen", "_comparing", "_steps_done"),
        *("epochs_done_", "history_", "learning_rate_", "n_features_in_"),
    )

    learning_rate: PositiveFloat | list[PositiveFloat] | None
    batch_size: PositiveInt
    epochs: PositiveInt
    engine: Engine | None
    random_state: RandomState
    learning_rate_: float
    epochs_done_: int
    history_: list[float]
    n_features_in_: int
    _score_sums: np.ndarray
    _comparing: bool
    _steps_done: int

    def fit(self, X, y):
        """Fit to rows ``X``, shape (n, d), and targets ``y``: class labels, shape (n,), or numbers, (n,) or (n, k)."""
        self._train(*self._prepared(X, y, reset=True))
        return self

    def predict(self, X) -> np.ndarray:
        """Predictions: class labels, shape (n,), or real numbers shaped like the targets, (n,) or (n, k)."""
        scores = self._scores(X)
        return self._targets.decode(scores)

    def remaining_epochs(self) -> int:
        """The number of passes over a stream that remain."""
        return self.epochs - (self.epochs_done_ if self._in_training() else 0)

    def finalize(self):
        """End a stream: keep the best learning rate and release the state of the training."""
        if self._in_training():
            self._publish_best()
            self._discard_training_state()
        return self

    def end_epoch(self) -> None:
        """Record the end of a pass: from now on all points have been seen.

        Raises
        ------
        InputError
            If the training diverges.
        """
        self._publish_best()
        if not self._is_finite():
            raise InputError(
                f"learner.learning_rate: training with {self.learning_rate_:g} has led to weights that are NaN or "
                f"infinite in epoch {self.epochs_done_ + 1}: choose a smaller one, or scale the features"
            )
        self.history_.append(float(self._means()[self._best()]))
        if self._comparing and self._steps_done >= _FEWEST_STEPS:
            self._keep(self._best())
            self._score_sums = self._score_sums[[self._best()]]
            self._rates, self._comparing = np.array([self.learning_rate_]), False
        self.epochs_done_ += 1
        self._score_sums, self._seen = np.zeros_like(self._score_sums), 0

    def checkpoint(self) -> dict[str, np.ndarray]:
        """The state of a training between two epochs, from which :meth:`resume` goes on: arrays of numbers or text."""
        arrays = {name: np.asarray(vars(self)[name]) for name in self.saved}
        return {
            name: array.astype(str) if array.dtype == object else array.copy()  # later steps change it in place
            for name, array in (arrays | self._training_arrays()).items()
        }

    def resume(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on with the training of a learner of equal parameters, from its :meth:`checkpoint`.

        Raises
        ------
        KeyError, ValueError, RuntimeError
            If the arrays are not those of such a learner.
        """
        arrays = {name: np.array(array) for name, array in arrays.items()}  # which steps change in place
        for name in self.saved:
            setattr(self, name, arrays[name] if arrays[name].ndim else arrays[name].item())
        self.history_ = list(arrays["history_"].tolist())
        self._resume_training(arrays)
        self._publish_best()

    @property
    @abstractmethod
    def _targets(self) -> Numbers | Labels:
        """The targets of the fit, from attributes that are :attr:`saved`."""

    @abstractmethod
    def _prepared(self, X, y, reset: bool) -> tuple[Any, np.ndarray]:
        """Validated features, and targets encoded for ``_step``, shape (n, k); ``reset`` for the first batch."""

    @abstractmethod
    def _training_arrays(self) -> dict[str, np.ndarray]:
        """The state that only training needs."""

    @abstractmethod
    def _resume_training(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore that state; the attributes :attr:`saved` are set."""

    @abstractmethod
    def _begin(self, X: np.ndarray, k: int) -> None:
        """Initialise for ``k`` outputs, with the learning rates ``_rates``; ``X`` is the first batch."""

    @abstractmethod
    def _dtype(self) -> str:
        """The type of the numbers in training: ``float32`` or ``float64``."""

    @abstractmethod
    def _in_training(self) -> bool:
        """Whether a training is under way, not yet ended by ``_discard_training_state``."""

    @abstractmethod
    def _step(self, x: Any, y: np.ndarray) -> Tensor:
        """Take one step for every rate; return the scores before it, summed over the batch: shape (rates,)."""

    @abstractmethod
    def _keep(self, best: int) -> None:
        """Continue with the rate of index ``best`` only."""

    @abstractmethod
    def _publish(self, best: int) -> None:
        """Set the fitted attributes from the model of the rate of index ``best``."""

    @abstractmethod
    def _is_finite(self) -> bool:
        """Whether all numbers of the published model are."""

    @abstractmethod
    def _discard_training_state(self) -> None:
        """Release the state that only training needs."""

    @abstractmethod
    def _scores(self, X) -> np.ndarray:
        """Scores for ``X``, which is validated here: shape (n, k)."""

    def _tensor(self, array: np.ndarray) -> Tensor:
        """A copy of an array on the device of the engine."""
        return (self.engine or Engine()).tensor(array, array.dtype)

    def _rates_for(self, X: np.ndarray) -> np.ndarray:
        """The learning rates, given the first batch."""
        return self._path()

    def _train(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Train for all epochs on data in memory, each in a new order."""
        if self._in_training():
            self._discard_training_state()
        rng = generator(self.random_state)
        for _ in range(self.epochs):
            order = rng.permutation(len(X))
            self._steps(X[order], Y[order])
            self.end_epoch()
        self.finalize()

    def _batch_of(self, X, y, reset: bool) -> tuple[Any, np.ndarray]:
        """Validated features, an array or a tensor, and targets."""
        self.check()
        X = self._accepted(X)[1]
        if not (self.takes_tensors and isinstance(X, Tensor)):
            return self._validated(X, y, reset)
        return self._checked_tensor(X, reset, y := np.asarray(y)), y

    def _steps(self, X: Any, Y: np.ndarray) -> None:
        if not self._in_training():
            first = X.cpu().numpy() if isinstance(X, Tensor) else X
            self.path_ = self._rates = self._rates_for(first)
            self._score_sums, self._seen = np.zeros(len(self.path_)), 0
            self.epochs_done_, self.history_, self._comparing, self._steps_done = 0, [], True, 0
            self.learning_rate_ = float(self._rates[len(self._rates) // 2])  # until there are scores
            self._begin(first, Y.shape[1])
        dtype = self._dtype()  # of the first batch
        X = X.to(getattr(torch, dtype)) if isinstance(X, Tensor) else X.astype(dtype, copy=False)
        threads = self._threads(X.shape[1])
        with single_threaded(), (self.engine or Engine()).precision():
            torch.set_num_threads(threads)  # single_threaded restores the number before
            batches = [slice(start, start + self.batch_size) for start in range(0, len(X), self.batch_size)]
            scores = [self._step(X[rows], Y[rows].astype(dtype)) for rows in batches]
            # in one copy, because a GPU is idle while it is waited for
            for score in torch.stack(scores).double().cpu().numpy():
                self._score_sums += score
            self._seen, self._steps_done = self._seen + len(X), self._steps_done + len(batches)
        self._publish_best()

    def _threads(self, width: int) -> int:
        """Threads of a step on rows of ``width`` numbers.

        One if a step is small: synchronising threads after each operation would cost more than it gains.
        """
        return default_threads() if self.batch_size * width >= _WIDE_BATCH else 1

    def _publish_best(self) -> None:
        if self._comparing and self._seen:  # at the end of an epoch they have been set
            self.path_scores_ = self._means()
            self.learning_rate_ = float(self._rates[self._best()])
        self._publish(int(np.flatnonzero(self._rates == self.learning_rate_)[0]))

    def _means(self) -> np.ndarray:
        return self._score_sums / max(self._seen, 1)

    def _best(self) -> int:
        """Index of the best rate among those still trained, the middle one in a tie; one that diverges is worst."""
        means = np.nan_to_num(self._means(), nan=-np.inf)
        best = np.flatnonzero(means == means.max())
        return int(best[len(best) // 2])


class EpochClassifier(ClassifierMixin, EpochLearner):
    """A classifier trained in epochs, on an array or on the batches of a stream; ``_code`` is that of labels."""

    _code: ClassVar[staticmethod]
    saved = (*EpochLearner.saved, "classes_")

    @property
    def _targets(self) -> Labels:
        return Labels(self.classes_, self._code)

    def _prepared(self, X, y, reset: bool, classes=None) -> tuple[Any, np.ndarray]:
        X, y = self._batch_of(X, y, reset)
        if reset:
            self.classes_ = check_classes(y if classes is None else np.asarray(classes))
        return X, self._targets.encode(y)

    def partial_fit(self, X, y, classes=None):
        """Take steps on a batch, ``X`` (m, d), also a tensor if the learner ``takes_tensors``, and labels ``y`` (m,).

        Call ``end_epoch`` after each pass over the stream, and ``finalize`` after the last.
        ``classes``, given with the first batch, are all labels of the stream; None: those in that batch.
        """
        self._steps(*self._prepared(X, y, not self._in_training(), classes))
        return self

    def decision_function(self, X) -> np.ndarray:
        """Scores, shape (n, k), or (n,) for two classes."""
        scores = self._scores(X)
        return self._targets.decision(scores)
