"""Distributions on the circle of angles."""

import functools
import math
from typing import Annotated

import numpy as np
from scipy import special, stats
from scipy.optimize import elementwise

from orbit.core.params import Range
from orbit.distributions.base import Distribution
from orbit.groups.domains import Circle, Domain
from orbit.groups.quadrature import Rule, gauss, trapezoid
from orbit.registry import register

# Number of angles of the fine grid for Gauss rules, and the range that holds all mass, in standard deviations.
_FINE = 2048
_REACH = 12

# Above 1e12 the standard deviation is less than a millionth of a radian, and the density loses its digits.
Concentration = Annotated[float, Range(low=0.0, high=1e12)]


@functools.cache
def _legendre() -> Rule:
    """Nodes and weights of the Gauss-Legendre rule on [-1, 1], which takes a tenth of a second."""
    return special.roots_legendre(_FINE)


@register("distribution", "von_mises")
class VonMises(Distribution):
    """Density proportional to ``exp(concentration cos(theta))``, with its mode at the identity.

    Raj et al. 2017, section 4.2 prints ``exp(-kappa cos(theta))``, a misprint: that mode is
    the half turn.

    Parameters
    ----------
    concentration : float in [0, 1e12]
        kappa; 0 is Haar, large values approach a Gaussian of variance 1/kappa rad^2.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.distributions import VonMises
    >>> from orbit.groups.domains import Circle
    >>> VonMises(0.2).density(Circle(), np.array([0.0, np.pi])).round(3)
    array([1.209, 0.811])
    """

    domains = (Circle,)

    def __init__(self, concentration: Concentration = 0.2) -> None:
        self.concentration = concentration

    def scaled(self, factor: float, domain: Domain) -> Distribution | None:
        return type(self)(self.concentration / factor**2) if self.concentration else None

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        kappa = self.concentration
        # i0e is exp(-kappa) I0(kappa): no overflow at a large concentration
        return np.exp(kappa * (np.cos(coordinates) - 1)) / special.i0e(kappa)

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        if self.concentration == 0:
            return domain.haar(u)
        # vonmises.ppf solves for one number at a time, each in a millisecond
        reach = self._reach()
        found = elementwise.find_root(
            lambda x, u: stats.vonmises.cdf(x, self.concentration) - u,
            (-reach, reach),
            args=(np.clip(u, *stats.vonmises.cdf([-reach, reach], self.concentration)),),
        )
        return np.clip(found.x, -math.pi, np.nextafter(math.pi, 0))

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        """Equispaced angles weighted by the density, or the Gauss rule if those are too few to resolve the peak."""
        if self.concentration >= 1 and size * self.concentration**-0.5 < 2 * math.pi:
            points, weights = _legendre()
            fine = self._reach() * points
            return gauss(fine, weights * self.density(domain, fine), size)
        nodes = trapezoid(size, phase)
        weights = self.density(domain, nodes)
        return nodes, weights / weights.sum()

    def _reach(self) -> float:
        """Half the range of angles that holds all mass up to rounding."""
        return min(math.pi, _REACH * self.concentration**-0.5)
