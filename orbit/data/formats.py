"""Files that hold parts of a data set, .npy or Parquet, on the file systems of pyarrow: found, checked and read."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs, parquet

from orbit.core.errors import DataFileError, InputError, shortened, suggestion
from orbit.core.fingerprint import Fingerprint, of_listing
from orbit.core.paths import user_path
from orbit.data.base import check_finite, real_dtype
from orbit.data.rows import as_real

SUFFIXES = (".npy", ".parquet", ".pq")

# Rows and bytes that are read at a time.
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 4096, 2**22

# Bytes of a column of a Parquet file that are read ahead.
_BUFFER = 2**16

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}

Block = tuple[np.ndarray | None, np.ndarray | None]  # points and targets of some rows, as far as they are wanted


@dataclass(frozen=True)
class Header:
    """What is known of a part before its rows are read.

    Attributes
    ----------
    rows : number of rows
    columns : name -> type and shape of an entry, equal in all parts
    features : the columns of points; None where they have no names
    shape : of a point
    dtype : of points in memory
    y_dtype : of targets in memory; None if they are strings or not read
    y_shape : of a target
    """

    rows: int
    columns: dict[str, str]
    features: list[str] | None
    shape: tuple[int, ...]
    dtype: np.dtype
    y_dtype: np.dtype | None
    y_shape: tuple[int, ...]


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
    names : list of str
        Paths of the parts below the folder. Names that begin with a dot or an underscore are no parts.

    Raises
    ------
    DataFileError
        If it cannot be read, has no parts, files of other kinds or of both, or a link that leads to nothing or back.
    """

    def __init__(self, path: str, key: str) -> None:
        if "***" in path:
            raise DataFileError(f"{key}: expected a URL without credentials, which are read from the environment")
        self.path, self.key = path, key
        try:
            self.system, self.root = _opened(path, key)
            found = self.system.get_file_info(self.root)
            if found.type == fs.FileType.NotFound:
                raise DataFileError(f"{key}: expected a folder with {_one_of(SUFFIXES)} parts at {path}, found none")
            single = found.type == fs.FileType.File
            if isinstance(self.system, fs.LocalFileSystem) and not single:
                _check_links(self.root, key)
            infos = [found] if single else self.system.get_file_info(fs.FileSelector(self.root, recursive=True))
        except (pa.ArrowException, OSError) as error:
            raise DataFileError(f"{key}: {path} cannot be read ({_reason(error)})") from error
        if single:
            self.root = self.root.rpartition("/")[0]
        self._files = {self.name(info.path): info for info in infos if info.type == fs.FileType.File}
        self.names = sorted(name for name in self._files if not any(map(_is_hidden, name.split("/"))))
        self._check_suffixes()

    @property
    def suffix(self) -> str:
        return ".npy" if self.names[0].lower().endswith(".npy") else ".parquet"

    def full(self, name: str) -> str:
        """The path of a part on the file system."""
        return self._files[name].path

    def fingerprints(self) -> list[Fingerprint]:
        """The fingerprints of the parts, which are not read: by size and time of modification in place of content."""
        infos = {name: self._files[name] for name in self.names}
        return [of_listing(f"{self.path}/{name}", info.size, info.mtime_ns or 0) for name, info in infos.items()]

    def name(self, path: str) -> str:
        """The name of the part of a path on the file system."""
        return path[len(self.root) :].lstrip("/")

    def _check_suffixes(self) -> None:
        if not self.names:
            raise DataFileError(f"{self.key}: expected {_one_of(SUFFIXES)} parts in {self.path}, found none")
        for name in self.names:
            if not name.lower().endswith(SUFFIXES):
                raise DataFileError(f"{self.key}: expected parts that end in {_one_of(SUFFIXES)}, found {name}")
        other = next((name for name in self.names if name.lower().endswith(".npy") != (self.suffix == ".npy")), None)
        if other is not None:
            raise DataFileError(f"{self.key}: expected parts of one kind, found {self.names[0]} and {other}")


