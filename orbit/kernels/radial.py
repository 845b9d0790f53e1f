"""Kernels of the Euclidean distance: their values by matrix products, their spectra as scale mixtures."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from scipy.special import gammaincinv, ndtri
from torch import Tensor

from orbit.kernels.base import LengthscaleKernel

# Expanding |a - b|^2 has rounding errors in proportion to |a|^2 + |b|^2: for pairs whose squared distance is below this
# share of it the distance is computed from the difference.
_CLOSE = 1e-2

# Largest scaled sum of squares for which a smooth profile is computed from expanded distances; the error of its values
# is then this many rounding errors.
_SMOOTH = 16.0

# The largest rounding error of a kernel value from projections, which cannot be corrected for close pairs.
_PROJECTION_ERROR = 1e-5

# The error of the expanded square is at most about this many rounding errors of the largest |a|^2 + |b|^2.
_ROUNDINGS = 16

# Largest number of entries of differences of close pairs held at once: a few megabytes.
REFINED_NUMBERS = 2**19


class RadialColumns:
    """profile(factor |a - b_j|^2): one matrix product a tile, then everything in place.

    Parameters
    ----------
    B : tensor, shape (m, d)
    factor : float
        Negative if the profile is ``exp``.
    profile : callable
        Turns a tile of ``factor |a - b|^2`` into kernel values, in place.
    exact_above : float >= 0
        Distances of close pairs are computed from differences in tiles where ``|factor| (|a|^2 + |b|^2)``, about the
        mean of B, exceeds this. 0 means always, for profiles with a square root, which would lose half of the digits.
    vanishes_at : float
        The profile is zero up to rounding for all ``|factor| |a - b|^2`` above this value.
    """

    def __init__(
        self,
        B: Tensor,
        factor: float,
        profile: Callable[[Tensor], Tensor],
        exact_above: float = 0.0,
        vanishes_at: float = math.inf,
    ) -> None:
        self.factor, self.profile = factor, profile
        self.range = (0.0, math.inf) if factor > 0 else (_least_exponent(B.dtype), 0.0)
        self.exact_above, self.vanishes_at = exact_above, vanishes_at
        # Distances do not change when the origin moves, and rounding is smaller near it.
        self.origin = B.mean(0)
        self.B = B - self.origin
        self.squares = self.B.square().sum(1).mul_(factor)
        self.largest_square = float(self.squares.abs().max())
        self.rest: Tensor | None = None  # factor |b|^2 of the entries that were left out

    def restricted(self, columns: Tensor) -> RadialColumns:
        """See :class:`~orbit.kernels.base.RestrictedKernelValues`."""
        narrow = copy.copy(self)
        narrow.B, narrow.origin = self.B.index_select(1, columns), self.origin[columns]
        outside = torch.ones(self.B.shape[1], dtype=torch.bool)
        outside[columns] = False
        narrow.rest = (self.B + self.origin)[:, outside].square().sum(1).mul_(self.factor)
        narrow.squares = narrow.B.square().sum(1).mul_(self.factor) + narrow.rest
        narrow.largest_square = float(narrow.squares.abs().max())
        return narrow

    def __call__(self, A: Tensor, columns: slice, out: Tensor) -> Tensor:
        A, B = A - self.origin, self.B[columns]
        squares_a, squares_b = A.square().sum(1, keepdim=True).mul_(self.factor), self.squares[None, columns]
        torch.addmm(squares_b, A, B.T, alpha=-2 * self.factor, out=out)
        out.add_(squares_a)
        largest = self.largest_square + (float(squares_a.abs().max()) if len(A) else 0.0)
        if largest > self.exact_above:
            limits = squares_a * _CLOSE + squares_b * _CLOSE  # of the sign of the factor
            vanished = self.vanishes_at + _ROUNDINGS * torch.finfo(out.dtype).eps * largest
            if _CLOSE * largest > vanished:
                limits.clamp_(-vanished, vanished)
            self._refine(A, B, limits, None if self.rest is None else self.rest[columns], out)
        return self.of_squares(out)

    def of_squares(self, squares: Tensor) -> Tensor:
        """Turn ``factor |a - b|^2``, with rounding errors, into kernel values, in place."""
        return self.profile(squares.clamp_(*self.range))

    def _refine(self, A: Tensor, B: Tensor, limits: Tensor, rest: Tensor | None, out: Tensor) -> None:
        """Replace entries nearer to 0 than ``limits``, shape (n, m), by ``factor |a - b|^2`` from the differences."""
        rows, cols = _where_less(out, limits) if self.factor > 0 else _where_less(limits, out)
        step = max(1, REFINED_NUMBERS // A.shape[1])
        for i, j in zip(rows.split(step), cols.split(step), strict=True):
            squares = (A[i] - B[j]).square().sum(1).mul_(self.factor)
            out[i, j] = squares if rest is None else squares + rest[j]


class ProjectedRadialColumns(RadialColumns):
    """:class:`RadialColumns` of a smooth profile, for which small errors of ``|a - b|^2`` are harmless."""

    # Computed on demand: the exact kernel holds columns for every orbit element, and needs neither points nor norms.
    @cached_property
    def points(self) -> Tensor:
        return self.B + self.origin

    @cached_property
    def norms(self) -> Tensor:
        return self.points.square().sum(1).mul_(self.factor)

    def restricted(self, columns: Tensor) -> ProjectedRadialColumns:
        narrow = super().restricted(columns)
        assert isinstance(narrow, ProjectedRadialColumns)
        vars(narrow).pop("points", None)
        narrow.norms = self.norms  # of whole points
        return narrow

    def from_projections(self, projections: Tensor, squares: Tensor, columns: slice) -> Tensor:
        values = projections.mul_(-2 * self.factor).add_(self.norms[columns])
        values.add_(squares[..., None], alpha=self.factor)
        return self.of_squares(values)


def squared_distances(columns: Sequence[RadialColumns]) -> RadialColumns:
    """``|a - b_j|^2`` for columns of kernels of different lengthscales at the same points, as exact as each needs."""
    return RadialColumns(
        columns[0].B + columns[0].origin,
        1.0,
        lambda squares: squares,
        min(each.exact_above / abs(each.factor) for each in columns),
        max(each.vanishes_at / abs(each.factor) for each in columns),
    )


def _least_exponent(dtype: torch.dtype) -> float:
    """The least exponent whose exponential is computed; values below are rounding, and 0 in exact numbers.

    Where ``exp`` underflows it takes forty times as long, and so do products with a weight that do.
    """
    precision = torch.finfo(dtype)
    return math.log(precision.tiny / precision.eps)


def _where_less(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns of the entries of ``left`` that are less than those of ``right``, both of shape (n, m)."""
    if left.device.type != "cpu":
        rows, columns = (left < right).nonzero(as_tuple=True)
        return rows, columns
    # NumPy compares and finds nearly three times as fast as torch
    entries = torch.from_numpy(np.flatnonzero(left.numpy() < right.numpy()))
    rows = entries.div(left.shape[1], rounding_mode="floor")
    return rows, entries - rows * left.shape[1]


