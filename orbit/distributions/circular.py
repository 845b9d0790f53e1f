"""Distributions on the circle of angles."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from orbit.distributions.base import Distribution
from orbit.domains import Circle, Domain, wrap
from orbit.params import NonNegativeFloat
from orbit.quadrature import trapezoid
from orbit.registry import register


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
            return domain.haar(u)
        return wrap(stats.vonmises.ppf(u, self.concentration))

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        nodes = trapezoid(size, phase)
        weights = self.density(domain, nodes)
        return nodes, weights / weights.sum()
