"""Data sets: the contract for each loader, file formats, and errors for invalid files and arrays."""

import gzip
import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy import io, ndimage, stats
from sklearn.datasets import load_digits

from orbit.core.errors import DataFileError, InputError, ParameterError
from orbit.data import MNIST, QM7, Dataset, Digits, Points, RotatedDigits, RotatedMNIST, files, mnist, qm7
from orbit.data.move import rotate_randomly
from orbit.testing import DatasetContract
from orbit.testing.samples import smooth_images

# ---- files as upstream ships them, made small ------------------------------------------------------------------------


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape) + array.tobytes()


def write_mnist(folder: Path, monkeypatch, n_train: int = 40, n_test: int = 20, side: int = 6) -> dict[str, np.ndarray]:
    """The four files with random content, and their digests in place of the real ones."""
    rng = np.random.default_rng(0)
    content = {
        "TRAIN_IMAGES": rng.integers(0, 256, (n_train, side, side), dtype=np.uint8),
        "TRAIN_LABELS": (np.arange(n_train) % 10).astype(np.uint8),
        "TEST_IMAGES": rng.integers(0, 256, (n_test, side, side), dtype=np.uint8),
        "TEST_LABELS": (np.arange(n_test) % 10).astype(np.uint8),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for constant, array in content.items():
        file = getattr(mnist, constant)
        packed = gzip.compress(idx(array))
        (folder / file.name).write_bytes(packed)
        digest = hashlib.sha256(packed).hexdigest()
        monkeypatch.setattr(mnist, constant, files.DataFile(file.name, digest, file.how))
    return content


def write_amat(folder: Path, n_train: int = 30, n_test: int = 20) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {}
    for part, file, n in (("train", mnist.AMAT_TRAIN, n_train), ("test", mnist.AMAT_TEST, n_test)):
        tables[part] = np.column_stack([rng.random((n, 784)).round(5), np.arange(n) % 10])
        np.savetxt(folder / file.name, tables[part], fmt="%.6e")
    return tables


def write_qm7(folder: Path, monkeypatch, per_fold: int = 10, atoms: int = 4) -> dict[str, np.ndarray]:
    n, rng = 5 * per_fold, np.random.default_rng(2)
    X = rng.random((n, atoms, atoms))
    content = {"X": X + X.transpose(0, 2, 1), "T": rng.random((1, n)), "P": rng.permutation(n).reshape(5, per_fold)}
    monkeypatch.setattr(qm7, "SHAPES", {key: array.shape for key, array in content.items()})
    folder.mkdir(parents=True, exist_ok=True)
    io.savemat(folder / qm7.QM7_FILE.name, content)
    return content


# ---- the contract ----------------------------------------------------------------------------------------------------


class TestDigits(DatasetContract):
    component = Digits
    sizes = (1000, 797)


class TestRotatedDigits(DatasetContract):
    component = RotatedDigits
    sizes = (1000, 797)


class TestMNIST(DatasetContract):
    component = MNIST
    sizes = (40, 20)

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path, monkeypatch):
        write_mnist(tmp_path / "mnist", monkeypatch)
        monkeypatch.setenv("ORBIT_DATA", str(tmp_path))


class TestRotatedMNIST(DatasetContract):
    component = RotatedMNIST
    sizes = (30, 20)

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path, monkeypatch):
        write_amat(tmp_path / "rotated_mnist")
        monkeypatch.setenv("ORBIT_DATA", str(tmp_path))


class TestQM7(DatasetContract):
    component = QM7
    sizes = (40, 10)

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path, monkeypatch):
        write_qm7(tmp_path / "qm7", monkeypatch)
        monkeypatch.setenv("ORBIT_DATA", str(tmp_path))


# ---- digits ----------------------------------------------------------------------------------------------------------


def rows(data: Dataset) -> np.ndarray:
    X = np.concatenate([data.X_train, data.X_test]).reshape(1797, -1)
    return X[np.lexsort(X.T)]


