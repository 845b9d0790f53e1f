"""Image maps given by a matrix and an offset: the base class of rotation, scaling, shift, shear and affine.

Raj et al. 2017, Lemma 2.1: the action ``T_g[I](u) = |J_g|^(-1/2) I(g^-1 u)`` on images is
unitary, where J_g is the matrix of g. Reading the image at ``g^-1 u`` by bilinear
interpolation makes it an explicit sparse matrix: one resampling for any
composition g.
"""

import math
from abc import abstractmethod

import numpy as np

from orbit.groups.base import Group
from orbit.groups.resampled import Resampled, warn_about_channels


class PlanarMap(Resampled):
    """Images ``(h, w)`` or ``(h, w, channels)`` moved by ``u -> A u + b`` about their centre.

    Linear with an exact adjoint; unitary and a homomorphism up to interpolation
    error and content that leaves the image. A subclass implements ``_inverse_map``.
    """

    compared_on = (2,)

    @abstractmethod
    def _inverse_map(self, element: np.ndarray) -> np.ndarray:
        """``g^-1`` as matrix and offset, ``[A, b]``, shape (2, 3).

        Coordinates are x to the right and y upwards, in pixels from the centre.
        """

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) not in (2, 3):
            raise self._refuse(shape, "images of shape (height, width) or (height, width, channels)")

    def for_shape(self, shape: tuple[int, ...]) -> Group:
        self.check_shape(shape)
        warn_about_channels(self, shape)
        return self

    def _grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:2]

    def _positions(self, element: np.ndarray, grid: tuple[int, ...]) -> list[np.ndarray]:
        height, width = grid
        y, x = np.mgrid[:height, :width]
        y, x = (height - 1) / 2 - y, x - (width - 1) / 2  # y upwards, so that positive angles are counter-clockwise
        (xx, xy, x0), (yx, yy, y0) = self._inverse_map(element)
        return [(height - 1) / 2 - (yx * x + yy * y + y0), (width - 1) / 2 + (xx * x + xy * y + x0)]


def turn(angle: float) -> np.ndarray:
    """The counter-clockwise rotation matrix, shape (2, 2)."""
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])


def with_offset(matrix: np.ndarray, offset: np.ndarray | tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """A matrix (2, 2) and offset (2,) as ``[A, b]``, shape (2, 3)."""
    return np.column_stack([matrix, offset])
