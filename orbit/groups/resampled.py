"""Groups that read a series, an image or a volume at moved positions: the base class of all moves that interpolate."""

import pickle
import warnings
from abc import abstractmethod
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from orbit.core.grid import grid_axes
from orbit.core.lru import Lru
from orbit.groups.base import Group
from orbit.groups.resample import (
    CACHED_BYTES,
    Outside,
    Resampling,
    gather,
    images_first,
    interleaved,
    multilinear,
    pixels_first,
    scatter,
)

#: What fills positions outside of the grid: zeros, the nearest sample, mirrored samples, or the mean of the point.
Fill = Literal["zero", "edge", "reflect", "mean"]


# Largest number of channels of usual pictures.
_FEW_CHANNELS = 4


class Resampled(Group):
    """Points ``(*grid)`` or ``(*grid, channels)``, of which sample u is read at ``g^-1 u`` by linear interpolation.

    The action is an explicit sparse matrix: linear with an exact adjoint, for every
    ``fill``; unitary and a homomorphism up to interpolation error and content that
    leaves the grid. A subclass implements ``_grid`` and ``_positions``.

    Attributes
    ----------
    fill : {"zero", "edge", "reflect", "mean", "wrap"}
        What is read outside of the grid. ``mean`` is the mean of all samples of the point, per channel.
    """

    fill: Literal["zero", "edge", "reflect", "mean", "wrap"] = "zero"

    @abstractmethod
    def _grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The leading axes of a point that are moved."""

    @abstractmethod
    def _positions(self, element: np.ndarray, grid: tuple[int, ...]) -> list[np.ndarray]:
        """``g^-1 u`` for every sample u of the grid: one array for each axis, in samples."""

    def _intensities(self, elements: np.ndarray) -> np.ndarray | None:
        """Factors of the values, shape (r,), such as |J_g|^(-1/2), which preserves norms; None if all are 1."""
        return None

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        operator, pixels = self._operator(elements, tuple(X.shape[1:])), self._pixels(X)
        moved = gather(operator, pixels)
        if self.fill == "mean":
            moved += _missing(operator, moved) * pixels.mean(0)
        moved = moved.view(len(pixels), len(elements), len(X), -1)
        # a view with pixels first in memory, so that single-channel images are one matrix in later products
        return self._scaled(elements, moved.permute(1, 2, 0, 3).reshape(len(elements), *X.shape))

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        shape, pixels = tuple(W.shape[1:]), self._pixels(W)
        moved = []
        for element in elements:
            operator = self._operator(element[None], shape)
            back = scatter(operator, pixels, len(pixels))
            if self.fill == "mean":
                back += (_missing(operator, pixels) * pixels).sum(0) / len(pixels)
            moved.append(images_first(back, shape, len(W)))
        return self._scaled(elements, torch.stack(moved))

    def _pixels(self, X: Tensor) -> Tensor:
        return pixels_first(X, len(self._grid(tuple(X.shape[1:]))))

    def _scaled(self, elements: np.ndarray, moved: Tensor) -> Tensor:
        if (factors := self._intensities(elements)) is not None:
            moved *= moved.new_tensor(factors).reshape(-1, *[1] * (moved.ndim - 1))
        return moved

    def _operator(self, elements: np.ndarray, shape: tuple[int, ...]) -> Resampling:
        """The resampling for all elements, interleaved by pixel."""
        grid = self._grid(shape)
        outside: Outside = "zero" if self.fill == "mean" else self.fill
        key = type(self), pickle.dumps(self.get_params(deep=False)), grid, elements.tobytes()
        found = operators.find(key)
        if found is None:
            found = interleaved([multilinear(self._positions(element, grid), grid, outside) for element in elements])
            operators.put(key, found, found.nbytes)
        return found


def warn_about_channels(group: Group, shape: tuple[int, ...]) -> None:
    """Warn if points that are moved as images (height, width, channels) seem to be something else."""
    if len(shape) != 3:
        return
    as_images = f"{group.label()} takes points of shape {shape} for images of {shape[0]} x {shape[1]} pixels with "
    if shape[0] <= _FEW_CHANNELS < min(shape[1:]):
        advice = "if their first axis holds channels, move it to the end: np.moveaxis(X, 1, -1)"
    elif grid_axes(shape) == 3:
        advice = "if they are volumes, choose one of the groups rotation3d, octahedral and translation"
    else:
        return
    warnings.warn(f"{as_images}{shape[2]} channels; {advice}", stacklevel=3)


def _missing(operator: Resampling, like: Tensor) -> Tensor:
    """The share of each output pixel that lies outside of the grid, shape (pixels_out, 1)."""
    return torch.from_numpy(1 - operator.weight.sum(1)).to(like)[:, None]


operators = Lru[tuple, Resampling](CACHED_BYTES, most=128)
