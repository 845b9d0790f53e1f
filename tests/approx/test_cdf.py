"""Cumulative distribution features: the contract, the exact kernel, bins, sketches and compact storage."""

import numpy as np
import oracles
import pytest
import torch
from live_bytes import LiveBytes
from scipy import integrate, stats

from orbit import CumulativeDistribution, Engine, Exact, Haar, InputError, Orbit, PrincipalComponents, VonMises
from orbit.approx.bins import BinCounts, UniformBins, trapezoid_widths
from orbit.approx.frequencies import MonteCarlo, Orthogonal
from orbit.approx.sketch import CountSketch
from orbit.groups import Cyclic, Permutation, Rotation
from orbit.kernels import CDF, cdf_theory
from orbit.testing import FeatureMapContract, KernelContract
from orbit.testing.samples import signals
from papers import bounds


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X.reshape(len(X), -1), axis=1).reshape(-1, *[1] * (X.ndim - 1))


# ---- the contract ----------------------------------------------------------------------------------------------------


SMALL = {"n_components": 30, "n_bins": 8}


class TestCDF(FeatureMapContract):
    component, params = CumulativeDistribution, SMALL
    gram_error = 0.12  # of values near s = 1.1
    for_gram = {"n_components": 300, "n_bins": 20}

    def case(self, rng, name):
        orb, X, move = super().case(rng, name)
        return orb, unit(X), move  # so that the norm of a point is that of what the formulas are given

    def evaluate(self, fitted, points, points_fit):
        thresholds = np.broadcast_to(fitted.thresholds_, (len(fitted.templates_), 2 * fitted.n_bins + 1))
        scale = np.broadcast_to(fitted.scale_, thresholds.shape)
        features = oracles.distribution_functions(points, fitted.orbit_.weights_, fitted.templates_, thresholds)
        return (features * scale).reshape(points.shape[1], -1)

    def expected_gram(self, fitted, points):
        return oracles.cdf_gram(points, fitted.orbit_.weights_, fitted.kernel_.range_, fitted.templates)


class TestCDFOfRadius(TestCDF):
    params = SMALL | {"norm": "radius", "templates": "sphere"}


class TestCDFByQuantiles(TestCDF):
    params = SMALL | {"thresholds": "quantile"}


class TestCDFSketched(TestCDF):
    params = SMALL | {"sketch": 50}

    def evaluate(self, fitted, points, points_fit):
        centred = super().evaluate(fitted, points, points_fit) - fitted.centre_
        return oracles.count_sketch(centred, fitted.sketch_.buckets, fitted.sketch_.signs, 50)

    def expected_gram(self, fitted, points):
        """Centred at the mean of the training points, which here are all points."""
        H = np.eye(points.shape[1]) - 1 / points.shape[1]
        return H @ super().expected_gram(fitted, points) @ H


class TestCDFKernel(KernelContract):
    component, params = CDF, {"radius": 12.0, "templates": "sphere"}

    def evaluate(self, x, z):
        """E (s - max(<x, t>, <z, t>)) by an integral over one angle in the plane of x and z."""
        return 12.0 * 1.1 - oracles.mean_maximum_on_the_sphere(x, z)


# ---- the exact kernel ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("templates", ["gaussian", "sphere"])
@pytest.mark.parametrize("d", [2, 3, 40])
def test_slope_is_half_the_mean_absolute_coordinate_of_templates(d, templates):
    """By the density of one coordinate given the length of the others, integrated numerically."""
    if templates == "sphere":
        density = lambda u: stats.beta.pdf((u + 1) / 2, (d - 1) / 2, (d - 1) / 2) / 2  # noqa: E731
        expected = 2 * integrate.quad(lambda u: u * density(u), 0, 1)[0]
    else:
        weight = lambda u: stats.norm.pdf(u, scale=d**-0.5) * stats.chi2.cdf(d * (1.1 - u * u), d - 1)  # noqa: E731
        parts = [2 * integrate.quad(lambda u, k=k: u**k * weight(u), 0, 1.1**0.5)[0] for k in (1, 0)]
        expected = parts[0] / parts[1]
    assert cdf_theory.cdf_slope(d, templates, 0.1) == pytest.approx(expected / 2, rel=1e-8)


