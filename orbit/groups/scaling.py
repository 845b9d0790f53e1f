"""Isotropic scaling of 2-D images about their centre: Raj et al. 2017, section 4.3."""

import math
from typing import Any, ClassVar

import numpy as np

from orbit.groups.base import AdditiveGroup
from orbit.groups.domains import LogScale
from orbit.groups.planar import PlanarMap, with_offset
from orbit.groups.resampled import Fill
from orbit.registry import register


@register("group", "scaling")
class Scaling(AdditiveGroup, PlanarMap):
    """Isotropic scaling of images ``(h, w)`` or ``(h, w, channels)``; elements are logarithms of the scale.

    Parameters
    ----------
    unitary : bool
        Divide intensities by the scale, ``|J|^(-1/2)`` of Raj et al. 2017, Lemma 2.1, which
        preserves inner products up to interpolation error and content that leaves
        the image.
    fill : {"zero", "edge", "reflect", "mean"}
        What is read outside of the image: zeros, the nearest pixel, mirrored pixels,
        or the mean of the image, per channel.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Scaling
    >>> X = np.zeros((1, 5, 5))
    >>> X[0, 1:4, 1:4] = 1.0
    >>> Scaling().act([np.log(2)], X)[0, 0, 2]
    array([0.5, 0.5, 0.5, 0.5, 0.5])
    """

    domain = LogScale()
    default_distribution: ClassVar[dict[str, Any]] = {"name": "lognormal"}
    default_size = 16

    def __init__(self, unitary: bool = True, fill: Fill = "zero") -> None:
        self.unitary = unitary
        self.fill = fill

    def describe(self, element: np.ndarray) -> str:
        return f"× {math.exp(element):.2f}"

    def _inverse_map(self, element: np.ndarray) -> np.ndarray:
        return with_offset(math.exp(-element) * np.eye(2))

    def _intensities(self, elements: np.ndarray) -> np.ndarray | None:
        return np.exp(-np.asarray(elements, float)) if self.unitary else None
