"""Slopes of a series at all places: of spectra on a baseline that differs."""

import torch
from torch import Tensor

from orbit.core.params import PositiveInt
from orbit.core.random import RandomState
from orbit.encoders.base import Encoder
from orbit.registry import register


@register("encoder", "slopes")
class Slopes(Encoder):
    """Slopes of the regression lines through all windows of a series, divided by their norm.

    With offsets t_j = j - (size - 1) / 2 in a window,

        s_u = sum_j t_j x_(u + j),      E(x) = s / |s|,

    over all places u and channels. A constant added to the series, and a positive factor, change nothing: baseline and
    thickness of spectra. These are the first derivatives of Savitzky and Golay, scaled; those of a constant are zeros.

    Parameters
    ----------
    size : int >= 2
        Samples of a window.

    References
    ----------
    Savitzky and Golay, "Smoothing and differentiation of data by simplified least squares procedures", 1964.
    Rinnan, van den Berg and Engelsen, "Review of the most common pre-processing techniques for near-infrared spectra",
    2009.

    Examples
    --------
    >>> import numpy as np, torch
    >>> x = np.array([[1.0, 2.0, 3.0, 3.0, 3.0]])
    >>> Slopes(3).fit(x).encode(torch.from_numpy(x)).numpy().round(2)
    array([[0.89, 0.45, 0.  ]])
    """

    is_linear = True

    def __init__(self, size: PositiveInt = 11) -> None:
        self.size = size

    def check(self) -> None:
        super().check()
        if self.size < 2:
            raise self.wrong("size", "at least 2 samples")

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) > 2 or shape[0] < self.size:
            expected = f"series of at least size={self.size} samples, of shape (length,) or (length, channels)"
            raise self._refuse(shape, expected)

    def _fit(self, X, random_state: RandomState) -> None:
        self.n_outputs_ = (X.shape[1] - self.size + 1) * X[0, 0].size

    def _encode(self, points: Tensor) -> Tensor:
        offsets = torch.arange(self.size).to(points) - (self.size - 1) / 2
        # less the first sample, because a baseline may be far larger than the rest
        slopes = ((points - points[:, :1]).unfold(1, self.size, 1) @ offsets).flatten(1)
        norms = slopes.square().sum(1, keepdim=True).sqrt_()
        return slopes.div_(norms.clamp_(min=torch.finfo(norms.dtype).tiny))
