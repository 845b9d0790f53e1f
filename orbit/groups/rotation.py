"""Rotations of 2-D images about their centre: Raj et al. 2017, section 4.2, Mroueh et al. 2015, section 6."""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from orbit.core.errors import InputError
from orbit.core.grid import holds_vectors
from orbit.groups.base import AdditiveGroup, Group
from orbit.groups.cyclic import Cyclic
from orbit.groups.domains import Circle
from orbit.groups.planar import PlanarMap, turn, with_offset
from orbit.groups.resampled import Fill
from orbit.registry import register

# Angles this close to a multiple of the grid step, in steps, are taken as grid angles: far above the rounding errors
# of quadrature nodes, far below relevant differences.
_ON_GRID = 1e-9


@register("group", "rotation")
class Rotation(AdditiveGroup, PlanarMap):
    """SO(2) acting on images; elements are counter-clockwise angles in radians.

    Parameters
    ----------
    sampling : {"cartesian", "polar"} or None
        How the images are sampled. None means cartesian, but raises an error for
        points that look like samples of the ``Polar`` representation, which must not
        be rotated as cartesian images: not square, with a power of two of at least 8
        columns. Polar grids of other sizes, which the representation makes only on
        request, cannot be distinguished from images.

        ``cartesian``: points are ``(h, w)`` or ``(h, w, channels)``. Bilinear
        interpolation about the centre, ``fill`` outside the image: linear, with an
        exact adjoint, but unitary and a group action only up to interpolation error.

        ``polar``: points are ``(radii, angles)``, made by the ``polar``
        representation. A rotation by a multiple of ``2 pi / angles`` is a cyclic
        shift of the last axis: exact, unitary, a true group action. Other angles
        are interpolated by the trigonometric polynomial through the samples, which
        is also unitary and composes exactly, except for the highest frequency of an
        even number of angles.
    fill : {"zero", "edge", "reflect", "mean"}
        What is read outside of the image: zeros, the nearest pixel, mirrored pixels,
        or the mean of the image, per channel.
    vectors : bool
        Whether the two channels are a vector of each pixel, as in flows, that turns with
        the image. The first component points to larger columns, the second to larger
        rows, as in a grid whose y grows with the row; else give its negative.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Rotation
    >>> X = np.arange(9.0).reshape(1, 3, 3)
    >>> Rotation().act([np.pi / 2], X)[0, 0].round(12)
    array([[2., 5., 8.],
           [1., 4., 7.],
           [0., 3., 6.]])
    >>> to_larger_columns = np.tile([1.0, 0.0], (1, 3, 3, 1))
    >>> Rotation(vectors=True).act([np.pi / 2], to_larger_columns)[0, 0, 1, 1].round(12)
    array([ 0., -1.])
    """

    domain = Circle()

    def __init__(
        self, sampling: Literal["cartesian", "polar"] | None = None, fill: Fill = "zero", vectors: bool = False
    ) -> None:
        self.sampling = sampling
        self.fill = fill
        self.vectors = vectors

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        return [cls(), cls(vectors=True)] if holds_vectors(shape) else [cls()]

    def describe(self, element: np.ndarray) -> str:
        return f"{math.degrees(float(element)):.0f}°"

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self.vectors and (self.sampling == "polar" or not holds_vectors(shape)):
            raise self._refuse(shape, "cartesian images of vectors of shape (height, width, 2) (vectors)")
        if self.sampling == "polar" and len(shape) != 2:
            raise self._refuse(shape, "polar images of shape (radii, angles)")
        if self.sampling != "polar":
            super().check_shape(shape)
        if self.sampling is None and _looks_polar(shape):
            raise InputError(
                f"{self.label()}: points of shape {shape} may be polar samples (radii, angles) or images: set "
                f"{self.section}.sampling=polar if the polar representation made them, else "
                f"{self.section}.sampling=cartesian"
            )

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return self.sampling == "polar" and shape[-1] % 2 == 1

    def moves_as(self, elements: np.ndarray, shape: tuple[int, ...]) -> tuple[Group, np.ndarray]:
        shifts, steps = Cyclic(axis=-1, length=shape[-1]), np.asarray(elements) * shape[-1] / (2 * math.pi)
        if self.sampling != "polar" or np.abs(steps - steps.round()).max() > _ON_GRID * shape[-1]:
            return self, elements
        return shifts, shifts.domain.wrapped(steps.round())

    def cyclic_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) if self.sampling == "polar" else ()

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        if self.sampling == "polar":
            return torch.stack([_turn(X, angle) for angle in elements])
        moved = super()._act(elements, X)
        return _turned_vectors(elements, moved) if self.vectors else moved

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        if self.sampling == "polar":
            # the transfer function is real at the highest frequency: the adjoint is the inverse
            return torch.stack([_turn(W, -angle) for angle in elements])
        moved = super()._adjoint(elements, W)
        return _turned_vectors(-elements, moved) if self.vectors else moved

    def _inverse_map(self, element: np.ndarray) -> np.ndarray:
        return with_offset(turn(-float(element)))


def _looks_polar(shape: tuple[int, ...]) -> bool:
    """Whether ``Polar`` makes points of this shape by default; also true for some images, which are refused too."""
    return len(shape) == 2 and shape[0] != shape[1] >= 8 and shape[1].bit_count() == 1


def _turned_vectors(elements: np.ndarray, X: Tensor) -> Tensor:
    """Vectors, shape (r, n, height, width, 2), turned counter-clockwise as seen with row 0 at the top."""
    matrices = X.new_tensor(np.stack([turn(-float(angle)) for angle in elements]))[:, None, None, None]
    # no BLAS: the result must not depend on the number of points in a tile
    return matrices[..., 0] * X[..., :1] + matrices[..., 1] * X[..., 1:]


def _turn(X: Tensor, angle: float) -> Tensor:
    """Polar images ``(n, radii, angles)`` rotated by ``angle``."""
    n_angles = X.shape[-1]
    steps = angle * n_angles / (2 * math.pi)
    if abs(steps - round(steps)) < _ON_GRID * n_angles:
        return torch.roll(X, round(steps), -1)
    frequency = torch.arange(n_angles // 2 + 1, device=X.device, dtype=X.dtype)
    phase = torch.polar(torch.ones_like(frequency), -angle * frequency)
    if n_angles % 2 == 0:
        phase[-1] = phase[-1].real.clone()  # the highest frequency has no sine on the grid
    return torch.fft.irfft(torch.fft.rfft(X) * phase, n=n_angles)
