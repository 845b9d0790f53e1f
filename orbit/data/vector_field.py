"""Generated vector fields in the plane."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from orbit.core.memory import check_fits
from orbit.core.params import NonNegativeFloat, PositiveFloat, PositiveInt
from orbit.core.random import RandomState, generator
from orbit.data.base import Dataset, Loader
from orbit.registry import register

_CENTRES = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, -1.0], [-1.0, 0.0], [1.0, 0.0]])
_SIGNS = np.array([1.0, 1.0, 1.0, -1.0, -1.0])


@register("dataset", "vector_field")
@dataclass(eq=False, repr=False)
class VectorField(Loader):
    """The gradient of five Gaussian bumps, three positive and two negative, or that gradient rotated by 90 degrees.

    Points are uniform on the square [-2, 2]^2; the bumps sit at the origin and one
    unit up, down (positive) and left, right (negative). Brault et al. 2016, section 4.2 and Figure 7,
    which do not give the width of the bumps.

    Parameters
    ----------
    field : {"curl_free", "divergence_free"}
        The gradient field of the bumps, or that field rotated by 90 degrees.
    width : float > 0
        Standard deviation of the bumps.
    noise : float >= 0
        Standard deviation of Gaussian noise on every component, in both parts.
    size, test_size : int >= 1
        Points generated.
    n_train, n_test : int >= 1 or None
        Random subsets of them; None is all.

    Examples
    --------
    >>> from orbit.data import VectorField
    >>> VectorField(size=50).load(0).y_train.shape
    (50, 2)
    """

    default_representation = {"name": "raw"}
    default_group = {"name": "identity"}
    fixed_task = "regression"

    field: Literal["curl_free", "divergence_free"] = "curl_free"
    width: PositiveFloat = 0.5
    noise: NonNegativeFloat = 0.1
    size: PositiveInt = 1000
    test_size: PositiveInt = 1000

    def check_memory(self) -> None:
        for key in ("size", "test_size"):  # 25 numbers a point, with the distances from the bumps
            check_fits(f"dataset.{key}", f"{vars(self)[key]:,} points", 25 * 8 * vars(self)[key])

    def values(self, X: np.ndarray) -> np.ndarray:
        """The field without noise at points ``X``, shape ``(n, 2)``."""
        difference = X[:, None] - _CENTRES
        bumps = _SIGNS * np.exp(-np.square(difference).sum(2) / (2 * self.width**2))
        gradient = -(bumps[:, :, None] * difference).sum(1) / self.width**2
        return gradient if self.field == "curl_free" else gradient[:, ::-1] * np.array([-1.0, 1.0])

    def _load(self, random_state: RandomState) -> Dataset:
        parts = []
        for rng, size in zip(generator(random_state).spawn(2), (self.size, self.test_size), strict=True):
            X = rng.uniform(-2, 2, (size, 2))
            parts.append((X, self.values(X) + self.noise * rng.standard_normal((size, 2))))
        source = f"generated: {self.field} field of five Gaussians, noise {self.noise:g}"
        return Dataset(self.name, "regression", *parts[0], *parts[1], source)
