"""Landmarks from the data or their orbits, chosen by the rules of :mod:`orbit.kernels.landmarks`."""

import numpy as np
import torch

from orbit.engine import Engine
from orbit.engine.embedding import Encode, flatten
from orbit.kernels import Kernel
from orbit.kernels.landmarks import Landmarks
from orbit.orbits import Orbit


def select(
    rule: Landmarks,
    X: np.ndarray,
    kernel: Kernel,
    orbit: Orbit,
    engine: Engine,
    size: int,
    rng: np.random.Generator,
    encode: Encode = flatten,
) -> np.ndarray:
    """Landmarks for a fitted kernel and orbit.

    Parameters
    ----------
    X : array, shape (n, *shape)
    size : number of landmarks; fewer are returned if there are fewer points, or moved points
    encode : maps moved points (m, *shape) to the vectors (m, d) that the kernel takes

    Returns
    -------
    array, shape (at most min(size, number of points), d)
    """
    candidates = _candidates(rule, X, orbit, size, rng)
    if not rule.uses_vectors:
        return engine.encoded(rule.choose(candidates, kernel, size, rng), encode)
    return rule.choose(engine.encoded(candidates, encode), kernel, size, rng)


def _candidates(rule: Landmarks, X: np.ndarray, orbit: Orbit, size: int, rng: np.random.Generator) -> np.ndarray:
    """Points to choose landmarks from, shape (m, *shape)."""
    if rule.source == "data":
        return X
    count = rule.at_most(max(size, len(X)), len(X), len(orbit.weights_))
    # distinct (point, element) pairs: with as many landmarks as orbit points, all of them are taken
    pairs = rng.permutation(len(X) * len(orbit.weights_))[:count]
    points, elements = np.divmod(pairs, len(orbit.weights_))
    moved = np.empty((count, *X.shape[1:]), dtype=X.dtype)
    for i in np.unique(elements):
        chosen = elements == i
        moved[chosen] = orbit.points(torch.from_numpy(X[points[chosen]]), slice(i, i + 1))[0].numpy()
    return moved
