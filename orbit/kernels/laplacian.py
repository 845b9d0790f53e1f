"""The Laplacian kernel of the L1 distance."""

from __future__ import annotations

import copy
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from orbit.core.compiled import loops
from orbit.groups.base import Group
from orbit.kernels.base import KernelValues, LengthscaleKernel
from orbit.registry import register

# Time of the absolute difference of two numbers, as a share of that of a cosine.
_DIFFERENCE = 0.03


@register("kernel", "laplacian")
class Laplacian(LengthscaleKernel):
    """k(x, z) = exp(-|x - z|_1 / lengthscale), with independent Cauchy frequencies of scale 1 / lengthscale.

    A product over coordinates: invariant under permutations of coordinates, but
    not under rotations. Its values cost more than those of a kernel of the Euclidean
    distance, since L1 distances are not a matrix product; on a CPU a compiled loop computes
    them.

    Parameters
    ----------
    lengthscale : float > 0, "auto", "evidence", "ard" or "median"
        ``median`` is the median L1 distance.

    References
    ----------
    Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", 2007, figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import Laplacian
    >>> Laplacian(lengthscale=7.0).gram(np.array([[0.0, 0.0], [3.0, 4.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    has_spectrum: ClassVar[bool] = True
    distance_order: ClassVar[float] = 1.0

    spectral_moments = 1.0  # Cauchy

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, t: Tensor) -> Tensor:
        return (-t).exp()

    def coefficient(self) -> float:
        return -1.0

    def against(self, B: Tensor) -> KernelValues:
        return _L1Columns(B, self.factor(B.dtype))

    def spectrum_ppf(self, uniforms: np.ndarray) -> np.ndarray:
        # the Cauchy distribution's inverse is -cot(pi u): unlike tan(pi (u - 1/2)), exact in the left tail
        return -1 / (np.tan(np.pi * uniforms) * self.lengthscale_)

    def is_invariant_under(self, group: Group, shape: tuple[int, ...]) -> bool:
        return group.permutes(shape)


class _L1Columns:
    """exp(-|a - b_j|_1 / lengthscale), computed from differences, with at most two tiles in memory."""

    def __init__(self, B: Tensor, rate: float) -> None:
        self.coordinates, self.rate = B.T.contiguous(), rate  # (d, m), as the compiled loop reads them
        self.rest: Tensor | None = None  # -|b|_1 / lengthscale of the entries that were left out

    def restricted(self, columns: Tensor) -> _L1Columns:
        """See :class:`~orbit.kernels.base.RestrictedKernelValues`."""
        narrow = copy.copy(self)
        narrow.coordinates = self.coordinates[columns]
        outside = torch.ones(len(self.coordinates), dtype=torch.bool)
        outside[columns] = False
        narrow.rest = self.coordinates[outside].abs().sum(0).mul_(self.rate)
        return narrow

    def __call__(self, A: Tensor, columns: slice, out: Tensor) -> Tensor:
        compiled = loops("orbit.kernels.l1_loops", A, self.coordinates, types=(torch.float32, torch.float64))
        if compiled is None:
            return self._profile(torch.cdist(A, self.coordinates[:, columns].T, p=1), columns, out)
        distances = out if out.is_contiguous() else torch.empty_like(out, memory_format=torch.contiguous_format)
        first = columns.indices(self.coordinates.shape[1])[0]
        compiled.l1_distances(A.contiguous().numpy(), self.coordinates.numpy(), first, distances.numpy())
        return self._profile(distances, columns, out)

    def _profile(self, distances: Tensor, columns: slice, out: Tensor) -> Tensor:
        torch.mul(distances, self.rate, out=out)
        return (out if self.rest is None else out.add_(self.rest[columns])).exp_()
