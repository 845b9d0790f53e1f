"""Pooling of maps over positions, by a small matrix for each axis."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from orbit.core.component import Component
from orbit.core.params import PositiveFloat, PositiveInt

Statistic = Literal["mean", "positive", "share", "maximum"]


class Pooling(Component):
    """Weighted means over windows of the positions along each axis."""

    @abstractmethod
    def windows(self, length: int) -> np.ndarray:
        """Weights of the positions of an axis in each window, shape (windows, length), each row summing to one."""


class NoPooling(Pooling):
    """Every position separately."""

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


def blurred(maps: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Maps (channels, *sides, n) of means with weights (side, side) along each axis; as they are without weights."""
    for axis, matrix in enumerate(weights, start=1):
        maps = torch.tensordot(matrix, maps, ([1], [axis])).movedim(0, axis)
    return maps.contiguous() if weights else maps


def block_means(points: Tensor, axes: int, size: int) -> Tensor:
    """Means over blocks of ``size`` entries along each axis of points (n, *entries) or (n, *entries, channels).

    What is over at both ends of an axis is left out.

    >>> block_means(torch.arange(7.0)[None], 1, 3)
    tensor([[1., 4.]])
    """
    for axis in range(1, axes + 1):
        kept = points.shape[axis] // size * size
        points = points.narrow(axis, (points.shape[axis] - kept) // 2, kept)
    has_channels = points.ndim - 1 > axes
    maps = points.movedim(-1, 1) if has_channels else points[:, None]
    means = getattr(functional, f"avg_pool{axes}d")(maps, size)
    return means.movedim(1, -1) if has_channels else means[:, 0]


class Pool:
    """Pooled maps of features, from strips of the positions along the first axis.

    Parameters
    ----------
    windows : list of arrays, shapes (windows, length), for each axis
    statistics : list of str
        As of :class:`~orbit.encoders.layer.Layer`.
    like : tensor of the precision and on the device of the maps
    """

    def __init__(self, windows: Sequence[np.ndarray], statistics: Sequence[str], like: Tensor) -> None:
        self.statistics = statistics
        self.matrices = [torch.as_tensor(each).to(like) for each in windows]
        self.each = [np.array_equal(part, np.eye(len(part))) for part in windows]  # position is a window of its own
        self.ranges = [[_extent(row) for row in part] for part in windows]
        self.first = windows[0] != 0

    def start(self, out: Tensor) -> None:
        """Set pooled maps, shape (statistics, m, *windows, n), to those of no position."""
        for pooled, statistic in zip(out, self.statistics, strict=True):
            pooled.fill_(-math.inf) if statistic == "maximum" else pooled.zero_()

    def add(self, values: Tensor, start: int, out: Tensor, levels: tuple[Tensor, Tensor] | None) -> None:
        """Add the positions from ``start`` on, ``values`` (m, rows, *positions, n); two levels (m,) of each row."""
        if levels is not None:
            low, high = (each.view(-1, *(1,) * (values.ndim - 1)) for each in levels)
            above = values.sub(low).clamp_(min=0)
        for pooled, statistic in zip(out, self.statistics, strict=True):
            if statistic == "maximum":
                self._raise(values, start, pooled)
            elif statistic == "share":
                self._add(above.div(high - low).clamp_(max=1), start, pooled)
            else:
                self._add(above if statistic == "positive" else values, start, pooled)

    def _add(self, values: Tensor, start: int, pooled: Tensor) -> None:
        for axis in range(len(self.matrices) - 1, 0, -1):
            values = values if self.each[axis] else _contract(self.matrices[axis], values, axis + 1)
        stop = start + values.shape[1]
        windows = _extent(self.first[:, start:stop].any(1))
        weights, sums, values = self.matrices[0][windows, start:stop], pooled[:, windows].flatten(2), values.flatten(2)
        if stop - start == 1:  # many products of one number take three times as long
            sums.addcmul_(weights, values)
        else:
            sums.baddbmm_(weights.expand(len(values), *weights.shape), values)

    def _raise(self, values: Tensor, start: int, pooled: Tensor) -> None:
        for axis in range(len(self.ranges) - 1, 0, -1):
            parts = [values.narrow(axis + 1, part.start, part.stop - part.start) for part in self.ranges[axis]]
            values = torch.stack([part.amax(axis + 1) for part in parts], axis + 1)
        stop = start + values.shape[1]
        windows = _extent(self.first[:, start:stop].any(1))
        for window, part in enumerate(self.ranges[0][windows], windows.start):
            largest = values[:, max(0, part.start - start) : part.stop - start].amax(1)
            torch.maximum(pooled[:, window], largest, out=pooled[:, window])


def _extent(weights: np.ndarray) -> slice:
    """From the first to the last entry that is not zero."""
    places = np.flatnonzero(weights)
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)


def _contract(matrix: Tensor, values: Tensor, axis: int) -> Tensor:
    """The product of a matrix (windows, length) with an axis of values."""
    before, after = values.shape[:axis], values.shape[axis + 1 :]
    batch = math.prod(before)
    found = torch.bmm(matrix.expand(batch, *matrix.shape), values.reshape(batch, values.shape[axis], -1))
    return found.view(*before, len(matrix), *after)
