"""Picture files as arrays: what Pillow, tifffile, astropy, nibabel and mrcfile read."""

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageOps
from scipy.ndimage import distance_transform_edt

from orbit.core.errors import DataFileError, InputError
from orbit.data.files import readable

Channels = Literal["grey", "rgb", "all"]
Pages = Literal["channels", "volume", "first", "pictures"]
Missing = Literal["refuse", "nearest"]

_TIFF, _NIFTI = (".tif", ".tiff"), (".nii", ".nii.gz", ".mgz", ".mgh")
_FITS = (".fits", ".fit", ".fts", ".fits.gz", ".fit.gz", ".fits.fz")
_MRC = (".mrc", ".mrcs", ".map", ".mrc.gz", ".mrcs.gz", ".map.gz")
_JPEG = (".jpg", ".jpeg", ".jpe", ".jfif")
_PILLOW = (*_JPEG, ".png", ".webp", ".bmp", ".gif", ".jp2", ".j2k", ".tga", ".ppm", ".pgm", ".pbm")
#: Suffixes of the files that are read, in lower case.
SUFFIXES = _PILLOW + _TIFF + _FITS + _NIFTI + _MRC

# Number of the tag of GeoTIFF files that names the value of pixels without one.
_GDAL_NODATA = 42113

# Parts of red, green and blue in grey (ITU-R 601), as Pillow has them.
_LUMA = np.array([0.299, 0.587, 0.114])


def read_picture(file: Path, channels: Channels, pages: Pages, missing: Missing = "refuse") -> np.ndarray:
    """The values of a picture as they are stored.

    Parameters
    ----------
    file : Path
        A file, or one of its pages as :func:`page_name` writes it, ``7@stack.mrcs``.
    channels : {"grey", "rgb", "all"}
        ``all`` are those of the file. Transparent pixels are shown on black.
    pages : {"channels", "volume", "first", "pictures"}
        What several pages of a TIFF, planes of a FITS, slices of a NIfTI or sections of an MRC file are: channels, the
        depth of a volume, or all but the first are left out. Of pages that are pictures, each has its own name.
    missing : {"refuse", "nearest"}
        Pixels that are NaN or infinite, or have the value that a GeoTIFF file names as nodata. ``nearest``: they get
        the value of the nearest pixel of the same channel that has one.

    Returns
    -------
    array, shape (depth, height, width, channels), in the type of the file; a truth value is 0 or 255

    Raises
    ------
    DataFileError
        If it cannot be read, needs a package that is not installed, or lacks values that cannot be filled.
    InputError
        If it has other channels than grey or red, green and blue, and ``channels`` is not ``all``.
    """
    number, whole = _page_of(file)
    values, axes, nodata = _read(file, channels) if number is None else _read_stack(whole, channels)
    if number is None:
        stack = _stack(values, axes, pages)
    else:
        planes = _stack(values, axes, "volume")
        if not 0 < number <= len(planes):
            raise DataFileError(f"{whole.absolute()} has pages 1 to {len(planes)}, expected page {number}")
        stack = np.array(planes[number - 1 : number])
    stack = stack if stack.dtype != bool else stack * np.uint8(255)
    lacks = _lacks(stack, nodata)
    if lacks.any():
        _check_lacks(lacks, nodata, missing, file)
        stack = _filled(stack, lacks)
    if channels != "all":
        if stack.shape[-1] > 1 and not ("S" in axes and stack.shape[-1] in (3, 4)):
            advice = "set dataset.channels=all"
            advice += " or dataset.pages=volume, or pictures" if pages == "channels" else ""
            raise InputError(f"{file} has {stack.shape[-1]} channels, expected grey or colour; {advice}")
        stack = _grey(stack) if channels == "grey" else stack[..., :3].repeat(3 if stack.shape[-1] == 1 else 1, axis=-1)
    return stack


