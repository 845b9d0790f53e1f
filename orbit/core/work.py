"""The work of a computation, estimated before it starts, and the speed of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial

import numpy as np
import torch

from orbit.core.threads import default_threads, in_threads

# The speed is measured by products of matrices of this side, and by passes of cosines of numbers that fit a core's
# cache: a few milliseconds each.
_SIDE, _NUMBERS, _PASSES = 512, 2**14, 64
# Share of the measured speed that whole runs reach, by the table in docs/howto/scale.md.
_REACHED = 0.5
# Calls of each thread in a round; rounds that are timed.
_CALLS, _ROUNDS = 4, 2

# Time of drawing a random number, in units of that of a cosine in float32: from 15 to 20.
DRAWN = 15.0


@dataclass(frozen=True)
class Work:
    """Operations of a computation.

    Attributes
    ----------
    single, double : float
        Multiplications in products of matrices, and in their factorisations, in float32 and float64.
    values, double_values : float
        Numbers computed one by one in float32 and float64, each at about the cost of a cosine: functions of
        projections, pixels that are moved. Others count by their cost.

    Examples
    --------
    >>> (Work(single=2.0) + Work(double=3.0, values=1.0) * 2).multiplications
    8.0
    """

    single: float = 0.0
    double: float = 0.0
    values: float = 0.0
    double_values: float = 0.0

    @classmethod
    def of(cls, dtype: np.dtype, multiplications: float, values: float = 0.0) -> Work:
        """Multiplications and functions of numbers in a precision."""
        if np.dtype(dtype) == np.float64:
            return cls(double=multiplications, double_values=values)
        return cls(multiplications, values=values)

    @property
    def multiplications(self) -> float:
        """Multiplications in both precisions."""
        return self.single + self.double

    @property
    def operations(self) -> float:
        """Multiplications and values, of both precisions."""
        return sum(astuple(self))

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: float) -> Work:
        return Work(*(part * times for part in astuple(self)))


@dataclass(frozen=True)
class Speed:
    """Multiplications and values a second, as for :class:`Work`."""

    single: float
    double: float
    values: float
    double_values: float

    @classmethod
    def measured(cls) -> Speed:
        """The speed of this process at this moment, from a few tenths of a second of products and cosines.

        They are computed as the tiles of the engine are, one in each thread, so that other work
        on the cores lowers the speed by its share; half of their speed is what whole runs reach.
        """
        dtypes = torch.float32, torch.float64
        factors = [torch.full((_SIDE, _SIDE), 0.5, dtype=dtype) for dtype in dtypes]
        numbers = [torch.linspace(0.0, 1.0, _NUMBERS, dtype=dtype) for dtype in dtypes]
        products = (_REACHED * _SIDE**3 * _calls_a_second(partial(torch.mm, factor, factor)) for factor in factors)
        cosines = (_REACHED * _PASSES * _NUMBERS * _calls_a_second(partial(_cosines, each)) for each in numbers)
        return cls(*products, *cosines)

    def seconds(self, work: Work) -> float:
        """The time of some work at this speed.

        >>> Speed(single=10.0, double=5.0, values=1.0, double_values=0.5).seconds(Work(single=20.0, values=1.0))
        3.0
        """
        return sum(part / speed for part, speed in zip(astuple(work), astuple(self), strict=True))


def _cosines(numbers: torch.Tensor) -> None:
    for _ in range(_PASSES):
        torch.cos(numbers)


def _calls_a_second(call: Callable[[], object]) -> float:
    """How often all threads together can call a function: the best of a few rounds, after one that is not timed."""
    calls, seconds = _CALLS * default_threads(), []
    for _ in range(1 + _ROUNDS):
        start = time.perf_counter()
        in_threads(lambda _: call(), range(calls))
        seconds.append(time.perf_counter() - start)
    return calls / min(seconds[1:])
