"""The trivial group, with which features are not invariant."""

import numpy as np
from torch import Tensor

from orbit.groups.base import AdditiveGroup, Group
from orbit.groups.domains import Finite
from orbit.groups.reordering import Reordering
from orbit.registry import register


@register("group", "identity")
class Identity(AdditiveGroup, Reordering):
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

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Every shape is accepted."""

    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        return X

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        return X.expand(len(elements), *X.shape)
