"""Distributions on the circle: the contract for each, and the moments that theory gives."""

import numpy as np
import pytest
from scipy import special

import orbit
from orbit import Cyclic, InputError, Orbit, ParameterError, Rotation, Translation
from orbit.distributions import Delta, GaussianDistribution, Haar, Uniform, VonMises
from orbit.distributions.circular import trapezoid
from orbit.groups.domains import Circle, Torus, wrap
from orbit.testing import DistributionContract


class TestHaar(DistributionContract):
    component = Haar


class TestDelta(DistributionContract):
    has_density = False
    component = Delta


class TestVonMises(DistributionContract):
    component = VonMises
    params = {"concentration": 0.2}


class TestConcentratedVonMises(TestVonMises):
    params = {"concentration": 9.0}


class TestFlatVonMises(TestVonMises):
    params = {"concentration": 0.0}


class TestUniform(DistributionContract):
    component = Uniform


class TestLopsidedUniform(TestUniform):
    params = {"low": -0.5, "high": 2.5, "unit": "native"}


class TestUniformOverTheFullCircle(TestUniform):
    params = {"low": -180, "high": 180}


# ---- quadrature ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("r", [1, 4, 7, 16])
@pytest.mark.parametrize("phase", [0.0, 0.37])
def test_trapezoid_integrates_waves_below_its_size_exactly(r, phase):
    nodes, weights = Haar().quadrature(Circle(), r, phase)
    for k in range(1, r):
        assert abs(weights @ np.exp(1j * k * nodes)) < 1e-13
    assert abs(weights @ np.exp(1j * r * nodes)) == pytest.approx(1), "the first wave it takes for a constant"


def test_trapezoid_has_the_identity_at_phase_zero():
    for r in (1, 2, 5, 8):
        assert 0.0 in trapezoid(r, 0.0)
    np.testing.assert_allclose(trapezoid(4, 0.5), [np.pi / 4, 3 * np.pi / 4, -3 * np.pi / 4, -np.pi / 4])


@pytest.mark.parametrize("concentration", [0.2, 2.0, 9.0, 50.0])
def test_von_mises_quadrature_has_its_moments(concentration):
    """E cos(k t) = I_k / I_0: spectral accuracy once the nodes resolve the peak, sqrt(kappa) times the step small."""
    nodes, weights = VonMises(concentration).quadrature(Circle(), 64, 0.25)
    for k in range(6):
        expected = special.ive(k, concentration) / special.ive(0, concentration)
        assert weights @ np.cos(k * nodes) == pytest.approx(expected, abs=1e-11)
        assert weights @ np.sin(k * nodes) == pytest.approx(0, abs=1e-11)


@pytest.mark.parametrize(("low", "high"), [(-20, 20), (-90, 30), (10, 300)])
def test_uniform_quadrature_has_its_moments(low, high):
    """Gauss-Legendre: E exp(i k t) = (exp(i k b) - exp(i k a)) / (i k (b - a)), a sinc."""
    nodes, weights = Uniform(low, high).quadrature(Circle(), 24, 0.0)
    a, b = np.radians([low, high])
    for k in (1, 2, 5):
        expected = (np.exp(1j * k * b) - np.exp(1j * k * a)) / (1j * k * (b - a))
        assert abs(weights @ np.exp(1j * k * nodes) - expected) < 1e-12


def test_uniform_gauss_rule_is_exact_for_polynomials_to_twice_its_size():
    nodes, weights = Uniform(-1, 3, unit="native").quadrature(Circle(), 4, 0.9)
    for p in range(8):
        assert weights @ nodes**p == pytest.approx((3 ** (p + 1) - (-1) ** (p + 1)) / (4 * (p + 1)))


