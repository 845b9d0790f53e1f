"""Boundaries of regions of images and volumes, as clouds of points."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_erosion

from orbit.core.params import PositiveInt
from orbit.registry import register
from orbit.representations.base import Representation


@register("representation", "outline")
@dataclass(eq=False, repr=False)
class Outline(Representation):
    """Cells at the boundary of the bright region of an image or a volume, as a cloud of points.

    The region are the cells of at least half the way from the smallest to the largest value of the point. Of its cells
    that have a neighbour outside, along an axis or beyond the border, ``n_points`` are taken in even steps of their
    row-major order, some repeatedly if there are fewer. Points are images (height, width) or volumes
    (depth, height, width), clouds have shape (n_points, axes), in cells.

    With ``encoder=point_pairs``, silhouettes and segmented volumes are then compared at any turn and place.

    Parameters
    ----------
    n_points : int >= 1
        Of each cloud.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Outline
    >>> Outline(n_points=8).fit_transform(np.pad(np.ones((1, 3, 3)), ((0, 0), (1, 1), (1, 1)))).astype(int).tolist()
    [[[1, 1], [1, 2], [1, 3], [2, 1], [2, 3], [3, 1], [3, 2], [3, 3]]]
    """

    takes_vectors = False

    n_points: PositiveInt = 256

    def _transform(self, X: np.ndarray) -> np.ndarray:
        if X.ndim not in (3, 4):
            raise self._refuse(X, "images (height, width) or volumes (depth, height, width)")
        clouds = np.empty((len(X), self.n_points, X.ndim - 1), dtype=X.dtype)
        for cloud, x in zip(clouds, X, strict=True):
            region = x >= x.min() / 2 + x.max() / 2
            boundary = np.argwhere(region & ~binary_erosion(region))
            cloud[:] = boundary[np.linspace(0, len(boundary) - 1, self.n_points).round().astype(int)]
        return clouds
