"""The rational quadratic kernel."""

import math
from functools import partial
from typing import Annotated

import numpy as np
from scipy.special import gammaincinv
from torch import Tensor

from orbit.core.params import Lengthscale, Range
from orbit.kernels.base import KernelValues
from orbit.kernels.radial import ScaleMixtureKernel, smooth_columns
from orbit.registry import register

# Outside of this range the kernel is constant or the Gaussian up to rounding, and its powers lose their digits.
Alpha = Annotated[float, Range(low=1e-3, high=1e12)]


@register("kernel", "rational_quadratic")
class RationalQuadratic(ScaleMixtureKernel):
    """k(x, z) = (1 + |x - z|^2 / (2 alpha lengthscale^2))^(-alpha).

    A mixture of Gaussians of many lengthscales: the frequencies are N(0, t I) with
    t ~ Gamma(shape alpha, mean lengthscale^-2). Large ``alpha`` approaches the
    Gaussian, small ``alpha`` has heavier tails.

    Parameters
    ----------
    lengthscale : float > 0, "auto", "evidence", "ard" or "median"
    alpha : float in [0.001, 1e12]
        Weight of the tails: nearly Gaussian if large, heavy tails if small.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, eqs. 4.19 and 4.20.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import RationalQuadratic
    >>> RationalQuadratic(lengthscale=1.0, alpha=0.5).gram(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    def __init__(self, lengthscale: Lengthscale = "auto", alpha: Alpha = 1.0) -> None:
        super().__init__(lengthscale)
        self.alpha = alpha

    spectral_moments = math.inf

    def profile(self, t: Tensor) -> Tensor:
        return (-self.alpha * (t / (2 * self.alpha)).log1p()).exp()

    def coefficient(self) -> float:
        return 0.5 / self.alpha

    def against(self, B: Tensor) -> KernelValues:
        profile = partial(_power_, exponent=-self.alpha)
        factor = self.factor(B.dtype)
        return smooth_columns(B, factor, profile, slope=self.alpha)

    def _scale_ppf(self, uniforms: np.ndarray) -> np.ndarray:
        return np.sqrt(gammaincinv(self.alpha, uniforms) / self.alpha) / self.lengthscale_


def _power_(tile: Tensor, exponent: float) -> Tensor:
    """(1 + tile)^exponent in place; by logarithms, which keep the digits of a small tile and a large exponent."""
    return tile.log1p_().mul_(exponent).exp_()
