"""Small turns, scalings and shifts: the affine maps with limits, for images that are upright."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from orbit.core.params import NonNegativeFloat, Range
from orbit.groups.affine import Affine
from orbit.groups.resampled import Fill
from orbit.registry import register

_LARGEST_ANGLE, _BELOW_ONE = 180.0, 0.99


@register("group", "small_moves")
@dataclass(eq=False, repr=False)
class SmallMoves(Affine):
    """The maps of ``affine`` with limited angle, scale and shift, for images where a large turn changes the class.

    Elements are those of :class:`~orbit.groups.affine.Affine`. The limits define the default distribution: angle,
    logarithm of the scale and shift are independent and uniform. A limit of zero leaves that move out.

    Parameters
    ----------
    angle : float in [0, 180]
        Largest angle, in degrees, in either direction.
    shift : float >= 0
        Largest shift along each axis, in pixels.
    scale : float in [0, 0.99]
        Scales range from 1 - scale to 1 + scale.
    unitary : bool
        Divide intensities by the scale, as in ``affine``.
    fill : {"zero", "edge", "reflect", "mean"}
        What is read outside of the image: zeros, the nearest pixel, mirrored pixels,
        or the mean of the image, per channel.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> moves = orbit.build("group", "small_moves", shift=0)
    >>> orb = orbit.Orbit(moves, orbit.build("distribution", "product"), size=16, rule="qmc").fit(np.zeros((1, 8, 8)))
    >>> bool(np.abs(np.degrees(orb.elements_[:, 0])).max() <= 15), float(np.abs(orb.elements_[:, 2:]).max())
    (True, 0.0)
    """

    angle: Annotated[float, Range(low=0, high=_LARGEST_ANGLE)] = 15.0
    shift: NonNegativeFloat = 2.0
    scale: Annotated[float, Range(low=0, high=_BELOW_ONE)] = 0.1
    unitary: bool = True
    fill: Fill = "zero"

    default_size = 32
    shear = False
    limits = ("angle", "shift", "scale")

    def factor_distributions(self) -> list[dict[str, Any]]:
        return [
            _uniform(-self.angle, self.angle, "degrees"),
            _uniform(math.log1p(-self.scale), math.log1p(self.scale)),
            _uniform(-self.shift, self.shift),
        ]


def _uniform(low: float, high: float, unit: str = "native") -> dict[str, Any]:
    return {"name": "uniform", "low": low, "high": high, "unit": unit} if high > low else {"name": "delta"}
