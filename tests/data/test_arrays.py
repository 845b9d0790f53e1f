"""A user's own arrays: what a file holds, its split, groups and new points."""

import contextlib
import os
import warnings
from functools import partial

import numpy as np
import pytest

from orbit import MNIST, Arrays, DataFileError
from orbit.data.checks import check_arrays, real_numbers
from orbit.data.rows import NpyFile, Rows
from orbit.data.splits import guess_task
from orbit.testing import DatasetContract
from runners.experiments.validation import KFolds


class TestArrays(DatasetContract):
    component, sizes = Arrays, (45, 15)

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path):
        self.params = {"path": str(tmp_path / "mine.npz")}
        np.savez(tmp_path / "mine.npz", X=np.random.default_rng(0).random((60, 3, 4)), y=np.arange(60) % 3)


class TestArraysOfNpyFiles(DatasetContract):
    component, sizes = Arrays, (45, 15)

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path):
        self.params = {"path": str(tmp_path / "X.npy"), "y_path": str(tmp_path / "y.npy")}
        np.save(tmp_path / "X.npy", np.random.default_rng(0).integers(0, 256, (60, 3, 4)).astype(np.uint8))
        np.save(tmp_path / "y.npy", np.arange(60) % 3)

    def test_points_are_left_in_the_file_on_request(self):
        held, left = self.create().load(0), self.create().load(0, lazy=True)
        assert isinstance(held.X_train, np.ndarray)
        assert isinstance(left.X_train.source, NpyFile)
        assert left.X_train.dtype == held.X_train.dtype == np.float32


# ---- a user's own arrays ---------------------------------------------------------------------------------------------


@pytest.fixture
def save(tmp_path):
    """``save(X=..., y=...)`` -> the path of an .npz."""

    def write(name: str = "mine.npz", **arrays) -> str:
        np.savez(tmp_path / name, **arrays)
        return str(tmp_path / name)

    return write


X20 = np.random.default_rng(0).random((20, 3))
Y20 = np.arange(20) % 2


def test_arrays_under_any_names(save):
    path = save(inputs=X20, labels=Y20)
    data = Arrays(path, x_key="inputs", y_key="labels").load(0)
    assert (data.X_train.shape, data.X_test.shape) == ((15, 3), (5, 3))
    assert data.source == "file mine.npz"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (("X", "y", "X_test", "y_test"), {}),
        (("x_train", "y_train", "x_test", "y_test"), {"x_key": "x_train", "y_key": "y_train"}),
        (("X", "y", "T", "t"), {"x_test_key": "T", "y_test_key": "t"}),
    ],
)
def test_arrays_with_a_test_part_of_their_own(save, names, keys):
    path = save(**dict(zip(names, (X20, Y20, X20[:4] + 1, Y20[:4]), strict=True)))
    data = Arrays(path, **keys).load(0)
    np.testing.assert_array_equal(data.X_train, X20)
    np.testing.assert_array_equal(data.X_test, X20[:4] + 1)


def test_arrays_from_an_npz_with_targets_elsewhere(tmp_path, save):
    """The array called ``x_key`` is X, whatever else the file holds before it."""
    np.save(tmp_path / "y.npy", Y20)
    path = save(A=np.zeros((20, 3)), X=X20)
    data = Arrays(path, y_path=str(tmp_path / "y.npy")).load(0)
    assert np.abs(data.X_train).max() > 0


def test_arrays_in_the_home_folder(save, tmp_path, monkeypatch):
    save(X=X20, y=Y20)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(Arrays("~/mine.npz").load(0).X_train) == 15


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (Y20, "classification"),
        (Y20.astype(bool), "classification"),
        (np.array(["owl", "cat"])[Y20], "classification"),
        (Y20.astype(float), "classification"),
        (Y20[:, None], "classification"),
        (Y20 + 0.5, "regression"),
        (X20[:, 0], "regression"),
        (X20[:, :1], "regression"),
        (X20, "regression"),
    ],
    ids=["int", "bool", "str", "whole floats", "column", "halves", "floats", "float column", "two outputs"],
)
def test_task_is_guessed(save, y, task):
    data = Arrays(save(X=X20, y=y)).load(0)
    assert data.task == task
    assert data.y_train.ndim == (2 if y.ndim == 2 and y.shape[1] > 1 else 1)


