"""How the landmarks of Nyström features are chosen."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np
import torch

from orbit.component import Component
from orbit.engine import Engine
from orbit.kernels import Kernel
from orbit.orbits import Orbit
from orbit.registry import register


class Landmarks(Component):
    """A rule that selects landmarks, from the data or from its orbits.

    Attributes
    ----------
    source : {"data", "orbit"}
        ``data``: landmarks are data points. ``orbit``: each is a data point moved
        by a random orbit element (LGIKA section 2.2.2 allows both).
    """

    source: Literal["data", "orbit"]

    def select(
        self, X: np.ndarray, kernel: Kernel, orbit: Orbit, engine: Engine, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Landmarks for the fitted kernel and orbit.

        Parameters
        ----------
        X : array, shape (n, *shape)
        size : number of landmarks; at most as many as there are points come back

        Returns
        -------
        array, shape (min(size, number of points), d)
        """
        return self._choose(self._candidates(X, orbit, engine, size, rng), kernel, size, rng)

    def _candidates(
        self, X: np.ndarray, orbit: Orbit, engine: Engine, size: int, rng: np.random.Generator
    ) -> np.ndarray:
        if self.source == "data":
            return X.reshape(len(X), -1)
        count = min(max(size, len(X)), len(X) * len(orbit.weights_))
        # distinct (point, element) pairs: with as many landmarks as orbit points, all of them are taken
        pairs = rng.permutation(len(X) * len(orbit.weights_))[:count]
        points, elements = np.divmod(pairs, len(orbit.weights_))
        moved = np.empty((count, X[0].size), dtype=X.dtype)
        for i in np.unique(elements):
            chosen = elements == i
            tile = orbit.points(torch.from_numpy(X[points[chosen]]), slice(i, i + 1))
            moved[chosen] = tile.reshape(len(tile[0]), -1).numpy()
        return moved

    @abstractmethod
    def _choose(self, candidates: np.ndarray, kernel: Kernel, size: int, rng: np.random.Generator) -> np.ndarray:
        """``min(size, m)`` landmarks from ``candidates``, shape ``(m, d)``."""


@register("landmarks", "uniform")
class Uniform(Landmarks):
    """Landmarks drawn uniformly without replacement.

    Parameters
    ----------
    source : {"data", "orbit"}

    Examples
    --------
    >>> from orbit.landmarks import Uniform
    >>> Uniform(source="orbit")
    Uniform(source='orbit')
    """

    def __init__(self, source: Literal["data", "orbit"] = "data") -> None:
        self.source = source

    def _choose(self, candidates: np.ndarray, kernel: Kernel, size: int, rng: np.random.Generator) -> np.ndarray:
        return candidates[rng.choice(len(candidates), min(size, len(candidates)), replace=False)]
