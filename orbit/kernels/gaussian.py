"""The Gaussian kernel."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from orbit.groups.base import Group
from orbit.kernels.base import LengthscaleKernel
from orbit.params import PositiveFloat
from orbit.registry import register


@register("kernel", "gaussian")
class Gaussian(LengthscaleKernel):
    """k(x, z) = exp(-|x - z|^2 / (2 lengthscale^2)), with frequencies from N(0, lengthscale^-2 I).

    Parameters
    ----------
    lengthscale : float > 0, or "median"

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import Gaussian
    >>> Gaussian(lengthscale=1.0).gram(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    has_spectrum = True

    def __init__(self, lengthscale: PositiveFloat | str = "median") -> None:
        super().__init__(lengthscale)

    def against(self, B: Tensor) -> _GaussianColumns:
        return _GaussianColumns(B, 1 / self.lengthscale_**2)

    def sample_spectrum(self, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((size, n_features)) / self.lengthscale_

    def is_invariant_under(self, group: Group, shape: tuple[int, ...]) -> bool:
        return group.is_unitary(shape)


class _GaussianColumns:
    """The exponent -|a - b|^2 / (2 l^2) by one matrix product, then the exponential in place."""

    def __init__(self, B: Tensor, precision: float) -> None:
        self.precision = precision
        # Distances do not change when the origin moves, and rounding is smaller near it.
        self.origin = B.mean(0)
        self.B = B - self.origin
        self.half_norms = self.B.square().sum(1) * (-precision / 2)

    def __call__(self, A: Tensor, columns: slice, out: Tensor) -> Tensor:
        A = A - self.origin
        torch.addmm(self.half_norms[None, columns], A, self.B[columns].T, alpha=self.precision, out=out)
        out.add_(A.square().sum(1, keepdim=True), alpha=-self.precision / 2)
        return out.clamp_(max=0).exp_()
