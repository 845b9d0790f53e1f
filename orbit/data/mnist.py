"""MNIST and rotated MNIST, from the published files."""

import gzip
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np

from orbit.core.errors import DataFileError
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, generator
from orbit.data.base import Dataset, FileLoader
from orbit.data.files import DataFile, existing, places, read_checked, readable, ten_classes
from orbit.data.move import rotate_randomly
from orbit.data.splits import balanced
from orbit.registry import register

_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_HOW = f"It is one of the four files of MNIST; a mirror is {_MIRROR}."


def _file(name: str, sha256: str) -> DataFile:
    return DataFile(name, sha256, _HOW, _MIRROR + name)


TRAIN_IMAGES = _file("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609")
TRAIN_LABELS = _file("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c")
TEST_IMAGES = _file("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6")
TEST_LABELS = _file("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6")

_AMAT_HOW = "It is part of the rotated MNIST archive of Larochelle et al. (2007)."
AMAT_TRAIN = DataFile("mnist_all_rotation_normalized_float_train_valid.amat", None, _AMAT_HOW)
AMAT_TEST = DataFile("mnist_all_rotation_normalized_float_test.amat", None, _AMAT_HOW)


def read_idx(content: bytes) -> np.ndarray:
    """An array of unsigned bytes in the IDX format of MNIST, of a file whose digest is known.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    array([7, 9], dtype=uint8)
    """
    n_axes = content[3]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(np.frombuffer(content, ">i4", n_axes, 4))


@register("dataset", "mnist")
class MNIST(FileLoader):
    """MNIST: 60,000 training and 10,000 test images of 28 x 28 pixels, values in [0, 1].

    Parameters
    ----------
    root : str or None
        Data folder; None is the variable ORBIT_DATA, else ``data``. The four .gz
        files are looked for in its subfolder ``mnist``, then in itself.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    download : bool
        Fetch missing files into ``mnist`` of the data folder.
    """

    folder = "mnist"
    pixels = ink = True
    default_group = {"name": "rotation"}

    def files(self) -> list[DataFile]:
        return [TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS]

    def _load(self, random_state: RandomState) -> Dataset:
        X_train, y_train = self._read(TRAIN_IMAGES) / np.float32(255), self._read(TRAIN_LABELS).astype(np.int64)
        X_test, y_test = self._read(TEST_IMAGES) / np.float32(255), self._read(TEST_LABELS).astype(np.int64)
        return Dataset(self.name, "classification", X_train, y_train, X_test, y_test, "MNIST, original files")

    def _read(self, file: DataFile) -> np.ndarray:
        return read_idx(gzip.decompress(read_checked(self.path(file), file)))


@register("dataset", "rotated_mnist")
@dataclass(eq=False, repr=False)
class RotatedMNIST(MNIST):
    """Rotated MNIST: 12,000 training and 50,000 test images, each rotated by a random angle.

    Reads the original .amat files of Larochelle et al. (2007) where the data
    folder has them. Otherwise generates the set from MNIST by their protocol:
    62,000 of the 70,000 digits in random order, each rotated by an angle
    uniform in [0, 2 pi), the first 12,000 for training. Order and angles come
    from one fixed seed; ``Dataset.source`` states that the set was generated.

    Parameters
    ----------
    root : str or None
        Data folder; None is the variable ORBIT_DATA, else ``data``. Files are
        looked for in its subfolders ``rotated_mnist`` and ``mnist``, then in itself.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    rotation_seed : int
        Seed of the generated set.
    download : bool
        Fetch the missing files of MNIST, to generate the set from.
    """

    default_representation = {"name": "polar"}

    _: KW_ONLY
    rotation_seed: int = 0

    def instead(self) -> list[Path]:
        for folder in places(self.root, "rotated_mnist"):
            if len(found := existing([folder / AMAT_TRAIN.name, folder / AMAT_TEST.name])) == 2:
                return found
        return []

    def _load(self, random_state: RandomState) -> Dataset:
        if not (original := self.instead()):
            return self._generate(random_state)
        train, test = (_read_amat(path) for path in original)
        return Dataset(self.name, "classification", *train, *test, "rotated MNIST, Larochelle et al. (2007) files")

    def _generate(self, random_state: RandomState) -> Dataset:
        upright = super()._load(random_state)
        X = np.concatenate([upright.X_train, upright.X_test])
        y = np.concatenate([upright.y_train, upright.y_test])
        order = np.random.default_rng(self.rotation_seed).permutation(len(X))[:62_000]
        X, y = rotate_randomly(X[order], self.rotation_seed), y[order]
        source = "generated from MNIST by the protocol of Larochelle et al. (2007), seed fixed"
        n = 12_000
        return Dataset(self.name, "classification", X[:n], y[:n], X[n:], y[n:], source)


@register("dataset", "mnist_local")
@dataclass(eq=False, repr=False)
class MNISTLocal(MNIST):
    """MNIST with few training images per class, by the protocol of Mroueh et al. 2015, Figure 2.

    Its small rotations and shifts are those of the templates: the group ``product`` or ``affine``.

    Parameters
    ----------
    root : str or None
        Data folder, as for ``mnist``.
    per_class : int >= 1 or None
        Random training images of each class; None is all.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    download : bool
        Fetch missing files, as for ``mnist``.
    """

    per_class: PositiveInt | None = None

    def _load(self, random_state: RandomState) -> Dataset:
        data = super()._load(random_state)
        if self.per_class is None:
            return data
        return data.take(balanced(data.y_train, self.per_class, generator(random_state), "per_class"))


def _read_amat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 28, 28) and labels (n,) from a text file with 784 pixels and a label per line."""
    with readable(path.absolute(), "is corrupt: expected lines of 785 numbers"):
        table = np.loadtxt(path, dtype=np.float32, ndmin=2)
    if table.shape[1] != 785:
        raise DataFileError(f"{path.absolute()} is corrupt: expected lines of 785 numbers, found {table.shape[1]}")
    return np.ascontiguousarray(table[:, :784]).reshape(-1, 28, 28), ten_classes(table[:, 784], str(path.absolute()))
