"""Affine maps of 2-D images as products of simple maps, with a single resampling: Raj et al. 2017, section 4.3."""

import math
from typing import Any, ClassVar

import numpy as np

from orbit.groups.domains import Circle, Line, LogScale, ProductDomain, wrap
from orbit.groups.planar import PlanarMap, turn, with_offset
from orbit.groups.resampled import Fill
from orbit.registry import register


@register("group", "affine")
class Affine(PlanarMap):
    """Scaling, rotation and shift (and shear) of images, by one resampling of the composed map.

    Elements are rows (angle in radians, log scale, shift down in pixels, shift
    right in pixels); the map is ``u -> scale R(angle) u + shift``. With ``shear``
    two more numbers, slope and log stretch, give every affine map that preserves
    orientation: ``u -> scale R(angle) [[e^stretch, slope], [0, e^-stretch]] u + shift``.
    Without the stretch, these maps would not be closed under composition.

    Parameters
    ----------
    shear : bool
        Include shear and stretch.
    unitary : bool
        Divide intensities by the scale, ``|J|^(-1/2)`` of Raj et al. 2017, Lemma 2.1.
    fill : {"zero", "edge", "reflect", "mean"}
        What is read outside of the image: zeros, the nearest pixel, mirrored pixels,
        or the mean of the image, per channel.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Affine
    >>> Affine().act([[np.pi / 2, 0.0, 0.0, 1.0]], np.arange(9.0).reshape(1, 3, 3))[0, 0].round(12)
    array([[0., 2., 5.],
           [0., 1., 4.],
           [0., 0., 3.]])
    """

    default_distribution: ClassVar[dict[str, Any]] = {"name": "product"}
    default_rule = "qmc"
    default_size = 64

    def __init__(self, shear: bool = False, unitary: bool = True, fill: Fill = "zero") -> None:
        self.shear = shear
        self.unitary = unitary
        self.fill = fill

    @property
    def domain(self) -> ProductDomain:
        parts = (Circle(), LogScale(), Line(2, "pixels"), Line(unit="slope"), Line(unit="log stretch", largest=50.0))
        names = ("rotation", "scaling", "translation", "shear", "stretch")
        count = 5 if self.shear else 3
        return ProductDomain(parts[:count], names[:count])

    def factor_distributions(self) -> list[dict[str, Any]]:
        """Those of Raj et al. 2017, section 4.3; slope and log stretch are normal with standard deviation 0.1."""
        rest = [{"name": "gaussian", "sigma": 0.1}] * 2 if self.shear else []
        return [
            {"name": "von_mises", "concentration": 9.0},
            {"name": "lognormal", "mean": 0.0, "sigma": 0.3},
            {"name": "gaussian", "sigma": 0.3},
            *rest,
        ]

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        left, right = np.broadcast_arrays(self._rows(left).astype(float), self._rows(right).astype(float))
        pairs = [self._compose_one(a, b) for a, b in zip(left, right, strict=True)]
        return np.array(pairs).reshape(len(pairs), *self.domain.shape)

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        inverses = [self._coordinates(self._inverse_map(e), -float(e[1]), -float(e[0])) for e in self._rows(elements)]
        return np.array(inverses).reshape(len(inverses), *self.domain.shape)

    def describe(self, element: np.ndarray) -> str:
        rest = f", slope {element[4]:+.2f}" if self.shear else ""
        return (
            f"{math.degrees(element[0]):.0f}° ×{math.exp(element[1]):.2f}\n{element[2]:+.1f},{element[3]:+.1f} px{rest}"
        )

    def _matrix(self, element: np.ndarray) -> np.ndarray:
        matrix = math.exp(element[1]) * turn(element[0])
        if self.shear:
            slope, stretch = element[4:]
            matrix = matrix @ np.array([[math.exp(stretch), slope], [0.0, math.exp(-stretch)]])
        return matrix

    def _compose_one(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        A = self._matrix(left)
        offset = A @ _offset(right) + _offset(left)
        composed = with_offset(A @ self._matrix(right), offset)
        return self._coordinates(composed, left[1] + right[1], left[0] + right[0])

    def _coordinates(self, matrix: np.ndarray, log_scale: float, angle: float) -> np.ndarray:
        """The element of a map; scale and, without shear, angle are passed in because they are more accurate."""
        shift = [-matrix[1, 2], matrix[0, 2]]
        if not self.shear:
            return np.array([wrap(angle), log_scale, *shift])
        angle = math.atan2(matrix[1, 0], matrix[0, 0])
        upper = turn(-angle) @ matrix[:, :2] / math.exp(log_scale)
        return np.array([wrap(angle), log_scale, *shift, upper[0, 1], math.log(upper[0, 0])])

    def _inverse_map(self, element: np.ndarray) -> np.ndarray:
        element = np.asarray(element, dtype=float)
        inverse = np.linalg.inv(self._matrix(element)) if self.shear else math.exp(-element[1]) * turn(-element[0])
        return with_offset(inverse, -inverse @ _offset(element))

    def _intensities(self, elements: np.ndarray) -> np.ndarray | None:
        return np.exp(-np.asarray(elements, float)[:, 1]) if self.unitary else None


def _offset(element: np.ndarray) -> np.ndarray:
    """The shift of an element as (x to the right, y upwards)."""
    return np.array([element[3], -element[2]])
