"""Shear of 2-D images, such as the slant of handwriting."""

from typing import Any, ClassVar, Literal

import numpy as np

from orbit.groups.base import AdditiveGroup
from orbit.groups.domains import Line
from orbit.groups.planar import PlanarMap, with_offset
from orbit.groups.resampled import Fill
from orbit.registry import register


@register("group", "shear")
class Shear(AdditiveGroup, PlanarMap):
    """Rows (or columns) of an image shifted in proportion to their distance from the centre.

    Elements are slopes: shift in pixels per pixel of distance. The matrix has
    determinant one, so no intensity factor is needed (Raj et al. 2017, Lemma 2.1).

    Parameters
    ----------
    direction : {"horizontal", "vertical"}
        Positive slopes shift the upper rows to the right, or the right columns
        upwards.
    fill : {"zero", "edge", "reflect", "mean"}
        What is read outside of the image: zeros, the nearest pixel, mirrored pixels,
        or the mean of the image, per channel.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Shear
    >>> Shear().act([1.0], np.eye(3)[None, :, ::-1])[0, 0]
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 0.]])
    >>> Shear().act([1.0], np.eye(3)[None])[0, 0]
    array([[0., 1., 0.],
           [0., 1., 0.],
           [0., 1., 0.]])
    """

    domain = Line(unit="slope")
    default_distribution: ClassVar[dict[str, Any]] = {"name": "gaussian", "sigma": 0.2}
    default_size = 16

    def __init__(self, direction: Literal["horizontal", "vertical"] = "horizontal", fill: Fill = "zero") -> None:
        self.direction = direction
        self.fill = fill

    def describe(self, element: np.ndarray) -> str:
        return f"slope {element:+.2f}"

    def _inverse_map(self, element: np.ndarray) -> np.ndarray:
        slope = -float(element)
        across = self.direction == "horizontal"
        return with_offset(np.array([[1.0, slope if across else 0.0], [0.0 if across else slope, 1.0]]))