@pytest.mark.parametrize("templates", ["gaussian", "sphere"])
@pytest.mark.parametrize("rule", [MonteCarlo(), Orthogonal(), None], ids=repr)
def test_templates_follow_their_distribution(templates, rule):
    d, m = 6, 6000
    fitted = CumulativeDistribution(n_components=m, n_bins=1, templates=templates, frequencies=rule, random_state=0)
    T = fitted.fit(np.ones((2, d))).templates_
    squares = np.square(T).sum(1)
    if templates == "sphere":
        np.testing.assert_allclose(squares, 1, atol=1e-12)
    else:
        cut = stats.chi2.cdf(1.1 * d, d)
        assert squares.max() < 1.1
        assert stats.kstest(squares, lambda q: stats.chi2.cdf(q * d, d) / cut).pvalue > 1e-3
    assert np.abs(T.mean(0)).max() < 5 * T.std() / m**0.5
    np.testing.assert_allclose(T.T @ T / m, np.eye(d) * squares.mean() / d, atol=0.02)
    assert np.abs(T).mean() / 2 == pytest.approx(cdf_theory.cdf_slope(d, templates, 0.1), rel=0.03)


@pytest.mark.parametrize("templates", ["gaussian", "sphere"])
@pytest.mark.parametrize("thresholds", ["uniform", "quantile"])
def test_inner_products_converge_to_the_exact_kernel(rng, templates, thresholds):
    X = unit(signals(rng, 6, (8,)))
    orb = Orbit(Cyclic(), Haar())
    K = Exact(CDF(1.0, templates=templates), orb).fit(X).gram(X)
    errors = []
    for m, n in ((40, 4), (640, 16), (10_240, 64)):
        cdf = CumulativeDistribution(orb, m, n, templates, thresholds, frequencies=MonteCarlo(), random_state=1)
        psi = cdf.fit_transform(X)
        errors.append(np.abs(psi @ psi.T - K).max())
    # both 1/n and m^(-1/2) fall by 16 in two steps; half of that leaves room for chance
    assert errors[2] < errors[0] / 8
    assert errors[2] < 0.03


def test_error_of_uniform_thresholds_is_that_of_a_riemann_sum(rng):
    """A distribution function that jumps at a adds 0 to s/n to the integral s - a; so does a product of two."""
    X = unit(signals(rng, 5, (4,)))
    for n in (3, 10, 100):
        cdf = CumulativeDistribution(n_components=50, n_bins=n, random_state=0).fit(X)
        projections = X @ cdf.templates_.T
        s, psi = cdf.kernel_.range_, cdf.transform(X)
        integrals = s - np.maximum(projections[:, None], projections[None]).mean(2)
        excess = psi @ psi.T - integrals
        assert excess.min() >= -1e-12
        assert excess.max() <= s / n + 1e-12


def test_inner_products_are_within_the_hoeffding_bound(rng):
    """At most 5 % of 100 independent draws of templates may exceed the bound; it is loose, so none does."""
    x = unit(signals(rng, 2, (6,)))
    expected = CDF(1.0).gram(x)[0, 1]
    errors = []
    for seed in range(100):
        cdf = CumulativeDistribution(n_components=20, n_bins=10, frequencies=MonteCarlo(), random_state=seed)
        psi = cdf.fit_transform(x)
        errors.append(abs(psi[0] @ psi[1] - expected))
    bound = bounds.cdf_error_bound(20, 10, 1.1, 0.95)
    assert np.mean(np.array(errors) > bound) <= 0.05
    assert max(errors) > bound / 20, "the bound is of the order of the error"


@pytest.mark.parametrize(("d", "epsilon"), [(20, 0.9), (100, 0.5), (784, 0.2)])
def test_the_exact_kernel_is_within_the_bounds_of_theorem_1(rng, d, epsilon):
    X = unit(signals(rng, 8, (d,)))
    orb = Orbit(Cyclic(), Haar(), size=d)
    drawn = Exact(CDF(1.0, epsilon), orb).fit(X).gram(X)
    # the paper's kernel counts a rejected template as zero features
    K = bounds.cdf_acceptance(d, epsilon) * drawn
    shifts = np.stack([np.roll(X, k, 1) for k in range(d)])
    distances = np.array([[np.linalg.norm(x - shifts[:, j], axis=1).mean() for j in range(8)] for x in X])
    deviation = K - (1 + epsilon - distances / np.sqrt(2 * np.pi * d))
    low, high = bounds.cdf_deviation_bounds(d, epsilon)
    assert low <= deviation.min()
    assert deviation.max() <= high
    assert high - low < 0.5 * (1 + epsilon)


