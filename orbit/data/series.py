"""A user's own time series."""

import importlib.util
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from orbit.core.errors import DataFileError, InputError, located, suggestion
from orbit.core.memory import check_fits
from orbit.core.params import PositiveFloat, PositiveInt
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.arrays import Arrays
from orbit.data.base import Dataset, Loader, OwnData, Points, names_of
from orbit.data.checks import Task
from orbit.data.files import existing, existing_file
from orbit.data.labelled_files import note_of_unused
from orbit.data.series_files import (
    ARCHIVE,
    DEFAULT_TARGET,
    Columns,
    Recorded,
    Unequal,
    of_length,
    read_archive,
    read_series_files,
    read_series_table,
    trimmed,
)
from orbit.data.series_lists import lists_files
from orbit.data.splits import check_clusters, guess_task
from orbit.registry import register

_TRAIN, _TEST = "_TRAIN", "_TEST"
_TABLES = (".csv", ".parquet", ".pq")
_ARRAYS = (".npz", ".mat")
_KINDS = f"a {', '.join((*ARCHIVE, *_TABLES, *_ARRAYS))} file"

# Parameters that are those of arrays, and those that only tables have.
_OF_ARRAYS = "path", "x_key", "y_key", "x_test_key", "y_test_key", "task", "test_fraction"
_OF_TABLES = (
    *("test_path", "target", "id_column", "time_column", "step", "channels", "exclude", "group_column"),
    *("file_column", "split_column", "window"),
)


