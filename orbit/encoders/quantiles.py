"""The distribution of the values of each channel, wherever they are."""

import math

import numpy as np
import torch
from torch import Tensor

from orbit.core.grid import grid_axes
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, generator
from orbit.encoders.base import Encoder
from orbit.registry import register

# Points whose quantiles give their mean and spread.
_STANDARD_POINTS = 500


@register("encoder", "quantiles")
class Quantiles(Encoder):
    """Quantiles of the values of each channel over all positions: how bright or loud a point is, not where.

    With the quantile function Q_c of channel c, nodes u_i and weights w_i of Gauss-Legendre quadrature on [0, 1],

        E(x)_ci = sqrt(w_i) (Q_c(u_i) - m_ci) / s_c,      |E(x) - E(z)|^2 = sum_c W_2(x_c, z_c)^2 / s_c^2

    up to the error of the quadrature, where W_2 is the 2-Wasserstein distance of two distributions of values. m_c is
    the mean over a sample, s_c^2 the mean square of what is left. A Gaussian kernel of E is one of these distances.
    Quadrature has more nodes near 0 and 1, so that a few very bright positions are not overlooked.

    Parameters
    ----------
    n_levels : int >= 1
        Number of quantiles of each channel.
    axes : int >= 1 or None
        As for :class:`~orbit.encoders.patches.Patches`: axes of positions, before one that holds channels.

    Attributes
    ----------
    mean_ : array m, shape (channels, n_levels)
    scale_ : array sqrt(w) / s, shape (channels, n_levels)

    References
    ----------
    Kolouri, Zou and Rohde, "Sliced Wasserstein Kernels for Probability Distributions", 2016, for the kernel.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).random((20, 12, 12, 3))
    >>> vectors = Quantiles(n_levels=16).fit(X).encode(torch.from_numpy(X))
    >>> vectors.shape, round(float(vectors.square().sum(1).mean()), 6)  # 1 for each channel
    (torch.Size([20, 48]), 3.0)
    """

    def __init__(self, n_levels: PositiveInt = 32, axes: PositiveInt | None = None) -> None:
        self.n_levels = n_levels
        self.axes = axes

    def is_global(self, shape: tuple[int, ...]) -> bool:
        return True

    def bytes_per_point(self, itemsize: int) -> int:
        # a contiguous copy, and sorted values with their 64-bit places
        return (2 * itemsize + 8) * math.prod(self.shape_in_) + 4 * super().bytes_per_point(itemsize)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        rows = generator(random_state).choice(len(X), min(len(X), _STANDARD_POINTS), replace=False)
        nodes, weights = np.polynomial.legendre.leggauss(self.n_levels)
        self.levels_, weights = (nodes + 1) / 2, weights / 2
        values = self._quantiles(torch.from_numpy(np.array(X[rows]))).double().numpy()
        self.mean_ = values.mean(0)
        spread = np.sqrt((weights * np.square(values - self.mean_)).sum(2).mean(0))[:, None]
        rounding = np.finfo(X.dtype).eps * np.abs(values).max((0, 2))[:, None]
        self.scale_ = np.sqrt(weights) * np.where(spread > rounding, 1 / np.maximum(spread, np.finfo(float).tiny), 0.0)
        self.n_outputs_ = self.mean_.size

    def _encode(self, points: Tensor) -> Tensor:
        mean, scale = (torch.as_tensor(each).to(points) for each in (self.mean_, self.scale_))
        return ((self._quantiles(points) - mean) * scale).flatten(1)

    def _quantiles(self, points: Tensor) -> Tensor:
        """Shape (n, channels, levels), linear between sorted values."""
        axes = grid_axes(self.shape_in_) if self.axes is None else min(self.axes, len(self.shape_in_))
        positions = math.prod(self.shape_in_[:axes])
        ordered = points.reshape(len(points), positions, -1).transpose(1, 2).contiguous().sort(2).values
        places = self.levels_ * (positions - 1)
        below = np.minimum(places.astype(int), max(positions - 2, 0))
        above = np.minimum(below + 1, positions - 1)
        low, high = (ordered[:, :, torch.from_numpy(each).to(points.device)] for each in (below, above))
        return torch.lerp(low, high, torch.as_tensor(places - below).to(points))
