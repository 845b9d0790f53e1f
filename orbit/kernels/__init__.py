"""Kernels. See :class:`orbit.kernels.base.Kernel` for the interface."""

from orbit.kernels.arccos import ArcCos
from orbit.kernels.base import Kernel, LengthscaleKernel
from orbit.kernels.cdf import CDF
from orbit.kernels.gaussian import Gaussian
from orbit.kernels.laplacian import Laplacian
from orbit.kernels.matern import Exponential, Matern
from orbit.kernels.operator_valued import CurlFree, Decomposable, DivergenceFree, Helmholtz, OperatorKernel
from orbit.kernels.polynomial import Polynomial
from orbit.kernels.rational_quadratic import RationalQuadratic
from orbit.kernels.skeleton import SkeletonKernel

__all__ = [
    "CDF",
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
    "SkeletonKernel",
]