def page_name(name: str) -> str:
    """``DIR/7@stack.mrcs`` for the seventh page of a stack, which RELION writes as ``000007@DIR/stack.mrcs``.

    >>> page_name("000007@job1/stack.mrcs"), page_name("cat/1@2.png")
    ('job1/7@stack.mrcs', 'cat/1@2.png')
    """
    number, at, rest = name.partition("@")
    return Path(rest).with_name(f"{int(number)}@{Path(rest).name}").as_posix() if at and number.isdecimal() else name


def holder(file: Path) -> Path:
    """The file on disk that has a picture: a stack, of one of its pages."""
    return _page_of(file)[1]


def pages_of(file: Path) -> list[Path]:
    """The pages of a file as pictures of their own; of a file with one page, or of a page, this one."""
    number, _ = _page_of(file)
    count = 1 if number is not None or file.name.lower().endswith(_PILLOW) else _n_pages(file)
    return [file] if count == 1 else [file.with_name(f"{i + 1}@{file.name}") for i in range(count)]


def voxel_sides(file: Path) -> np.ndarray | None:
    """Sides of the voxels of a NIfTI or MGH file, (depth, height, width) in its unit; None of other files."""
    if not file.name.lower().endswith(_NIFTI):
        return None
    import nibabel

    image: Any = nibabel.load(file)
    sides, axes = nibabel.affines.voxel_sizes(image.affine), nibabel.io_orientation(image.affine)[:, 0]
    return sides[np.argsort(axes)][::-1]


def _page_of(file: Path) -> tuple[int | None, Path]:
    """The number of a page, from 1 on, and the file that has it; None for a whole file."""
    number, at, name = file.name.partition("@")
    if not at or not number.isdecimal() or file.is_file():
        return None, file
    return int(number), file.with_name(name)


def _n_pages(file: Path) -> int:
    values, axes, _ = _read_stack(file, "all")
    return len(_stack(values, axes, "volume"))


# Values, the axes as tifffile names them, and the value of pixels that have none.
_Read = tuple[np.ndarray, str, float | None]


def _by_pillow(file: Path, channels: Channels) -> _Read:
    with Image.open(file) as opened:
        image = ImageOps.exif_transpose(opened)
    if image.mode.startswith(("I", "F")):
        return np.asarray(image), "YX", None
    if image.has_transparency_data:
        picture = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", picture.size, "black"), picture)
    is_grey = image.mode in ("1", "L") if channels == "all" else channels == "grey"
    return np.asarray(image.convert("L" if is_grey else "RGB")), "YX" if is_grey else "YXS", None


def _by_tifffile(file: Path, channels: Channels) -> _Read:
    try:
        import tifffile
    except ModuleNotFoundError:
        with Image.open(file) as opened:
            if getattr(opened, "n_frames", 1) > 1 or opened.mode not in ("1", "L", "P", "RGB", "RGBA", "I;16", "F"):
                raise
        return _by_pillow(file, channels)
    with tifffile.TiffFile(file) as opened:
        page = opened.pages.first
        nodata = float(page.nodata) if _GDAL_NODATA in page.tags else None
        return opened.series[0].asarray(), opened.series[0].axes, nodata


def _by_astropy(file: Path, channels: Channels) -> _Read:
    from astropy.io import fits

    with fits.open(file, memmap=False) as units:
        found = next(
            (unit.data for unit in units if unit.is_image and unit.data is not None and unit.data.ndim > 1), None
        )
    if found is None:
        raise DataFileError(f"{file.absolute()} has no image, only tables or headers")
    native = found.astype(found.dtype.newbyteorder("="))
    return native[..., ::-1, :], "Q" * (found.ndim - 2) + "YX", None  # the first row of a FITS image is the lowest


def _by_nibabel(file: Path, channels: Channels) -> _Read:
    import nibabel

    # axes to the right, to the front and up, whatever the order in the file; then of time
    values = np.asanyarray(nibabel.as_closest_canonical(nibabel.load(file)).dataobj)
    values = values.reshape(*values.shape, *[1] * (3 - values.ndim))
    return values.transpose(2, 1, 0, *range(3, values.ndim)), "QYX" + "C" * (values.ndim - 3), None


