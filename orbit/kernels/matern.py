"""The Matérn family, with the exponential kernel (nu = 1/2)."""

import math
from functools import partial
from typing import Annotated

import numpy as np
import torch
from scipy.special import gammaincinv, gammaln, kve
from torch import Tensor

from orbit.core.params import Lengthscale, Range
from orbit.kernels.base import KernelValues
from orbit.kernels.radial import RadialColumns, ScaleMixtureKernel
from orbit.registry import register

# Below 1/4 the spectrum's tail reaches frequencies that float32 cannot hold. Above 50 the Bessel
# function overflows within 1e-10 of the origin's value, and the kernel is the Gaussian to a percent.
Smoothness = Annotated[float, Range(low=0.25, high=50.0)]


_TINY_SQUARE = 1e-16


@register("kernel", "matern")
class Matern(ScaleMixtureKernel):
    """k(x, z) = 2^(1-nu) / Gamma(nu) r^nu K_nu(r), with r = (2 nu)^(1/2) |x - z| / lengthscale.

    Sample paths have ``nu`` derivatives, roughly: 1/2 is the exponential kernel
    and large values approach the Gaussian. The frequencies follow the multivariate
    t distribution with 2 nu degrees of freedom and scale 1 / lengthscale.

    Parameters
    ----------
    lengthscale : float > 0, "auto", "evidence", "ard" or "median"
    nu : float in [0.25, 50]
        Smoothness. 0.5, 1.5 and 2.5 have closed forms; other values take the
        Bessel function in float64 on the CPU, which is ten to a hundred times slower.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, eqs. 4.14 and 4.15.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import Matern
    >>> Matern(lengthscale=1.0, nu=1.5).gram(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.4834],
           [0.4834, 1.    ]])
    """

    def __init__(self, lengthscale: Lengthscale = "auto", nu: Smoothness = 1.5) -> None:
        super().__init__(lengthscale)
        self.nu = nu

    @property
    def spectral_moments(self) -> float:
        return 2 * self.nu

    @property
    def has_profile(self) -> bool:
        return self.nu in (0.5, 1.5, 2.5)

    def profile(self, t: Tensor) -> Tensor:
        if not self.has_profile:
            return super().profile(t)
        # an offset, because the square root is not differentiable at zero; a smaller one would lose over eight digits
        r = (2 * self.nu * t + _TINY_SQUARE).sqrt()
        return (1 + r * (self.nu > 1) + (r.square() / 3 if self.nu == 2.5 else 0)) * (-r).exp()

    def coefficient(self) -> float:
        return 2 * self.nu

    def against(self, B: Tensor) -> KernelValues:
        return RadialColumns(B, self.factor(B.dtype), partial(_matern_, nu=self.nu))

    def _scale_ppf(self, uniforms: np.ndarray) -> np.ndarray:
        # of the multivariate t distribution: (2 nu / chi^2)^(1/2) for chi^2 with 2 nu degrees of freedom
        return np.sqrt(self.nu / gammaincinv(self.nu, uniforms)) / self.lengthscale_


def _matern_(squared: Tensor, nu: float) -> Tensor:
    """The Matérn profile of r, from a tile of r^2 = 2 nu |x - z|^2 / lengthscale^2, in place."""
    r = squared.sqrt_()
    if nu == 0.5:
        return r.neg_().exp_()
    if nu not in (1.5, 2.5):
        return r.copy_(torch.from_numpy(_matern_values(r.double().cpu().numpy(), nu)))
    decay = torch.neg(r).exp_()
    if nu == 1.5:
        return r.add_(1).mul_(decay)
    return r.addcmul_(r, r, value=1 / 3).add_(1).mul_(decay)


def _matern_values(r: np.ndarray, nu: float) -> np.ndarray:
    bessel = kve(nu, r)  # exp(r) K_nu(r), infinite only where the kernel is 1 up to rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        # logarithms, because both factors overflow or underflow before their product does
        logarithm = (1 - nu) * math.log(2) - gammaln(nu) + nu * np.log(r) + np.log(bessel) - r
    return np.where(np.isfinite(bessel), np.exp(logarithm), 1.0)
