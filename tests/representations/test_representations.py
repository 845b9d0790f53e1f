"""Representations: the contract for each, and the values of each."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from orbit import (
    AtomEnvironment,
    Bag,
    BagOfBonds,
    Centre,
    Coulomb,
    ManyBody,
    Moments,
    Outline,
    Polar,
    Raw,
    Standardize,
    UnitNorm,
)
from orbit.core.errors import InputError
from orbit.groups import Rotation
from orbit.testing import RepresentationContract
from orbit.testing.samples import smooth_images


class TestRaw(RepresentationContract):
    component = Raw
    shape = (3, 4, 2)

    def test_changes_nothing(self, X):
        np.testing.assert_array_equal(Raw().fit_transform(X), X)


class TestUnitNormMean(RepresentationContract):
    component = UnitNorm
    shape = (4, 5)

    def test_mean_norm_of_the_training_points_is_one(self, X):
        fitted = UnitNorm().fit(X)
        assert np.linalg.norm(fitted.transform(X).reshape(7, -1), axis=1).mean() == pytest.approx(1)
        np.testing.assert_allclose(fitted.transform(5 * X), 5 * fitted.transform(X), err_msg="the scale is frozen")


class TestUnitNormEach(RepresentationContract):
    component, params = UnitNorm, {"norm": "each"}

    def test_every_norm_is_one(self, X):
        np.testing.assert_allclose(np.linalg.norm(UnitNorm("each").fit_transform(X), axis=1), 1)

    def test_zero_stays_zero(self):
        np.testing.assert_array_equal(UnitNorm("each").fit_transform(np.zeros((2, 3))), 0)


class TestOutline(RepresentationContract):
    component, params = Outline, {"n_points": 9}
    shape = (6, 5)

    @pytest.mark.parametrize("axes", [2, 3])
    @pytest.mark.parametrize("n_points", [7, 20, 2000])
    def test_clouds_are_cells_of_the_surface_of_a_ball(self, axes, n_points):
        distances = np.linalg.norm(np.indices((21,) * axes) - 10, axis=0)
        for x in (distances < 7, 3 - 0.1 * distances):  # of the second, the region is another ball
            cloud = Outline(n_points).fit_transform(x[None].astype(np.float32))[0]
            radii = np.linalg.norm(cloud - 10, axis=1)
            assert cloud.shape == (n_points, axes)
            assert np.ptp(radii) < 1.5
            assert len(np.unique(cloud, axis=0)) == min(
                n_points, len(np.unique(Outline(5000).fit_transform(x[None])[0], axis=0))
            )

    def test_a_constant_image_is_one_region(self):
        cloud = Outline(16).fit_transform(np.zeros((1, 5, 5)))[0]
        assert set(map(tuple, cloud)) == {(i, j) for i in range(5) for j in range(5) if {i, j} & {0, 4}}

    @pytest.mark.parametrize("shape", [(4, 4, 4, 2), (2, 2, 2, 2, 2)])
    def test_points_of_other_axes_are_refused(self, shape):
        with pytest.raises(InputError, match=r"representation=outline takes images .* or volumes .*, found points of"):
            Outline().fit(np.ones((2, *shape)))


class TestMoments(RepresentationContract):
    component = Moments
    shape = (8, 7)

    @pytest.mark.parametrize("aspect", [0.0, 0.5, 1.0])
    @pytest.mark.parametrize("channels", [(), (2,)])
    def test_mean_slant_and_deviations_of_a_bell_are_as_stated(self, aspect, channels):
        y, x = np.mgrid[:61, :51].astype(float)
        bell = np.exp(-((y - 33) ** 2) / 80 - (x - 22 - 0.5 * (y - 33)) ** 2 / 20)  # deviations sqrt(40) and sqrt(10)
        X = bell.reshape(1, 61, 51, *[1] * len(channels)) * np.ones(channels)
        found = Moments(0.13, aspect).fit_transform(X)
        assert found.shape == X.shape
        density = found.reshape(61, 51, -1).sum(-1)
        density /= density.sum()
        mean = np.array([(density * y).sum(), (density * x).sum()])
        np.testing.assert_allclose(mean, [30, 25], atol=0.05)
        dy, dx = y - mean[0], x - mean[1]
        np.testing.assert_allclose((density * dy * dx).sum(), 0, atol=0.3)
        deviations = np.sqrt([(density * dy**2).sum(), (density * dx**2).sum()])
        np.testing.assert_allclose(deviations, 0.13 * 51 * np.array([1, 0.5**aspect]), rtol=0.02)

    @pytest.mark.parametrize("position", ["centre", "keep"])
    def test_principal_axes_keep_their_directions(self, position):
        y, x = np.mgrid[:61, :51].astype(float)
        along, across = 0.8 * (y - 33) + 0.6 * (x - 22), 0.8 * (x - 22) - 0.6 * (y - 33)
        bell = np.exp(-(along**2) / 80 - across**2 / 20)  # deviations sqrt(40) and sqrt(10)
        found = Moments(0.13, 0.5, "principal", position).fit_transform(bell[None])[0]
        found /= found.sum()
        mean = np.array([(found * y).sum(), (found * x).sum()])
        np.testing.assert_allclose(mean, [30, 25] if position == "centre" else [33, 22], atol=0.05)
        along, across = 0.8 * (y - mean[0]) + 0.6 * (x - mean[1]), 0.8 * (x - mean[1]) - 0.6 * (y - mean[0])
        deviations = np.sqrt([(found * along**2).sum(), (found * across**2).sum()])
        np.testing.assert_allclose(deviations, 0.13 * 51 * np.sqrt([1, 0.5]), rtol=0.02)
        np.testing.assert_allclose((found * along * across).sum(), 0, atol=0.3)

    @pytest.mark.parametrize("position", ["centre", "keep"])
    def test_with_principal_axes_a_turned_image_becomes_the_turned_result(self, rng, position):
        X = rng.random((3, 9, 9))
        normalised = Moments(axes="principal", position=position).fit_transform
        np.testing.assert_allclose(normalised(np.rot90(X, 1, (1, 2))), np.rot90(normalised(X), 1, (1, 2)), atol=1e-10)

    @pytest.mark.parametrize("axes", ["upright", "principal"])
    def test_an_image_without_bright_pixels_does_not_change(self, axes):
        X = -np.ones((2, 4, 4))
        np.testing.assert_allclose(Moments(axes=axes, position="keep").fit_transform(X), X)

    def test_vectors_are_refused(self):
        with pytest.raises(InputError, match=r"representation=moments takes images of at least .*, found points of"):
            Moments().fit(np.ones((2, 3, 3, 3, 3)))


class TestCentre(RepresentationContract):
    component = Centre
    shape = (6, 3)

    def test_clouds_are_centred_and_shifts_change_nothing(self, X, rng):
        centred = Centre().fit_transform(X)
        np.testing.assert_allclose(centred.mean(1), 0, atol=1e-15)
        np.testing.assert_allclose(Centre().fit_transform(X + 100 * rng.random((7, 1, 3))), centred, atol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_equal_points_are_zero_not_rounding_errors(self, rng, dtype):
        np.testing.assert_array_equal(Centre().fit_transform(np.full((3, 7, 2), rng.random((3, 1, 2)), dtype)), 0)

    @pytest.mark.parametrize("shape", [(6,), (4, 6, 3)])
    def test_points_that_are_no_clouds_are_refused(self, shape):
        with pytest.raises(InputError, match=r"representation=centre takes clouds of points, of shape \(points, coord"):
            Centre().fit(np.ones((2, *shape)))


class TestStandardize(RepresentationContract):
    component = Standardize

    def test_is_scikit_learns(self, X):
        X = X * [1.0, 10, 0.1, 5, 1e3] + [0, 1, 2, -3, 1e4]
        np.testing.assert_allclose(Standardize().fit_transform(X), StandardScaler().fit_transform(X), atol=1e-9)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_constant_features_are_only_shifted(self, rng, dtype):
        X = rng.random((1000, 3)).astype(dtype)
        X[:, 1] = 0.1  # not a binary fraction: its mean rounds
        X[:, 2] = 0
        out = Standardize().fit_transform(X)
        np.testing.assert_allclose(out[:, 1:], 0, atol=1e-6)
        assert out[:, 0].std() == pytest.approx(1, rel=1e-3)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_different_texts_are_two_standard_deviations_apart(self, dtype):
        texts = np.array(["common"] * 90 + ["rare"] * 8 + ["single"] * 2)
        indicators = (texts[:, None] == np.unique(texts)).astype(dtype)
        out = Standardize().fit_transform(np.column_stack([indicators, np.arange(100, dtype=dtype)]))
        np.testing.assert_allclose(pdist(out[[0, 90, 98], :3]), 2, rtol=1e-6)
        np.testing.assert_allclose(out.mean(0), 0, atol=1e-6)
        assert out[:, 3].std() == pytest.approx(1)
        new = Standardize().fit(indicators).transform(np.zeros((1, 3), dtype))
        np.testing.assert_allclose(new, -np.sqrt(2) * indicators.mean(0, keepdims=True), rtol=1e-5)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("size", [1, 1e6])
    def test_rounding_errors_remain_small(self, rng, size, dtype):
        shares = rng.random((1000, 6))
        shares = (shares / shares.sum(1, keepdims=True)).astype(dtype)
        X = np.column_stack([shares, dtype(size) * shares.sum(1)])
        assert np.ptp(X[:, 6]) > 0
        assert np.abs(Standardize().fit_transform(X)[:, 6]).max() < 10 * np.finfo(dtype).eps


class TestPolar(RepresentationContract):
    component = Polar
    shape = (9, 9)


class TestPolarOfWideImages(RepresentationContract):
    component, params = Polar, {"n_radii": 5, "n_angles": 9, "norm": "each"}
    shape = (8, 12)


class TestCoulomb(RepresentationContract):
    component, params = Coulomb, {"order": "sorted"}
    shape = (5, 5)

    @pytest.fixture
    def X(self, rng):
        X = rng.random((7, 5, 5))
        return X + X.transpose(0, 2, 1)


class TestBagOfBonds(RepresentationContract):
    component = BagOfBonds
    shape = (5, 5)

    @pytest.fixture
    def X(self, rng):
        return molecules(rng)


class TestManyBody(RepresentationContract):
    component, params = ManyBody, {"unit": "angstrom"}
    shape = (5, 5)
    float32_error = 1e-4  # the matrix of the landmarks makes rounding errors of kernel values larger

    @pytest.fixture
    def X(self, rng):
        return molecules(rng)


class TestAtomEnvironment(RepresentationContract):
    component = AtomEnvironment
    shape = (5, 4)
    float32_error = 1e-4

    @pytest.fixture
    def X(self, rng):
        return np.concatenate([rng.choice([1.0, 6.0], (7, 5, 1)), 2 * rng.random((7, 5, 3))], 2)

    def test_transform_refuses_another_shape(self, X):
        fitted = self.create().fit(X)
        for shape in ((2, 5, 5), (2, 4), (2, 5, 1, 4)):
            with pytest.raises(InputError, match=r"^representation=atom_environment takes .* shape \(atoms, 4\)"):
                fitted.transform(np.ones(shape))
        with pytest.raises(InputError, match="expected nuclear charges up to 118 in the first column"):
            fitted.transform(np.full((2, 5, 4), 0.5))

    def test_the_vector_is_that_of_the_first_atom_in_its_molecule(self, X):
        """The environments of whole molecules, another path of the same sums, in the block of the atom's element."""
        fitted = self.create().fit(X)
        whole, _ = fitted._environments(X[:, :, 0].astype(int), torch.from_numpy(X[:, :, 1:]))
        found, start = fitted.transform(X), 0
        for z in (1, 6):
            columns, rows = fitted._environments.columns_of(z), X[:, 0, 0] == z
            block = found[:, start : start + 1 + len(columns)]
            np.testing.assert_allclose(block[rows, 1:] * fitted._scale, whole[rows, 0].numpy()[:, columns], atol=1e-12)
            assert (block[rows, 0] == 1).all()
            assert not block[~rows].any()
            start += block.shape[1]
        assert start == found.shape[1]
        assert (np.square(found).sum(1) - 1).mean() == pytest.approx(1)

    def test_motions_orders_and_places_without_an_atom_change_nothing(self, X):
        fitted = self.create().fit(X)
        Q = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
        moved = np.concatenate([X[:, :, :1], X[:, :, 1:] @ Q + 3], 2)[:, [0, 3, 2, 4, 1]]
        moved = np.concatenate([moved, np.zeros((7, 2, 4))], 1)
        np.testing.assert_allclose(fitted.transform(moved), fitted.transform(X), atol=1e-10)

    def test_new_elements_are_named(self, X):
        fitted = self.create().fit(X)
        X[0, 0, 0] = X[1, 2, 0] = 16
        with pytest.warns(UserWarning, match=r"2 of 7 atoms are of elements, or have neighbours .*\(S\)"):
            found = fitted.transform(X)
        assert not found[0].any()


