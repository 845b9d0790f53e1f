"""A user's own pictures."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from orbit.core.errors import DataFileError, InputError
from orbit.core.grid import middle
from orbit.core.memory import check_fits
from orbit.core.params import PositiveInt
from orbit.data.labelled_files import LabelledFiles
from orbit.data.pictures import (
    SUFFIXES,
    Channels,
    Missing,
    Pages,
    forget_stack,
    holder,
    page_name,
    pages_of,
    read_picture,
    voxel_sides,
)
from orbit.registry import register

Scale = Literal["range", "percentile", "each", "none"]
Size = PositiveInt | list[PositiveInt]

# Bits of the numbers of cameras; those of a file may have more.
_BITS = (8, 10, 12, 14, 16, 24, 32, 64)

# Pictures, spread over all, that say whether there are colours: a look at each would read large pictures twice.
_LOOKED_AT = 20

# Sides of voxels that differ by less, relatively, count as equal.
_SAME_VOXELS = 0.05

# Percentiles that become 0 and 1, and how many values of a channel they are taken of.
_PERCENTILES, _SAMPLED = (0.5, 99.5), 1_000_000


@register("dataset", "images")
@dataclass(eq=False, repr=False)
class Images(LabelledFiles):
    """Pictures in class folders, ``FOLDER/cat/1.png``, in folders of parts, ``FOLDER/train/cat/1.png``, or in a table.

    Points have shape (height, width) in grey, else (height, width, channels), and values in [0, 1]. PNG, JPEG, WebP,
    BMP, GIF, JPEG 2000 and TIFF files of 8 bits are read by Pillow, other TIFF files by tifffile (``pip install
    'orbit-kernels[images]'``), FITS files by astropy (``orbit-kernels[astronomy]``), NIfTI and MGH files by nibabel
    (``orbit-kernels[volumes]``), turned so that their axes go to the right, to the front and up, and MRC files (.mrc,
    .mrcs, .map) by mrcfile (``orbit-kernels[images]``). In a table, ``7@stack.mrcs`` is the seventh page of a stack.

    Parameters
    ----------
    path, manifest, file_column, target, split_column, group_column, task, recursive, on_error, test_fraction :
        See :class:`~orbit.data.labelled_files.LabelledFiles`.
    resize : [height, width], [depth, height, width], int or None
        Size that all pictures are resized to, in pixels; one number for squares, and for cubes where ``pages`` is
        ``volume``. None: pictures must have equal sizes, unless they are cropped or padded.
    crop, pad : [height, width], [depth, height, width], int or None
        Size of the middle of a picture that is kept, and size that a smaller picture is put in the middle of, with
        zeros about it. At most one of ``resize``, ``crop`` and ``pad``.
    channels : {"auto", "grey", "rgb", "all"}
        ``auto``: ``rgb`` if red, green and blue differ in any of 20 pictures spread over all, else ``grey``. ``all``
        are those of the files. Transparent pixels are shown on black.
    pages : {"channels", "volume", "first", "pictures"}
        What several pages of a TIFF, planes of a FITS, slices of a NIfTI or sections of an MRC file are: channels, or
        the depth of points of shape (depth, height, width); ``first`` leaves out all others; ``pictures``: each is a
        point, with the class of its file. ``dataset=volumes`` is ``volume``.
    scale : {"range", "percentile", "each", "none"}
        ``range`` divides integers by the largest number of as many bits (8, 10, 12, 14, 16, 24, 32 or 64) as the
        largest of all training pictures has, and maps the smallest and largest float to 0 and 1, unless all are in
        [0, 1]. Among files of more bits, those of 8 bits are divided by 255, here and for percentiles.
        ``percentile`` maps the 0.5th and 99.5th percentile of each channel, over all training pictures, to 0 and 1, and
        cuts what is beyond; ``each`` does so for each picture. ``none`` keeps values as they are stored. New points are
        scaled by the numbers of the training points.
    missing : {"refuse", "nearest"}
        Pixels that are NaN or infinite, or have the value that a GeoTIFF file names as nodata; ``nearest``: they get
        the value of the nearest pixel of the same channel.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    """

    pixels = True
    reading = "low", "high"
    thing, suffixes, shown = "picture", SUFFIXES, "picture (.png, .jpg, .tif ...)"

    resize: Size | None = None
    channels: Channels | Literal["auto"] = "auto"
    _: KW_ONLY
    crop: Size | None = None
    pad: Size | None = None
    pages: Pages = "channels"
    scale: Scale = "range"
    missing: Missing = "refuse"

    @classmethod
    def default_encoder(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": "by_size"}

    def check(self) -> None:
        super().check()
        given = {name: size for name in ("resize", "crop", "pad") if (size := getattr(self, name)) is not None}
        for name, size in given.items():
            if isinstance(size, list) and len(size) not in ((2, 3) if self.pages == "volume" else (2,)):
                sides = "[depth, height, width]" if self.pages == "volume" else "[height, width]"
                raise self.wrong(name, f"{sides} in pixels, or one number for all")
        if len(given) > 1:
            raise InputError(f"dataset.{', '.join(given)}: expected at most one of resize, crop and pad")

    def _points_of(self, file: Path) -> list[Path]:
        return pages_of(file) if self.pages == "pictures" else [file]

    def _file_name(self, text: str) -> str:
        return page_name(text)

    def _on_disk(self, file: Path) -> Path:
        return holder(file)

    def _how(self, reading: Mapping[str, Any]) -> str:
        how = {"grey": "in grey", "rgb": "in colour", "all": "with all channels"}[reading["channels"]]
        if self.scale == "none":
            return how
        if self.scale == "each":
            return f"{how}, each scaled by its percentiles"
        low, high = min(reading["low"]), max(reading["high"])
        return how if (low, high) in ((0, 255), (0, 1)) else f"{how}, {low:.6g} to {high:.6g} as 0 to 1"

    def _read(self, files: list[Path], form: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        size = self.resize or self.crop or self.pad
        if size is not None:
            self._check_memory(len(files), self._sides(size))  # before a picture of that size is made
        channels = self._channels(files, form)
        shape = tuple(form["shape"]) if form else self._first(files, channels).shape
        self._check_memory(len(files), shape)
        X = np.empty((len(files), *shape), dtype=np.float32)
        n_bytes = np.zeros(len(files), dtype=int)  # of an integer; 0 for floats

        def read(i: int) -> None:
            picture = self._picture(files[i], channels)
            if picture.shape != shape:
                raise InputError(self._of_other_shape(files[i], picture.shape, shape, form is not None))
            X[i] = picture
            n_bytes[i] = picture.dtype.itemsize if picture.dtype.kind in "iu" else 0

        kept = self._each(files, read)
        forget_stack()
        X, n_bytes = (X[kept], n_bytes[kept]) if len(kept) < len(files) else (X, n_bytes)
        white = (
            None if self.scale in ("each", "none") else _to_one_white(X, n_bytes, form.get("white") if form else None)
        )
        reading: dict[str, Any] = {"white": white, "channels": channels}
        if self.pages == "volume":
            reading["voxel"] = _one_voxel([files[i] for i in kept], form.get("voxel") if form else None)
        return X, kept, reading

    def _channels(self, files: list[Path], form: Mapping[str, Any] | None) -> Channels:
        """What is read of each picture; of new ones as much as of those that a model was fitted to."""
        if self.channels != "auto":
            return self.channels
        if form is not None:
            return "rgb" if len(form["shape"]) > (3 if self.pages == "volume" else 2) else "grey"
        some = np.linspace(0, len(files) - 1, min(len(files), _LOOKED_AT)).astype(int)
        return "rgb" if any(self._has_colours(files[i]) for i in some) else "grey"

    def _has_colours(self, file: Path) -> bool:
        try:
            stack = read_picture(file, "rgb", self.pages, self.missing)
        except DataFileError:  # reading all says so
            return False
        return bool((stack[..., 1:] != stack[..., :1]).any())

    def _first(self, files: list[Path], channels: Channels) -> np.ndarray:
        """The first picture that can be read."""
        for file in files:
            try:
                return self._picture(file, channels)
            except DataFileError:
                if self.on_error == "refuse" or file == files[-1]:
                    raise
        raise AssertionError("there is a file")

    def _check_memory(self, count: int, shape: Sequence[int]) -> None:
        sizes = " x ".join(f"{side:,}" for side in shape)
        nbytes = 4 * (count + 1) * math.prod(shape)  # all of them, and the one that is read
        key = "dataset.path" if self.resize is None else "dataset.resize"
        check_fits(key, f"{count:,} pictures of {sizes} pixels", nbytes)

    def _of_other_shape(self, file: Path, found: tuple[int, ...], expected: tuple[int, ...], fitted: bool) -> str:
        size, wanted = (" x ".join(map(str, shape)) for shape in (found, expected))
        if fitted:
            return f"{file} has {size} pixels, the model was fitted to {wanted}; resize it"
        sides = ",".join(map(str, expected[: 3 if self.pages == "volume" else 2]))
        advice = f"set dataset.resize, dataset.crop or dataset.pad, e.g. dataset.resize=[{sides}]"
        return f"{file} has {size} pixels, others have {wanted}; {advice}"

    def _picture(self, file: Path, channels: Channels) -> np.ndarray:
        """The values of a picture of the size that was asked for, as they are stored."""
        stack = read_picture(file, channels, self.pages, self.missing)
        if self.resize is not None:
            stack = _resized(stack, self._sides(self.resize))
        if self.crop is not None or self.pad is not None:
            stack = _in_the_middle(stack, self._sides(self.crop or self.pad or []), file, cut=self.crop is not None)
        picture = stack if self.pages == "volume" else stack[0]
        return picture[..., 0] if picture.shape[-1] == 1 else picture

    def _sides(self, size: Size) -> list[int]:
        """The sides of a picture or a volume, for which one number may stand."""
        return [size] * (3 if self.pages == "volume" else 2) if isinstance(size, int) else size

    def _fitted_scale(self, X: np.ndarray, train: np.ndarray) -> dict[str, Any]:
        if self.scale in ("none", "each"):
            return {}
        low, high = _range(X, train) if self.scale == "range" else self._percentiles(X[train])
        return {"low": low, "high": high}

    def _apply_scale(self, X: np.ndarray, form: Mapping[str, Any]) -> None:
        if self.scale == "each":
            for x in X:
                _stretch(x, *self._percentiles(x[None]))
        elif self.scale != "none":
            form = form if "low" in form else self._fitted_scale(X, np.arange(len(X)))  # a model of an earlier version
            _stretch(X, form["low"], form["high"])

    def _percentiles(self, X: np.ndarray) -> tuple[list[float], list[float]]:
        """Those of each channel that become 0 and 1."""
        has_channels = X.ndim > (4 if self.pages == "volume" else 3)
        values = X.reshape(-1, X.shape[-1] if has_channels else 1)
        if len(values) > _SAMPLED:
            values = values[np.random.default_rng(0).integers(len(values), size=_SAMPLED)]
        low, high = np.percentile(values, _PERCENTILES, axis=0)
        return low.tolist(), high.tolist()


def _one_voxel(files: Sequence[Path], fitted: list[float] | None) -> list[float] | None:
    """The sides of most voxels, in files that have them; a warning if some differ from these, or from ``fitted``."""
    sides = {file: found for file in files if (found := voxel_sides(file)) is not None}
    if not sides:
        return fitted
    expected = np.median([*sides.values()], axis=0) if fitted is None else np.array(fitted)
    if others := [file for file in sides if not np.allclose(sides[file], expected, rtol=_SAME_VOXELS)]:
        has, wanted = (" x ".join(f"{side:.3g}" for side in each) for each in (sides[others[0]], expected))
        warnings.warn(
            f"{len(others)} of {len(sides)} volumes have voxels of other sides than {wanted}, e.g. {others[0].name} of "
            f"{has}, so that equal things have other sizes in them: resample them before",
            stacklevel=2,
        )
    return expected.tolist()


def _to_one_white(X: np.ndarray, n_bytes: np.ndarray, white: float | None) -> float | None:
    """Bring integers of 8 bits and of more to one range, in place, where there are both; the largest number of it.

    ``white`` is that of the pictures that a model was fitted to. None where none is needed.
    """
    kinds = {True: n_bytes == 1, False: n_bytes > 1}
    whites = {
        is_byte: 255.0 if is_byte else _white(max(x.max() for x in X[of])) for is_byte, of in kinds.items() if of.any()
    }
    target = max(whites.values(), default=None) if white is None else white
    for is_byte, own in whites.items():
        if target is not None and is_byte != (target == 255):
            for i in np.flatnonzero(kinds[is_byte]):
                X[i] = (X[i] * np.float32(target / own)).round()
    if white is None and len(whites) == 2:
        count = int(kinds[True].sum())
        warnings.warn(
            f"{count} of {len(X)} pictures have 8 bits, others more: 255 and {whites[False]:.6g} are both white; "
            "dataset.scale=none keeps the numbers as they are",
            stacklevel=2,
        )
    return target if kinds[True].any() or target != 255 else None  # small numbers of many bits, such as labels


def _white(high: float) -> float:
    """The largest number of as few bits as ``high`` needs."""
    return float(2 ** next(bits for bits in _BITS if high < 2**bits) - 1)


def _range(X: np.ndarray, train: np.ndarray) -> tuple[list[float], list[float]]:
    """What becomes 0 and 1: 0 and the largest number of as many bits, or the smallest and the largest value."""
    low, high = min(float(X[i].min()) for i in train), max(float(X[i].max()) for i in train)
    if low >= 0 and high > 1 and all(np.array_equal(X[i], X[i].round()) for i in train):
        return [0.0], [_white(high)]
    return ([0.0], [1.0]) if low >= 0 and high <= 1 else ([low], [high])


def _stretch(X: np.ndarray, low: list[float], high: list[float]) -> None:
    """Map ``low`` to 0 and ``high`` to 1, by channels where there are several, and cut what is beyond, in place."""
    width = np.subtract(high, low, dtype=np.float32)
    X -= np.array(low, np.float32)
    X /= np.where(width > 0, width, 1)
    np.clip(X, 0, 1, out=X)


def _resized(stack: np.ndarray, size: list[int]) -> np.ndarray:
    """A picture of another size, in the same type, without values beyond those that it has."""
    out = np.empty((len(stack), *size[-2:], stack.shape[-1]), stack.dtype)
    for depth, plane in enumerate(stack):
        for channel in range(plane.shape[-1]):
            out[depth, ..., channel] = _resampled(plane[..., channel], size[-2:])
    if len(size) == 2 or size[0] == len(stack):
        return out
    return _resampled(out.reshape(len(stack), -1), [size[0], out[0].size]).reshape(size[0], *out.shape[1:])


def _resampled(plane: np.ndarray, size: list[int]) -> np.ndarray:
    image = Image.fromarray(plane.astype(np.float32))
    values = np.asarray(image.resize((size[1], size[0]), Image.Resampling.LANCZOS))
    return (values.round() if plane.dtype.kind in "iu" else values).clip(plane.min(), plane.max()).astype(plane.dtype)


def _in_the_middle(stack: np.ndarray, size: list[int], file: Path, cut: bool) -> np.ndarray:
    """The middle of a picture, or the picture in the middle of zeros."""
    found = stack.shape[3 - len(size) : 3]
    if any(have < want if cut else have > want for have, want in zip(found, size, strict=True)):
        key, other = ("crop", "smaller") if cut else ("pad", "larger")
        have, wanted = (" x ".join(map(str, sides)) for sides in (found, size))
        raise InputError(f"dataset.{key}: {file} has {have} pixels, {other} than {wanted}")
    return middle(stack, size, 3 - len(size))
