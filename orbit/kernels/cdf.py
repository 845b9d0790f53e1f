"""The kernel of cumulative distribution features."""

from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np
from torch import Tensor

from orbit.core.linalg import row_norms
from orbit.core.params import Fraction, PositiveFloat
from orbit.core.random import RandomState
from orbit.kernels import cdf_theory
from orbit.kernels.base import Kernel, KernelValues
from orbit.kernels.radial import RadialColumns
from orbit.registry import register


@register("kernel", "cdf")
@dataclass(eq=False, repr=False)
class CDF(Kernel):
    """k(x, z) = E_t (s - max(<x, t>, <z, t>)) = s - c |x - z|: the kernel that ``CumulativeDistribution`` approximates.

    With s = radius (1 + epsilon) and c of :func:`orbit.kernels.cdf_theory.cdf_slope`, about
    (2 pi d)^(-1/2). It is positive definite on points of norm at most ``radius``.
    Averaged over the orbit by ``Exact`` it is the group-invariant kernel K_s of Mroueh et al. 2015, Theorem 1.

    Parameters
    ----------
    radius : float > 0, or "max"
        Upper bound of the norms of points; ``max`` is the largest norm of the training points.
    epsilon : float in (0, 1)
        s is (1 + epsilon) times the radius.
    templates : {"gaussian", "sphere"}
        Drawn from N(0, I/d) and kept if |t|^2 < 1 + epsilon, or uniform on the sphere.

    Attributes
    ----------
    range_ : float
        s.

    References
    ----------
    Mroueh, Voinea and Poggio, "Learning with Group Invariant Features: A Kernel
    Perspective", 2015, Theorem 1 and Remark 4. The closed form is not in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import CDF
    >>> CDF(templates="sphere").gram(np.array([[1.0, 0.0], [0.0, 1.0]])).round(3)
    array([[1.1 , 0.65],
           [0.65, 1.1 ]])
    """

    radius: PositiveFloat | Literal["max"] = "max"
    epsilon: Fraction = 0.1
    templates: cdf_theory.Templates = "gaussian"

    is_rotation_invariant = True

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> Self:
        self.check()
        radius = (float(row_norms(X).max()) or 1.0) if self.radius == "max" else float(self.radius)
        self.range_ = radius * (1 + self.epsilon)
        return self

    def against(self, B: Tensor) -> KernelValues:
        slope = cdf_theory.cdf_slope(B.shape[1], self.templates, self.epsilon)
        return RadialColumns(B, 1.0, partial(_falling_, start=self.range_, slope=slope))


def _falling_(squares: Tensor, start: float, slope: float) -> Tensor:
    return squares.sqrt_().mul_(-slope).add_(start)
