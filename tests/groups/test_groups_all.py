"""The contract for every group except identity and rotation, and properties of single groups."""

import math
import pickle
import re
from typing import get_args

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import orbit
from orbit import Exact, Haar, InputError, Orbit, RidgeClassifier
from orbit.groups import (
    Affine,
    Cyclic,
    Dihedral,
    Group,
    Identity,
    Orthogonal,
    Permutation,
    PitchTempo,
    ProductGroup,
    Reflection,
    Rotation,
    Rotation3D,
    Scaling,
    Shear,
    SmallMoves,
    Translation,
)
from orbit.groups.domains import Circle, ProductDomain
from orbit.groups.resampled import Fill
from orbit.testing import GroupContract
from orbit.testing.samples import smooth_images


class InterpolatedContract(GroupContract):
    shape = (28, 28)
    composes_exactly = False
    composition_error = 0.08
    wrong_shapes = [(24,), (2, 3, 4, 5)]

    def smooth_points(self, rng, n=4):
        # narrow enough to stay inside the image, wide enough for bilinear interpolation
        return smooth_images(rng, n, *self.shape, blob=2.5)


@pytest.mark.parametrize(
    ("group", "shape"),
    [
        *((group, "(r,)") for group in (Scaling(), Shear(), Rotation(), Reflection(), Dihedral(), Identity())),
        *((group, "(r, 2)") for group in (PitchTempo(), Translation())),
        (Affine(), "(r, 4)"),
        (ProductGroup([{"name": "rotation"}, {"name": "scaling"}]), "(r, 2)"),
        (Orthogonal(), "(r, 3, 3)"),
        (Permutation(n=4), "(r, 4)"),
    ],
    ids=lambda value: value.name if isinstance(value, Group) else "",
)
def test_a_number_or_one_element_alone_is_no_array_of_elements(group, shape):
    identity = group.identity()
    for wrong in (0.0, identity[0], identity[None]):
        for call in (
            lambda e: group.inverse(e),
            lambda e: group.compose(e, identity),
            lambda e: group.compose(identity, e),
        ):
            with pytest.raises(InputError, match=rf": expected elements of shape {re.escape(shape)}, found shape \("):
                call(wrong)
    assert group.compose(identity, np.repeat(identity, 3, axis=0)).shape == (3, *group.domain.shape)
    assert group.inverse(identity.tolist()).shape == identity.shape


class TestScaling(InterpolatedContract):
    component = Scaling

    def elements(self, seed, r=5):
        return np.random.default_rng(seed).uniform(-0.3, 0.3, r)


class TestShear(InterpolatedContract):
    component = Shear


class TestVerticalShear(TestShear):
    params = {"direction": "vertical"}


class TestTranslation(InterpolatedContract):
    component = Translation


@pytest.mark.parametrize("fill", get_args(Fill))
@pytest.mark.parametrize("cls", [Rotation, Scaling, Shear, Affine, SmallMoves, Translation, Rotation3D])
def test_every_fill_is_linear_with_an_exact_adjoint(cls, fill, rng):
    shape = (8, 8, 8, 2) if cls is Rotation3D else (9, 9, 2)
    group = cls(fill=fill).for_shape(shape)
    g = Orbit(group, size=3, rule="monte_carlo", random_state=0).fit(np.zeros((1, *shape))).elements_
    X, W = 3 + rng.standard_normal((2, 2, *shape))
    moved, back = group.act(g, X).reshape(3, 2, -1), group.adjoint(g, W).reshape(3, 2, -1)
    inner = np.einsum("wd,rnd->rwn", W.reshape(2, -1), moved)
    np.testing.assert_allclose(np.einsum("rwd,nd->rwn", back, X.reshape(2, -1)), inner, rtol=1e-12)
    constant = group.act(g, np.ones((1, *shape)))
    whole = constant / constant.reshape(len(g), -1).max(1).reshape(-1, *[1] * (constant.ndim - 1))
    assert (np.abs(whole - 1).max() < 1e-12) == (fill != "zero"), "only zeros change a constant point"


