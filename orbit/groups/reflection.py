"""Mirror images, and the eight symmetries of the square: exact on the pixel grid."""

from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from orbit.core.grid import grid_axes, holds_vectors
from orbit.core.params import Range
from orbit.groups.base import Group
from orbit.groups.domains import Finite
from orbit.groups.reordering import Reordering
from orbit.registry import register


@register("group", "reflection")
class Reflection(Reordering):
    """Reversal of one axis of an array; elements are 0 (identity) and 1 (reversed).

    Parameters
    ----------
    axis : int >= 0 or None
        Axis of a point: 1 mirrors an image left to right, 0 upside down. None: the
        last that is time or space, so that images are mirrored left to right and
        series are reversed.
    vectors : bool
        Whether the two channels of an image are a vector of each pixel, to larger columns
        and to larger rows, as in flows, which is mirrored with the image.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Reflection
    >>> Reflection().act([0, 1], np.array([[1.0, 2.0, 3.0]]))[:, 0]
    array([[1., 2., 3.],
           [3., 2., 1.]])
    """

    domain = Finite(2)
    default_size = 2

    def __init__(self, axis: Annotated[int, Range(low=0)] | None = None, vectors: bool = False) -> None:
        self.axis = axis
        self.vectors = vectors

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        kinds = (False, True) if holds_vectors(shape) else (False,)
        return [cls(axis=axis, vectors=vectors) for axis in range(grid_axes(shape)) for vectors in kinds]

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.mod(np.add(self._rows(left), self._rows(right)), 2.0)

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return np.array(self._rows(elements), dtype=float)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self.axis is not None and len(shape) <= self.axis:
            raise self._refuse(shape, f"arrays with an axis {self.axis} (axis)")
        if self.vectors and not (holds_vectors(shape) and self.axis in (None, 0, 1)):
            raise self._refuse(shape, "images of vectors of shape (height, width, 2) (vectors)")

    def describe(self, element: np.ndarray) -> str:
        return "mirrored" if element else "as it is"

    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        if not element:
            return X
        last = 1 if self.vectors else grid_axes(tuple(X.shape[1:])) - 1
        axis = last if self.axis is None else self.axis
        return _mirrored(X, axis, self.vectors)


@register("group", "dihedral")
class Dihedral(Reordering):
    """Rotations of square images by multiples of 90 degrees, with reflections; elements are numbers 0 to 7.

    Element ``k + 4 m`` mirrors left to right m times and then turns
    counter-clockwise by k quarters.

    Parameters
    ----------
    mirror : bool
        Whether reflections are included; without them the order is four.
    vectors : bool
        Whether the two channels are a vector of each pixel, to larger columns and to larger
        rows, as in flows, which moves with the image.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Dihedral
    >>> Dihedral().act([0, 1, 4], np.arange(4.0).reshape(1, 2, 2))[:, 0]
    array([[[0., 1.],
            [2., 3.]],
    <BLANKLINE>
           [[1., 3.],
            [0., 2.]],
    <BLANKLINE>
           [[1., 0.],
            [3., 2.]]])
    """

    compared_on = (2,)
    default_size = 8

    def __init__(self, mirror: bool = True, vectors: bool = False) -> None:
        self.mirror = mirror
        self.vectors = vectors

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        return [cls(), cls(vectors=True)] if holds_vectors(shape) else [cls()]

    @property
    def domain(self) -> Finite:
        return Finite(8 if self.mirror else 4)

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        (k, m), (k2, m2) = _parts(self._rows(left)), _parts(self._rows(right))
        return np.mod(k + np.where(m == 1, -k2, k2), 4) + 4 * np.mod(m + m2, 2)

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        k, m = _parts(self._rows(elements))
        return np.where(m == 1, k, np.mod(-k, 4)) + 4 * m

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) not in (2, 3) or shape[0] != shape[1]:
            raise self._refuse(shape, "square images of shape (size, size) or (size, size, channels)")
        if self.vectors and not holds_vectors(shape):
            raise self._refuse(shape, "square images of vectors of shape (size, size, 2) (vectors)")

    def describe(self, element: np.ndarray) -> str:
        k, m = _parts(element)
        return f"{90 * int(k)}°" + (", mirrored" if m else "")

    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        k, m = _parts(element)
        moved = torch.rot90(_mirrored(X, 1, self.vectors) if m else X, int(k), (1, 2))
        for _ in range(int(k) if self.vectors else 0):
            moved = torch.stack([moved[..., 1], -moved[..., 0]], -1)
        return moved


def _mirrored(X: Tensor, axis: int, vectors: bool) -> Tensor:
    """Points reversed along an axis, of vectors with the sign of their component along it."""
    flipped = X.flip(1 + axis)
    return flipped * X.new_tensor([-1.0, 1.0] if axis == 1 else [1.0, -1.0]) if vectors else flipped


def _parts(elements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number of quarter turns, and of reflections."""
    elements = np.asarray(elements, dtype=float)
    return np.mod(elements, 4), np.floor(elements / 4)
