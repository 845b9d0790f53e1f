"""q: a probability distribution on a group, in the coordinates of the group's domain.

SPEC section 1: q = delta gives the base kernel back, q = Haar full invariance
(GICDF eq. 1), a unimodal q around the identity local invariance (LGIKA eq. 3).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from orbit.component import Component
from orbit.domains import Domain, Point
from orbit.errors import InputError
from orbit.groups.base import Group


class Distribution(Component):
    """A distribution on a group.

    A subclass gives ``domains``, ``density``, ``ppf`` and ``quadrature`` for
    every domain it names. On the trivial group there is only one distribution,
    so every one of them is accepted there and means the point mass.
    """

    domains: ClassVar[tuple[type[Domain], ...]] = ()

    def check_group(self, group: Group) -> None:
        """Raise ``InputError``, naming both sides, if q is not defined on the group."""
        if not isinstance(group.domain, (Point, *self.domains)):
            raise InputError(
                f"{self.label()} is not defined on {group.label()}, whose elements are {group.domain}: "
                "change distribution or group"
            )

    @abstractmethod
    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        """q at the coordinates, with respect to normalised Haar measure on a compact domain. Shape ``(r,)``."""

    @abstractmethod
    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        """The inverse of the distribution function: uniforms ``u`` in [0, 1), shape ``(r,)``, to coordinates."""

    @abstractmethod
    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes ``(size,)`` and weights ``(size,)`` summing to one, by a deterministic rule.

        ``phase`` in [0, 1) shifts a periodic rule by that share of its step;
        a rule with fixed nodes ignores it.
        """
