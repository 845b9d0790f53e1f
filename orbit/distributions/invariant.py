"""The point mass at the identity, and Haar measure."""

import sys

import numpy as np

from orbit.distributions.base import Distribution
from orbit.distributions.linear import Uniform
from orbit.groups.domains import Domain, Finite, Line, OrthogonalMatrices, Permutations, ProductDomain, Torus
from orbit.registry import register


@register("distribution", "delta")
class Delta(Distribution):
    """The point mass at the identity, which gives the base kernel (Raj et al. 2017, section 2.1).

    Examples
    --------
    >>> from orbit.distributions import Delta
    >>> from orbit.groups.domains import Circle
    >>> Delta().quadrature(Circle(), 32, 0.0)
    (array([0.]), array([1.]))
    """

    domains = (Line, Finite, Permutations, OrthogonalMatrices, ProductDomain)

    def atoms(self, domain: Domain) -> int:
        return 1

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        """The order of a finite group at the identity, infinite there on any other; zero elsewhere."""
        rows = np.reshape(coordinates, (len(coordinates), -1))
        order = domain.order
        mass = np.inf if order is None or order > sys.float_info.max else float(order)
        return np.where((rows == domain.identity().reshape(1, -1)).all(1), mass, 0.0)

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        return np.repeat(domain.identity(), len(u), axis=0)

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        return domain.identity(), np.ones(1)


@register("distribution", "haar")
class Haar(Distribution):
    """The uniform distribution of a compact or finite group: full invariance (Mroueh et al. 2015, eq. 1).

    Examples
    --------
    >>> from orbit.distributions import Haar
    >>> from orbit.groups.domains import Circle
    >>> nodes, weights = Haar().quadrature(Circle(), 4, 0.0)
    >>> weights
    array([0.25, 0.25, 0.25, 0.25])
    """

    def accepts(self, domain: Domain) -> bool:
        return domain.compact

    def has_quadrature(self, domain: Domain) -> bool:
        return domain.has_haar_rule

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        return np.ones(len(coordinates))

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        return domain.haar(np.asarray(u))

    def scaled(self, factor: float, domain: Domain) -> Distribution | None:
        """Around a circle uniform on a part of it."""
        if not isinstance(domain, Torus) or domain.n_axes > 1 or factor >= 1:
            return None
        half = factor * domain.known_periods()[0] / 2
        return Uniform(-half, half, "native")

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        return domain.haar_rule(size, phase)
