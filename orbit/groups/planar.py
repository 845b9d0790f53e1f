"""Image maps given by a matrix and an offset: the base class of rotation, scaling, shift, shear and affine.

LGIKA Lemma 2.1: the action ``T_g[I](u) = |J_g|^(-1/2) I(g^-1 u)`` on images is
unitary, where J_g is the matrix of g. Reading the image at ``g^-1 u`` by bilinear
interpolation makes it an explicit sparse matrix: one resampling for any
composition g.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor

from orbit.core.lru import Lru
from orbit.groups.base import Group
from orbit.groups.resample import (
    CACHED_BYTES,
    Resampling,
    bilinear,
    gather,
    images_first,
    interleaved,
    pixels_first,
    scatter,
)

# Largest number of channels of usual pictures.
_FEW_CHANNELS = 4


class PlanarMap(Group):
    """Images ``(h, w)`` or ``(h, w, channels)`` moved by ``u -> A u + b`` about their centre.

    Linear with an exact adjoint; unitary and a homomorphism up to interpolation
    error and content that leaves the image. A subclass implements ``_inverse_map``.
    """

    wraps = False

    @abstractmethod
    def _inverse_map(self, element: np.ndarray) -> np.ndarray:
        """``g^-1`` as matrix and offset, ``[A, b]``, shape (2, 3).

        Coordinates are x to the right and y upwards, in pixels from the centre.
        """

    def _intensity(self, element: np.ndarray) -> float:
        """The factor |J_g|^(-1/2) that preserves norms."""
        return 1.0

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) not in (2, 3):
            raise self._refuse(shape, "images of shape (height, width) or (height, width, channels)")

    def for_shape(self, shape: tuple[int, ...]) -> Group:
        self.check_shape(shape)
        if len(shape) == 3 and shape[0] <= _FEW_CHANNELS < min(shape[1:]):
            warnings.warn(
                f"{self.label()} takes points of shape {shape} for images of {shape[0]} x {shape[1]} pixels with "
                f"{shape[2]} channels; if their first axis holds channels, move it to the end: np.moveaxis(X, 1, -1)",
                stacklevel=2,
            )
        return self

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        shape, pixels = tuple(X.shape[1:]), pixels_first(X)
        moved = gather(self._operator(elements, shape), pixels).view(len(pixels), len(elements), len(X), -1)
        # a view with pixels first in memory, so that single-channel images are one matrix in later products
        return self._scaled(elements, moved.permute(1, 2, 0, 3).reshape(len(elements), *X.shape))

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        shape, pixels = tuple(W.shape[1:]), pixels_first(W)
        moved = [scatter(self._operator(element[None], shape), pixels, len(pixels)) for element in elements]
        return self._scaled(elements, torch.stack([images_first(image, shape, len(W)) for image in moved]))

    def _scaled(self, elements: np.ndarray, moved: Tensor) -> Tensor:
        intensity = [self._intensity(element) for element in elements]
        if any(factor != 1 for factor in intensity):
            moved *= moved.new_tensor(intensity).reshape(-1, *[1] * (moved.ndim - 1))
        return moved

    def _operator(self, elements: np.ndarray, shape: tuple[int, ...]) -> Resampling:
        """The resampling for all elements, interleaved by pixel."""
        maps = tuple(tuple(self._inverse_map(element).ravel().tolist()) for element in elements)
        arguments = maps, shape[0], shape[1], self.wraps
        return _operators.get(arguments, lambda: _planar_operator(*arguments))


def _planar_operator(inverse_maps: tuple[tuple[float, ...], ...], height: int, width: int, wrap: bool) -> Resampling:
    """The operator that reads the image at ``g^-1 u`` for every output pixel ``u`` and every g."""
    y, x = np.mgrid[:height, :width]
    y, x = (height - 1) / 2 - y, x - (width - 1) / 2  # y upwards, so that positive angles are counter-clockwise
    operators = []
    for xx, xy, x0, yx, yy, y0 in inverse_maps:
        rows = (height - 1) / 2 - (yx * x + yy * y + y0)
        columns = (width - 1) / 2 + (xx * x + xy * y + x0)
        operators.append(bilinear(rows, columns, (height, width), wrap))
    return interleaved(operators)


_operators = Lru[tuple, Resampling](CACHED_BYTES, most=128)


def turn(angle: float) -> np.ndarray:
    """The counter-clockwise rotation matrix, shape (2, 2)."""
    cos, sin = math.cos(angle), math.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])


def with_offset(matrix: np.ndarray, offset: np.ndarray | tuple[float, float] = (0.0, 0.0)) -> np.ndarray:
    """A matrix (2, 2) and offset (2,) as ``[A, b]``, shape (2, 3)."""
    return np.column_stack([matrix, offset])