class TestBag(RepresentationContract):
    component = Bag
    shape = (5, 3)


# ---- polar -----------------------------------------------------------------------------------------------------------


def test_polar_keeps_inner_products_up_to_one_scale(rng):
    """r dr dtheta is the area: sums over rings, weighted by the root of the radius, stand for sums over pixels."""
    X = smooth_images(rng, 8, 28, 28, blob=2.5)
    R = Polar(n_radii=28, n_angles=64, norm="none").fit_transform(X)
    images, rings = X.reshape(8, -1), R.reshape(8, -1)
    cell = 14 / 28 * 2 * math.pi / 64  # dr dtheta in pixels
    np.testing.assert_allclose(rings @ rings.T * cell, images @ images.T, rtol=0.03)


def test_polar_of_a_radial_image_does_not_depend_on_the_angle():
    y, x = np.mgrid[:31, :31] - 15.0
    image = np.exp(-(x**2 + y**2) / 50)
    R = Polar(n_radii=12, n_angles=40, norm="none").fit_transform(image[None])[0]
    assert np.ptp(R, axis=1).max() < 0.03 * R.max()
    radii = (np.arange(12) + 0.5) * 15.5 / 12
    np.testing.assert_allclose(R.mean(1), np.sqrt(radii) * np.exp(-(radii**2) / 50), atol=0.02)


