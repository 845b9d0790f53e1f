"""The points themselves as features: the linear kernel, averaged over the orbit."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from orbit.approx.base import AveragedMap
from orbit.core.random import RandomState
from orbit.engine import Engine
from orbit.engine.embedding import Embedding, Scratch
from orbit.kernels import Kernel, Polynomial
from orbit.orbits import Orbit
from orbit.registry import register


@register("approx", "points")
@dataclass(eq=False, repr=False)
class RawPoints(AveragedMap):
    """psi(x) = sum_i w_i g_i x, flattened: for learners that compute their own features, such as ``network``.

    Inner products are those of the linear kernel averaged over the orbit.

    Parameters
    ----------
    kernel : Kernel or None
        Not used for the features; such a learner may take its layers from it. None is the linear kernel.
    orbit : Orbit or None
        The orbit to average over; None is no averaging.
    engine : Engine or None
    random_state : int, RandomState or None
        Seed of the orbit.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> orbit.build("approx", "points").fit_transform(np.arange(8.0).reshape(2, 2, 2))
    array([[0., 1., 2., 3.],
           [4., 5., 6., 7.]])
    """

    kernel: Kernel | None = None
    orbit: Orbit | None = None
    engine: Engine | None = None
    random_state: RandomState = None

    def implied_kernel(self) -> Polynomial:
        """The linear kernel."""
        return Polynomial(degree=1, gamma=1.0, coef0=0.0)

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        self._n_features_out = int(np.prod(X.shape[1:]))

    def _embedding(self, dtype: np.dtype) -> Embedding:
        return _Coordinates(self._n_features_out)


class _Coordinates(Embedding):
    """Units are the coordinates of a point."""

    sums_are_features = True

    def __init__(self, d: int) -> None:
        self.units = self.width = self.n_outputs = d

    def add(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        total[:, units].add_(points[:, units], alpha=weight)
