"""Base kernels: exact values, and the spectrum of those that are shift invariant."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from orbit.component import Component
from orbit.errors import InputError, ParameterError
from orbit.groups.base import Group
from orbit.params import PositiveFloat
from orbit.random import RandomState, generator

# The median distance is a rule of thumb: 2000 points settle it to about a percent.
_MEDIAN_POINTS = 2000


class Against(Protocol):
    """k(., b_j) for a fixed set of points b_j, whatever depends on them alone computed once."""

    def __call__(self, A: Tensor, columns: slice, out: Tensor) -> Tensor:
        """Write k(a_i, b_j) for ``j`` in ``columns`` into ``out``, shape ``(n, columns)``, and return it."""


class Kernel(Component):
    """A positive definite kernel on vectors.

    A subclass gives ``against`` (values, tile by tile) and, if it is shift
    invariant, sets ``has_spectrum`` and gives ``sample_spectrum``.
    """

    has_spectrum = False

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> Kernel:
        """Settle whatever depends on data, such as a median lengthscale. ``X``: shape ``(n, d)``."""
        self.check()
        return self

    @abstractmethod
    def against(self, B: Tensor) -> Against:
        """The kernel's columns for the points ``B``, shape ``(m, d)``."""

    def sample_spectrum(self, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        """Frequencies from the kernel's spectral distribution (LGIKA eq. 5), shape ``(size, n_features)``."""
        raise self.no_spectrum("frequencies")

    def no_spectrum(self, what: str) -> InputError:
        return InputError(
            f"{self.label()} is not shift invariant, so it has no spectrum to draw {what} from: "
            "choose approx=nystrom or approx=exact, or another kernel"
        )

    def is_invariant_under(self, group: Group, shape: tuple[int, ...]) -> bool:
        """Whether ``k(g x, g z) = k(x, z)`` for every element of the group on points of this shape."""
        return False

    def gram(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """k(x_i, z_j) in float64, shape ``(n, m)``; ``Z`` is ``X`` if not given.

        Parameters that depend on data, such as a median lengthscale, are settled on ``X``.
        """
        fitted = clone(self).fit(X)
        A = torch.from_numpy(np.array(X, dtype=np.float64)).reshape(len(X), -1)
        B = A if Z is None else torch.from_numpy(np.array(Z, dtype=np.float64)).reshape(len(Z), -1)
        out = torch.empty(len(A), len(B), dtype=torch.float64)
        return fitted.against(B)(A, slice(0, len(B)), out).numpy()


class LengthscaleKernel(Kernel):
    """A kernel with a lengthscale, which may be the median pairwise distance of the data.

    Parameters
    ----------
    lengthscale : float > 0, or "median"
        In the units of the data after the representation. ``median`` is the
        median pairwise distance of a subsample, the papers' heuristic.

    Attributes
    ----------
    lengthscale_ : float
    """

    def __init__(self, lengthscale: PositiveFloat | str = "median") -> None:
        self.lengthscale = lengthscale

    def check(self) -> None:
        super().check()
        if isinstance(self.lengthscale, str) and self.lengthscale != "median":
            raise ParameterError("lengthscale", "a finite number > 0 or 'median'", self.lengthscale)

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> LengthscaleKernel:
        self.check()
        if self.lengthscale == "median":
            self.lengthscale_ = median_distance(X, random_state)
        else:
            self.lengthscale_ = float(self.lengthscale)
        return self


def median_distance(X: np.ndarray, random_state: RandomState = None) -> float:
    """The median Euclidean distance between two different points of a subsample; 1 if all are equal.

    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    X = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    if len(X) > _MEDIAN_POINTS:
        X = X[generator(random_state).choice(len(X), _MEDIAN_POINTS, replace=False)]
    if len(X) < 2:
        return 1.0
    distances = torch.nn.functional.pdist(torch.from_numpy(X))
    return float(np.median(distances.numpy())) or 1.0
