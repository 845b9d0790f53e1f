"""Small data for tests."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from sklearn.datasets import load_digits

from orbit.data import Dataset, Table


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


def npy_shards(folder: Path, X: np.ndarray, y: np.ndarray, sizes: Sequence[int]) -> tuple[str, ...]:
    """Write the first rows of X and y as .npy parts of the given sizes; the settings that load them."""
    for name, values in (("X", X), ("y", y)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for part, rows in enumerate(np.split(values, np.cumsum(sizes))[:-1]):
            np.save(folder / name / f"p{part}.npy", rows)
    return "dataset=shards", f"dataset.path={folder / 'X'}", f"dataset.y_path={folder / 'y'}"


def parquet_shards(
    folder: Path, X: np.ndarray, y: np.ndarray, sizes: Sequence[int], rows_of_a_group: int = 100
) -> tuple[str, ...]:
    """The same as Parquet parts, with a column of lists ``x`` and a column ``y``."""
    folder.mkdir(parents=True, exist_ok=True)
    flat, shape = X.reshape(len(X), -1), ",".join(map(str, X.shape[1:]))
    for part, rows in enumerate(np.split(np.arange(sum(sizes)), np.cumsum(sizes))[:-1]):
        lists = pa.FixedSizeListArray.from_arrays(pa.array(flat[rows].ravel()), flat.shape[1])
        pq.write_table(pa.table({"x": lists, "y": y[rows]}), folder / f"p{part}.parquet", rows_of_a_group)
    return "dataset=shards", f"dataset.path={folder}", "dataset.target=y", f"dataset.shape=[{shape}]"


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


def batches(X, *others, size=70):
    """The rows of arrays of equal length, in batches as of a stream."""
    for start in range(0, len(X), size):
        yield tuple(array[start : start + size] for array in (X, *others))


def points_in_clusters(rng, n):
    """n points, shape (n, 3), half of them in clusters of 25, and targets, shape (n,), noisy at the isolated points."""
    isolated = np.arange(n) % 2 == 1
    points = 2 * rng.standard_normal((n, 3))
    points[~isolated] = np.repeat(rng.standard_normal((n // 50, 3)), 25, axis=0)
    points[~isolated] += 0.01 * rng.standard_normal((n // 2, 3))
    return points, np.sin(points[:, 0]) + np.where(isolated, 0.7, 0.02) * rng.standard_normal(n)


FEATURES = ["height", "width", "legs"]


def frame(n: int = 40) -> pd.DataFrame:
    """A table of numbers FEATURES, ``price`` and ``trust``, and of strings ``kind``."""
    rng = np.random.default_rng(0)
    columns = {"height": rng.normal(size=n), "width": rng.normal(size=n), "legs": rng.integers(0, 9, n)}
    columns |= {"kind": np.array(["owl", "cat"])[np.arange(n) % 2], "price": rng.normal(size=n), "trust": rng.random(n)}
    return pd.DataFrame(columns).round(9)  # numbers of more digits are not read exactly by every version of pandas


def new_rows(loader: Table, data: Dataset, path: str) -> np.ndarray:
    """The numbers of the rows of a new file, for a model of this data; its form is kept as JSON."""
    return loader.read_points(path, json.loads(json.dumps(data.form)), data.encoder).X
