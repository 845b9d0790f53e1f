"""Seeds and generators for all random draws of the library."""

from typing import Annotated

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from orbit.core.errors import InputError
from orbit.core.params import Range

RandomState = Annotated[int, Range(low=0)] | np.random.RandomState | None


def spawn(random_state: RandomState, count: int) -> list[int]:
    """``count`` independent integer seeds from a ``random_state`` as in scikit-learn.

    >>> spawn(0, 2) == spawn(0, 2)
    True
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        random_state = int(check_random_state(random_state).randint(2**31 - 1))
    return [int(s) for s in np.random.SeedSequence(random_state).generate_state(count)]


def generator(random_state: RandomState) -> np.random.Generator:
    """A NumPy generator from a ``random_state`` as in scikit-learn."""
    return np.random.default_rng(spawn(random_state, 1)[0])


def part_size(n: int, fraction: float) -> int:
    """The number of points of a random part of ``n`` points; at least one is in the part, and at least one is not."""
    return min(max(1, round(n * fraction)), n - 1)


def hold_out(
    n: int, fraction: float, labels: np.ndarray | None, random_state: RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Indices for fitting and for validation, stratified by ``labels`` as far as possible.

    Classes with a single member are in the part for fitting. Of more classes than points in a part, the smallest are
    stratified as one.

    Raises
    ------
    InputError
        If ``n`` is 1.
    """
    if n < 2:
        raise InputError("selection by hold-out needs at least 2 points, found n_samples=1")
    n_validation = part_size(n, fraction)
    single, strata = (np.zeros(n, bool), None) if labels is None else _strata(labels, n_validation)
    points, seed = np.arange(n), spawn(random_state, 1)[0]
    fit, validation = train_test_split(points[~single], test_size=n_validation, stratify=strata, random_state=seed)
    return np.concatenate([points[single], fit]), validation


def _strata(labels: np.ndarray, n_validation: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Which points are the only ones of their class, and the strata of the others; no such points if most are."""
    _, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    single = counts[classes] == 1
    left = len(labels) - single.sum() - n_validation
    if left < 1:
        return np.zeros(len(labels), bool), None
    most = min(n_validation, left)
    if (counts > 1).sum() > most:
        ranks = np.argsort(np.argsort(-counts, kind="stable"))
        classes = np.minimum(ranks[classes], most - 1)
    return single, classes[~single]