def test_polar_starts_to_the_right_and_runs_counter_clockwise():
    image = np.zeros((1, 11, 11))
    image[0, 5, 8:] = 1  # right of the centre
    R = Polar(n_radii=5, n_angles=8, norm="none").fit_transform(image)[0]
    assert R.sum(0).argmax() == 0
    image = np.zeros((1, 11, 11))
    image[0, :3, 5] = 1  # above the centre: a quarter turn counter-clockwise
    assert Polar(n_radii=5, n_angles=8, norm="none").fit_transform(image)[0].sum(0).argmax() == 2


def test_polar_of_quarter_turns_are_shifts(rng):
    X = rng.random((3, 12, 12))
    polar = Polar(n_angles=16).fit(X)
    for k in range(4):
        turned = polar.transform(np.rot90(X, k, axes=(1, 2)).copy())
        np.testing.assert_allclose(turned, Rotation("polar").act([k * np.pi / 2], polar.transform(X))[0], atol=1e-12)


@pytest.mark.parametrize(("side", "n_radii", "n_angles"), [(8, 8, 32), (16, 8, 64), (28, 14, 64), (4, 8, 16)])
def test_polar_defaults(side, n_radii, n_angles):
    assert Polar().fit_transform(np.ones((2, side, side))).shape == (2, n_radii, n_angles)