def test_uniform_over_the_full_circle_is_haar():
    for q in (Uniform(-180, 180), Uniform(0, 360), Uniform(-np.pi, np.pi, unit="native")):
        for got, expected in zip(q.quadrature(Circle(), 9, 0.2), Haar().quadrature(Circle(), 9, 0.2), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("concentration", [1e3, 1e5, 1e8])
@pytest.mark.parametrize("phase", [0.0, 0.5])
def test_quadrature_of_a_peak_far_narrower_than_a_step_stays_a_distribution(concentration, phase):
    nodes, weights = VonMises(concentration).quadrature(Circle(), 4, phase)
    assert np.all(np.isfinite(weights))
    assert weights.sum() == pytest.approx(1)
    assert weights[np.abs(nodes).argmin()] == pytest.approx(weights.max(), rel=1e-12)


@pytest.mark.parametrize("sigma", [0.8, 12.0, 60.0, 300.0])
@pytest.mark.filterwarnings("error")
def test_gaussian_on_a_cyclic_group_is_the_wrapped_law_without_a_size(sigma):
    """Its moments E exp(2 pi i k g / n) are those of the normal law rounded to whole steps, which wrapping keeps."""
    n = 200
    for size in (None, n):
        fitted = Orbit(Cyclic(), GaussianDistribution(sigma=sigma), size=size, rule="quadrature").fit(np.zeros((1, n)))
        assert len(fitted.weights_) == len(np.unique(fitted.elements_)) <= n
        points = np.arange(-10 * n, 10 * n + 1)
        mass = special.ndtr((points + 0.5) / sigma) - special.ndtr((points - 0.5) / sigma)
        for k in (1, 2, 5):
            expected = mass @ np.cos(2 * np.pi * k * points / n)
            moment = fitted.weights_ @ np.cos(2 * np.pi * k * fitted.elements_ / n)
            assert moment == pytest.approx(expected, abs=2e-5)
    if sigma == 12.0:
        variance = fitted.weights_ @ fitted.elements_**2
        assert variance == pytest.approx(sigma**2 + 1 / 12, rel=1e-4), "rounding to whole steps adds 1/12"


def test_gaussian_on_whole_pixels_keeps_its_variance_without_a_size():
    fitted = Orbit(Translation(step="pixel"), GaussianDistribution(sigma=3.0), rule="quadrature").fit(
        np.zeros((1, 9, 9))
    )
    np.testing.assert_allclose(fitted.weights_ @ fitted.elements_**2, 9 + 1 / 12, rtol=1e-3)


@pytest.mark.filterwarnings("error")
def test_a_size_that_loses_mass_warns_and_names_a_sufficient_size():
    q, domain = GaussianDistribution(sigma=12.0), Torus(1, "samples", 1.0, (200.0,))
    with pytest.warns(
        UserWarning, match=r"31 elements hold 0\.80\d+ of its mass, the other 0\.2 is .* orbit.size=115 keeps"
    ):
        nodes, weights = q.quadrature(domain, 32, 0.0)
    assert len(nodes) == 31
    assert weights.sum() == pytest.approx(1)
    assert len(q.quadrature(domain, 115, 0.0)[0]) == 115
    assert len(q.quadrature(domain, 99, 0.0)[0]) == 99, "the mass left out is below 1e-4"


# ---- densities and samples -------------------------------------------------------------------------------------------


def test_von_mises_has_its_mode_at_the_identity():
    """LGIKA section 4.2 prints exp(-kappa cos): that mode would be the half turn."""
    angles = np.linspace(-np.pi, np.pi, 721)
    for concentration in (0.2, 9.0):
        density = VonMises(concentration).density(Circle(), angles)
        assert angles[density.argmax()] == pytest.approx(0, abs=1e-12)
        assert density[0] == density.min()
        expected = np.exp(concentration * np.cos(angles)) / special.i0(concentration)
        np.testing.assert_allclose(density, expected, rtol=1e-12)
        assert np.abs(VonMises(concentration).ppf(Circle(), np.linspace(0.3, 0.7, 9))).max() < np.pi / 2


def test_von_mises_of_zero_concentration_is_haar():
    u = np.linspace(0, 0.999, 50)
    np.testing.assert_allclose(VonMises(0.0).ppf(Circle(), u), Haar().ppf(Circle(), u))
    np.testing.assert_allclose(VonMises(1e-9).ppf(Circle(), u[1:]), Haar().ppf(Circle(), u[1:]), atol=1e-6)
    np.testing.assert_allclose(VonMises(0.0).quadrature(Circle(), 5, 0.0)[1], 0.2)


def test_von_mises_of_large_concentration_is_a_gaussian():
    u = np.linspace(0.01, 0.99, 99)
    samples = VonMises(1e4).ppf(Circle(), u)
    np.testing.assert_allclose(samples * 100, special.ndtri(u), atol=1e-2)
    assert np.isfinite(VonMises(1e6).density(Circle(), np.array([0.0, 1.0, np.pi]))).all()


def test_uniform_density_lives_on_its_range_only():
    q = Uniform(-20, 40)
    inside, outside = np.radians([-19.9, 0, 39.9]), np.radians([-21, 41, 180, -179])
    np.testing.assert_allclose(q.density(Circle(), inside), 360 / 60)
    np.testing.assert_array_equal(q.density(Circle(), outside), 0)
    samples = q.ppf(Circle(), np.linspace(0, 1, 100, endpoint=False))
    assert samples.min() == pytest.approx(np.radians(-20))
    assert samples.max() < np.radians(40)


def test_units():
    for rule in (lambda q: q.ppf(Circle(), np.linspace(0, 0.9, 4)), lambda q: q.quadrature(Circle(), 4, 0.0)[0]):
        np.testing.assert_allclose(rule(Uniform(-30, 60)), rule(Uniform(-np.pi / 6, np.pi / 3, unit="native")))


def test_range_across_the_half_turn_is_on_the_circle():
    """170 to 190 degrees: samples and density must meet, whichever name an angle goes by."""
    q = Uniform(170, 190)
    samples = wrap(q.ppf(Circle(), np.linspace(0.01, 0.99, 50)))
    assert np.all(np.abs(samples) >= np.radians(169.9))
    np.testing.assert_allclose(q.density(Circle(), samples), 18)


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (Uniform(20, -20), "high: expected a number > distribution.low=20, found -20"),
        (Uniform(5, 5), "high: expected a number > distribution.low=5, found 5"),
        (Uniform(-180, 180.1), "high: expected a range of at most one full turn, found 180.1"),
        (Uniform(-3.2, 3.2, unit="native"), "high: expected a range of at most one full turn, found 3.2"),
        (VonMises(-0.1), "concentration: expected a finite number >= 0 and <= 1e+12, found -0.1"),
    ],
    ids=repr,
)
def test_invalid_parameters_are_rejected(q, message):
    orb = Orbit(Rotation(), q)
    for call in (orb.check, lambda: orb.fit(np.zeros((1, 4, 4)))):
        with pytest.raises(ParameterError) as error:
            call()
        assert str(error.value) == f"distribution.{message}"


