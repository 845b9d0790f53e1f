"""A user's own pictures, in one folder per class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageOps

from orbit.core.errors import DataFileError, InputError, ParameterError
from orbit.core.memory import check_fits
from orbit.core.params import Fraction, PositiveInt
from orbit.data.class_folders import ClassFolders
from orbit.registry import register


@register("dataset", "images")
class Images(ClassFolders):
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
    thing, suffixes, shown = "picture", (".png", ".jpg", ".jpeg"), ".png {} .jpg"

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

    def _how(self) -> str:
        return "in grey" if self.channels == "grey" else "in colour"

    def _read(self, files: list[Path], form: Mapping[str, Any] | None) -> tuple[np.ndarray, dict[str, Any]]:
        """All pictures, of one (height, width): that of the form, or of the first."""
        size = None if form is None else tuple(form["shape"][:2])
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
        return X, {}

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
