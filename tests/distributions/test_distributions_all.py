"""The distribution contract on every kind of domain: density, inverse distribution function and quadrature agree."""

import numpy as np
import pytest
import torch
from scipy import stats

import orbit
from orbit import Delta, GaussianDistribution, Haar, LogNormal, NoisySort, Orbit, ProductDistribution, Uniform, VonMises
from orbit.core.errors import InputError
from orbit.groups import Group, Permutation, Rotation, Scaling, Translation
from orbit.groups.domains import Circle, Finite, Line, LogScale, OrthogonalMatrices, Permutations, ProductDomain, Torus
from orbit.testing import AnyDomainContract, DistributionContract


class WrappedContract(DistributionContract):
    def test_inverse_distribution_function_increases_on_the_half_open_unit_interval(self):
        values = self.create().ppf(self.domain, np.linspace(0, 1, 501))
        assert np.all((values >= -np.pi) & (values < np.pi))
        jumps = np.diff(values[1:-1])
        assert np.all((jumps >= 0) | (jumps < -np.pi)), "increases except where it wraps"


class TestGaussianOnTheCircle(WrappedContract):
    component = GaussianDistribution
    params = {"sigma": 40.0, "unit": "degrees"}


class TestNarrowGaussianOnTheCircle(TestGaussianOnTheCircle):
    params = {"mean": 0.3, "sigma": 0.05}


class TestWideGaussianOnTheCircle(TestGaussianOnTheCircle):
    params = {"mean": 0.5, "sigma": 0.9}


class TestGaussianOnTheLine(AnyDomainContract):
    domain = Line()
    waves = [[0.3], [1.0], [2.0]]
    component = GaussianDistribution
    params = {"mean": 0.5, "sigma": 1.5}

    def test_samples_follow_the_density(self):
        super().test_samples_follow_the_density()
        assert stats.kstest(self.draws(), stats.norm(0.5, 1.5).cdf).pvalue > 1e-3
        x = np.linspace(-3, 4, 9)
        np.testing.assert_allclose(self.create().density(self.domain, x), stats.norm(0.5, 1.5).pdf(x))

    def test_gauss_hermite_is_exact(self):
        nodes, weights = GaussianDistribution(0.0, 2.0).quadrature(Line(), 5, 0.0)
        assert [weights @ nodes**p for p in (2, 4, 6, 8)] == pytest.approx([4, 48, 960, 26880])


