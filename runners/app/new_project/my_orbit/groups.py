"""Groups of my own: a class is found by its name, and its signature and docstring are its configuration."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from orbit import register
from orbit.groups import Group
from orbit.groups.domains import Finite


@register("group", "my_orbit_turns")
class QuarterTurns(Group):
    """Square images of shape (size, size), turned by multiples of 90 degrees. Elements are numbers of turns.

    Parameters
    ----------
    half_turns : bool
        Only turns by multiples of 180 degrees.
    """

    default_size = 4

    def __init__(self, half_turns: bool = False) -> None:
        self.half_turns = half_turns

    @property
    def domain(self) -> Finite:
        return Finite(2 if self.half_turns else 4)

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.mod(np.add(left, right), self.domain.size)

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return np.mod(np.negative(elements), self.domain.size)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[0] != shape[1]:
            raise self._refuse(shape, "square images of shape (size, size)")

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return True

    def permutes(self, shape: tuple[int, ...]) -> bool:
        return True

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:  # (r,), (n, size, size) -> (r, n, size, size)
        quarters = 2 if self.half_turns else 1
        return torch.stack([torch.rot90(X, quarters * int(element), (1, 2)) for element in elements])

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        return self._act(self.inverse(elements), W)
