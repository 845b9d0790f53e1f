"""Clouds and meshes in files: what is drawn of them."""

import numpy as np
import pytest
import trimesh
from file_table import POINTS, in_classes, lines, mesh

from orbit.data import Clouds
from orbit.testing import DatasetContract


class TestClouds(DatasetContract):
    component, sizes = Clouds, (30, 10)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        rng = np.random.default_rng(0)
        names = tuple(f"{kind}/{i}" for kind in ("cat", "owl") for i in range(20))
        in_classes(".npy", lambda path: np.save(path, rng.standard_normal((50, 3))), names)(tmp_path)
        self.params = {"path": str(tmp_path), "n_points": 32}


def test_points_are_drawn_of_a_cloud_and_centred_before_digits_are_lost(tmp_path):
    in_classes(".xyz", lines(" "))(tmp_path)
    clouds = Clouds(str(tmp_path), n_points=200)
    data = clouds.load(0)
    points = data.X_train[0] - data.X_train[0, 0]
    distances = np.linalg.norm((POINTS - POINTS[:, None])[..., None, :] - points[[1, 2]], axis=-1)
    assert distances.min((0, 1)).max() < 1e-5
    assert len(np.unique(points, axis=0)) == 200
    np.testing.assert_allclose(data.X_train.mean(1), 0, atol=1e-6)
    again = clouds.read_points(str(tmp_path / "cat" / "1.xyz"), data.form)
    np.testing.assert_array_equal(again.X[0], data.X_train[0])


def test_points_of_a_mesh_are_on_its_surface_everywhere(tmp_path):
    in_classes(".stl", mesh)(tmp_path)
    points = Clouds(str(tmp_path), n_points=4000).load(0).X_train[0]
    points = points - (points.max(0) + points.min(0)) / 2
    box = trimesh.creation.box((1, 2, 3))
    faces = np.abs(points) / box.extents * 2
    np.testing.assert_allclose(faces.max(1), 1, atol=0.01)
    shares = np.bincount(faces.argmax(1), minlength=3) / len(points)
    np.testing.assert_allclose(shares, np.array([6, 3, 2]) / 11, atol=0.03)