def smooth_columns(
    B: Tensor, factor: float, profile: Callable[[Tensor], Tensor], slope: float = 1.0, vanishes_at: float = math.inf
) -> RadialColumns:
    """Columns of a profile that changes by at most ``slope`` per unit of ``factor |a - b|^2``.

    They support projections unless points are so far from the origin that projections would lose too many digits.
    """
    largest = slope * abs(factor) * float(B.square().sum(1).max())
    loses_digits = largest * torch.finfo(B.dtype).eps > _PROJECTION_ERROR
    columns = RadialColumns if loses_digits else ProjectedRadialColumns
    return columns(B, factor, profile, _SMOOTH / slope, vanishes_at)


class RadialKernel(LengthscaleKernel):
    """A kernel that depends only on ``|x - z|_2``, positive definite in every dimension.

    By Schoenberg's theorem (1938) every such kernel is a mixture of Gaussians: its
    frequencies are ``s z`` with z ~ N(0, I) and a scale s > 0, whose distribution a subclass defines.
    """

    has_spectrum: ClassVar[bool] = True
    is_isotropic: ClassVar[bool] = True
    is_zonal: ClassVar[bool] = True
    is_rotation_invariant: ClassVar[bool] = True

    @property
    def has_profile(self) -> bool:
        return True

    @abstractmethod
    def _scale_ppf(self, uniforms: np.ndarray) -> np.ndarray:
        """The inverse distribution function of the scale s, elementwise; may be reversed, ``u -> 1 - u``."""

    def spectrum_lengths(self, uniforms: np.ndarray, n_features: int) -> np.ndarray:
        """Lengths of frequencies of ``n_features`` entries, shape (size,), from uniform numbers, shape (size, 2)."""
        return self._scale_ppf(uniforms[:, 0]) * np.sqrt(2 * gammaincinv(n_features / 2, uniforms[:, 1]))

    def of_cosines(self, t: Tensor) -> Tensor:
        columns = self.against(t.new_zeros(1, 1))
        assert isinstance(columns, RadialColumns)
        squared = t.clamp_(max=1).mul_(-2 * columns.factor).add_(2 * columns.factor)  # factor |u - z|^2
        return columns.profile(squared)


class ScaleMixtureKernel(RadialKernel):
    """A radial kernel whose frequencies have a random scale, each computed from one more uniform number."""

    def spectrum_dim(self, n_features: int) -> int:
        return n_features + 1

    def spectrum_ppf(self, uniforms: np.ndarray) -> np.ndarray:
        # the scale multiplies the whole frequency, so it gets the first, most uniform coordinate of a Sobol sequence
        return self._scale_ppf(uniforms[:, :1]) * ndtri(uniforms[:, 1:])
