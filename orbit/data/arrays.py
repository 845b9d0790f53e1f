"""A user's own arrays."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orbit.core.errors import InputError, shortened, suggestion
from orbit.core.random import RandomState
from orbit.data.base import Dataset, OwnData
from orbit.data.checks import check_arrays, real_dtype, real_numbers
from orbit.data.files import existing, existing_file, read_arrays
from orbit.data.rows import NpyFile, Rows
from orbit.data.splits import check_clusters
from orbit.registry import register

Split = tuple[np.ndarray, np.ndarray]  # indices of training and test points

# Names of arrays in an .npz: the part of each point, its group, and the number of training points. Names of the
# parts.
_SPLIT, _GROUPS, _N_TRAIN = "split", "groups", "n_train"
_TRAIN, _TEST = ("train", "0"), ("test", "1")

# The settings that name X and y.
_KEYS = "dataset.x_key=NAME and dataset.y_key=NAME"


@register("dataset", "arrays")
@dataclass(eq=False, repr=False)
class Arrays(OwnData):
    """Arrays from an .npz file, from two .npy files, or from a MATLAB file (.mat) up to version 7.

    Points in an .npy file are read in blocks of rows when the data is streamed. The test part is, in this order, that
    of ``x_test_key`` and ``y_test_key``; that of ``split_key``; the points after the first ``n_train``, where the .npz
    has a number of that name; or a random part of the data.

    Parameters
    ----------
    path : str or None
        An .npz or .mat file, or an .npy file with X, which needs ``y_path``. Required.
    y_path : str or None
        An .npy file with y, or an .npz with y and the arrays named below.
    x_key, y_key : str
        Names of X and y in the .npz.
    x_test_key, y_test_key : str or None
        Names of a test part in the .npz.
    split_key : str or None
        Name of an array in the .npz that has the part of each point: 'train' or 'test', or 0 for training and 1 for
        test; None is ``split``, if there is such an array.
    group_key : str or None
        Name of an array in the .npz that has the group of each point, an integer or a string, e.g. a patient with
        several points: all points of a group are in the same part, training or test, and in the same fold of
        ``selection='k_fold'``; None is ``groups``, if there is such an array.
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
    >>> np.savez(path, X=np.ones((20, 3)), y=np.arange(20) % 2, split=["train"] * 12 + ["test"] * 8)
    >>> Arrays(path).load(0).X_train.shape
    (12, 3)
    """

    ignored_keys = {}

    reads = (".npz", ".npy", ".mat")

    path: str | None = None
    y_path: str | None = None
    x_key: str = "X"
    y_key: str = "y"
    x_test_key: str | None = None
    y_test_key: str | None = None
    split_key: str | None = None
    group_key: str | None = None

    def input_files(self) -> list[Path]:
        return existing([self.path, self.y_path])

    def check_files(self) -> None:
        if self.path is None:
            raise InputError(
                "dataset.path: expected the path of an .npz, .npy or .mat file, found none; e.g. dataset.path=mine.npz"
            )
        for key, path in (("path", self.path), ("y_path", self.y_path)):
            if path is not None:
                existing_file(path, f"dataset.{key}")
        if Path(self.path).suffix == ".npy" and self.y_path is None:
            raise InputError(
                "dataset.y_path: expected an .npy file with the targets, since dataset.path is an .npy file"
            )
        if (self.x_test_key is None) != (self.y_test_key is None):
            raise InputError("dataset.x_test_key: expected both or neither of x_test_key and y_test_key")

    def _load(self, random_state: RandomState) -> Dataset:
        return self._read(random_state, mapped=False)

    def _load_lazily(self, random_state: RandomState) -> Dataset:
        return self._read(random_state, mapped=True)

    def _read(self, random_state: RandomState, mapped: bool) -> Dataset:
        self.check_files()
        assert self.path is not None
        arrays = read_arrays(self.path, self.x_key, mapped)
        if self.y_path is not None:
            targets = read_arrays(self.y_path, self.y_key, name="dataset.y_path")
            _require(targets, self.y_path, self.y_key, name="dataset.y_path")
            arrays = targets | arrays | {self.y_key: targets[self.y_key]}
        X, y = self._pair(arrays, self.x_key, self.y_key)
        task = self._task(y)
        self._warn_about_others(arrays)
        bytes_ = ", bytes from 0 to 255 as they are" if arrays[self.x_key].dtype == np.uint8 else ""
        source, where = f"file {Path(self.path).name}{bytes_}", f"{self.label()}, {self.path}"
        check_arrays(X, y, task, where)
        clusters = self._of_points(arrays, self.group_key, _GROUPS, len(X))
        if self.x_test_key is not None and self.y_test_key is not None:
            X_test, y_test = self._pair(arrays, self.x_test_key, self.y_test_key)
            return Dataset(self.name, task, X, y, X_test, y_test, source, clusters=clusters)
        split = self._given_split(arrays, len(X))
        train, test = split or self._split(y, task, random_state, self.path, clusters)
        if clusters is not None:
            check_clusters(clusters[train], clusters[test], "dataset.group_key")
        return Dataset.of_parts(self.name, task, X, y, train, test, source, clusters=clusters)

    def _warn_about_others(self, arrays: dict[str, np.ndarray]) -> None:
        """Warn about arrays that no key names, such as a test part."""
        read = {self.x_key, self.y_key, self.x_test_key, self.y_test_key, self.split_key, self.group_key}
        others = [name for name in arrays if name not in read | {_SPLIT, _GROUPS, _N_TRAIN}]
        if others:
            warnings.warn(
                f"{self.path}: {len(others)} arrays are left out, {shortened(', '.join(others))}; "
                "dataset.x_test_key=NAME and dataset.y_test_key=NAME name a test part",
                stacklevel=2,
            )

    def _given_split(self, arrays: dict[str, np.ndarray], n: int) -> Split | None:
        """Indices of the training and the test part that the file has; None if it has none."""
        parts = self._of_points(arrays, self.split_key, _SPLIT, n)
        if parts is None:
            return self._first_points(arrays, n) if _N_TRAIN in arrays else None
        names = (parts.astype(int) if parts.dtype == bool else parts).astype(str)
        if len(unknown := np.setdiff1d(names, [*_TRAIN, *_TEST])):
            raise InputError(
                f"dataset.split_key: expected 'train' or 'test', or 0 for training and 1 for test, found "
                f"{shortened(repr(str(unknown[0])))}"
            )
        is_test = np.isin(names, _TEST)
        if is_test.all() or not is_test.any():
            raise InputError(f"dataset.split_key: expected points of both parts, found all {n} in one")
        return np.flatnonzero(~is_test), np.flatnonzero(is_test)

    def _first_points(self, arrays: dict[str, np.ndarray], n: int) -> Split:
        found = arrays[_N_TRAIN]
        if found.size != 1 or found.dtype.kind not in "iu" or not 0 < found.item() < n:
            raise InputError(
                f"dataset.path: {self.path}: expected {_N_TRAIN!r} to be an integer from 1 to {n - 1}, found "
                f"{shortened(str(found))}"
            )
        return np.arange(found.item()), np.arange(found.item(), n)

    def _of_points(self, arrays: dict[str, np.ndarray], key: str | None, default: str, n: int) -> np.ndarray | None:
        """An array with a value for each of ``n`` points; None if no key is given and the file has no ``default``."""
        if key is None and default not in arrays:
            return None
        name = key or default
        _require(arrays, str(self.path), name, "dataset.split_key=NAME and dataset.group_key=NAME")
        values = arrays[name]
        if values.shape != (n,) or values.dtype.kind not in "biuUS":
            raise InputError(
                f"dataset.path: {self.path}: expected {name!r} to have an integer or a string for each of the {n} "
                f"points, found {values.dtype} of shape {values.shape}; give the array another name if it is something "
                "else"
            )
        return values

    def _pair(self, arrays: dict[str, np.ndarray], x_key: str, y_key: str) -> tuple[Any, np.ndarray]:
        assert self.path is not None
        for key in (x_key, y_key):
            _require(arrays, self.path, key)
        X, y = self._points(arrays[x_key], f"dataset.x_key: {x_key!r}"), arrays[y_key]
        return X, y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y

    def _points(self, X: np.ndarray, where: str) -> Any:
        if not isinstance(X, np.memmap) or X.ndim == 0:
            return real_numbers(X, where)
        return Rows(NpyFile(str(X.filename), real_dtype(X.dtype, where)), np.arange(len(X)))


def _require(arrays: dict[str, np.ndarray], path: str, key: str, keys: str = _KEYS, name: str = "dataset.path") -> None:
    if key not in arrays:
        raise InputError(
            f"{name}: {path} has no array named {key!r}{suggestion(key, arrays)} "
            f"It has {', '.join(arrays) or 'none'}; set {keys}"
        )