def test_features_depend_only_on_the_direction_of_a_point(rng):
    X = rng.standard_normal((5, 7))
    fitted = CumulativeDistribution(n_components=30, n_bins=5, random_state=0).fit(X)
    np.testing.assert_allclose(fitted.transform(3 * X), fitted.transform(X), atol=1e-12)


def test_radius_is_that_of_the_training_points(rng):
    X = rng.standard_normal((9, 7))
    fitted = CumulativeDistribution(n_components=30, n_bins=5, norm="radius", random_state=0).fit(X)
    s = 1.1 * np.linalg.norm(X, axis=1).max()
    assert fitted.kernel_.range_ == pytest.approx(s)
    np.testing.assert_allclose(fitted.thresholds_[[0, -1]], [-s, s])
    far = fitted.transform(1000 * X[:1])
    assert set(np.unique(far > 0)) == {False, True}
    assert np.isfinite(far).all()


def test_features_of_zero_points_are_finite():
    X = np.zeros((3, 4))
    for norm in ("each", "radius"):
        assert np.isfinite(CumulativeDistribution(n_components=3, norm=norm, random_state=0).fit_transform(X)).all()


# ---- bins ------------------------------------------------------------------------------------------------------------


def test_orbit_points_are_counted_equally_in_batches_and_one_by_one(rng):
    templates, scale = torch.from_numpy(rng.standard_normal((7, 4))), torch.ones(1, dtype=torch.float64)
    counts = BinCounts(templates, UniformBins(5, 3.0), scale, None, None)
    projections, weights = torch.from_numpy(rng.standard_normal((3, 6, 4))), torch.tensor([0.2, 0.3, 0.5]).double()
    one, other = (torch.zeros(6, counts.width, dtype=torch.float64) for _ in range(2))
    counts.add_projected(projections.clone(), None, weights, slice(2, 6), one, None)
    for i in range(3):
        counts.add_projected(projections[i : i + 1].clone(), None, weights[i : i + 1], slice(2, 6), other, None)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one.sum(1), 4)  # each of four units holds weight one in every row
    assert not one[:, : 2 * counts.bins_a_unit].any()


def test_widths_turn_sums_of_distribution_functions_into_integrals(rng):
    thresholds = np.sort(np.hstack([rng.uniform(-0.4, 0.6, (3, 400)), np.ones((3, 1))]))
    widths = trapezoid_widths(thresholds)
    grid = np.linspace(-1, 1, 200_001)
    for row, shares in zip(thresholds, widths, strict=True):
        for a, b in ((-0.3, 0.1), (0.0, 0.5), (0.2, 0.2)):
            F, G = (np.clip((grid - c) / 0.05, 0, 1) for c in (a, b))  # continuous, zero to one
            f, g = (np.clip((row - c) / 0.05, 0, 1) for c in (a, b))
            assert shares @ (f * g) == pytest.approx(integrate.trapezoid(F * G, grid), abs=0.005)


def test_quantile_thresholds_follow_the_projections(rng):
    X = unit(rng.standard_normal((3000, 400)) + 0.5)  # far from the origin, as images are
    uniform, quantile = (
        CumulativeDistribution(n_components=40, n_bins=10, thresholds=t, random_state=0).fit(X)
        for t in ("uniform", "quantile")
    )
    informative = [
        np.mean(np.ptp(fitted.transform(X[:500]), axis=0) > 0) for fitted in (uniform, quantile)
    ]  # columns that are not the same for all points
    assert informative[0] < 0.35
    assert informative[1] > 0.85  # all but the last threshold of each template, which is s, and some extremes
    shares = (X @ quantile.templates_.T)[..., None] <= quantile.thresholds_
    np.testing.assert_allclose(shares.mean((0, 1))[:-1], np.linspace(0, 1, 20), atol=0.02)


# ---- sketches --------------------------------------------------------------------------------------------------------


def test_sketches_are_unbiased_with_the_variance_of_theory(rng):
    x, y = rng.standard_normal((2, 60)) + 0.4
    size, draws = 16, 3000
    pairs = torch.from_numpy(np.stack([x, y]))
    found = []
    for seed in range(draws):
        u, v = CountSketch(60, size, np.random.default_rng(seed))(pairs.clone()).numpy()
        found.append(u @ v)
    variance = ((x @ x) * (y @ y) + (x @ y) ** 2 - 2 * np.square(x * y).sum()) / size
    assert np.mean(found) == pytest.approx(x @ y, abs=5 * (variance / draws) ** 0.5)
    assert np.var(found) == pytest.approx(variance, rel=0.2)
    assert variance <= 2 * (x @ x) * (y @ y) / size


