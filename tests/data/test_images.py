"""A user's own pictures."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from samples import draw, draw_classes

from orbit.core.errors import InputError
from orbit.core.fingerprint import digest, fingerprint, of_listing
from orbit.data import Images
from orbit.testing import DatasetContract


class TestImages(DatasetContract):
    sizes = (30, 10)
    path: str | None = None

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        draw_classes(tmp_path / "zoo")
        self.path = str(tmp_path / "zoo")

    def create(self, **params):
        return Images(self.path, **params)


@pytest.mark.parametrize(("channels", "shape"), [("grey", (6, 8)), ("rgb", (6, 8, 3))])
def test_pictures_are_their_pixels_under_their_folders_names(tmp_path, channels, shape):
    pictures = draw_classes(tmp_path, shape=shape)
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    (tmp_path / ".hidden").mkdir()
    data = Images(str(tmp_path), channels=channels).load(0)
    assert data.source.endswith(", in grey" if channels == "grey" else ", in colour")
    assert data.X_train.shape == (30, *shape)
    by_pixels = {(values / np.float32(255)).tobytes(): name.split("/")[0] for name, values in pictures.items()}
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert [by_pixels[x.tobytes()] for x in X] == y.tolist()


def test_train_and_test_folders_are_the_parts(tmp_path):
    draw_classes(tmp_path / "train", 6)
    draw_classes(tmp_path / "test", 2)
    data = Images(str(tmp_path)).load(0)
    assert (len(data.X_train), len(data.X_test)) == (12, 4)


def test_unequal_sizes_are_refused_or_resized(tmp_path):
    draw_classes(tmp_path)
    draw(tmp_path / "cat" / "odd.png", np.full((5, 7), 128, np.uint8))
    with pytest.raises(InputError, match=r"odd.png has 5 x 7 pixels, 1.png has 6 x 8; set resize=\[6,8\]"):
        Images(str(tmp_path)).load(0)
    data = Images(str(tmp_path), resize=[4, 5]).load(0)
    assert data.X_train.shape == (31, 4, 5)
    assert 0 <= data.X_train.min() < data.X_train.max() <= 1


def one_picture(tmp_path: Path, name: str, values: np.ndarray, channels: str = "grey", **how) -> np.ndarray:
    draw(tmp_path / "new" / name, values, **how)
    form = {"shape": [*values.shape[:2], *([3] if channels == "rgb" else [])]}
    return Images(channels=channels).read_points(str(tmp_path / "new" / name), form).X[0]  # type: ignore[arg-type]


def test_names_that_are_not_utf8_are_escaped(tmp_path):
    zoo = tmp_path / "zoo"
    draw_classes(zoo, 4)
    for name in (zoo / "cat" / "1.png", zoo / "cat"):
        name.rename(os.fsdecode(os.fsencode(name) + (b"\xe9" if name.is_dir() else b"\xff.png")))
    data = Images(str(zoo)).load(0)
    assert {*data.y_train} == {"cat\\udce9", "owl"}
    assert "cat\\udce9/1.png\\udcff.png" in Images().read_points(str(zoo), {"shape": [6, 8]}).ids
    prints = [fingerprint(path, path.name) for path in sorted(zoo.rglob("*.png"))]
    assert json.dumps([each.path + each.name for each in prints], ensure_ascii=False).encode()
    (zoo / "owl" / os.fsdecode(b"\xff.png")).touch()
    with pytest.raises(InputError, match=r"owl/\\udcff.png is not a readable picture"):
        Images(str(zoo)).load(0)
    assert len(digest([*prints, of_listing("a\ud800.npy", 1, 2)])) == 16


def test_sixteen_bits_keep_their_values(tmp_path):
    deep = np.linspace(0, 65535, 48).reshape(6, 8).astype(np.uint16)
    np.testing.assert_allclose(one_picture(tmp_path, "deep.png", deep), deep / 65535, atol=1e-6)
    colour = one_picture(tmp_path, "deep.png", deep, "rgb")
    np.testing.assert_allclose(colour, np.repeat(deep[..., None], 3, 2) / 65535, atol=0.5 / 255 + 1e-6)


def test_transparent_pixels_are_black(tmp_path):
    picture = np.full((4, 4, 4), 200, np.uint8)
    picture[:2, :, 3] = 0
    shown = one_picture(tmp_path, "clear.png", picture, "rgb")
    assert not shown[:2].any()
    assert np.all(shown[2:] > 0.5)


def test_jpeg_in_colour_and_grey(tmp_path):
    red = np.zeros((16, 16, 3), np.uint8)
    red[..., 0] = 255
    np.testing.assert_allclose(one_picture(tmp_path, "red.jpg", red, "rgb"), red / 255, atol=0.02)
    np.testing.assert_allclose(one_picture(tmp_path, "red.JPEG", red), 0.299, atol=0.02)


def test_what_lies_beside_train_and_test_is_left_out_with_a_warning(tmp_path):
    for part in ("train", "test", "val"):
        draw_classes(tmp_path / "new" / part, 3)
    with pytest.warns(UserWarning, match="1 files and folders are left out, e.g. val; only the folders train and test"):
        Images(str(tmp_path / "new")).load(0)


def test_new_pictures_are_read_by_their_names(tmp_path):
    pictures = draw_classes(tmp_path / "new", 3)
    points = Images().read_points(str(tmp_path / "new"), {"shape": [6, 8]})
    assert points.ids == sorted(pictures)
    for x, name in zip(points.X, points.ids, strict=True):
        np.testing.assert_allclose(x, pictures[name] / 255, rtol=1e-6)
