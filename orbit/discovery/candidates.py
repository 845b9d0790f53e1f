"""The orbits, and the invariant encoders, that are tried."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from orbit.core.errors import accepts
from orbit.core.grid import PLACE, grid_axes, in_any_order, n_points
from orbit.distributions import ProductDistribution
from orbit.distributions.base import Distribution
from orbit.encoders import Encoder
from orbit.groups import Group, ProductGroup
from orbit.orbits import Orbit
from orbit.registry import available, get
from orbit.representations import is_symmetric

# Finite groups up to this order are listed, and of larger ones so many elements are drawn; fewer if moved points are
# encoded, which takes most of the time then, and still fewer in a first look.
_LISTED, _ENCODED, _FIRST = 128, 32, 8

# Widths of q that are tried, as multiples of the default one.
_WIDTHS = (0.5, 2.0)


def candidates(
    X: np.ndarray,
    groups: Iterable[Group] | None = None,
    widths: bool = True,
    encoded: bool = False,
    axes: int | None = None,
) -> list[Orbit]:
    """The orbits of every group that acts on points (n, *shape), with its q and several widths of each.

    ``encoded`` says whether moved points are encoded, which costs more for each element, and ``axes`` how many
    axes of a point are time or space; None: as the shape suggests.

    >>> sorted({orbit.group.name for orbit in candidates(np.zeros((1, 3)))})
    ['amplitude', 'cyclic', 'offset', 'orthogonal', 'permutation', 'reflection', 'time_warp']
    """
    shape, axes = X.shape[1:], _axes(X) if axes is None else axes
    if groups is None:
        classes: list[Any] = [get("group", name) for name in available("group")]
        compared = [cls for cls in classes if axes in cls.compared_on]
        groups = [group for cls in compared for group in cls.variants(shape) if accepts(group.check_shape, shape)]
    orbits = [_orbit(group, None, shape, _ENCODED if encoded else _LISTED) for group in groups]
    if axes == 0:
        orbits += [_orbit(group, q, shape) for group in groups for q in _of_unordered(group, X)]
    if not widths:
        return orbits
    return [each for orbit in orbits for each in (orbit, *(scaled(orbit, shape, width) for width in _WIDTHS)) if each]


def invariant_encoders(X: np.ndarray) -> list[Encoder]:
    """The encoders of points (n, *shape) that are tried beside groups.

    Of clouds with features, if they are in any order, or have unequal numbers of points, with zeros after them.

    >>> invariant_encoders(np.zeros((1, 30, 3))), invariant_encoders(np.zeros((1, 28, 28)))
    ([PointPairs(normals=True), PointPairs(normals=False)], [])
    """
    shape = X.shape[1:]
    if len(shape) == 2 and shape[1] > PLACE and not (grid_axes(shape) == 1 and _are_sets(X)):
        return []
    classes: list[Any] = [get("encoder", name) for name in available("encoder")]
    return [encoder for cls in classes for encoder in cls.variants(shape) if accepts(encoder.check_shape, shape)]


def _are_sets(X: np.ndarray) -> bool:
    counts = {n_points(cloud) for cloud in X}
    return len(counts) > 1 or in_any_order(X[..., :PLACE])


def _axes(X: np.ndarray) -> int:
    """The number of axes of time or space of points; none for symmetric matrices, whose rows are in any order."""
    is_square = X.ndim == 3 and X.shape[1] == X.shape[2]
    return 0 if is_square and is_symmetric(X) else grid_axes(X.shape[1:])


def _of_unordered(group: Group, X: np.ndarray) -> list[Distribution]:
    classes: list[Any] = [get("distribution", name) for name in available("distribution")]
    return [q for cls in classes for q in cls.of_unordered(group, X)]


def _orbit(group: Group, q: Distribution | None, shape: tuple[int, ...], most: int = _LISTED) -> Orbit:
    """The orbit of a group on points of a shape, of at most so many elements; small finite groups are listed.

    Of elements that depend on the point many are drawn: no rule for them is better than chance.
    """
    if q is not None and q.data_dependent:
        return Orbit(group, q, _LISTED)
    order = group.for_shape(shape).order
    if order is None:
        return Orbit(group, q, min(group.default_size, most))
    if q is not None or order <= min(group.default_size, most):
        return Orbit(group, q)
    return Orbit(group, q, order) if order <= most else Orbit(group, q, most, "qmc")


def with_few_elements(orbit: Orbit, shape: tuple[int, ...]) -> Orbit | None:
    """An orbit with a few of the elements, for a first look; None if it has no more.

    >>> with_few_elements(Orbit(get("group", "rotation")(), size=32), (28, 28)).size
    8
    >>> with_few_elements(Orbit(), (28, 28)) is None
    True
    """
    group, q, size = orbit.resolved()
    if q.data_dependent or min(group.for_shape(shape).order or size, size) <= _FIRST:
        return None
    return _orbit(group, orbit.distribution, shape, _FIRST)


def scaled(orbit: Orbit, shape: tuple[int, ...], factor: float, only: int | None = None) -> Orbit | None:
    """An orbit with elements ``factor`` times as far from the identity, in all ways or one; None without a width."""
    group, q, _ = orbit.resolved()
    if group.limits:
        names = group.limits if only is None else group.limits[only : only + 1]
        changed = clone(group).set_params(**{name: factor * getattr(group, name) for name in names})
        return clone(orbit).set_params(group=changed) if accepts(changed.check) else None
    domain = group.for_shape(shape).domain
    wider = q.scaled(factor, domain, only) if isinstance(q, ProductDistribution) else q.scaled(factor, domain)
    return None if wider is None else _orbit(group, wider, shape)


def n_widths(orbit: Orbit) -> int:
    group, q, _ = orbit.resolved()
    return len(group.limits) or (len(q.parts()) if isinstance(q, ProductDistribution) else 1)


def product_of(orbits: list[Orbit]) -> Orbit:
    given = any(one.distribution is not None for one in orbits)
    groups, laws, _ = zip(*(one.resolved() for one in orbits), strict=True)
    return Orbit(ProductGroup([*groups]), ProductDistribution([*laws]) if given else None)