def test_digits_are_scikit_learns_split_by_the_seed():
    one, other = Digits().load(0), Digits().load(1)
    np.testing.assert_array_equal(rows(one), rows(other))
    assert not np.array_equal(one.X_train, other.X_train)
    original = load_digits().images.reshape(1797, -1) / 16
    np.testing.assert_allclose(rows(one), original[np.lexsort(original.T)].astype(np.float32))
    shares = [np.bincount(y) / len(y) for y in (one.y_train, one.y_test)]
    np.testing.assert_allclose(*shares, atol=0.002, err_msg="stratified")


def test_rotated_digits_do_not_depend_on_the_seed_of_the_run():
    one, other = RotatedDigits().load(0), RotatedDigits().load(1)
    np.testing.assert_array_equal(rows(one), rows(other))
    assert not np.array_equal(one.X_train, other.X_train)
    assert np.abs(rows(one) - rows(RotatedDigits(rotation_seed=1).load(0))).max() > 0.1
    assert np.abs(rows(one) - rows(Digits().load(0))).max() > 0.1
    np.testing.assert_array_equal(one.y_train, Digits().load(0).y_train, err_msg="labels stay")


def test_random_turns_are_turns_by_uniform_angles():
    """The centroid of a spot right of the centre gives the angle by which its image was turned."""
    y, x = np.mgrid[:15, :15] - 7.0
    spot = np.exp(-((x - 4) ** 2 + y**2) / 4)
    turned = rotate_randomly(np.repeat(spot[None], 600, 0), seed=3)
    assert turned.dtype == np.float32
    angles = np.arctan2((turned * -y).sum((1, 2)), (turned * x).sum((1, 2))) % (2 * np.pi)
    assert stats.kstest(angles, stats.uniform(0, 2 * np.pi).cdf).pvalue > 1e-3
    np.testing.assert_allclose(turned.sum((1, 2)), spot.sum(), rtol=0.05)
    np.testing.assert_array_equal(rotate_randomly(np.repeat(spot[None], 600, 0), seed=3), turned)


@pytest.mark.parametrize("together", [1, 2, 256])
def test_random_turns_are_cubic_and_clipped(rng, monkeypatch, together):
    monkeypatch.setattr("orbit.data.move._IMAGES", together)
    X = smooth_images(rng, 3, 12, 12)
    X /= X.max()
    angles = np.random.default_rng(5).uniform(0, 2 * np.pi, 3)
    for image, angle, turned in zip(X, angles, rotate_randomly(X, 5), strict=True):
        both = [ndimage.rotate(image, s * np.degrees(angle), reshape=False, mode="grid-constant") for s in (1, -1)]
        assert min(np.abs(expected.clip(0, 1) - turned).max() for expected in both) < 1e-5
    assert rotate_randomly(rng.random((5, 9, 9)), 0).min() >= 0
    assert rotate_randomly(rng.random((5, 9, 9)), 0).max() <= 1


def test_a_data_set_describes_itself_on_one_line_without_its_values():
    parts = "X_train=float32 (20, 8, 8), y_train=int64 (20,), X_test=float32 (5, 8, 8), y_test=int64 (5,)"
    assert repr(Digits(n_train=20, n_test=5).load(0)) == f"Dataset(digits, classification, {parts})"
    assert repr(Points(np.zeros((3, 2)), ["a", "b", "c"])) == "Points(X=float64 (3, 2))"


# ---- MNIST -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["mnist", "."])
@pytest.mark.parametrize("by", ["root", "variable"])
def test_mnist_reads_what_the_files_hold(tmp_path, monkeypatch, folder, by):
    content = write_mnist(tmp_path / folder, monkeypatch)
    monkeypatch.setenv("ORBIT_DATA", str(tmp_path if by == "variable" else "/nowhere"))
    data = MNIST(root=str(tmp_path) if by == "root" else None).load(0)
    np.testing.assert_allclose(data.X_train, content["TRAIN_IMAGES"] / 255, rtol=1e-6)
    np.testing.assert_array_equal(data.y_test, content["TEST_LABELS"])
    assert data.X_train.dtype == np.float32
    assert data.y_train.dtype == np.int64
    assert data.task == "classification"


