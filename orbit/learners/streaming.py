"""Learning from a stream of features: each batch of rows is computed, used and discarded."""

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from orbit.core import distributed
from orbit.core.errors import InputError
from orbit.core.progress import Progress
from orbit.core.random import RandomState, generator
from orbit.core.threads import one_ahead
from orbit.data.rows import distinct, own_rows
from orbit.engine import Engine
from orbit.learners.base import Learner
from orbit.learners.protocols import Distributes, Epochs, Passes, Streams

log = logging.getLogger(__name__)

# Number of points from which scales, lengthscales and the like are estimated for a stream.
SAMPLE_ROWS = 4096
# Number of rows of a batch that suffices to keep every core busy with matrix products.
_BATCH_ROWS = 2048


class FeatureStream:
    """The features of some points in batches of rows, in a new order for each pass.

    In a job of several processes, each process reads its own share of the rows.

    Parameters
    ----------
    transform : callable
        Points (m, *shape) to features (m, n_outputs).
    X : array or Rows, shape (n, *shape)
    n_outputs : int
    engine : Engine
        Its memory budget limits the size of a batch.
    random_state : int, RandomState or None
        Seed of the orders.
    augment : callable or None
        From points (m, *shape) and a generator to augmented points, for every batch.

    Attributes
    ----------
    state : state of the random generators of orders and augmentations; assign a saved one to resume
    """

    def __init__(
        self,
        transform: Callable[[np.ndarray], np.ndarray],
        X: Any,
        n_outputs: int,
        engine: Engine,
        random_state: RandomState = None,
        augment: Callable[[np.ndarray, np.random.Generator], np.ndarray] | None = None,
    ) -> None:
        self.transform, self.X, self.engine, self.augment = transform, X, engine, augment
        self.n_outputs = n_outputs
        self._rng = generator(random_state)
        self._rows = own_rows(X)
        self._batches = list(row_batches(X, len(self._rows), n_outputs, engine))

    def batches(self, shuffle: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of row indices and the features of those rows."""
        # sorted first, so that shuffled orders are the same for rows of a file and rows in memory
        order = self._rng.permutation(np.sort(self._rows)) if shuffle else self._rows
        points: Iterator[tuple[np.ndarray, np.ndarray]]
        points = (self._points(np.asarray(order[batch])) for batch in self._batches)
        if self.engine.torch_device().type == "cuda":  # which waits for the next points otherwise
            points = one_ahead(points)
        with Progress(len(self._batches), "stream", self.engine.progress) as progress:
            for rows, batch in points:
                held = [batch]
                del batch  # so that it is gone when the next points are made
                yield rows, self.transform(held.pop())
                progress.step()

    def _points(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row indices, and the points of those rows."""
        points = self.X[rows]
        return rows, points if self.augment is None else self.augment(points, self._rng)

    def first_row(self) -> int:
        """The number of rows in the processes before this one; to be called by all of them."""
        return sum(distributed.gather(len(self._rows))[: distributed.rank()])

    @property
    def state(self) -> Mapping[str, Any]:
        return self._rng.bit_generator.state

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self._rng.bit_generator.state = state


def row_batches(X: Any, n: int, n_outputs: int, engine: Engine) -> Iterator[slice]:
    """Slices of ``n`` rows of ``X``, each for the rows that are read, represented and mapped to features at once."""
    # the features and a learner's centred copy of them; raw and represented points
    bytes_per_row = 3 * n_outputs * engine.result_dtype(X).itemsize
    bytes_per_row += 2 * math.prod(X.shape[1:]) * X.dtype.itemsize
    return engine.row_batches(n, bytes_per_row, at_most=_BATCH_ROWS)


class EpochCallback(Protocol):
    """A callback for training in epochs."""

    def after_epoch(self, learner: Any, stream: FeatureStream) -> None:
        """Called after each epoch."""


def fit_stream(
    learner: Any,
    stream: FeatureStream,
    y: np.ndarray,
    task: str,
    sample_weight: np.ndarray | None = None,
    callback: EpochCallback | None = None,
) -> Any:
    """Fit a learner that :class:`Streams`: one pass for least squares, ``epochs`` passes for gradient steps.

    Least squares whose second moments do not fit in the engine's ``memory`` take many passes.

    Parameters
    ----------
    learner : classifier or regressor
    stream : FeatureStream
    y : array or Rows, shape (n,) or (n, k)
    task : {"classification", "regression"}
    sample_weight : array, shape (n,), or None
    callback : EpochCallback or None
        Called after every epoch of a learner that is trained in :class:`Epochs`; one with ``epochs_done_`` above 0
        resumes from there.

    Raises
    ------
    InputError
        If the learner needs all features at once.
    ProcessLostError
        If another process of a distributed job died.
    ShareDone
        In every process of a distributed job except the first, which returns the learner.
    """
    check_streams(learner)
    known = {"classes": distinct(y)} if task == "classification" else {}
    memory = stream.engine.budget
    if takes_passes(learner, stream.n_outputs, memory):
        log.info(
            "second moments of %d columns do not fit in the memory of the engine, %g GiB: taking passes instead",
            stream.n_outputs,
            stream.engine.memory,
        )
        weighted = (lambda rows: np.ones(len(rows))) if sample_weight is None else sample_weight.__getitem__
        learner.fit_passes(lambda: ((psi, y[r], weighted(r)) for r, psi in stream.batches(False)), memory, **known)
        distributed.end_other_processes()
        return learner
    _run_epochs(learner, stream, y, known, sample_weight, callback)
    while isinstance(learner, Distributes) and distributed.of_the_first(learner.needs_float64()):
        log.info("the best regularization is at the end of what float32 products resolve: once more in float64")
        learner.restart()
        _run_epochs(learner, stream, y, known, sample_weight, callback)
    distributed.end_other_processes()
    return learner


def is_repeated(learner: Any, n_outputs: int, engine: Engine) -> bool:
    """Whether a learner reads a stream of ``n_outputs`` columns more than once."""
    return epochs_to_do(learner) > 1 or takes_passes(learner, n_outputs, engine.budget)


def epochs_to_do(learner: Any) -> int:
    """Passes over a stream that a learner needs, or that remain of its epochs."""
    return learner.remaining_epochs() if isinstance(learner, Epochs) else 1


def takes_passes(learner: Any, n_columns: int, budget: float) -> bool:
    """Whether second moments do not fit in the budget, in bytes, and the learner can do without them."""
    return isinstance(learner, Passes) and 8 * n_columns**2 > budget


def _run_epochs(
    learner: Any,
    stream: FeatureStream,
    y: np.ndarray,
    known: dict[str, np.ndarray],
    sample_weight: np.ndarray | None,
    callback: EpochCallback | None,
) -> None:
    """Do the remaining epochs; in the first process, compute the solution."""
    if isinstance(learner, Distributes):
        learner.first_row = stream.first_row()
    in_epochs = isinstance(learner, Epochs)
    for _ in range(epochs_to_do(learner)):
        for rows, psi in stream.batches(shuffle=in_epochs):
            weights = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
            learner.partial_fit(psi, y[rows], **known, **weights)
        if in_epochs:
            learner.end_epoch()
        if in_epochs and callback is not None:
            callback.after_epoch(learner, stream)
    if distributed.world_size() > 1:
        learner.gather()
    if distributed.rank() == 0:
        _finalize(learner)


def _finalize(learner: Any) -> None:
    """Solve; suppress warnings about a solution that will be replaced by one in float64."""
    with warnings.catch_warnings(record=True) as caught:
        learner.finalize()
    if isinstance(learner, Distributes) and learner.needs_float64():
        return
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def check_streams(learner: Learner) -> None:
    """Raise ``InputError`` if a learner cannot learn from batches."""
    if not isinstance(learner, Streams):
        raise InputError(
            f"the learner {learner.name!r} needs all features at once, and cannot learn from a stream: choose "
            "'ridge', 'stein' (for operator-valued features) or 'adagrad'"
        )
    if distributed.world_size() > 1 and not isinstance(learner, Distributes):
        raise InputError(f"the learner {learner.name!r} cannot be shared by several processes: choose 'ridge'")


def sample_rows(n: int, random_state: RandomState, engine: Engine, n_outputs: int = 0, at_least: int = 0) -> np.ndarray:
    """A random sample of ``n`` rows, sorted, the same in every process of a job.

    4,096 rows, or fewer if 4,096 rows of ``n_outputs`` columns do not fit in the engine's
    ``memory``; at least ``at_least`` and at most ``n``.
    """
    size = max(at_least, min(SAMPLE_ROWS, next(engine.row_batches(n, 8 * n_outputs)).stop))
    if n <= size:
        return np.arange(n)
    return np.sort(generator(random_state).choice(n, size, replace=False))
