"""The contract for identity and rotation, and properties of rotations."""

import re
import warnings

import numpy as np
import pytest
import torch
from scipy import ndimage

import orbit
from orbit import InputError, Orbit
from orbit.groups import (
    Cyclic,
    Dihedral,
    Group,
    Identity,
    PitchTempo,
    ProductGroup,
    Reflection,
    Rotation,
    Translation,
    pitch_tempo,
    resampled,
)
from orbit.groups.domains import Circle
from orbit.groups.resample import gather, multilinear, windowed_sinc
from orbit.testing import GroupContract, oracles
from orbit.testing.samples import smooth_images


def test_an_array_is_not_changed_by_way_of_its_moved_points():
    X = np.ones((2, 3))
    moved = Identity().act(np.zeros(2), X)
    moved[0, 0] = 5
    np.testing.assert_array_equal(X, 1)
    np.testing.assert_array_equal(moved[1], 1)


class TestIdentity(GroupContract):
    component = Identity


class TestIdentityOnVectors(GroupContract):
    shape = (7,)
    component = Identity


class TestCartesianRotation(GroupContract):
    shape = (24, 24)
    composes_exactly = False
    wrong_shapes = [(24,), (2, 3, 4, 5)]
    component = Rotation


class TestCartesianRotationOfWideImages(GroupContract):
    shape = (20, 27)
    composes_exactly = False
    component = Rotation
    params = {"sampling": "cartesian"}


class TestCartesianRotationOfColourImages(GroupContract):
    shape = (20, 21, 3)
    composes_exactly = False
    component = Rotation

    def smooth_points(self, rng, n=4):
        return np.stack([smooth_images(rng, n, 20, 21, 3.0) for _ in range(3)], axis=-1)


class TestRotationOfVectors(GroupContract):
    shape = (20, 21, 2)
    composes_exactly = False
    wrong_shapes = [(20, 21), (20, 21, 3), (2,)]
    component = Rotation
    params = {"vectors": True}

    def smooth_points(self, rng, n=4):
        return np.stack([smooth_images(rng, n, 20, 21, 3.0) for _ in range(2)], axis=-1)


class TestPolarRotationOddAngles(GroupContract):
    shape = (4, 15)
    wrong_shapes = [(15,), (4, 15, 3)]
    component = Rotation
    params = {"sampling": "polar"}


class TestPolarRotationEvenAngles(GroupContract):
    """Composes exactly on the grid only: elements are drawn from the grid."""

    shape = (4, 16)
    component = Rotation
    params = {"sampling": "polar"}

    def elements(self, seed, r=5):
        return (np.random.default_rng(seed).integers(-8, 8, r)) * 2 * np.pi / 16

    def test_is_unitary_if_and_only_if_inner_products_are_kept(self, rng):
        group, X = self.create(), rng.standard_normal((5, 64))

        def change(angles) -> float:
            moved = group.act(angles, X.reshape(5, 4, 16)).reshape(len(angles), 5, 64)
            return float(np.abs(np.einsum("rnd,rmd->rnm", moved, moved) - X @ X.T).max())

        assert not group.is_unitary(self.shape)
        assert change(self.elements(0)) < 1e-10
        assert change(np.array([0.1])) > 1e-3, "between grid angles the highest frequency is attenuated"


# ---- cartesian -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(8, 8), (7, 10)])
@pytest.mark.parametrize("angle", [0.0, 0.3, -1.0, 2.0, 3.1])
def test_cartesian_rotation_is_scipys(rng, shape, angle):
    X = rng.random((3, *shape))
    turned = Rotation().act([angle], X)[0]
    expected = ndimage.rotate(X, np.degrees(angle), axes=(2, 1), order=1, reshape=False, mode="grid-constant")
    np.testing.assert_allclose(turned, expected, atol=1e-13)
    np.testing.assert_allclose(turned[0], oracles.rotate(X[0], angle), atol=1e-13)


