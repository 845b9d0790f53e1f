"""Coordinate spaces of groups: what a distribution q is defined on.

A group names the space its elements are parametrised by; a distribution names
the spaces it can live on. Neither needs to know the other, and a pair that does
not fit is refused with both names before any work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Domain:
    """Base class of coordinate spaces."""


@dataclass(frozen=True)
class Point(Domain):
    """The trivial group: one element, on which every distribution is the same."""

    def __str__(self) -> str:
        return "a single point"


@dataclass(frozen=True)
class Circle(Domain):
    """Angles in radians, in ``[-pi, pi)``; Haar measure is ``dtheta / 2 pi``."""

    period: float = 2 * math.pi

    def __str__(self) -> str:
        return "a circle of angles"


def wrap(angles, period: float = 2 * math.pi):
    """Angles brought to ``[-period/2, period/2)``."""
    return (angles + period / 2) % period - period / 2
