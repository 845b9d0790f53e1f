"""An encoder that is fitted already."""

import numpy as np
from torch import Tensor

from orbit.core.random import RandomState
from orbit.encoders.base import Encoder


class FittedEncoder(Encoder):
    """A fitted encoder that a feature map takes as it is: neither ``clone`` nor ``fit`` changes it.

    Parameters
    ----------
    encoder : fitted Encoder

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import clone
    >>> from orbit.encoders import Patches
    >>> X = np.random.default_rng(0).random((20, 12, 12))
    >>> encoder = FittedEncoder(Patches().fit(X, 0))
    >>> clone(encoder).fit(X[:2]).encoder is encoder.encoder
    True
    """

    is_fitted = True

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    @property
    def is_linear(self) -> bool:  # type: ignore[override]
        return self.encoder.is_linear

    def __sklearn_clone__(self) -> "FittedEncoder":
        return self

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.encoder.check_shape(shape)

    def bytes_per_point(self, itemsize: int) -> int:
        return self.encoder.bytes_per_point(itemsize)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        self.n_outputs_ = self.encoder.n_outputs_

    def _encode(self, points: Tensor) -> Tensor:
        return self.encoder.encode(points)
