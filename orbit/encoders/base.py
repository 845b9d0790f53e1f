"""Encoders E of moved points: psi(x) = sum_i w_i phi(E(g_i x))."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.core.random import RandomState
from orbit.registry import register

_KEPT = "_kept_"


class Encoder(Component):
    """A map from points to vectors, fitted without labels and applied after the group has acted.

    A subclass implements ``_fit``, which sets ``n_outputs_``, and ``_encode``. Fitted
    attributes are NumPy arrays: an encoder pickles, and encodes tensors of either
    precision on any device.

    Attributes
    ----------
    is_identity, is_linear : bool
        Whether the vector of a point is the point itself, flattened; or a linear or affine map of it, maybe divided by
        its norm. With another encoder ``kernel.lengthscale=auto`` is the median for class labels, because for pooled or
        normalised features no multiple of it classified better (docs/results/discover.md).
    complexity : int
        Of encoders that a run compares, one with a higher complexity must lower the error by 5 % and more than chance.
    is_fitted : bool
        Whether :meth:`fit` changes nothing, so that any sample will do.
    of_clouds : bool
        Whether points are clouds, which figures draw as such.
    axes : int or None
        Leading axes of a point that are time or space; None: as its shape suggests, see
        :func:`~orbit.core.grid.grid_axes`.
    shape_in_ : tuple of int
        Shape of a point.
    n_outputs_ : int
        Length of its vector.
    """

    is_identity: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    complexity: int = 0
    is_fitted: ClassVar[bool] = False
    of_clouds: ClassVar[bool] = False
    axes: int | None = None

    shape_in_: tuple[int, ...]
    n_outputs_: int

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> Encoder:
        """Fit to a sample of points.

        Parameters
        ----------
        X : array, shape (n, *shape), float32 or float64
        random_state : int, RandomState or None

        Raises
        ------
        InputError
            For wrong parameters, or points of a shape that the encoder does not take.
        """
        self.check()
        self.check_shape(tuple(X.shape[1:]))
        self.shape_in_ = tuple(X.shape[1:])
        with torch.inference_mode():
            self._fit(X, random_state)
        return self

    def for_shape(self, shape: tuple[int, ...]) -> Encoder:
        """The encoder for points of a shape: this one, unless it chooses another."""
        return self

    def compared(self, shape: tuple[int, ...]) -> list[Encoder]:
        """The encoders to choose from for points of a shape: the first is compared with groups, others without.

        Where the first :meth:`is_global`, all are compared without groups, and the best with groups. What the best of
        them leaves open, the first of its own ``compared`` being itself, is tried after them.
        """
        return [self]

    def is_global(self, shape: tuple[int, ...]) -> bool:
        """Whether vectors of points of a shape say nothing about places: one window spans the point."""
        return False

    def encode(self, points: Tensor) -> Tensor:
        """The vectors of points, shape (n, n_outputs_), on the device and in the precision of the points.

        May be called from several threads at once.

        Parameters
        ----------
        points : tensor, shape (n, *shape)
        """
        if tuple(points.shape[1:]) != self.shape_in_:
            raise InputError(
                f"{self.label()} was fitted on points of shape {self.shape_in_}, found {tuple(points.shape[1:])}"
            )
        with torch.inference_mode():
            vectors = self._encode(points)
        # working memory is kept in inference mode; callers outside of inference mode get an ordinary tensor
        return vectors if torch.is_inference_mode_enabled() else vectors.clone()

    def mean_square(self, sample: Tensor) -> float:
        """The mean squared norm of the vectors of a sample of points."""
        return float(self.encode(sample).double().square().sum(1).mean())

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Encoder]:
        """The encoders of this class that :func:`orbit.discover` tries on points of a shape, as it tries groups.

        By default none. They are invariant to a group that is too large for orbits.
        """
        return []

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise ``InputError`` if points of this shape cannot be encoded."""

    def bytes_per_point(self, itemsize: int) -> int:
        """Working memory of :meth:`encode` in bytes for each point, including the result; for the engine's tiles."""
        return itemsize * self.n_outputs_

    @abstractmethod
    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        """Fit to points whose shape has been checked; set ``n_outputs_``."""

    @abstractmethod
    def _encode(self, points: Tensor) -> Tensor:
        """:meth:`encode` for points whose shape has been checked."""

    @property
    def _kept(self) -> dict[str, Any]:
        """State that is neither pickled nor copied, such as working memory and open sessions, by name."""
        return self.__dict__.setdefault(_KEPT, {})

    def __getstate__(self):
        return {key: value for key, value in super().__getstate__().items() if key != _KEPT}

    def _check_images(self, shape: tuple[int, ...], side: int) -> None:
        if len(shape) not in (2, 3) or min(shape[:2]) < side:
            images = f"images (height, width) or (height, width, channels) of at least {side} x {side} pixels"
            raise self._refuse(shape, images)

    def _refuse(self, shape: tuple[int, ...], expected: str) -> InputError:
        found = f"vectors of length {shape[0]}" if len(shape) == 1 else f"points of shape {shape}"
        return InputError(f"{self.label()} takes {expected}, found {found}")


@register("encoder", "none")
class NoEncoder(Encoder):
    """E(x) = x, flattened: the kernel takes the moved point itself.

    Examples
    --------
    >>> import numpy as np, torch
    >>> NoEncoder().fit(np.zeros((1, 2, 2))).encode(torch.arange(4.0).reshape(1, 2, 2))
    tensor([[0., 1., 2., 3.]])
    """

    is_identity = True
    is_linear = True

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        self.n_outputs_ = math.prod(self.shape_in_)

    def _encode(self, points: Tensor) -> Tensor:
        return points.flatten(1)
