"""A user's own arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from orbit.core.errors import InputError, suggestion
from orbit.core.params import Fraction, PositiveInt
from orbit.core.random import RandomState
from orbit.data.base import Dataset, Loader, Task, check_arrays, real_dtype, real_numbers
from orbit.data.files import existing, existing_file, read_arrays
from orbit.data.rows import NpyFile, Rows, subset
from orbit.data.splits import guess_task, split_off_test
from orbit.registry import register


@register("dataset", "arrays")
class Arrays(Loader):
    """Arrays from an .npz file, or from two .npy files.

    Points in an .npy file are read in blocks of rows when the data is streamed.

    Parameters
    ----------
    path : str or None
        An .npz file, or an .npy file with X, which needs ``y_path``. Required.
    y_path : str or None
        An .npy file with y.
    x_key, y_key : str
        Names of X and y in the .npz.
    x_test_key, y_test_key : str or None
        Names of a test part in the .npz; None: a random part of the data.
    task : {"auto", "classification", "regression"}
        ``auto``: classification for strings, booleans and at most 100 distinct integers, else regression.
    test_fraction : float in (0, 1)
        Share of the points in the random test part.
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

    def input_files(self) -> list[Path]:
        return existing([self.path, self.y_path])

    def check_files(self) -> None:
        if self.path is None:
            raise InputError("path: expected the path of an .npz or .npy file, found none; e.g. path='mine.npz'")
        for key, path in (("path", self.path), ("y_path", self.y_path)):
            if path is not None:
                existing_file(path, key)
        if Path(self.path).suffix == ".npy" and self.y_path is None:
            raise InputError("y_path: expected an .npy file with the targets, since path is an .npy file")
        if (self.x_test_key is None) != (self.y_test_key is None):
            raise InputError("x_test_key: expected both or neither of x_test_key and y_test_key")

    def _load(self, random_state: RandomState) -> Dataset:
        return self._read(random_state, mapped=False)

    def _load_lazily(self, random_state: RandomState) -> Dataset:
        return self._read(random_state, mapped=True)

    def _read(self, random_state: RandomState, mapped: bool) -> Dataset:
        self.check_files()
        assert self.path is not None
        arrays = read_arrays(self.path, self.x_key, mapped)
        if self.y_path is not None:
            targets = read_arrays(self.y_path, self.y_key)
            self._require(targets, self.y_path, self.y_key)
            arrays = arrays | {self.y_key: targets[self.y_key]}
        X, y = self._pair(arrays, self.x_key, self.y_key)
        task: Task = guess_task(y) if self.task == "auto" else self.task
        if self.x_test_key is not None and self.y_test_key is not None:
            X_test, y_test = self._pair(arrays, self.x_test_key, self.y_test_key)
        else:
            check_arrays(X, y, task, f"{self.label()}, {self.path}")
            train, test = split_off_test(y, task, self.test_fraction, random_state, self.path)
            X, X_test, y, y_test = subset(X, train), subset(X, test), y[train], y[test]
        return Dataset(self.name, task, X, y, X_test, y_test, f"file {Path(self.path).name}")

    def _pair(self, arrays: dict[str, np.ndarray], x_key: str, y_key: str) -> tuple[Any, np.ndarray]:
        assert self.path is not None
        for key in (x_key, y_key):
            self._require(arrays, self.path, key)
        X, y = self._points(arrays[x_key], f"x_key: {x_key!r}"), arrays[y_key]
        return X, y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y

    def _points(self, X: np.ndarray, where: str) -> Any:
        if not isinstance(X, np.memmap) or X.ndim == 0:
            return real_numbers(X, where)
        return Rows(NpyFile(str(X.filename), real_dtype(X.dtype, where)), np.arange(len(X)))

    def _require(self, arrays: dict[str, np.ndarray], path: str, key: str) -> None:
        if key not in arrays:
            raise InputError(
                f"path: {path} has no array named {key!r}{suggestion(key, arrays)} "
                f"It has {', '.join(arrays) or 'none'}; set x_key and y_key"
            )