class TestGaussianInThePlane(AnyDomainContract):
    domain = Line(2, "pixels")
    waves = [[0.3, 0.5], [1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]
    component = GaussianDistribution
    params = {"mean": 0.5, "sigma": 1.0}


class TestGaussianOnTheGrid(TestGaussianInThePlane):
    domain = Line(2, "pixels", 1.0)

    def test_whole_steps_have_the_mass_around_them(self):
        points, weights = GaussianDistribution(0.0, 1.0).quadrature(Line(step=1.0), 100, 0.0)
        np.testing.assert_allclose(weights, stats.norm.cdf(points + 0.5) - stats.norm.cdf(points - 0.5), rtol=1e-5)
        kept = GaussianDistribution(0.0, 1.0).quadrature(Line(step=1.0), 4, 0.0)[0]
        np.testing.assert_array_equal(kept, [-1, 0, 1])


class TestGaussianOnAFiniteTorus(AnyDomainContract):
    domain = Torus(2, "pixels", 1.0, (7.0, 8.0))
    waves = [[2 * np.pi / 7, 0], [0, np.pi / 4], [2 * np.pi / 7, np.pi / 4]]
    component = GaussianDistribution
    params = {"mean": 0.0, "sigma": 2.0}


class TestGaussianOnATorus(TestGaussianOnAFiniteTorus):
    domain = Torus(2, "pixels", None, (7.0, 8.0))


class TestLogNormal(AnyDomainContract):
    domain = LogScale()
    waves = [[1.0], [4.0]]
    component = LogNormal
    params = {"mean": 0.1, "sigma": 0.3}

    def test_scales_are_log_normal(self):
        assert stats.kstest(np.exp(self.draws()), stats.lognorm(0.3, scale=np.exp(0.1)).cdf).pvalue > 1e-3


class TestUniformInThePlane(AnyDomainContract):
    domain = Line(2, "pixels")
    waves = [[0.3, 0.5], [1.0, 0.0], [0.0, 1.0]]
    component = Uniform
    params = {"low": -3, "high": 3, "unit": "native"}


class TestUniformOnTheGrid(TestUniformInThePlane):
    domain = Line(2, "pixels", 1.0)

    def test_three_pixels_are_seven_by_seven_shifts(self):
        nodes, weights = self.create().quadrature(self.domain, 1, 0.0)
        assert len(np.unique(nodes, axis=0)) == 49
        np.testing.assert_allclose(weights, 1 / 49)


class TestUniformOnACyclicGroup(AnyDomainContract):
    domain = Torus(1, "samples", 1.0, (9.0,))
    waves = [[2 * np.pi / 9], [4 * np.pi / 9]]
    component = Uniform
    params = {"low": -2, "high": 2, "unit": "native"}


class TestHaarOnACyclicGroup(TestUniformOnACyclicGroup):
    component = Haar
    params = {}


class TestHaarOnATorus(TestGaussianOnATorus):
    component = Haar
    params = {}


class TestHaarOnAFiniteGroup(AnyDomainContract):
    domain = Finite(8)
    waves = [[0.5], [1.0]]
    component = Haar


class TestHaarOnPermutations(AnyDomainContract):
    domain = Permutations(5)
    waves = [[1, 0, 0, 0, 0], [0, 1, -1, 0, 0], [1, 0, 2, 0, 0]]
    component = Haar


class TestHaarOnRotationsInSpace(AnyDomainContract):
    domain = OrthogonalMatrices(3)
    waves = [[1, 0, 0, 0, 1, 0, 0, 0, 1], [0, 2, 0, 0, 0, 0, 0, 0, 1]]
    component = Haar


class TestHaarOnOrthogonalMatrices(TestHaarOnRotationsInSpace):
    domain = OrthogonalMatrices(3, special=False)


class TestHaarInFourDimensions(AnyDomainContract):
    domain = OrthogonalMatrices(4)
    waves = [list(np.arange(16) % 3), list(np.eye(4).ravel())]
    component = Haar

    def test_there_is_no_quadrature(self):
        assert not self.create().has_quadrature(self.domain)


class TestProduct(AnyDomainContract):
    domain = ProductDomain((Circle(), LogScale(), Line(2, "pixels"), Finite(2)), ("a", "b", "c", "d"))
    waves = [[1, 0, 0, 0, 0], [1, 1, 0.5, 0, 0], [0, 2, 0, 1, 1], [0, 0, 0, 0, 1]]
    size = 4096

    component = ProductDistribution
    params = {
        "factors": [
            {"name": "von_mises", "concentration": 2.0},
            {"name": "lognormal"},
            {"name": "gaussian"},
            {"name": "haar"},
        ]
    }

    def test_density_is_the_product(self):
        draws = self.draws(50)
        parts = self.domain.split(draws)
        each = [VonMises(2.0), LogNormal(), GaussianDistribution(), Haar()]
        expected = np.prod([q.density(d, x) for q, d, x in zip(each, self.domain.parts, parts, strict=True)], axis=0)
        np.testing.assert_allclose(self.create().density(self.domain, draws), expected)


class TestNoisySort(AnyDomainContract):
    domain = Permutations(4, Permutation.ROWS_COLUMNS)
    waves = [[1, 0, 0, 0], [0.5, -1, 0, 0]]
    component = NoisySort
    params = {"sigma": 0.5}

    def test_density_is_normalised_to_haar_measure(self):
        assert NoisySort(1.0).density(self.domain, np.zeros((1, 4))) == pytest.approx((2 * np.pi) ** -2)

    def test_is_accepted_on_the_trivial_group(self):
        Orbit(None, self.create()).check()


# ---- noisy sort ------------------------------------------------------------------------------------------------------


def coulomb_like(rng, n=5, size=6):
    C = rng.random((n, size, size)) * 3
    return C + C.transpose(0, 2, 1)


def test_noisy_sort_is_the_scheme_of_montavon(rng):
    C = coulomb_like(rng)
    group = Permutation("rows_columns")
    fitted = Orbit(group, NoisySort(2.0), size=7, rule="monte_carlo", random_state=0).fit(C)
    moved = fitted.points(torch.from_numpy(C), slice(None)).numpy()
    for noise, of_all in zip(fitted.elements_, moved, strict=True):
        for x, got in zip(C, of_all, strict=True):
            order = np.argsort(-(np.linalg.norm(x, axis=1) + noise))
            np.testing.assert_array_equal(got, x[order][:, order])
    assert not fitted.is_whole_group
    one_by_one = [fitted.points(torch.from_numpy(C[i : i + 1]), slice(2, 3)).numpy()[0, 0] for i in range(len(C))]
    np.testing.assert_array_equal(one_by_one, moved[2])


def test_noisy_sort_features_are_invariant_when_the_noise_is_none(rng):
    """Sorting is invariant exactly; with noise, invariance holds in distribution only."""
    C, p = coulomb_like(rng), rng.permutation(6)
    orb = Orbit(Permutation("rows_columns"), NoisySort(0.0), size=1)
    phi = orbit.build("approx", "rf", orbit=orb, n_components=20, random_state=0).fit(C)
    np.testing.assert_allclose(phi.transform(C[:, p][:, :, p]), phi.transform(C), atol=1e-12)


def test_equal_row_norms_are_left_in_their_order():
    C = np.array([np.roll(np.arange(1.0, 41.0), k) for k in range(40)])[None]
    fitted = Orbit(Permutation("rows_columns"), NoisySort(0.0), size=1).fit(C)
    np.testing.assert_array_equal(fitted.points(torch.from_numpy(C), slice(None))[0], C)


# ---- densities and ranges --------------------------------------------------------------------------------------------


def test_a_point_mass_is_at_the_identity_of_several_coordinates():
    density = Delta().density(Line(2), np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    assert density[0] > 0
    np.testing.assert_array_equal(density[1:], 0)


def test_a_narrow_uniform_density_is_zero_outside_its_range():
    x = np.array([-0.01, -1e-9, 0.0, 0.05, 0.1 - 1e-9, 0.1, 0.11])
    np.testing.assert_allclose(Uniform(0.0, 0.1, "native").density(Line(), x), [0, 0, 10, 10, 10, 0, 0])


@pytest.mark.parametrize("sigma", [0.3, 2.0, 8.0])
def test_the_wrapped_normal_density_is_its_fourier_series(sigma):
    """1 + 2 sum_k exp(-sigma^2 k^2 / 2) cos k (x - mean) with respect to normalised Haar measure (Mardia and Jupp)."""
    x, k = np.linspace(-np.pi, np.pi, 50, endpoint=False), np.arange(1, 60)[:, None]
    expected = 1 + 2 * (np.exp(-((sigma * k) ** 2) / 2) * np.cos(k * (x - 0.4))).sum(0)
    np.testing.assert_allclose(GaussianDistribution(0.4, sigma).density(Circle(), x), expected, atol=1e-9)


def test_steps_of_a_torus_of_any_length_carry_the_mass_around_them():
    """Of a normal law on eight steps of one half: the sums over all turns."""
    nodes, weights = GaussianDistribution(0.2, 1.0).quadrature(Torus(1, "samples", 0.5, (4.0,)), 8, 0.0)
    np.testing.assert_allclose(nodes, np.arange(-2, 2, 0.5))
    around = nodes[:, None] + 4 * np.arange(-3, 4)
    mass = (stats.norm.cdf(around + 0.25, 0.2) - stats.norm.cdf(around - 0.25, 0.2)).sum(1)
    np.testing.assert_allclose(weights, mass, atol=1e-5)


def test_more_atoms_than_can_be_listed_have_no_quadrature():
    assert Uniform(-3, 3, "native").has_quadrature(Line(2, "pixels", 1.0))
    assert not Uniform(-3000, 3000, "native").has_quadrature(Line(2, "pixels", 1.0))


# ---- groups, distributions and rules ---------------------------------------------------------------------------------

GROUPS: dict[str, tuple[Group, tuple[int, ...]]] = {
    "identity": (orbit.build("group", "identity"), (4,)),
    "rotation": (Rotation(), (6, 6)),
    "translation": (Translation(), (6, 6)),
    "pixel": (Translation(step="pixel"), (6, 6)),
    "wrapped": (Translation("wrap", "pixel"), (6, 6)),
    "wrapped-subpixel": (Translation("wrap"), (6, 6)),
    "scaling": (Scaling(), (6, 6)),
    "shear": (orbit.build("group", "shear"), (6, 6)),
    "affine": (orbit.build("group", "affine"), (6, 6)),
    "affine-shear": (orbit.build("group", "affine", shear=True), (6, 6)),
    "reflection": (orbit.build("group", "reflection"), (6, 6)),
    "dihedral": (orbit.build("group", "dihedral"), (6, 6)),
    "cyclic": (orbit.build("group", "cyclic"), (50,)),
    "permutation": (orbit.build("group", "permutation"), (4,)),
    "long-permutation": (orbit.build("group", "permutation"), (40,)),
    "blocks": (orbit.build("group", "permutation", mode="blocks"), (5, 8)),
    "rows_columns": (orbit.build("group", "permutation", mode="rows_columns"), (6, 6)),
    "orthogonal": (orbit.build("group", "orthogonal"), (5, 3)),
    "orthogonal-5": (orbit.build("group", "orthogonal", dim=5, special=False), (4, 5)),
    "pitch_tempo": (orbit.build("group", "pitch_tempo"), (64,)),
    "product": (orbit.build("group", "product"), (6, 6)),
    "small_moves": (orbit.build("group", "small_moves"), (6, 6)),
    "shift": (Translation(axes=1), (30,)),
    "shift-volumes": (Translation(axes=3), (8, 8, 8)),
    "time_warp": (orbit.build("group", "time_warp"), (30,)),
    "amplitude": (orbit.build("group", "amplitude"), (30, 2)),
    "offset": (orbit.build("group", "offset"), (30, 2)),
    "octahedral": (orbit.build("group", "octahedral"), (8, 8, 8)),
    "rotation3d": (orbit.build("group", "rotation3d"), (8, 8, 8)),
}


RULES = ["monte_carlo", "qmc", "quadrature", None]


def test_every_group_is_among_them():
    assert {group.name for group, _ in GROUPS.values()} == set(orbit.available("group"))


def assert_fits_or_error_names_both(name: str, distribution: str | None, rule: str | None) -> None:
    group, shape = GROUPS[name]
    q = None if distribution is None else orbit.build("distribution", distribution)
    X = np.random.default_rng(0).random((3, *shape))
    orb = Orbit(group, q, size=8, rule=rule, random_state=0)
    try:
        fitted = orb.fit(X)
    except InputError as error:
        message = str(error)
        assert f"distribution={distribution or group.default_distribution['name']}" in message
        assert f"group={group.name}" in message
        assert "choose" in message or "change" in message
        assert "\n" not in message
        assert distribution is not None or rule == "quadrature", "the defaults fit"
        return
    assert len(fitted.elements_) == len(fitted.weights_)
    assert fitted.weights_.sum() == pytest.approx(1)
    moved = fitted.points(torch.from_numpy(X), slice(0, 2))
    assert moved.shape == (min(2, len(fitted.weights_)), *X.shape)
    assert torch.isfinite(moved).all()
    assert fitted.describe(0)


@pytest.mark.parametrize("distribution", [None, *orbit.available("distribution")])
@pytest.mark.parametrize("group", GROUPS)
def test_every_group_with_every_distribution(group, distribution):
    assert_fits_or_error_names_both(group, distribution, None)


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_with_every_rule(group):
    for rule in RULES:
        assert_fits_or_error_names_both(group, None, rule)


# a group on which each distribution is defined
DEFINED_ON = {
    "delta": "rotation",
    "gaussian": "translation",
    "haar": "dihedral",
    "lognormal": "scaling",
    "noisy_sort": "rows_columns",
    "product": "affine",
    "uniform": "rotation",
    "von_mises": "rotation",
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("distribution", orbit.available("distribution"))
def test_every_distribution_with_every_rule(distribution, rule):
    assert_fits_or_error_names_both(DEFINED_ON[distribution], distribution, rule)


AFFINE, EXPECTED_LIST = orbit.build("group", "affine"), r"factors: expected a list, each item a mapping"


@pytest.mark.parametrize(
    ("checked", "message"),
    [
        (Orbit(Translation(), Haar()), "distribution=haar is not defined on group=translation.*real vectors"),
        (
            Orbit(Translation(), Uniform()),
            "distribution=uniform has distribution.unit=degrees.*group=translation.*pixels",
        ),
        (Orbit(Translation(), VonMises()), "distribution=von_mises is not defined on group=translation"),
        (Orbit(Rotation(), Uniform(-4, 4, unit="native")), "high: expected a range of at most one full turn"),
        (Orbit(Translation(step="pixel"), Uniform(0.2, 0.4, "native")), "no whole element of group=translation"),
        (Orbit(orbit.build("group", "permutation"), NoisySort()), "noisy_sort is not defined on group=perm"),
        (
            Orbit(Permutation("rows_columns"), NoisySort(), rule="quadrature"),
            "distribution=noisy_sort on group=permutation has no quadrature.*choose orbit.rule=monte_carlo",
        ),
        (
            Orbit(orbit.build("group", "orthogonal", dim=4), rule="quadrature"),
            "distribution=haar on group=orthogonal has no quadrature.*orbit.rule=qmc",
        ),
        (
            Orbit(AFFINE, ProductDistribution([{"name": "haar"}])),
            r"distribution=product has 1 factors, group=affine has 3 \(rotation, scaling, translation\)",
        ),
        (
            Orbit(AFFINE, ProductDistribution([{"name": "haar"}] * 3)),
            r"^distribution.factors\[1\]: distribution=haar is not defined on factor scaling of group=affine",
        ),
        (ProductDistribution([{"name": "haar"}, {"name": "gaussian", "sigma": -1}]), r"factors\[1\]\.sigma: expec"),
        (ProductDistribution([Haar(), GaussianDistribution(sigma=-1)]), r"factors\[1\]\.sigma: expec"),
        (ProductDistribution([{"name": "gausian"}]), r"factors\[0\]: .*did you mean 'gaussian'"),
        (ProductDistribution([NoisySort()]), r"factors\[0\]: distribution=noisy_sort depends on the dat"),
        (ProductDistribution([{"name": "noisy_sort"}]), r"factors\[0\]: distribution=noisy_sort depends on the dat"),
        (ProductDistribution([Rotation()]), rf"{EXPECTED_LIST} or a Distribution or null, found \[Rotation\(\)\]"),
        (ProductDistribution(["haar"]), EXPECTED_LIST),  # type: ignore[list-item]
    ],
    ids=repr,
)
def test_errors_name_both_and_a_remedy(checked, message):
    with pytest.raises(InputError, match=message) as error:
        checked.check()
    assert "\n" not in str(error.value)


def test_a_range_wider_than_a_period_is_refused():
    with pytest.raises(InputError, match="ranges over 7, more than the period 5 of group=translation"):
        Orbit(Translation("wrap", "pixel"), Uniform(-3, 3, "native")).fit(np.zeros((1, 5, 5)))


def test_delta_is_the_identity_of_every_group():
    for group, shape in GROUPS.values():
        for rule in ("monte_carlo", "qmc", "quadrature"):
            fitted = Orbit(group, Delta(), size=4, rule=rule).fit(np.zeros((1, *shape)))
            identity = fitted.group_.identity()
            np.testing.assert_array_equal(fitted.elements_, np.repeat(identity, len(fitted.elements_), 0))


def test_factors_of_a_product_may_be_distributions():
    X = np.zeros((1, 8, 8))
    group = orbit.build("group", "affine")
    given = orbit.build(
        "distribution", "product", factors=[orbit.VonMises(9.0), orbit.LogNormal(), orbit.GaussianDistribution()]
    )
    sections = [{"name": "von_mises", "concentration": 9.0}, {"name": "lognormal"}, {"name": "gaussian"}]
    expected = orbit.Orbit(group, ProductDistribution(sections), size=8, random_state=0).fit(X).elements_
    np.testing.assert_array_equal(orbit.Orbit(group, given, size=8, random_state=0).fit(X).elements_, expected)
