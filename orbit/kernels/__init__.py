"""Kernels. See :class:`orbit.kernels.base.Kernel` for the interface."""

from orbit.kernels.base import Kernel, LengthscaleKernel
from orbit.kernels.gaussian import Gaussian

__all__ = ["Gaussian", "Kernel", "LengthscaleKernel"]
