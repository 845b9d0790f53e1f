"""Volumes in files of scanners: axes, sizes, labels and new files."""

from pathlib import Path

import nibabel
import numpy as np
import pandas as pd
import pytest
from file_table import SCAN, UPRIGHT, in_classes, nifti

import orbit
from orbit import Images, InputError


def write_classes(folder: Path, values: np.ndarray = SCAN) -> None:
    in_classes(".nii.gz", nifti(values))(folder)


def test_axes_are_turned_to_the_right_the_front_and_up(tmp_path):
    write_classes(tmp_path)
    swapped = np.array([[0.0, 0, 1, 0], [-1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 1]])  # back, up and right
    nibabel.save(nibabel.Nifti1Image(SCAN[:, ::-1].transpose(1, 2, 0), swapped), tmp_path / "cat" / "1.nii.gz")
    assert all(np.array_equal(x, UPRIGHT) for x in orbit.read_volumes(tmp_path, scale="none").X_train)


def test_slopes_times_and_planes(tmp_path):
    image = nibabel.Nifti1Image(SCAN, np.eye(4))
    image.header.set_slope_inter(0.5, 10)
    write_classes(tmp_path / "a")
    for file in (tmp_path / "a").rglob("*.gz"):
        nibabel.save(image, file)
    np.testing.assert_allclose(orbit.read_volumes(tmp_path / "a", scale="none").X_train[0], UPRIGHT * 0.5 + 10)
    write_classes(tmp_path / "b", values=np.stack([SCAN, SCAN + 1], -1))
    several = orbit.read_volumes(tmp_path / "b", channels="all", scale="none")
    np.testing.assert_array_equal(several.X_train[0], np.stack([UPRIGHT, UPRIGHT + 1], -1))
    write_classes(tmp_path / "c", values=SCAN[..., 0])
    np.testing.assert_array_equal(orbit.read_images(tmp_path / "c", scale="none").X_train[0], SCAN[..., 0].T)


def test_sizes_of_volumes(tmp_path):
    write_classes(tmp_path)
    nifti(SCAN[:, :, :5])(tmp_path / "cat" / "1.nii.gz")
    with pytest.raises(InputError, match=r"has . x 5 x 4 pixels, others have .*dataset\.resize=\[.,5,4\]"):
        orbit.read_volumes(tmp_path)
    assert orbit.read_volumes(tmp_path, resize=4).X_train.shape[1:] == (4, 4, 4)
    assert orbit.read_volumes(tmp_path, resize=[3, 4, 5]).X_train.shape[1:] == (3, 4, 5)
    cropped = orbit.read_volumes(tmp_path, crop=[3, 3, 2], scale="none").X_train
    assert any(np.array_equal(x, UPRIGHT[1:4, 1:4, 1:3]) for x in cropped)
    padded = orbit.read_volumes(tmp_path, pad=7, scale="none").X_train
    assert any(np.array_equal(x[:6, 1:6, 1:5], UPRIGHT) and x.sum() == UPRIGHT.sum() for x in padded)
    with pytest.raises(InputError, match=r"resize: expected \[depth, height, width\] in pixels, or one number for all"):
        orbit.read_volumes(tmp_path, resize=[4])


def test_a_constant_volume_and_a_ramp_keep_their_values_when_they_are_resized(tmp_path):
    ramp = np.broadcast_to(np.arange(12, dtype=np.float32), (4, 5, 12))
    write_classes(tmp_path, values=ramp)
    found = orbit.read_volumes(tmp_path, resize=[6, 5, 4], scale="none").X_train[0]
    np.testing.assert_allclose(found[:, 0, 0], np.arange(6) * 2 + 0.5, atol=0.2)
    assert np.ptp(found, axis=(1, 2)).max() == 0


def test_numbers_come_from_a_table_and_new_volumes_are_read_as_those_of_training(tmp_path):
    write_classes(tmp_path / "scans")
    names = [str(file.relative_to(tmp_path)) for file in sorted(tmp_path.rglob("*.nii.gz"))]
    pd.DataFrame({"file": names, "age": np.arange(4) + 0.5}).to_csv(tmp_path / "ages.csv", index=False)
    loader = Images(manifest=str(tmp_path / "ages.csv"), target="age", pages="volume")
    data = loader.load(0)
    assert data.task == "regression"
    points = loader.read_points(str(tmp_path / "scans"), data.form)
    assert points.ids[0] == "cat/1.nii.gz"
    np.testing.assert_array_equal(points.X[0], data.X_train[0])


def test_voxels_of_other_sides_are_warned_of(tmp_path, recwarn):
    write_classes(tmp_path / "scans")
    turned = np.array([[0.0, 0, 1, 0], [-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    file = tmp_path / "scans" / "cat" / "1.nii.gz"
    nibabel.save(nibabel.Nifti1Image(SCAN.transpose(1, 2, 0), turned @ np.diag([1, 1.02, 1, 1])), file)
    loader = Images(str(tmp_path / "scans"), pages="volume")
    form = loader.load(0).form
    assert not [warning for warning in recwarn if "voxels" in str(warning.message)]
    nibabel.save(nibabel.Nifti1Image(SCAN.transpose(1, 2, 0), turned @ np.diag([1, 2.5, 1, 1])), file)
    with pytest.warns(UserWarning, match=r"1 of 1 volumes .* than 1 x 1 x 1, e\.g\. 1\.nii\.gz of 2\.5 x 1 x 1,"):
        loader.read_points(str(file), form)
    with pytest.warns(UserWarning, match=r"1 of 4 volumes have voxels of other sides than 1 x 1 x 1"):
        loader.load(0)
