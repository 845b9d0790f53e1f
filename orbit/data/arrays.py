"""A user's own arrays."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orbit.core.errors import InputError, shortened
from orbit.core.random import RandomState
from orbit.data.base import Dataset, OwnData
from orbit.data.checks import check_arrays, real_dtype, real_numbers
from orbit.data.files import existing, existing_file, named, read_arrays
from orbit.data.rows import NpyFile, Rows
from orbit.data.splits import TEST, TRAIN, given_parts
from orbit.registry import register

# Names of arrays in an .npz: the part of each point, its group, and the number of training points. Parts by number.
_SPLIT, _GROUPS, _N_TRAIN = "split", "groups", "n_train"
_NUMBERED = {"0": TRAIN, "1": TEST}

# What to do where X or y is missing.
_KEYS = "; set dataset.x_key=NAME and dataset.y_key=NAME"


@register("dataset", "arrays")
@dataclass(eq=False, repr=False)
class Arrays(OwnData):
    """Arrays from an .npz file, from two .npy files, or from a MATLAB file (.mat) up to version 7.

    Points in an .npy file are read in blocks of rows when the data is streamed. The test part is, in this order, that
    of ``x_test_key`` and ``y_test_key``, or of arrays ``X_test`` and ``y_test``; that of an array ``split`` in the
    file, with the part of each point: 'train', 'test' or 'val' (validation points are training points too, and the
    validation part of ``selection=given``), or 0 for training and 1 for test; the points after the first ``n_train``,
    where the file has a number of that name; or a random part of the data.

    An array ``groups`` in the file has the group of each point, an integer or a string, e.g. a patient with several
    points: all points of a group are in the same part, training or test, and in the same fold of ``selection=k_fold``.

    Parameters
    ----------
    path : str or None
        An .npz or .mat file, or an .npy file with X, which needs ``y_path``. Required.
    y_path : str or None
        An .npy file with y, or an .npz with y and the arrays named below.
    x_key, y_key : str
        Names of X and y in the .npz.
    x_test_key, y_test_key : str or None
        Names of a test part in the .npz. None: ``X_test`` and ``y_test``, or what else X and y are called without
        ``_train`` and with ``_test``, if the file has both.
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

    reads = (".npz", ".npy", ".mat")

    path: str | None = None
    y_path: str | None = None
    x_key: str = "X"
    y_key: str = "y"
    x_test_key: str | None = None
    y_test_key: str | None = None

    def input_files(self) -> list[Path]:
        return existing([self.path, self.y_path])

    def check_files(self) -> None:
        path = self._required("path", "the path of an .npz, .npy or .mat file")
        existing_file(path, "dataset.path")
        if self.y_path or Path(path).suffix == ".npy":
            existing_file(self._required("y_path", "an .npy file with the targets"), "dataset.y_path")
        if (self.x_test_key is None) != (self.y_test_key is None):
            raise InputError("dataset.x_test_key: expected both or neither of x_test_key and y_test_key")

    def _load(self, random_state: RandomState) -> Dataset:
        return self._read(random_state, mapped=False)

    def _load_lazily(self, random_state: RandomState) -> Dataset:
        return self._read(random_state, mapped=True)

    def _read(self, random_state: RandomState, mapped: bool) -> Dataset:
        self.check_files()
        path = str(self.path)
        arrays = read_arrays(path, self.x_key, mapped)
        if self.y_path is not None:
            targets = read_arrays(self.y_path, self.y_key, name="dataset.y_path")
            arrays = (
                targets | arrays | {self.y_key: named(targets, self.y_key, f"dataset.y_path: {self.y_path}", _KEYS)}
            )
        X, y = self._pair(arrays, self.x_key, self.y_key)
        task = self._task(y)
        test_keys = self._test_keys(arrays)
        self._warn_about_others(arrays, test_keys)
        bytes_ = ", bytes from 0 to 255 as they are" if arrays[self.x_key].dtype == np.uint8 else ""
        source = f"file {Path(path).name}{bytes_}"
        check_arrays(X, y, task, f"{self.label()}, {path}")
        clusters = self._of_points(arrays, _GROUPS, len(X))
        if test_keys:
            X_test, y_test = self._pair(arrays, *test_keys)
            rows = np.arange(len(y_test))
            return Dataset(self.name, task, X, y, X_test, y_test, source, clusters=clusters, test_rows=rows)
        parts = self._parts(arrays, len(X))
        train, test, folds = self._divide(y, task, random_state, path, clusters, parts, f"path: array {_GROUPS!r}")
        more = {"clusters": clusters, "folds": folds, "test_rows": test}
        return Dataset.of_parts(self.name, task, X, y, train, test, source, **more)

    def _test_keys(self, arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
        """The names of the arrays of a test part: those given, or those of X and y with ``_test`` if both are there."""
        if self.x_test_key is not None and self.y_test_key is not None:
            return self.x_test_key, self.y_test_key
        usual = tuple(f"{key.removesuffix('_train')}_test" for key in (self.x_key, self.y_key))
        return usual if {*usual} <= arrays.keys() else ()

    def _warn_about_others(self, arrays: dict[str, np.ndarray], test_keys: tuple[str, ...]) -> None:
        """Warn about arrays that are not read, such as a test part."""
        read = {self.x_key, self.y_key, *test_keys, _SPLIT, _GROUPS, _N_TRAIN}
        if others := [name for name in arrays if name not in read]:
            warnings.warn(
                f"{self.path}: arrays that are left out: {shortened(', '.join(others))}; "
                "dataset.x_test_key=NAME and dataset.y_test_key=NAME name a test part",
                stacklevel=2,
            )

    def _parts(self, arrays: dict[str, np.ndarray], n: int) -> np.ndarray | None:
        """The part of each point that the file gives; None if it gives none."""
        if (given := self._of_points(arrays, _SPLIT, n)) is not None:
            names = (given.astype(int) if given.dtype == bool else given).astype(str)
            return given_parts([_NUMBERED.get(name, name) for name in names], f"path: array {_SPLIT!r}")
        if _N_TRAIN not in arrays:
            return None
        found = arrays[_N_TRAIN]
        if found.size != 1 or found.dtype.kind not in "iu" or not 0 < found.item() < n:
            raise InputError(
                f"dataset.path: {self.path}: expected {_N_TRAIN!r} to be an integer from 1 to {n - 1}, found "
                f"{shortened(str(found))}"
            )
        return np.repeat([TRAIN, TEST], [found.item(), n - found.item()])

    def _of_points(self, arrays: dict[str, np.ndarray], name: str, n: int) -> np.ndarray | None:
        """An array with a value for each of ``n`` points; None if the file has none of that name."""
        values = arrays.get(name)
        if values is not None and (values.shape != (n,) or values.dtype.kind not in "biuUS"):
            raise InputError(
                f"dataset.path: {self.path}: expected {name!r} to have an integer or a string for each of the {n} "
                f"points, found {values.dtype} of shape {values.shape}; give the array another name if it is something "
                "else"
            )
        return values

    def _pair(self, arrays: dict[str, np.ndarray], x_key: str, y_key: str) -> tuple[Any, np.ndarray]:
        X, y = (named(arrays, key, f"dataset.path: {self.path}", _KEYS) for key in (x_key, y_key))
        return self._points(X, f"dataset.x_key: {x_key!r}"), y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y

    def _points(self, X: np.ndarray, where: str) -> Any:
        if not isinstance(X, np.memmap) or X.ndim == 0:
            return real_numbers(X, where)
        return Rows(NpyFile(str(X.filename), real_dtype(X.dtype, where)), np.arange(len(X)))
