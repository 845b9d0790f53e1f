"""Finite features of unit vectors u, from products with fixed vectors.

With landmarks z_j they are kappa(<z_j, u>), which K_ZZ^(-1/2) turns into Nyström features of the kernel kappa on the
sphere. With random vectors their inner products have the expectation kappa.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from orbit.core.component import Component
from orbit.core.params import NonNegativeFloat
from orbit.kernels import ArcCos, Gaussian, Kernel

# Lower bound on logarithms of norms: its power of two is zero in both precisions, and it is finite, so no NaN arises.
_LOG_OF_ZERO = -1100.0


class Rectified(Component):
    """Features max(<z, u> - threshold, 0) and max(-<z, u> - threshold, 0) in place of a kernel in closed form.

    Parameters
    ----------
    threshold : float >= 0

    References
    ----------
    Coates and Ng, "The Importance of Encoding Versus Training with Sparse Coding and Vector Quantization", 2011.
    """

    def __init__(self, threshold: NonNegativeFloat = 0.1) -> None:
        self.threshold = threshold


class SphereMap(ABC):
    """Features of unit vectors u from products with templates, times the norm of the patch with direction u.

    Attributes
    ----------
    columns : int
        Features of each template.
    norm_in_product : bool
        Whether the norm enters as one more coordinate of the patch, see
        :meth:`augmented` and :meth:`coordinate`, instead of a factor afterwards.
    """

    columns: ClassVar[int] = 1
    norm_in_product: ClassVar[bool] = False

    def augmented(self, templates: np.ndarray) -> np.ndarray:
        """Templates (m, d) in the form multiplied with the patches, (m, d) or (m, d + 1)."""
        return templates

    def coordinate(self, norms: Tensor | None, out: Tensor) -> None:
        """Write the last coordinate of patches of these norms to ``out``, shape (n,), for :attr:`norm_in_product`.

        If ``norms`` is None, features do not have that factor.
        """
        raise NotImplementedError

    @abstractmethod
    def activate(self, values: Tensor) -> None:
        """Turn products with templates, in ``values[0]``, into features in place; ``values``: shape (columns, m, n)."""


class RandomMap(SphereMap):
    """Features whose templates can be drawn at random."""

    @abstractmethod
    def draw(self, size: int, d: int, rng: np.random.Generator) -> np.ndarray:
        """Templates, shape (size, d)."""

    def scale(self, size: int) -> float:
        """The factor with which inner products of features of ``size`` random templates have the right expectation."""
        return 1.0


def landmark_map(kernel: Kernel | Rectified) -> SphereMap:
    """The features of a fitted kernel for landmarks."""
    if isinstance(kernel, Rectified):
        return TwoSided(kernel.threshold)
    return PowersOfTwo(kernel) if isinstance(kernel, Gaussian) else Zonal(kernel)


def random_map(kernel: Kernel | Rectified) -> RandomMap:
    """The features of a fitted kernel for random vectors."""
    if isinstance(kernel, Rectified):
        return TwoSided(kernel.threshold)
    return HalfSpaces(kernel.order) if isinstance(kernel, ArcCos) else CosinesAndSines(kernel)


def has_random_map(kernel: Kernel | Rectified) -> bool:
    return isinstance(kernel, (Rectified, ArcCos)) or kernel.has_spectrum


class Zonal(SphereMap):
    """kappa(<z, u>) of a zonal kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def activate(self, values: Tensor) -> None:
        self.kernel.of_cosines(values)


class PowersOfTwo(SphereMap):
    """|p| exp(beta (t - 1)), the Gaussian kernel on the sphere with beta = 1 / lengthscale^2, as a power of two.

    The exponent is one product, so that features take a single pass, and half the time of an exponential.
    """

    norm_in_product = True

    def __init__(self, kernel: Gaussian) -> None:
        self.beta = kernel.lengthscale_**-2 / math.log(2)

    def augmented(self, templates: np.ndarray) -> np.ndarray:
        return np.column_stack([self.beta * templates, np.ones(len(templates))])

    def coordinate(self, norms: Tensor | None, out: Tensor) -> None:
        if norms is None:
            out.fill_(-self.beta)
        else:
            torch.log2(norms, out=out).clamp_(min=_LOG_OF_ZERO).sub_(self.beta)

    def activate(self, values: Tensor) -> None:
        values.exp2_()


class CosinesAndSines(RandomMap):
    """Cosine and sine of each product with a frequency of the kernel."""

    columns = 2

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def draw(self, size: int, d: int, rng: np.random.Generator) -> np.ndarray:
        return self.kernel.sample_spectrum(size, d, rng)

    def scale(self, size: int) -> float:
        return size**-0.5

    def activate(self, values: Tensor) -> None:
        torch.sin(values[0], out=values[1])
        values[0].cos_()


class HalfSpaces(RandomMap):
    """max(a, 0)^order of products a with normal vectors: features of the arc-cosine kernel (Cho and Saul 2009)."""

    def __init__(self, order: int) -> None:
        self.order = order

    def draw(self, size: int, d: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((size, d))

    def scale(self, size: int) -> float:
        return math.sqrt(2 / size)

    def activate(self, values: Tensor) -> None:
        values.gt_(0) if self.order == 0 else values.clamp_(min=0)


class TwoSided(RandomMap):
    """The features of :class:`Rectified`."""

    columns = 2

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def draw(self, size: int, d: int, rng: np.random.Generator) -> np.ndarray:
        drawn = rng.standard_normal((size, d))
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def activate(self, values: Tensor) -> None:
        torch.neg(values[0], out=values[1])
        values.sub_(self.threshold).clamp_(min=0)
