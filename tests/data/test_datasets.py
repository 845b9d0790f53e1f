"""X_perm, MNIST with moves, CIFAR-10 and spoken digits: protocols, file formats, and corrupt files."""

import dataclasses
import hashlib
import io
import itertools
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile
from scipy.spatial import ConvexHull
from test_data import has, write_mnist

import orbit
from orbit.core.errors import DataFileError, InputError, ParameterError
from orbit.data import CIFAR10, MNISTLocal, Shapes, SpokenDigits, XPerm, cifar10
from orbit.data.spoken_digits import RATE
from orbit.testing import DatasetContract

# ---- X_perm ----------------------------------------------------------------------------------------------------------


class TestXPerm(DatasetContract):
    component = XPerm
    sizes = (4000, 28_768)


class TestShapes(DatasetContract):
    component, params = Shapes, {"n_points": 20, "per_class": 5, "test_per_class": 4}
    sizes = (30, 24)


class TestShapesAsVolumes(TestShapes):
    params = TestShapes.params | {"form": "volume", "side": 8}


def test_clouds_of_shapes_lie_on_their_convex_hulls_but_those_of_tori():
    data = Shapes(per_class=5, test_per_class=1, noise=0.0, n_points=2000).load(0)
    X = data.X_train.astype(float)
    assert sorted(set(data.y_train)) == ["box", "cone", "cylinder", "ellipsoid", "tetrahedron", "torus"]
    np.testing.assert_allclose(X.mean(1), 0, atol=1e-6)
    np.testing.assert_allclose(np.square(X).sum(2).mean(1), 1, rtol=1e-5)
    planes = [ConvexHull(cloud).equations for cloud in X]
    depths = np.stack([-(cloud @ each[:, :3].T + each[:, 3]).max(1) for cloud, each in zip(X, planes, strict=True)])
    assert depths[data.y_train != "torus"].max() < 0.1
    assert depths[data.y_train == "torus"].max(1).min() > 0.15


def test_volumes_of_shapes_are_the_cells_of_their_surfaces():
    X = Shapes("volume", per_class=3, test_per_class=1, side=16).load(0).X_train
    assert set(np.unique(X)) == {0.0, 1.0}
    assert 0.02 < X.mean() < 0.2
    assert X[:, [0, -1]].sum() == 0  # no surface reaches the boundary


def words(X: np.ndarray) -> list[str]:
    return ["".join("ABCDEFGH"[i] for i in row) for row in X.argmax(2)]


def test_xperm_is_every_word_once_with_the_papers_labels():
    data = XPerm(targets="CF").load(3)
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    assert sorted(words(X)) == sorted("".join(word) for word in itertools.product("ABCDEFGH", repeat=5))
    assert [int("C" in word and "F" in word) for word in words(X)] == y.tolist()
    assert y.sum() == 8**5 - 2 * 7**5 + 6**5
    assert np.bincount(data.y_train).tolist() == [2000, 2000]
    assert X.sum() == 5 * 8**5


def test_xperm_has_as_many_points_of_each_class_as_wanted_and_the_same_test_part():
    some, whole = XPerm(per_class=30).load(0), XPerm().load(0)
    assert np.bincount(some.y_train).tolist() == [30, 30]
    np.testing.assert_array_equal(some.X_test, whole.X_test)
    known = {tuple(row) for row in whole.X_train.reshape(len(whole.X_train), -1)}
    assert all(tuple(row) in known for row in some.X_train.reshape(60, -1))
    with pytest.raises(ParameterError, match="per_class: expected at most 2000"):
        XPerm(per_class=2001).load(0)


def test_xperm_labels_do_not_change_along_orbits():
    data = XPerm().load(0)
    label = dict(zip(words(data.X_test), data.y_test, strict=True))
    group = orbit.build("group", "permutation", mode="blocks", n=5)
    moved = group.act(group.elements(), data.X_test[:50])
    assert len(moved) == 120
    for shuffled in moved:
        assert all(label.get(word, y) == y for word, y in zip(words(shuffled), data.y_test[:50], strict=True))


