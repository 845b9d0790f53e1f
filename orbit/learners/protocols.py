"""What some learners offer beside ``fit`` and ``predict``: protocols to ask for with ``isinstance`` and ``issubclass``.

A learner has what it implements; there is nothing to inherit or to declare. Whether it takes sample weights is asked
with ``sklearn.utils.validation.has_fit_parameter``.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from orbit.solvers.passes import Batches


@runtime_checkable
class Streams(Protocol):
    """Learns from batches of rows."""

    def partial_fit(self, X: Any, y: Any) -> Any:
        """Take in a batch; a classifier also takes ``classes``, all labels, with the first one."""

    def finalize(self) -> Any:
        """End the stream."""


@runtime_checkable
class Distributes(Streams, Protocol):
    """Streams by sums over rows, of which each process of a job takes its own.

    Ask for it with ``isinstance`` only, since it has an attribute.

    Attributes
    ----------
    first_row : the number of rows in the processes before this one
    """

    first_row: int

    def gather(self) -> None:
        """Add up the sums of all processes; called before ``finalize``."""

    def needs_float64(self) -> bool:
        """Whether a finalized stream should be repeated in float64, after :meth:`restart`."""

    def restart(self) -> None:
        """Restart the stream, with products in float64."""


@runtime_checkable
class Passes(Protocol):
    """Least squares on a stream whose second moments do not fit in memory."""

    def fit_passes(self, batches: Batches, memory: float, classes: np.ndarray | None = None) -> Any:
        """Fit in many passes over the batches, within ``memory`` bytes."""


@runtime_checkable
class Epochs(Streams, Protocol):
    """Passes over a stream several times; ``history_`` has the score of each of the ``epochs_done_``."""

    def remaining_epochs(self) -> int:
        """The number of passes that remain."""

    def end_epoch(self) -> None:
        """Called at the end of each pass."""

    def checkpoint(self) -> dict[str, np.ndarray]:
        """The state between two epochs."""

    def resume(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint."""


@runtime_checkable
class SharesPath(Protocol):
    """Has the predictions for every value of a path from one factorisation."""

    def path_predictions(self, X: Any, y: Any, path: np.ndarray, X_new: Any) -> Iterator[np.ndarray]:
        """Predictions for ``X_new`` after a fit with each value of ``path``; with ``sample_weight`` if ``fit`` has."""


@runtime_checkable
class GivesProbabilities(Protocol):
    """A classifier with probabilities."""

    def predict(self, X: Any) -> np.ndarray:
        """Classes, shape (n,)."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, shape (n, k)."""

    def predict_with_probabilities(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Classes, shape (n,), and their probabilities."""


@runtime_checkable
class GivesScores(Protocol):
    """A classifier with scores of the classes."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, shape (n, k), or (n,) for two classes."""


@runtime_checkable
class GivesStd(Protocol):
    """A regressor with standard deviations of its predictions."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions; with ``return_std`` a pair of predictions and standard deviations."""

    def noise_std(self) -> float | np.ndarray | None:
        """Standard deviation of the noise of an observation, a number or shape (k,), which ``return_std`` leaves out.

        None if it is not known.
        """
