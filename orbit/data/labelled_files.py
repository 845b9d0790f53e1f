"""A user's own files: in one folder for each class, or listed in a table with their classes or numbers."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from orbit.core.errors import DataFileError, InputError, encodable, located, shortened
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.base import Dataset, OwnData, Points, Task, names_of
from orbit.data.files import check_links, existing, existing_file, read_each
from orbit.data.splits import TEST, VALIDATION, folders_of_parts, given_parts

if TYPE_CHECKING:  # pandas is imported when a table is read
    import pandas as pd

# Of a file that lists others.
_LIST = ".csv"


@dataclass(frozen=True)
class Listed:
    """Files with their targets.

    Attributes
    ----------
    files : list of n paths
    y : array, shape (n,) or (n, k)
    task : {"classification", "regression"}
    parts : array of "train", "val" and "test", shape (n,), or None where the test part is still to be drawn
    clusters : array, shape (n,), of what files belong together, or None
    units : dict of str to str
        The unit of each target that a table has with one.
    unused : list of str
        Columns of the table that are not read.
    """

    files: list[Path]
    y: np.ndarray
    task: Task
    parts: np.ndarray | None = None
    clusters: np.ndarray | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)

    def take(self, rows: np.ndarray) -> Listed:
        """The files at the indices ``rows``."""
        parts, clusters = (None if values is None else values[rows] for values in (self.parts, self.clusters))
        return Listed([self.files[i] for i in rows], self.y[rows], self.task, parts, clusters, self.units, self.unused)


@dataclass(eq=False, repr=False)
class LabelledFiles(OwnData):
    """Files in class folders, ``FOLDER/CLASS/NAME``, or of parts, ``FOLDER/train/CLASS/NAME``; or listed in a table.

    A subclass reads the files.

    Parameters
    ----------
    path : str or None
        A folder with a folder for each class; or with folders ``train`` and ``test`` (or ``training`` and ``testing``)
        of such folders, and perhaps ``val`` (``valid``, ``validation``), whose files are training points too, and the
        validation part of ``selection=given``; without ``test`` they are the test part. With a ``manifest``, the folder
        that its paths start from; None is the folder of the manifest. Required without a manifest.
    manifest : str or None
        A CSV file that lists the files: a column with their paths, and columns with targets.
    file_column : str
        Column of the manifest with the paths.
    target : str or list of str
        Column of the manifest with the class or the number to predict; several make a multi-output regression.
    split_column : str or None
        Column of the manifest with the part of each file: train, test or val, spelled as the folders.
    group_column : str or None
        Column of the manifest that says which files belong together, e.g. those of one patient: they are in one part,
        training or test, and in one fold of ``selection=k_fold``.
    task : {"auto", "classification", "regression"}
        Of a manifest. ``auto``: classification for strings, booleans and at most 100 distinct integers, else
        regression.
    recursive : bool
        Whether files in folders inside the folder of a class are read too.
    on_error : {"refuse", "skip"}
        ``skip`` leaves out files that cannot be read; a warning counts and names them.
    test_fraction : float in (0, 1)
        Share of the files in the random test part if no test part is given.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Attributes
    ----------
    thing : str
        What a file is, with an s for many.
    suffixes : tuple of str
        Suffixes of the files that are read, in lower case.
    shown : str
        The suffixes as messages name them.
    """

    reads = ("folder",)
    thing: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    shown: ClassVar[str]

    path: str | None = None
    _: KW_ONLY
    manifest: str | None = None
    file_column: str = "file"
    target: str | list[str] = "label"
    split_column: str | None = None
    group_column: str | None = None
    recursive: bool = False
    on_error: Literal["refuse", "skip"] = "refuse"

    @abstractmethod
    def _read(self, files: list[Path], form: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """The points of the files, float32, the indices of the files that were read, and the ``reading``.

        ``form`` is that of the points that a model was fitted to, or None for those of a new data set.
        """

    def _fitted_scale(self, X: np.ndarray, train: np.ndarray) -> dict[str, Any]:
        """What points are scaled by, from those at the indices ``train``: a part of ``reading``."""
        return {}

    def _apply_scale(self, X: np.ndarray, form: Mapping[str, Any]) -> None:
        """Scale points in place by what :meth:`_fitted_scale` found."""

    @abstractmethod
    def _how(self, reading: Mapping[str, Any]) -> str:
        """How files were read, in a few words."""

    def input_files(self) -> list[Path]:
        return existing([self.path, self.manifest])

    def check_files(self) -> None:
        if self.manifest is not None:
            existing_file(self.manifest, "dataset.manifest")
            return
        folder = self._folder()
        check_links(folder.iterdir(), "dataset.path")  # before a folder train or test is missed
        parts = folders_of_parts(folder)
        if len(parts) == 1:
            raise InputError(
                f"dataset.path: {folder.absolute()} has a folder {parts.popitem()[1].name}; expected train and test"
            )
        for part in parts.values() or [folder]:
            files = self._class_files(part)
            for checked in (part, *(part / name for name in files)):
                check_links(checked.iterdir(), "dataset.path")
            if not any(files.values()):
                others = {path.suffix for name in files for path in (part / name).iterdir() if path.is_file()} - {""}
                found = f"only {shortened(', '.join(sorted(others)))}" if others else "none directly"
                instead = f"{found} in {shortened(', '.join(files))}" if files else "no folder"
                expected = f"a folder for each class with {self.shown} files in {part.absolute()}"
                is_deeper = not self.recursive and self._of_kind(part.rglob("*/*/*"))
                advice = "; set dataset.recursive=true to read the folders in them" if is_deeper else ""
                raise DataFileError(f"dataset.path: expected {expected}, found {instead}{advice}")

    def _load(self, random_state: RandomState) -> Dataset:
        self.check_files()
        listed = self._of_folders() if self.manifest is None else self._of_manifest(Path(self.manifest).expanduser())
        listed = self._each_point(listed)
        try:
            X, read, reading = self._read(listed.files, None)
        except DataFileError as error:
            if self.on_error == "skip":
                raise
            raise DataFileError(f"{error}; dataset.on_error=skip leaves out such files") from error
        listed = listed.take(read)
        about = listed.clusters, listed.parts
        train, test, folds = self._divide(listed.y, listed.task, random_state, self._name(), *about)
        reading |= self._fitted_scale(X, train)
        if self.manifest is not None:
            reading["targets"] = names_of(self.target)
        self._apply_scale(X, reading)
        source = f"{self.thing}s in {self._name()}, {self._how(reading)}"
        units = ", ".join(f"{name} ({unit})" for name, unit in listed.units.items())
        notes = [f"units removed: {units}"] if units else []
        notes += note_of_unused(self, listed.unused)
        folder = Path(self.path or self.manifest or "").expanduser()
        names = _names(listed.files, folder if self.path else folder.parent)
        more = {"folds": folds, "clusters": listed.clusters, "reading": reading, "notes": notes}
        more |= {"test_names": {"file": np.array(names)[test]}}
        return Dataset.of_parts(self.name, listed.task, X, listed.y, train, test, source, **more)

    def _points_of(self, file: Path) -> list[Path]:
        """The names of the points in a file; where it holds one, of the file."""
        return [file]

    def _file_name(self, text: str) -> str:
        """The name of a file, or of a point in it, as a table has it."""
        return text

    def _on_disk(self, file: Path) -> Path:
        """The file that has a point of :meth:`_points_of`."""
        return file

    def _each_point(self, listed: Listed) -> Listed:
        points = [self._points_of(file) for file in listed.files]
        rows = np.repeat(np.arange(len(points)), [len(each) for each in points])
        return replace(listed.take(rows), files=[point for each in points for point in each])

    def _name(self) -> str:
        return Path(self.manifest or self.path or "").name

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        base = user_path(path, self.label())
        if base.suffix.lower() == _LIST:
            with located(base.name):
                files, folder = self._listed_files(self._table(base, [])[0], base, base.parent), base.parent
        elif base.is_file() and not base.name.lower().endswith(self.suffixes):
            return super()._read_points(path, form)
        else:
            files, folder = self._new_files(base), base.parent if base.is_file() else base
        files = [point for file in files for point in self._points_of(file)]
        X, read, _ = self._read(files, form)
        self._apply_scale(X, form)
        return Points(X, _names([files[i] for i in read], folder))

    def _new_files(self, base: Path) -> list[Path]:
        """The files in a folder, or the single one."""
        files = [base] if base.is_file() else self._of_kind(base.rglob("*"))
        if base.is_dir():
            others = sorted(path for path in {*base.rglob("*")} - {*files} if path.is_file())
            _warn_about(base, others, f"only {self.shown} files are read")
        if not files:
            expected = f"a folder with {self.shown} files, one such file, or a {_LIST} file that lists them"
            raise DataFileError(f"{base}: expected {expected}, found none")
        return files

    def _each(self, files: list[Path], work: Callable[[int], None]) -> np.ndarray:
        """Call ``work`` with the index of every file; the indices of those that could be read."""
        return read_each(len(files), work, f"{self.thing}s", self.on_error == "skip")

    def _folder(self) -> Path:
        given = self._required("path", f"a folder with a folder of {self.thing}s for each class")
        folder = user_path(given, "dataset.path")
        if not folder.is_dir():
            raise DataFileError(f"dataset.path: expected a folder at {folder.absolute()}, found none")
        return folder

    def _of_folders(self) -> Listed:
        folder = self._folder()
        parts = folders_of_parts(folder)
        if not parts:
            files, y = self._labelled(folder)
            return Listed(files, y, "classification")
        _warn_about(folder, sorted({*folder.iterdir()} - {*parts.values()}), f"only {', '.join(parts)} are read")
        if TEST not in parts:
            parts[TEST] = parts.pop(VALIDATION)
        found = {part: self._labelled(where) for part, where in parts.items()}
        files = [file for some, _ in found.values() for file in some]
        y = np.concatenate([labels for _, labels in found.values()])
        return Listed(files, y, "classification", np.repeat([*found], [len(labels) for _, labels in found.values()]))

    def _of_manifest(self, manifest: Path) -> Listed:
        targets = names_of(self.target)
        with located(f"dataset.manifest: {manifest.name}"):
            table, units = self._table(manifest, targets)
        base = manifest.parent if self.path is None else self._folder()
        with located("dataset.manifest"):
            files = self._listed_files(table, manifest, base)
        y = np.column_stack([table[column] for column in targets]) if len(targets) > 1 else table[targets[0]].to_numpy()
        y = y if y.dtype.kind in "biuf" else y.astype(str)
        parts = None if self.split_column is None else given_parts(table[self.split_column], "split_column")
        clusters = None if self.group_column is None else table[self.group_column].to_numpy(dtype=str)
        task = "regression" if units and self.task == "auto" else self._task(y)
        used = {self.file_column, *targets, self.split_column, self.group_column}
        return Listed(files, y, task, parts, clusters, units, [name for name in table if name not in used])

    def _table(self, file: Path, targets: list[str]) -> tuple[pd.DataFrame, dict[str, str]]:
        """The table that lists files, with their targets, parts and groups, or without ``targets`` the files alone.

        Targets with a unit are numbers; also these units.
        """
        from orbit.data.frames import require_values, units_of_targets
        from orbit.data.table_files import csv_options, read_table  # here, because pandas takes half a second
        from orbit.data.units import without_units

        about = {"split_column": self.split_column, "group_column": self.group_column} if targets else {}
        named = [(key, name) for key, name in {"file_column": self.file_column, **about}.items() if name is not None]
        texts = [name for _, name in named]
        labels = targets if len(targets) == 1 and self.task != "regression" else []
        options = csv_options(file, [*texts, *targets], texts, {}, {})
        table = read_table(file, texts, labels, options)
        require_values(table, [*named, *(("target", name) for name in targets)], file)
        units = units_of_targets(table, targets, self.task, options)
        return without_units(table, units, options), units

    def _listed_files(self, table: pd.DataFrame, of: Path, base: Path) -> list[Path]:
        files = [base / self._file_name(name) for name in table[self.file_column]]
        if missing := [file for each in files if not (file := self._on_disk(each)).is_file()]:
            raise DataFileError(
                f"{len(missing)} of {len(files)} files that {of.name} names do not exist, e.g. "
                f"{missing[0].absolute()}; paths start from dataset.path, or from the folder of {of.name}"
            )
        return files

    def _labelled(self, folder: Path) -> tuple[list[Path], np.ndarray]:
        """The files of a part, and their classes."""
        files = self._class_files(folder)
        self._warn_about_others(folder, files)
        labels = [encodable(name) for name, found in files.items() for _ in found]
        return [file for found in files.values() for file in found], np.array(labels)

    def _class_files(self, folder: Path) -> dict[str, list[Path]]:
        """The files of every class, sorted by name."""
        folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        return {path.name: self._of_kind(path.rglob("*") if self.recursive else path.iterdir()) for path in folders}

    def _of_kind(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(p for p in paths if p.name.lower().endswith(self.suffixes) and not p.name.startswith("."))

    def _warn_about_others(self, folder: Path, files: Mapping[str, list[Path]]) -> None:
        """Warn about class folders without files, what is in them beside files, and files in no class folder."""
        inside = {name: {*(folder / name).iterdir()} for name in files}
        read = {path for found in files.values() for path in found}
        read |= {parent for path in read for parent in path.parents}
        others = [path for name in files for path in sorted(inside[name] - read)]
        empty = [folder / name for name, found in files.items() if not found]
        loose = [path for path in self._of_kind(folder.iterdir()) if path.is_file()]
        where = "in" if self.recursive else "directly in"
        advice = "" if self.recursive or not any(path.is_dir() for path in others) else "; set recursive=true"
        _warn_about(
            folder, others + empty + loose, f"only {self.shown} files {where} the folder of a class are read{advice}"
        )


def note_of_unused(loader: OwnData, columns: list[str]) -> list[str]:
    """Columns of a table of files that may say the part of a file, or which belong together, as of one patient."""
    keys = {"split_column": "training and test part", "group_column": "files that belong together"}
    how = [f"dataset.{key} names one of {what}" for key, what in keys.items() if getattr(loader, key) is None]
    return [f"columns not used: {shortened(', '.join(columns))}; {', '.join(how)}"] if columns and how else []


def _names(files: Iterable[Path], folder: Path) -> list[str]:
    """The paths of files from a folder on, as text that can be written to files."""
    return [encodable(os.path.relpath(file, folder)) for file in files]


def _warn_about(folder: Path, left_out: list[Path], read: str) -> None:
    names = [str(path.relative_to(folder)) for path in left_out if not path.name.startswith(".")]
    if names:
        warnings.warn(
            f"{folder}: {len(names)} files and folders are left out, e.g. {encodable(shortened(names[0]))}; {read}",
            stacklevel=2,
        )
