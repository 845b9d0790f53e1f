"""Rotations and reflections of point clouds."""

import math
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from orbit.core.params import Range
from orbit.groups.base import Group, MatrixGroup
from orbit.groups.domains import OrthogonalMatrices
from orbit.registry import register

# The plane and space: more coordinates are hardly those of one point.
_SPACES = (2, 3)


@register("group", "orthogonal")
class Orthogonal(MatrixGroup):
    """SO(d) or O(d) acting on clouds of points about the origin; elements are matrices ``(d, d)``.

    Points are arrays ``(n_points, d)``, one row per point of the cloud, or single
    vectors ``(d,)``. A quadrature exists in two and three dimensions.

    Parameters
    ----------
    dim : int >= 2
        d, the number of coordinates.
    special : bool
        True: rotations only, SO(d). False: reflections too, O(d).

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Orthogonal
    >>> quarter = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    >>> Orthogonal(dim=2).act(quarter, np.array([[[1.0, 0.0], [0.0, 2.0]]]))[0, 0]
    array([[ 0.,  1.],
           [-2.,  0.]])
    """

    default_size = 64
    clouds = True

    def __init__(self, dim: Annotated[int, Range(low=2)] = 3, special: bool = True) -> None:
        self.dim = dim
        self.special = special

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        return [cls(dim=shape[-1])] if shape[-1] in _SPACES else []

    @property
    def domain(self) -> OrthogonalMatrices:
        return OrthogonalMatrices(self.dim, self.special)

    @property
    def default_rule(self) -> str:
        return "quadrature" if self.domain.has_haar_rule else "qmc"

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) not in (1, 2) or shape[-1] != self.dim:
            raise self._refuse(shape, f"vectors of length {self.dim} or clouds of them (dim)")

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return True

    def describe(self, element: np.ndarray) -> str:
        mirrored = ", mirrored" if np.linalg.det(element) < 0 else ""
        if self.dim == 2:
            return f"{math.degrees(math.atan2(element[1, 0], element[0, 0])):.0f}°{mirrored}"
        turned = np.arccos(np.clip(np.linalg.eigvals(element).real, -1, 1)).max() if not mirrored else 0.0
        return mirrored[2:] or f"turned {math.degrees(turned):.0f}°"

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        matrices = torch.from_numpy(np.asarray(elements, dtype=float)).to(X)
        clouds = X.reshape(len(X), -1, self.dim)
        moved = X.new_zeros(len(matrices), *clouds.shape)
        for j in range(self.dim):  # no BLAS: the result must not depend on the number of points in a tile
            moved += clouds[None, :, :, j, None] * matrices[:, None, None, :, j]
        return moved.reshape(len(matrices), *X.shape)

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        return self._act(self.inverse(elements), W)
