"""The trivial group, with which features are not invariant."""

import numpy as np
from torch import Tensor

from orbit.groups.base import Group
from orbit.groups.domains import Finite
from orbit.registry import register


@register("group", "identity")
class Identity(Group):
    """The group of one element, for the non-invariant baselines of the papers.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Identity
    >>> group = Identity()
    >>> group.act(group.identity(), np.ones((5, 3))).shape
    (1, 5, 3)
    """

    domain = Finite(1)
    default_size = 1

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        return []

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.zeros(np.broadcast_shapes(self._rows(left).shape, self._rows(right).shape))

    def describe(self, element: np.ndarray) -> str:
        return ""

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return np.zeros(self._rows(elements).shape)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Every shape is accepted."""

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return True

    def permutes(self, shape: tuple[int, ...]) -> bool:
        return True

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        return X.expand(len(elements), *X.shape)

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        return W.expand(len(elements), *W.shape)
