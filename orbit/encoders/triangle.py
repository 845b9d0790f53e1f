"""Upper triangles of moved symmetric matrices."""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from orbit.core.random import RandomState
from orbit.encoders.base import Encoder
from orbit.registry import register
from orbit.representations import is_symmetric

_OFF_DIAGONAL = {"l2": math.sqrt(2), "l1": 2.0, "triangle": 1.0}


@register("encoder", "upper_triangle")
class UpperTriangle(Encoder):
    """Each pair of entries of a symmetric matrix once: half the numbers, and half the products or differences.

    For Coulomb matrices whose rows and columns a group permutes: the group needs whole matrices, the kernel does not.

    Parameters
    ----------
    keeps : {"l2", "l1", "triangle"}
        The distances that the vectors have: with ``l2`` Euclidean distances and inner products of the whole
        matrices, with ``l1`` their L1 distances, with ``triangle`` those of the upper triangles alone.

    Examples
    --------
    >>> import numpy as np, torch
    >>> C = np.array([[[1.0, 2.0], [2.0, 5.0]]])
    >>> UpperTriangle(keeps="l1").fit(C).encode(torch.from_numpy(C))
    tensor([[1., 4., 5.]], dtype=torch.float64)
    """

    is_linear = True

    def __init__(self, keeps: Literal["l2", "l1", "triangle"] = "l2") -> None:
        self.keeps = keeps

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise self._refuse(shape, "symmetric matrices")

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        if not is_symmetric(X):
            raise self._refuse(X.shape[1:], "symmetric matrices, also after the group has acted")
        rows, columns = np.triu_indices(X.shape[1])
        self.entries_ = rows * X.shape[1] + columns
        self.factors_ = np.where(rows == columns, 1.0, _OFF_DIAGONAL[self.keeps])
        self.n_outputs_ = len(rows)

    def _encode(self, points: Tensor) -> Tensor:
        entries = torch.from_numpy(self.entries_).to(points.device)
        found = points.flatten(1).index_select(1, entries)
        return found.mul_(torch.from_numpy(self.factors_).to(found))
