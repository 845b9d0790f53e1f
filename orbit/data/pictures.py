"""Picture files as arrays: what Pillow, tifffile, astropy and nibabel read."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageOps
from scipy.ndimage import distance_transform_edt

from orbit.core.errors import DataFileError, InputError
from orbit.data.files import readable

Channels = Literal["grey", "rgb", "all"]
Pages = Literal["channels", "volume", "first"]
Missing = Literal["refuse", "nearest"]

_TIFF, _NIFTI = (".tif", ".tiff"), (".nii", ".nii.gz", ".mgz", ".mgh")
_FITS = (".fits", ".fit", ".fts", ".fits.gz", ".fit.gz", ".fits.fz")
_JPEG = (".jpg", ".jpeg", ".jpe", ".jfif")
_PILLOW = (*_JPEG, ".png", ".webp", ".bmp", ".gif", ".jp2", ".j2k", ".tga", ".ppm", ".pgm", ".pbm")
#: Suffixes of the files that are read, in lower case.
SUFFIXES = _PILLOW + _TIFF + _FITS + _NIFTI

# Number of the tag of GeoTIFF files that names the value of pixels without one.
_GDAL_NODATA = 42113

# Parts of red, green and blue in grey (ITU-R 601), as Pillow has them.
_LUMA = np.array([0.299, 0.587, 0.114])


def read_picture(file: Path, channels: Channels, pages: Pages, missing: Missing = "refuse") -> np.ndarray:
    """The values of a picture as they are stored.

    Parameters
    ----------
    file : Path
    channels : {"grey", "rgb", "all"}
        ``all`` are those of the file. Transparent pixels are shown on black.
    pages : {"channels", "volume", "first"}
        What several pages of a TIFF, planes of a FITS or slices of a NIfTI file are: channels, the depth of a volume,
        or all but the first are left out.
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
    name = file.name.lower()
    reader = next((reader for suffixes, reader in _READERS.items() if name.endswith(suffixes)), _by_pillow)
    with readable(file.absolute(), "is not a readable picture"):
        values, axes, nodata = reader(file, channels)
    stack = _stack(values if values.dtype != bool else values * np.uint8(255), axes, pages)
    lacks = _lacks(stack, nodata)
    if lacks.any():
        _check_lacks(lacks, nodata, missing, file)
        stack = _filled(stack, lacks)
    if channels != "all":
        if stack.shape[-1] > 1 and not ("S" in axes and stack.shape[-1] in (3, 4)):
            advice = "set dataset.channels=all" + (" or dataset.pages=volume" if pages == "channels" else "")
            raise InputError(f"{file} has {stack.shape[-1]} channels, expected grey or colour; {advice}")
        stack = _grey(stack) if channels == "grey" else stack[..., :3].repeat(3 if stack.shape[-1] == 1 else 1, axis=-1)
    return stack


def voxel_sides(file: Path) -> np.ndarray | None:
    """Sides of the voxels of a NIfTI or MGH file, (depth, height, width) in its unit; None of other files."""
    if not file.name.lower().endswith(_NIFTI):
        return None
    import nibabel

    image: Any = nibabel.load(file)
    sides, axes = nibabel.affines.voxel_sizes(image.affine), nibabel.io_orientation(image.affine)[:, 0]
    return sides[np.argsort(axes)][::-1]


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


_READERS: dict[tuple[str, ...], Callable[[Path, Channels], _Read]] = {
    _PILLOW: _by_pillow,
    _TIFF: _by_tifffile,
    _FITS: _by_astropy,
    _NIFTI: _by_nibabel,
}


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
