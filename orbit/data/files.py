"""Data files: found in the data folder, downloaded on request, checked by sha256."""

import contextlib
import hashlib
import http.client
import logging
import math
import os
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from orbit.core.errors import DataFileError, InputError, shortened, suggestion
from orbit.core.files import replacing
from orbit.core.paths import user_path
from orbit.core.progress import Progress
from orbit.core.threads import in_threads

log = logging.getLogger(__name__)

_CHUNK = 1 << 20

# Numbers of files from which reading shows its progress.
_MANY = 200
_TIMEOUT_S = 30.0

_MATLAB = ".mat"

# The first bytes of .npz files, with members and without, and of .npy files.
_BEGINNINGS = b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY"
_HDF5 = b"\x89HDF"


# The extras of this project by the packages that read files.
_EXTRAS = {
    **{"ase": "chemistry", "rdkit": "chemistry", "tifffile": "images"},
    **{"astropy": "astronomy", "nibabel": "volumes", "xarray": "fields", "mrcfile": "images"},
    **{"trimesh": "clouds", "pypcd4": "clouds"},
}


@dataclass(frozen=True)
class DataFile:
    """A published file.

    Attributes
    ----------
    name : file name
    sha256 : its digest, or None where copies may differ
    how : one sentence on where to get it
    url : where ``download=True`` fetches it from over https, or None
    """

    name: str
    sha256: str | None
    how: str
    url: str | None = None


def data_root(root: str | None) -> Path:
    """The data folder: the parameter ``root``, else the variable ORBIT_DATA, else ``data``."""
    return user_path(root or os.environ.get("ORBIT_DATA") or "data", "dataset.root")


def places(root: str | None, folder: str) -> list[Path]:
    """Folders that are searched: the subfolder ``folder`` of the data folder, then the data folder itself."""
    base = data_root(root)
    return [base / folder, base]


def existing(paths: Iterable[Path | str | None]) -> list[Path]:
    """The files and folders among ``paths`` that exist, without None."""
    expanded = [Path(path).expanduser() for path in paths if path is not None]
    return [path for path in expanded if path.exists()]


def find(root: str | None, folder: str, file: DataFile, download: bool = False) -> Path:
    """The path of ``file`` in the data folder or its subfolder ``folder``; with ``download`` it is fetched if missing.

    Raises
    ------
    DataFileError
        If it is in neither folder; the message has the path, and how to get the file.
    """
    candidates = [place / file.name for place in places(root, folder)]
    for path in candidates:
        if path.is_file():
            return path
    if download and file.url is not None:
        return fetch(file, candidates[0])
    raise missing(candidates[0], file)


def missing(path: Path, file: DataFile) -> DataFileError:
    """The error for a ``file`` missing at ``path``, with instructions on how to get it."""
    ways = ["Put it there", "set dataset.root (or the variable ORBIT_DATA) to the folder that has it"]
    if file.url is not None:
        ways.append("fetch it with dataset.download=true")
    return DataFileError(
        f"dataset.root: expected the file {file.name} at {path.absolute()}, found none. {file.how} "
        f"{', '.join(ways[:-1])}, or {ways[-1]}."
    )


def fetch(file: DataFile, target: Path) -> Path:
    """Download ``file`` to ``target``; afterwards it is either complete and verified, or does not exist.

    Raises
    ------
    DataFileError
        If it cannot be downloaded or written, or its digest is wrong.
    """
    assert file.url is not None
    log.info("downloading %s to %s", file.url, target.absolute())
    try:
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT_S) as response:
            if file.url.startswith("https:") and not response.url.startswith("https:"):
                raise OSError(f"it is redirected to {response.url}, which is not encrypted")
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as out:
                found = _copy(response, out, response.headers.get("Content-Length"), file.name)
                if file.sha256 is not None and found != file.sha256:
                    raise DataFileError(
                        f"dataset.download: {file.url} is not the expected file: expected sha256 {file.sha256}, "
                        f"found {found}; it was deleted. {file.how}"
                    )
        if file.sha256 is None:
            log.warning("no digest of %s is published; sha256 of the file that was fetched: %s", file.url, found)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise DataFileError(
            f"dataset.download: cannot fetch {file.url} to {target.absolute()} ({reason}). {file.how} "
            "Copy it there by other means, or set dataset.root to the folder that has it."
        ) from error
    return target


def _copy(response: IO[bytes], out: IO[bytes], length: str | None, name: str) -> str:
    """Copy with a progress bar; returns the sha256 of the content."""
    digest, copied = hashlib.sha256(), 0
    with Progress(math.ceil(int(length or 0) / _CHUNK), f"download {name}, MiB", shown=length is not None) as progress:
        while chunk := response.read(_CHUNK):
            out.write(chunk)
            digest.update(chunk)
            copied += len(chunk)
            progress.step()
    if length is not None and copied != int(length):  # urllib does not raise if the connection closes early
        raise OSError(f"it ended after {copied} of {length} bytes")
    return digest.hexdigest()


def read_checked(path: Path, file: DataFile) -> bytes:
    """The bytes of a file whose digest has been checked.

    Raises
    ------
    DataFileError
        If the file cannot be read, or its digest is wrong.
    """
    with readable(path.absolute(), "cannot be read"):
        content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if file.sha256 is not None and found != file.sha256:
        raise DataFileError(
            f"{path.absolute()} is corrupt or another file: expected sha256 {file.sha256}, found {found}. {file.how}"
        )
    return content


