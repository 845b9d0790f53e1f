"""Polar sampling of images."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from orbit.core.params import PositiveFloat, PositiveInt
from orbit.core.threads import in_threads
from orbit.groups.resample import Resampling, gather, multilinear, pixels_first
from orbit.registry import register
from orbit.representations.base import Norm, Representation, mean_norm, scale

# Number of images per batch, whose pixels and rings fit in a core's second-level cache.
_BATCH = 256


@register("representation", "polar")
@dataclass(eq=False, repr=False)
class Polar(Representation):
    """Images sampled on rings about their centre, where a rotation is a cyclic shift of the last axis.

    Ring k has radius ``(k + 1/2) radius / n_radii``; samples are bilinear, zero
    outside the image, and weighted by the square root of the radius, so that
    inner products approximate those of the images (``r dr dtheta`` is the area).
    Rotations of the samples are exact: see ``Rotation(sampling="polar")``.

    Parameters
    ----------
    n_radii, n_angles : int >= 1 or None
        None is half the longer side (at least 8; one more if the grid would be
        square), and the next power of two above the outermost ring's circumference
        in pixels, at most 64.
    radius : float > 0 or None
        Outer radius in pixels; None is half the longer side.
    norm : {"mean", "each", "none"}
        Scaling after sampling, as for ``UnitNorm``; ``none`` is no scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Polar
    >>> Polar(n_radii=4, n_angles=16).fit_transform(np.ones((2, 8, 8))).shape
    (2, 4, 16)
    """

    takes_vectors = False
    group_params = {"sampling": "polar"}

    n_radii: PositiveInt | None = None
    n_angles: PositiveInt | None = None
    radius: PositiveFloat | None = None
    norm: Norm = "mean"

    def _fit(self, X: np.ndarray) -> None:
        if X.ndim != 3:
            raise self._refuse(X, "images of shape (height, width)")
        side = max(X.shape[1:])
        self.radius_ = self.radius or side / 2
        n_radii = self.n_radii or max(8, side // 2)
        n_angles = self.n_angles or min(64, 2 ** max(1, math.ceil(math.log2(2 * math.pi * self.radius_))))
        if self.n_radii is None and n_radii == n_angles:  # a rotation would take a square grid for an image
            n_radii += 1
        self.shape_out_ = n_radii, n_angles
        self.scale_ = 1.0
        if self.norm == "mean":
            self.scale_ = mean_norm(self._sample(X))

    def _transform(self, X: np.ndarray) -> np.ndarray:
        # a common scale is free within the sampling operator, and otherwise takes another pass over the memory
        if self.norm == "mean":
            return self._sample(X, self.scale_)
        return scale(self._sample(X), self.norm, self.scale_)

    def _sample(self, X: np.ndarray, divisor: float = 1.0) -> np.ndarray:
        operator = self._operator()
        operator = Resampling(operator.index, operator.weight / divisor)
        out = np.empty((len(X), *self.shape_out_), dtype=X.dtype)

        def sample(start: int) -> None:
            rows = slice(start, start + _BATCH)
            rings = gather(operator, pixels_first(torch.from_numpy(np.array(X[rows]))))
            torch.from_numpy(out[rows]).flatten(1).copy_(rings.T)

        in_threads(sample, range(0, len(X), _BATCH))
        return out

    def _operator(self) -> Resampling:
        n_radii, n_angles = self.shape_out_
        height, width = self.shape_in_
        radii = (np.arange(n_radii)[:, None] + 0.5) * self.radius_ / n_radii
        angles = np.arange(n_angles) * (2 * math.pi / n_angles)
        rows = (height - 1) / 2 - radii * np.sin(angles)  # counter-clockwise, rows count downwards
        columns = (width - 1) / 2 + radii * np.cos(angles)
        operator = multilinear((rows, columns), (height, width))
        area = np.repeat(np.sqrt(radii.ravel()), n_angles)
        return Resampling(operator.index, operator.weight * area[:, None])
