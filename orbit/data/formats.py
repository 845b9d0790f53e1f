"""Files that hold parts of a data set: .npy files, mapped into memory, and Parquet files, read by row groups."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs, parquet

from orbit.core.errors import DataFileError, InputError, shortened, suggestion
from orbit.core.fingerprint import Fingerprint, of_listing
from orbit.core.paths import user_path
from orbit.data.checks import check_finite, real_dtype
from orbit.data.files import check_links, read_arrays, readable
from orbit.data.rows import as_real

_SUFFIXES = {".npy": ".npy", ".parquet": ".parquet", ".pq": ".parquet"}

# Bytes of an .npy file that are read at a time.
_BLOCK_BYTES = 2**22

# Kind of a target -> its type in memory.
_TARGETS: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64, "U": str}


@dataclass(frozen=True)
class Header:
    """What is known of a part before its rows are read.

    Attributes
    ----------
    starts : the first row of each block that is read at a time, and the number of rows
    form : columns, types and shape of a row, equal in all parts that have rows
    features : the columns of points; None where they have no names
    shape, dtype, y_shape, y_dtype : of points and targets in memory, if the part has rows
    """

    starts: list[int]
    form: str
    features: list[str] | None
    shape: Sequence[int] = ()
    dtype: str = ""
    y_shape: Sequence[int] = ()
    y_dtype: str = ""

    @property
    def rows(self) -> int:
        return self.starts[-1]

    @property
    def blocks(self) -> list[int]:
        """The blocks that have rows."""
        return np.flatnonzero(np.diff(self.starts)).tolist()


class Folder:
    """The parts in a folder or at a URL, sorted by name.

    Parameters
    ----------
    path : str
        A folder or one file: a local path, or a URL that ``pyarrow.fs.FileSystem.from_uri`` takes.
    key : str
        The parameter that has the path, for errors.

    Attributes
    ----------
    files : dict of str to pyarrow.fs.FileInfo
        By path below the folder. Names that begin with a dot or an underscore are no parts.
    suffix : ".npy" or ".parquet"

    Raises
    ------
    DataFileError
        If it cannot be read, has no parts, files of other kinds or of both, or a link that leads to nothing or back.
    """

    def __init__(self, path: str, key: str) -> None:
        if re.match(r"\w+://[^/]*@", path):
            raise DataFileError(f"{key}: expected a URL without credentials, which are read from the environment")
        self.path, self.key = path, key
        with readable(f"{key}: {path}", "cannot be read"):
            self.system, root = _file_system(path, key)
            self.is_local = isinstance(self.system, fs.LocalFileSystem)
            infos = [self.system.get_file_info(root)]
            if infos[0].type == fs.FileType.Directory:
                if self.is_local:
                    check_links((path for path in Path(root).rglob("*") if not _is_hidden(path.name)), key)
                infos = self.system.get_file_info(fs.FileSelector(root, recursive=True))
            else:
                root = root.rpartition("/")[0]
            files = {info.path[len(root) :].lstrip("/"): info for info in infos if info.type == fs.FileType.File}
        self.files = {name: files[name] for name in sorted(files) if not any(map(_is_hidden, name.split("/")))}
        kinds = {_SUFFIXES.get(Path(name).suffix.lower()): name for name in self.files}
        if len(kinds) != 1 or None in kinds:
            found = " and ".join(kinds.values()) or "none"
            raise DataFileError(f"{key}: expected parts of one kind, .npy or .parquet (.pq), in {path}, found {found}")
        (self.suffix,) = kinds

    def fingerprints(self) -> list[Fingerprint]:
        """The fingerprints of the parts, which are not read: by size and time of modification in place of content."""
        return [of_listing(f"{self.path}/{name}", info.size, info.mtime_ns or 0) for name, info in self.files.items()]


@dataclass
class Format(ABC):
    """Reads the parts of a folder.

    Parameters
    ----------
    folder : Folder
    label : str
        Name of the data set in errors.
    """

    folder: Folder
    label: str

    def fingerprints(self) -> list[Fingerprint]:
        """The fingerprints of all parts, those of targets included."""
        return self.folder.fingerprints()

    def header(self, name: str) -> Header:
        """The header of a part, whose errors name it."""
        with readable(f"{self.folder.key}: part {name}", "cannot be read"):
            return self._header(name)

    def read(self, name: str, header: Header, block: int, points: bool = True) -> tuple[Any, Any]:
        """Points and targets of a block of a part, checked; without ``points`` None and targets.

        Raises
        ------
        InputError
            For values that are missing, NaN or infinite, and rows of another length, naming the part.
        """
        where, rows = f"{self.label}: part {name}", range(*header.starts[block : block + 2])
        with readable(where, "cannot be read"):
            X, y = self._read(name, header, block, points)
        if X is not None:
            if X.shape != (expected := (len(rows), *header.shape)):
                raise InputError(f"{where}: expected points of shape {expected} from row {rows[0]} on, found {X.shape}")
            X = as_real(X, np.dtype(header.dtype), where)
        for values, what in ((X, "X"), (y, "y")):
            if values is not None and values.dtype.kind == "f":
                check_finite([(rows, values)], f"{where}: {what}")
        return X, y

    @abstractmethod
    def _header(self, name: str) -> Header: ...

    @abstractmethod
    def _read(self, name: str, header: Header, block: int, points: bool) -> tuple[Any, Any]: ...


@dataclass
class NpyFormat(Format):
    """Points in .npy files, shape (n, *shape), and targets in files of the same names in another folder, both local.

    Parameters
    ----------
    folder, label : see :class:`Format`
    targets : Folder or None
        The folder of targets, shape (n,) or (n, k); None: points only.
    """

    targets: Folder | None

    def __post_init__(self) -> None:
        folder, targets = self.folder, self.targets or self.folder
        for each in (folder, targets):
            if not each.is_local:
                raise DataFileError(f"{each.key}: expected a local folder, .npy parts are not read from URLs")
        if different := sorted({*folder.files} ^ {*targets.files}):
            raise DataFileError(
                f"{targets.key}: expected parts of the same names as in {folder.key}, found {different[0]} in one only"
            )

    def fingerprints(self) -> list[Fingerprint]:
        return super().fingerprints() + (self.targets.fingerprints() if self.targets is not None else [])

    def _header(self, name: str) -> Header:
        X, where = _mapped(self.folder, name), f"{self.folder.key}: part {name}"
        if X.ndim < 2 or math.prod(X.shape[1:]) == 0:
            raise InputError(f"{where}: expected an array of shape (n, ...) with at least 2 axes, found {X.shape}")
        dtype, form = real_dtype(X.dtype, where).str, f"X {X.dtype} of shape {X.shape[1:]}"
        starts = [*range(0, len(X), max(1, _BLOCK_BYTES // X[:1].nbytes)), len(X)] if len(X) else [0]
        made = Header(starts, form, None, X.shape[1:], dtype)
        if self.targets is None:
            return made
        y, where = _mapped(self.targets, name), f"{self.targets.key}: part {name}"
        if y.shape[:1] != X.shape[:1] or y.ndim > 2 or y.shape[1:] == (0,) or y.dtype.kind not in _TARGETS:
            expected = f"a number or string, or several numbers, as target of each of {len(X)} points"
            raise InputError(f"{where}: expected {expected}, found {y.dtype} of shape {y.shape}")
        y_shape = () if y.shape[1:] == (1,) else y.shape[1:]
        return replace(made, form=f"{form}, y {_dtype(y)} of shape {y_shape}", y_shape=y_shape, y_dtype=_dtype(y))

    def _read(self, name: str, header: Header, block: int, points: bool) -> tuple[Any, Any]:
        # files are mapped again for every block: the pages of a permanent map count as memory of the process
        rows = slice(*header.starts[block : block + 2])
        X = np.array(_mapped(self.folder, name)[rows]) if points else None
        if self.targets is None:
            return X, None
        y = np.array(_mapped(self.targets, name)[rows])
        return X, y.reshape(len(y), *header.y_shape)


@dataclass
class ParquetFormat(Format):
    """Rows of Parquet files, of which one row group is read at a time.

    Parameters
    ----------
    folder, label : see :class:`Format`
    targets : list of str
        Columns of targets; empty: points only.
    features : list of str or None
        Columns of points, of numbers or of lists of numbers, side by side; None: all that are no targets.
    shape : list of int or None
        Shape of a point; None: a vector.
    """

    targets: list[str]
    features: Sequence[str] | None
    shape: Sequence[int] | None

    def _header(self, name: str) -> Header:
        with self._opened(name) as file:
            schema, groups = file.schema_arrow, map(file.metadata.row_group, range(file.num_row_groups))
            starts = np.cumsum([0, *(group.num_rows for group in groups)]).tolist()
            features = self._columns(name, schema.names)
            first = next(file.iter_batches(1, columns=[*features, *self.targets]), None)
        if not starts[-1]:
            return Header(starts, "", features)
        X, y = self._arrays(first, name, features)
        if self.shape is not None and math.prod(self.shape) != X.shape[1]:
            raise InputError(
                f"dataset.shape: expected {X.shape[1]} numbers, those of part {name}, found {list(self.shape)}"
            )
        form = ", ".join(f"{each} {schema.field(each).type}" for each in (*features, *self.targets))
        dtype = real_dtype(X.dtype, f"{self.folder.key}: part {name}").str
        made = Header(starts, f"{form}, points of {X.shape[1]}", features, self.shape or X.shape[1:], dtype)
        return made if y is None else replace(made, y_shape=y.shape[1:], y_dtype=_dtype(y))

    def _columns(self, name: str, names: list[str]) -> list[str]:
        """The columns of points of a part."""
        if twice := [each for each in dict.fromkeys(names) if names.count(each) > 1]:
            raise InputError(f"{self.folder.key}: part {name} has several columns of one name: {', '.join(twice)}")
        features = [each for each in names if each not in self.targets] if self.features is None else [*self.features]
        for key, wanted in (("target", self.targets), ("features", features)):
            if lacking := [each for each in wanted if each not in names]:
                hint = suggestion(lacking[0], names) if len(lacking) == 1 else "."
                found = f"{', '.join(lacking)}{hint} It has {', '.join(names)}"
                raise InputError(f"dataset.{key}: part {name} has no column {found}")
        if not features:
            raise InputError(f"dataset.features: part {name} has no columns besides the target")
        return features

    def _read(self, name: str, header: Header, block: int, points: bool) -> tuple[Any, Any]:
        features = list(header.features or []) if points else []
        with self._opened(name) as file:
            table = file.read_row_group(block, [*features, *self.targets], use_threads=False)
        X, y = self._arrays(table, name, features)
        return X if X is None or X[:1].size != math.prod(header.shape) else X.reshape(-1, *header.shape), y

    def _arrays(self, table: Any, name: str, features: Sequence[str]) -> tuple[Any, Any]:
        """Points, shape (n, width), and targets, as far as there are columns of them."""
        where = f"part {name}: column"
        blocks = [_numbers(table.column(each), "dataset.features", f"{where} {each}") for each in features]
        targets = [_target(table.column(each), f"{where} {each}") for each in self.targets]
        y = np.column_stack(targets).astype(np.float64) if len(targets) > 1 else next(iter(targets), None)
        return np.concatenate(blocks, axis=1) if blocks else None, y

    def _opened(self, name: str) -> parquet.ParquetFile:
        return parquet.ParquetFile(self.folder.system.open_input_file(self.folder.files[name].path))


def check_equal(names: Sequence[str], headers: Sequence[Header], key: str) -> None:
    """Raise ``InputError`` naming the first part whose form differs from that of the first one; some have rows."""
    (name, first), *others = [pair for pair in zip(names, headers, strict=True) if pair[1].rows]
    for other, header in others:
        if header.form != first.form:
            forms = f"{shortened(first.form)} in {name} and {shortened(header.form)} in {other}"
            raise InputError(f"{key}: expected parts of one form, found {forms}")


def _dtype(y: np.ndarray) -> str:
    """The type of targets, without the length of strings, which differs between parts."""
    return "U" if y.dtype.kind == "U" else y.dtype.str


def _mapped(folder: Folder, name: str) -> np.ndarray:
    return read_arrays(folder.files[name].path, "X", mapped=True, name=folder.key)["X"]


def _file_system(path: str, key: str) -> tuple[Any, str]:
    """The file system of a path or URL, and the path on it."""
    if "://" in path:
        system, root = fs.FileSystem.from_uri(path)
        return system, root.rstrip("/")
    return fs.LocalFileSystem(), str(user_path(path, key).absolute())


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _numbers(column: Any, key: str, what: str) -> np.ndarray:
    """A column of numbers or of lists of numbers, shape (n, width)."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = column.storage if isinstance(column, pa.ExtensionArray) else column
    if column.null_count:
        raise InputError(f"{key}: {what} has {column.null_count} missing values; remove those rows")
    if pa.types.is_fixed_size_list(column.type) or pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) > 1:
            found = f"{lengths[0]} and {lengths[1]} numbers"
            raise InputError(f"{key}: {what}: expected lists of one length, found {found}")
        return _numbers(column.flatten(), key, what).reshape(len(column), -1 if len(column) else 0)
    column = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf":
        raise InputError(f"{key}: {what} holds {column.type}, expected numbers")
    return values[:, None]


def _target(column: Any, what: str) -> np.ndarray:
    """A column of targets: booleans, int64, float64 or strings, shape (n,)."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if (pa.types.is_string(kind) or pa.types.is_large_string(kind)) and not column.null_count:
        return np.array(column.to_pylist(), str)
    values = _numbers(column, "dataset.target", what)
    if values.shape[1] != 1:
        raise InputError(f"dataset.target: {what} holds {column.type}, expected one number or string in each row")
    return values[:, 0].astype(_TARGETS[values.dtype.kind])