@pytest.mark.parametrize("norm", ["mean", "each", "none"])
def test_polar_norms(rng, norm):
    X = rng.random((6, 9, 9)) * 10
    norms = np.linalg.norm(Polar(norm=norm).fit_transform(X).reshape(6, -1), axis=1)
    if norm == "mean":
        assert norms.mean() == pytest.approx(1)
        assert np.ptp(norms) > 1e-3
    elif norm == "each":
        np.testing.assert_allclose(norms, 1)
    else:
        assert norms.min() > 5


def test_polar_radius_limits_the_samples():
    X = np.zeros((1, 15, 15))
    X[0, 0] = X[0, -1] = X[0, :, 0] = X[0, :, -1] = 1  # a frame, six pixels and more from the centre
    assert Polar(radius=5, norm="none").fit_transform(X).max() == 0
    assert Polar(radius=8, norm="none").fit_transform(X).max() > 0


def test_polar_of_many_images_is_done_in_blocks(rng):
    X = rng.random((2100, 4, 4)).astype(np.float32)
    polar = Polar(n_radii=2, n_angles=4).fit(X)
    whole = polar.transform(X)
    np.testing.assert_allclose(whole[[0, 1023, 1024, 2099]], polar.transform(X[[0, 1023, 1024, 2099]]), atol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (5, 5, 3)])