def test_the_mean_outside_is_that_of_each_channel_of_each_point(rng):
    X = rng.random((3, 5, 5, 2))
    moved = Translation(fill="mean").act([[2.0, 0.0]], X)[0]
    np.testing.assert_allclose(moved[:, :2], np.broadcast_to(X.mean((1, 2), keepdims=True), (3, 2, 5, 2)), rtol=1e-12)
    np.testing.assert_array_equal(moved[:, 2:], X[:, :3])


class TestRotation3D(GroupContract):
    component = Rotation3D
    shape = (15, 15, 15)
    composes_exactly = False
    composition_error = 0.15
    wrong_shapes = [(15, 15), (32, 32, 3)]

    def smooth_points(self, rng, n=4):
        u = np.indices(self.shape) - 7.0
        centres = rng.uniform(-2, 2, (n, 3, 1, 1, 1))
        return np.exp(-np.square(u - centres).sum(1) / 12)


class TestRotation3DOfChannels(TestRotation3D):
    shape = (9, 9, 9, 2)
    wrong_shapes = []

    def smooth_points(self, rng, n=4):
        u = np.indices(self.shape[:3]) - 4.0
        return np.exp(-np.square(u - rng.uniform(-1, 1, (n, 3, 1, 1, 1))).sum(1) / 8)[..., None] * [1.0, -0.5]


class TestWrappedSubpixelTranslation(InterpolatedContract):
    def create(self):
        return Translation(fill="wrap").for_shape(self.shape)


class TestPixelTranslation(TestTranslation):
    composition_error = 0.03  # whole pixels: the error is only what leaves the image
    params = {"step": "pixel"}


class TestAffine(InterpolatedContract):
    composition_error = 0.1

    component = Affine

    def elements(self, seed, r=5):
        rng = np.random.default_rng(seed)
        return np.column_stack([rng.uniform(-3, 3, r), rng.uniform(-0.2, 0.2, r), rng.uniform(-1, 1, (r, 2))])

    def assert_same(self, left, right):
        difference = np.subtract(left, right)
        difference[..., 0] = (difference[..., 0] + np.pi) % (2 * np.pi) - np.pi
        assert np.abs(difference).max() < 1e-12


class TestAffineWithShear(TestAffine):
    params = {"shear": True}

    def elements(self, seed, r=5):
        more = np.random.default_rng(seed + 10).uniform(-0.1, 0.1, (r, 2))
        return np.column_stack([super().elements(seed, r), more])


class TestSmallMoves(TestAffine):
    component = SmallMoves


def test_small_moves_stay_within_their_limits():
    group = SmallMoves(angle=10, shift=3, scale=0.2)
    q = orbit.build("distribution", group.default_distribution["name"])
    for rule in ("qmc", "monte_carlo", "quadrature"):
        moves = Orbit(group, q, 256, rule, random_state=0).fit(np.zeros((1, 9, 9))).elements_
        for found, limits in zip(moves.T, [np.radians([-10, 10]), np.log([0.8, 1.2]), [-3, 3], [-3, 3]], strict=True):
            assert limits[0] <= found.min() < 0.8 * limits[0]
            assert 0.8 * limits[1] < found.max() <= limits[1]
    still = SmallMoves(angle=0, shift=0, scale=0)
    np.testing.assert_array_equal(Orbit(still, q, 8, "qmc").fit(np.zeros((1, 9, 9))).elements_, np.zeros((8, 4)))


class TestProductOfInterpolatedMaps(InterpolatedContract):
    component = ProductGroup
    params = {"factors": [{"name": "translation"}, {"name": "reflection"}]}
    wrong_shapes = []  # are errors of its factors

    def elements(self, seed, r=5):
        rng = np.random.default_rng(seed)  # shifts of rows only, which commute with the reflection of columns
        return np.column_stack([rng.normal(size=r), np.zeros(r), rng.integers(2, size=r)]).astype(float)


class TestRotationsInSpace(GroupContract):
    shape = (6, 3)
    wrong_shapes = [(6,), (6, 2)]
    component = Orthogonal


class TestOrthogonalInSpace(TestRotationsInSpace):
    params = {"special": False}


class TestRotationsInThePlane(GroupContract):
    shape = (6, 2)
    component = Orthogonal
    params = {"dim": 2}