def test_task_may_be_given(save):
    assert Arrays(save(X=X20, y=Y20), task="regression").load(0).task == "regression"


@pytest.mark.parametrize("given", ["f4", ">f4", "f8", ">f8", "g", "u1", "i8", "?", "f2"])
def test_precision_of_arrays(save, given):
    data = Arrays(save(X=(X20 * 9).astype(given), y=Y20)).load(0)
    assert data.X_train.dtype == ("f8" if given in ("f8", ">f8", "g") else "f4")
    assert data.source == "file mine.npz" + ", bytes from 0 to 255 as they are" * (given == "u1")


def test_classes_are_split_evenly(save):
    y = np.repeat([0, 1, 2], [60, 30, 10])
    data = Arrays(save(X=np.random.default_rng(0).random((100, 2)), y=y), test_fraction=0.3).load(0)
    np.testing.assert_array_equal(np.bincount(data.y_test), [18, 9, 3])


def test_classes_too_small_to_split_evenly_are_split_anyway(save):
    y = np.array([0] * 10 + [1] * 9 + [2])
    data = Arrays(save(X=X20, y=y)).load(0)
    assert len(data.X_train) == 15


def test_large_finite_values_are_accepted():
    """Their sum is infinite, they are not."""
    with np.errstate(over="ignore"):
        check_arrays(np.full((3, 2), 1e308), np.arange(3), "classification", "here")


def test_pickled_objects_are_not_loaded(tmp_path):
    """A pickle from a stranger would run code."""

    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    np.savez(tmp_path / "trap.npz", X=np.array([[Trap()]], dtype=object), y=Y20)
    with pytest.raises(DataFileError, match=r"trap\.npz is not a readable .npz, .npy or .mat file without objects"):
        Arrays(str(tmp_path / "trap.npz")).load(0)
    assert not (tmp_path / "sprung").exists()


def test_integers_that_float32_does_not_hold_stay_different():
    times = 1_700_000_000 + 10 * np.arange(40)
    assert len(np.unique(real_numbers(times, "X"))) == 40
    assert real_numbers(-times, "X").dtype == np.float64
    assert real_numbers(np.arange(5), "X").dtype == real_numbers(np.zeros(0, int), "X").dtype == np.float32


@pytest.mark.parametrize("largest", [2**24 + 3, 2**24])
def test_integers_of_a_file_by_rows_are_float32_with_a_warning_if_they_are_rounded(tmp_path, largest):
    np.save(tmp_path / "X.npy", largest - np.arange(40).reshape(20, 2))
    np.save(tmp_path / "y.npy", np.arange(20) % 2)
    X = Arrays(path=str(tmp_path / "X.npy"), y_path=str(tmp_path / "y.npy")).load(0, lazy=True).X_train
    assert isinstance(X, Rows)
    rounded = pytest.warns(UserWarning, match=r"X\.npy: integers larger than 16,777,216 are rounded to float32")
    with rounded if largest > 2**24 else contextlib.nullcontext():
        assert X[np.arange(len(X))].dtype == np.float32


def test_many_different_integers_are_not_classes():
    assert guess_task(np.arange(100)) == "classification"
    assert guess_task(np.arange(101)) == "regression"
    assert guess_task(np.arange(101).astype(str)) == "classification"


@pytest.mark.parametrize(
    ("n", "values", "warned"), [(90, 30, True), (90, 10, False), (300, 21, True), (630, 21, False)]
)
def test_whole_numbers_with_few_points_each_are_warned_of(n, values, warned):
    y = np.arange(n) % values
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert guess_task(y) == "classification"
    assert [str(each.message).partition(",")[0] for each in found] == (
        [f"the targets are {values} different whole numbers"] if warned else []
    )


# ---- the split of arrays ---------------------------------------------------------------------------------------------


@pytest.fixture
def arrays(save):
    """``arrays(split=...)`` -> the path of an .npz with 20 points, whose X are their numbers."""
    return partial(save, X=np.arange(20.0)[:, None], y=Y20)


