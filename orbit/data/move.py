"""Images moved by cubic splines, so that generated data does not share the groups' bilinear interpolation."""

from __future__ import annotations

import numpy as np
from scipy import ndimage


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
    for image, angle, shift, moved in zip(images, angles, shifts, out, strict=True):
        cos, sin = np.cos(angle), np.sin(angle)
        matrix = np.array([[cos, sin], [-sin, cos]])
        offset = centre - matrix @ (centre + shift)
        ndimage.affine_transform(image, matrix, offset, output=moved, order=3, mode="grid-constant")
    return out.clip(0, 1)