class TestRotationsInFiveDimensions(GroupContract):
    shape = (4, 5)
    component = Orthogonal
    params = {"dim": 5}


# ---- images ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "elements"),
    [
        (Scaling, [-0.4, -0.2, 0.2, 0.4]),
        (Affine, [[0.5, 0.3, 1.0, -0.5], [2.0, -0.3, 0.0, 1.0], [-1.0, 0.2, 0.4, 0.4]]),
    ],
)
def test_inner_products_are_kept_only_with_the_jacobian_factor(rng, group, elements):
    """LGIKA Lemma 2.1, on images smooth enough for the pixel sums to be integrals."""
    X = smooth_images(rng, 5, 48, 48, blob=3.5)

    def gram(Y):
        return Y.reshape(len(Y), -1) @ Y.reshape(len(Y), -1).T

    for element, kept, changed in zip(
        elements, group().act(elements, X), group(unitary=False).act(elements, X), strict=True
    ):
        log_scale = element[1] if group is Affine else element
        np.testing.assert_allclose(gram(kept), gram(X), rtol=0.03)
        np.testing.assert_allclose(gram(changed), math.exp(2 * log_scale) * gram(X), rtol=0.03)
        assert np.abs(gram(changed) / gram(X) - 1).min() > 0.2


def test_affine_is_the_composition_of_its_factors(rng):
    X = smooth_images(rng, 3, 40, 40, blob=3.0)
    angle, log_scale, shift = 0.7, 0.25, [2.0, -3.0]
    one_by_one = Rotation().act([angle], Scaling().act([log_scale], X)[0])[0]
    one_by_one = Translation().act([shift], one_by_one)[0]
    at_once = Affine().act([[angle, log_scale, *shift]], X)[0]
    np.testing.assert_allclose(at_once, one_by_one, atol=0.06 * X.max())
    for single, padded in (
        (Rotation().act([angle], X), [angle, 0, 0, 0]),
        (Scaling().act([log_scale], X), [0, log_scale, 0, 0]),
        (Translation().act([shift], X), [0, 0, *shift]),
    ):
        np.testing.assert_allclose(Affine().act([padded], X), single, atol=1e-12)
    sheared = Affine(shear=True).act([[0, 0, 0, 0, 0.3, 0]], X)
    np.testing.assert_allclose(sheared, Shear().act([0.3], X), atol=1e-12)


def test_whole_shifts_are_rolls_and_slices(rng):
    X = rng.random((2, 5, 6))
    np.testing.assert_array_equal(Translation("wrap").act([[2, -1]], X)[0], np.roll(X, (2, -1), (1, 2)))
    shifted = Translation().act([[2, -1]], X)[0]
    np.testing.assert_array_equal(shifted[:, 2:, :-1], X[:, :-2, 1:])
    assert not shifted[:, :2].any()
    assert not shifted[:, :, -1].any()


def test_colour_channels_move_alike(rng):
    X = rng.random((2, 8, 8, 3))
    for group in (Rotation(), Translation(), Scaling(), Shear(), Affine()):
        g = Orbit(group, size=3, rule="monte_carlo", random_state=0).fit(X).elements_
        for channel in range(3):
            np.testing.assert_allclose(group.act(g, X)[..., channel], group.act(g, X[..., channel]), atol=1e-14)


# ---- images ----------------------------------------------------------------------------------------------------------


def test_a_scaling_does_the_same_alone_and_with_others(rng):
    """By one half, where the factor of the intensities is 2."""
    X, half = rng.random((2, 9, 9)), -np.log(2)
    np.testing.assert_array_equal(Scaling().act([half], X)[0], Scaling().act([half, 0.1], X)[0])


def test_an_affine_map_is_described_by_all_its_coordinates():
    element = np.array([np.pi / 6, np.log(2), 1.5, -2.5])
    assert Affine().describe(element) == "30° ×2.00\n+1.5,-2.5 px"
    assert Affine(shear=True).describe(np.array([*element, 0.25, 0.0])) == "30° ×2.00\n+1.5,-2.5 px, slope +0.25"