@contextlib.contextmanager
def readable(file: object, problem: str, advice: str = "") -> Iterator[None]:
    """Context manager in which what libraries raise for a file, of many kinds, is a ``DataFileError`` of one line.

    The file, its problem, and the reason in brackets; or the package that is not installed, with its command.
    """
    where = f"{file} {problem}"
    try:
        yield
    except InputError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        command = f"pip install 'orbit-kernels[{_EXTRAS[package]}]'"
        raise DataFileError(f"{file} needs the package {package}: {command}") from None
    except Exception as error:  # also for sizes that no memory holds
        text = str(getattr(error, "strerror", None) or error)
        reason = shortened(text.strip().partition("\n")[0]) or type(error).__name__
        kind = "KeyError: " if isinstance(error, KeyError) else ""
        raise DataFileError(f"{where} ({kind}{reason}){advice}") from error


def read_arrays(file: str | Path, key: str, mapped: bool = False, name: str = "") -> dict[str, np.ndarray]:
    """The arrays of an .npz or .mat by their names, or the one of an .npy by ``key``, as a ``memmap`` on request.

    An error begins with the parameter ``name``, if it is given.

    Raises
    ------
    DataFileError
        If it is not such a file, or holds Python objects: unpickling could run foreign code.
    """
    path = Path(file).expanduser()
    try:
        if path.suffix.lower() == _MATLAB:
            return _matlab(path)
        loaded = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        return {key: loaded} if isinstance(loaded, np.ndarray) else {key: loaded[key] for key in loaded.files}
    except Exception as error:
        where = f"{name}: {path.absolute()}" if name else str(path.absolute())
        raise DataFileError(
            f"{where} is not a readable .npz, .npy or .mat file without objects: {_reason(path, error)}"
        ) from error


def _matlab(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a MATLAB file, without axes of length one, and cells of texts as texts."""
    from scipy.io import loadmat

    found = loadmat(path, simplify_cells=True)
    arrays = {name: np.asarray(value) for name, value in found.items() if not name.startswith("__")}
    cells = {name: array for name, array in arrays.items() if array.dtype == object}
    return arrays | {
        name: cell.astype(str) for name, cell in cells.items() if all(isinstance(one, str) for one in cell)
    }


def named(arrays: Mapping[str, np.ndarray], key: str, where: str, advice: str = "") -> np.ndarray:
    """An array of a file by its name; raises ``InputError``, naming the file ``where``, if there is none."""
    if key not in arrays:
        has = f"{suggestion(key, arrays)} It has {', '.join(arrays) or 'none'}"
        raise InputError(f"{where} has no array named {key!r}{has}{advice}")
    return arrays[key]


def _reason(path: Path, error: Exception) -> str:
    """Why a file cannot be read; NumPy takes every file of another kind for a pickle, and advises to trust it."""
    if isinstance(error, NotImplementedError):
        return "it has version 7.3; save it in MATLAB with '-v7'"
    if path.suffix.lower() == _MATLAB:
        return "it is of another kind"
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if not (beginning := file.read(6)).startswith(_BEGINNINGS):
            is_hdf5 = beginning.startswith(_HDF5)
            return "it is an HDF5 file, which dataset=fields reads" if is_hdf5 else "it is of another kind"
    if str(error).startswith("Object arrays"):  # the rest advises to trust it
        return (
            "an array in it holds Python objects; save texts by astype(str), numbers by astype(float), and points of "
            "several shapes padded or cut to one"
        )
    return str(error)


def ten_classes(labels: np.ndarray, where: str) -> np.ndarray:
    """Labels from 0 to 9 as int64.

    Raises
    ------
    DataFileError
        If there are others, naming the file ``where``.

    >>> ten_classes(np.array([1.0, 9.0]), "labels.txt")
    array([1, 9])
    """
    if not np.isin(labels, np.arange(10)).all():
        raise DataFileError(f"{where}: expected classes from 0 to 9, found others")
    return labels.astype(np.int64)


def existing_file(path: str, name: str) -> Path:
    """``path`` with the home folder expanded.

    Raises
    ------
    DataFileError
        If there is no such file, naming the parameter ``name``.
    """
    found = user_path(path, name)
    if not found.is_file():
        instead = "a folder" if found.is_dir() else "none"
        raise DataFileError(f"{name}: expected a file at {found.absolute()}, found {instead}")
    return found


def check_links(paths: Iterable[Path], key: str) -> None:
    """Raise ``DataFileError`` for a link, not hidden, that leads to nothing or to a folder around it.

    Those who list files leave out the former, and list those behind the latter many times.
    """
    for link in sorted(path for path in paths if path.is_symlink() and not path.name.startswith(".")):
        where = f"{key}: link {link.absolute()} leads to {link.readlink()}: expected a"
        if not link.exists():
            raise DataFileError(f"{where} file or folder there, found none")
        if link.parent.resolve().is_relative_to(link.resolve()):
            raise DataFileError(f"{where}nother folder, found one that the link is in")


def read_each(count: int, work: Callable[[int], None], things: str, skip: bool) -> np.ndarray:
    """Call ``work`` with each of ``count`` indices, in threads; the indices of the things that could be read.

    Raises
    ------
    DataFileError
        That of ``work``, or with ``skip`` if none could be read; a warning counts those that are left out.

    Examples
    --------
    >>> read_each(3, lambda i: None, "pictures", skip=False)
    array([0, 1, 2])
    """
    errors = dict[int, DataFileError]()

    def attempt(i: int) -> None:
        try:
            work(i)
        except DataFileError as error:
            if not skip:
                raise
            errors[i] = error

    with Progress(count, things, shown=count >= _MANY) as progress:
        in_threads(attempt, range(count), done=progress.step)
    read = np.setdiff1d(np.arange(count), list(errors))
    if errors and not len(read):
        raise errors[min(errors)]
    if errors:
        warnings.warn(f"{len(errors)} of {count} {things} are left out, e.g. {errors[min(errors)]}", stacklevel=2)
    return read
