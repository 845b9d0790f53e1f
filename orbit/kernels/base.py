"""Base classes of kernels: exact values, and the spectrum of shift-invariant kernels."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import InputError, ParameterError
from orbit.core.linalg import is_constant
from orbit.core.params import Lengthscale
from orbit.core.random import RandomState, generator
from orbit.groups.base import Group
from orbit.kernels.skeletons import Skeleton

# Size of the subsample for the median distance: 2000 points determine it to about one percent.
_MEDIAN_POINTS = 2000

# With more features than this, distances are computed from products, which is many times faster than from differences;
# squares below this share of the points' squared norms are rounding.
_PRODUCT_FEATURES = 1024
_ROUNDING = 1e-12

# Generators return [0, 1) in steps of 2^-53; an inverse distribution function needs an open interval.
_SMALLEST_UNIFORM = 2.0**-54

_DIAGONAL_BLOCK = 16

#: Factor below the largest number of its type to which a parameter, or a multiple of squared distances, is limited.
MARGIN = 1024.0


class KernelValues(Protocol):
    """The functions k(., b_j) for fixed points b_j; quantities that depend only on these are computed once."""

    def __call__(self, A: Tensor, columns: slice, out: Tensor) -> Tensor:
        """Write k(a_i, b_j) for ``j`` in ``columns`` into ``out``, shape ``(n, columns)``, and return it."""


@runtime_checkable
class ProjectedKernelValues(KernelValues, Protocol):
    """Columns that can also be computed from the projections ``<a_i, b_j>``."""

    points: Tensor  # the points B, shape (m, d)

    def from_projections(self, projections: Tensor, squares: Tensor, columns: slice) -> Tensor:
        """Turn projections (..., n, columns) into kernel values, in place; ``squares`` (..., n) are ``|a_i|^2``."""


@runtime_checkable
class RestrictedKernelValues(KernelValues, Protocol):
    """Columns that can be computed for points whose other entries are zero, from fewer products."""

    def restricted(self, columns: Tensor) -> KernelValues:
        """The same functions for points that are zero outside ``columns``, given by these columns only."""


class Kernel(Component):
    """A positive definite kernel on vectors.

    A subclass implements ``against`` (values, tile by tile). If it is shift invariant
    it also sets ``has_spectrum`` and implements ``spectrum_ppf``, which all sampling
    rules for frequencies use.

    Attributes
    ----------
    has_spectrum : bool
        Whether the kernel is shift invariant and its frequencies can be drawn.
    is_isotropic : bool
        Whether the spectrum is unchanged by every rotation.
    spectral_moments : float
        E |w|^m is finite for m < spectral_moments: the number of derivatives of
        the kernel, which operator-valued kernels need.
    is_rotation_invariant : bool
        Whether k(Q x, Q z) = k(x, z) for every orthogonal matrix Q.
    is_zonal : bool
        Whether k(u, z) of unit vectors depends on <u, z> only, as :meth:`of_cosines` gives it.
    skeleton_ : Skeleton or None
        The skeleton of a fitted compositional kernel.
    """

    has_spectrum: ClassVar[bool] = False
    is_isotropic: ClassVar[bool] = False
    is_zonal: ClassVar[bool] = False
    is_rotation_invariant: ClassVar[bool] = False
    skeleton_: Skeleton | None = None

    @property
    def spectral_moments(self) -> float:
        return 0.0

    @property
    def lengthscale_rule(self) -> str | None:
        """How a feature map chooses the lengthscale, see :class:`LengthscaleKernel`; None if it does not."""
        return None

    def rescaled(self, multiple: float) -> Self:
        """A copy of the fitted kernel with another lengthscale: ``multiple`` times its own."""
        raise InputError(f"{self.label()} has no lengthscale")

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> Kernel:
        """Estimate parameters from data, such as a median lengthscale. ``X``: shape ``(n, d)``."""
        self.check()
        return self

    def check_precision(self, dtype: np.dtype) -> None:
        """Raise ``ParameterError`` for a parameter with which kernel values in a precision overflow or vanish."""

    @abstractmethod
    def against(self, B: Tensor) -> KernelValues:
        """The functions k(., b_j) for the points ``B``, shape ``(m, d)``."""

    def of_cosines(self, t: Tensor) -> Tensor:
        """Turn the products t = <u, z> of unit vectors into k(u, z) of the fitted kernel, in place.

        Raises
        ------
        InputError
            If the kernel is not a function of these products.
        """
        raise InputError(f"{self.label()} of unit vectors depends on more than their angle: choose gaussian or arccos")

    def spectrum_dim(self, n_features: int) -> int:
        """The number of uniforms from which one frequency of ``n_features`` entries is computed."""
        return n_features

    def spectrum_ppf(self, uniforms: np.ndarray) -> np.ndarray:
        """Frequencies of the fitted kernel from uniform numbers; independent numbers give independent frequencies.

        Parameters
        ----------
        uniforms : array, shape (size, spectrum_dim(n_features)), inside (0, 1)

        Returns
        -------
        float64 array, shape (size, n_features), in radians per unit of the data

        Raises
        ------
        InputError
            If the kernel is not shift invariant.
        """
        raise self.no_spectrum("frequencies")

    def sample_spectrum(self, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        """Independent draws from the spectral distribution (Raj et al. 2017, eq. 5), shape ``(size, n_features)``."""
        uniforms = rng.random((size, self.spectrum_dim(n_features)))
        return self.spectrum_ppf(np.maximum(uniforms, _SMALLEST_UNIFORM))

    @property
    def has_profile(self) -> bool:
        """Whether the kernel has a :meth:`profile`."""
        return False

    def profile(self, t: Tensor) -> Tensor:
        """f(t), elementwise and differentiable, for ``k(x, z) = f((|x - z|_p / lengthscale)^p)``, p ``distance_order``.

        Raises
        ------
        InputError
            If the kernel has no such form.
        """
        raise InputError(
            f"{self.label()} has no form that can be differentiated twice: choose gaussian, rational_quadratic, "
            "or matern with nu 1.5 or 2.5"
        )

    def profile_slope(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """f(t) of :meth:`profile` and its derivative f'(t), elementwise."""
        given = t.detach().requires_grad_()
        values = self.profile(given)
        return values.detach(), torch.autograd.grad(values.sum(), given)[0]

    def no_spectrum(self, what: str) -> InputError:
        return InputError(
            f"{self.label()} is not shift invariant, so it has no spectrum to draw {what} from: "
            "choose approx=nystrom or approx=exact, or another kernel"
        )

    def is_invariant_under(self, group: Group, shape: tuple[int, ...]) -> bool:
        """Whether ``k(g x, g z) = k(x, z)`` for every element of the group on points of this shape."""
        return self.is_rotation_invariant and group.is_unitary(shape)

    def gram(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """k(x_i, z_j) in float64, shape ``(n, m)``; None as ``Z`` means ``X``.

        A kernel that is not fitted is cloned and fitted to ``X``.

        Raises
        ------
        InputError
            If there is no point, or ``X`` and ``Z`` are points of different numbers of entries.
        """
        A, B = (torch.from_numpy(array) for array in pair(X, Z))
        kernel = self._fitted(np.asarray(X))
        values = kernel.against(B)(A, slice(0, len(B)), A.new_empty(len(A), len(B))).numpy()
        self.check_finite(values, "kernel matrix")
        return values

    def diagonal(self, X: np.ndarray) -> np.ndarray:
        """k(x_i, x_i) in float64, shape ``(n,)``, without computing the Gram matrix."""
        points = torch.from_numpy(_points(X, "X"))
        kernel = self._fitted(np.asarray(X))
        blocks = (points[:1] if self.has_spectrum else points).split(_DIAGONAL_BLOCK)  # one value if shift invariant
        tiles = (kernel.against(b)(b, slice(0, len(b)), b.new_empty(len(b), len(b))) for b in blocks)
        return np.resize(torch.cat([tile.diagonal() for tile in tiles]).numpy(), len(points))

    def _fitted(self, X: np.ndarray) -> Kernel:
        is_fitted = any(name.endswith("_") for name in vars(self))
        return self if is_fitted else clone(self).fit(X)


def pair(X: np.ndarray, Z: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Points ``X`` (n, d) and ``Z`` (m, d), or ``X`` again, flattened, in float64.

    Raises
    ------
    InputError
        If there is no point, or points of ``X`` and ``Z`` have different numbers of entries.
    """
    A = _points(X, "X")
    B = A if Z is None else _points(Z, "Z")
    if A.shape[1] != B.shape[1]:
        raise InputError(f"Z: expected points of {A.shape[1]} numbers, as those of X, found {B.shape[1]}")
    return A, B


def _points(X: np.ndarray, name: str) -> np.ndarray:
    array = np.array(X, dtype=np.float64)
    if not array.ndim or not array.size:
        raise InputError(f"{name}: expected an array of points, found one of shape {array.shape}")
    return array.reshape(len(array), -1)


class LengthscaleKernel(Kernel):
    """A kernel with a lengthscale, which may be estimated from the data.

    Parameters
    ----------
    lengthscale : float > 0, "auto", "evidence", "ard" or "median"
        In the units of the data after the representation. ``median`` is the
        median pairwise distance of a subsample, the papers' heuristic, in the
        kernel's own distance; equal points do not count. The others are chosen
        if the kernel is part of a feature map that is fitted to points and targets;
        otherwise they are the median. ``auto`` is the multiple of
        it, from 1/16 to 128, with the smallest leave-one-out error of a model of at most
        1,000 points, which takes about a second. It is the median for
        classes with most encoders, and where no multiple has clearly fewer errors. Vectors
        of at most 40 columns, without a group and an encoder, get a lengthscale for each
        column where that has clearly fewer errors, by five folds of at least 50 points. A
        run with ``learner=gp`` takes ``evidence`` for it. ``evidence`` maximises the
        marginal likelihood of a Gaussian process (Rasmussen and Williams 2006, eq. 5.8)
        on at most 1,000 points; such vectors get a lengthscale for each column, as with
        ``ard`` (automatic relevance determination) those of any number of columns.

    Attributes
    ----------
    lengthscale_ : float
    """

    distance_order: ClassVar[float] = 2.0  # p of the kernel's distance |x - z|_p

    def __init__(self, lengthscale: Lengthscale = "auto") -> None:
        self.lengthscale = lengthscale

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> LengthscaleKernel:
        self.check()
        if isinstance(self.lengthscale, str):
            self.lengthscale_ = median_distance(X, random_state, self.distance_order)
        else:
            self.lengthscale_ = float(self.lengthscale)
        return self

    @property
    def lengthscale_rule(self) -> str | None:
        return self.lengthscale if isinstance(self.lengthscale, str) and self.lengthscale != "median" else None

    def rescaled(self, multiple: float) -> Self:
        kernel = copy.copy(self)
        kernel.lengthscale_ = multiple * self.lengthscale_
        return kernel

    def coefficient(self) -> float:
        """c in kernel values ``f(c (|x - z|_p / lengthscale)^p)``, where p is ``distance_order``; may be negative."""
        return 1.0

    def factor(self, dtype: torch.dtype) -> float:
        """``c / lengthscale^p`` of the fitted kernel, which multiplies powers of distances; see ``coefficient``.

        Raises
        ------
        InputError
            If the lengthscale makes it overflow or vanish in values of a type.
        """
        self._check_lengthscale(self.lengthscale_, str(dtype).removeprefix("torch."))
        return self.coefficient() / self.lengthscale_**self.distance_order

    def check_precision(self, dtype: np.dtype) -> None:
        if not isinstance(self.lengthscale, str):
            self._check_lengthscale(float(self.lengthscale), dtype.name)

    def _check_lengthscale(self, lengthscale: float, dtype: str) -> None:
        limits, c, p = np.finfo(dtype), abs(self.coefficient()), self.distance_order
        low, high = (c * MARGIN / float(limits.max)) ** (1 / p), (c / float(limits.tiny)) ** (1 / p)
        if low <= lengthscale <= high:
            return
        between = f"{low:.1e} and {high:.1e} in {dtype}"
        if not isinstance(self.lengthscale, str):
            raise ParameterError("lengthscale", f"a number between {between} (engine.dtype)", lengthscale, self.section)
        raise InputError(
            f"{self.section}.lengthscale: expected one between {between}, found {lengthscale:.3g}, the median "
            "distance: remove outliers, or scale the points with a representation such as UnitNorm('each') or "
            "Standardize"
        )

    def metrics(self) -> dict[str, float]:
        return {"kernel/lengthscale": self.lengthscale_}


def median_distance(X: np.ndarray, random_state: RandomState = None, order: float = 2.0) -> float:
    """The median distance ``|x - z|_order`` of points of a subsample that differ by more than rounding.

    It is 1, with a warning, if there are several points and none differ.

    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    if len(X) > _MEDIAN_POINTS:
        X = X[generator(random_state).choice(len(X), _MEDIAN_POINTS, replace=False)]
    precision = X.dtype
    X = np.array(X, dtype=np.float64).reshape(len(X), -1)  # a copy: torch takes no read-only arrays
    if len(X) < 2:
        return 1.0
    norms = np.linalg.norm(X, order, axis=1)
    wide = order == 2 and X.shape[1] > _PRODUCT_FEATURES
    distances = _distances_by_products(X) if wide else torch.nn.functional.pdist(torch.from_numpy(X), order).numpy()
    if is_constant(distances.min(), 2 * norms.max(), precision):
        first, second = np.triu_indices(len(X), 1)
        distances = distances[~is_constant(distances, norms[first] + norms[second], precision)]
    if not len(distances):
        warnings.warn(
            "the median lengthscale is 1, because all points are equal but for rounding: give a number", stacklevel=2
        )
        return 1.0
    return float(np.median(distances))


def _distances_by_products(X: np.ndarray) -> np.ndarray:
    """Euclidean distances of all pairs, shape (n (n - 1) / 2,); distances below rounding are zero."""
    X = X - X.mean(0)
    products = X @ X.T
    squares = products.diagonal()
    sums = squares[:, None] + squares
    squared = sums - 2 * products
    return np.sqrt(np.where(squared > _ROUNDING * sums, squared, 0.0))[np.triu_indices(len(X), 1)]
