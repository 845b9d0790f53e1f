"""Independent distributions on the factors of a product of groups."""

import math
from typing import Any

import numpy as np

from orbit.core.errors import InputError, of_part
from orbit.distributions.base import Distribution
from orbit.groups.base import Group
from orbit.groups.domains import MAX_ELEMENTS, Domain, Line, ProductDomain
from orbit.groups.quadrature import share, tensor
from orbit.registry import build_sections, register


@register("distribution", "product")
class ProductDistribution(Distribution):
    """Independent factors, each with its own q, for products of groups and affine maps (Raj et al. 2017, section 4.3).

    Parameters
    ----------
    factors : list of sections, or None
        One section per factor of the group, in its order: the name of a
        distribution and its parameters. In Python, a factor may also be a distribution.
        None: the default of each factor.

    Examples
    --------
    >>> import orbit
    >>> turns, scales = orbit.VonMises(concentration=9.0), orbit.LogNormal()
    >>> q = orbit.build("distribution", "product", factors=[turns, scales, {"name": "gaussian", "sigma": 0.3}])
    >>> orb = orbit.Orbit(orbit.build("group", "affine"), q, size=50, rule="qmc")
    >>> import numpy as np
    >>> orb.fit(np.zeros((1, 8, 8))).elements_.shape
    (50, 4)
    """

    domains = (ProductDomain,)

    def __init__(self, factors: list[dict[str, Any] | Distribution] | None = None) -> None:
        self.factors = factors

    def parts(self) -> list[Distribution]:
        """The factors' distributions, built."""
        return build_sections("distribution", "factors", self.factors or [])

    def scaled(self, factor: float, domain: Domain, only: int | None = None) -> Distribution | None:
        """With all factors that have a width scaled, or only one; None if there is none."""
        changed = [
            part.scaled(factor, space) if only in (None, i) else None
            for i, (part, space) in enumerate(self._pairs(domain))
        ]
        parts = [new or old for new, old in zip(changed, self.parts(), strict=True)]
        return type(self)([*parts]) if any(changed) else None

    def check(self) -> None:
        """Raise ``InputError`` for an invalid parameter, also of a factor, named e.g. ``factors[1].sigma``."""
        super().check()
        for i, part in enumerate(self.parts()):
            with of_part(self.section, f"factors[{i}]"):
                part.check()
                if part.data_dependent:
                    raise InputError(f"{part.label()} depends on the data and cannot be a factor")

    def for_group(self, group: Group) -> Distribution:
        if self.factors is None and isinstance(group.domain, ProductDomain):
            return type(self)([*group.factor_distributions()])
        return self

    def check_domain(self, domain: Domain, owner: str) -> None:
        super().check_domain(domain, owner)
        assert isinstance(domain, ProductDomain)
        parts = self.parts()
        if len(parts) != len(domain.parts):
            raise InputError(
                f"{self.label()} has {len(parts)} factors, {owner} has {len(domain.parts)} "
                f"({', '.join(domain.names)}): give factors one section for each"
            )
        for i, (part, space, name) in enumerate(zip(parts, domain.parts, domain.names, strict=True)):
            with of_part(self.section, f"factors[{i}]"):
                part.check_domain(space, f"factor {name} of {owner}")

    def atoms(self, domain: Domain) -> int | None:
        atoms = [part.atoms(space) for part, space in self._pairs(domain)]
        return None if None in atoms else math.prod(n for n in atoms if n is not None)

    def has_quadrature(self, domain: Domain) -> bool:
        listed = math.prod(part.atoms(space) or 1 for part, space in self._pairs(domain))
        return listed <= MAX_ELEMENTS and all(part.has_quadrature(space) for part, space in self._pairs(domain))

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        assert isinstance(domain, ProductDomain)
        pieces = zip(self._pairs(domain), domain.split(coordinates), strict=True)
        return np.prod([part.density(space, piece) for (part, space), piece in pieces], axis=0)

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        assert isinstance(domain, ProductDomain)
        pieces = zip(self._pairs(domain), domain.split_uniforms(u), strict=True)
        return domain.join([part.ppf(space, piece) for (part, space), piece in pieces])

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        """The tensor product of the factors' rules, with at most ``size`` nodes.

        Factors with finitely many atoms are listed completely, and may exceed ``size``.
        """
        assert isinstance(domain, ProductDomain)
        pairs = self._pairs(domain)
        atoms = [part.atoms(space) for part, space in pairs]
        spans = [space.n_axes if isinstance(space, Line) else space.dim for _, space in pairs]
        dims = [span if n is None else 0 for n, span in zip(atoms, spans, strict=True)]
        counts = share(max(1, size // math.prod(n or 1 for n in atoms)), dims)
        sizes = [n**dim for n, dim in zip(counts, dims, strict=True)]
        rules = [part.quadrature(space, n, phase) for (part, space), n in zip(pairs, sizes, strict=True)]
        nodes, weights = tensor(rules)
        return domain.join(nodes), weights

    def _pairs(self, domain: Domain) -> list[tuple[Distribution, Domain]]:
        assert isinstance(domain, ProductDomain)
        return list(zip(self.parts(), domain.parts, strict=True))
