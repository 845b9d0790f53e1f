"""Targets of learners, numbers or class labels: as columns of numbers for a solver, and back from its scores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.preprocessing import label_binarize
from sklearn.utils.multiclass import check_classification_targets

from orbit.core.linalg import check_target_size


@dataclass(frozen=True)
class Numbers:
    """Real targets.

    Attributes
    ----------
    learner : its name in errors
    flat : whether targets have the shape (n,), not (n, k)
    """

    learner: str
    flat: bool
    decide: ClassVar[None] = None  # predictions are scored by the mean square error

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Columns, shape (n, k). Raises ``InputError`` for targets of a size that cannot be computed with."""
        check_target_size(y, self.learner)
        return y.reshape(len(y), -1)

    def decode(self, scores: np.ndarray) -> np.ndarray:
        """Predictions, shaped as the targets, from scores, shape (n, k)."""
        return scores[:, 0] if self.flat else scores

    def linear_model(self, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``coef_`` and ``intercept_`` in scikit-learn's shapes, from shapes (d, k) and (k,)."""
        return (W[:, 0], b[0]) if self.flat else (W.T, b)


@dataclass(frozen=True)
class Labels:
    """Class labels.

    Attributes
    ----------
    classes : array, shape (k,)
    code : from labels, shape (n,), and classes to columns of numbers; ``ValueError`` for a label of no class
    """

    classes: np.ndarray
    code: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Columns of numbers, shape (n, columns)."""
        return self.code(y, self.classes)

    def decide(self, scores: np.ndarray) -> np.ndarray:
        """Indices of classes, shape (n,), from scores, shape (n, k), or (n, 1) for two classes."""
        return scores.argmax(1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)

    def decode(self, scores: np.ndarray) -> np.ndarray:
        """Labels, shape (n,), from such scores."""
        return self.classes[self.decide(scores)]

    def decision(self, scores: np.ndarray) -> np.ndarray:
        """Scores in scikit-learn's shape: (n, k), or (n,) for two classes, of the second."""
        if len(self.classes) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def linear_model(self, W: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``coef_`` and ``intercept_``, from shapes (d, k) and (k,)."""
        return W.T, b


def one_against_all(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Targets of -1 and 1, float64, shape (n, k); one column for two classes.

    Raises
    ------
    ValueError
        For a label that is not among ``classes``.
    """
    check_known(y, classes)
    return np.asarray(label_binarize(y, classes=classes, neg_label=-1), dtype=np.float64)


def one_column_per_class(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """:func:`one_against_all` with a column for each class, also for two classes: shape (n, number of classes)."""
    Y = one_against_all(y, classes)
    return np.hstack([-Y, Y]) if Y.shape[1] == 1 else Y


def indices(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The number of each label among the classes, as one column."""
    check_known(y, classes)
    return np.searchsorted(classes, y)[:, None]


def check_known(y: np.ndarray, classes: np.ndarray) -> None:
    """Raise ``ValueError`` for a label that is not among ``classes``."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"label {unknown.tolist()[0]!r} is not one of the classes {classes.tolist()}")


def one_hot(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Targets of 0 and 1 with a column for each class."""
    return (one_column_per_class(y, classes) + 1) / 2


def check_classes(y: np.ndarray) -> np.ndarray:
    """The classes, sorted. Raises ``ValueError`` for continuous targets, and for fewer than two classes."""
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"a classifier needs at least 2 classes, found one class: {classes.tolist()[0]!r}")
    return classes


def check_outputs(Y: np.ndarray, n_outputs: int) -> None:
    """Raise ``ValueError`` if a batch of a stream has another number of outputs than those before."""
    if Y.shape[1] != n_outputs:
        raise ValueError(f"y: expected targets with {n_outputs} outputs, as before, found {Y.shape[1]}")
