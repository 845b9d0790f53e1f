"""CIFAR-10, from the published archive, its extracted batches, or an .npz file."""

import io
import itertools
import pickle
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orbit.core.errors import DataFileError
from orbit.core.random import RandomState
from orbit.data.base import Dataset, FileLoader
from orbit.data.files import DataFile, existing, places, read_arrays, read_checked, readable, ten_classes
from orbit.registry import register

_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
# This sha256 is the one that Keras pins; the published md5 is c58f3010...
ARCHIVE = DataFile(
    "cifar-10-python.tar.gz",
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    f"It is the Python version of CIFAR-10, {_URL}; its extracted folder cifar-10-batches-py, or a cifar10.npz, will "
    "also do.",
    _URL,
)
_NPZ = "cifar10.npz"
_BATCHES = "cifar-10-batches-py"
_TRAIN = [f"data_batch_{i}" for i in range(1, 6)]
_TEST = ["test_batch"]
_NPZ_KEYS = ("x_train", "y_train", "x_test", "y_test")


@register("dataset", "cifar10")
class CIFAR10(FileLoader):
    """CIFAR-10: 50,000 training and 10,000 test colour images of shape (32, 32, 3), values in [0, 1].

    Parameters
    ----------
    root : str or None
        Data folder; None is the variable ORBIT_DATA, else ``data``. Its subfolder
        ``cifar10``, then the folder itself, is searched for ``cifar10.npz``, with arrays
        ``x_train`` (n, 32, 32, 3) and ``x_test`` of bytes, ``y_train`` (n,) and
        ``y_test``; the folder ``cifar-10-batches-py``; ``cifar-10-python.tar.gz``.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    download : bool
        Fetch the archive into ``cifar10`` of the data folder if nothing is found.
    """

    folder = "cifar10"
    default_group = {"name": "rotation"}
    pixels = True

    def files(self) -> list[DataFile]:
        return [ARCHIVE]

    def instead(self) -> list[Path]:
        names = itertools.product(places(self.root, self.folder), (_NPZ, _BATCHES))
        return existing(place / name for place, name in names)[:1]

    def _load(self, random_state: RandomState) -> Dataset:
        source = next(iter(self.instead()), None) or self.path(ARCHIVE)
        if source.name == _NPZ:
            X_train, y_train, X_test, y_test = _read_npz(source)
        else:
            contents = _contents(source)
            (X_train, y_train), (X_test, y_test) = (_read_batches(source, contents, part) for part in (_TRAIN, _TEST))
        X_train, X_test = X_train / np.float32(255), X_test / np.float32(255)
        return Dataset(self.name, "classification", X_train, y_train, X_test, y_test, f"CIFAR-10, {source.name}")


def _read_npz(path: Path) -> list[np.ndarray]:
    arrays, where = read_arrays(path, "x_train"), path.absolute()
    lacking = [key for key in _NPZ_KEYS if key not in arrays]
    if lacking:
        raise DataFileError(f"{where}: expected arrays {', '.join(_NPZ_KEYS)}, lacks {', '.join(lacking)}")
    for key in ("x_train", "x_test"):
        if arrays[key].shape[1:] != (32, 32, 3) or arrays[key].dtype != np.uint8:
            found = f"{arrays[key].shape} of {arrays[key].dtype}"
            raise DataFileError(f"{where}: expected {key} of shape (n, 32, 32, 3) and bytes, found {found}")
    labels = [ten_classes(arrays[key].ravel(), f"{where}, {key}") for key in ("y_train", "y_test")]
    return [arrays["x_train"], labels[0], arrays["x_test"], labels[1]]


def _contents(path: Path) -> dict[str, bytes]:
    """The files of a folder, or of the archive after its digest has been checked, by name."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    content, problem = io.BytesIO(read_checked(path, ARCHIVE)), "is corrupt or not an archive"
    with readable(path.absolute(), problem, f". {ARCHIVE.how}"), tarfile.open(fileobj=content) as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive)
        return {Path(name).name: file.read() for name, file in files if file is not None}


def _read_batches(path: Path, contents: Mapping[str, bytes], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 32, 32, 3) and labels (n,) of batches, concatenated."""
    if lacking := [name for name in names if name not in contents]:
        raise DataFileError(f"{path.absolute()} has no {lacking[0]}. {ARCHIVE.how}")
    batches = [_batch(f"{path.absolute()}, {name}", contents[name]) for name in names]
    images = np.concatenate([images for images, _ in batches])
    # a row holds the red, then the green, then the blue image
    return images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), np.concatenate([labels for _, labels in batches])


def _batch(where: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    with readable(where, "is not a batch of CIFAR-10", f". {ARCHIVE.how}"):
        batch: Mapping[bytes, Any] = _ArraysOnly(io.BytesIO(content), encoding="bytes").load()
        images, labels = np.asarray(batch[b"data"]), np.asarray(batch[b"labels"])
    if images.ndim != 2 or images.shape[1] != 3072 or images.dtype != np.uint8 or len(labels) != len(images):
        raise DataFileError(
            f"{where}: expected images of shape (n, 3072) in bytes and n labels, found {images.shape} of "
            f"{images.dtype} and {len(labels)}. {ARCHIVE.how}"
        )
    return images, ten_classes(labels, where)


class _ArraysOnly(pickle.Unpickler):
    """Unpickles dictionaries, lists and arrays only: nothing that could run foreign code."""

    _allowed = frozenset(
        {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}
        | {(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")}
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)
