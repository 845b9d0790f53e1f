"""Rotations of volumes: the symmetries of the cube, exact on the grid, and all of SO(3) by interpolation."""

import itertools
import math

import numpy as np
from torch import Tensor

from orbit.core.grid import grid_axes
from orbit.groups.base import Group, MatrixGroup
from orbit.groups.domains import Finite, OrthogonalMatrices
from orbit.groups.reordering import Reordering
from orbit.groups.resampled import Fill, Resampled
from orbit.registry import register

_AXES = 3


def _check(group: Group, shape: tuple[int, ...], kind: str) -> None:
    """Raise ``InputError`` unless points are volumes, with or without channels."""
    cube = kind != "cubes" or len(set(shape[:_AXES])) == 1
    if len(shape) not in (_AXES, _AXES + 1) or not cube or (len(shape) == _AXES and grid_axes(shape) != _AXES):
        raise group._refuse(shape, f"{kind} of shape (depth, height, width) or (depth, height, width, channels)")


@register("group", "octahedral")
class Octahedral(Reordering):
    """Rotations of cubes by quarter turns about their axes, with reflections; elements are numbers 0 to 23 or 47.

    Volumes ``(size, size, size)`` or ``(size, size, size, channels)``, exact on the
    grid. Elements are the signed permutation matrices of determinant one, and after
    them those of determinant minus one, each in lexical order from the identity.

    Parameters
    ----------
    mirror : bool
        Whether reflections are included; without them the order is 24.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Octahedral
    >>> X = np.random.default_rng(0).random((1, 8, 8, 8))
    >>> group = Octahedral()
    >>> group.order, bool((group.act(group.elements(), X).sum((1, 2, 3, 4)).round(9) == X.sum().round(9)).all())
    (24, True)
    """

    compared_on = (3,)
    default_size = 48

    def __init__(self, mirror: bool = False) -> None:
        self.mirror = mirror

    @property
    def domain(self) -> Finite:
        return Finite(len(_MATRICES) if self.mirror else len(_MATRICES) // 2)

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return _numbers(_matrices(self._rows(left)) @ _matrices(self._rows(right)))

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return _numbers(_matrices(self._rows(elements)).swapaxes(-1, -2))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        _check(self, shape, "cubes")

    def describe(self, element: np.ndarray) -> str:
        return _turn_text(_matrices(element))

    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        matrix = _matrices(element)
        # sample u is read at v = R^T u, so v_j = sign_j u_i where column j of R has its entry sign_j in row i
        rows = np.abs(matrix).argmax(0)
        flipped = X.flip([1 + j for j in range(_AXES) if matrix[rows[j], j] < 0])
        order = [0, *(1 + np.argsort(rows)), *range(1 + _AXES, X.ndim)]
        return flipped.permute([int(axis) for axis in order])


@register("group", "rotation3d")
class Rotation3D(MatrixGroup, Resampled):
    """SO(3) acting on volumes about their centre; elements are rotation matrices ``(3, 3)``.

    Volumes are ``(depth, height, width)`` or ``(depth, height, width, channels)``;
    coordinates are in the order of the axes. Trilinear interpolation: linear, with
    an exact adjoint, but unitary and a group action only up to interpolation error.
    The quadrature over SO(3) is that of :class:`~orbit.groups.Orthogonal`.

    Parameters
    ----------
    fill : {"zero", "edge", "reflect", "mean"}
        What is read outside of the volume: zeros, the nearest sample, mirrored
        samples, or the mean of the volume, per channel.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Rotation3D
    >>> X = np.random.default_rng(0).random((1, 8, 8, 8))
    >>> quarter = np.array([[[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]])
    >>> bool(np.allclose(Rotation3D().act(quarter, X)[0, 0], np.rot90(X[0], axes=(1, 2))))
    True
    """

    compared_on = (3,)
    domain = OrthogonalMatrices(_AXES)
    default_size = 64

    def __init__(self, fill: Fill = "zero") -> None:
        self.fill = fill

    def check_shape(self, shape: tuple[int, ...]) -> None:
        _check(self, shape, "volumes")

    def describe(self, element: np.ndarray) -> str:
        return _turn_text(element)

    def _grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:_AXES]

    def _positions(self, element: np.ndarray, grid: tuple[int, ...]) -> list[np.ndarray]:
        centre = (np.array(grid) - 1) / 2
        samples = np.indices(grid).reshape(_AXES, -1) - centre[:, None]
        return list(element.T @ samples + centre[:, None])


def _signed_permutations() -> np.ndarray:
    """The 48 symmetries of the cube as matrices (48, 3, 3), first those of determinant one, the identity first."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=_AXES)))
    orders = [np.eye(_AXES)[list(order)] for order in itertools.permutations(range(_AXES))]
    matrices = np.concatenate([order * signs[:, None, :] for order in orders])
    return matrices[np.argsort(-np.linalg.det(matrices).round(), kind="stable")]


_MATRICES = _signed_permutations()


def _matrices(elements: np.ndarray) -> np.ndarray:
    return _MATRICES[np.asarray(elements).astype(int)]


def _numbers(matrices: np.ndarray) -> np.ndarray:
    """The elements of signed permutation matrices, shape (r,)."""
    same = (np.round(matrices)[:, None] == _MATRICES).all((2, 3))
    return same.argmax(1).astype(np.float64)


def _turn_text(matrix: np.ndarray) -> str:
    mirrored = np.linalg.det(matrix) < 0
    cosine = (np.trace(-matrix if mirrored else matrix) - 1) / 2
    return f"{math.degrees(math.acos(np.clip(cosine, -1, 1))):.0f}°" + (", mirrored" if mirrored else "")