def _by_mrcfile(file: Path, channels: Channels) -> _Read:
    import mrcfile

    # a map of the file, of which pages are read; compressed files have none
    opened = mrcfile.open(file) if file.suffix.lower() == ".gz" else mrcfile.mmap(file)
    values = opened.data
    if values.dtype.kind == "c":
        raise DataFileError(f"{file.absolute()} holds complex numbers, expected densities")
    return values, "Q" * (values.ndim - 2) + "YX", None


_READERS: dict[tuple[str, ...], Callable[[Path, Channels], _Read]] = {
    _PILLOW: _by_pillow,
    _TIFF: _by_tifffile,
    _FITS: _by_astropy,
    _NIFTI: _by_nibabel,
    _MRC: _by_mrcfile,
}


def _read(file: Path, channels: Channels) -> _Read:
    name = file.name.lower()
    reader = next((reader for suffixes, reader in _READERS.items() if name.endswith(suffixes)), _by_pillow)
    with readable(file.absolute(), "is not a readable picture"):
        return reader(file, channels)


@lru_cache(maxsize=1)
def _one_stack(file: Path, channels: Channels, changed: int) -> _Read:
    return _read(file, channels)


# Threads read pages of one stack after the other.
_stack_lock = Lock()


def _read_stack(file: Path, channels: Channels) -> _Read:
    with _stack_lock, readable(file.absolute(), "is not a readable picture"):
        return _one_stack(file, channels, file.stat().st_mtime_ns)


def forget_stack() -> None:
    """Free the memory of the stack that was read last."""
    _one_stack.cache_clear()


def _stack(values: np.ndarray, axes: str, pages: Pages) -> np.ndarray:
    """An array with the axes that tifffile names as (depth, height, width, channels)."""
    kinds = [2 if axis in "SC" else 1 if axis in "YX" else 0 for axis in axes]
    moved = values.transpose(np.argsort(kinds, kind="stable"))
    n_pages = kinds.count(0)
    depth, n_channels = math.prod(moved.shape[:n_pages]), math.prod(moved.shape[n_pages + 2 :])
    stack = moved.reshape(depth, *moved.shape[n_pages : n_pages + 2], n_channels)
    if pages == "channels":
        return np.moveaxis(stack, 0, 2).reshape(1, *stack.shape[1:3], -1)
    return stack[:1] if pages == "first" else stack


def _lacks(stack: np.ndarray, nodata: float | None) -> np.ndarray:
    """Which pixels have no value, of the shape of ``stack``."""
    lacks = ~np.isfinite(stack) if stack.dtype.kind == "f" else np.zeros(stack.shape, dtype=bool)
    return lacks if nodata is None else lacks | (stack == nodata)


def _check_lacks(lacks: np.ndarray, nodata: float | None, missing: Missing, file: Path) -> None:
    if missing == "nearest" and not (whole := lacks.all((0, 1, 2))).any():
        return
    if missing == "nearest":
        raise DataFileError(f"{file.absolute()}: channel {whole.argmax()} has no pixel with a value")
    kinds = "NaN or infinite" + ("" if nodata is None else f" or {nodata:.6g}, which its tag names as nodata")
    raise DataFileError(
        f"{file.absolute()} has {lacks.sum():,} pixels that are {kinds}; dataset.missing=nearest fills them"
    )


def _filled(stack: np.ndarray, lacks: np.ndarray) -> np.ndarray:
    """Pixels that lack a value with that of the nearest pixel of their channel."""
    filled = stack.copy()
    for channel in np.flatnonzero(lacks.any((0, 1, 2))):
        where = distance_transform_edt(lacks[..., channel], return_distances=False, return_indices=True)
        filled[..., channel] = stack[..., channel][tuple(where)]
    return filled


def _grey(stack: np.ndarray) -> np.ndarray:
    if stack.shape[-1] == 1:
        return stack
    grey = (stack[..., :3] @ _LUMA)[..., None]
    return (grey.round() if stack.dtype.kind in "iu" else grey).astype(stack.dtype)
