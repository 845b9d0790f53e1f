"""Gradients by direction of moved images."""

import numpy as np
import torch
from torch import Tensor

from orbit.core.random import RandomState
from orbit.encoders.base import Encoder
from orbit.registry import register
from orbit.representations import gradients


@register("encoder", "gradients")
class Gradients(Encoder):
    """The representation :class:`~orbit.representations.gradients.Gradients`, computed after the group has acted.

    The directions of edges are therefore those of the moved image.

    Parameters
    ----------
    n_directions : int >= 1
        Directions over all 360 degrees, one channel each.
    smoothing : float > 0
        Standard deviation, in pixels, of the Gaussian whose derivative takes the gradient.
    pooling : float >= 0
        Standard deviation, in pixels, of the Gaussian that blurs each channel; 0 is none.
    norm : {"mean", "each", "none"}
        Scaling of the vectors, as for :class:`~orbit.representations.UnitNorm`; ``none`` is no scaling.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).random((5, 9, 9))
    >>> Gradients(n_directions=4).fit(X).encode(torch.from_numpy(X)).shape
    torch.Size([5, 324])
    """

    __init__ = gradients.Gradients.__init__  # its parameters and their defaults

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self._check_images(shape, 2)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        self.representation_ = gradients.Gradients(**self.get_params(deep=False)).fit(X)
        self.n_outputs_ = X.shape[1] * X.shape[2] * self.n_directions

    def _encode(self, points: Tensor) -> Tensor:
        found = self.representation_.transform(points.cpu().numpy())
        return torch.from_numpy(found).to(points.device).flatten(1)