def test_one_law_on_a_product_of_groups_is_refused_with_the_factors_to_give():
    with pytest.raises(InputError, match="choose distribution=product with one section for each of rotation, transl"):
        Orbit(orbit.build("group", "product"), Uniform()).check()
    with pytest.raises(InputError, match=r"distribution.factors=\[{name: ...}, {name: ...}, {name: ...}\], or dist"):
        Orbit(orbit.build("group", "affine"), Uniform()).check()


def test_full_turn_in_degrees_is_not_a_rounding_error():
    for q in (Uniform(0, 360), Uniform(-180, 180), Uniform(-np.pi, np.pi, unit="native")):
        Orbit(Rotation(), q).check()


@pytest.mark.parametrize("concentration", [1.0, 2.0, 9.0, 1e3, 1e12])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_few_nodes_of_von_mises_are_symmetric_and_exact(concentration, size):
    nodes, weights = VonMises(concentration).quadrature(Circle(), size, 0.0)
    unit = concentration**-0.5
    np.testing.assert_allclose(nodes, -nodes[::-1], atol=1e-13 * unit)
    if size > 1:  # the variance, by the trapezoid rule with the correction of its end points (Euler and Maclaurin)
        ends = min(np.pi, 12 * unit)
        x = np.linspace(-ends, ends, 2**16 + 1)
        density = VonMises(concentration).density(Circle(), x)
        step, slope = x[1] - x[0], np.gradient(x**2 * density, x, edge_order=2)
        masses = np.sum(density) - (density[0] + density[-1]) / 2
        moment = (
            np.sum(x**2 * density) - (ends**2 * (density[0] + density[-1])) / 2 - (slope[-1] - slope[0]) * step / 12
        )
        assert weights @ nodes**2 == pytest.approx(moment / masses, rel=1e-8)
