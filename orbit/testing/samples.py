"""Small inputs for tests, drawn from a given generator."""

import numpy as np


def smooth_images(rng: np.random.Generator, n: int, height: int, width: int, blob: float = 2.0) -> np.ndarray:
    """Sums of five Gaussian blobs of standard deviation ``blob`` pixels in the inner half, shape ``(n, h, w)``.

    Not symmetric under any rotation, and almost zero at the border.
    """
    y, x = np.mgrid[:height, :width]
    y, x = (height - 1) / 2 - y, x - (width - 1) / 2
    reach = min(height, width) / 4
    images = np.zeros((n, height, width))
    for image in images:
        for _ in range(5):
            radius, angle = reach * rng.random(), 2 * np.pi * rng.random()
            at_x, at_y = radius * np.cos(angle), radius * np.sin(angle)
            image += rng.uniform(0.5, 1) * np.exp(-((x - at_x) ** 2 + (y - at_y) ** 2) / (2 * blob**2))
    return images


def unit_mean_norm(X: np.ndarray) -> np.ndarray:
    """Points scaled to mean Euclidean norm one, for which lengthscales of about one half are suitable."""
    return X / np.linalg.norm(X.reshape(len(X), -1), axis=1).mean()


def signals(rng: np.random.Generator, n: int, shape: tuple[int, ...]) -> np.ndarray:
    """Gaussian noise of mean norm one, shape ``(n, *shape)``."""
    return unit_mean_norm(rng.standard_normal((n, *shape)))