class Format(ABC):
    """Reads the parts of a folder.

    Parameters
    ----------
    folder : Folder
    label : str
        Name of the data set in errors.
    """

    def __init__(self, folder: Folder, label: str) -> None:
        self.folder, self.label = folder, label

    def fingerprints(self) -> list[Fingerprint]:
        """The fingerprints of all parts, those of targets included."""
        return self.folder.fingerprints()

    def header(self, name: str) -> Header:
        """The header of a part, whose errors name it."""
        try:
            return self._header(name)
        except (pa.ArrowException, OSError, ValueError, EOFError) as error:
            if isinstance(error, InputError):
                raise
            raise DataFileError(f"{self.folder.key}: part {name} is not readable ({_reason(error)})") from error

    def blocks(self, name: str, header: Header, start: int = 0, points: bool = True) -> Iterator[Block]:
        """The rows of a part from ``start`` on, a few thousand at a time, checked; without ``points`` targets only.

        Raises
        ------
        InputError
            For values that are missing, NaN or infinite, and rows of another length, naming the part.
        """
        where, row = f"{self.label}: part {name}", start
        try:
            for X, y in self._blocks(name, header, start, points):
                for values, what in ((X, "X"), (y, "y")):
                    if values is not None and values.dtype.kind == "f":
                        check_finite([(range(row, row + len(values)), values)], f"{where}: {what}")
                row += len(y if X is None else X)  # type: ignore[arg-type]
                yield X, y
        except (pa.ArrowException, OSError) as error:
            raise DataFileError(f"{where} cannot be read after row {row} ({_reason(error)})") from error
        if row != header.rows:
            raise DataFileError(f"{where}: expected {header.rows} rows, found {row}; did it change meanwhile?")

    @abstractmethod
    def _header(self, name: str) -> Header: ...

    @abstractmethod
    def _blocks(self, name: str, header: Header, start: int, points: bool) -> Iterator[Block]: ...


class NpyFormat(Format):
    """Points in .npy files, shape (n, *shape), and targets in files of the same names in another folder.

    Parameters
    ----------
    folder, label : see :class:`Format`
    targets : Folder or None
        The folder of targets, shape (n,) or (n, k); None: points only.
    """

    def __init__(self, folder: Folder, label: str, targets: Folder | None) -> None:
        super().__init__(folder, label)
        self.targets = targets
        if targets is not None and folder.names != targets.names:
            different = sorted({*folder.names} ^ {*targets.names})
            raise DataFileError(
                f"{targets.key}: expected parts of the same names as in {folder.key}, found {different[0]} in one only"
            )

    def fingerprints(self) -> list[Fingerprint]:
        return super().fingerprints() + (self.targets.fingerprints() if self.targets is not None else [])

    def _header(self, name: str) -> Header:
        shape, dtype = self._stored(self.folder, name)
        where = f"{self.folder.key}: part {name}"
        if len(shape) < 2 or math.prod(shape[1:]) == 0:
            raise InputError(f"{where}: expected an array of shape (n, ...) with at least 2 axes, found {shape}")
        columns = {"X": f"{dtype} of shape {shape[1:]}"}
        if self.targets is None:
            return Header(shape[0], columns, None, shape[1:], real_dtype(dtype, where), None, ())
        y_shape, y_dtype = self._stored(self.targets, name)
        if y_shape[:1] != shape[:1]:
            raise InputError(
                f"{self.targets.key}: part {name}: expected a target for each of {shape[0]} points, found {y_shape}"
            )
        if len(y_shape) > 2 or y_shape[1:] == (0,) or y_dtype.kind not in "biufU":
            raise InputError(
                f"{self.targets.key}: part {name}: expected numbers or strings of shape (n,) or (n, k), found "
                f"{y_dtype} of shape {y_shape}"
            )
        y_shape = y_shape[1:] if y_shape[1:] != (1,) else ()
        columns["y"] = f"{'strings' if y_dtype.kind == 'U' else y_dtype} of shape {y_shape}"
        stored = None if y_dtype.kind == "U" else y_dtype
        return Header(shape[0], columns, None, shape[1:], real_dtype(dtype, where), stored, y_shape)

    def _stored(self, folder: Folder, name: str) -> tuple[tuple[int, ...], np.dtype]:
        """Shape and dtype of a file."""
        with folder.system.open_input_file(folder.full(name)) as file:
            (shape, dtype), size = _npy_header(file, f"{folder.key}: part {name}"), file.size()
            if len(shape) and size < (needed := file.tell() + math.prod(shape) * dtype.itemsize):
                raise DataFileError(f"{folder.key}: part {name}: expected {needed} bytes, found {size}; it is cut off")
        return shape, dtype

    def _blocks(self, name: str, header: Header, start: int, points: bool) -> Iterator[Block]:
        size = _rows_at_once(header)
        X = self._rows(self.folder, name, start, size) if points else None
        y = self._rows(self.targets, name, start, size) if self.targets is not None else None
        for _ in range(start, header.rows, size):
            targets = None if y is None else next(y)
            if targets is not None and targets.ndim == 2 and targets.shape[1] == 1:
                targets = targets[:, 0]
            yield None if X is None else as_real(next(X), header.dtype, f"{self.label}: part {name}"), targets

    def _rows(self, folder: Folder, name: str, start: int, size: int) -> Iterator[np.ndarray]:
        with folder.system.open_input_file(folder.full(name)) as file:
            shape, dtype = _npy_header(file, name)
            row_bytes = math.prod(shape[1:]) * dtype.itemsize
            file.seek(file.tell() + start * row_bytes)
            for first in range(start, shape[0], size):
                count = min(size, shape[0] - first)
                yield np.frombuffer(file.read(count * row_bytes), dtype).reshape(count, *shape[1:])


