"""Orbit = group + q + rule + size -> elements and weights, fixed at fit.

Every approximation averages over the same object: psi(x) = sum_i w_i phi(g_i x)
(Raj et al. 2017, eqs. 7 and 8). The papers draw the g_i at random with w_i = 1/r; ``qmc``
and ``quadrature`` need fewer elements, which Raj et al. 2017 mentions as future work.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy.stats import qmc
from sklearn.base import clone
from torch import Tensor

from orbit.core.component import Component
from orbit.core.distinct import distinct
from orbit.core.errors import InputError
from orbit.core.memory import check_fits
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, generator, spawn
from orbit.distributions import Distribution, ProductDistribution
from orbit.groups import Group, Identity, ProductGroup
from orbit.registry import build

# Nodes of smaller weight, in the tails of a Gauss rule, are dropped: they contribute less than rounding errors.
_NEGLIGIBLE = 1e-14

# Numbers in all products of two elements that are compared, and elements whose products are checked on a point.
_MOST_DIFFERENCES, _COMPARED = 10**7, 16

# Number of distinct elements among random orbit points: each takes a separate call.
_DRAWN_ELEMENTS = 64

# Largest ratio of orbits to points for which one point of each orbit is averaged.
_FEW_ORBITS = 0.25

Rule = Literal["monte_carlo", "qmc", "quadrature"]


@dataclass(eq=False, repr=False)
class Orbit(Component):
    """The weighted group elements that an approximation averages over.

    Parameters
    ----------
    group : Group or None
        None is the trivial group.
    distribution : Distribution or None
        q. None is the group's own default.
    size : int >= 1 or None
        r, the number of elements. None is the group's own default.
    rule : {"monte_carlo", "qmc", "quadrature"} or None
        How the elements are chosen. ``monte_carlo``: drawn from q, weights 1/r.
        ``qmc``: a scrambled Sobol sequence through q's inverse distribution
        function, weights 1/r; best where r is a power of two. ``quadrature``:
        at most r nodes and weights of a deterministic rule for q; if q has finitely
        many elements, all of them for every r. None is ``quadrature`` if q is known to
        have at most r elements on points of the fitted shape, so that listing them is
        exact and takes no longer; otherwise the group's own default.
    random_phase : bool
        Shift a periodic quadrature rule by a random share of its step, which
        makes it unbiased. Rules with fixed nodes ignore it.
    random_state : int, RandomState or None

    Attributes
    ----------
    elements_ : array, shape (r, ...)
    weights_ : float64 array, shape (r,)
        Non-negative, summing to one.
    is_whole_group : bool
        Whether the elements are all those of a finite group, with equal weights.
    group_, distribution_, rule_
        The parts and the rule in use, with defaults.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> q = orbit.build("distribution", "von_mises", concentration=0.2)
    >>> orb = orbit.Orbit(orbit.build("group", "rotation"), q, size=4)
    >>> orb.fit(np.zeros((1, 8, 8))).weights_.round(3)
    array([0.302, 0.248, 0.203, 0.248])
    """

    kind = name = section = "orbit"

    group: Group | None = None
    distribution: Distribution | None = None
    size: PositiveInt | None = None
    rule: Rule | None = None
    random_phase: bool = False
    random_state: RandomState = None

    def resolved(self) -> tuple[Group, Distribution, int]:
        """Group, q and size, with the group's defaults instead of None."""
        group = self.group or Identity()
        choice = dict(group.default_distribution)
        q = self.distribution or build("distribution", choice.pop("name"), **choice)
        return group, q.for_group(group), self.size or group.default_size

    def resolved_rule(self) -> Rule | None:
        """The rule in use; None if it depends on the number of elements, and that on the shape of the points.

        Raises
        ------
        InputError
            If q is not defined on the group.
        """
        group, q, size = self.resolved()
        q.check_group(group)
        rule = self.rule or _default_rule(group, q, size)
        of_unknown_order = group.domain.dim == 0 and group.order is None and not q.data_dependent
        return None if self.rule is None and rule != "quadrature" and of_unknown_order else rule

    def check(self) -> None:
        """Raise ``InputError`` if a parameter is wrong, or group, q and rule are not compatible."""
        super().check()
        group, q, _ = self.resolved()
        if group.default_rule not in get_args(Rule):
            found = repr(group.default_rule)
            raise InputError(f"{group.label()}: expected a default_rule of {', '.join(get_args(Rule))}, found {found}")
        q.check_group(group)
        q.check_rule(group, self.resolved_rule() or group.default_rule)

    def check_memory(self) -> None:
        """Raise ``InputError`` if the elements cannot fit in memory."""
        group, _, size = self.resolved()
        rule = self.resolved_rule() or group.default_rule
        listed = rule == "quadrature" and group.domain.dim == 0  # all elements of a finite group, for every size
        if not (listed or group.order == 1):  # random numbers, elements and weights, in float64
            check_fits("orbit.size", f"{size:,} elements", 3 * 8 * size)

    def fit(self, X: np.ndarray, y: object = None) -> Orbit:
        """Choose the elements and weights for points of the shape of ``X``'s rows.

        Parameters
        ----------
        X : array, shape (n, *shape)

        Raises
        ------
        InputError
            If the group does not act on points of that shape, or q or the rule
            is not defined on the group.
        """
        self.check()
        self.check_memory()
        group, q, size = self.resolved()
        self.shape_ = tuple(X.shape[1:])
        self.group_, self.distribution_ = clone(group).for_shape(self.shape_), clone(q)
        q.check_group(self.group_)
        self.rule_ = self.rule or _default_rule(self.group_, q, size)
        q.check_rule(self.group_, self.rule_)
        if self.size is None and self.rule_ == "quadrature":
            size = q.default_size(self.group_.domain, size)
        self.elements_, self.weights_ = self._choose(self.group_, q, size, self.rule_)
        return self

    def _choose(self, group: Group, q: Distribution, size: int, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
        rng = generator(self.random_state)
        if group.order == 1:
            return group.identity(), np.ones(1)
        if rule == "quadrature":
            nodes, weights = q.quadrature(group.domain, size, rng.random() if self.random_phase else 0.0)
            kept = weights > _NEGLIGIBLE * weights.max()
            return nodes[kept], weights[kept] / weights[kept].sum()
        u = sobol(size, group.domain.uniforms, rng) if rule == "qmc" else rng.random((size, *group.domain.uniforms))
        return q.ppf(group.domain, u), np.full(size, 1 / size)

    @property
    def is_whole_group(self) -> bool:
        elements = self.elements_.reshape(len(self.elements_), -1)
        return (
            not self.distribution_.data_dependent
            and self.group_.order == len(elements)
            and np.allclose(self.weights_, 1 / len(elements), rtol=1e-12, atol=0)
            and len(np.unique(elements, axis=0)) == len(elements)
        )

    def simplified(self) -> Orbit:
        """The same moves, as elements of the group of which most is known: see ``Group.moves_as``."""
        made = copy.copy(self)
        made.group_, made.elements_ = self.group_.moves_as(self.elements_, self.shape_)
        return made

    def differences(self) -> Orbit | None:
        """The orbit of the h = g_j^-1 g_i, with weights w_h = sum v_i v_j over the pairs of each.

        With it, sum_ij v_i v_j k(g_i x, g_j z) = sum_h w_h k(h x, z) for a kernel that is invariant under the group.
        None if that has more than half as many terms, or the maps of points do not compose as the elements do.
        """
        group, shape, r = self.group_, self.shape_, len(self.weights_)
        if self.is_whole_group:
            return self if group.is_closed(shape) else None
        if self.distribution_.data_dependent or r**2 * self.elements_[0].size > _MOST_DIFFERENCES:
            return None
        inverses = group.inverse(self.elements_)
        pairs = np.concatenate([group.compose(inverses[j : j + 1], self.elements_) for j in range(r)])
        _, first, which = np.unique(
            pairs.reshape(len(pairs), -1).round(9), axis=0, return_index=True, return_inverse=True
        )
        if len(first) > r**2 / 2 or not self._maps_compose(pairs.reshape(r, *self.elements_.shape)):
            return None
        made = copy.copy(self)
        made.elements_ = pairs[first]
        made.weights_ = np.bincount(which.ravel(), np.outer(self.weights_, self.weights_).ravel())
        return made

    def _maps_compose(self, pairs: np.ndarray) -> bool:
        """Whether ``pairs[j, i]`` moves a random point as g_i and then the inverse of g_j do, for some j."""
        rng, group = np.random.default_rng(0), self.group_
        X = rng.random((1, *self.shape_))
        moved = group.act(self.elements_, X)[:, 0]
        some = rng.permutation(len(pairs))[:_COMPARED]
        inverses = group.inverse(self.elements_)
        return all(np.allclose(group.act(inverses[j : j + 1], moved)[0], group.act(pairs[j], X)[:, 0]) for j in some)

    def representatives(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """One point of each orbit, shape ``(m, *shape)``, and which of them is in the orbit of each of the n points.

        Averages over the orbit are the same for both. None unless points share orbits, at most one for every four of
        them; the orbit is the whole group, with equal weights; and the group has a fast way to find such points.
        """
        points = self.group_.canonical(X) if self.is_whole_group else None
        if points is None or not len(X):
            return None
        first, index = distinct(points.reshape(len(X), -1))
        return None if len(first) > _FEW_ORBITS * len(X) else (points[first], index)

    def points(self, X: Tensor, elements: slice) -> Tensor:
        """The orbit points ``g_i x`` for a range of elements: shape ``(r, n, *shape)``.

        The elements may depend on x (``noisy_sort``): see ``Distribution.move``.
        """
        draws = self.elements_[elements]
        if self.distribution_.data_dependent:
            return self.distribution_.move(self.group_, draws, X)
        return self.group_.act(draws, X)

    def metrics(self) -> dict[str, float]:
        return {"orbit/size": float(len(self.weights_))}

    def describe(self, i: int) -> str:
        """Element ``i`` as text, e.g. for the title of a figure."""
        return f"draw {i}" if self.distribution_.data_dependent else self.group_.describe(self.elements_[i])

    def label(self) -> str:
        """Group, q, rule and number of elements as text; before :meth:`fit` the requested number."""
        group, q, size = self.resolved()
        rule = self.resolved_rule() or "default"
        if hasattr(self, "weights_"):
            size, rule = len(self.weights_), self.rule_
        return f"{_name(group)}, q={_name(q)}, {size} by {rule}"


def _name(part: Group | Distribution) -> str:
    """That of a group or q; of a product those of its factors."""
    is_product = isinstance(part, ProductGroup | ProductDistribution)
    return " × ".join(map(_name, part.parts())) if is_product else part.name


def _default_rule(group: Group, q: Distribution, size: int) -> Rule:
    """All elements of q, if they are known and at most ``size``, exactly; otherwise the default rule of the group."""
    atoms = None if group.order == 1 else q.atoms(group.domain)
    rule: Any = group.default_rule
    return "quadrature" if atoms is not None and atoms <= size else rule


def random_orbit_points(orbit: Orbit, X: np.ndarray, size: int, random_state: RandomState) -> np.ndarray:
    """At most ``size`` of the points ``X`` (n, *shape), each moved by an element drawn from q.

    They do not depend on the rule and the size of the fitted ``orbit``.

    >>> orb = Orbit(build("group", "dihedral")).fit(np.zeros((1, 2, 2)))
    >>> random_orbit_points(orb, np.ones((5, 2, 2)), 3, random_state=0).shape
    (3, 2, 2)
    """
    choice_seed, element_seed = spawn(random_state, 2)
    if len(X) > size:
        X = X[generator(choice_seed).choice(len(X), size, replace=False)]
    count = min(len(X), _DRAWN_ELEMENTS)
    drawn = Orbit(orbit.group, orbit.distribution, count, "monte_carlo", random_state=element_seed).fit(X)
    moved = np.empty_like(X)
    for i in range(len(drawn.weights_)):
        mine = slice(i, None, len(drawn.weights_))
        moved[mine] = drawn.points(torch.from_numpy(np.array(X[mine])), slice(i, i + 1))[0].numpy()
    return moved


def sobol(size: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """The first ``size`` points of a scrambled Sobol sequence, shape ``(size, *shape)``.

    >>> sobol(4, (2,), np.random.default_rng(0)).shape
    (4, 2)
    """
    dims = math.prod(shape)
    if dims > qmc.Sobol.MAXDIM:
        raise InputError(
            f"orbit.rule=qmc: an element takes {dims} numbers, Sobol sequences have at most {qmc.Sobol.MAXDIM}"
        )
    sequence = qmc.Sobol(dims, scramble=True, seed=rng)
    return sequence.random_base2(math.ceil(math.log2(size)))[:size].reshape(size, *shape)
