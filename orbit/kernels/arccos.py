"""The arc-cosine kernels: infinitely wide layers of threshold or rectified units."""

import math
from typing import Annotated, ClassVar

from torch import Tensor

from orbit.core.linalg import polar
from orbit.core.params import Range
from orbit.kernels.base import Kernel, KernelValues
from orbit.kernels.radial import RadialColumns
from orbit.registry import register


@register("kernel", "arccos")
class ArcCos(Kernel):
    """k(x, z) = (|x| |z|)^order J(theta) / pi, where theta is the angle between x and z and

        order 0:  J = pi - theta                                    (threshold units)
        order 1:  J = sin(theta) + (pi - theta) cos(theta)          (rectified linear units)

    Not shift invariant: for Nyström and exact, not random Fourier. A zero vector is
    orthogonal to every vector, itself included, as for threshold units with
    H(0) = 1/2. The angle is computed from |x/|x| - z/|z||, which keeps all digits of
    small angles; order 0 has half the digits near exactly opposite points.

    Parameters
    ----------
    order : {0, 1}
        0: threshold units; 1: rectified linear units.

    References
    ----------
    Cho and Saul, "Kernel Methods for Deep Learning", 2009, eqs. 1 to 6.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import ArcCos
    >>> ArcCos(order=0).gram(np.array([[1.0, 0.0], [0.0, 2.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    is_zonal: ClassVar[bool] = True
    is_rotation_invariant: ClassVar[bool] = True

    def __init__(self, order: Annotated[int, Range(low=0, high=1)] = 1) -> None:
        self.order = order

    def against(self, B: Tensor) -> KernelValues:
        return _ArcCosColumns(B, self.order)

    def of_cosines(self, t: Tensor) -> Tensor:
        t.clamp_(-1, 1)
        share = t.acos().mul_(-1 / math.pi).add_(1)
        if self.order == 0:
            return t.copy_(share)
        sine = t.square().neg_().add_(1).sqrt_()
        return t.mul_(share).add_(sine, alpha=1 / math.pi)


class _ArcCosColumns:
    def __init__(self, B: Tensor, order: int) -> None:
        self.order = order
        norms, directions = polar(B)
        self.norms = norms.flatten()
        self.angular = RadialColumns(directions, 1.0, (_threshold_, _rectified_)[order])

    def __call__(self, A: Tensor, columns: slice, out: Tensor) -> Tensor:
        norms, directions = polar(A)
        self.angular(directions, columns, out)
        if self.order == 1:
            return out.mul_(norms).mul_(self.norms[None, columns])
        orthogonal = (norms == 0) | (self.norms[None, columns] == 0)
        return out.masked_fill_(orthogonal, 0.5)


def _threshold_(squared: Tensor) -> Tensor:
    """1 - theta / pi from a tile of squared chords |u - v|^2 of the unit sphere, in place."""
    return squared.clamp_(max=4).sqrt_().div_(2).asin_().mul_(-2 / math.pi).add_(1)


def _rectified_(squared: Tensor) -> Tensor:
    """(sin(theta) + (pi - theta) cos(theta)) / pi from a tile of squared chords, in place."""
    cosine = squared.clamp_(max=4).div(-2).add_(1)
    sine = squared.div(-4).add_(1).mul_(squared).sqrt_()  # 1 - cosine^2 would lose the small angles
    return _threshold_(squared).mul_(cosine).add_(sine, alpha=1 / math.pi)
