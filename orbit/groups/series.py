"""Moves of series: smooth changes of pace, of amplitude, of level and slope."""

import math
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from orbit.core.params import PositiveInt, Range
from orbit.groups.base import AdditiveGroup
from orbit.groups.domains import Line, LogScale
from orbit.groups.resampled import Resampled
from orbit.registry import register


@register("group", "time_warp")
class TimeWarp(AdditiveGroup, Resampled):
    """Smooth monotone changes of the pace along one axis, with fixed ends; elements are logarithms of the first pace.

    With time t in [0, 1], the warp by ``a`` is the flow of the velocity
    ``sin(pi k t) / (pi k)`` for the time ``a``, so that warps compose by adding:

        tan(pi k t' / 2) = exp(a) tan(pi k t / 2)

    within each of the k periods of the velocity. With k = 1, a = log 2 moves
    content of the beginning twice as far from it, and of the end half as far.

    Parameters
    ----------
    waves : int >= 1
        k: one makes the whole series later or earlier between its ends, two its halves against each other.
    axis : int >= 0
        Axis of a point that is time.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import TimeWarp
    >>> TimeWarp().act([np.log(2)], np.linspace(0, 1, 5)[None])[0, 0].round(2)
    array([0.  , 0.13, 0.3 , 0.56, 1.  ])
    """

    compared_on = (1,)
    domain = LogScale()
    default_distribution: ClassVar[dict[str, Any]] = {"name": "lognormal", "mean": 0.0, "sigma": 0.2}
    default_size = 16

    def __init__(self, waves: PositiveInt = 1, axis: Annotated[int, Range(low=0)] = 0) -> None:
        self.waves = waves
        self.axis = axis

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) <= self.axis or shape[self.axis] < 2:
            raise self._refuse(shape, f"series with at least two samples on axis {self.axis} (axis)")

    def describe(self, element: np.ndarray) -> str:
        return f"pace × {math.exp(element):.2f}"

    def _grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[: self.axis + 1]

    def _positions(self, element: np.ndarray, grid: tuple[int, ...]) -> list[np.ndarray]:
        positions = list(np.indices(grid, dtype=float))
        last = grid[-1] - 1
        half, turns = np.modf(positions[-1] / last * self.waves / 2)  # the velocity has period 2 in k t
        angle = math.pi * half
        slowed = np.arctan2(math.exp(-float(element) / 2) * np.sin(angle), math.exp(float(element) / 2) * np.cos(angle))
        positions[-1] = np.clip((turns + slowed / math.pi) * 2 / self.waves * last, 0, last)
        return positions


@register("group", "amplitude")
class Amplitude(AdditiveGroup):
    """All values of a point multiplied by one positive factor; elements are its logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Amplitude
    >>> Amplitude().act([0.0, np.log(2)], np.array([[1.0, -3.0]]))[:, 0]
    array([[ 1., -3.],
           [ 2., -6.]])
    """

    domain = LogScale()
    default_distribution: ClassVar[dict[str, Any]] = {"name": "lognormal", "mean": 0.0, "sigma": 0.2}
    default_size = 8

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Points of every shape have values."""

    def describe(self, element: np.ndarray) -> str:
        return f"× {math.exp(element):.2f}"

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        return _along(np.exp(elements), X) * X

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        return self._act(elements, W)


@register("group", "offset")
class Offset(AdditiveGroup):
    """A level and a trend along one axis added to all channels; elements are rows (level, rise from end to end).

    Not linear, so without an adjoint.

    Parameters
    ----------
    axis : int >= 0
        Axis of a point along which the trend rises.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Offset
    >>> Offset().act([[1.0, 0.0], [0.0, 4.0]], np.zeros((1, 3)))[:, 0]
    array([[ 1.,  1.,  1.],
           [-2.,  0.,  2.]])
    """

    compared_on = (1,)
    domain = Line(2, "values")
    default_distribution: ClassVar[dict[str, Any]] = {"name": "gaussian", "sigma": 0.2}
    default_size = 16
    default_rule = "qmc"

    def __init__(self, axis: Annotated[int, Range(low=0)] = 0) -> None:
        self.axis = axis

    @property
    def linear(self) -> bool:
        return False

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) <= self.axis:
            raise self._refuse(shape, f"series with time on axis {self.axis} (axis)")

    def describe(self, element: np.ndarray) -> str:
        return f"{element[0]:+.2g}, trend {element[1]:+.2g}"

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        length = X.shape[1 + self.axis]
        time = torch.linspace(-0.5, 0.5, length, dtype=X.dtype, device=X.device) if length > 1 else X.new_zeros(1)
        time = time.reshape(-1, *[1] * (X.ndim - 2 - self.axis))
        return X + _along(elements[:, 0], X) + _along(elements[:, 1], X) * time


def _along(values: np.ndarray, X: Tensor) -> Tensor:
    """One number for each element, to be broadcast against points ``(n, *shape)``."""
    return torch.from_numpy(np.asarray(values, dtype=float)).to(X).reshape(-1, *[1] * X.ndim)
