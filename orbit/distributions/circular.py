"""Distributions on the circle of angles, and the rules that integrate against them."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy import special, stats

from orbit.distributions.base import Distribution
from orbit.domains import Circle, Domain, wrap
from orbit.errors import ParameterError
from orbit.params import NonNegativeFloat
from orbit.registry import register


def trapezoid(size: int, phase: float) -> np.ndarray:
    """``size`` equispaced angles, shifted by ``phase`` steps; the identity is one of them at phase 0.

    The trapezoid rule on a full circle converges faster than any power of
    ``size`` for smooth periodic integrands, which is what makes a few dozen
    turns as good as thousands of random ones.
    """
    return wrap((np.arange(size) + phase) * (2 * math.pi / size))


@register("distribution", "delta")
class Delta(Distribution):
    """All mass at the identity: gives the base kernel back (LGIKA section 2.1).

    Examples
    --------
    >>> from orbit.distributions import Delta
    >>> from orbit.domains import Circle
    >>> Delta().quadrature(Circle(), 32, 0.0)
    (array([0.]), array([1.]))
    """

    domains = (Circle,)

    def __init__(self) -> None:
        pass

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        return np.where(np.asarray(coordinates) == 0, np.inf, 0.0)

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        return np.zeros(np.shape(u))

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(1), np.ones(1)


@register("distribution", "haar")
class Haar(Distribution):
    """The uniform distribution of a compact group: full invariance (GICDF eq. 1).

    Examples
    --------
    >>> from orbit.distributions import Haar
    >>> from orbit.domains import Circle
    >>> nodes, weights = Haar().quadrature(Circle(), 4, 0.0)
    >>> weights
    array([0.25, 0.25, 0.25, 0.25])
    """

    domains = (Circle,)

    def __init__(self) -> None:
        pass

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        return np.ones(np.shape(coordinates))

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        return (np.asarray(u) - 0.5) * 2 * math.pi

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        return trapezoid(size, phase), np.full(size, 1 / size)


@register("distribution", "von_mises")
class VonMises(Distribution):
    """Density proportional to ``exp(concentration cos(theta))``, with its mode at the identity.

    LGIKA section 4.2 prints ``exp(-kappa cos(theta))``, a misprint: that mode is
    the half turn.

    Parameters
    ----------
    concentration : float >= 0
        kappa; 0 is Haar, large values approach a Gaussian of variance 1/kappa rad^2.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.distributions import VonMises
    >>> from orbit.domains import Circle
    >>> VonMises(0.2).density(Circle(), np.array([0.0, np.pi])).round(3)
    array([1.209, 0.811])
    """

    domains = (Circle,)

    def __init__(self, concentration: NonNegativeFloat = 0.2) -> None:
        self.concentration = concentration

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        kappa = self.concentration
        # i0e is exp(-kappa) I0(kappa): no overflow at a large concentration
        return np.exp(kappa * (np.cos(coordinates) - 1)) / special.i0e(kappa)

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        if self.concentration == 0:
            return Haar().ppf(domain, u)
        return wrap(stats.vonmises.ppf(u, self.concentration))

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        nodes = trapezoid(size, phase)
        weights = self.density(domain, nodes)
        return nodes, weights / weights.sum()


@register("distribution", "uniform")
class Uniform(Distribution):
    """Uniform on the range ``[low, high]``: the truncated Haar measure of GICDF section 5.

    Parameters
    ----------
    low, high : float
        The ends of the range.
    unit : {"native", "degrees"}
        ``native`` is the unit of the group's elements: radians for angles.

    Examples
    --------
    >>> from orbit.distributions import Uniform
    >>> from orbit.domains import Circle
    >>> nodes, weights = Uniform(-20, 20, unit="degrees").quadrature(Circle(), 3, 0.0)
    >>> weights.round(4)
    array([0.2778, 0.4444, 0.2778])
    """

    domains = (Circle,)

    def __init__(self, low: float = -20.0, high: float = 20.0, unit: Literal["native", "degrees"] = "degrees") -> None:
        self.low = low
        self.high = high
        self.unit = unit

    def check(self) -> None:
        super().check()
        if self.low >= self.high:
            raise ParameterError("high", f"a number > low={self.low:g}", self.high)
        if self._length() > 2 * math.pi * (1 + 1e-12):
            raise ParameterError("high", "a range of at most one full turn", self.high)

    def _ends(self) -> tuple[float, float]:
        scale = math.pi / 180 if self.unit == "degrees" else 1.0
        return self.low * scale, self.high * scale

    def _length(self) -> float:
        low, high = self._ends()
        return high - low

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        low, high = self._ends()
        offset = np.mod(np.asarray(coordinates) - low, 2 * math.pi)
        return np.where(offset <= high - low, 2 * math.pi / (high - low), 0.0)

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        low, high = self._ends()
        return low + np.asarray(u) * (high - low)

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._ends()
        if high - low >= 2 * math.pi * (1 - 1e-12):  # the whole circle: the periodic rule is far better
            return Haar().quadrature(domain, size, phase)
        nodes, weights = np.polynomial.legendre.leggauss(size)
        return low + (nodes + 1) / 2 * (high - low), weights / 2
