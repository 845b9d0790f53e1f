"""Products of groups that act on the same points, one after the other."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from orbit.core.errors import check_each
from orbit.groups.base import Group
from orbit.groups.domains import ProductDomain
from orbit.registry import build_sections, register


@register("group", "product")
class ProductGroup(Group):
    """The direct product of groups; an element is a row that concatenates one element of each factor.

    The first factor acts first. Composition is factor by factor. It is the
    composition of the actions if the factors' actions commute (shifts of different
    axes, rotations of a cloud and permutations of its points); otherwise the
    product is a set of maps to average over, such as rotations followed by shifts.

    Parameters
    ----------
    factors : list of sections
        One section per factor: the name of a group and its parameters. In Python, a factor may also be a group.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Cyclic, ProductGroup
    >>> group = ProductGroup([{"name": "reflection"}, Cyclic(axis=0)]).for_shape((2, 2))
    >>> group.order
    4
    >>> group.act(group.elements(), np.arange(4.0).reshape(1, 2, 2))[3, 0]
    array([[3., 2.],
           [1., 0.]])
    """

    default_distribution: ClassVar[dict[str, Any]] = {"name": "product"}
    default_rule = "qmc"
    default_size = 64

    def __init__(
        self,
        factors: list[dict[str, Any] | Group] = [{"name": "rotation"}, {"name": "translation"}],  # noqa: B006  never changed
    ) -> None:
        self.factors = factors

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        return []  # factors are chosen among all groups

    def parts(self) -> list[Group]:
        """The factors, built."""
        return build_sections("group", "factors", self.factors)

    def check(self) -> None:
        """Raise ``ParameterError`` for an invalid parameter, also of a factor, named e.g. ``factors[1].fill``."""
        super().check()
        if not self.factors:
            raise self.wrong("factors", "at least one section {name: ...}")
        check_each(self.section, "factors", self.parts(), lambda part: part.check())

    @property
    def domain(self) -> ProductDomain:
        parts = self.parts()
        return ProductDomain(tuple(part.domain for part in parts), tuple(part.name for part in parts))

    @property
    def linear(self) -> bool:
        return all(part.linear for part in self.parts())

    @property
    def clouds(self) -> bool:
        return any(part.clouds for part in self.parts())

    def for_shape(self, shape: tuple[int, ...]) -> Self:
        self.check_shape(shape)
        parts = [self._part_for_shape(i, part, shape) for i, part in enumerate(self.parts())]
        return self._with(factors=list(map(_like, self.factors, parts)))

    def _part_for_shape(self, i: int, part: Group, shape: tuple[int, ...]) -> Group:
        """A factor for points of a shape; its warnings name it, as errors do."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = part.for_shape(shape)
        for one in caught:
            warnings.warn(f"{self.section}.factors[{i}]: {one.message}", one.category, stacklevel=4)
        return made

    def factor_distributions(self) -> list[dict[str, Any]]:
        return [_default_distribution(part) for part in self.parts()]

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        pairs = zip(
            self.parts(), self.domain.split(self._rows(left)), self.domain.split(self._rows(right)), strict=True
        )
        return self.domain.join([part.compose(a, b) for part, a, b in pairs])

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        pairs = zip(self.parts(), self.domain.split(self._rows(elements)), strict=True)
        return self.domain.join([part.inverse(a) for part, a in pairs])

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_each(self.section, "factors", self.parts(), lambda part: part.check_shape(shape))

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return all(part.is_unitary(shape) for part in self.parts())

    def permutes(self, shape: tuple[int, ...]) -> bool:
        return all(part.permutes(shape) for part in self.parts())

    def is_closed(self, shape: tuple[int, ...]) -> bool:
        """Whether the elements of every factor map the orbit of a random point to itself."""
        rng = np.random.default_rng(0)
        orbit, direction = self.act(self.elements(), rng.random((1, *shape)))[:, 0], rng.random(math.prod(shape))
        steps = (
            part.act(part.elements()[i : i + 1], orbit)[0] for part in self.parts() for i in range(part.order or 0)
        )
        places, *moved = (np.sort(points.reshape(len(orbit), -1) @ direction) for points in (orbit, *steps))
        return all(np.allclose(places, each, rtol=1e-9, atol=0) for each in moved)

    def describe(self, element: np.ndarray) -> str:
        pieces = self.domain.split(np.asarray(element)[None])
        return "\n".join(part.describe(piece[0]) for part, piece in zip(self.parts(), pieces, strict=True))

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        moves = [part.act for part in self.parts()]
        return _one_by_one(moves, self.domain.split(elements), X)

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        moves = [part.adjoint for part in self.parts()]
        return _one_by_one(moves[::-1], self.domain.split(elements)[::-1], W)


def _one_by_one(moves: Sequence[Callable[..., Tensor]], pieces: Sequence[np.ndarray], X: Tensor) -> Tensor:
    """Points moved by every element: by its piece in the first of the moves, then in the second, and so on."""
    moved = []
    for i in range(len(pieces[0])):
        Y = X
        for move, piece in zip(moves, pieces, strict=True):
            Y = move(piece[i : i + 1], Y)[0]
        moved.append(Y)
    return torch.stack(moved)


def _like(factor: Mapping[str, Any] | Group, part: Group) -> dict[str, Any] | Group:
    """A part as the factor was given: a group, or the section of one."""
    return part if isinstance(factor, Group) else {"name": part.name} | part.get_params(deep=False)


def _default_distribution(group: Group) -> dict[str, Any]:
    """The default q of a factor, with those of its own factors if it is a product itself."""
    factors = group.factor_distributions()
    return {**group.default_distribution, **({"factors": factors} if factors else {})}