@pytest.mark.parametrize("side", [7, 8])
def test_cartesian_quarter_turns_are_exact(rng, side):
    X = rng.random((3, side, side))
    for k in range(-2, 5):
        np.testing.assert_allclose(Rotation().act([k * np.pi / 2], X)[0], np.rot90(X, k, axes=(1, 2)), atol=1e-14)


def test_a_quarter_turn_of_vectors_turns_components_too(rng):
    columns, rows = rng.random((2, 3, 8, 8))  # components to larger columns, to larger rows
    turned = Rotation(vectors=True).act([np.pi / 2], np.stack([columns, rows], axis=-1))[0]
    grid = [np.rot90(component, axes=(1, 2)) for component in (rows, -columns)]
    np.testing.assert_allclose(turned, np.stack(grid, axis=-1), atol=1e-14)


@pytest.mark.parametrize("k", range(4))
def test_quarter_turns_of_vectors_are_those_of_rotation(rng, k):
    X = rng.standard_normal((3, 8, 8, 2))
    turned = Rotation(vectors=True).act([k * np.pi / 2], X)
    np.testing.assert_allclose(Dihedral(vectors=True).act([k], X), turned, atol=1e-14)
    mirrored = Reflection(vectors=True).act([1], X)[0]
    np.testing.assert_allclose(Dihedral(vectors=True).act([k + 4], X), Dihedral(vectors=True).act([k], mirrored))


@pytest.mark.parametrize(("axis", "component"), [(None, 0), (1, 0), (0, 1)])
def test_a_mirrored_vector_points_the_other_way_across_the_mirror(rng, axis, component):
    X = rng.standard_normal((3, 6, 8, 2))
    moved = Reflection(axis, vectors=True).act([1], X)[0]
    expected = np.flip(X, 2 if axis is None else 1 + axis).copy()
    expected[..., component] *= -1
    np.testing.assert_array_equal(moved, expected)


def test_a_radial_field_is_invariant_only_if_its_vectors_turn():
    rows, columns = np.mgrid[-7.5:8, -7.5:8]
    field = (np.exp(-(rows**2 + columns**2) / 8)[..., None] * np.stack([columns, rows], axis=-1))[None]

    def change(group):
        return np.abs(group.act([0.8], field)[0] - field).max() / field.max()

    assert change(Rotation(vectors=True)) < 0.1 < 0.5 < change(Rotation())
    for element in range(8):
        np.testing.assert_allclose(Dihedral(vectors=True).act([element], field)[0], field, atol=1e-14)


def test_cached_operators_are_not_used_for_another_shape(rng):
    wide, tall = rng.random((1, 4, 6)), rng.random((1, 6, 4))
    first = Rotation().act([0.5], wide)
    Rotation().act([0.5], tall)
    np.testing.assert_array_equal(Rotation().act([0.5], wide), first)
    np.testing.assert_allclose(Rotation().act([0.5], tall)[0, 0], oracles.rotate(tall[0], 0.5), atol=1e-14)


# ---- polar -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_angles", [1, 2, 5, 8])
@pytest.mark.parametrize("angle", [0.0, 0.2, -1.7, 3.0])
def test_polar_turn_is_the_trigonometric_polynomial(rng, n_angles, angle):
    X = rng.standard_normal((2, 3, n_angles))
    turned = Rotation("polar").act([angle], X)[0]
    np.testing.assert_allclose(turned, [oracles.turn(x, angle) for x in X], atol=1e-12)


@pytest.mark.parametrize("n_angles", [15, 16])
def test_polar_grid_turns_are_shifts_without_rounding(rng, n_angles):
    X = rng.standard_normal((2, 3, n_angles))
    for k in range(-n_angles, n_angles):
        turned = Rotation("polar").act([k * 2 * np.pi / n_angles], X)[0]
        np.testing.assert_array_equal(turned, np.roll(X, k, axis=-1))