def test_polar_rejects_points_other_than_images(shape):
    with pytest.raises(InputError, match=r"representation=polar takes images of shape.*found points of shape \(5"):
        Polar().fit(np.ones((2, *shape)))


# ---- Coulomb matrices ------------------------------------------------------------------------------------------------


def matrices(rng, n: int = 6, atoms: int = 5) -> np.ndarray:
    X = rng.random((n, atoms, atoms))
    return X + X.transpose(0, 2, 1)


def test_sorted_matrices_do_not_depend_on_the_order_of_atoms(rng):
    X, order = matrices(rng), rng.permutation(5)
    shuffled = X[:, order][:, :, order]
    sorted_ = Coulomb("sorted").fit(X)
    np.testing.assert_allclose(sorted_.transform(shuffled), sorted_.transform(X))
    norms = np.linalg.norm(sorted_.transform(X), axis=2)
    assert np.all(np.diff(norms, axis=1) <= 0)
    assert np.abs(Coulomb().fit(X).transform(shuffled) - X).max() > 0.1


@pytest.mark.parametrize("shape", [(5,), (5, 4)])
def test_coulomb_rejects_other_points_than_square_matrices(shape):
    with pytest.raises(InputError, match=r"representation=coulomb takes matrices.*found points of shape \(5"):
        Coulomb().fit(np.ones((2, *shape)))


@pytest.mark.parametrize("representation", [Coulomb(), BagOfBonds(), ManyBody()], ids=str)
def test_matrices_of_molecules_are_symmetric(rng, representation):
    X = molecules(rng).astype(np.float32)
    fitted = representation.fit(X)
    X[2, 0, 1] *= 1.01
    for call in (representation.fit_transform, fitted.transform):
        with pytest.raises(InputError, match="symmetric"):
            call(X)


# ---- bags of bonds ---------------------------------------------------------------------------------------------------


def atoms(rng, n=7, size=5, spread=1.0):
    """Random charges, the first always hydrogen, the last zero (no atom), and positions."""
    charges = rng.choice([1, 6, 8], (n, size)).astype(float)
    charges[:, 0], charges[:, -1] = 1, 0
    return charges, spread * rng.random((n, size, 3))


def coulomb_matrices(charges, positions):
    size = charges.shape[1]
    distances = np.linalg.norm(positions[:, :, None] - positions[:, None], axis=-1) + np.eye(size)
    C = charges[:, :, None] * charges[:, None] / distances
    C[:, range(size), range(size)] = 0.5 * charges**2.4
    return C


def molecules(rng, n=7, size=5):
    return coulomb_matrices(*atoms(rng, n, size))


def test_bags_of_bonds_by_a_loop(rng):
    X = molecules(rng)
    fitted = BagOfBonds().fit(X)
    for row, C in zip(fitted.transform(X), X, strict=True):
        charges = np.rint((2 * np.diag(C)) ** (1 / 2.4)).astype(int)
        expected = []
        for (light, heavy), length in fitted.bags_.items():
            if light == 0:
                bag = [C[i, i] for i in range(5) if charges[i] == heavy]
            else:
                bag = [
                    C[i, j] for i in range(5) for j in range(i) if sorted([charges[i], charges[j]]) == [light, heavy]
                ]
            expected += sorted(bag, reverse=True) + [0] * (length - len(bag))
        np.testing.assert_allclose(row, expected)


def test_what_no_training_molecule_has_is_left_out_with_a_warning(rng):
    X = molecules(rng)
    fitted = BagOfBonds().fit(X[:, :3, :3])
    larger = X[:1, :3, :3].copy()
    larger[0, 1, 1] = 0.5 * 53**2.4  # iodine
    with pytest.warns(UserWarning, match="1 of 1 molecules have elements"):
        found = fitted.transform(larger)
    assert found.shape == fitted.transform(X[:, :3, :3])[:1].shape


