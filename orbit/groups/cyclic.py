"""Cyclic shifts of a signal, or of one axis of an array: exact."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from orbit.core.grid import grid_axes
from orbit.core.params import PositiveInt
from orbit.groups.base import AdditiveGroup, Group
from orbit.groups.domains import Torus
from orbit.groups.reordering import Reordering
from orbit.registry import register

# If another axis is this many times as long as the last one, it is more likely to be the one that is meant.
_LONGER = 4


@register("group", "cyclic")
class Cyclic(AdditiveGroup, Reordering):
    """Circular shifts by whole samples along one axis.

    Elements are numbers of samples in ``[-length / 2, length / 2)``, so that
    local distributions (``uniform``, ``gaussian``) make sense as well as Haar.

    Parameters
    ----------
    axis : int or None
        Axis of a point; negative values count from the last. None: the last, with a warning if
        another one is four times as long, as the time of a series ``(length, channels)`` is.
    length : int >= 1 or None
        Samples on that axis, the order of the group; None: taken from the data.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Cyclic
    >>> Cyclic().act([1, -1], np.array([[1.0, 2.0, 3.0]]))[:, 0]
    array([[3., 1., 2.],
           [2., 3., 1.]])
    """

    def __init__(self, axis: int | None = None, length: PositiveInt | None = None) -> None:
        self.axis = axis
        self.length = length

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        return [cls(axis=axis) for axis in range(grid_axes(shape))]

    @property
    def _axis(self) -> int:
        return -1 if self.axis is None else self.axis

    @property
    def domain(self) -> Torus:
        return Torus(1, "samples", 1.0, None if self.length is None else (float(self.length),))

    def for_shape(self, shape: tuple[int, ...]) -> Cyclic:
        self.check_shape(shape)
        longest = int(np.argmax(shape))
        if self.axis is None and shape[longest] >= _LONGER * shape[-1]:
            warnings.warn(
                f"{self.label()} shifts the last axis, of {shape[-1]}, of points of shape {shape}: for shifts along "
                f"that of {shape[longest]}, such as the time of a series with channels, set "
                f"{self.section}.axis={longest}; {self.section}.axis=-1 confirms the last",
                stacklevel=2,
            )
        return self._with(axis=self._axis, length=shape[self._axis])

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if not -len(shape) <= self._axis < len(shape):
            raise self._refuse(shape, f"arrays with an axis {self._axis} ({self.section}.axis)")
        if self.length not in (None, shape[self._axis]):
            raise self._refuse(shape, f"arrays with {self.length} entries on axis {self._axis} ({self.section}.length)")

    def cyclic_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (self._axis % len(shape),)

    def describe(self, element: np.ndarray) -> str:
        return f"shift {int(element):+d}"

    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        return torch.roll(X, round(float(element)), self._axis if self._axis < 0 else 1 + self._axis)
