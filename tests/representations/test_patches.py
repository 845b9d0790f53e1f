"""Crops, and principal components of patches."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from orbit import Crop, InputError, PatchPCA
from orbit.testing import RepresentationContract


class TestCrop(RepresentationContract):
    component, params = Crop, {"size": 4}
    shape = (7, 6)


class TestPatchPCA(RepresentationContract):
    component, params = PatchPCA, {"size": 3, "stride": 2, "n_components": 5, "crop": 7}
    shape = (8, 7, 2)


def test_a_crop_is_the_middle():
    X = np.arange(2 * 32 * 32 * 3).reshape(2, 32, 32, 3) / 7
    np.testing.assert_array_equal(Crop(24).fit_transform(X), X[:, 4:28, 4:28])


def test_patch_coordinates_are_scikit_learns_whitened_pca_of_standardised_images(rng):
    X = rng.random((9, 8, 8, 2)) + np.linspace(0, 1, 8)[:, None]
    images = np.array([(x - x.mean()) / x.std() for x in X])
    patches = [
        images[:, i : i + 3, j : j + 3].transpose(0, 3, 1, 2).reshape(9, -1) for i in (0, 2, 4) for j in (0, 2, 4)
    ]
    pca = PCA(5, whiten=True).fit(np.concatenate(patches))
    expected = np.stack([pca.transform(p) for p in patches], axis=1).reshape(9, 3, 3, 5)
    found = PatchPCA(size=3, stride=2, n_components=5).fit_transform(X)
    signs = np.sign((found * expected).sum((0, 1, 2)))  # of an eigenvector, which are free
    np.testing.assert_allclose(found * signs, expected * np.sqrt(81 / 80), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_images_become_zero(rng, dtype):
    X = rng.random((12, 8, 8, 3)).astype(dtype)
    X[:4] = np.array([0.1, 0.3, 0.7, 1 / 3]).reshape(4, 1, 1, 1)
    representation = PatchPCA(size=3, stride=2, n_components=5).fit(X)
    standardised = representation._standardised(X)
    np.testing.assert_array_equal(standardised[:4], 0)
    np.testing.assert_allclose(standardised[4:].std((1, 2, 3)), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("representation", "shape", "message"),
    [
        (Crop(9), (8, 9), "^representation=crop takes images of at least 9 x 9 pixels.*change dataset"),
        (Crop(2), (8,), "^representation=crop takes images"),
        (PatchPCA(size=5), (4, 4), "^representation=patch_pca takes images of at least 5 x 5 pixels"),
        (PatchPCA(size=2, n_components=5), (4, 4), "^representation.n_components: expected at most 4, the numbers in"),
    ],
    ids=str,
)
def test_images_that_do_not_fit_are_refused(representation, shape, message):
    with pytest.raises(InputError, match=message):
        representation.fit(np.ones((3, *shape)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_patches_have_no_components(rng, dtype):
    X = np.tile(rng.random((3, 3)), (6, 3, 3)).astype(dtype)
    np.testing.assert_array_equal(PatchPCA(size=3, stride=3, n_components=3, crop=None).fit_transform(X), 0)
