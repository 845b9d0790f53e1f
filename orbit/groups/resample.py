"""Linear resampling of images and signals: the sparse operator of every action that interpolates.

Bilinear interpolation writes each output pixel as a weighted sum of four input
pixels. Holding those indices and weights makes the action an explicit sparse
matrix ``M``, so that its adjoint is exactly the transpose, not an approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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


def bilinear(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], wrap: bool = False) -> Resampling:
    """The operator that reads an image at the given positions; outside, the image is zero, or repeats with ``wrap``.

    Parameters
    ----------
    rows, columns : arrays of equal shape
        Positions in pixel units; pixel centres are at the integers.
    shape : (height, width) of the image that is read
    """
    height, width = shape
    rows, columns = np.ravel(rows), np.ravel(columns)
    top, left = np.floor(rows), np.floor(columns)
    index, weight = [], []
    for row in (top, top + 1):
        for column in (left, left + 1):
            share = (1 - np.abs(rows - row)) * (1 - np.abs(columns - column))
            if wrap:
                index.append((row % height * width + column % width).astype(np.int64))
                weight.append(share)
                continue
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            index.append(np.where(inside, row * width + column, 0).astype(np.int64))
            weight.append(np.where(inside, share, 0.0))
    return Resampling(np.stack(index, axis=1), np.stack(weight, axis=1))


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


def pixels_first(X: Tensor) -> Tensor:
    """Images ``(n, h, w[, c])`` as one row per pixel, shape ``(h * w, n * c)``."""
    n, h, w = X.shape[:3]
    return X.reshape(n, h * w, -1).transpose(0, 1).reshape(h * w, -1)


def images_first(pixels: Tensor, shape: tuple[int, ...], n: int) -> Tensor:
    """The inverse of :func:`pixels_first`: shape ``(n, *shape)``, a view where possible."""
    return pixels.reshape(pixels.shape[0], n, -1).transpose(0, 1).reshape(n, *shape)