def test_representation_of_a_rotated_image_is_the_rotated_representation(rng):
    """Three conventions agree: image axes, polar sampling and the direction of rotation."""
    X = smooth_images(rng, 4, 28, 28, blob=2.5)
    polar = orbit.build("representation", "polar", n_angles=64).fit(X)
    for angle in (0.5, -2.0):
        turned_first = polar.transform(
            ndimage.rotate(X, np.degrees(angle), axes=(2, 1), order=3, reshape=False, mode="grid-constant")
        )
        turned_after = Rotation("polar").act([angle], polar.transform(X))[0]
        error = np.linalg.norm(turned_first - turned_after) / np.linalg.norm(turned_after)
        assert error < 0.02
        assert np.linalg.norm(turned_first - polar.transform(X)) / np.linalg.norm(turned_after) > 0.3


# ---- scaling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["scaling", "affine"])
def test_intensity_factor_of_scaled_images_is_made_in_their_precision(rng, name):
    """|J|^(-1/2) = exp(-log scale), against the same action without the factor times that number in float64."""
    X = rng.random((2, 9, 9))
    element = np.array([0.3]) if name == "scaling" else np.array([[0.4, 0.3, 1.0, -0.5]])
    for apply in ("act", "adjoint"):
        plain = getattr(orbit.build("group", name, unitary=False), apply)(element, X)
        scaled = getattr(orbit.build("group", name), apply)(element, X)
        np.testing.assert_allclose(scaled, np.exp(-0.3) * plain, rtol=1e-13, atol=1e-13)


