"""What an action is: the interface every group implements, and nothing more.

A group has elements, which are rows of a float64 array, and acts on arrays of
shape ``(n, *shape)``, nearly always linearly. Sources: LGIKA section 2 for the action,
Lemma 2.1 for unitarity, and SPEC of the adjoint ``<w, g x> = <g* w, x>``, which
is what makes moving the action from the data to the templates exact.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.groups.domains import Domain

Array = TypeVar("Array", np.ndarray, Tensor)


class Group(Component):
    """A group acting on arrays.

    A subclass gives ``domain``, ``compose``, ``inverse``, ``check_shape``,
    ``_act`` and ``_adjoint``, and the class attributes below.

    Attributes
    ----------
    domain : Domain
        The coordinate space of the elements, which a distribution must fit.
    order : int or None
        Number of elements; None if infinite, or not known before :meth:`settled`.
    linear : bool
        Whether every element acts linearly. Only then is there an adjoint.
    clouds : bool
        Whether points are clouds of points in space, and drawn as such.
    default_distribution, default_rule, default_size
        The q, orbit rule and number of elements used when none is named.
    """

    default_distribution: ClassVar[dict[str, Any]] = {"name": "haar"}
    default_rule: ClassVar[str] = "quadrature"
    default_size: ClassVar[int] = 32

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The coordinate space of the elements."""

    @property
    def order(self) -> int | None:
        return self.domain.order

    @property
    def linear(self) -> bool:
        return True

    @property
    def clouds(self) -> bool:
        return False

    def settled(self, shape: tuple[int, ...]) -> Group:
        """This group with whatever depends on the shape of the points filled in, e.g. the period of a shift.

        Raises
        ------
        InputError
            If the group does not act on points of this shape.
        """
        self.check_shape(shape)
        return self

    def identity(self) -> np.ndarray:
        """The identity, as an array of one element, shape ``(1, ...)``."""
        return self.domain.identity()

    def elements(self) -> np.ndarray:
        """All elements of a finite group, the identity first, shape ``(order, ...)``.

        Raises
        ------
        InputError
            If there are infinitely many, or more than are ever listed.
        """
        try:
            return self.domain.elements()
        except InputError as error:
            raise InputError(f"{self.label()}: {error}") from None

    @abstractmethod
    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The elements ``left[i] right[i]``: act by ``right`` first. Shapes ``(r, ...)``."""

    @abstractmethod
    def inverse(self, elements: np.ndarray) -> np.ndarray:
        """The inverse elements, shape ``(r, ...)``."""

    @abstractmethod
    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise ``InputError`` if the group does not act on points of this shape."""

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        """Whether ``<g x, g z> = <x, z>`` holds exactly on points of this shape."""
        return False

    def permutes(self, shape: tuple[int, ...]) -> bool:
        """Whether every element only reorders the coordinates of points of this shape."""
        return False

    def cyclic_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The axes of a point along which every element is a circular convolution, the same for all other entries.

        Shifts that wrap around, and turns of polar samples, are such; what lies
        between two samples may be interpolated in any way that is the same
        everywhere. Empty if the group does not act so. The engine then has a faster
        path, and asks the group for nothing else.
        """
        return ()

    def factor_distributions(self) -> list[dict[str, Any]]:
        """The default q of each factor of a group made of several, as sections; empty for any other."""
        return []

    def describe(self, element: np.ndarray) -> str:
        """One element for people, e.g. ``45°``: the title of a picture."""
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
            If the group does not act on points of that shape, or ``_act`` returns another shape than this.
        """
        self.check_shape(tuple(X.shape[1:]))
        return self._apply(self._act, elements, X)

    def adjoint(self, elements: np.ndarray, W: Array) -> Array:
        """Apply the adjoint ``g*`` of every element: ``<w, g x> = <g* w, x>`` for all x.

        Shapes as for :meth:`act`. For a unitary action this is the inverse.

        Raises
        ------
        InputError
            If the group does not act on points of that shape, or not linearly.
        """
        if not self.linear:
            raise InputError(f"{self.label()} does not act linearly, so it has no adjoint: move the data instead")
        self.check_shape(tuple(W.shape[1:]))
        return self._apply(self._adjoint, elements, W)

    @abstractmethod
    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        """``act`` for tensors whose shape has been checked."""

    @abstractmethod
    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        """``adjoint`` for tensors whose shape has been checked."""

    def _apply(self, method: Callable[[np.ndarray, Tensor], Tensor], elements: np.ndarray, X: Array) -> Array:
        """``_act`` or ``_adjoint`` of an array or a tensor, the shape of the result checked."""
        elements = np.asarray(elements)
        moved = method(elements, X if isinstance(X, Tensor) else _tensor(X))
        expected = (len(elements), *X.shape)
        if not isinstance(moved, Tensor) or tuple(moved.shape) != expected:
            found = f"shape {tuple(moved.shape)}" if isinstance(moved, Tensor) else type(moved).__name__
            raise InputError(
                f"{type(self).__name__}.{method.__name__}: expected a tensor of shape {expected}, (elements, points, "
                f"*shape), found {found}"
            )
        return moved if isinstance(X, Tensor) else moved.numpy()

    def _refuse(self, shape: tuple[int, ...], expected: str) -> InputError:
        found = f"vectors of length {shape[0]}" if len(shape) == 1 else f"arrays of shape {shape}"
        return InputError(f"{self.label()} acts on {expected}, found {found}: change dataset, representation or group")


def _tensor(X: np.ndarray) -> Tensor:
    X = X if X.dtype.kind == "f" else X.astype(np.float32)
    return torch.from_numpy(np.ascontiguousarray(X if X.flags.writeable else X.copy()))
