"""A user's own pictures: formats, sizes, scales, parts, and tables that list them."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tifffile
from file_table import STACK, fits, in_classes, mrc, mrc_listed, nifti, pages
from samples import draw, draw_classes

from orbit.core.errors import DataFileError, InputError
from orbit.core.fingerprint import digest, fingerprint, of_listing
from orbit.data import Images
from orbit.data.pictures import read_picture
from orbit.testing import DatasetContract
from runners.experiments.validation import GivenFolds


class TestImages(DatasetContract):
    component, sizes = Images, (30, 10)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        draw_classes(tmp_path / "zoo")
        self.params = {"path": str(tmp_path / "zoo")}


@pytest.mark.parametrize(("channels", "shape"), [("grey", (6, 8)), ("rgb", (6, 8, 3))])
def test_pictures_are_their_pixels_under_their_folders_names(tmp_path, channels, shape):
    pictures = draw_classes(tmp_path, shape=shape)
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    (tmp_path / ".hidden").mkdir()
    data = Images(str(tmp_path), channels=channels).load(0)
    assert data.source.endswith(", in grey" if channels == "grey" else ", in colour")
    assert data.reading == {"low": [0.0], "high": [255.0], "white": 255.0, "channels": channels}
    assert data.X_train.shape == (30, *shape)
    by_pixels = {(values / np.float32(255)).tobytes(): name.split("/")[0] for name, values in pictures.items()}
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert [by_pixels[x.tobytes()] for x in X] == y.tolist()


@pytest.mark.parametrize("names", [("train", "test"), ("Training", "TESTING")])
def test_train_and_test_folders_are_the_parts(tmp_path, names):
    draw_classes(tmp_path / names[0], 6)
    draw_classes(tmp_path / names[1], 2)
    data = Images(str(tmp_path)).load(0)
    assert (len(data.X_train), len(data.X_test)) == (12, 4)
    (tmp_path / names[1]).rename(tmp_path / "other")
    with pytest.raises(InputError, match=f"has a folder {names[0]}; expected train and test"):
        Images(str(tmp_path)).check_files()


def test_a_validation_folder_is_the_given_validation_part_or_the_test_part(tmp_path):
    for part, n in (("train", 6), ("valid", 3), ("test", 2)):
        draw_classes(tmp_path / part, n)
    data = Images(str(tmp_path)).load(0)
    assert (len(data.X_train), len(data.X_test)) == (18, 4)
    ((fit, validation),) = GivenFolds().splits(data)
    assert (len(fit), len(validation)) == (12, 6)
    shutil.rmtree(tmp_path / "test")
    data = Images(str(tmp_path)).load(0)
    assert (len(data.X_train), len(data.X_test), data.folds) == (12, 6, None)


def test_unequal_sizes_are_refused_by_name_or_resized(tmp_path):
    draw_classes(tmp_path)
    draw(tmp_path / "cat" / "odd.png", np.full((5, 7), 128, np.uint8))
    with pytest.raises(InputError, match=r"odd\.png has 5 x 7 pixels, others have 6 x 8; .* dataset\.resize=\[6,8\]"):
        Images(str(tmp_path)).load(0)
    assert Images(str(tmp_path), resize=4).load(0).X_train.shape[1:] == (4, 4)
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
    for part in ("train", "test", "more"):
        draw_classes(tmp_path / "new" / part, 3)
    with pytest.warns(UserWarning, match="1 files and folders are left out, e.g. more; only train, test are read"):
        Images(str(tmp_path / "new")).load(0)


@pytest.mark.parametrize("scale", ["range", "percentile"])
def test_white_is_one_number_in_files_of_8_and_of_more_bits(tmp_path, scale):
    def write(folder, bits, count):
        for i in range(count):
            path = tmp_path / folder / str(i % 2) / f"{bits}_{i}.tif"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.linspace(0, 2**bits - 1, 36).reshape(6, 6)
            tifffile.imwrite(
                path, pixels.round().astype(np.uint8 if bits == 8 else np.uint16), photometric="minisblack"
            )

    for folder in ("train", "test"):
        write(folder, 8, 4)
        write(folder, 12, 4)
    loader = Images(str(tmp_path), scale=scale)
    with pytest.warns(UserWarning, match="8 of 16 pictures have 8 bits, others more: 255 and 4095 are both white"):
        data = loader.load()
    np.testing.assert_allclose(data.X_train, data.X_train[:1].repeat(len(data.X_train), 0), atol=0.004)
    assert data.X_train[0, -1, -1] == 1
    # a model of 12 bits alone reads new files of 8 bits, and one of 8 bits those of 16
    for fitted, new in ((12, 8), (8, 16)):
        write(f"{fitted}", fitted, 8)
        write(f"new{new}", new, 2)
        alone = Images(str(tmp_path / str(fitted)), scale=scale)
        X = alone.read_points(str(tmp_path / f"new{new}"), alone.load().form).X
        np.testing.assert_allclose(X[0], data.X_train[0], atol=0.004)


def test_a_damaged_picture_is_named_with_the_key_that_leaves_it_out(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.png").write_bytes(b"no picture")
    with pytest.raises(DataFileError, match=r"1\.png is not .*; dataset\.on_error=skip leaves out such files"):
        Images(str(tmp_path)).load(0)
    with pytest.raises(DataFileError, match=r"1\.png is not a readable picture \([^;]*$"):
        Images(str(tmp_path), on_error="skip").load(0)


def test_new_pictures_are_read_by_their_names(tmp_path):
    pictures = draw_classes(tmp_path / "new", 3)
    points = Images().read_points(str(tmp_path / "new"), {"shape": [6, 8]})
    assert points.ids == sorted(pictures)
    for x, name in zip(points.X, points.ids, strict=True):
        np.testing.assert_allclose(x, pictures[name] / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([6, 9], "the model was fitted to 6 x 9; resize it"),
        ([6, 8, 3], "has 6 x 8 pixels, the model was fitted to 6 x 8 x 3"),
    ],
)
def test_new_pictures_of_another_size_are_refused(tmp_path, shape, message):
    draw_classes(tmp_path / "new", 3)
    with pytest.raises(InputError, match=message):
        Images(channels="grey").read_points(str(tmp_path / "new"), {"shape": shape})


def test_colours_are_read_where_a_picture_has_them_and_new_pictures_as_the_model_was_fitted(tmp_path):
    grey, colour = tmp_path / "grey", tmp_path / "colour"
    drawn = draw_classes(grey, 10)
    for name, pixels in drawn.items():
        draw(colour / name, np.stack([pixels] * 3, -1))
    assert Images(str(colour)).load(0).X_train.shape[1:] == (6, 8)  # three equal channels
    draw(colour / "owl" / "0.png", np.stack([drawn["owl/0.png"], *[drawn["cat/1.png"]] * 2], -1))
    data = Images(str(colour)).load(0)
    assert data.X_train.shape[1:] == (6, 8, 3)
    assert data.source.endswith(", in colour")
    read = Images().read_points(str(grey), data.form).X
    assert np.array_equal(read, Images(channels="rgb").read_points(str(grey), data.form).X)
    form = Images(str(grey)).load(0).form
    assert Images().read_points(str(colour), form).X.shape == (20, 6, 8)


def test_pictures_that_cannot_be_read_have_no_colours(tmp_path):
    draw_classes(tmp_path, 5, shape=(6, 8, 3))
    for file in tmp_path.rglob("*0.png"):
        file.write_bytes(b"")
    assert Images(str(tmp_path), on_error="skip", test_fraction=0.5).load(0).X_train.shape[1:] == (6, 8, 3)


# ---- formats are in tests/file_table.py -----------------------------------------------------------------------------

H, W = 6, 8
GREY = np.random.default_rng(1).integers(0, 250, (H, W)).astype(np.uint8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"crop": [9, 9]}, "crop: .* has 6 x 8 pixels, smaller than 9 x 9"),
        ({"pad": [4, 9]}, "pad: .* has 6 x 8 pixels, larger than 4 x 9"),
        ({"pad": [9, 9], "crop": [3, 3]}, "crop, pad: expected at most one of resize, crop and pad"),
        ({"crop": [3]}, r"crop: expected \[height, width\] in pixels, or one number for all, found \[3\]"),
    ],
)
def test_sizes_that_are_not_possible_are_one_line(tmp_path, settings, message):
    draw_classes(tmp_path, 2)
    with pytest.raises(InputError, match=message):
        Images(str(tmp_path), **settings).load(0)


@pytest.mark.parametrize(
    ("write", "suffix", "modules", "message"),
    [
        (pages(), ".tif", "tifffile", r"tifffile: pip install 'orbit-kernels\[images\]'"),
        (fits(STACK), ".fits", "astropy.io", r"astropy: pip install 'orbit-kernels\[astronomy\]'"),
        (nifti(), ".nii", "nibabel", r"nibabel: pip install 'orbit-kernels\[volumes\]'"),
    ],
)
def test_a_missing_package_is_named_with_its_command(tmp_path, monkeypatch, write, suffix, modules, message):
    in_classes(suffix, write)(tmp_path)
    monkeypatch.setitem(sys.modules, modules, None)
    with pytest.raises(InputError, match=f"needs the package {message}"):
        Images(str(tmp_path)).load(0)


@pytest.mark.parametrize(("suffix", "write"), [(".mrcs", mrc()), (".mrcs.gz", mrc()), (".tif", pages())])
def test_pages_of_a_stack_are_pictures_with_the_class_of_its_file(tmp_path, suffix, write):
    in_classes(suffix, write, ("cat/1", "owl/1"))(tmp_path)
    images = Images(str(tmp_path), pages="pictures", scale="none", test_fraction=0.5)
    data = images.load(0)
    for name, x, y in zip(data.test_names["file"], data.X_test, data.y_test, strict=True):
        assert name.endswith(f"@1{suffix}")
        assert name.startswith(y)
        np.testing.assert_array_equal(x, STACK[int(Path(name).name.split("@")[0]) - 1])
    points = images.read_points(str(tmp_path / "cat" / f"1{suffix}"), data.form)
    np.testing.assert_array_equal(points.X, STACK)
    assert list(points.ids) == [f"{i + 1}@1{suffix}" for i in range(5)]


def test_a_table_names_pages_of_stacks_as_relion_does(tmp_path):
    (tmp_path / "job1").mkdir()
    mrc_listed(tmp_path / "job1")
    lines = (tmp_path / "job1" / "labels.csv").read_text().replace("stack", "job1/stack")
    (tmp_path / "labels.csv").write_text(lines)
    data = Images(manifest=str(tmp_path / "labels.csv"), scale="none").load(0)
    (name,) = data.test_names["file"]
    np.testing.assert_array_equal(data.X_test[0], STACK[int(Path(name).name.split("@")[0]) - 1])
    (tmp_path / "labels.csv").write_text(lines.replace("000004", "000006"))
    with pytest.raises(DataFileError, match=r"stack\.mrcs has pages 1 to 5, expected page 6"):
        Images(manifest=str(tmp_path / "labels.csv")).load(0)


def test_sizes_are_made_equal_by_the_middle(tmp_path):
    rows = np.arange(1, 31, dtype=np.uint8).reshape(5, 6)
    for name, values in (("a/1.png", rows), ("b/1.png", rows[:3, :4]), ("a/2.png", rows), ("b/2.png", rows)):
        draw(tmp_path / name, values)
    padded = Images(str(tmp_path), pad=[7, 6], scale="none").load(0)
    by_sum = {x.sum(): x for x in (*padded.X_train, *padded.X_test)}
    small = by_sum[rows[:3, :4].sum()]
    np.testing.assert_array_equal(small[2:5, 1:5], rows[:3, :4])
    assert small.sum() == small[2:5, 1:5].sum()
    cropped = Images(str(tmp_path), crop=[3, 2], scale="none").load(0)
    found = {x.tobytes() for x in (*cropped.X_train, *cropped.X_test)}
    assert found == {values.astype(np.float32).tobytes() for values in (rows[1:4, 2:4], rows[:3, 1:3])}


def test_percentiles_are_those_of_training_pictures_and_kept_for_new_ones(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(20):
        values = rng.integers(100, 200, (H, W, 3)).astype(np.uint16) * np.uint16([1, 10, 100])
        tifffile.imwrite(tmp_path / f"{i}.tif", values, photometric="rgb")
    table = pd.DataFrame(
        {"file": [f"{i}.tif" for i in range(20)], "label": ["cat", "owl"] * 10, "part": ["train"] * 15 + ["test"] * 5}
    )
    table.to_csv(tmp_path / "labels.csv", index=False)
    loader = Images(manifest=str(tmp_path / "labels.csv"), split_column="part", channels="rgb", scale="percentile")
    data = loader.load(0)
    raw = np.stack([tifffile.imread(tmp_path / f"{i}.tif") for i in range(20)])
    low, high = np.percentile(raw[:15].reshape(-1, 3), (0.5, 99.5), axis=0)
    np.testing.assert_allclose(data.X_test, ((raw[15:] - low) / (high - low)).clip(0, 1), atol=1e-5)
    new = loader.read_points(str(tmp_path / "17.tif"), json.loads(json.dumps(data.form)))
    np.testing.assert_allclose(new.X[0], data.X_test[2], atol=1e-6)
    each = Images(manifest=str(tmp_path / "labels.csv"), channels="rgb", scale="each").load(0)
    assert np.all(each.X_train.min((1, 2)) == 0)
    assert np.all(each.X_train.max((1, 2)) == 1)


SPLIT_GROUPS = {"split_column": "part", "group_column": "animal"}


class TestManifest:
    @pytest.fixture
    def table(self, tmp_path):
        draw_classes(tmp_path / "zoo", 4)
        names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))
        return pd.DataFrame(
            {
                "file": names,
                "label": [name.split("/")[1] for name in names],
                "legs": np.arange(8) / 3,
                "wings": np.arange(8) / 7,
                "part": ["train", "val"] * 3 + ["test"] * 2,
                "animal": list("aabbccdd"),
            }
        )

    def load(self, table: pd.DataFrame, tmp_path: Path, **settings):
        table.to_csv(tmp_path / "labels.csv", index=False)
        return Images(manifest=str(tmp_path / "labels.csv"), **settings).load(0)

    def test_classes_are_those_of_folders(self, table, tmp_path):
        listed, folders = self.load(table, tmp_path), Images(str(tmp_path / "zoo")).load(0)
        np.testing.assert_array_equal(listed.X_train, folders.X_train)
        assert listed.y_train.tolist() == folders.y_train.tolist()
        elsewhere = self.load(table.assign(file=table["file"].str[4:]), tmp_path, path=str(tmp_path / "zoo"))
        np.testing.assert_array_equal(elsewhere.X_test, folders.X_test)

    def test_numbers_parts_and_what_belongs_together(self, table, tmp_path):
        one = self.load(table, tmp_path, target="legs", split_column="part")
        assert one.task == "regression"
        np.testing.assert_allclose(one.y_test, [6 / 3, 7 / 3])
        assert one.folds.tolist() == [-1, 0] * 3
        two = self.load(table, tmp_path, target=["legs", "wings"], group_column="animal")
        assert two.y_train.shape[1:] == (2,)
        assert len(set(two.clusters)) == len(two.clusters) / 2

    @pytest.mark.parametrize(
        ("separator", "written"),
        [
            (",", lambda number: f"{number:.2f} cm"),
            (",", lambda number: f"{100 * number:.0f}%"),
            (";", lambda number: f"{number:.2f}".replace(".", ",")),
            (";", lambda number: f"{number:.2f} cm".replace(".", ",")),
        ],
    )
    def test_numbers_may_have_a_unit_and_a_decimal_comma(self, table, tmp_path, separator, written):
        names, numbers = [*table["file"], *table["file"]] * 2, np.arange(32) / 4 + 0.25
        listed = pd.DataFrame({"file": names, "height": [written(number) for number in numbers]})
        listed.to_csv(tmp_path / "labels.csv", index=False, sep=separator)
        data = Images(manifest=str(tmp_path / "labels.csv"), target="height").load(0)
        assert data.task == "regression"
        found = np.sort(np.concatenate([data.y_train, data.y_test]))
        np.testing.assert_allclose(found, numbers * (100 if "%" in written(1.0) else 1))

    def test_few_doses_are_classes_and_several_targets_numbers(self, table, tmp_path):
        data = self.load(table.assign(label=["5 mg", "10 mg"] * 4), tmp_path)
        assert data.task == "classification"
        assert set(data.y_train) == {"5 mg", "10 mg"}
        several = self.load(table.assign(width=[f"{i}.5 mm" for i in range(8)]), tmp_path, target=["legs", "width"])
        assert np.sort(np.concatenate([several.y_train, several.y_test])[:, 1]).tolist() == [i + 0.5 for i in range(8)]
        unit, unused = several.notes
        assert unit == "units removed: width (mm)"
        assert unused.startswith("columns not used: label, ")
        assert "dataset.group_column" in unused
        assert self.load(table[["file", "label"]], tmp_path).notes == []
        assert several.reading["targets"] == ["legs", "width"]

    def test_leading_zeros_of_labels_are_kept(self, table, tmp_path):
        codes = self.load(table.assign(label=["007"] * 4 + ["7"] * 4), tmp_path, split_column="part")
        assert codes.task == "classification"
        assert codes.y_train.tolist() == ["007"] * 4 + ["7"] * 2

    @pytest.mark.parametrize(
        ("change", "settings", "message"),
        [
            (lambda t: t.rename(columns={"label": "lable"}), {}, "target: labels.csv has no column 'label'.*lable"),
            (lambda t: t.rename(columns={"file": "name"}), {}, "file_column: labels.csv has no column 'file'"),
            (lambda t: t.assign(file="gone.png"), {}, r"manifest: 8 of 8 files that labels.csv names do not exist"),
            (lambda t: t.assign(label=t["label"].where(t["label"] == "cat")), {}, "'label' .* no value in row 5"),
            (lambda t: t.assign(part="train"), {"split_column": "part"}, "split_column: expected the parts train and"),
            (lambda t: t.assign(part=["train", "test"] * 4), SPLIT_GROUPS, "expected all points of a group in one"),
            (lambda t: t.iloc[:0], {}, "manifest: labels.csv: the table has no rows"),
            (lambda t: pd.concat([t, t[["label"]]], axis=1), {}, "manifest: labels.csv: the table has several columns"),
        ],
    )
    def test_bad_ones_are_one_line(self, table, tmp_path, change, settings, message):
        with pytest.raises(InputError, match=message):
            self.load(change(table), tmp_path, **settings)


@pytest.mark.parametrize(
    ("planar", "tile", "compression"),
    [
        ("contig", (16, 16), "lzw"),
        ("separate", (16, 16), "zstd"),
        ("contig", None, "deflate"),
        ("separate", None, None),
    ],
)
def test_bands_of_a_geotiff_are_channels_and_overviews_left_out(tmp_path, planar, tile, compression):
    bands = np.random.default_rng(0).integers(0, 10_000, (32, 48, 4)).astype(np.uint16)
    georeference = [(33550, "d", 3, (10.0, 10.0, 0.0), True), (42113, "s", 0, "65535", True)]
    how = {"photometric": "minisblack", "planarconfig": planar, "tile": tile, "compression": compression}
    with tifffile.TiffWriter(tmp_path / "scene.tif") as writer:
        for step in (1, 2, 4):  # overviews are pages, as GDAL writes them
            part = np.moveaxis(bands[::step, ::step], -1, 0 if planar == "separate" else -1).copy()
            writer.write(part, **how, metadata=None, subfiletype=int(step > 1), extratags=georeference)
    np.testing.assert_array_equal(read_picture(tmp_path / "scene.tif", "all", "channels")[0], bands)


def test_files_in_nested_folders_are_read_on_request(tmp_path):
    draw_classes(tmp_path, 3)
    draw(tmp_path / "cat" / "young" / "9.png", GREY)
    with pytest.warns(UserWarning, match="e.g. cat/young; only picture .* directly in .*; set recursive=true"):
        assert len(Images(str(tmp_path)).load(0).X_train) == 4
    data = Images(str(tmp_path), recursive=True).load(0)
    assert len(data.X_train) + len(data.X_test) == 7
