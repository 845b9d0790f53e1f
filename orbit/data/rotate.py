"""Turning images to make data: by cubic splines, so that the data does not share the group's interpolation."""

from __future__ import annotations

import numpy as np
from scipy import ndimage


def rotate_randomly(images: np.ndarray, seed: int) -> np.ndarray:
    """Each image turned about its centre by its own angle, uniform in [0, 2 pi).

    Cubic spline interpolation, zero outside, clipped to [0, 1]; orbit's own
    rotation is bilinear, so a model never sees its own operator in the data.

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
    for image, angle, turned in zip(images, angles, out, strict=True):
        cos, sin = np.cos(angle), np.sin(angle)
        matrix = np.array([[cos, sin], [-sin, cos]])
        ndimage.affine_transform(image, matrix, centre - matrix @ centre, output=turned, order=3, mode="grid-constant")
    return out.clip(0, 1)
