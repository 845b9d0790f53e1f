"""The base class of probability distributions q on a group, in the coordinates of the group's domain.

q = delta gives the base kernel, q = Haar full invariance (Mroueh et al. 2015, eq. 1), a unimodal
q around the identity local invariance (Raj et al. 2017, eq. 3).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.groups.base import Group
from orbit.groups.domains import MAX_ELEMENTS, Domain, ProductDomain


class Distribution(Component):
    """A distribution on a group.

    A subclass defines ``domains``, and implements ``density``, ``ppf`` and ``quadrature``
    for each of them. On the trivial group every distribution is accepted and is the
    point mass.

    Attributes
    ----------
    data_dependent : bool
        Whether the elements depend on the point that they act on. Then ``ppf`` returns
        random numbers instead of elements, from which :meth:`move` computes the
        elements of each point.
    """

    domains: ClassVar[tuple[type[Domain], ...]] = ()
    data_dependent: ClassVar[bool] = False

    def for_group(self, group: Group) -> Distribution:
        """This distribution with the parameters that depend on the group filled in."""
        return self

    def accepts(self, domain: Domain) -> bool:
        """Whether q is defined on the domain."""
        return isinstance(domain, self.domains)

    def check_group(self, group: Group) -> None:
        """Raise ``InputError``, naming both sides, if q is not defined on the group."""
        if group.order != 1:
            self.check_domain(group.domain, group.label())

    def check_domain(self, domain: Domain, owner: str) -> None:
        """:meth:`check_group` for the elements of one group, or of one factor of it, called ``owner``."""
        if self.accepts(domain):
            return
        reason = f"{self.label()} is not defined on {owner}, whose elements are {domain}"
        if isinstance(domain, ProductDomain):
            sections = ", ".join("{name: ...}" for _ in domain.parts)
            raise InputError(
                f"{reason}: choose distribution=product with one section for each of {', '.join(domain.names)}, "
                f"{self.section}.factors=[{sections}], or {self.section}.factors=null for their own defaults"
            )
        raise InputError(f"{reason}: change distribution or group")

    def check_rule(self, group: Group, rule: str) -> None:
        """Raise ``InputError``, naming both sides, if the orbit rule does not exist for q on the group."""
        if rule == "quadrature" and group.order != 1 and not self.has_quadrature(group.domain):
            raise InputError(
                f"{self.label()} on {group.label()} has no quadrature of at most {MAX_ELEMENTS} elements: "
                "choose orbit.rule=monte_carlo or orbit.rule=qmc"
            )

    def atoms(self, domain: Domain) -> int | None:
        """The number of elements with positive mass; None if q is continuous or the number is unknown.

        If it is known, the quadrature lists all of them, for every size.
        """
        return domain.order

    def has_quadrature(self, domain: Domain) -> bool:
        """Whether :meth:`quadrature` exists on the domain."""
        atoms = self.atoms(domain)
        return atoms is None or atoms <= MAX_ELEMENTS

    @abstractmethod
    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        """q at the coordinates, shape ``(r,)``.

        With respect to normalised Haar measure on a compact domain; otherwise to
        Lebesgue measure, or to counting on the points of a grid.
        """

    @abstractmethod
    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        """The inverse of the distribution function: elements of q from uniforms in [0, 1).

        Independent uniforms give a sample, low-discrepancy uniforms a ``qmc`` rule.

        Parameters
        ----------
        u : array, shape (r, *domain.uniforms)

        Returns
        -------
        array, shape (r, *domain.shape)
        """

    @abstractmethod
    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes ``(m, *domain.shape)`` and weights ``(m,)`` summing to one, by a deterministic rule.

        At most ``size`` nodes, or all atoms if q has finitely many. ``phase`` in
        [0, 1) shifts a periodic rule by that fraction of its step; rules with fixed
        nodes ignore it.
        """

    @classmethod
    def of_unordered(cls, group: Group, X: np.ndarray) -> list[Distribution]:
        """Distributions on a group that :func:`orbit.discover` tries on matrices whose rows are in any order.

        They are tried beside the group's default.

        Parameters
        ----------
        X : array, shape (n, m, m), of symmetric matrices
        """
        return []

    def default_size(self, domain: Domain, size: int) -> int:
        """The size of a quadrature if none is given, on a group whose default is ``size``."""
        return size

    def scaled(self, factor: float, domain: Domain) -> Distribution | None:
        """This distribution with elements ``factor`` times as far from the identity; None if it has no such width."""
        return None

    def move(self, group: Group, draws: np.ndarray, X: Tensor) -> Tensor:
        """Points ``(n, *shape)`` moved by elements that differ by point, ``(r, n, *shape)``; if ``data_dependent``."""
        raise NotImplementedError
