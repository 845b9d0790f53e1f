"""Data sets in one call, and those of other libraries."""

import numpy as np
import pytest
import torch
from PIL import Image
from samples import draw_classes

import orbit
from orbit.core.errors import InputError

X, Y = np.random.default_rng(0).random((20, 6, 8)).astype(np.float32), np.array(["cat", "owl"] * 10)
CODES = (Y == "owl").astype(np.int64)


class Mappings:
    """Like a data set of Hugging Face: a length, and a mapping for each index."""

    def __init__(self, points, key="image", targets=CODES):
        self.rows = [{"id": 7, key: point, "label": target} for point, target in zip(points, targets, strict=True)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


@pytest.mark.parametrize(
    "data",
    [
        (X, CODES),
        (X.tolist(), CODES.tolist()),
        (torch.from_numpy(X), torch.from_numpy(CODES)[:, None]),
        torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(CODES)),
        torch.utils.data.Subset(list(zip(X, CODES, strict=True)), range(20)),
        Mappings(X),
        Mappings([Image.fromarray(point) for point in X]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_pairs_and_data_sets_of_others_are_the_same_data(data):
    expected, found = orbit.as_dataset((X, CODES)), orbit.as_dataset(data)
    assert found.task == "classification"
    for part in ("X_train", "y_train", "X_test", "y_test"):
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part), rtol=1e-7)


def test_hugging_face_data_sets_are_read():
    datasets = pytest.importorskip("datasets")
    found = orbit.as_dataset(datasets.Dataset.from_dict({"pixels": X.tolist(), "label": CODES.tolist()}), x="pixels")
    np.testing.assert_allclose(found.X_train, orbit.as_dataset((X, CODES)).X_train, rtol=1e-6)


def test_a_test_part_names_and_a_data_set_itself():
    given = orbit.as_dataset((X[:15], Y[:15]), test=Mappings(X[15:], "pixels", Y[15:]), x="pixels")
    np.testing.assert_array_equal(given.X_test, X[15:])
    assert given.y_test.tolist() == Y[15:].tolist()
    assert orbit.as_dataset(given) is given
    assert orbit.as_dataset((X, CODES), task="regression").task == "regression"


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        (7, {}, r"data: expected a pair \(X, y\), or a data set with a length .*found int"),
        (Mappings([], targets=[]), {}, "data: expected at least one point"),
        (Mappings(X, "pixels"), {}, "no 'usual key'; they have id, pixels, label; set x"),
        (Mappings(X), {"y": "lable"}, "no 'lable'; did you mean 'label'.*; set y"),
        (Mappings([X[0], X[1, :4]], targets=CODES[:2]), {}, r"one shape, found \(4, 8\) and \(6, 8\)"),
        ((Y, CODES), {}, "data: X must hold real numbers"),
        ((X, CODES[:3]), {}, "data: X has 20 points, y has 3 targets"),
        ([X, X, X], {}, r"expected pairs \(point, target\) or mappings, found ndarray"),
        ((X, CODES), {"test_fraction": "much"}, "test_fraction: expected a .*number"),
        (([X[0], X[1, :4]], CODES[:2]), {}, "data: expected arrays X and y, points of one shape"),
    ],
)
def test_what_is_no_data_set_is_one_line(data, settings, message):
    with pytest.raises(InputError, match=message):
        orbit.as_dataset(data, **settings)


def test_files_in_one_call_are_those_of_their_loader(tmp_path):
    draw_classes(tmp_path, 4)
    found, expected = orbit.read_images(tmp_path, resize=4), orbit.data.Images(str(tmp_path), resize=4).load(0)
    np.testing.assert_array_equal(found.X_train, expected.X_train)
    with pytest.raises(InputError, match="dataset=images has no parameter 'resise'; did you mean 'resize'"):
        orbit.read_images(tmp_path, resise=4)
    with pytest.raises(InputError, match=r"dataset\.path: expected a file at .*gone\.csv"):
        orbit.read_table(str(tmp_path / "gone.csv"), "kind")