@pytest.mark.parametrize("representation", [BagOfBonds(), ManyBody()], ids=str)
@pytest.mark.parametrize(("entry", "value"), [((0, 1), -1.0), ((2, 2), 1e6)])
def test_molecules_are_coulomb_matrices(rng, representation, entry, value):
    X = molecules(rng)
    X[3][entry] = value
    with pytest.raises(InputError, match="Coulomb matrix"):
        representation.fit(X)


# ---- distances and angles --------------------------------------------------------------------------------------------


RADII = {1: 0.76, 6: 0.76, 7: 0.71, 8: 0.66, 9: 0.57, 16: 1.05}  # hydrogen has that of carbon


def terms_by_loops(charges, R, cutoff=6.0, angle_cutoff=4.0):
    """Elements, numbers t and weights of the pairs and triples of one molecule in angstrom, by the docstring."""
    present = [i for i in range(len(charges)) if charges[i] > 0]

    def falloff(r, limit):
        return (1 + math.cos(math.pi * r / limit)) / 2 if r < limit else 0.0

    def relative(i, j):
        return math.dist(R[i], R[j]) * 2 * 0.76 / (RADII[charges[i]] + RADII[charges[j]])

    found = []
    for i, j in itertools.combinations(present, 2):
        r = math.dist(R[i], R[j])
        found.append((sorted(charges[[i, j]]), np.array([1 / relative(i, j) / 0.042]), falloff(r, cutoff) / r**3))
    for i in present:
        for j, k in itertools.combinations([a for a in present if a != i], 2):
            r, s, u = math.dist(R[i], R[j]), math.dist(R[i], R[k]), math.dist(R[j], R[k])
            angle = math.acos(np.clip((R[j] - R[i]) @ (R[k] - R[i]) / (r * s), -1, 1))
            q, p = relative(i, j), relative(i, k)
            t = np.array([(q + p) / 0.75, 2 * abs(q - p) / 0.42, angle / 0.45])
            weight = falloff(r, angle_cutoff) * falloff(s, angle_cutoff) / (r * s * u)
            found.append(([charges[i], *sorted(charges[[j, k]])], t, weight))
    return found


def of_elements(a, b):
    """The kernel of two elements."""
    if a == b:
        return 1.0
    return 0.0 if 1 in (a, b) else 0.5


def many_body_kernel(one, other):
    """The sum over all combinations of the terms of two molecules."""
    total = 0.0
    for (kind, t, weight), (kind2, t2, weight2) in itertools.product(one, other):
        if len(kind) == len(kind2):
            alike = math.prod(map(of_elements, kind, kind2))
            total += weight * weight2 * alike * math.exp(-np.square(t - t2).sum() / 2)
    return total


@pytest.mark.parametrize("unit", ["bohr", "angstrom"])
def test_inner_products_are_sums_of_the_kernel_over_pairs_and_triples(rng, unit):
    charges, positions = atoms(rng, n=12, spread=3.0)
    charges[charges == charges.max()] = 16  # an element that few have
    X = coulomb_matrices(charges, positions / (0.529177210903 if unit == "bohr" else 1.0))
    Phi = ManyBody(unit=unit).fit(X).transform(X)
    elements = np.unique(charges[charges > 0])
    np.testing.assert_array_equal(Phi[:, : len(elements)], (charges[:, :, None] == elements).sum(1))
    terms = [terms_by_loops(z, R) for z, R in zip(charges, positions, strict=True)]
    expected = [[many_body_kernel(one, other) for other in terms] for one in terms]
    rest = Phi[:, len(elements) :]
    np.testing.assert_allclose(rest @ rest.T, expected, rtol=0.03, atol=1e-3)


def test_terms_of_new_elements_are_like_those_of_others(rng):
    R = np.array([[0.0, 0, 0], [1.2, 0.1, 0], [1.9, 1.1, 0.3]])
    molecules = [np.array([6.0, 6, 1]), np.array([6.0, 8, 1])]
    first, second = (coulomb_matrices(z[None], R[None]) for z in molecules)
    fitted = ManyBody(unit="angstrom").fit(first)
    with pytest.warns(UserWarning, match=r"1 of 1 molecules have elements.* \(new elements: O\)"):
        found = fitted.transform(first)[0, 2:] @ fitted.transform(second)[0, 2:]
    terms = [terms_by_loops(z, R) for z in molecules]
    assert found == pytest.approx(many_body_kernel(*terms), rel=0.02)