class ParquetFormat(Format):
    """Rows of Parquet files; a few thousand of them are decoded at a time.

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

    def __init__(
        self,
        folder: Folder,
        label: str,
        targets: Sequence[str],
        features: Sequence[str] | None,
        shape: Sequence[int] | None,
    ) -> None:
        super().__init__(folder, label)
        self.targets, self.features, self.shape = list(targets), features, shape

    def columns(self, name: str) -> list[str]:
        """The columns of points of a part."""
        if self.features is not None:
            return list(self.features)
        return [each for each in self._schema(name)[0].names if each not in self.targets]

    def _header(self, name: str) -> Header:
        (schema, rows), where = self._schema(name), f"part {name}"
        features = self.columns(name)
        for key, wanted in (("target", self.targets), ("features", features)):
            if lacking := [each for each in wanted if each not in schema.names]:
                hint = suggestion(lacking[0], schema.names) if len(lacking) == 1 else "."
                raise InputError(
                    f"{key}: {where} has no column {', '.join(lacking)}{hint} It has {', '.join(schema.names)}"
                )
        if not features:
            raise InputError(f"features: {where} has no columns besides the target")
        widths = [self._width(name, schema.field(each), rows) for each in features]
        dtypes = [np.dtype(_leaf(schema.field(each).type).to_pandas_dtype()) for each in features]
        dtype = real_dtype(np.result_type(*dtypes), f"{self.folder.key}: {where}")
        shape: tuple[int, ...] = (sum(widths),)
        if self.shape is not None:
            if math.prod(self.shape) != shape[0]:
                raise InputError(f"shape: expected {shape[0]} numbers, those of {where}, found {list(self.shape)}")
            shape = tuple(self.shape)
        columns = {each: f"{schema.field(each).type} of {width}" for each, width in zip(features, widths, strict=True)}
        columns |= {each: str(schema.field(each).type) for each in self.targets}
        y_dtypes = [_target_dtype(schema.field(each), where) for each in self.targets]
        if len(y_dtypes) > 1:
            if any(dtype is None for dtype in y_dtypes):
                raise InputError(f"target: {where}: expected several columns of numbers, found strings")
            return Header(rows, columns, features, shape, dtype, np.dtype(np.float64), (len(y_dtypes),))
        return Header(rows, columns, features, shape, dtype, y_dtypes[0] if y_dtypes else None, ())

    def _width(self, name: str, field: Any, rows: int) -> int:
        """Numbers in an entry of a column."""
        kind, width = _storage(field.type), 1
        if not _is_number(_leaf(kind)):
            raise InputError(
                f"features: part {name}: column {field.name} holds {field.type}, expected numbers or lists of numbers"
            )
        while _is_list(kind):
            if not pa.types.is_fixed_size_list(kind):  # its length is only known from its rows
                return self._width_of_first(name, field.name) if rows else 0
            kind, width = kind.value_type, width * kind.list_size
        return width

    def _width_of_first(self, name: str, column: str) -> int:
        with self._opened(name) as file:
            first = next(file.iter_batches(1, columns=[column]))
        return _numbers(first.column(0), f"features: part {name}: column {column}").shape[1]

    def _blocks(self, name: str, header: Header, start: int, points: bool) -> Iterator[Block]:
        features = self.columns(name) if points else []
        where, first = f"{self.label}: part {name}", 0
        with self._opened(name) as file:
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                skipped, first = max(start - first, 0), first + rows
                # the scanner of pyarrow.dataset would decode the whole group at once
                batches = file.iter_batches(
                    _rows_at_once(header), [group], [*features, *self.targets], use_threads=False
                )
                for batch in batches if skipped < rows else ():
                    if skipped < batch.num_rows:
                        kept = batch.slice(skipped)
                        X = self._points(kept, features, header, where) if points else None
                        yield X, self._targets(kept, where)
                    skipped = max(skipped - batch.num_rows, 0)

    def _points(self, batch: Any, features: list[str], header: Header, where: str) -> np.ndarray:
        blocks = [_numbers(batch.column(each), f"{where}: column {each}") for each in features]
        X = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
        if X.shape[1] != math.prod(header.shape):
            raise InputError(f"{where}: expected {math.prod(header.shape)} numbers in a row, found {X.shape[1]}")
        return as_real(X, header.dtype, where).reshape(-1, *header.shape)

    def _targets(self, batch: Any, where: str) -> np.ndarray | None:
        if not self.targets:
            return None
        columns = []
        for each in self.targets:
            column = batch.column(each)
            if column.null_count:
                raise InputError(f"{where}: column {each} has {column.null_count} missing targets; remove those rows")
            columns.append(_plain(column))
        return columns[0] if len(columns) == 1 else np.column_stack(columns).astype(np.float64)

    def _opened(self, name: str) -> parquet.ParquetFile:
        file = self.folder.system.open_input_file(self.folder.full(name))
        return parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER)

    def _schema(self, name: str) -> tuple[Any, int]:
        """The columns of a part, and its number of rows."""
        with self._opened(name) as file:
            return file.schema_arrow, file.metadata.num_rows


def check_equal(names: Sequence[str], columns: Sequence[dict[str, str]], key: str) -> None:
    """Raise ``InputError`` naming the first part whose columns differ from those of the first one."""
    first = columns[0]
    for name, found in zip(names, columns, strict=True):
        if list(found) != list(first):
            raise InputError(
                f"{key}: expected parts with equal columns, found {shortened(', '.join(first))} in {names[0]} and "
                f"{shortened(', '.join(found))} in {name}"
            )
        for column, kind in found.items():
            if kind != first[column]:
                raise InputError(
                    f"{key}: expected parts of one form, found {column} {first[column]} in {names[0]} and {kind} "
                    f"in {name}"
                )


def _opened(path: str, key: str) -> tuple[Any, str]:
    """The file system of a path or URL, and the path on it."""
    if "://" in path:
        system, root = fs.FileSystem.from_uri(path)
        return system, root.rstrip("/")
    return fs.LocalFileSystem(), str(user_path(path, key).absolute())


def _check_links(root: str, key: str) -> None:
    """Raise ``DataFileError`` for a link in a local folder of parts that leads to nothing, or to a folder around it.

    pyarrow lists the parts of a folder without the former, and those behind the latter many times.
    """
    for folder, folders, files in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        paths = [os.path.join(folder, name) for name in sorted([*folders, *files]) if not _is_hidden(name)]
        for path in filter(os.path.islink, paths):
            where = f"{key}: link {os.path.relpath(path, root)} leads to {os.readlink(path)}"
            if not os.path.exists(path):
                raise DataFileError(f"{where}: expected a part or a folder there, found none")
            if Path(folder).resolve().is_relative_to(os.path.realpath(path)):
                raise DataFileError(f"{where}: expected a part or another folder, found one that the link is in")


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _one_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return shortened(lines[0]) if lines else type(error).__name__


def _npy_header(file: Any, where: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of an .npy file, which is left at its first row."""
    version = np.lib.format.read_magic(file)
    if version not in _READERS:
        raise DataFileError(f"{where}: expected an .npy file of version 1 or 2, found {version[0]}.{version[1]}")
    shape, by_columns, dtype = _READERS[version](file)
    if dtype.hasobject:
        raise DataFileError(f"{where}: expected numbers or strings, found Python objects")
    if by_columns and len(shape) > 1:
        raise DataFileError(
            f"{where}: expected an array in C order, found Fortran order; save np.ascontiguousarray of it"
        )
    return shape, dtype