@pytest.mark.parametrize("targets", ["A", "AA", "AX", "ABC", "ab", ""])
def test_xperm_has_two_targets(targets):
    with pytest.raises(ParameterError, match="targets: expected two different letters of ABCDEFGH"):
        XPerm(targets=targets).load(0)


# ---- MNIST with few images -------------------------------------------------------------------------------------------


class TestMNISTLocal(DatasetContract):
    component, sizes = MNISTLocal, (40, 20)

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path, monkeypatch):
        write_mnist(tmp_path / "mnist", monkeypatch)
        monkeypatch.setenv("ORBIT_DATA", str(tmp_path))

    def test_classes_have_equal_sizes(self):
        whole, data, other = self.create().load(0), self.create(per_class=3).load(0), self.create(per_class=3).load(1)
        assert np.bincount(data.y_train).tolist() == [3] * 10
        assert not np.array_equal(data.X_train, other.X_train)
        np.testing.assert_array_equal(data.X_test, whole.X_test)
        assert {x.tobytes() for x in data.X_train} < {x.tobytes() for x in whole.X_train}
        with pytest.raises(InputError, match=r"per_class: expected at most 4, .* of class 0, found 5"):
            self.create(per_class=5).load(0)


# ---- CIFAR-10 --------------------------------------------------------------------------------------------------------