# ---- rotations of clouds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 3, 4, 6])
@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("rule", ["monte_carlo", "qmc"])
def test_haar_matrices_are_uniform(dim, special, rule):
    """First and second moments of Haar measure, and for monte_carlo the law of one coordinate of a moved vector."""
    group = Orthogonal(dim, special)
    R = Orbit(group, size=8192, rule=rule, random_state=1).fit(np.zeros((1, 2, dim))).elements_
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(dim), R.shape), atol=1e-12)
    signs = np.linalg.det(R).round(9)
    assert set(signs) == ({1.0} if special else {1.0, -1.0})
    assert abs(signs.mean() - special) < 0.06
    assert np.abs(R.mean(0)).max() < 0.05
    np.testing.assert_allclose((R**2).mean(0), 1 / dim, atol=0.03)
    if rule == "monte_carlo":  # (1 + x) / 2 of a coordinate x of a uniform unit vector is Beta((d-1)/2, (d-1)/2)
        for x in (R[:, 0, -1], R[:, -1, 0]):
            assert stats.kstest((1 + x) / 2, stats.beta((dim - 1) / 2, (dim - 1) / 2).cdf).pvalue > 1e-3


@pytest.mark.parametrize("special", [True, False])
def test_euler_rule_integrates_polynomials_exactly(special):
    """Fourth moments: E (u.Rv)^4 = 3/15, E (u.Rv)^2 = 1/3, odd ones vanish."""
    R, w = Orthogonal(3, special).domain.haar_rule(256, 0.3)
    u, v = np.array([1.0, 2, 2]) / 3, np.array([2.0, -1, 2]) / 3
    x = np.einsum("i,rij,j->r", u, R, v)
    for power, expected in ((1, 0), (2, 1 / 3), (3, 0), (4, 1 / 5)):
        assert w @ x**power == pytest.approx(expected, abs=1e-12)
    assert w @ np.linalg.det(R) == pytest.approx(1 if special else 0, abs=1e-12)


# ---- products and errors ---------------------------------------------------------------------------------------------


