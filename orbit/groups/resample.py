"""Linear resampling of images: the sparse operator behind every action that moves pixels.

Bilinear interpolation writes each output pixel as a weighted sum of four input
pixels. Holding those indices and weights makes the action an explicit sparse
matrix ``M``, so that its adjoint is exactly the transpose, not an approximation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


@dataclass(frozen=True)
class Resampling:
    """A sparse linear operator on images with four entries a row.

    Attributes
    ----------
    index : int64 array, shape (pixels_out, 4)
        Flat indices of the input pixels.
    weight : float64 array, shape (pixels_out, 4)
        Their weights; zero for neighbours outside the image.
    """

    index: np.ndarray
    weight: np.ndarray


def bilinear(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Resampling:
    """The operator that reads an image at the given positions, zero outside it.

    Parameters
    ----------
    rows, columns : arrays of any one shape
        Positions in pixel units; pixel centres are at the integers.
    shape : (height, width) of the image that is read
    """
    height, width = shape
    rows, columns = np.ravel(rows), np.ravel(columns)
    top, left = np.floor(rows), np.floor(columns)
    index, weight = [], []
    for row in (top, top + 1):
        for column in (left, left + 1):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            share = (1 - np.abs(rows - row)) * (1 - np.abs(columns - column))
            index.append(np.where(inside, row * width + column, 0).astype(np.int64))
            weight.append(np.where(inside, share, 0.0))
    return Resampling(np.stack(index, axis=1), np.stack(weight, axis=1))


def gather(operator: Resampling, pixels: Tensor) -> Tensor:
    """``M X`` for images stored one pixel a row.

    Parameters
    ----------
    pixels : tensor, shape (pixels_in, m)

    Returns
    -------
    tensor, shape (pixels_out, m)
    """
    index = torch.from_numpy(operator.index).to(pixels.device)
    weight = torch.from_numpy(operator.weight).to(pixels)
    return embedding_bag(index, pixels, per_sample_weights=weight, mode="sum")


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
    out = pixels.new_zeros(n_pixels, pixels.shape[1])
    for corner in range(index.shape[1]):
        out.index_add_(0, index[:, corner], weight[:, corner, None] * pixels)
    return out


def pixels_first(X: Tensor) -> Tensor:
    """Images ``(n, h, w[, c])`` as one pixel a row, shape ``(h * w, n * c)``."""
    n, h, w = X.shape[:3]
    return X.reshape(n, h * w, -1).transpose(0, 1).reshape(h * w, -1)


def images_first(pixels: Tensor, shape: tuple[int, ...], n: int) -> Tensor:
    """The inverse of :func:`pixels_first`: shape ``(n, *shape)``, a view where possible."""
    return pixels.reshape(pixels.shape[0], n, -1).transpose(0, 1).reshape(n, *shape)
