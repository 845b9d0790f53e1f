"""Files of time series: .ts, .arff and .tsv as the UCR and UEA archives keep them, and tables in wide and long form."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from orbit.core.errors import DataFileError, InputError, located, shortened
from orbit.data.files import readable
from orbit.data.series_lists import SUFFIXES, samples_of_files
from orbit.data.splits import given_parts

if TYPE_CHECKING:  # pandas is imported when a table is read
    import pandas as pd

Unequal = Literal["pad", "stretch", "refuse"]

#: Suffixes of the formats of the archives, in the order in which a folder is searched for them.
ARCHIVE = (".ts", ".arff", ".tsv")

#: Column of a table with the class or number, unless the user names another.
DEFAULT_TARGET = "label"

# Share of the times between samples that may differ from the median by more than half of it, where they are even.
_UNEVEN = 0.01

# A value of a .ts file with time stamps is (time, value).
_STAMPED = re.compile(r"\(([^()]*)\)")


@dataclass(frozen=True)
class Recorded:
    """Series of a file.

    Attributes
    ----------
    series : list of n arrays, shape (length, channels), float64, NaN where a value is missing
    ids : list of n str; their numbers where a file has no names
    y : array, shape (n,) or (n, k), or None where the file has no targets
    is_regression : whether the file says that its targets are numbers
    clusters : array, shape (n,), of what series belong together, or None
    columns : list of str, the columns of a table that hold values
    parts : array of "train", "val" and "test", shape (n,), or None
    unused : list of str, the columns of a table that lists files which are not read
    starts : int array, shape (n,), of the first sample of windows of longer series, or None
    """

    series: list[np.ndarray]
    ids: list[str] = field(default_factory=list)
    y: np.ndarray | None = None
    is_regression: bool = False
    clusters: np.ndarray | None = None
    columns: list[str] = field(default_factory=list)
    parts: np.ndarray | None = None
    starts: np.ndarray | None = None
    unused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ids.extend(map(str, range(len(self.ids), len(self.series))))

    def take(self, rows: np.ndarray) -> Recorded:
        """The series at the indices ``rows``, without their targets."""
        clusters, starts = (None if each is None else each[rows] for each in (self.clusters, self.starts))
        return Recorded([self.series[i] for i in rows], [self.ids[i] for i in rows], clusters=clusters, starts=starts)

    def cut(self, window: int) -> Recorded:
        """Windows of ``window`` samples, one after the other, of which those of one series belong together.

        What is left at the end of a series is not used; a shorter series stays as it is.
        """
        counts = [max(1, len(values) // window) for values in self.series]
        rows = np.repeat(np.arange(len(counts)), counts)
        starts = window * np.concatenate([np.arange(count) for count in counts])
        y, clusters, parts = (None if each is None else each[rows] for each in (self.y, self.clusters, self.parts))
        return replace(
            self,
            series=[self.series[row][start : start + window] for row, start in zip(rows, starts, strict=True)],
            ids=[self.ids[row] for row in rows],
            y=y,
            clusters=np.array(self.ids)[rows] if clusters is None else clusters,
            parts=parts,
            starts=starts,
        )

    def names(self, group_column: str | None) -> dict[str, np.ndarray]:
        """What names the series in a table of predictions."""
        found = {"series": np.array(self.ids)}
        if self.clusters is not None and group_column is not None:
            found[group_column] = self.clusters
        return found if self.starts is None else found | {"start": self.starts}


@dataclass(frozen=True)
class Columns:
    """Columns of a table of series; ``values`` None are all that have no other use, ``targets`` may be absent.

    ``step`` is the time between samples to which series are interpolated, None for samples as they are. Of a table that
    lists files, ``file`` is the column of their paths, and ``x_key`` the name of the array in one.
    """

    targets: list[str]
    values: list[str] | None = None
    id: str | None = None
    time: str | None = None
    group: str | None = None
    exclude: list[str] = field(default_factory=list)
    step: float | None = None
    file: str | None = None
    split: str | None = None
    x_key: str = "X"

    @property
    def others(self) -> set[str | None]:
        return {*self.targets, self.id, self.time, self.group, self.file, self.split, *self.exclude}


def read_archive(file: Path) -> Recorded:
    """The series of a .ts, .arff or .tsv file, with their classes or numbers.

    A .ts file says whether it has classes, numbers or neither. The last attribute of an .arff file and the first column
    of a .tsv file are the classes.

    Raises
    ------
    DataFileError
        If it is not such a file, in one line with the file and the series.
    """
    reader = {".ts": _read_ts, ".arff": _read_arff, ".tsv": _read_tsv}[file.suffix.lower()]
    with readable(file.absolute(), f"is not a readable {file.suffix} file"):
        found = reader(file)
    if not found.series:
        raise DataFileError(f"{file.absolute()} has no series")
    return found


def _read_ts(file: Path) -> Recorded:
    header, rows = dict[str, list[str]](), list[str]()
    with open(file, encoding="utf-8") as lines:
        for line in map(str.strip, lines):
            if not line or line.startswith(("#", "%")):
                continue
            if "data" in header:
                rows.append(line)
            elif line.startswith("@"):
                key, *values = line[1:].split()
                header[key.lower()] = values
            else:
                raise ValueError(f"expected @data before the first series, found {shortened(line)!r}")
    says = {key for key, values in header.items() if values and values[0].lower() == "true"}
    has_target = bool(says & {"classlabel", "targetlabel"})
    series, labels = [], []
    for i, row in enumerate(rows):
        *channels, label = re.split(r"(?<=\)):" if "timestamps" in says else ":", row)
        if not has_target:
            channels.append(label)
        with located(f"{file.absolute()}, series {i + 1}"):
            series.append(_stacked([_numbers(each) for each in channels]))
        labels.append(label.strip())
    if not has_target:
        return Recorded(series)
    is_regression = "targetlabel" in says
    return Recorded(series, y=np.array(labels, float if is_regression else str), is_regression=is_regression)


def _numbers(channel: str) -> list[float]:
    values = [each.rpartition(",")[2] for each in found] if (found := _STAMPED.findall(channel)) else channel.split(",")
    try:
        return [np.nan if value.strip() in ("?", "") else float(value) for value in values]
    except ValueError as error:
        raise DataFileError(f"expected numbers separated by commas ({error})") from error


def _stacked(channels: list[list[float]]) -> np.ndarray:
    if not channels or len({*map(len, channels)}) > 1:
        lengths = ", ".join(map(str, map(len, channels))) or "none"
        raise DataFileError(f"expected channels of one length, found {shortened(lengths)}")
    return np.array(channels, float).T


def _read_arff(file: Path) -> Recorded:
    from scipy.io import arff

    with open(file, encoding="utf-8") as lines:
        table, _ = arff.loadarff(lines)
    *names, label = table.dtype.names
    if table.dtype[names[0]].kind == "O":  # several channels, as one relational attribute
        series = [np.array([[*channel] for channel in relation], float).T for relation in table[names[0]]]
    else:
        series = [*np.array([table[name] for name in names], float).T[..., None]]
    y = table[label]
    if y.dtype.kind == "S":
        return Recorded(series, y=np.char.decode(y, "utf-8"))
    return Recorded(series, y=y.astype(float), is_regression=True)


def _read_tsv(file: Path) -> Recorded:
    import pandas as pd

    table = pd.read_csv(file, sep="\t", header=None, dtype={0: str})
    values = table.iloc[:, 1:].to_numpy(float)
    return Recorded([*values[..., None]], y=table[0].to_numpy(str))


def read_series_table(file: Path, columns: Columns, task: str) -> Recorded:
    """The series of a CSV or Parquet file: one in each row, or with ``columns.id`` one in all rows of the same id.

    With ``columns.file`` one in each of the files that it lists.

    Raises
    ------
    InputError
        If it cannot be read, columns are missing, or rows of one series have several targets.
    """
    from orbit.data.frames import require
    from orbit.data.table_files import csv_options, read_table

    texts = [name for name in (columns.id, columns.file, columns.group, columns.split) if name is not None]
    labels = columns.targets if len(columns.targets) == 1 and task != "regression" else []
    named = [*texts, *((columns.file is None and columns.values) or columns.targets)]
    table = read_table(file, texts, labels, csv_options(file, named, texts, {}, {}))
    require(table, texts, "set its key")
    if columns.file is None:
        return _of_table(table, columns, task)
    kept = [name for name in (*columns.targets, columns.group, columns.split) if name is not None and name in table]
    found = _of_table(samples_of_files(table, file.parent, columns.file, kept, columns.x_key), columns, task)
    return replace(found, unused=[name for name in table if name not in (columns.file, *kept)])


def read_series_files(path: Path, columns: Columns) -> Recorded:
    """The series of all files in a folder, or the one of a file, without targets.

    Raises
    ------
    InputError
        If there are none, or they cannot be read.
    """
    import pandas as pd

    folder = path if path.is_dir() else path.parent
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    names = [str(file.relative_to(folder)) for file in files if file.suffix.lower() in SUFFIXES]
    if not names:
        raise DataFileError(f"expected {', '.join(SUFFIXES)} files with one series each, found none")
    assert columns.file is not None
    table = pd.DataFrame({columns.file: names})
    return _of_table(samples_of_files(table, folder, columns.file, [], columns.x_key), columns, "auto")


def _of_table(table: pd.DataFrame, columns: Columns, task: str) -> Recorded:
    """The series of a table in wide or long form, or of the samples of files."""
    from orbit.data.frames import require

    columns = columns if columns.file is None else replace(columns, id=columns.file)
    require(table, [*([columns.time] if columns.time else []), *columns.exclude], "set its key")
    require(table, columns.values or [], "the model was fitted to it, or dataset.channels names it")
    columns = _with_found_target(table, columns)
    names = columns.values or [name for name in table if name not in columns.others]
    if not names:
        raise InputError("the table has no columns of values besides target, id, time, group and those left out")
    return _wide(table, columns, names, task) if columns.id is None else _long(table, columns, names, task)


def _with_found_target(table: pd.DataFrame, columns: Columns) -> Columns:
    """Columns with the only column of text as the target, if a table in wide form lacks the default one."""
    from pandas.api.types import is_numeric_dtype

    if columns.id is not None or columns.targets != [DEFAULT_TARGET] or DEFAULT_TARGET in table:
        return columns
    others = columns.others.union(columns.values or [])
    texts = [name for name in table if name not in others and not is_numeric_dtype(table[name])]
    return replace(columns, targets=texts) if len(texts) == 1 else columns


def _wide(table: pd.DataFrame, columns: Columns, names: list[str], task: str) -> Recorded:
    from orbit.data.frames import numbers

    values = numbers(table[names], _WIDE_ADVICE)
    return Recorded([*values[..., None]], [], *_about(table, columns, task), names, _parts(table, columns))


def _long(table: pd.DataFrame, columns: Columns, names: list[str], task: str) -> Recorded:
    from orbit.data.frames import numbers, refuse_missing

    refuse_missing(table[[name for name in (columns.id, columns.time) if name]], "remove those rows")
    if columns.time is not None:
        table = table.assign(**{columns.time: _times(table[columns.time])})
        twice = table.duplicated([columns.id, columns.time])
        if twice.any() and columns.step is None:
            row = table[twice].iloc[0]
            raise InputError(
                f"series {row[columns.id]} has two rows of the same time, {row[columns.time]}; remove one, or set "
                "dataset.step, which takes their mean"
            )
        table = table.sort_values(columns.time, kind="stable")
    groups = table.groupby(columns.id, sort=False)
    if columns.values is None:
        _warn_about_channels(groups, names, columns.time is not None)
    if columns.time is not None and columns.step is None:
        _warn_about_steps(groups[columns.time])
    first = groups.head(1).sort_index()
    about = [name for name in (*columns.targets, columns.group, columns.split) if name in table]
    for name in about:
        if len(several := np.flatnonzero(groups[name].nunique(dropna=False) > 1)):
            which = list(groups.groups)[several[0]]
            raise InputError(f"column {name} has several values in the rows of series {which}, expected one")
    values = {key: numbers(rows[names], _LONG_ADVICE) for key, rows in groups}
    if columns.time is not None and columns.step is not None:
        values = {key: _at_steps(_seconds(rows[columns.time]), values[key], columns.step) for key, rows in groups}
    ids = first[columns.id].tolist()
    known = _about(first, columns, task)
    return Recorded([values[key] for key in ids], [*map(str, ids)], *known, names, _parts(first, columns))


def _warn_about_channels(groups: Any, names: list[str], has_times: bool) -> None:
    """Warn of columns that grow from row to row in every series, as times do, or keep one value, as a patient does."""
    if groups.size().min() <= 2:
        return
    grows = [
        name for name in names if all(values.is_monotonic_increasing and values.is_unique for _, values in groups[name])
    ]
    if grows and not has_times:
        warnings.warn(
            f"column {grows[0]} grows from row to row in every series, and is taken for a channel; "
            "set dataset.time_column if it is the time",
            stacklevel=2,
        )
    if keeps := [name for name in names if groups[name].nunique(dropna=False).max() == 1]:
        warnings.warn(
            f"column {keeps[0]} has one value in each series, and is taken for a channel; if it says which series "
            f"belong together, set dataset.group_column={keeps[0]}, and dataset.exclude=[{keeps[0]}] leaves it out",
            stacklevel=2,
        )


def _warn_about_steps(times: Any) -> None:
    """Warn of times that differ between samples, which are taken as evenly spaced; of dates in seconds."""
    steps = _seconds(times.diff().dropna())
    if len(steps) == 0:
        return
    middle = np.median(steps)
    if (share := np.mean(np.abs(steps - middle) > middle / 2)) > _UNEVEN:
        warnings.warn(
            f"{100 * share:.0f} % of the times between samples, {steps.min():.3g} to {steps.max():.3g}, differ from the"
            f" median {middle:.3g} by more than half of it, and samples are taken as evenly spaced; "
            f"dataset.step={middle:.3g} interpolates them at equal steps",
            stacklevel=2,
        )


def _seconds(times: pd.Series) -> np.ndarray:
    """Times as numbers; dates and differences of dates in seconds."""
    if times.dtype.kind in "mM":
        return times.to_numpy().astype(f"{times.dtype.kind}8[ns]").astype(np.int64) / 1e9
    return times.to_numpy(float)


def _at_steps(times: np.ndarray, values: np.ndarray, step: float) -> np.ndarray:
    """Values of shape (samples, channels) interpolated linearly at equal steps from the first to the last time."""
    at = times[0] + step * np.arange(int((times[-1] - times[0]) / step * (1 + 1e-9)) + 1)
    channels = []
    for channel in values.T:
        known = ~np.isnan(channel)
        moments, where = np.unique(times[known], return_inverse=True)
        means = np.bincount(where, channel[known]) / np.bincount(where)
        channels.append(np.interp(at, moments, means) if len(moments) else np.full(len(at), np.nan))
    return np.column_stack(channels)


_WIDE_ADVICE = (
    "set dataset.target if it is the class, dataset.exclude to leave it out, or dataset.id_column if a series has many "
    "rows"
)
_LONG_ADVICE = "leave it out with dataset.exclude, or name the columns of values in dataset.channels"


def _about(rows: pd.DataFrame, columns: Columns, task: str) -> tuple[np.ndarray | None, bool, np.ndarray | None]:
    """Targets, whether they are known to be numbers, and clusters, by rows of a table with one for each series."""
    from orbit.data.frames import targets

    has_targets = any(name in rows for name in columns.targets)
    y = targets(rows, columns.targets, task) if has_targets else None
    return y, False, None if columns.group is None else rows[columns.group].to_numpy(str)


def _parts(rows: pd.DataFrame, columns: Columns) -> np.ndarray | None:
    return None if columns.split is None else given_parts(rows[columns.split], "split_column")


def _times(values: pd.Series) -> pd.Series:
    """Times as they can be sorted: numbers as they are, texts as dates."""
    import pandas as pd

    if values.dtype.kind in "iufM":
        return values
    try:
        return pd.to_datetime(values)
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"column {values.name} (time) expected numbers or dates ({reason})") from error


def trimmed(series: Iterable[np.ndarray], names: list[str], interpolate: bool) -> Iterator[np.ndarray]:
    """Series without the missing values after their end, and those inside interpolated linearly on request.

    Raises
    ------
    InputError
        For values that are missing or infinite otherwise, naming the series.
    """
    for name, values in zip(names, series, strict=True):
        known = np.flatnonzero(~np.isnan(values).all(1))
        values = values[: known[-1] + 1] if len(known) else values[:0]
        missing = np.isnan(values)
        if np.isinf(values).any() or not len(values) or missing.all(0).any():
            raise InputError(f"series {name} has infinite values, or a channel without values; correct or remove it")
        if missing.any():
            if not interpolate:
                raise InputError(
                    f"series {name} lacks {missing.sum()} of {values.size} values; set dataset.missing=interpolate"
                )
            import pandas as pd

            values = pd.DataFrame(values).interpolate(limit_direction="both").to_numpy()
        yield values


def of_length(series: list[np.ndarray], length: int, unequal: Unequal) -> np.ndarray:
    """Series as one array, float32, shape (n, length), or (n, length, channels) for several channels.

    Examples
    --------
    >>> of_length([np.array([[1.0], [3.0]])], 3, "pad"), of_length([np.array([[1.0], [3.0]])], 3, "stretch")
    (array([[1., 3., 3.]], dtype=float32), array([[1., 2., 3.]], dtype=float32))
    """
    X = np.empty((len(series), length, series[0].shape[1]), np.float32)
    for out, values in zip(X, series, strict=True):
        if unequal == "stretch" and len(values) != length:
            at, places = np.linspace(0, len(values) - 1, length), np.arange(len(values))
            out[:] = np.column_stack([np.interp(at, places, channel) for channel in values.T])
        else:
            out[: len(values)] = values[:length]
            out[len(values) :] = values[-1]
    return X[..., 0] if X.shape[2] == 1 else X
