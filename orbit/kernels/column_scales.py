"""A kernel with a lengthscale for each column of its points."""

from typing import Any, Self

import numpy as np
from torch import Tensor

from orbit.kernels.base import Kernel, KernelValues, LengthscaleKernel


class ScaledColumns(Kernel):
    """k(s x, s z) of a fitted kernel k with lengthscale l, whose column j so has the lengthscale l / s_j.

    Feature maps make it where each column gets its own lengthscale (``lengthscale="ard"``).

    Parameters
    ----------
    base : LengthscaleKernel
        Fitted; a kernel of differences.
    scales : float64 array s > 0, shape (d,)

    Examples
    --------
    >>> from orbit.kernels import Gaussian
    >>> kernel = ScaledColumns(Gaussian(2.0).fit(np.zeros((1, 2))), np.array([1.0, 0.5]))
    >>> kernel.lengthscale_
    array([2., 4.])
    >>> kernel.gram(np.array([[0.0, 0.0], [0.0, 4.0]])).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    def __init__(self, base: LengthscaleKernel, scales: np.ndarray) -> None:
        self.base = base
        self.scales = scales

    @property
    def has_spectrum(self) -> bool:  # type: ignore[override]
        return self.base.has_spectrum

    @property
    def spectral_moments(self) -> float:
        return self.base.spectral_moments

    @property
    def lengthscale_(self) -> np.ndarray:
        """The lengthscale of each column, shape (d,)."""
        return self.base.lengthscale_ / self.scales

    def label(self) -> str:
        return self.base.label()

    def profile(self, t: Tensor) -> Tensor:
        """k of points whose distance, in units of the lengthscales, to the power of the kernel's order is ``t``."""
        return self.base.profile(t)

    def rescaled(self, multiple: float) -> Self:
        return type(self)(self.base.rescaled(multiple), self.scales)

    def against(self, B: Tensor) -> KernelValues:
        scales = B.new_tensor(self.scales)
        return _Columns(self.base.against(B * scales), scales)

    def spectrum_dim(self, n_features: int) -> int:
        return self.base.spectrum_dim(n_features)

    def spectrum_ppf(self, uniforms: np.ndarray) -> np.ndarray:
        return self.base.spectrum_ppf(uniforms) * self.scales

    def metrics(self) -> dict[str, float]:
        smallest, largest = self.lengthscale_.min(), self.lengthscale_.max()
        return {"kernel/lengthscale": float(smallest), "kernel/largest_lengthscale": float(largest)}

    def _fitted(self, X: Any) -> Kernel:
        return self


class _Columns:
    """The functions k(s ., s b_j)."""

    def __init__(self, of_scaled: KernelValues, scales: Tensor) -> None:
        self._of_scaled, self._scales = of_scaled, scales

    def __call__(self, A: Tensor, columns: slice, out: Tensor) -> Tensor:
        return self._of_scaled(A * self._scales, columns, out)
