"""Linear resampling of series, images and volumes: the sparse operator of every action that interpolates.

Bilinear interpolation writes each output pixel as a weighted sum of four input
pixels. Holding those indices and weights makes the action an explicit sparse
matrix ``M``, so that its adjoint is exactly the transpose, not an approximation.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

# Zero crossings of a sinc function that are kept on each side, under a Hann window.
_LOBES = 8

#: Bytes of operators that a group may cache, as all tiles use the same few: 64 elements for images of 512 x 512.
CACHED_BYTES = 2**30


@dataclass(frozen=True)
class Resampling:
    """A sparse linear operator with k entries a row, four for bilinear interpolation.

    Attributes
    ----------
    index : int64 array, shape (pixels_out, k)
        Flat indices of the input pixels.
    weight : float64 array, shape (pixels_out, k)
        Their weights; zero for neighbours outside the image.
    """

    index: np.ndarray
    weight: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.index.nbytes + self.weight.nbytes


#: What is read outside of the grid: zeros, the nearest sample, mirrored samples, or samples of the other side.
Outside = Literal["zero", "edge", "reflect", "wrap"]


def multilinear(positions: Sequence[np.ndarray], shape: tuple[int, ...], outside: Outside = "zero") -> Resampling:
    """The operator that reads a grid at the given positions: linear, bilinear or trilinear interpolation.

    Parameters
    ----------
    positions : one array for each axis, of equal shape
        In samples; those of the grid are at the integers.
    shape : lengths of the axes of the grid that is read
    outside : {"zero", "edge", "reflect", "wrap"}
    """
    positions = [np.ravel(axis) for axis in positions]
    lower = [np.floor(axis) for axis in positions]
    index, weight = [], []
    for corner in itertools.product((0, 1), repeat=len(shape)):
        flat, share, inside = np.zeros(1), np.ones(1), np.ones(1, dtype=bool)
        for at, below, step, length in zip(positions, lower, corner, shape, strict=True):
            sample = below + step
            share = share * (1 - np.abs(at - sample))
            inside = inside & ((sample >= 0) & (sample < length) | (outside != "zero"))
            flat = flat * length + _within(sample, length, outside)
        index.append(np.where(inside, flat, 0).astype(np.int64))
        weight.append(np.where(inside, share, 0.0))
    return Resampling(np.stack(index, axis=1), np.stack(weight, axis=1))


def _within(sample: np.ndarray, length: int, outside: Outside) -> np.ndarray:
    """The sample of the grid that is read in place of one that may be outside of it."""
    if outside == "edge":
        return np.clip(sample, 0, length - 1)
    if outside == "reflect":
        last = max(1, length - 1)  # the outermost samples are not repeated
        return np.minimum(np.abs((sample + last) % (2 * last) - last), length - 1)
    return sample % length


def windowed_sinc(times: np.ndarray, length: int, step: float) -> Resampling:
    """The operator that reads a signal at the given times, band-limited, zero outside it.

    Parameters
    ----------
    times : array, shape (m,)
        In samples.
    length : number of samples of the signal
    step : distance between times, > 0
        Above 1 the cut-off frequency is reduced accordingly, to prevent aliasing.
    """
    cutoff = min(1.0, 1 / step)
    reach = math.ceil(_LOBES / cutoff)
    nearest = np.floor(times).astype(np.int64)[:, None] + np.arange(-reach + 1, reach + 1)
    distance = (times[:, None] - nearest) * cutoff
    window = np.where(np.abs(distance) < _LOBES, np.cos(math.pi * distance / (2 * _LOBES)) ** 2, 0.0)
    inside = (nearest >= 0) & (nearest < length)
    return Resampling(np.where(inside, nearest, 0), np.where(inside, cutoff * np.sinc(distance) * window, 0.0))


def gather(operator: Resampling, pixels: Tensor) -> Tensor:
    """``M X`` for images stored with one row per pixel.

    Parameters
    ----------
    pixels : tensor, shape (pixels_in, m)

    Returns
    -------
    tensor, shape (pixels_out, m)
    """
    index = torch.from_numpy(operator.index).to(pixels.device)
    weight = torch.from_numpy(operator.weight).to(pixels)
    # contiguous: strided rows take twenty times as long
    return embedding_bag(index, pixels.contiguous(), per_sample_weights=weight, mode="sum")


def scatter(operator: Resampling, pixels: Tensor, n_pixels: int) -> Tensor:
    """``M^T Y``, the exact adjoint of :func:`gather`.

    Parameters
    ----------
    pixels : tensor, shape (pixels_out, m)
    n_pixels : number of input pixels

    Returns
    -------
    tensor, shape (n_pixels, m)
    """
    index = torch.from_numpy(operator.index).to(pixels.device)
    weight = torch.from_numpy(operator.weight).to(pixels)
    pixels, out = pixels.contiguous(), pixels.new_zeros(n_pixels, pixels.shape[1])
    for corner in range(index.shape[1]):
        out.index_add_(0, index[:, corner], weight[:, corner, None] * pixels)
    return out


def interleaved(operators: Sequence[Resampling]) -> Resampling:
    """The outputs of all operators as one operator, interleaved by pixel: shape ``(pixels_out r, k)``."""
    index = np.stack([operator.index for operator in operators], 1)
    weight = np.stack([operator.weight for operator in operators], 1)
    return Resampling(index.reshape(-1, index.shape[2]), weight.reshape(-1, weight.shape[2]))


def pixels_first(X: Tensor, n_axes: int = 2) -> Tensor:
    """Points ``(n, *grid[, c])`` with ``n_axes`` axes of the grid as one row per pixel, shape ``(pixels, n * c)``."""
    n, n_pixels = len(X), math.prod(X.shape[1 : 1 + n_axes])
    return X.reshape(n, n_pixels, -1).transpose(0, 1).reshape(n_pixels, -1)


def images_first(pixels: Tensor, shape: tuple[int, ...], n: int) -> Tensor:
    """The inverse of :func:`pixels_first`: shape ``(n, *shape)``, a view where possible."""
    return pixels.reshape(pixels.shape[0], n, -1).transpose(0, 1).reshape(n, *shape)