def test_distances_and_angles_do_not_depend_on_the_order_of_atoms_nor_on_blocks(rng, monkeypatch):
    X, p = molecules(rng, n=40), rng.permutation(5)
    fitted = ManyBody(unit="angstrom").fit(X)
    whole = fitted.transform(X)
    monkeypatch.setattr("orbit.representations.molecules._BLOCK", 5**3 * 7)
    np.testing.assert_allclose(fitted.transform(X[:, p][:, :, p]), whole, rtol=1e-9, atol=1e-12)


def test_elements_and_pairs_and_triples_that_no_training_molecule_has_are_counted_in_a_warning(rng):
    R = rng.random((1, 3, 3))
    fitted = ManyBody(unit="angstrom").fit(coulomb_matrices(np.array([[8.0, 1.0, 1.0]]), R))
    with pytest.warns(UserWarning, match="1 of 1 molecules have elements"):
        assert fitted.transform(coulomb_matrices(np.array([[8.0, 53.0, 1.0]]), R))[0, :2].tolist() == [1, 1]  # iodine
    with pytest.warns(UserWarning, match="1 of 2 molecules have elements, or pairs or triples"):
        fitted.transform(coulomb_matrices(np.array([[8.0, 8.0, 1.0], [8.0, 1.0, 1.0]]), R.repeat(2, 0)))


# ---- bags ------------------------------------------------------------------------------------------------------------


def test_a_bag_counts_letters_whatever_their_order(rng):
    words = rng.integers(0, 8, (6, 5))
    X = np.eye(8)[words]
    counts = Bag().fit_transform(X)
    np.testing.assert_array_equal(counts, [np.bincount(word, minlength=8) for word in words])
    np.testing.assert_array_equal(Bag().fit_transform(X[:, rng.permutation(5)]), counts)


def test_a_bag_needs_rows():
    with pytest.raises(InputError, match=r"representation=bag takes points of shape .rows, columns., found.* shape"):
        Bag().fit(np.ones((3, 4)))


# ---- scikit-learn's names and containers -----------------------------------------------------------------------------


@pytest.mark.parametrize("representation", [Raw(), UnitNorm(), UnitNorm("each"), Standardize()], ids=repr)
def test_vectors_keep_the_names_of_their_features(rng, representation):
    X = pd.DataFrame(rng.random((5, 3)), columns=["width", "height", "age"])
    fitted = representation.fit(X)
    assert list(fitted.get_feature_names_out()) == ["width", "height", "age"]
    framed = clone(representation).set_output(transform="pandas").fit_transform(X)
    assert list(framed.columns) == ["width", "height", "age"]
    np.testing.assert_array_equal(framed, fitted.transform(X))
    with pytest.raises(ValueError, match="input_features"):
        fitted.get_feature_names_out(["width"])


@pytest.mark.parametrize(
    ("representation", "shape", "first", "count"),
    [
        (UnitNorm(), (4, 5), "unitnorm0", 20),
        (Polar(n_radii=3, n_angles=8), (6, 6), "polar0", 24),
        (Coulomb(), (3, 3), "coulomb0", 9),
        (Bag(), (5, 8), "bag0", 8),
        (BagOfBonds(), (2, 2), "bagofbonds0", 3),
        (ManyBody(), (2, 2), "manybody0", 7),
    ],
    ids=str,
)
def test_numbers_of_other_points_are_named_in_the_order_of_flattening(rng, representation, shape, first, count):
    X = rng.random((6, *shape))
    X = (X + X.swapaxes(1, 2)) / 2 if shape[0] == shape[1] else X  # matrices of molecules are symmetric
    names = representation.fit(X).get_feature_names_out()
    assert names[0] == first
    assert len(set(names)) == len(names) == count == representation.transform(X)[0].size


def test_a_bag_of_words_comes_as_a_data_frame(rng):
    counts = Bag().set_output(transform="pandas").fit_transform(rng.random((6, 5, 3)))
    assert list(counts.columns) == ["bag0", "bag1", "bag2"]


@pytest.mark.parametrize("radius", [0.01, 0.2])
def test_a_small_radius_has_at_least_two_angles(rng, radius):
    assert Polar(radius=radius).fit_transform(rng.random((3, 8, 8))).shape == (3, 8, 2)