@register("dataset", "series")
@dataclass(eq=False, repr=False)
class Series(OwnData):
    """Time series in files of the UCR and UEA archives, in a table or in an array; of one or several channels.

    Points have shape (length,), or (length, channels) for several channels.

    Parameters
    ----------
    path : str or None
        A .ts, .arff or .tsv file as timeseriesclassification.com has them, or a CSV or Parquet file. Beside
        ``NAME_TRAIN.ts``, ``NAME_TEST.ts`` is the test part; a folder ``NAME`` stands for these two files. Or an .npz
        or .mat file with series in one array, whose test part and array ``groups`` are those of
        :class:`~orbit.data.arrays.Arrays`.
    bundled : str or None
        In place of ``path``, a data set that the package aeon ships, such as ``OSULeaf``.
    test_path : str or None
        A file with the test part; None: that beside ``path``, else a random part of the data.
    target : str or list of str
        Column of a table with the class or the number to predict; several make a multi-output regression. If a
        table in wide form has no column ``label``, its only column of text is the class.
    id_column : str or None
        Column of a table that says which series a row belongs to: rows of the same value are one series (long form).
        None: every row is a series, whose values are its columns in their order (wide form).
    time_column : str or None
        Column by which rows of a series are sorted, numbers or dates; None: they are in order.
    step : float > 0 or None
        Time between the samples of a point, in the unit of ``time_column``, seconds for dates: series are interpolated
        linearly at equal steps, whatever the times of their rows. None: rows are samples, with a warning where their
        times are uneven.
    file_column : str or None
        Column of a table that lists files with one series each, such as ``records/17.csv``: CSV files with the samples
        in their rows and a column for each channel, with or without names, .npy, .npz or .mat files. ``target``,
        ``group_column`` and ``split_column`` are columns of the table that lists them, ``time_column`` of the files.
    split_column : str or None
        Column of a table with the part of each series: train, test or val.
    window : int >= 1 or None
        Samples of a point, where long series are cut into windows, one after the other; those of one series are in
        one part, training or test, and what is left at its end is not used. Not for arrays.
    channels : list of str or None
        Columns with values, of a table or of the files that it lists; None: all that have no other use.
    exclude : list of str or None
        Columns of a table to leave out.
    group_column : str or None
        Column of a table that says which series belong together, e.g. those of one patient: they are in one part,
        training or test, and in one fold of ``selection=k_fold``.
    unequal : {"pad", "stretch", "refuse"}
        Series of other lengths than ``length``. ``pad``: the last value is repeated, which is nothing to a patch whose
        mean is removed, and what is longer is cut with a warning. ``stretch``: they are interpolated linearly.
    length : int >= 1 or None
        Samples of a point; None: those of the longest training series.
    x_key, y_key : str
        Names of the series, shape (n, length), (n, length, channels) or (n, channels, length), and of the classes or
        numbers in an .npz or .mat file. NaN at the end of a series is after its end. Of files that a table lists
        ``x_key`` names the one series, unless there is only one array of several numbers.
    x_test_key, y_test_key : str or None
        The same of a test part in that file; None: ``X_test`` and ``y_test``, if it has them.
    channels_first : bool or None
        Whether series in an .npz or .mat file have shape (n, channels, length). None: if that has fewer channels than
        samples.
    missing : {"refuse", "interpolate"}
        Missing values between others; those at the end of all channels are after the end of the series.
    task : {"auto", "classification", "regression"}
        ``auto``: as the file says, else classification for strings, booleans and at most 100 distinct integers, and
        regression for others.
    test_fraction : float in (0, 1)
        Share of the series in the random test part.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> import tempfile
    >>> from orbit.data import Series
    >>> path = tempfile.mkdtemp() + "/mine.csv"
    >>> with open(path, "w") as file:
    ...     _ = file.write("label,t0,t1,t2\\n" + "up,1,2,3\\ndown,3,2,\\n" * 10)
    >>> Series(path).load(0).X_train.shape  # the second row is shorter
    (15, 3)
    """

    default_representation = {"name": "raw"}
    default_group = {"name": "identity"}
    shown_as = "series"
    reading = ("columns",)
    ignored_keys = Loader.ignored_keys  # for ``bundled``

    path: str | None = None
    target: str | list[str] = DEFAULT_TARGET
    _: KW_ONLY
    bundled: str | None = None
    test_path: str | None = None
    id_column: str | None = None
    time_column: str | None = None
    step: PositiveFloat | None = None
    channels: list[str] | None = None
    exclude: list[str] | None = None
    group_column: str | None = None
    file_column: str | None = None
    split_column: str | None = None
    window: PositiveInt | None = None
    unequal: Unequal = "pad"
    length: PositiveInt | None = None
    missing: Literal["refuse", "interpolate"] = "refuse"
    x_key: str = "X"
    y_key: str = "y"
    x_test_key: str | None = None
    y_test_key: str | None = None
    channels_first: bool | None = None

    @classmethod
    def default_encoder(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": "by_size", "axes": 1}

    def check(self) -> None:
        super().check()
        if self.path is not None and self.bundled is not None:
            raise self.wrong("bundled", "null where path is given")
        if self.time_column is not None and self.id_column is None and self.file_column is None:
            raise InputError("dataset.id_column: expected the column that names the series, with dataset.time_column")
        if self.file_column is not None and self.id_column is not None:
            raise self.wrong("id_column", "null where file_column is given: a file is a series")
        if self.split_column is not None and self.test_path is not None:
            raise self.wrong("split_column", "null where test_path is given")
        if self._in_arrays(self.path):
            given = [name for name in _OF_TABLES if getattr(self, name) not in (None, DEFAULT_TARGET)]
            if given:
                raise InputError(
                    f"dataset.{given[0]}: is for tables; of an .npz or .mat file dataset.y_key names the classes or "
                    "numbers, and an array 'groups' says which series belong together"
                )
        if self.step is not None and self.time_column is None:
            raise InputError("dataset.time_column: expected the column with the times, with dataset.step")

    def input_files(self) -> list[Path]:
        try:
            return [file for file in self._files() if file is not None]
        except InputError:
            return existing([self.path, self.test_path])

    def check_files(self) -> None:
        self._files()

    def _files(self) -> tuple[Path, Path | None]:
        """The file with the training part, or with both parts, and that with the test part or None."""
        if self.bundled is not None:
            return _pair(_bundled(self.bundled), "dataset.bundled")
        path = self._required("path", f"{_KINDS} with series, or a folder with NAME_TRAIN.ts and NAME_TEST.ts")
        place = user_path(path, "dataset.path")
        if self._in_arrays(path):
            return existing_file(path, "dataset.path"), None
        if place.is_dir():
            return _pair(place, "dataset.path")
        _check_kind(file := existing_file(path, "dataset.path"), "dataset.path")
        if self.test_path is not None:
            _check_kind(test := existing_file(self.test_path, "dataset.test_path"), "dataset.test_path")
            return file, test
        beside = file.with_name(file.stem.removesuffix(_TRAIN) + _TEST + file.suffix)
        return file, beside if file.stem.endswith(_TRAIN) and beside.is_file() else None

    @staticmethod
    def _in_arrays(path: str | None) -> bool:
        return path is not None and Path(path).suffix.lower() in _ARRAYS

    def _load(self, random_state: RandomState) -> Dataset:
        if self._in_arrays(self.path):
            return self._load_arrays(random_state)
        file, test_file = self._files()
        found = self._read(file, self.channels)
        y, task = self._targets(found, file, self.task)
        folds = None
        if test_file is None or self.split_column is not None:
            test_file = None
            train, test, folds = self._divide(y, task, random_state, file.name, found.clusters, found.parts)
            fitted, tested, y, y_test = found.take(train), found.take(test), y[train], y[test]
        else:
            fitted, tested = found, self._read(test_file, found.columns or None)
            y_test = self._targets(tested, test_file, task)[0]
        check_clusters(fitted.clusters, tested.clusters, "dataset.group_column")
        length = self.length or self.window or max(map(len, fitted.series))
        X = self._points(fitted.series, length, file.name)
        X_test = self._points(tested.series, length, (test_file or file).name)
        source = f"series in {file.name}" + ("" if test_file is None else f" and {test_file.name}")
        reading = {"columns": found.columns} | ({"targets": self.target} if isinstance(self.target, list) else {})
        more: dict[str, Any] = {"folds": folds, "clusters": fitted.clusters, "reading": reading}
        more |= {"test_names": tested.names(self.group_column), "notes": note_of_unused(self, found.unused)}
        return Dataset(self.name, task, X, y, X_test, y_test, source, **more)

    def _load_arrays(self, random_state: RandomState) -> Dataset:
        data = _ArraysOfSeries(**{name: getattr(self, name) for name in _OF_ARRAYS}, ended=self._ended).load(
            random_state
        )
        shape = data.X_train.shape[1:]
        if len(shape) not in (1, 2):
            raise InputError(f"dataset.x_key: expected series of shape (length,) or (length, channels), found {shape}")
        first = self._has_channels_first(shape)
        X, X_test = (_upright(points, first) for points in (data.X_train, data.X_test))
        source = f"series in {data.source}" + (f", {shape[0]} channels of {shape[1]} samples" if first else "")
        reading: dict[str, Any] = {"columns": [], "channels_first": first}
        return replace(data, name=self.name, X_train=X, X_test=X_test, source=source, reading=reading)

    def _has_channels_first(self, shape: tuple[int, ...]) -> bool:
        given = self.channels_first
        return len(shape) == 2 and shape[0] < shape[1] if given is None else given

    def _ended(self, X: np.ndarray) -> np.ndarray:
        """Series without missing values, which are the end of a shorter series, as in tables."""
        if X.dtype.kind != "f" or X.ndim not in (2, 3) or not np.isnan(X).any():
            return X
        first = self._has_channels_first(X.shape[1:])
        upright = _upright(X, first)
        series = upright.reshape(*upright.shape[:2], -1)
        with located(str(self.path)):
            found = [*trimmed(series, [*map(str, range(len(X)))], self.missing == "interpolate")]
        return _upright(self._points(found, upright.shape[1], str(self.path)).reshape(upright.shape), first)

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        if self.file_column is None and Path(path).suffix.lower() not in (*ARCHIVE, *_TABLES):
            points = super()._read_points(path, form)
            return replace(points, X=_upright(self._ended(points.X), form.get("channels_first", False)))
        place = user_path(path, self.label())
        file = place if self.file_column is not None and place.is_dir() else existing_file(path, self.label())
        found = self._read(file, form["columns"] or None, with_targets=False)
        length, *channels = form["shape"]
        if (has := found.series[0].shape[1]) != (n := channels[0] if channels else 1):
            raise InputError(f"{path}: expected series of {n} channels, found {has}")
        names = {} if found.starts is None else {"start": found.starts}
        return Points(self._points(found.series, length, path), found.ids, names)

    def _read(self, file: Path, channels: list[str] | None, with_targets: bool = True) -> Recorded:
        """What a file holds, series without missing values."""
        with located(str(file)):
            if file.suffix.lower() in ARCHIVE:
                found = read_archive(file)
            else:
                group, split = (self.group_column, self.split_column) if with_targets else (None, None)
                used = channels, self.id_column, self.time_column, group, self.exclude or [], self.step
                columns = Columns(names_of(self.target), *used, self.file_column, split, self.x_key)
                if with_targets or self.file_column is None or lists_files(file, self.file_column):
                    found = read_series_table(file, columns, self.task)
                else:
                    found = read_series_files(file, columns)
            if len({values.shape[1] for values in found.series}) > 1:
                raise InputError("expected series of the same number of channels, found others")
            found = replace(found, series=[*trimmed(found.series, found.ids, self.missing == "interpolate")])
            return found if self.window is None else found.cut(self.window)

    def _targets(self, found: Recorded, file: Path, task: str) -> tuple[np.ndarray, Task]:
        y = found.y
        if y is None:
            how = "has no classes" if file.suffix.lower() in ARCHIVE else f"has no column {self.target!r}"
            raise InputError(f"dataset.target: {file.name} {how}; a table needs dataset.target=COLUMN")
        if task == "auto":
            return y, "regression" if found.is_regression else guess_task(y)
        if task == "regression" and y.dtype.kind == "U":
            try:
                y = y.astype(float)
            except ValueError as error:
                raise InputError(f"dataset.task: {file.name} has classes that are no numbers ({error})") from error
        return y, "regression" if task == "regression" else "classification"

    def _points(self, series: list[np.ndarray], length: int, path: str) -> np.ndarray:
        lengths = np.array([*map(len, series)])
        check_fits("dataset.length", f"{len(series):,} series of {length:,}", 4 * len(series) * length)
        others = np.flatnonzero(lengths != length)
        if len(others) and self.unequal == "refuse":
            raise InputError(
                f"{path}: expected series of {length} samples, found {lengths[others[0]]}; set dataset.unequal=pad or "
                "stretch"
            )
        if self.unequal == "pad" and (longer := int((lengths > length).sum())):
            warnings.warn(
                f"{path}: {longer} of {len(series)} series are cut to {length} samples, the longest has "
                f"{lengths.max()}; dataset.length={lengths.max()} keeps all, dataset.unequal=stretch resamples",
                stacklevel=2,
            )
        return of_length(series, length, self.unequal)


@dataclass(eq=False, repr=False)
class _ArraysOfSeries(Arrays):
    """Arrays whose points are series, as ``ended`` returns them."""

    _: KW_ONLY
    ended: Callable[[np.ndarray], np.ndarray]

    def _points(self, X: np.ndarray, where: str) -> np.ndarray:
        return self.ended(super()._points(X, where))


def _upright(X: np.ndarray, channels_first: bool) -> np.ndarray:
    """Series of shape (n, length) or (n, length, channels)."""
    return np.ascontiguousarray(X.swapaxes(1, 2)) if channels_first and X.ndim == 3 else X


def _check_kind(file: Path, name: str) -> None:
    if file.suffix.lower() not in (*ARCHIVE, *_TABLES):
        raise InputError(f"{name}: expected {_KINDS}, found {file.name}")


def _pair(folder: Path, name: str) -> tuple[Path, Path]:
    """The training and the test file of a folder that has the name of the data set."""
    for suffix in ARCHIVE:
        train, test = (folder / f"{folder.resolve().name}{part}{suffix}" for part in (_TRAIN, _TEST))
        if train.is_file() and test.is_file():
            return train, test
    expected = f"{folder.resolve().name}{_TRAIN}.ts and {folder.resolve().name}{_TEST}.ts"
    raise DataFileError(f"{name}: expected {expected} (or .arff, .tsv) in {folder.absolute()}, found none")


def _bundled(name: str) -> Path:
    """The folder of a data set that aeon ships; aeon is not imported, which takes seconds."""
    spec = importlib.util.find_spec("aeon")
    if spec is None or spec.origin is None:
        raise DataFileError("dataset.bundled: the data sets are in the package aeon: pip install aeon")
    base = Path(spec.origin).parent / "datasets" / "data"
    names = sorted(path.name for path in base.iterdir() if (path / f"{path.name}{_TRAIN}.ts").is_file())
    if name not in names:
        found = f"{name!r}{suggestion(name, names)} aeon has {', '.join(names)}"
        raise DataFileError(f"dataset.bundled: expected a data set that aeon ships, found {found}")
    return base / name
