"""Seeds. Every random draw in the library comes from a generator made here."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from sklearn.utils import check_random_state

from orbit.core.params import Range

RandomState = Annotated[int, Range(low=0)] | np.random.RandomState | None


def spawn(random_state: RandomState, count: int) -> list[int]:
    """``count`` independent integer seeds from scikit-learn's notion of a random state.

    >>> spawn(0, 2) == spawn(0, 2)
    True
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        random_state = int(check_random_state(random_state).randint(2**31 - 1))
    return [int(s) for s in np.random.SeedSequence(random_state).generate_state(count)]


def generator(random_state: RandomState) -> np.random.Generator:
    """A numpy generator for scikit-learn's notion of a random state."""
    return np.random.default_rng(spawn(random_state, 1)[0])
