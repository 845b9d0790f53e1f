"""Images rotated by cubic splines, so that generated data does not share the groups' bilinear interpolation."""

import numpy as np
from scipy import ndimage

from orbit.core.threads import in_threads

# Images that a thread rotates before it takes others.
_IMAGES = 256

# SciPy's name for zeros outside an image, and the pixels of them after which a spline has decayed (SciPy's own number).
_OUTSIDE, _MARGIN = "grid-constant", 12


def rotate_randomly(images: np.ndarray, seed: int) -> np.ndarray:
    """Each image rotated about its centre by an independent angle, uniform in [0, 2 pi).

    By cubic spline interpolation, zero outside, clipped to [0, 1].

    Parameters
    ----------
    images : array, shape (n, h, w), values in [0, 1]
    seed : seed of the angles

    Returns
    -------
    float32 array, shape (n, h, w)
    """
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(images))
    centre = (np.array(images.shape[1:]) - 1) / 2
    out = np.empty(images.shape, dtype=np.float32)

    def rotate(start: int) -> None:
        splines = _splines(images[start : start + _IMAGES])
        for i, spline in enumerate(splines, start):
            cos, sin = np.cos(angles[i]), np.sin(angles[i])
            matrix = np.array([[cos, sin], [-sin, cos]])
            offset = centre - matrix @ centre + _MARGIN
            # SciPy would compute the coefficients of each image by itself, which takes as long as the interpolation
            ndimage.affine_transform(
                spline, matrix, offset, images.shape[1:], out[i], order=3, mode=_OUTSIDE, prefilter=False
            )

    in_threads(rotate, range(0, len(images), _IMAGES))
    return out.clip(0, 1, out=out)


def _splines(images: np.ndarray) -> np.ndarray:
    """Coefficients of cubic splines through the pixels, and zeros around them, with a margin."""
    margin = (_MARGIN, _MARGIN)
    splines = np.pad(images.astype(np.float64), ((0, 0), margin, margin))
    for axis in (1, 2):
        ndimage.spline_filter1d(splines, 3, axis, output=splines, mode=_OUTSIDE)
    return splines
