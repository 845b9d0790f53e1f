"""A user's own pictures, in one folder per class."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageOps

from orbit.core.errors import DataFileError, InputError, ParameterError, shortened
from orbit.core.memory import check_fits
from orbit.core.params import Fraction, PositiveInt
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.base import Dataset, Loader, Points
from orbit.data.files import existing
from orbit.data.splits import split_off_test
from orbit.registry import register

_SUFFIXES = (".png", ".jpg", ".jpeg")
_PARTS = ("train", "test")


@register("dataset", "images")
class Images(Loader):
    """PNG and JPEG pictures in class folders, ``FOLDER/cat/1.png``; or in ``FOLDER/train/cat`` and ``FOLDER/test/cat``.

    Points have shape (height, width), or (height, width, 3) in colour, and values in [0, 1].

    Parameters
    ----------
    path : str or None
        The folder. Required.
    resize : [height, width] or None
        Size that all pictures are resized to, in pixels; None: pictures must have equal sizes.
    channels : {"grey", "rgb"}
        Transparent pixels are shown on black.
    test_fraction : float in (0, 1)
        Share of the pictures in the random test part if there are no folders ``train`` and ``test``.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    """

    pixels = True
    without_effect = {}

    def __init__(
        self,
        path: str | None = None,
        resize: list[PositiveInt] | None = None,
        channels: Literal["grey", "rgb"] = "grey",
        test_fraction: Fraction = 0.25,
        n_train: PositiveInt | None = None,
        n_test: PositiveInt | None = None,
    ) -> None:
        self.path = path
        self.resize = resize
        self.channels = channels
        self.test_fraction = test_fraction
        self.n_train = n_train
        self.n_test = n_test

    def check(self) -> None:
        super().check()
        if self.resize is not None and len(self.resize) != 2:
            raise ParameterError("resize", "[height, width] in pixels", self.resize)

    def input_files(self) -> list[Path]:
        return existing([self.path])

    def check_files(self) -> None:
        folder = self._folder()
        _check_links(folder)  # before a folder train or test is missed
        found = [part for part in _PARTS if (folder / part).is_dir()]
        if len(found) == 1:
            raise InputError(f"path: {folder.absolute()} has a folder {found[0]}; expected both of train, test")
        for part in [folder / name for name in found] or [folder]:
            files = _class_files(part)
            for checked in (part, *(part / name for name in files)):
                _check_links(checked)
            if not any(files.values()):
                raise DataFileError(
                    f"path: expected a folder for each class with .png or .jpg files in {part.absolute()}, "
                    f"found {', '.join(files) or 'no folder'}"
                )

    def _load(self, random_state: RandomState) -> Dataset:
        self.check_files()
        folder = self._folder()
        source = f"pictures in {folder.name}"
        if (folder / "test").is_dir():
            others = sorted({*folder.iterdir()} - {folder / part for part in _PARTS})
            _warn_about(folder, others, "only the folders train and test are read")
            (X, y), (X_test, y_test) = (self._part(folder / part) for part in _PARTS)
        else:
            X_all, y_all = self._part(folder)
            train, test = split_off_test(y_all, "classification", self.test_fraction, random_state, str(self.path))
            X, y, X_test, y_test = X_all[train], y_all[train], X_all[test], y_all[test]
        return Dataset(self.name, "classification", X, y, X_test, y_test, source)

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        base = user_path(path, self.label())
        if base.is_file() and base.suffix.lower() not in _SUFFIXES:
            return super()._read_points(path, form)
        files = [base] if base.is_file() else _pictures(base.rglob("*"))
        if base.is_dir():
            others = sorted(path for path in {*base.rglob("*")} - {*files} if path.is_file())
            _warn_about(base, others, "only .png and .jpg files are read")
        if not files:
            raise DataFileError(f"{path}: expected a folder with .png or .jpg files, or one such file, found none")
        expected = tuple(form["shape"][:2])
        return Points(self._read(files, expected), [str(f.relative_to(base)) if f != base else f.name for f in files])

    def _folder(self) -> Path:
        if self.path is None:
            raise InputError("path: expected a folder with a folder of pictures for each class, found none")
        folder = user_path(self.path, "path")
        if not folder.is_dir():
            raise DataFileError(f"path: expected a folder at {folder.absolute()}, found none")
        return folder

    def _part(self, folder: Path) -> tuple[np.ndarray, np.ndarray]:
        files = _class_files(folder)
        _warn_about_others(folder, files)
        X = self._read([file for found in files.values() for file in found], None)
        return X, np.array([name for name, found in files.items() for _ in found])

    def _read(self, files: list[Path], size: tuple[int, int] | None) -> np.ndarray:
        """All pictures, float32, of one (height, width): ``size``, or that of the first."""
        X: np.ndarray | None = None
        if self.resize is not None:
            self._check_memory("resize", len(files), *self.resize)
        for i, file in enumerate(files):
            image = self._picture(file)
            if X is None:
                self._check_memory("path", len(files), *image.shape[:2])
                X = np.empty((len(files), *(size or image.shape[:2]), *image.shape[2:]), dtype=np.float32)
            if image.shape != X.shape[1:]:
                of = "the model was fitted to" if size else f"{files[0].name} has"
                advice = "resize it" if size else f"set resize=[{X.shape[1]},{X.shape[2]}]"
                raise InputError(
                    f"{file} has {image.shape[0]} x {image.shape[1]} pixels, {of} {X.shape[1]} x {X.shape[2]}; {advice}"
                )
            X[i] = image
        assert X is not None
        return X

    def _check_memory(self, name: str, count: int, height: int, width: int) -> None:
        channels = 3 if self.channels == "rgb" else 1
        nbytes = 4 * (count + 1) * height * width * channels  # all of them, and the one that is read
        check_fits(name, f"{count:,} pictures of {height:,} x {width:,} pixels", nbytes)

    def _picture(self, file: Path) -> np.ndarray:
        try:
            with Image.open(file) as opened:
                image = self._converted(ImageOps.exif_transpose(opened))
        except Exception as error:  # Pillow raises many kinds, also for sizes that no memory holds
            raise DataFileError(f"{file.absolute()} is not a readable picture ({error})") from error
        if self.resize is not None:
            image = image.resize((self.resize[1], self.resize[0]), Image.Resampling.LANCZOS)
        scale = 1 if image.mode == "F" else 255
        return (np.asarray(image, dtype=np.float32) / scale).clip(0, 1)

    def _converted(self, image: Image.Image) -> Image.Image:
        """In 8 bits, grey or colour; 16-bit grey as floats in [0, 1], which Pillow would clip at 255."""
        if image.mode.startswith("I"):
            grey = np.asarray(image, dtype=np.float32) / 65535
            if self.channels == "grey":
                return Image.fromarray(grey)
            image = Image.fromarray((255 * grey).round().clip(0, 255).astype(np.uint8))
        if image.has_transparency_data:
            picture = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", picture.size, "black"), picture)
        return image.convert("L" if self.channels == "grey" else "RGB")


def _class_files(folder: Path) -> dict[str, list[Path]]:
    """The pictures of every class, sorted by name."""
    folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return {path.name: _pictures(path.iterdir()) for path in folders}


def _check_links(folder: Path) -> None:
    """Raise DataFileError for a broken or circular link in a folder, whose pictures would be left out."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink() and not path.exists() and not path.name.startswith("."):
            raise DataFileError(
                f"path: expected a folder or picture at {path.absolute()}, found a link to {path.readlink()}, which "
                "does not exist or is a link to itself"
            )


def _warn_about_others(folder: Path, files: Mapping[str, list[Path]]) -> None:
    """Warn about class folders without pictures, what is in them beside pictures, and pictures in no class folder."""
    others = [path for name, found in files.items() for path in sorted({*(folder / name).iterdir()} - {*found})]
    empty = [folder / name for name, pictures in files.items() if not pictures]
    loose = [path for path in _pictures(folder.iterdir()) if path.is_file()]
    _warn_about(folder, others + empty + loose, "only .png and .jpg files directly in the folder of a class are read")


def _warn_about(folder: Path, left_out: list[Path], read: str) -> None:
    names = [str(path.relative_to(folder)) for path in left_out if not path.name.startswith(".")]
    if names:
        warnings.warn(
            f"{folder}: {len(names)} files and folders are left out, e.g. {shortened(names[0])}; {read}",
            stacklevel=2,
        )


def _pictures(paths: Any) -> list[Path]:
    return sorted(path for path in paths if path.suffix.lower() in _SUFFIXES and not path.name.startswith("."))
