"""Pooling of maps over positions, by a small matrix for each axis."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from orbit.core.component import Component
from orbit.core.params import PositiveFloat, PositiveInt


class Pooling(Component):
    """Weighted means over windows of the positions along each axis.

    Attributes
    ----------
    is_identity : bool
        Whether every position is a window of its own.
    """

    is_identity: ClassVar[bool] = False

    @abstractmethod
    def windows(self, length: int) -> np.ndarray:
        """Weights of the positions of an axis in each window, shape (windows, length), each row summing to one."""


class NoPooling(Pooling):
    """Every position separately."""

    is_identity = True

    def windows(self, length: int) -> np.ndarray:
        return np.eye(length)


class GaussianPooling(Pooling):
    """Windows exp(-(u - c)^2 / (2 width^2)) about centres c that are ``stride`` positions apart.

    Parameters
    ----------
    stride : int >= 1
        Positions from one window to the next.
    width : float > 0 or None
        In positions; None is stride / sqrt(2).
    """

    def __init__(self, stride: PositiveInt = 3, width: PositiveFloat | None = None) -> None:
        self.stride = stride
        self.width = width

    def windows(self, length: int) -> np.ndarray:
        width = self.stride / math.sqrt(2) if self.width is None else self.width
        count = (length - 1) // self.stride + 1
        centres = (length - 1 - self.stride * (count - 1)) / 2 + self.stride * np.arange(count)
        weights = np.exp(-0.5 * ((np.arange(length) - centres[:, None]) / width) ** 2)
        return weights / weights.sum(1, keepdims=True)


class MeanPooling(Pooling):
    """Means of ``stride`` positions; the remainder at the end is a smaller window.

    Parameters
    ----------
    stride : int >= 1

    Examples
    --------
    >>> MeanPooling(2).windows(4)
    array([[0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5]])
    """

    def __init__(self, stride: PositiveInt = 3) -> None:
        self.stride = stride

    def windows(self, length: int) -> np.ndarray:
        return _means(np.arange(length) // self.stride)


class GridPooling(Pooling):
    """Means of ``cells`` parts of nearly equal size along each axis.

    Parameters
    ----------
    cells : int >= 1
    """

    def __init__(self, cells: PositiveInt = 3) -> None:
        self.cells = cells

    def windows(self, length: int) -> np.ndarray:
        return _means(np.arange(length) * min(self.cells, length) // length)


def _means(window: np.ndarray) -> np.ndarray:
    """Weights of means of the positions with the same number in ``window``, shape (length,)."""
    weights = (window == np.arange(window[-1] + 1)[:, None]).astype(float)
    return weights / weights.sum(1, keepdims=True)


def pool(matrices: tuple[Tensor, Tensor], values: Tensor, half: Tensor, out: Tensor) -> None:
    """Pool maps with the points in the last axis, so that both products have long rows.

    Parameters
    ----------
    matrices : tensors, shapes (height', height) and (width', width)
    values : tensor, shape (m, height, width, n), contiguous
    half : tensor, shape (m, height', width, n), working memory for the first product
    out : tensor, shape (m, height', width', n)
    """
    rows, columns = matrices
    m, height, width, n = values.shape
    torch.bmm(rows.expand(m, *rows.shape), values.view(m, height, width * n), out=half.view(m, len(rows), width * n))
    count = m * len(rows)
    torch.bmm(columns.expand(count, *columns.shape), half.view(count, width, n), out=out.view(count, len(columns), n))