def python2_pickle(data: np.ndarray, labels: list[int]) -> bytes:
    """A batch with the opcodes of Python 2's cPickle, as upstream's files have them: byte strings, old numpy names."""

    def short(text: bytes) -> bytes:
        return b"U" + bytes([len(text)]) + text

    rows = b"M" + struct.pack("<H", len(data)) + b"M" + struct.pack("<H", data.shape[1])
    dtype = b"cnumpy\ndtype\nq\n" + short(b"u1") + b"K\x00K\x01\x87Rq\x0b(K\x03" + short(b"|")
    dtype += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85" + short(b"b") + b"\x87Rq\t"
    array += b"(K\x01" + rows + b"\x86" + dtype + b"\x89T" + struct.pack("<i", data.size) + data.tobytes() + b"tb"
    listed = b"]q\x05(" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}q\x01(" + short(b"labels") + listed + short(b"data") + array + b"u."


@pytest.fixture(scope="module")
def cifar():
    """Images (n, 32, 32, 3) and labels, and the same as five training batches and one for testing."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8), np.arange(60) % 10
    rows = X.transpose(0, 3, 1, 2).reshape(6, 10, 3072)
    batches = [python2_pickle(data, labels.tolist()) for data, labels in zip(rows, y.reshape(6, 10), strict=True)]
    return X, y, dict(zip([f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"], batches, strict=True))


def write_archive(path: Path, batches: dict[str, bytes], monkeypatch) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in batches.items():
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(cifar10, "ARCHIVE", dataclasses.replace(cifar10.ARCHIVE, sha256=digest))


def write_batches(folder: Path, batches: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, content in batches.items():
        (folder / name).write_bytes(content)


class TestCIFAR10(DatasetContract):
    component = CIFAR10
    sizes = (50, 10)

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path, monkeypatch, cifar):
        (tmp_path / "cifar10").mkdir()
        write_archive(tmp_path / "cifar10" / "cifar-10-python.tar.gz", cifar[2], monkeypatch)
        monkeypatch.setenv("ORBIT_DATA", str(tmp_path))


@pytest.mark.parametrize("form", ["archive", "batches", "npz"])
@pytest.mark.parametrize("folder", ["cifar10", "."])
def test_cifar10_is_the_same_from_each_kind_of_file(tmp_path, monkeypatch, cifar, form, folder):
    X, y, batches = cifar
    place = tmp_path / folder
    place.mkdir(exist_ok=True)
    if form == "archive":
        write_archive(place / "cifar-10-python.tar.gz", batches, monkeypatch)
    elif form == "batches":
        write_batches(place / "cifar-10-batches-py", batches)
    else:
        np.savez(place / "cifar10.npz", x_train=X[:50], y_train=y[:50, None], x_test=X[50:], y_test=y[50:])
    data = CIFAR10(root=str(tmp_path)).load(0)
    np.testing.assert_allclose(data.X_train, X[:50] / 255, rtol=1e-6)
    np.testing.assert_allclose(data.X_test, X[50:] / 255, rtol=1e-6)
    np.testing.assert_array_equal(data.y_train, y[:50])
    np.testing.assert_array_equal(data.y_test, y[50:])


def test_a_batch_cannot_run_code(tmp_path, cifar):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    write_batches(tmp_path / "cifar-10-batches-py", cifar[2] | {"data_batch_3": pickle.dumps({b"data": Trap()})})
    with pytest.raises(DataFileError, match=r"data_batch_3 is not a batch of CIFAR-10 \(it asks for posix\.mkdir\)"):
        CIFAR10(root=str(tmp_path)).load(0)
    assert not (tmp_path / "sprung").exists()


def test_batches_written_by_todays_python_are_read(tmp_path, cifar):
    X, y, batches = cifar
    rows = X[:10].transpose(0, 3, 1, 2).reshape(10, 3072)
    today = pickle.dumps({b"data": rows, b"labels": y[:10].tolist()}, protocol=2)
    write_batches(tmp_path / "cifar-10-batches-py", batches | {"data_batch_1": today})
    np.testing.assert_allclose(CIFAR10(root=str(tmp_path)).load(0).X_train, X[:50] / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test_batch", b"no pickle", "test_batch is not a batch of CIFAR-10"),
        ("test_batch", pickle.dumps({b"labels": [1]}), "test_batch is not a batch of CIFAR-10"),
        ("data_batch_2", python2_pickle(np.zeros((2, 300), np.uint8), [1, 2]), r"found \(2, 300\) of uint8 and 2"),
        ("data_batch_2", python2_pickle(np.zeros((2, 3072), np.uint8), [1]), "uint8 and 1"),
    ],
)
def test_corrupt_batches_are_refused(tmp_path, cifar, name, content, message):
    write_batches(tmp_path / "cifar-10-batches-py", cifar[2] | {name: content})
    with pytest.raises(DataFileError, match=message):
        CIFAR10(root=str(tmp_path)).load(0)


def test_incomplete_cifar10_names_what_is_missing(tmp_path, cifar, monkeypatch):
    batches = {name: content for name, content in cifar[2].items() if name != "data_batch_4"}
    write_batches(tmp_path / "one" / "cifar-10-batches-py", batches)
    with pytest.raises(DataFileError, match="cifar-10-batches-py has no data_batch_4"):
        CIFAR10(root=str(tmp_path / "one")).load(0)
    write_archive(tmp_path / "cifar-10-python.tar.gz", batches, monkeypatch)
    with pytest.raises(DataFileError, match="has no data_batch_4"):
        CIFAR10(root=str(tmp_path)).load(0)
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"short")
    with pytest.raises(DataFileError, match="is corrupt or another file: expected sha256"):
        CIFAR10(root=str(tmp_path)).load(0)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataFileError, match=r"cifar-10-python\.tar\.gz, found none.*cifar10\.npz.*download=true"):
        CIFAR10(root=str(tmp_path / "none")).check_files()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_train": None}, "lacks x_train"),
        ({"x_test": np.zeros((5, 32, 32), np.uint8)}, r"expected x_test of shape .* found \(5, 32, 32\) of uint8"),
        ({"x_test": np.zeros((5, 32, 32, 3))}, r"found \(5, 32, 32, 3\) of float64"),
    ],
)
def test_other_npz_files_are_refused(tmp_path, cifar, change, message):
    X, y, _ = cifar
    arrays = {"x_train": X, "y_train": y, "x_test": X, "y_test": y} | change
    np.savez(tmp_path / "cifar10.npz", **{key: array for key, array in arrays.items() if array is not None})
    with pytest.raises(DataFileError, match=message):
        CIFAR10(root=str(tmp_path)).load(0)


# ---- spoken digits ---------------------------------------------------------------------------------------------------

SPEAKERS = ("ann", "bob", "cy")


def wav(samples: np.ndarray, rate: int = RATE) -> bytes:
    buffer = io.BytesIO()
    wavfile.write(buffer, rate, samples)
    return buffer.getvalue()


def recordings() -> dict[str, bytes]:
    """Two digits by three speakers, seven of each: tones, the digit's in pitch, of lengths from 0.1 to 0.2 s."""
    rng = np.random.default_rng(0)
    found = {}
    for digit, speaker, index in itertools.product(range(2), SPEAKERS, range(7)):
        time = np.arange(rng.integers(800, 1600)) / RATE
        tone = np.sin(2 * np.pi * (400 + 800 * digit) * time) + 0.01 * rng.standard_normal(len(time))
        found[f"{digit}_{speaker}_{index}.wav"] = wav((8000 * tone).astype(np.int16))
    return found


def write_recordings(folder: Path, contents: dict[str, bytes], zipped: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not zipped:
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        return
    with zipfile.ZipFile(folder / "fsdd-1.0.zip", "w") as archive:
        archive.writestr("free-spoken-digit-dataset/README.md", "about")
        for name, content in contents.items():
            archive.writestr(f"free-spoken-digit-dataset/recordings/{name}", content)


class TestSpokenDigits(DatasetContract):
    component = SpokenDigits
    sizes = (12, 30)

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path, monkeypatch):
        write_recordings(tmp_path / "spoken_digits", recordings(), zipped=True)
        monkeypatch.setenv("ORBIT_DATA", str(tmp_path))


@pytest.mark.parametrize("folder", ["spoken_digits/recordings", "spoken_digits", "fsdd/recordings", "."])
@pytest.mark.parametrize("zipped", [False, True])
def test_recordings_are_found_in_folders_and_archives(tmp_path, folder, zipped):
    if zipped and folder not in ("spoken_digits", "."):
        pytest.skip("archives lie in the data folder or its subfolder")
    write_recordings(tmp_path / folder, recordings(), zipped)
    data = SpokenDigits(root=str(tmp_path)).load(0)
    assert len(data.X_train) + len(data.X_test) == 42
    assert "42 recordings" in data.source


@pytest.fixture
def spoken(tmp_path):
    write_recordings(tmp_path, recordings())

    def create(**params) -> SpokenDigits:
        return SpokenDigits(root=str(tmp_path), **params)

    return create


def test_utterances_are_split_by_their_index(spoken):
    data = spoken().load(0)
    assert np.bincount(data.y_test).tolist() == [15, 15]
    np.testing.assert_array_equal(data.X_test, spoken().load(1).X_test)


def test_held_out_speakers_are_not_in_the_training_part(spoken):
    everything = spoken(form="waveform")
    for speaker in SPEAKERS:
        data = spoken(form="waveform", split="leave_one_speaker_out", speaker=speaker).load(0)
        assert (len(data.X_train), len(data.X_test)) == (28, 14)
        assert data.source.endswith(f"tested on {speaker}")
        assert sorted(np.unique(data.clusters)) == sorted({*SPEAKERS} - {speaker})  # validation by speakers as well
    assert spoken().load(0).clusters is None
    seen = {spoken(split="speaker").load(seed).source.split("tested on ")[1] for seed in range(12)}
    assert seen == {"ann, bob", "ann, cy", "bob, cy"}
    assert len(everything.load(0).X_train) == 12


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"split": "leave_one_speaker_out", "speaker": "anne"}, "speaker=anne: no such speaker; did you mean 'ann'?"),
        ({"duration": 0.01}, "duration: expected at least 0.032 s, found 0.01"),
    ],
)
def test_invalid_splits_and_sizes_are_rejected(spoken, params, message):
    with pytest.raises(InputError) as error:
        spoken(**params).load(0)
    assert str(error.value).startswith(f"dataset.{message}")
    assert error.value.__cause__ is not error.value