def test_product_acts_first_factor_first(rng):
    X = rng.random((2, 5, 5))
    group = ProductGroup([{"name": "dihedral"}, {"name": "translation", "fill": "wrap"}]).for_shape((5, 5))
    moved = group.act([[5.0, 1.0, 2.0]], X)[0]
    expected = Translation("wrap").act([[1.0, 2.0]], Dihedral().act([5.0], X)[0])[0]
    np.testing.assert_array_equal(moved, expected)
    assert isinstance(group.domain, ProductDomain)
    assert group.factors[1]["period"] == [5, 5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ProductGroup([]).check(), "factors: expected at least one section"),
        (
            lambda: ProductGroup([{"fill": "wrap"}]).check(),
            r"factors\[0\]: expected a section with the name of a group",
        ),
        (lambda: ProductGroup([Haar()]).check(), r"factors: expected a list, each item a mapping or a Group, found"),
        (
            lambda: ProductGroup([Rotation(), Translation(fill="mirror")]).check(),
            r"factors\[1\]\.fill: expected one of 'zero', 'wrap', .*found 'mirror'",
        ),
        (lambda: ProductGroup([{"name": "rotatoin"}]).check(), r"factors\[0\]: .*did you mean 'rotation'"),
        (
            lambda: ProductGroup([{"name": "rotation", "x": 1}]).check(),
            r"factors\[0\]: group=rotation has no parameter",
        ),
        (
            lambda: ProductGroup([{"name": "rotation"}, {"name": "translation", "fill": "mirror"}]).check(),
            r"factors\[1\]\.fill: expected one of 'zero', 'wrap', .*found 'mirror'",
        ),
        (
            lambda: Orbit(ProductGroup([{"name": "rotation"}, {"name": "orthogonal"}])).fit(np.zeros((1, 4, 4))),
            r"^group.factors\[1\]: group=orthogonal acts on vectors.*found arrays of shape \(4, 4\)",
        ),
        (
            lambda: Orbit(Rotation()).fit(np.zeros((1, 4))).group_,
            "group=rotation acts on images.*vectors of length 4: ch",
        ),
        (
            lambda: Permutation().for_shape((4, 4)),
            r"on vectors \(group.mode=entries; group.mode=rows_columns takes such arrays\)",
        ),
        (
            lambda: Permutation().for_shape((4, 2)),
            r"on vectors \(group.mode=entries; group.mode=blocks takes such arrays\)",
        ),
        (lambda: Permutation("blocks").for_shape((12,)), "group.n: expected the number of blocks"),
        (lambda: Dihedral().for_shape((4, 5)), r"group=dihedral acts on square images.*found arrays of shape \(4, 5\)"),
        (lambda: Rotation().elements(), "group=rotation: a circle of angles cannot be listed"),
        (lambda: Cyclic().elements(), "group=cyclic: whole numbers .samples. modulo a period cannot be listed"),
        (lambda: Permutation().identity(), "permutations of entries: their number is not known"),
    ],
)
def test_errors_name_the_group_and_a_remedy(call, message):
    with pytest.raises(InputError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_orders():
    assert Identity().order == 1
    assert Rotation().order is None
    assert Dihedral().order == 8
    assert Cyclic().order is None
    assert Cyclic().for_shape((7,)).order == 7
    assert Translation("wrap", "pixel").for_shape((3, 4, 2)).order == 12
    assert Translation("wrap").for_shape((3, 4)).order is None
    assert ProductGroup([{"name": "dihedral"}, {"name": "rotation"}]).order is None
    assert isinstance(Rotation().domain, Circle)


def test_factors_of_a_product_may_be_groups(rng, tmp_path):
    X = rng.random((4, 5, 5))
    sections = ProductGroup([{"name": "dihedral"}, {"name": "translation", "fill": "wrap"}])
    given = ProductGroup([Dihedral(), {"name": "translation", "fill": "wrap"}])
    fitted = [
        Orbit(group, size=8, random_state=0).fit(X)
        for group in (sections, given, clone(given), pickle.loads(pickle.dumps(given)))
    ]
    for orb in fitted:
        np.testing.assert_array_equal(orb.elements_, fitted[0].elements_)
        assert orb.label() == "dihedral × translation, q=haar × gaussian, 8 by qmc"
    copy = clone(given)
    assert copy.factors[0] is not given.factors[0]
    assert repr(copy) == repr(given) == "ProductGroup(factors=[Dihedral(), {'name': 'translation', 'fill': 'wrap'}])"
    model = make_pipeline(Exact(orbit=Orbit(given, size=4, random_state=0)), RidgeClassifier(1e-3)).fit(X, [0, 1, 0, 1])
    orbit.save(model, tmp_path)
    np.testing.assert_array_equal(orbit.load(tmp_path).decision_function(X), model.decision_function(X))


def test_a_factor_of_a_product_need_not_be_registered():
    class Halved(Cyclic):
        default_size = 2

    group = ProductGroup([Halved(), Reflection()]).for_shape((6, 2))
    assert [type(part) for part in group.parts()] == [Halved, Reflection]
    assert group.order == 4


@pytest.mark.parametrize("inner", ["affine", "small_moves", "pitch_tempo", "product"])
def test_a_product_of_products_has_the_defaults_of_all_factors(inner):
    shape = (64,) if inner == "pitch_tempo" else (8, 8)
    outer = {"name": "cyclic", "axis": 0}
    fitted = Orbit(ProductGroup([outer, {"name": inner}]), size=16).fit(np.zeros((1, *shape)))
    alone = Orbit(orbit.build("group", inner), size=16).fit(np.zeros((1, *shape)))
    assert fitted.elements_.shape == (16, 1 + alone.elements_.shape[1])


@pytest.mark.parametrize(
    ("group", "shape"),
    [(Permutation("blocks"), (4, 3)), (Cyclic(), (5,)), (Translation("wrap"), (4, 4)), (Rotation(), (4, 4))],
    ids=repr,
)
def test_a_subclass_is_kept_where_parameters_follow_from_the_shape(group, shape):
    mine = type("Mine", (type(group),), {})(**group.get_params())
    fitted = mine.for_shape(shape)
    assert type(fitted) is type(mine)
    assert fitted.get_params() == group.for_shape(shape).get_params()
    assert mine.get_params() == group.get_params()
