"""A user's own arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from sklearn.model_selection import train_test_split

from orbit.data.base import Dataset, Loader, Task, check_arrays
from orbit.errors import DataFileError, InputError, suggestion
from orbit.params import Fraction, PositiveInt
from orbit.random import RandomState, spawn
from orbit.registry import register


@register("dataset", "arrays")
class Arrays(Loader):
    """Arrays from an .npz file, or from two .npy files.

    Parameters
    ----------
    path : str or None
        An .npz file, or an .npy file with X (then ``y_path`` has y). Required.
    y_path : str or None
        An .npy file with y.
    x_key, y_key : str
        Names of X and y in the .npz.
    x_test_key, y_test_key : str or None
        Names of a test part in the .npz; None splits one off at random.
    task : {"auto", "classification", "regression"}
        ``auto``: integers, strings and booleans are classes, fractions are numbers to predict.
    test_fraction : float in (0, 1)
        Share of the points that becomes the test part where none is named.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from orbit.data import Arrays
    >>> path = tempfile.mkdtemp() + "/mine.npz"
    >>> np.savez(path, X=np.ones((20, 3)), y=np.arange(20) % 2)
    >>> Arrays(path).load(0).X_train.shape
    (15, 3)
    """

    fixed_task = None

    def __init__(
        self,
        path: str | None = None,
        y_path: str | None = None,
        x_key: str = "X",
        y_key: str = "y",
        x_test_key: str | None = None,
        y_test_key: str | None = None,
        task: Literal["auto", "classification", "regression"] = "auto",
        test_fraction: Fraction = 0.25,
        n_train: PositiveInt | None = None,
        n_test: PositiveInt | None = None,
    ) -> None:
        self.path = path
        self.y_path = y_path
        self.x_key = x_key
        self.y_key = y_key
        self.x_test_key = x_test_key
        self.y_test_key = y_test_key
        self.task = task
        self.test_fraction = test_fraction
        self.n_train = n_train
        self.n_test = n_test

    def check_files(self) -> None:
        if self.path is None:
            raise InputError(
                "dataset.path: expected the path of an .npz or .npy file, found none; e.g. dataset.path=mine.npz"
            )
        for key, path in (("path", self.path), ("y_path", self.y_path)):
            if path is not None and not Path(path).expanduser().is_file():
                raise DataFileError(
                    f"dataset.{key}: expected a file at {Path(path).expanduser().absolute()}, found none"
                )
        if Path(self.path).suffix == ".npy" and self.y_path is None:
            raise InputError(
                "dataset.y_path: expected an .npy file with the targets, since dataset.path is an .npy file"
            )
        if (self.x_test_key is None) != (self.y_test_key is None):
            raise InputError("dataset.x_test_key and dataset.y_test_key: expected both or neither")

    def _load(self, random_state: RandomState) -> Dataset:
        self.check_files()
        assert self.path is not None
        arrays = _read(self.path, self.x_key)
        if self.y_path is not None:
            targets = _read(self.y_path, self.y_key)
            self._require(targets, self.y_path, self.y_key)
            arrays = arrays | {self.y_key: targets[self.y_key]}
        X, y = self._pair(arrays, self.x_key, self.y_key)
        task: Task = _guess_task(y) if self.task == "auto" else self.task
        if self.x_test_key is not None and self.y_test_key is not None:
            X_test, y_test = self._pair(arrays, self.x_test_key, self.y_test_key)
        else:
            check_arrays(X, y, task, f"dataset=arrays, {self.path}")
            X, X_test, y, y_test = self._split(X, y, task, random_state)
        return Dataset(self.name, task, X, y, X_test, y_test, f"file {Path(self.path).name}")

    def _pair(self, arrays: dict[str, np.ndarray], x_key: str, y_key: str) -> tuple[np.ndarray, np.ndarray]:
        assert self.path is not None
        for key in (x_key, y_key):
            self._require(arrays, self.path, key)
        X, y = arrays[x_key], arrays[y_key]
        if X.dtype.kind not in "biuf":
            raise InputError(f"dataset.x_key: {x_key!r} must hold real numbers, found dtype {X.dtype}")
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float32), y

    def _require(self, arrays: dict[str, np.ndarray], path: str, key: str) -> None:
        if key not in arrays:
            raise InputError(
                f"dataset.path: {path} has no array named {key!r}{suggestion(key, arrays)} "
                f"It has {', '.join(arrays) or 'none'}; set dataset.x_key and dataset.y_key"
            )

    def _split(self, X: np.ndarray, y: np.ndarray, task: Task, random_state: RandomState) -> list[np.ndarray]:
        n_test = min(max(1, round(len(X) * self.test_fraction)), len(X) - 1)
        if n_test < 1:
            raise InputError(f"dataset.path: {self.path} has {len(X)} points, too few to split; expected at least 2")
        counts = np.unique(y, return_counts=True)[1] if task == "classification" else np.zeros(1)
        stratify = y if counts.min() >= 2 and len(counts) <= min(n_test, len(X) - n_test) else None
        return train_test_split(X, y, test_size=n_test, stratify=stratify, random_state=spawn(random_state, 1)[0])


def _read(file: str, key: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz by their names, or the one of an .npy by the name ``key``."""
    path = Path(file).expanduser()
    try:
        loaded = np.load(path, allow_pickle=False)  # a pickle from a stranger would run code
        return {key: loaded} if isinstance(loaded, np.ndarray) else {key: loaded[key] for key in loaded.files}
    except Exception as error:
        raise DataFileError(
            f"{path.absolute()} is not a readable .npz or .npy file without objects: {error}"
        ) from error


def _guess_task(y: np.ndarray) -> Task:
    return "regression" if y.dtype.kind == "f" and (y.ndim > 1 or np.any(y != np.round(y))) else "classification"
