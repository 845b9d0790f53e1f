"""Images as gradients by direction."""

import math

import numpy as np
import pytest
from scipy import ndimage

from orbit.core.errors import InputError
from orbit.representations import Gradients
from orbit.testing import RepresentationContract
from orbit.testing.samples import smooth_images


class TestGradients(RepresentationContract):
    component = Gradients
    shape = (7, 6)


class TestGradientsOfColours(RepresentationContract):
    component, params = Gradients, {"n_directions": 3, "norm": "mean"}
    shape = (5, 6, 3)


@pytest.mark.parametrize(("direction", "channel"), [(0, 0), (45, 1), (90, 2), (180, 4), (270, 6)])
def test_a_slope_lies_in_the_channel_of_its_direction(direction, channel):
    angle = math.radians(direction)
    rows, columns = np.mgrid[:15, :15]
    slope = 0.3 * (columns * math.cos(angle) - rows * math.sin(angle))  # rises that way, counter-clockwise
    middle = Gradients(pooling=0.0, norm="none").fit_transform(slope[None])[0, 7, 7]
    np.testing.assert_allclose(middle, 0.3 * np.eye(8)[channel], atol=1e-3)  # the Gaussian is cut off at 4 deviations


def test_a_gradient_between_two_directions_is_shared():
    rows, columns = np.mgrid[:15, :15]
    slope = columns * math.cos(math.radians(15.0)) - rows * math.sin(math.radians(15.0))
    middle = Gradients(pooling=0.0, norm="none").fit_transform(slope[None])[0, 7, 7]
    np.testing.assert_allclose(middle[:3], [2 / 3, 1 / 3, 0], atol=3e-3)


def test_a_quarter_turn_of_the_image_turns_pixels_and_directions(rng):
    X = smooth_images(rng, 3, 12, 12)
    turned = Gradients().fit_transform(np.rot90(X, axes=(1, 2)))
    expected = np.roll(np.rot90(Gradients().fit_transform(X), axes=(1, 2)), 2, axis=-1)
    np.testing.assert_allclose(turned, expected, atol=1e-12)


def test_a_shift_of_the_image_shifts_the_channels(rng):
    X = np.pad(smooth_images(rng, 2, 8, 8), [(0, 0), (12, 12), (12, 12)])
    shifted = Gradients().fit_transform(np.roll(X, (2, -3), (1, 2)))
    np.testing.assert_allclose(shifted, np.roll(Gradients().fit_transform(X), (2, -3), (1, 2)), atol=1e-12)


def test_a_pixel_takes_the_colour_with_the_longest_gradient(rng):
    X = smooth_images(rng, 2, 9, 9)
    colours = np.stack([0.5 * X, 2 * X, -X], axis=-1)
    kept = Gradients(norm="none").fit_transform(colours)
    np.testing.assert_allclose(kept, Gradients(norm="none").fit_transform(2 * X), atol=1e-12)


def test_vectors_are_refused():
    with pytest.raises(InputError, match=r"^representation=gradients takes images of at least 2 x 2 pixels"):
        Gradients().fit(np.ones((3, 4)))


def test_a_single_channel_is_the_length_of_the_gradient(rng):
    X = rng.random((2, 9, 9))
    channel = Gradients(n_directions=1, pooling=0.0, norm="none").fit_transform(X)[..., 0]
    across, down = (ndimage.gaussian_filter(X, (0, 1, 1), order=order) for order in ((0, 0, 1), (0, 1, 0)))
    np.testing.assert_allclose(channel, np.hypot(across, down), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("norm", ["each", "mean"])
def test_images_of_one_colour_have_no_direction(rng, norm, dtype):
    X = (0.3 * (1 + np.finfo(dtype).eps * rng.integers(-1, 2, (6, 9, 9)))).astype(dtype)
    np.testing.assert_array_equal(Gradients(norm=norm).fit_transform(X), 0)
