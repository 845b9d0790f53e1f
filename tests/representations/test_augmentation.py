"""Random changes of images."""

import functools
import tracemalloc

import numpy as np
import pytest

from orbit import ImageAugmentation, InputError, NoAugmentation
from orbit.core.grid import middle
from orbit.core.threads import in_threads
from orbit.testing import AugmentationContract


class TestNoAugmentation(AugmentationContract):
    component = NoAugmentation


class TestImageAugmentation(AugmentationContract):
    component, params = ImageAugmentation, {"shift": 2}


STILL = {"shift": 0, "flip": False, "brightness": 0, "contrast": 0, "saturation": 0}


def changed(X, **params):
    return ImageAugmentation(**{**STILL, **params}).apply(X, np.random.default_rng(0))


@pytest.fixture
def images(rng):
    return rng.random((300, 8, 8, 3))


def test_without_any_change_images_are_themselves(images):
    np.testing.assert_array_equal(changed(images), images)


def test_the_middle_of_shifted_images_is_a_random_crop_or_its_mirror(images):
    found = middle(changed(images, shift=2, flip=True), (4, 4), 1)
    seen = set()
    for image, crop in zip(images, found, strict=True):
        for top in range(5):
            for left in range(5):
                for mirrored in (False, True):
                    window = image[top : top + 4, left : left + 4]
                    if np.array_equal(window[:, ::-1] if mirrored else window, crop):
                        seen.add((top, left, mirrored))
    assert len(seen) == 50  # 300 draws: one of them is missing once in nine runs of other seeds


@pytest.mark.parametrize(("shape", "most"), [((32, 32), 4), ((8, 8), 1), ((5, 6), 1), ((28, 40), 3)])
def test_shifts_are_an_eighth_of_the_shorter_side(shape, most):
    rows, columns = (np.broadcast_to(ramp, (400, *shape)).astype(float) for ramp in np.indices(shape))
    for ramp in (rows, columns):
        moved = (changed(ramp, shift=None) - ramp)[:, shape[0] // 2, shape[1] // 2]
        assert set(moved) == set(range(-most, most + 1))


def test_colours_change_about_their_means(images):
    brighter = changed(images, brightness=0.3) - images
    assert np.ptp(brighter, axis=(1, 2, 3)).max() < 1e-12
    assert 0.2 < np.abs(brighter[:, 0, 0, 0]).max() <= 0.3
    for name, axis in (("contrast", (1, 2)), ("saturation", 3)):
        found = changed(images, **{name: 0.5})
        centre = images.mean(axis, keepdims=True)
        np.testing.assert_allclose(found.mean(axis, keepdims=True), centre)
        factors = ((found - centre) / (images - centre)).reshape(len(images), -1)
        np.testing.assert_allclose(factors, factors[:, :1].repeat(factors.shape[1], 1), rtol=1e-6)
        assert 0.5 <= factors.min() < 0.6
        assert 1.4 < factors.max() <= 1.5


def test_contrast_of_large_images_is_about_their_means_in_float32(rng):
    images = rng.random((1, 512, 512, 3), dtype=np.float32)
    centre = images.mean((1, 2), dtype=np.float64)
    np.testing.assert_allclose(changed(images, contrast=0.5).mean((1, 2), dtype=np.float64), centre, atol=3e-7)


def test_points_other_than_images_are_rejected():
    with pytest.raises(InputError, match="^augmentation=image takes images.*change dataset"):
        changed(np.ones((3, 5)))


def test_bytes_are_augmented_as_numbers(rng):
    images = rng.integers(0, 256, (5, 8, 8, 3)).astype(np.uint8)
    found = ImageAugmentation().apply(images, np.random.default_rng(0))
    np.testing.assert_array_equal(found, ImageAugmentation().apply(images.astype(np.float32), np.random.default_rng(0)))


def test_images_are_changed_alike_in_tiles_of_any_size(images, monkeypatch):
    expected = ImageAugmentation().apply(images, np.random.default_rng(0))
    for pixels in (1, 7 * 64):
        monkeypatch.setattr("orbit.representations.augmentation._TILE_PIXELS", pixels)
        np.testing.assert_allclose(ImageAugmentation().apply(images, np.random.default_rng(0)), expected, rtol=1e-12)


def test_memory_is_that_of_the_result_and_of_a_tile_for_each_thread(rng, monkeypatch):
    monkeypatch.setattr("orbit.representations.augmentation.in_threads", functools.partial(in_threads, count=2))
    images = rng.random((256, 128, 128), dtype=np.float32)
    tracemalloc.start()
    ImageAugmentation().apply(images, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * images.nbytes