@pytest.mark.parametrize("loader", [MNIST, RotatedMNIST, QM7])
def test_error_for_missing_files_names_folder_and_download(tmp_path, loader):
    for call in (loader(root=str(tmp_path)).check_files, lambda: loader(root=str(tmp_path)).load(0)):
        with pytest.raises(DataFileError) as error:
            call()
        text = str(error.value)
        folder = "qm7" if loader is QM7 else "mnist"
        name = "qm7.mat" if loader is QM7 else "train-images-idx3-ubyte.gz"
        assert str(tmp_path / folder / name) in text
        assert "ORBIT_DATA" in text
        assert "It is " in text
        assert "\n" not in text


def test_error_names_the_missing_file(tmp_path, monkeypatch):
    write_mnist(tmp_path, monkeypatch)
    MNIST(root=str(tmp_path)).check_files()
    (tmp_path / mnist.TEST_LABELS.name).unlink()
    with pytest.raises(DataFileError, match=mnist.TEST_LABELS.name):
        MNIST(root=str(tmp_path)).check_files()


def test_error_for_a_corrupt_file_has_both_digests(tmp_path, monkeypatch):
    write_mnist(tmp_path, monkeypatch)
    path = tmp_path / mnist.TEST_IMAGES.name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataFileError) as error:
        MNIST(root=str(tmp_path)).load(0)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    for part in (str(path), mnist.TEST_IMAGES.sha256, found, "ossci-datasets"):
        assert part in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataFileError, match=f"{tmp_path.name} cannot be read"):
        files.read_checked(tmp_path, mnist.TRAIN_IMAGES)


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4)])
def test_idx(rng, shape):
    array = rng.integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(mnist.read_idx(idx(array)), array)


# ---- rotated MNIST ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["rotated_mnist", "."])
def test_original_rotated_mnist_is_read_if_present(tmp_path, folder):
    tables = write_amat(tmp_path / folder)
    data = RotatedMNIST(root=str(tmp_path)).load(0)
    np.testing.assert_allclose(data.X_train.reshape(30, 784), tables["train"][:, :784], rtol=1e-6)
    np.testing.assert_array_equal(data.y_test, tables["test"][:, 784].astype(int))
    assert "Larochelle" in data.source
    assert "generated" not in data.source


@pytest.mark.parametrize("content", ["1 2 3\n4 5 6\n", "1 2 three\n"], ids=["too few columns", "no numbers"])
def test_corrupt_amat_files_are_refused(tmp_path, content):
    write_amat(tmp_path)
    (tmp_path / mnist.AMAT_TEST.name).write_text(content)
    with pytest.raises(DataFileError, match=f"{mnist.AMAT_TEST.name} is corrupt: expected lines of 785 numbers"):
        RotatedMNIST(root=str(tmp_path)).load(0)


@pytest.mark.parametrize("label", [10, -1, 2.5, np.nan])
def test_amat_files_with_other_classes_are_refused(tmp_path, label):
    write_amat(tmp_path)
    table = np.loadtxt(tmp_path / mnist.AMAT_TEST.name)
    table[3, 784] = label
    np.savetxt(tmp_path / mnist.AMAT_TEST.name, table)
    with pytest.raises(DataFileError, match=f"{mnist.AMAT_TEST.name}: expected classes from 0 to 9, found others"):
        RotatedMNIST(root=str(tmp_path)).load(0)


@pytest.mark.slow
def test_rotated_mnist_is_generated_by_the_protocol(tmp_path, monkeypatch):
    """12,000 for training, the rest for testing, each image with its label, turned by its own angle."""
    content = write_mnist(tmp_path, monkeypatch, n_train=12_030, n_test=30, side=4)
    data = RotatedMNIST(root=str(tmp_path)).load(0)
    assert data.X_train.shape == (12_000, 4, 4)
    assert data.X_test.shape == (60, 4, 4)
    assert data.y_train.dtype == np.int64
    assert "generated from MNIST" in data.source

    originals = np.concatenate([content["TRAIN_IMAGES"], content["TEST_IMAGES"]]) / np.float32(255)
    labels = np.concatenate([content["TRAIN_LABELS"], content["TEST_LABELS"]])
    y = np.concatenate([data.y_train, data.y_test])
    np.testing.assert_array_equal(np.bincount(y), np.bincount(labels))
    X = np.concatenate([data.X_train, data.X_test])
    order = np.random.default_rng(0).permutation(12_060)
    np.testing.assert_array_equal(y, labels[order])
    np.testing.assert_array_equal(X, rotate_randomly(originals[order], 0))

    again = RotatedMNIST(root=str(tmp_path)).load(7)
    np.testing.assert_array_equal(again.X_train, data.X_train, err_msg="the seed of the run changes nothing")
    assert not np.array_equal(RotatedMNIST(str(tmp_path), rotation_seed=1).load(0).y_train, data.y_train)