def test_one_new_recording_or_a_folder_of_them(tmp_path):
    write_recordings(tmp_path, recordings())
    loader = SpokenDigits(root=str(tmp_path))
    folder, form = tmp_path, loader.load(0).form
    together = loader.read_points(str(folder), form)
    assert len(together.ids) == len(recordings())
    alone = loader.read_points(str(folder / together.ids[1]), form)
    assert alone.ids == [together.ids[1]]
    np.testing.assert_array_equal(alone.X, together.X[1:2])


def test_waveforms_lie_in_the_middle_of_their_time(tmp_path):
    samples = (np.arange(1, 301) * 100).astype(np.int16)
    write_recordings(tmp_path, recordings() | {"0_ann_0.wav": wav(samples)})
    for length in (1000, 1001, 300, 256):
        data = SpokenDigits(root=str(tmp_path), form="waveform", duration=length / RATE).load(0)
        assert data.X_test.shape[1:] == (length,)
        first = data.X_test[0] * 2**15
        kept = min(300, length)
        assert np.count_nonzero(first) == kept
        before = (length - kept) // 2
        np.testing.assert_allclose(first[before : before + kept], samples[(300 - kept) // 2 :][:kept], rtol=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no sound", "0_ann_0.wav is not a readable recording"),
        (wav(np.ones(800, np.int16), 16_000), "expected one channel of 8000 samples a second.*1 channels at 16000"),
        (wav(np.ones((800, 2), np.int16)), "2 channels at 8000"),
        (wav(np.ones(800, np.float32)), "in FLOAT"),
    ],
)
def test_other_sounds_are_refused(tmp_path, content, message):
    write_recordings(tmp_path, recordings() | {"0_ann_0.wav": content})
    with pytest.raises(DataFileError, match=message):
        SpokenDigits(root=str(tmp_path)).load(0)


