"""The base class of groups that only reorder coordinates, or change their sign: unitary, the adjoint is the inverse."""

from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor

from orbit.groups.base import Group


class Reordering(Group):
    """A group whose elements only reorder the coordinates of a point, or change their sign: exact.

    Attributes
    ----------
    vectors : bool
        Whether signs change too, of components of vectors.
    """

    vectors: bool = False

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return True

    def permutes(self, shape: tuple[int, ...]) -> bool:
        return not self.vectors

    @abstractmethod
    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        """Points ``(n, *shape)`` moved by one element."""

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        return torch.stack([self._move(element, X) for element in elements])

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        return self._act(self.inverse(elements), W)
