"""A user's own files, in one folder for each class."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from orbit.core.errors import DataFileError, InputError, encodable, shortened
from orbit.core.params import Fraction
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.base import Dataset, Loader, Points
from orbit.data.files import existing
from orbit.data.splits import split_off_test

_PARTS = ("train", "test")


class ClassFolders(Loader):
    """Files in class folders, ``FOLDER/CLASS/NAME``; or in ``FOLDER/train/CLASS`` and ``FOLDER/test/CLASS``.

    A subclass reads the files.

    Attributes
    ----------
    thing : str
        What a file is, with an s for many.
    suffixes : tuple of str
        Suffixes of the files that are read, in lower case.
    shown : str
        The suffixes as messages name them, joined by ``{}``.
    """

    ignored_keys = {}
    thing: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    shown: ClassVar[str]

    path: str | None
    test_fraction: Fraction

    @abstractmethod
    def _read(self, files: list[Path], form: Mapping[str, Any] | None) -> tuple[np.ndarray, dict[str, Any]]:
        """The points of all files, float32, shape (n, *shape), and the ``reading`` of the data set.

        ``form`` is that of the points that a model was fitted to, or None for those of a new data set.
        """

    @abstractmethod
    def _how(self) -> str:
        """How files are read, in a word or two."""

    def input_files(self) -> list[Path]:
        return existing([self.path])

    def check_files(self) -> None:
        folder = self._folder()
        self._check_links(folder)  # before a folder train or test is missed
        found = [part for part in _PARTS if (folder / part).is_dir()]
        if len(found) == 1:
            raise InputError(f"path: {folder.absolute()} has a folder {found[0]}; expected both of train, test")
        for part in [folder / name for name in found] or [folder]:
            files = self._class_files(part)
            for checked in (part, *(part / name for name in files)):
                self._check_links(checked)
            if not any(files.values()):
                instead = f"none directly in {shortened(', '.join(files))}" if files else "no folder"
                raise DataFileError(
                    f"path: expected a folder for each class with {self.shown.format('or')} files in "
                    f"{part.absolute()}, found {instead}"
                )

    def _load(self, random_state: RandomState) -> Dataset:
        self.check_files()
        folder = self._folder()
        has_parts = (folder / "test").is_dir()
        if has_parts:
            others = sorted({*folder.iterdir()} - {folder / part for part in _PARTS})
            _warn_about(folder, others, "only the folders train and test are read")
        parts = [self._labelled(part) for part in ([folder / name for name in _PARTS] if has_parts else [folder])]
        labelled = [pair for part in parts for pair in part]
        X, reading = self._read([file for file, _ in labelled], None)
        y = np.array([encodable(name) for _, name in labelled])
        rows: Any = slice(0, len(parts[0])), slice(len(parts[0]), None)
        if not has_parts:
            rows = split_off_test(y, "classification", self.test_fraction, random_state, str(self.path))
        train, test = rows
        source = f"{self.thing}s in {folder.name}, {self._how()}"
        return Dataset(self.name, "classification", X[train], y[train], X[test], y[test], source, reading=reading)

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        base = user_path(path, self.label())
        if base.is_file() and base.suffix.lower() not in self.suffixes:
            return super()._read_points(path, form)
        files = [base] if base.is_file() else self._of_kind(base.rglob("*"))
        if base.is_dir():
            others = sorted(path for path in {*base.rglob("*")} - {*files} if path.is_file())
            _warn_about(base, others, f"only {self.shown.format('and')} files are read")
        if not files:
            raise DataFileError(
                f"{path}: expected a folder with {self.shown.format('or')} files, or one such file, found none"
            )
        X, _ = self._read(files, form)
        return Points(X, [encodable(str(f.relative_to(base)) if f != base else f.name) for f in files])

    def _folder(self) -> Path:
        if self.path is None:
            raise InputError(f"path: expected a folder with a folder of {self.thing}s for each class, found none")
        folder = user_path(self.path, "path")
        if not folder.is_dir():
            raise DataFileError(f"path: expected a folder at {folder.absolute()}, found none")
        return folder

    def _labelled(self, folder: Path) -> list[tuple[Path, str]]:
        """The files of a part, each with its class."""
        files = self._class_files(folder)
        self._warn_about_others(folder, files)
        return [(file, name) for name, found in files.items() for file in found]

    def _class_files(self, folder: Path) -> dict[str, list[Path]]:
        """The files of every class, sorted by name."""
        folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        return {path.name: self._of_kind(path.iterdir()) for path in folders}

    def _of_kind(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(p for p in paths if p.suffix.lower() in self.suffixes and not p.name.startswith("."))

    def _check_links(self, folder: Path) -> None:
        """Raise DataFileError for a broken or circular link in a folder, whose files would be left out."""
        for path in sorted(folder.iterdir()):
            if path.is_symlink() and not path.exists() and not path.name.startswith("."):
                raise DataFileError(
                    f"path: expected a folder or {self.thing} at {path.absolute()}, found a link to "
                    f"{path.readlink()}, which does not exist or is a link to itself"
                )

    def _warn_about_others(self, folder: Path, files: Mapping[str, list[Path]]) -> None:
        """Warn about class folders without files, what is in them beside files, and files in no class folder."""
        others = [path for name, found in files.items() for path in sorted({*(folder / name).iterdir()} - {*found})]
        empty = [folder / name for name, found in files.items() if not found]
        loose = [path for path in self._of_kind(folder.iterdir()) if path.is_file()]
        read = f"only {self.shown.format('and')} files directly in the folder of a class are read"
        _warn_about(folder, others + empty + loose, read)


def _warn_about(folder: Path, left_out: list[Path], read: str) -> None:
    names = [str(path.relative_to(folder)) for path in left_out if not path.name.startswith(".")]
    if names:
        warnings.warn(
            f"{folder}: {len(names)} files and folders are left out, e.g. {encodable(shortened(names[0]))}; {read}",
            stacklevel=2,
        )