def test_missing_and_corrupt_recordings(tmp_path):
    with pytest.raises(DataFileError, match=r"free-spoken-digit-dataset-1.0.10\.zip, found none.*download=true"):
        SpokenDigits(root=str(tmp_path)).check_files()
    (tmp_path / "fsdd.zip").write_bytes(b"PK\x03\x04broken")
    with pytest.raises(DataFileError, match=r"fsdd\.zip cannot be read"):
        SpokenDigits(root=str(tmp_path)).load(0)


@pytest.mark.parametrize(("form", "group"), [("spectrogram", "translation"), ("waveform", "pitch_tempo")])
def test_groups_act_on_spoken_digits(spoken, form, group):
    X = spoken(form=form).load(0).X_train[:2]
    act = orbit.build("group", group)
    elements = orbit.Orbit(act, size=3).fit(X).elements_
    assert np.isfinite(act.act(elements, X)).all()


# ---- the real files, where a machine has them ------------------------------------------------------------------------


@pytest.mark.skipif(not has(SpokenDigits()), reason="needs the Free Spoken Digit Dataset in the folder ORBIT_DATA")
def test_real_spoken_digits():
    data = SpokenDigits().load(0)
    assert (data.X_train.shape, data.X_test.shape) == ((2700, 32, 32), (300, 32, 32))
    assert np.bincount(data.y_test).tolist() == [30] * 10


@pytest.mark.slow
@pytest.mark.skipif(not has(CIFAR10()), reason="needs CIFAR-10 in the folder ORBIT_DATA")
def test_real_cifar10():
    data = CIFAR10().load(0)
    assert (data.X_train.shape, data.X_test.shape) == ((50_000, 32, 32, 3), (10_000, 32, 32, 3))
    assert np.bincount(data.y_train).tolist() == [5000] * 10
