"""Cyclic shifts of a signal, or of one axis of an array: exact."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from orbit.core.params import PositiveInt
from orbit.groups.domains import Torus
from orbit.groups.reordering import Reordering
from orbit.registry import register


@register("group", "cyclic")
class Cyclic(Reordering):
    """Circular shifts by whole samples along one axis.

    Elements are numbers of samples in ``[-length / 2, length / 2)``, so that
    local distributions (``uniform``, ``gaussian``) make sense as well as Haar.

    Parameters
    ----------
    axis : int
        Axis of a point; negative values count from the last.
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

    def __init__(self, axis: int = -1, length: PositiveInt | None = None) -> None:
        self.axis = axis
        self.length = length

    @property
    def domain(self) -> Torus:
        return Torus(1, "samples", 1.0, None if self.length is None else (float(self.length),))

    def for_shape(self, shape: tuple[int, ...]) -> Cyclic:
        self.check_shape(shape)
        return self._with(length=shape[self.axis])

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.domain.wrapped(np.add(left, right))

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return self.domain.wrapped(np.negative(elements))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if not -len(shape) <= self.axis < len(shape):
            raise self._refuse(shape, f"arrays with an axis {self.axis} (axis)")
        if self.length not in (None, shape[self.axis]):
            raise self._refuse(shape, f"arrays with {self.length} entries on axis {self.axis} (length)")

    def cyclic_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (self.axis % len(shape),)

    def describe(self, element: np.ndarray) -> str:
        return f"shift {int(element):+d}"

    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        return torch.roll(X, round(float(element)), self.axis if self.axis < 0 else 1 + self.axis)
