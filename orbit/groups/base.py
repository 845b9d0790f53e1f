"""The base class of groups that act on arrays.

A group has elements, which are rows of a float64 array, and acts on arrays of
shape ``(n, *shape)``, in most cases linearly: see Raj et al. 2017, section 2 for the action and
Lemma 2.1 for unitarity. The adjoint, ``<w, g x> = <g* w, x>``, moves a linear
action exactly from the data to the templates.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import InputError, located
from orbit.groups.domains import Domain

Array = TypeVar("Array", np.ndarray, Tensor)


class Group(Component):
    """A group acting on arrays.

    A subclass implements ``domain``, ``compose``, ``inverse``, ``check_shape``,
    ``_act`` and ``_adjoint``, and defines the class attributes below.

    Attributes
    ----------
    domain : Domain
        The coordinate space of the elements, on which a distribution must be defined.
    order : int or None
        Number of elements; None if infinite, or not known before :meth:`for_shape`.
    linear : bool
        Whether every element acts linearly. Only then is there an adjoint.
    clouds : bool
        Whether inputs are point clouds, and drawn as such in plots.
    compared_on : tuple of int
        The numbers of axes of time or space of the points on which :func:`orbit.discover` tries the group. Symmetric
        matrices have none: their rows are in any order.
    limits : tuple of str
        Parameters that are proportional to how far its default q moves points, if they define that q.
    default_distribution, default_rule, default_size
        The q, orbit rule and number of elements used when none is given. The rule is for q with more elements than
        the orbit; others are listed.
    """

    default_distribution: ClassVar[dict[str, Any]] = {"name": "haar"}
    default_size: ClassVar[int] = 32
    compared_on: ClassVar[tuple[int, ...]] = (1, 2, 3)
    limits: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The coordinate space of the elements."""

    @property
    def default_rule(self) -> str:
        return "quadrature"

    @property
    def order(self) -> int | None:
        return self.domain.order

    @property
    def linear(self) -> bool:
        return True

    @property
    def clouds(self) -> bool:
        return False

    def for_shape(self, shape: tuple[int, ...]) -> Group:
        """This group with the parameters that depend on the shape of the points filled in, such as a period.

        Raises
        ------
        InputError
            If the group does not act on points of this shape.
        """
        self.check_shape(shape)
        return self

    def _with(self, **params: Any) -> Self:
        """A copy of this group, of its own class if that is a subclass, with other parameters."""
        made = copy.copy(self)
        for name, value in params.items():
            setattr(made, name, value)
        return made

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        """The groups of this class that :func:`orbit.discover` tries on points of a shape: one for each axis, say.

        Those that do not act on points of the shape are left out later. By default one, with default parameters.
        """
        return [cls()]

    def canonical(self, X: np.ndarray) -> np.ndarray | None:
        """A point of the orbit of each point, the same one for all points of an orbit, shape ``(n, *shape)``.

        None if the group has no fast way to find it.
        """
        return None

    def identity(self) -> np.ndarray:
        """The identity, as an array of one element, shape ``(1, ...)``."""
        return self.domain.identity()

    def elements(self) -> np.ndarray:
        """All elements of a finite group, the identity first, shape ``(order, ...)``.

        Raises
        ------
        InputError
            If there are infinitely many, or more than can be listed.
        """
        with located(self.label()):
            return self.domain.elements()

    @abstractmethod
    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The elements ``left[i] right[i]``: act by ``right`` first.

        Shapes ``(r, *domain.shape)``, of which one may have a single element for all of the other. A number, or an
        element without the first axis, is an ``InputError``.
        """

    @abstractmethod
    def inverse(self, elements: np.ndarray) -> np.ndarray:
        """The inverse elements, shape ``(r, *domain.shape)``; see :meth:`compose`."""

    @abstractmethod
    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise ``InputError`` if the group does not act on points of this shape."""

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        """Whether ``<g x, g z> = <x, z>`` holds exactly on points of this shape."""
        return False

    def permutes(self, shape: tuple[int, ...]) -> bool:
        """Whether every element only reorders the coordinates of points of this shape."""
        return False

    def is_closed(self, shape: tuple[int, ...]) -> bool:
        """Whether the maps of a finite group on points of this shape form a group; called only if it is finite.

        They do, unless a product combines groups whose actions do not commute.
        """
        return True

    def moves_as(self, elements: np.ndarray, shape: tuple[int, ...]) -> tuple[Group, np.ndarray]:
        """A group, and elements of it, that move points of this shape as ``elements`` do: one of which more is known.

        Polar images turned by steps of their grid are shifted, for example. By default this group.
        """
        return self, elements

    def cyclic_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Axes of a point along which every element is a circular convolution, independent of the other indices.

        Examples are wrapped shifts, with any translation-invariant interpolation
        between samples, and rotations of polar samples. The engine has a faster
        path for such actions. Empty for all other actions.
        """
        return ()

    def factor_distributions(self) -> list[dict[str, Any]]:
        """The default q of each factor of a product, as sections; empty for other groups."""
        return []

    def describe(self, element: np.ndarray) -> str:
        """One element as text, e.g. ``45°``, for the titles of figures."""
        return np.array2string(np.asarray(element), precision=2)

    def act(self, elements: np.ndarray, X: Array) -> Array:
        """Apply every element to every point.

        Parameters
        ----------
        elements : array, shape (r, ...)
        X : array or tensor, shape (n, *shape)

        Returns
        -------
        array or tensor like ``X``, shape (r, n, *shape)

        Raises
        ------
        InputError
            If the group does not act on points of that shape, or ``_act`` returns a wrong shape.
        """
        return self._moved(elements, X, self._act)

    def adjoint(self, elements: np.ndarray, W: Array) -> Array:
        """Apply the adjoint ``g*`` of every element: ``<w, g x> = <g* w, x>`` for all x.

        Shapes as for :meth:`act`. For a unitary action this is the inverse.

        Raises
        ------
        InputError
            If the group does not act on points of that shape, or not linearly.
        """
        if not self.linear:
            raise InputError(f"{self.label()} does not act linearly, so it has no adjoint")
        return self._moved(elements, W, self._adjoint)

    @abstractmethod
    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        """``act`` for tensors whose shape has been checked."""

    @abstractmethod
    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        """``adjoint`` for tensors whose shape has been checked."""

    def _moved(self, elements: np.ndarray, X: Array, method: Callable[[np.ndarray, Tensor], Tensor]) -> Array:
        """What ``_act`` or ``_adjoint`` makes of points, as an array or a tensor like these; checks both shapes."""
        self.check_shape(tuple(X.shape[1:]))
        elements, points = np.asarray(elements), X if isinstance(X, Tensor) else _tensor(X)
        moved, expected = method(elements, points), (len(elements), *X.shape)
        if not isinstance(moved, Tensor) or tuple(moved.shape) != expected:
            found = f"shape {tuple(moved.shape)}" if isinstance(moved, Tensor) else type(moved).__name__
            raise InputError(
                f"{type(self).__name__}.{method.__name__}: expected a tensor of shape {expected}, (elements, points, "
                f"*shape), found {found}"
            )
        if isinstance(X, Tensor):
            return moved
        # the identity moves nothing: its result would be the caller's own memory
        is_view = moved.untyped_storage().data_ptr() == points.untyped_storage().data_ptr()
        return (moved.clone() if is_view else moved).numpy()

    def _rows(self, elements: np.ndarray) -> np.ndarray:
        """Elements as an array. Raises ``InputError`` unless its shape is ``(r, *domain.shape)``."""
        elements = np.asarray(elements)
        if elements.ndim == 0 or elements.shape[1:] != self.domain.shape:
            expected = str(("r", *self.domain.shape)).replace("'", "")
            raise InputError(f"{self.label()}: expected elements of shape {expected}, found shape {elements.shape}")
        return elements

    def _refuse(self, shape: tuple[int, ...], expected: str) -> InputError:
        found, advice = f"arrays of shape {shape}", "change dataset, representation or group"
        if len(shape) == 1:
            found, advice = f"vectors of length {shape[0]}", f"{advice} (cyclic for series, identity for tables)"
        return InputError(f"{self.label()} acts on {expected}, found {found}: {advice}")


class AdditiveGroup(Group):
    """A group whose elements are composed by adding their coordinates, modulo the period of those that have one."""

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.domain.wrapped(np.add(self._rows(left), self._rows(right)))

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return self.domain.wrapped(np.negative(self._rows(elements)))


class MatrixGroup(Group):
    """A group of orthogonal matrices, which are composed by matrix products."""

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self._rows(left) @ self._rows(right)

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return np.swapaxes(self._rows(elements), -1, -2).copy()


def _tensor(X: np.ndarray) -> Tensor:
    X = X if X.dtype.kind == "f" else X.astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(X if X.flags.writeable else X.copy()))
