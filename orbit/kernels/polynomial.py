"""The polynomial kernel."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from orbit.core.params import NonNegativeFloat, PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.kernels.base import MARGIN, Kernel, KernelValues
from orbit.registry import register


@register("kernel", "polynomial")
@dataclass(eq=False, repr=False)
class Polynomial(Kernel):
    """k(x, z) = (gamma <x, z> + coef0)^degree. Not shift invariant: for Nyström and exact, not random Fourier.

    Parameters
    ----------
    degree : int >= 1
        Degree of the polynomial.
    gamma : float > 0 or None
        None is one over the number of features of the data.
    coef0 : float >= 0
        Weight of the lower degrees; 0 keeps monomials of degree ``degree`` only.

    Attributes
    ----------
    gamma_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0).gram(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[36.,  9.],
           [ 9.,  4.]])
    """

    is_zonal: ClassVar[bool] = True
    is_rotation_invariant: ClassVar[bool] = True

    degree: PositiveInt = 3
    gamma: PositiveFloat | None = None
    coef0: NonNegativeFloat = 1.0

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> Self:
        self.check()
        self.gamma_ = 1 / math.prod(X.shape[1:]) if self.gamma is None else float(self.gamma)
        return self

    def check_precision(self, dtype: np.dtype) -> None:
        largest = float(np.finfo(dtype).max) / MARGIN
        # values are at least coef0^degree for <x, z> >= 0, whatever the points
        for name, value, high in (("gamma", self.gamma, largest), ("coef0", self.coef0, largest ** (1 / self.degree))):
            if value is not None and value > high:
                raise self.wrong(name, f"a number up to {high:.1e} in {dtype.name} (engine.dtype)")

    def against(self, B: Tensor) -> KernelValues:
        def columns(A: Tensor, columns: slice, out: Tensor) -> Tensor:
            return self.of_cosines(torch.mm(A, B[columns].T, out=out))

        return columns

    def of_cosines(self, t: Tensor) -> Tensor:
        return t.mul_(self.gamma_).add_(self.coef0).pow_(self.degree)
