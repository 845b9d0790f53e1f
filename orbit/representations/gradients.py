"""Images as gradients by direction (Dalal and Triggs, 2005)."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from orbit.core.linalg import is_constant, row_norms
from orbit.core.params import NonNegativeFloat, PositiveFloat, PositiveInt
from orbit.groups.domains import wrap
from orbit.registry import register
from orbit.representations.base import ImageRepresentation, Norm, mean_norm, scale

_BATCH = 256


@register("representation", "gradients")
@dataclass(eq=False, repr=False)
class Gradients(ImageRepresentation):
    """The length of every pixel's gradient, divided between the two nearest of ``n_directions`` directions.

    There is one channel for each direction, over all 360 degrees. Inner products then
    compare edges instead of intensities: they are small for two strokes that
    overlap little or differ in slant. A group acts on each channel as on an image;
    the change of an edge's direction under a rotation is neglected, which has little
    effect for angles below half the step between directions (22 degrees for eight).

    For images with colour channels, each pixel takes the gradient of the channel
    where it is longest, as in Dalal and Triggs.

    Parameters
    ----------
    n_directions : int >= 1
        Directions over all 360 degrees, one channel each.
    smoothing : float > 0
        Standard deviation, in pixels, of the Gaussian whose derivative takes the gradient.
    pooling : float >= 0
        Standard deviation, in pixels, of the Gaussian that blurs each channel; 0 is none.
    norm : {"mean", "each", "none"}
        Scaling of the result, as for ``UnitNorm``; ``none`` is no scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Gradients
    >>> edge = np.zeros((1, 9, 9))
    >>> edge[:, :, 5:] = 1.0
    >>> channels = Gradients(n_directions=4, pooling=0.0).fit_transform(edge)
    >>> channels.shape, channels.sum((0, 1, 2)).argmax()  # towards the right
    ((1, 9, 9, 4), np.int64(0))
    """

    n_directions: PositiveInt = 8
    smoothing: PositiveFloat = 1.0
    pooling: NonNegativeFloat = 1.0
    norm: Norm = "each"

    def _fit(self, X: np.ndarray) -> None:
        self._check_images(X, 2)
        self.scale_ = mean_norm(self._channels(X)) if self.norm == "mean" else 1.0

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return scale(self._channels(X), self.norm, self.scale_)

    def _channels(self, X: np.ndarray) -> np.ndarray:
        out = np.empty((*X.shape[:3], self.n_directions), dtype=X.dtype)
        for start in range(0, len(X), _BATCH):
            out[start : start + _BATCH] = self._batch(X[start : start + _BATCH])
        out[is_constant(row_norms(out), row_norms(X), X.dtype)] = 0  # images of one colour
        return out

    def _batch(self, X: np.ndarray) -> np.ndarray:
        right, down = self._derivative(X, axis=2), self._derivative(X, axis=1)
        if X.ndim == 4:
            longest = np.hypot(right, down).argmax(-1)[..., None]
            right, down = (np.take_along_axis(part, longest, -1)[..., 0] for part in (right, down))
        step = 2 * math.pi / self.n_directions
        turns = np.arctan2(-down, right) / step  # counter-clockwise, rows count downwards
        away = np.abs(wrap(turns[..., None] - np.arange(self.n_directions), self.n_directions))
        # the nearest two directions share a gradient; a single one takes all of it
        shares = np.maximum(1 - away, 0) if self.n_directions > 1 else np.ones_like(away)
        channels = np.hypot(right, down)[..., None] * shares
        return ndimage.gaussian_filter(channels, (0, self.pooling, self.pooling, 0))

    def _derivative(self, X: np.ndarray, axis: int) -> np.ndarray:
        sigma, order = np.zeros(X.ndim), np.zeros(X.ndim, dtype=int)
        sigma[1:3], order[axis] = self.smoothing, 1
        return ndimage.gaussian_filter(X, sigma, order=order)
