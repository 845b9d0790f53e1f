"""Images moved by cubic splines, so that generated data does not share the groups' bilinear interpolation."""

import numpy as np
from scipy import ndimage

from orbit.core.threads import in_threads

# Images that a thread moves before it takes others.
_IMAGES = 256

# SciPy's name for zeros outside an image, and the pixels of them after which a spline has decayed (SciPy's own number).
_OUTSIDE, _MARGIN = "grid-constant", 12


def rotate_randomly(images: np.ndarray, seed: int) -> np.ndarray:
    """Each image rotated about its centre by an independent angle, uniform in [0, 2 pi).

    Parameters
    ----------
    images : array, shape (n, h, w), values in [0, 1]
    seed : seed of the angles

    Returns
    -------
    float32 array, shape (n, h, w)
    """
    angles = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(images))
    return _moved(images, angles, np.zeros((len(images), 2)))


def jitter_randomly(images: np.ndarray, shift: float, angle: float, seed: int) -> np.ndarray:
    """Each image rotated about its centre and then shifted, by independent uniform amounts.

    Parameters
    ----------
    images : array, shape (n, h, w), values in [0, 1]
    shift : largest shift along each axis, in pixels
    angle : largest angle, in degrees
    seed : seed of the moves

    Returns
    -------
    float32 array, shape (n, h, w)
    """
    rng = np.random.default_rng(seed)
    angles = np.radians(angle) * rng.uniform(-1, 1, len(images))
    return _moved(images, angles, shift * rng.uniform(-1, 1, (len(images), 2)))


def _moved(images: np.ndarray, angles: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Cubic spline interpolation, zero outside, clipped to [0, 1].

    ``shifts``, shape (n, 2), are in pixels, rows down and columns right.
    """
    centre = (np.array(images.shape[1:]) - 1) / 2
    out = np.empty(images.shape, dtype=np.float32)

    def move(start: int) -> None:
        splines = _splines(images[start : start + _IMAGES])
        for i, spline in enumerate(splines, start):
            cos, sin = np.cos(angles[i]), np.sin(angles[i])
            matrix = np.array([[cos, sin], [-sin, cos]])
            offset = centre - matrix @ (centre + shifts[i]) + _MARGIN
            # SciPy would compute the coefficients of each image by itself, which takes as long as the interpolation
            ndimage.affine_transform(
                spline, matrix, offset, images.shape[1:], out[i], order=3, mode=_OUTSIDE, prefilter=False
            )

    in_threads(move, range(0, len(images), _IMAGES))
    return out.clip(0, 1, out=out)


def _splines(images: np.ndarray) -> np.ndarray:
    """Coefficients of cubic splines through the pixels, and zeros around them, with a margin."""
    margin = (_MARGIN, _MARGIN)
    splines = np.pad(images.astype(np.float64), ((0, 0), margin, margin))
    for axis in (1, 2):
        ndimage.spline_filter1d(splines, 3, axis, output=splines, mode=_OUTSIDE)
    return splines
