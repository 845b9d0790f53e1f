"""Kernels. See :class:`orbit.kernels.base.Kernel` for the interface."""

from orbit.kernels.arccos import ArcCos
from orbit.kernels.base import Kernel, LengthscaleKernel
from orbit.kernels.gaussian import Gaussian
from orbit.kernels.laplacian import Laplacian
from orbit.kernels.matern import Exponential, Matern
from orbit.kernels.operator import CurlFree, Decomposable, DivergenceFree, Helmholtz, OperatorKernel
from orbit.kernels.polynomial import Polynomial
from orbit.kernels.rational_quadratic import RationalQuadratic

__all__ = [
    "ArcCos",
    "CurlFree",
    "Decomposable",
    "DivergenceFree",
    "Exponential",
    "Gaussian",
    "Helmholtz",
    "Kernel",
    "Laplacian",
    "LengthscaleKernel",
    "Matern",
    "OperatorKernel",
    "Polynomial",
    "RationalQuadratic",
]
