"""Small data for tests, all from a given generator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def smooth_images(rng: np.random.Generator, n: int, height: int, width: int, blob: float = 2.0) -> np.ndarray:
    """Sums of five Gaussian blobs of standard deviation ``blob`` pixels in the inner half, shape ``(n, h, w)``.

    No symmetry under any rotation, and almost nothing at the border.
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
    """Points scaled to mean Euclidean norm one, so that lengthscales around one half suit them."""
    return X / np.linalg.norm(X.reshape(len(X), -1), axis=1).mean()


def signals(rng: np.random.Generator, n: int, shape: tuple[int, ...]) -> np.ndarray:
    """Noise without any structure, mean norm one."""
    return unit_mean_norm(rng.standard_normal((n, *shape)))


def noisy_digits(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """``n`` of scikit-learn's digits with noise, float32, shape (n, 8, 8), and their classes."""
    images, classes = load_digits(return_X_y=True)
    chosen = rng.integers(len(images), size=n)
    noise = 0.1 * rng.standard_normal((n, 8, 8))
    return (images[chosen].reshape(n, 8, 8) / 16 + noise).astype(np.float32), classes[chosen]


def npy_files(folder: Path, X: np.ndarray, y: np.ndarray) -> tuple[str, ...]:
    """Write X and y as .npy files; the settings that load them."""
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return "dataset=arrays", f"dataset.path={folder / 'X.npy'}", f"dataset.y_path={folder / 'y.npy'}"