SPLITS = {
    "strings": {"split": ["train", "test", "train", "train"] * 5},
    "numbers": {"split": np.array([0, 1, 0, 0] * 5)},
    "booleans": {"split": np.array([False, True, False, False] * 5)},
}


@pytest.mark.parametrize("how", SPLITS)
def test_a_file_says_which_points_are_the_test_part(arrays, how):
    data = Arrays(arrays(**SPLITS[how])).load(0)
    assert data.X_test[:, 0].tolist() == [1, 5, 9, 13, 17]
    assert data.X_train[:, 0].tolist() == [i for i in range(20) if i % 4 != 1]
    assert data.y_test.tolist() == [1] * 5


def test_validation_points_of_a_file_are_a_fold_of_the_training_part(arrays):
    data = Arrays(arrays(split=["train", "val", "test", "train"] * 5)).load(0)
    assert data.X_train[:, 0].tolist() == [i for i in range(20) if i % 4 != 2]
    np.testing.assert_array_equal(data.folds == 0, data.X_train[:, 0] % 4 == 1)


@pytest.mark.filterwarnings("error")
def test_arrays_that_are_not_read_are_warned_of(arrays):
    path = arrays(T=np.ones((4, 1)), y_test=np.arange(4) % 2)
    with pytest.warns(UserWarning, match="arrays that are left out: T, y_test; dataset.x_test_key=NAME"):
        Arrays(path).load(0)
    Arrays(path, x_test_key="T", y_test_key="y_test").load(0)
    Arrays(arrays(n_train=14, groups=np.arange(20), **SPLITS["strings"])).load(0)


def test_the_first_points_are_the_training_part(arrays):
    data = Arrays(arrays(n_train=14)).load(0)
    assert data.X_train[:, 0].tolist() == list(range(14))
    assert data.X_test[:, 0].tolist() == list(range(14, 20))
    both = Arrays(arrays(n_train=14, **SPLITS["strings"])).load(0)
    assert len(both.X_test) == 5, "split comes first"
    assert len(Arrays(arrays(n_train=14), n_train=6).load(0).X_train) == 6, "a subset of the training part"


def test_points_of_a_group_are_in_one_part(arrays):
    for groups in (np.arange(20) // 4, (np.arange(20) // 4).astype(str)):
        data = Arrays(arrays(groups=groups)).load(1)
        assert not set(data.X_train[:, 0] // 4) & set(data.X_test[:, 0] // 4)
        np.testing.assert_array_equal(data.clusters.astype(int), data.X_train[:, 0] // 4)
        splits = KFolds(folds=2).splits(data, 0)
        assert all(not set(data.clusters[fit]) & set(data.clusters[rest]) for fit, rest in splits)


def test_targets_split_and_groups_of_points_that_are_streamed(arrays, tmp_path):
    np.save(tmp_path / "X.npy", np.arange(20.0)[:, None])
    loader = Arrays(str(tmp_path / "X.npy"), arrays(groups=np.arange(20) % 4, **SPLITS["strings"]))
    data = loader.load(0, lazy=True)
    assert data.X_test[:][:, 0].tolist() == [1, 5, 9, 13, 17]
    assert set(data.clusters) == {0, 2, 3}


# ---- new points of other loaders -------------------------------------------------------------------------------------


def test_new_arrays_are_read_by_the_loaders_own_key(tmp_path):
    X = np.random.default_rng(0).random((5, 3))
    np.savez(tmp_path / "new.npz", inputs=X)
    np.save(tmp_path / "new.npy", X)
    for name in ("new.npz", "new.npy"):
        points = Arrays(x_key="inputs").read_points(str(tmp_path / name), {"shape": [3]})
        np.testing.assert_array_equal(points.X, X)
        assert points.ids == ["0", "1", "2", "3", "4"]


def test_bytes_of_pixels_are_divided_as_the_data_was(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, (4, 28, 28), dtype=np.uint8)
    np.save(tmp_path / "new.npy", X)
    points = MNIST().read_points(str(tmp_path / "new.npy"), {"shape": [28, 28]})
    np.testing.assert_allclose(points.X, X / 255, rtol=1e-6)
    assert points.X.dtype == np.float32