# ---- QM7 -------------------------------------------------------------------------------------------------------------


def test_qm7_folds_are_the_files_own(tmp_path, monkeypatch):
    content = write_qm7(tmp_path, monkeypatch)
    seen = []
    for fold in range(5):
        data = QM7(root=str(tmp_path), fold=fold).load(0)
        np.testing.assert_allclose(data.y_test, content["T"][0, content["P"][fold]])
        np.testing.assert_allclose(data.X_test, content["X"][content["P"][fold]], rtol=1e-6)
        assert len(data.X_train) == 40
        seen.extend(data.y_test)
        assert not set(data.y_train) & set(data.y_test)
    assert sorted(seen) == sorted(content["T"][0])


@pytest.mark.parametrize("fold", [-1, 5])
def test_qm7_has_five_folds(fold):
    with pytest.raises(ParameterError, match=f"fold: expected an integer from 0 to 4, found {fold}"):
        QM7(fold=fold).check()


def test_corrupt_qm7_files_are_refused(tmp_path, monkeypatch):
    content = write_qm7(tmp_path, monkeypatch)
    path = tmp_path / "qm7.mat"
    for broken in ({**content, "X": content["X"][:-1]}, {key: content[key] for key in ("X", "T")}):
        io.savemat(path, broken)
        with pytest.raises(DataFileError, match="qm7.mat: expected (X|P) of shape"):
            QM7(root=str(tmp_path)).load(0)
    for folds in (content["P"] + 1, np.zeros_like(content["P"])):
        io.savemat(path, {**content, "P": folds})
        with pytest.raises(DataFileError, match="qm7.mat: expected each molecule in one of the folds P"):
            QM7(root=str(tmp_path)).load(0)
    io.savemat(path, {**content, "X": content["X"] * 1j})
    with pytest.raises(InputError, match="qm7.mat, X must hold real numbers, found dtype complex128"):
        QM7(root=str(tmp_path)).load(0)
    path.write_bytes(b"no mat file")
    with pytest.raises(DataFileError, match=r"qm7.mat is corrupt.*quantum-machine.org"):
        QM7(root=str(tmp_path)).load(0)


# ---- the real files, where a machine has them ------------------------------------------------------------------------


def has(loader) -> bool:
    try:
        loader.check_files()
    except InputError:
        return False
    return "ORBIT_DATA" in os.environ


@pytest.mark.skipif(not has(MNIST()), reason="needs the files of MNIST in the folder ORBIT_DATA")
def test_real_mnist():
    data = MNIST().load(0)
    assert data.X_train.shape == (60_000, 28, 28)
    assert data.X_test.shape == (10_000, 28, 28)
    np.testing.assert_array_equal(np.bincount(data.y_test), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009])
    assert data.X_train.mean() == pytest.approx(0.1307, abs=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(not has(RotatedMNIST()), reason="needs the files of MNIST in the folder ORBIT_DATA")
def test_real_rotated_mnist():
    data = RotatedMNIST().load(0)
    assert data.X_train.shape == (12_000, 28, 28)
    assert data.X_test.shape == (50_000, 28, 28)
    assert set(data.y_train) == set(range(10))


@pytest.mark.skipif(not has(QM7()), reason="needs qm7.mat in the folder ORBIT_DATA")
def test_real_qm7():
    data = QM7(fold=2).load(0)
    assert data.X_train.shape == (5732, 23, 23)
    assert data.y_test.shape == (1433,)
    assert -2200 < data.y_train.min() < data.y_train.max() < -400
    np.testing.assert_allclose(data.X_train, data.X_train.transpose(0, 2, 1), rtol=1e-5)
