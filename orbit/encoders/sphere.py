"""Homogeneous kernels of patches, |p| |q| kappa(<p, q> / |p| |q|), and their finite features.

kappa is a power series with non-negative coefficients of the cosine t of the angle
between two patches, so that the kernel is positive definite on spheres of all
dimensions (Schoenberg 1942). Features come from fixed unit vectors z_j: by Nyström,
``K_ZZ^(-1/2) kappa(<z_j, u>)``, or at random.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

# Lower bound on logarithms of norms: its power of two is zero in both precisions, and it is finite, so no NaN arises.
_LOG_OF_ZERO = -1100.0


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


class PatchKernel(ABC):
    """A function kappa, with its Gram matrix and its finite features."""

    @abstractmethod
    def kappa(self, t: Tensor) -> Tensor:
        """kappa of a tensor of cosines, in place."""

    def nystrom_map(self) -> SphereMap:
        """The map with features kappa(<z, u>) for templates z."""
        return _Kappa(self)

    @abstractmethod
    def random_map(self, d: int, size: int, rng: np.random.Generator) -> tuple[SphereMap, np.ndarray, float]:
        """A map, templates (size, d) and a scale, such that inner products of features have the expectation kappa."""

    def gram(self, Z: np.ndarray) -> np.ndarray:
        """kappa(<z_i, z_j>) in float64, shape (m, m)."""
        Z = np.asarray(Z, dtype=np.float64)
        return self.kappa(torch.from_numpy(Z @ Z.T)).numpy()


class Exponential(PatchKernel):
    """kappa(t) = exp(beta (t - 1)): the Gaussian kernel of lengthscale beta^(-1/2) on the sphere."""

    def __init__(self, beta: float) -> None:
        self.beta = beta

    def kappa(self, t: Tensor) -> Tensor:
        return t.sub_(1).mul_(self.beta).exp_()

    def nystrom_map(self) -> SphereMap:
        return _PowersOfTwo(self.beta)

    def random_map(self, d: int, size: int, rng: np.random.Generator) -> tuple[SphereMap, np.ndarray, float]:
        return _Waves(), math.sqrt(self.beta) * rng.standard_normal((size, d)), size**-0.5


class ArcCos(PatchKernel):
    """Order 0: kappa(t) = 1 - theta / pi; order 1: (sin(theta) + (pi - theta) cos(theta)) / pi (Cho and Saul 2009)."""

    def __init__(self, order: int) -> None:
        self.order = order

    def kappa(self, t: Tensor) -> Tensor:
        t.clamp_(-1, 1)
        share = t.acos().mul_(-1 / math.pi).add_(1)
        if self.order == 0:
            return t.copy_(share)
        sine = t.square().neg_().add_(1).sqrt_()
        return t.mul_(share).add_(sine, alpha=1 / math.pi)

    def random_map(self, d: int, size: int, rng: np.random.Generator) -> tuple[SphereMap, np.ndarray, float]:
        return _Rectified(self.order), rng.standard_normal((size, d)), math.sqrt(2 / size)


class _Kappa(SphereMap):
    def __init__(self, kernel: PatchKernel) -> None:
        self.kernel = kernel

    def activate(self, values: Tensor) -> None:
        self.kernel.kappa(values)


class _PowersOfTwo(SphereMap):
    """|p| exp(beta (t - 1)) as a power of two of one product: half the time of an exponential, in a single pass."""

    norm_in_product = True

    def __init__(self, beta: float) -> None:
        self.beta = beta / math.log(2)

    def augmented(self, templates: np.ndarray) -> np.ndarray:
        return np.column_stack([self.beta * templates, np.ones(len(templates))])

    def coordinate(self, norms: Tensor | None, out: Tensor) -> None:
        if norms is None:
            out.fill_(-self.beta)
        else:
            torch.log2(norms, out=out).clamp_(min=_LOG_OF_ZERO).sub_(self.beta)

    def activate(self, values: Tensor) -> None:
        values.exp2_()


class _Waves(SphereMap):
    """Cosine and sine of each product."""

    columns = 2

    def activate(self, values: Tensor) -> None:
        torch.sin(values[0], out=values[1])
        values[0].cos_()


class _Rectified(SphereMap):
    """max(a, 0)^order of products a; order 0 is the step function."""

    def __init__(self, order: int) -> None:
        self.order = order

    def activate(self, values: Tensor) -> None:
        values.gt_(0) if self.order == 0 else values.clamp_(min=0)


class TwoSided(SphereMap):
    """max(a - threshold, 0) and max(-a - threshold, 0) of products a (Coates and Ng 2011)."""

    columns = 2

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def activate(self, values: Tensor) -> None:
        torch.neg(values[0], out=values[1])
        values.sub_(self.threshold).clamp_(min=0)
