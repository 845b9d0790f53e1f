"""Images in one position, slant and size, by their moments."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from orbit.core.params import PositiveFloat, Range
from orbit.registry import register
from orbit.representations.base import ImageRepresentation

# The variance of a uniform density over one pixel: no stroke is narrower.
_PIXEL_VARIANCE = 1 / 12

# Pixels that are resampled at once.
_TILE_PIXELS = 2**20


@register("representation", "moments")
@dataclass(eq=False, repr=False)
class Moments(ImageRepresentation):
    """Bright strokes on a dark ground, such as characters, in one position, slant and size by their moments.

    Intensities are taken as densities (negative ones as zero, channels summed), with mean (cy, cx), variances vy and vx
    along the axes, and covariance cov. One bilinear resampling of the image, zero outside of it, moves the mean to the
    centre; removes the slant, the covariance, by a shear along the rows, after which vx is vx - cov^2 / vy; and scales
    both axes. The larger standard deviation becomes ``size`` times the shorter side of the image, and the ratio r of
    the smaller to the larger one becomes r^aspect. Images without bright pixels do not change.

    Moves of a group about the normalised image can then be smaller. Coloured objects are no such images.

    Parameters
    ----------
    size : float > 0
        Standard deviation along the longer axis, as a share of the shorter side of the image.
    aspect : float in [0, 1]
        1 keeps the ratio of the axes, 0 makes them equal, 1/2 is the square root of Liu et al. (2004).
    axes : {"upright", "principal"}
        ``principal``: there is no shear, and the axes that are scaled are the principal ones, so that a turned image
        becomes the turned result. For characters at any angle.
    position : {"centre", "keep"}
        ``keep``: the mean stays where it is.

    References
    ----------
    Casey, "Moment normalization of handprinted characters", 1970. Liu, Nakashima, Sako and Fujisawa, "Handwritten digit
    recognition: investigation of normalization and feature extraction techniques", 2004, sections 2.2 and 2.3.

    Examples
    --------
    A slanted stroke becomes upright:

    >>> import numpy as np
    >>> from orbit.representations import Moments
    >>> stroke = np.pad(np.eye(5), 1)[None]
    >>> print(Moments(aspect=1).fit_transform(stroke)[0].round(1))
    [[0. 0. 0. 0. 0. 0. 0.]
     [0. 0. 0. 1. 0. 0. 0.]
     [0. 0. 0. 1. 0. 0. 0.]
     [0. 0. 0. 1. 0. 0. 0.]
     [0. 0. 0. 1. 0. 0. 0.]
     [0. 0. 0. 1. 0. 0. 0.]
     [0. 0. 0. 0. 0. 0. 0.]]
    """

    size: PositiveFloat = 0.2
    aspect: Annotated[float, Range(low=0.0, high=1.0)] = 0.5
    axes: Literal["upright", "principal"] = "upright"
    position: Literal["centre", "keep"] = "centre"

    def _fit(self, X: np.ndarray) -> None:
        self._check_images(X, side=1)

    def _transform(self, X: np.ndarray) -> np.ndarray:
        images = torch.tensor(np.ascontiguousarray(X).reshape(*X.shape[:3], -1)).movedim(-1, 1)
        tiles = images.split(max(1, _TILE_PIXELS // images[0].numel()))
        moved = [
            grid_sample(tile, affine_grid(self._maps(tile), tile.shape, False), align_corners=False) for tile in tiles
        ]
        return torch.cat(moved).movedim(1, -1).reshape(X.shape).numpy()

    def _maps(self, images: Tensor) -> Tensor:
        """[A, b] from pixels of the output to those of the input, of images (n, channels, h, w): shape (n, 2, 3).

        Coordinates are x before y, from -1 to 1 along both sides, as ``affine_grid`` has them.
        """
        height, width = images.shape[2:]
        density = images.clamp(min=0).sum(1)
        mass = density.sum((1, 2))
        y = torch.arange(height).to(images)[:, None] - (height - 1) / 2
        x = torch.arange(width).to(images) - (width - 1) / 2
        is_empty = mass <= 0

        def mean(values: Tensor) -> Tensor:
            return (density * values).sum((1, 2)) / mass.where(~is_empty, 1.0)

        cy, cx = mean(y), mean(x)
        dy, dx = y - cy[:, None, None], x - cx[:, None, None]
        from_axes, variances, to_axes = self._axes_of(mean(dx**2), mean(dy**2), mean(dx * dy))
        deviations = variances.clamp(min=_PIXEL_VARIANCE).sqrt()
        wanted = self.size * min(height, width) * (deviations / deviations.amax(1, keepdim=True)) ** self.aspect
        linear = from_axes @ torch.diag_embed(deviations / wanted) @ to_axes
        centre = torch.stack([cx, cy], 1)[..., None]
        offset = centre if self.position == "centre" else centre - linear @ centre
        half = torch.tensor([width, height]).to(images)[:, None] / 2
        maps = torch.cat([linear * half.mT, offset], 2) / half
        maps[is_empty] = torch.eye(2, 3).to(maps)
        return maps

    def _axes_of(self, vx: Tensor, vy: Tensor, cov: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Variances (n, 2) along the axes that are scaled, and matrices (n, 2, 2) from these axes and to them."""
        if self.axes == "principal":
            variances, axes = torch.linalg.eigh(torch.stack([vx, cov, cov, vy], 1).view(-1, 2, 2))
            return axes, variances, axes.mT
        slope = cov / vy.clamp(min=_PIXEL_VARIANCE)
        identity = torch.eye(2).to(vx).repeat(len(vx), 1, 1)
        shear = identity.clone()
        shear[:, 0, 1] = slope
        return shear, torch.stack([vx - slope * cov, vy], 1), identity
