"""Conjugate activations: power series with coefficients that are a probability distribution over degrees.

At a node of a skeleton, ``sigma(rho) = sum_l a_l rho^l`` with ``a_l >= 0`` and ``sum_l a_l = 1``
(Daniely et al. 2017, section 5). The coefficients define the kernel of the node and the number of factors of a random
feature there.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from orbit.core.errors import InputError, suggestion

# ReLU's degrees have the tail P(l > L) < 0.086 L^(-3/2). Degrees above this one are cut off: 1e-10 of the
# probability, a change of at most 2e-10 in any kernel value, and of 3e-4 in the mean degree.
RELU_MAX_DEGREE = 2**20

_SUM_TOLERANCE = 1e-9


class Activation:
    """A normalised positive semidefinite function on [-1, 1] (Daniely et al. 2017, section 2)."""

    @abstractmethod
    def apply_(self, rho: Tensor) -> Tensor:
        """sigma(rho), in place."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """``size`` independent degrees l, each with probability a_l: int64 array."""

    @property
    @abstractmethod
    def mean_degree(self) -> float:
        """sum_l l a_l = sigma'(1)."""


@dataclass(frozen=True)
class Exp(Activation):
    """sigma(rho) = exp(c (rho - 1)): degrees are Poisson with mean c. Daniely et al. 2017, section 6 has c = 1/4.

    >>> Exp(0.25).mean_degree
    0.25
    """

    c: float = 0.25

    def __post_init__(self) -> None:
        if not (isinstance(self.c, (int, float)) and 0 < self.c < math.inf):
            raise InputError(f"activation: c: expected a number > 0, found {self.c!r}")

    def __str__(self) -> str:
        return f"exp({self.c:g}(ρ - 1))"

    def apply_(self, rho: Tensor) -> Tensor:
        return rho.sub_(1).mul_(self.c).exp_()

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(self.c, size)

    @property
    def mean_degree(self) -> float:
        return float(self.c)


@dataclass(frozen=True)
class ReLU(Activation):
    """The arc-cosine kernel of degree 1: sigma(rho) = (sqrt(1 - rho^2) + rho (pi - arccos rho)) / pi.

    a_0 = 1/pi, a_1 = 1/2, a_(2m+2) = C(2m, m) / (4^m (2m+1) (2m+2) pi), no other odd degrees.

    >>> import torch
    >>> ReLU().apply_(torch.tensor([0.0, 1.0]))
    tensor([0.3183, 1.0000])
    """

    def __str__(self) -> str:
        return "relu"

    def apply_(self, rho: Tensor) -> Tensor:
        rho.clamp_(-1, 1)
        # the angle from arcsin, because pi - arccos(rho) = pi/2 + arcsin(rho) has no difference of near numbers
        angle = rho.asin().add_(math.pi / 2).mul_(rho)
        return rho.square_().neg_().add_(1).sqrt_().add_(angle).div_(math.pi)

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return _inverse_distribution(_relu_distribution(), rng.random(size))

    @property
    def mean_degree(self) -> float:
        return 1.0


@dataclass(frozen=True)
class PowerSeries(Activation):
    """A polynomial with coefficients a_0, a_1, ... >= 0 that sum to one.

    >>> PowerSeries((0.5, 0.0, 0.5)).mean_degree
    1.0
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        values = np.asarray(self.coefficients, dtype=object)
        numbers = all(isinstance(a, (int, float)) and not isinstance(a, bool) and math.isfinite(a) for a in values)
        if values.ndim != 1 or not len(values) or not numbers:
            raise InputError(f"activation: expected a list of coefficients, found {self.coefficients!r}")
        if min(values) < 0:
            raise InputError(f"activation: expected coefficients >= 0, found {list(values)}")
        if abs(sum(values) - 1) > _SUM_TOLERANCE:
            raise InputError(f"activation: expected coefficients that sum to one, found the sum {sum(values):g}")

    def __str__(self) -> str:
        return " + ".join(f"{a:g}ρ^{degree}" for degree, a in enumerate(self.coefficients) if a)

    def apply_(self, rho: Tensor) -> Tensor:
        given = rho.clone()
        rho.fill_(self.coefficients[-1])
        for a in reversed(self.coefficients[:-1]):
            rho.mul_(given).add_(a)
        return rho

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return _inverse_distribution(np.cumsum(self.coefficients), rng.random(size))

    @property
    def mean_degree(self) -> float:
        return float(np.arange(len(self.coefficients)) @ np.array(self.coefficients))


def power(degree: Any = 2) -> PowerSeries:
    """((1 + rho) / 2)^degree.

    >>> power(2).coefficients
    (0.25, 0.5, 0.25)
    """
    if not isinstance(degree, int) or isinstance(degree, bool) or degree < 1:
        raise InputError(f"activation: degree: expected an integer >= 1, found {degree!r}")
    return PowerSeries(tuple(math.comb(degree, l) / 2**degree for l in range(degree + 1)))  # noqa: E741


_NAMED: dict[str, tuple[Callable[..., Activation], tuple[str, ...]]] = {
    "exp": (Exp, ("c",)),
    "relu": (ReLU, ()),
    "identity": (lambda: PowerSeries((0.0, 1.0)), ()),
    "polynomial": (power, ("degree",)),
}


def make_activation(choice: Any) -> Activation:
    """An activation from its name, a mapping or a list of coefficients.

    Parameters
    ----------
    choice : str, mapping or list
        A name (``relu``, ``exp``, ``identity``, ``polynomial``), a mapping with the
        name and its parameter (``{name: exp, c: 0.25}``, ``{name: polynomial,
        degree: 3}``), or a list of coefficients a_0, a_1, ...

    Raises
    ------
    InputError

    >>> make_activation({"name": "exp", "c": 2})
    Exp(c=2)
    """
    if isinstance(choice, (list, tuple)):
        return PowerSeries(tuple(choice))
    params = dict(choice) if isinstance(choice, Mapping) else {"name": choice}
    name = params.pop("name", None)
    if not isinstance(name, str) or name not in _NAMED:
        raise InputError(
            f"activation: expected one of {', '.join(_NAMED)} or a list of coefficients, "
            f"found {choice!r}{suggestion(str(name), _NAMED)}"
        )
    make, known = _NAMED[name]
    unknown = set(params) - set(known)
    if unknown:
        raise InputError(
            f"activation: {name} has no parameter {min(map(str, unknown))!r}; it has {', '.join(known) or 'none'}"
        )
    return make(**params)


@functools.cache
def _relu_distribution() -> np.ndarray:
    """P(degree <= l) for l = 0 .. RELU_MAX_DEGREE."""
    m = np.arange(RELU_MAX_DEGREE // 2)
    central = np.cumprod(np.concatenate([[1.0], (2 * m[1:] - 1) / (2 * m[1:])]))  # C(2m, m) / 4^m
    a = np.zeros(RELU_MAX_DEGREE + 1)
    a[0], a[1] = 1 / math.pi, 0.5
    a[2::2] = central / ((2 * m + 1) * (2 * m + 2) * math.pi)
    total = np.cumsum(a)
    return total / total[-1]


def _inverse_distribution(distribution: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The smallest l with ``distribution[l] > u``, for uniform numbers in [0, 1)."""
    head = distribution[:16]  # nearly all of the mass; the long table is searched for the rest only
    degrees = np.searchsorted(head, u, side="right")
    beyond = np.flatnonzero(degrees == len(head)) if len(distribution) > len(head) else degrees[:0]
    degrees[beyond] = np.searchsorted(distribution, u[beyond], side="right")
    return np.minimum(degrees, len(distribution) - 1)