# ---- parameters and resampling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [2, 8, 28, 64, 128, 129, 200])
def test_polar_samples_need_sampling_polar(rng, side):
    samples = orbit.build("representation", "polar").fit_transform(rng.random((2, side, side)))
    for group in (Rotation(), ProductGroup([{"name": "rotation"}])):
        with pytest.raises(InputError, match="may be polar samples.*.sampling=polar.*else .*sampling=cartesian"):
            Orbit(group, size=4, rule="qmc").fit(samples)
    turned = Rotation("polar").act([np.pi / 2], samples)[0]
    np.testing.assert_allclose(turned, np.roll(samples, samples.shape[2] // 4, axis=2))
    assert Rotation("cartesian").act([0.1], samples).shape == (1, *samples.shape)


@pytest.mark.parametrize("shape", [(64, 64), (20, 27), (14, 64, 3), (64, 48), (3, 4)])
def test_rotation_defaults_to_images(rng, shape):
    X = rng.random((1, *shape))
    np.testing.assert_array_equal(Rotation().act([0.3], X), Rotation("cartesian").act([0.3], X))


class Careless(Group):
    """A user's group whose action returns a wrong shape, not registered."""

    kind, name = "group", "careless"
    domain = Circle()

    def __init__(self, mistake: str = "flat") -> None:
        self.mistake = mistake

    def compose(self, left, right):
        return left + right

    def inverse(self, elements):
        return -elements

    def check_shape(self, shape):
        pass

    def _act(self, elements, X):
        return {"flat": X.flatten(1), "numpy": X.numpy()}[self.mistake]

    def _adjoint(self, elements, W):
        return self._act(elements, W)


@pytest.mark.parametrize("as_tensor", [True, False])
@pytest.mark.parametrize(("mistake", "found"), [("flat", r"shape \(5, 12\)"), ("numpy", "ndarray")])
def test_an_action_that_returns_a_wrong_shape_raises(rng, mistake, found, as_tensor):
    X = torch.from_numpy(rng.random((5, 3, 4))) if as_tensor else rng.random((5, 3, 4))
    group = Careless(mistake)
    for call, method in ((group.act, "_act"), (group.adjoint, "_adjoint")):
        expected = rf"Careless\.{method}: expected a tensor of shape \(2, 5, 3, 4\), .*found {found}$"
        with pytest.raises(InputError, match=expected) as error:
            call(np.zeros(2), X)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("n_axes", [1, 2, 3])
@pytest.mark.parametrize(
    ("outside", "mode"), [("zero", "grid-constant"), ("edge", "nearest"), ("reflect", "mirror"), ("wrap", "grid-wrap")]
)
def test_reading_inside_and_outside_of_a_grid_is_that_of_scipy(rng, n_axes, outside, mode):
    shape = (5, 4, 6)[:n_axes]
    X, positions = rng.standard_normal(shape), rng.uniform(-9, 14, (n_axes, 40))
    read = gather(multilinear(list(positions), shape, outside), torch.from_numpy(X.reshape(-1, 1)))[:, 0]
    np.testing.assert_allclose(read, ndimage.map_coordinates(X, positions, order=1, mode=mode), atol=1e-12)


@pytest.mark.parametrize("step", [1.0, 1.3])
def test_band_limited_reading_is_its_plain_formula(step):
    """A sinc of the cut-off frequency under a Hann window of 8 zero crossings on each side, and zero beyond."""
    times, cutoff = np.array([0.4, 20.0, 31.7, 62.9]), 1 / step
    found = gather(windowed_sinc(times, 64, step), torch.eye(64, dtype=torch.float64)).numpy()
    for t, row in zip(times, found, strict=True):
        for k in range(64):
            d = (t - k) * cutoff
            window = np.cos(np.pi * d / 16) ** 2 if abs(d) < 8 else 0.0
            assert row[k] == pytest.approx(cutoff * np.sinc(d) * window, abs=1e-15)


@pytest.mark.parametrize("group", [orbit.Rotation(), orbit.Translation(), orbit.SmallMoves()], ids=repr)
@pytest.mark.filterwarnings("error")
def test_images_whose_first_axis_seems_to_hold_channels_are_warned_of(group):
    with pytest.warns(UserWarning, match=r"images of 3 x 9 pixels with 8 channels; .* np.moveaxis\(X, 1, -1\)"):
        group.for_shape((3, 9, 8))
    for shape in ((9, 8, 3), (3, 9), (3, 9, 1), (9, 9, 4)):
        group.for_shape(shape)


@pytest.mark.parametrize(
    ("group", "shape", "advice"),
    [
        (
            Cyclic(),
            (128, 3),
            r"last axis, of 3, of points of shape \(128, 3\): .* set group.axis=0; group.axis=-1 confirms",
        ),
        (Translation(), (128, 3), None),
        (Translation("wrap"), (2, 50), r"both axes .* to the end: np.moveaxis\(X, 1, -1\)$"),
        (Rotation(), (16, 16, 16), r"with 16 channels; if they are volumes, choose one of the groups rotation3d"),
        (
            ProductGroup([{"name": "reflection"}, {"name": "cyclic"}]),
            (128, 3),
            r"^group.factors\[1\]: group=cyclic shifts the last .* set group.factors\[1\].axis=0; group.fac",
        ),
        (ProductGroup([{"name": "reflection"}, {"name": "cyclic", "axis": 0}]), (128, 3), None),
        (Cyclic(), (3, 128), None),
        (Cyclic(), (128,), None),
        (Cyclic(), (40, 30), None),
        (Cyclic(axis=0), (128, 3), None),
        (Cyclic(axis=-1), (128, 12), None),
        (Translation(), (40, 8), None),
        (Translation(), (4, 4), None),
    ],
)
def test_series_whose_channels_would_be_shifted_are_warned_of(group, shape, advice):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        group.for_shape(shape).for_shape(shape)
    assert len(found) == 0 if advice is None else re.search(advice, str(found[0].message))


class TestCachedOperators:
    @pytest.mark.parametrize(
        ("group", "shape", "cache"),
        [(Rotation("cartesian"), (20, 20), resampled.operators), (PitchTempo(), (200,), pitch_tempo._changes)],
    )
    def test_of_groups_take_no_more_than_their_bytes(self, monkeypatch, rng, group, shape, cache):
        X = rng.random((2, *shape))
        elements = np.repeat(group.identity(), 12, axis=0)
        elements[:] = np.linspace(0.1, 0.3, 12).reshape(-1, *[1] * (elements.ndim - 1))
        monkeypatch.setattr(cache, "limit_bytes", 100_000)
        expected = group.act(elements, X)
        for _ in range(2):
            for i in range(12):
                np.testing.assert_array_equal(group.act(elements[i : i + 1], X)[0], expected[i])
                assert 0 < cache.nbytes <= 100_000