def _rows_at_once(header: Header) -> int:
    row_bytes = math.prod(header.shape) * header.dtype.itemsize
    return max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // row_bytes))


def _storage(kind: Any) -> Any:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_list(kind: Any) -> bool:
    return pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _leaf(kind: Any) -> Any:
    """The type of the entries of lists, at any depth."""
    kind = _storage(kind)
    while _is_list(kind):
        kind = kind.value_type
    return kind


def _is_number(kind: Any) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _target_dtype(field: Any, where: str) -> np.dtype | None:
    """The dtype of a column of targets; None for strings."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return None
    if not _is_number(kind):
        raise InputError(f"target: {where}: column {field.name} holds {field.type}, expected numbers or strings")
    if pa.types.is_boolean(kind):
        return np.dtype(bool)
    return np.dtype(np.int64 if pa.types.is_integer(kind) else np.float64)


def _plain(column: Any) -> np.ndarray:
    """A column of targets without missing values."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "O":
        return values.astype(str)
    return values if values.dtype.kind == "b" else values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)


def _numbers(column: Any, what: str) -> np.ndarray:
    """A column of numbers or of lists of numbers, shape (n, width)."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.null_count:
        raise InputError(f"{what} has {column.null_count} missing values; remove those rows")
    n = len(column)
    if not _is_list(column.type):
        return column.to_numpy(zero_copy_only=False)[:, None]
    inner = _numbers(column.flatten(), what)
    lengths: Any = () if pa.types.is_fixed_size_list(column.type) else np.unique(np.asarray(column.value_lengths()))
    if len(lengths) > 1:
        raise InputError(f"{what}: expected lists of one length, found {lengths[0]} and {lengths[-1]} numbers")
    return inner.reshape(n, -1) if n else inner.reshape(0, 0)
