"""Rotations of 2-D images about their centre: LGIKA section 4.2, GICDF section 6."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from orbit.domains import Circle, wrap
from orbit.groups.base import Group
from orbit.groups.resample import Resampling, bilinear, gather, images_first, pixels_first, scatter
from orbit.registry import register

# Angles this close to a multiple of the grid step, in steps, count as on the grid:
# far above the rounding of a quadrature node, far below any step that matters.
_ON_GRID = 1e-9


@register("group", "rotation")
class Rotation(Group):
    """SO(2) acting on images; elements are angles in radians, counter-clockwise.

    Parameters
    ----------
    sampling : {"cartesian", "polar"} or None
        How the images are sampled; None means cartesian unless the
        representation in front says otherwise.

        ``cartesian``: points are ``(h, w)`` or ``(h, w, channels)``. Bilinear
        interpolation about the centre, zero outside the image: linear, with an
        exact adjoint, but unitary and composing only up to interpolation error.

        ``polar``: points are ``(radii, angles)``, made by the ``polar``
        representation. A turn by a multiple of ``2 pi / angles`` is a cyclic
        shift of the last axis: exact, unitary, a true group action. Other angles
        are interpolated by the trigonometric polynomial through the samples, which
        is also unitary and composes exactly but for the highest frequency of an
        even number of angles.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Rotation
    >>> X = np.arange(9.0).reshape(1, 3, 3)
    >>> Rotation().act([np.pi / 2], X)[0, 0].round(12)
    array([[2., 5., 8.],
           [1., 4., 7.],
           [0., 3., 6.]])
    """

    domain = Circle()

    def __init__(self, sampling: Literal["cartesian", "polar"] | None = None) -> None:
        self.sampling = sampling

    def identity(self) -> np.ndarray:
        return np.zeros(1)

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return wrap(np.add(left, right))

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return wrap(np.negative(elements))

    def describe(self, element: np.ndarray) -> str:
        return f"{math.degrees(float(element)):.0f}°"

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self.sampling == "polar" and len(shape) != 2:
            raise self._refuse(shape, "polar images of shape (radii, angles)")
        if self.sampling != "polar" and len(shape) not in (2, 3):
            raise self._refuse(shape, "images of shape (height, width) or (height, width, channels)")

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return self.sampling == "polar" and shape[-1] % 2 == 1

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        if self.sampling == "polar":
            return torch.stack([_turn(X, angle) for angle in elements])
        return _map_pixels(elements, X, gather)

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        if self.sampling == "polar":  # real, even transfer function at the highest frequency: the adjoint turns back
            return torch.stack([_turn(W, -angle) for angle in elements])
        return _map_pixels(elements, W, lambda operator, pixels: scatter(operator, pixels, pixels.shape[0]))


def _map_pixels(elements: np.ndarray, X: Tensor, apply: Callable[[Resampling, Tensor], Tensor]) -> Tensor:
    shape, pixels = tuple(X.shape[1:]), pixels_first(X)
    moved = (apply(_turn_operator(float(angle), shape[0], shape[1]), pixels) for angle in elements)
    return torch.stack([images_first(p, shape, len(X)) for p in moved])


@functools.lru_cache(maxsize=1024)  # the same few angles meet every tile of the data
def _turn_operator(angle: float, height: int, width: int) -> Resampling:
    """Reads the image at ``R(-angle) u`` for every output pixel ``u`` (LGIKA Lemma 2.1, |J| = 1)."""
    y, x = np.mgrid[:height, :width]
    y, x = (height - 1) / 2 - y, x - (width - 1) / 2  # y upwards, so that positive angles are counter-clockwise
    cos, sin = math.cos(angle), math.sin(angle)
    return bilinear((height - 1) / 2 - (cos * y - sin * x), (width - 1) / 2 + (cos * x + sin * y), (height, width))


def _turn(X: Tensor, angle: float) -> Tensor:
    """Polar images ``(n, radii, angles)`` turned by ``angle``."""
    n_angles = X.shape[-1]
    steps = angle * n_angles / (2 * math.pi)
    if abs(steps - round(steps)) < _ON_GRID * n_angles:
        return torch.roll(X, round(steps), -1)
    frequency = torch.arange(n_angles // 2 + 1, device=X.device, dtype=X.dtype)
    phase = torch.polar(torch.ones_like(frequency), -angle * frequency)
    if n_angles % 2 == 0:
        phase[-1] = phase[-1].real.clone()  # the highest frequency has no sine on the grid
    return torch.fft.irfft(torch.fft.rfft(X) * phase, n=n_angles)
