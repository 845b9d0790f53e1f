"""The orbits that are tried on points of a shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.core.grid import grid_axes
from orbit.distributions import ProductDistribution
from orbit.distributions.base import Distribution
from orbit.groups import Group, ProductGroup
from orbit.orbits import Orbit
from orbit.registry import available, get

# Finite groups up to this order are listed; of larger ones so many elements are drawn.
_LISTED = 128

# Widths of q that are tried, as multiples of the default one.
_WIDTHS = (0.5, 2.0)


def candidates(shape: tuple[int, ...], groups: Iterable[Group] | None = None, widths: bool = True) -> list[Orbit]:
    """The orbits of every group that acts on points of a shape, with several widths of q.

    >>> sorted({orbit.group.name for orbit in candidates((3,))})
    ['amplitude', 'cyclic', 'offset', 'orthogonal', 'permutation', 'reflection', 'time_warp']
    """
    if groups is None:
        classes: list[Any] = [get("group", name) for name in available("group")]
        compared = [cls for cls in classes if cls.compared_on in (None, grid_axes(shape))]
        groups = [group for cls in compared for group in cls.variants(shape) if _acts_on(group, shape)]
    orbits = [_orbit(group, None, shape) for group in groups]
    if not widths:
        return orbits
    return [each for orbit in orbits for each in (orbit, *(scaled(orbit, shape, width) for width in _WIDTHS)) if each]


def _acts_on(group: Group, shape: tuple[int, ...]) -> bool:
    try:
        group.check_shape(shape)
    except InputError:
        return False
    return True


def _orbit(group: Group, q: Distribution | None, shape: tuple[int, ...]) -> Orbit:
    """The orbit of a group on points of a shape; small finite groups are listed, of large ones elements are drawn."""
    order = group.for_shape(shape).order
    if q is not None or order is None or order <= group.default_size:
        return Orbit(group, q)
    return Orbit(group, q, order) if order <= _LISTED else Orbit(group, q, _LISTED, "qmc")


def scaled(orbit: Orbit, shape: tuple[int, ...], factor: float, only: int | None = None) -> Orbit | None:
    """An orbit with elements ``factor`` times as far from the identity, in all ways or one; None without a width."""
    group, q, _ = orbit.resolved()
    if group.limits:
        names = group.limits if only is None else group.limits[only : only + 1]
        changed = clone(group).set_params(**{name: factor * getattr(group, name) for name in names})
        return Orbit(changed) if _is_valid(changed) else None
    domain = group.for_shape(shape).domain
    wider = q.scaled(factor, domain, only) if isinstance(q, ProductDistribution) else q.scaled(factor, domain)
    return None if wider is None else _orbit(group, wider, shape)


def n_widths(orbit: Orbit) -> int:
    group, q, _ = orbit.resolved()
    return len(group.limits) or (len(q.parts()) if isinstance(q, ProductDistribution) else 1)


def _is_valid(component: Component) -> bool:
    try:
        component.check()
    except InputError:
        return False
    return True


def product_of(orbits: list[Orbit]) -> Orbit:
    given = any(one.distribution is not None for one in orbits)
    groups, laws, _ = zip(*(one.resolved() for one in orbits), strict=True)
    return Orbit(ProductGroup([*groups]), ProductDistribution([*laws]) if given else None)