def test_a_sketch_of_features_keeps_their_inner_products_about_the_mean(rng):
    X, Z = unit(signals(rng, 40, (30,))), unit(signals(rng, 12, (30,)))
    make = lambda **p: CumulativeDistribution(n_components=200, n_bins=10, random_state=0, **p).fit(X)  # noqa: E731
    centred = make().transform(Z) - make().transform(X).mean(0)
    expected, size = centred @ centred.T, 400
    sketched = make(sketch=size)
    np.testing.assert_allclose(sketched.centre_, make().transform(X).mean(0), atol=1e-12)
    psi = sketched.transform(Z)
    assert psi.shape == (12, size)
    powers = np.diag(expected)
    errors = (psi @ psi.T - expected) / np.sqrt(2 * np.outer(powers, powers) / size)
    assert np.abs(errors).max() < 4.5
    assert np.square(errors).mean() < 1.2


@pytest.mark.parametrize("sketch", [None, 16])
def test_a_tile_of_many_columns_stays_within_its_memory_budget(rng, sketch):
    X = rng.standard_normal((40, 20)).astype(np.float32)
    megabytes, columns = 1.0, 200 * 51
    engine = Engine(megabytes / 1024, workers=1)
    fitted = CumulativeDistribution(None, 200, 25, sketch=sketch, engine=engine, random_state=0).fit(X)
    with LiveBytes() as live:
        psi = fitted.transform(X)
    constant = fitted.templates_.size * 4 + columns * (8 + 1 + 4 + 4)  # templates; buckets, signs, centre and scale
    assert live.most <= megabytes * 2**20 + constant + psi.nbytes  # the result, of which torch has views
    assert psi.shape == (40, sketch or columns)


# ---- compact storage -------------------------------------------------------------------------------------------------


def test_byte_counts_store_equal_weights_exactly(rng):
    X = signals(rng, 30, (12,)).astype(np.float32)
    fitted = CumulativeDistribution(Orbit(Cyclic(), Haar()), 20, 8, random_state=0).fit(X)
    held, psi = fitted.compact(X), fitted.transform(X)
    assert held.codes.dtype == np.uint8
    assert held.shape == psi.shape
    assert len(held) == 30
    assert held.nbytes <= psi.nbytes / 4 + held.scale.nbytes
    np.testing.assert_allclose(held[:], psi, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(held[3:5], held[:][3:5])
    assert held[3:5].dtype == np.float32


@pytest.mark.parametrize("thresholds", ["uniform", "quantile"])
def test_float16_stores_any_weights(rng, thresholds):
    X = signals(rng, 10, (6, 8))
    orb = Orbit(Rotation("polar"), VonMises(1.0), size=8)
    fitted = CumulativeDistribution(orb, 20, 8, thresholds=thresholds, random_state=0).fit(X)
    held = fitted.compact(X)
    assert held.codes.dtype == np.float16
    np.testing.assert_allclose(held[:], fitted.transform(X), rtol=2**-10, atol=1e-7)
    with pytest.raises(InputError, match="uint8 counts need at most 255 orbit elements of equal weights, found 8"):
        fitted.compact(X, "uint8")


def test_compact_batches_do_not_depend_on_the_budget(rng):
    X = signals(rng, 40, (5,))
    make = lambda memory: CumulativeDistribution(  # noqa: E731
        Orbit(Permutation(), Haar()), 10, 5, engine=Engine(memory, workers=1), random_state=0
    ).fit(X)
    np.testing.assert_array_equal(make(1e-6).compact(X).codes, make(1.0).compact(X).codes)


def test_sketched_features_are_not_compacted(rng):
    X = rng.standard_normal((5, 4))
    with pytest.raises(InputError, match="sketch"):
        CumulativeDistribution(n_components=5, sketch=3, random_state=0).fit(X).compact(X)


@pytest.mark.parametrize(("size", "dtype"), [(1e-14, np.float64), (1e-25, np.float32), (1e25, np.float32)])
def test_vectors_of_an_encoder_are_scaled_to_norm_one_whatever_their_size(size, dtype, rng):
    X = rng.standard_normal((40, 6))
    cdf = CumulativeDistribution(n_components=8, n_bins=5, encoder=PrincipalComponents(4), random_state=0)
    expected, found = (cdf.fit_transform(points) for points in (X, (size * X).astype(dtype)))
    assert (np.abs(found - expected) > 1e-6).mean() < 0.01  # rounding may move a projection to the next bin
