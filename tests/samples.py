"""Small data for tests of whole runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits


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


def draw(path: Path, values: np.ndarray, **how) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, **how)


def draw_classes(folder: Path, n: int = 20, shape: tuple[int, ...] = (6, 8)) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    pictures = {}
    for i in range(2 * n):
        name = f"{'cat' if i % 2 else 'owl'}/{i}.png"
        pictures[name] = rng.integers(0, 256, shape, dtype=np.uint8)
        draw(folder / name, pictures[name])
    return pictures
