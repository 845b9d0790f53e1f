"""Kernels. See :class:`orbit.kernels.base.Kernel` for the interface."""

from orbit.kernels.arccos import ArcCos as ArcCos
from orbit.kernels.base import Kernel as Kernel, LengthscaleKernel as LengthscaleKernel
from orbit.kernels.cdf import CDF as CDF
from orbit.kernels.gaussian import Gaussian as Gaussian
from orbit.kernels.laplacian import Laplacian as Laplacian
from orbit.kernels.matern import Matern as Matern
from orbit.kernels.operator_valued import (
    CurlFree as CurlFree,
    Decomposable as Decomposable,
    DivergenceFree as DivergenceFree,
    Helmholtz as Helmholtz,
    OperatorKernel as OperatorKernel,
)
from orbit.kernels.polynomial import Polynomial as Polynomial
from orbit.kernels.rational_quadratic import RationalQuadratic as RationalQuadratic
from orbit.kernels.skeleton import SkeletonKernel as SkeletonKernel
