"""Series that are files of their own, as recorders write them, listed in a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orbit.core.errors import DataFileError, InputError, located, shortened
from orbit.data.checks import real_numbers
from orbit.data.files import read_arrays, readable

if TYPE_CHECKING:  # pandas is imported when a table is read
    import pandas as pd

_TABLES, _ARRAYS = (".csv", ".txt", ".parquet", ".pq"), (".npy", ".npz", ".mat")

#: Suffixes of a file with one series.
SUFFIXES = (*_TABLES, *_ARRAYS)


def samples_of_files(table: pd.DataFrame, folder: Path, file_column: str, kept: list[str], x_key: str) -> pd.DataFrame:
    """The samples of all listed files, one in each row, with the columns ``kept`` of the table that lists them.

    Parameters
    ----------
    table : data frame with a column of paths, which start from ``folder``
    file_column : the column of paths
    kept : columns of the table that say what a series is, such as its class
    x_key : name of the array in an .npz or .mat file that has several

    Raises
    ------
    InputError
        If files do not exist, cannot be read, or have other columns than the first.
    """
    import pandas as pd

    files = [folder / name for name in table[file_column]]
    if missing := [file for file in files if not file.is_file()]:
        raise DataFileError(
            f"{len(missing)} of {len(files)} files of column {file_column} do not exist, e.g. "
            f"{missing[0].absolute()}; paths start from the folder of the table that lists them"
        )
    frames, names, options = list[pd.DataFrame](), list[str](), dict[str, Any]()
    for row, file in enumerate(files):
        with located(file.name):
            frame = _samples(file, x_key, options)
            if names and [*frame] != names:
                raise InputError(f"expected columns {shortened(', '.join(names))}, found {shortened(', '.join(frame))}")
            names = [*frame]
            if both := {*names} & {file_column, *kept}:
                raise InputError(f"column {both.pop()} is in the table that lists the files too; rename one")
        frames.append(frame.assign(**{name: table[name].iloc[row] for name in (file_column, *kept)}))
    return pd.concat(frames, ignore_index=True)


def lists_files(path: Path, file_column: str) -> bool:
    """Whether a path is that of a table with a column of that name, and not of a file or folder of series."""
    from orbit.data.table_files import csv_options, read_table

    if not path.is_file() or path.suffix.lower() not in _TABLES:
        return False
    return file_column in read_table(path, [], [], csv_options(path, [file_column], [], {}, {}))


def _samples(file: Path, x_key: str, options: dict[str, Any]) -> pd.DataFrame:
    """The samples of a file, one in each row; ``options`` of CSV files are those found in the first one."""
    import pandas as pd

    from orbit.data.table_files import csv_options, read_table

    suffix = file.suffix.lower()
    if suffix in _ARRAYS:
        values = _array(file, x_key)
        return pd.DataFrame(values, columns=[*map(str, range(values.shape[1]))])
    if suffix not in _TABLES:
        raise InputError(f"expected a {', '.join(SUFFIXES)} file with one series")
    options |= options or csv_options(file, [], [], {}, {})
    if not suffix.startswith(".p"):
        with readable(file.absolute(), "is not a readable table"):
            first = pd.read_csv(file, header=None, nrows=1, dtype=str, **options).iloc[0]
            if all(map(_is_number, first)):  # no names, but values
                return pd.read_csv(file, header=None, **options).rename(columns=str)
    return read_table(file, [], [], options)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _array(file: Path, x_key: str) -> np.ndarray:
    """The series of shape (length, channels) in a file: the array of that name, or the only one of several numbers."""
    arrays = read_arrays(file, x_key)
    several = [name for name, values in arrays.items() if values.size > 1 and values.dtype.kind in "biuf"]
    name = x_key if x_key in arrays or len(several) != 1 else several[0]
    if name not in arrays:
        raise InputError(f"has no array {x_key!r}, but {shortened(', '.join(arrays))}; set dataset.x_key=NAME")
    values = np.atleast_1d(real_numbers(arrays[name], repr(name)).squeeze())
    if values.ndim > 2:
        raise InputError(f"expected one series, shape (length,) or (length, channels), found {values.shape}")
    values = values.reshape(len(values), -1)
    return values.T if values.shape[0] < values.shape[1] else values
