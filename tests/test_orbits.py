"""Orbits: the contract for each rule, defaults, and the rate of convergence of each rule."""

import numpy as np
import pytest
import torch
from orbit_rules import OrbitRuleContract

from orbit import Gaussian, InputError, ParameterError, Polar, RandomFourier, RotatedDigits
from orbit.approx.frequencies import MonteCarlo
from orbit.distributions import Delta, GaussianDistribution, Haar, NoisySort, Uniform, VonMises
from orbit.groups import Dihedral, Identity, Orthogonal, Permutation, ProductGroup, Rotation, Translation
from orbit.orbits import Orbit, random_orbit_points
from orbit.testing.samples import smooth_images, unit_mean_norm


class TestMonteCarlo(OrbitRuleContract):
    rule = "monte_carlo"
    moment_error = 0.25  # five standard errors of 64 draws


class TestQuadrature(OrbitRuleContract):
    rule = "quadrature"
    moment_error = 1e-12


# ---- what the orbit is -----------------------------------------------------------------------------------------------


def test_defaults_are_the_groups():
    plain = Orbit().fit(np.zeros((1, 3)))
    assert isinstance(plain.group_, Identity)
    np.testing.assert_array_equal(plain.weights_, [1.0])
    turned = Orbit(Rotation()).fit(np.zeros((1, 4, 4)))
    assert isinstance(turned.distribution_, Haar)
    assert len(turned.weights_) == Rotation.default_size
    np.testing.assert_allclose(turned.weights_, 1 / Rotation.default_size)


def test_the_default_size_of_a_quadrature_on_pixels_keeps_the_whole_distribution():
    """A normal law of deviation 3 reaches more shifts than the group's default size; the other rules draw from all."""
    made = {
        rule: Orbit(Translation(step="pixel"), GaussianDistribution(sigma=3.0), rule=rule, random_state=0)
        for rule in ("quadrature", "monte_carlo", "qmc")
    }
    sizes = {rule: len(each.fit(np.zeros((1, 20, 20))).weights_) for rule, each in made.items()}
    assert sizes["quadrature"] > 27**2 > Translation.default_size
    assert sizes["monte_carlo"] == sizes["qmc"] == Translation.default_size


def test_given_settings_override_the_defaults():
    fitted = Orbit(Rotation(), VonMises(3.0), size=6, rule="monte_carlo", random_state=0).fit(np.zeros((1, 4, 4)))
    assert fitted.distribution_.concentration == 3.0
    np.testing.assert_allclose(fitted.weights_, 1 / 6)
    assert len(np.unique(fitted.elements_)) == 6


@pytest.mark.parametrize(
    ("orbit", "shape", "rule", "size"),
    [
        (Orbit(Permutation()), (2,), "quadrature", 2),
        (Orbit(Permutation()), (4,), "quadrature", 24),
        (Orbit(Permutation()), (5,), "monte_carlo", 32),
        (Orbit(Permutation(), size=120), (5,), "quadrature", 120),
        (Orbit(Permutation("blocks", n=3)), (6,), "quadrature", 6),
        (Orbit(Permutation(), size=5), (3,), "monte_carlo", 5),
        (Orbit(Permutation(), rule="qmc"), (2,), "qmc", 32),
        (Orbit(Permutation("rows_columns"), NoisySort()), (3, 3), "monte_carlo", 32),
        (Orbit(ProductGroup([{"name": "dihedral"}, {"name": "reflection"}])), (3, 3), "quadrature", 16),
        (Orbit(Translation("wrap", "pixel"), Haar()), (4, 5), "quadrature", 20),
        (Orbit(Translation(), Delta()), (4, 5), "quadrature", 1),
        (Orbit(Orthogonal()), (4, 3), "quadrature", 32),
        (Orbit(Orthogonal(2)), (4, 2), "quadrature", 64),
        (Orbit(Orthogonal(4)), (5, 4), "qmc", 64),
    ],
)
def test_the_default_rule_is_exact_or_deterministic_where_it_can_be(orbit, shape, rule, size):
    fitted = orbit.set_params(random_state=0).fit(np.zeros((1, *shape)))
    assert (fitted.rule_, len(fitted.weights_)) == (rule, size)
    assert fitted.label().endswith(f"{size} by {rule}")
    assert fitted.fit(np.zeros((1, *shape))).rule_ == rule


@pytest.mark.parametrize(("lengthscale", "ratio"), [(4.9, 100), (2.45, 10), (1.22, 1.5)])
def test_the_default_rule_for_clouds_in_space_is_better_than_sobol_sequences_of_twice_the_size(lengthscale, ratio, rng):
    """docs/choose/orbit_rules.md; the root mean square distance of these clouds is 4.2."""
    X, Z = rng.normal(size=(2, 10, 4, 3))
    X, Z = X - X.mean(1, keepdims=True), Z - Z.mean(1, keepdims=True)

    def averaged(orbit):
        moved = Orthogonal().act(orbit.fit(X).elements_, Z).reshape(len(orbit.weights_), len(Z), -1)
        kernel = Gaussian(lengthscale)
        return sum(w * kernel.gram(X.reshape(len(X), -1), z) for w, z in zip(orbit.weights_, moved, strict=True))

    exact = averaged(Orbit(Orthogonal(), size=2048))
    default = np.linalg.norm(averaged(Orbit(Orthogonal())) - exact)
    sobol_errors = [np.linalg.norm(averaged(Orbit(Orthogonal(), rule="qmc", random_state=i)) - exact) for i in range(3)]
    assert ratio * default < np.mean(sobol_errors)


def test_a_default_rule_that_depends_on_the_shape_is_not_resolved_before_it():
    assert Orbit(Permutation()).resolved_rule() is None
    assert Orbit(Permutation()).label() == "permutation, q=haar, 32 by default"
    assert Orbit(Permutation(n=3)).resolved_rule() == "quadrature"
    assert Orbit(Permutation(n=9)).resolved_rule() == "monte_carlo"
    assert Orbit(Permutation("rows_columns"), NoisySort()).resolved_rule() == "monte_carlo"
    assert Orbit(Translation()).resolved_rule() == "qmc"


def test_points_are_the_group_acting(rng):
    X = rng.random((3, 5, 5))
    fitted = Orbit(Rotation(), size=6).fit(X)
    expected = Rotation().act(fitted.elements_, X)
    np.testing.assert_array_equal(fitted.points(torch.from_numpy(X), slice(None)), expected)
    np.testing.assert_array_equal(fitted.points(torch.from_numpy(X), slice(2, 4)), expected[2:4])


def test_label_has_the_number_of_elements_of_a_fitted_orbit():
    """A finite group has all its elements under quadrature, whatever size was asked for."""
    orbit = Orbit(Dihedral(), size=32, rule="quadrature")
    assert orbit.label() == "dihedral, q=haar, 32 by quadrature"
    assert orbit.fit(np.zeros((1, 4, 4))).label() == "dihedral, q=haar, 8 by quadrature"


def test_phase_shifts_the_nodes_only_when_asked():
    fixed = [Orbit(Rotation(), size=8, random_state=s).fit(np.zeros((1, 4, 4))).elements_ for s in (0, 1)]
    np.testing.assert_array_equal(*fixed)
    shifted = Orbit(Rotation(), size=8, random_phase=True, random_state=0).fit(np.zeros((1, 4, 4))).elements_
    steps = np.mod(shifted - fixed[0], 2 * np.pi) / (2 * np.pi / 8)
    np.testing.assert_allclose(steps, steps[0])
    assert 0 < steps[0] < 1


def test_random_phase_makes_the_rule_unbiased():
    """E of sum w_i cos(r t_i), which a fixed grid of r nodes takes for 1 (Haar), is the true 0 over phases."""
    means = []
    for seed in range(400):
        fitted = Orbit(Rotation(), Haar(), size=4, random_phase=True, random_state=seed).fit(np.zeros((1, 4, 4)))
        means.append(fitted.weights_ @ np.cos(4 * fitted.elements_))
    assert np.mean(means) == pytest.approx(0, abs=5 * np.std(means) / 20)
    assert np.std(means) == pytest.approx(np.sqrt(0.5), rel=0.2)
    fixed = Orbit(Rotation(), Haar(), size=4).fit(np.zeros((1, 4, 4)))
    assert fixed.weights_ @ np.cos(4 * fixed.elements_) == pytest.approx(1)


def test_monte_carlo_without_a_seed_differs_from_fit_to_fit():
    draws = [Orbit(Rotation(), rule="monte_carlo").fit(np.zeros((1, 4, 4))).elements_ for _ in range(2)]
    assert np.abs(draws[0] - draws[1]).max() > 1e-6


def test_the_orbit_and_its_parts_are_checked():
    with pytest.raises(ParameterError, match="high: expected a number > distribution.low=3"):
        Orbit(Rotation(), Uniform(3, 2)).fit(np.zeros((1, 4, 4)))
    with pytest.raises(ParameterError, match="^orbit.size: expected an integer >= 1 or null, found 2.5$"):
        Orbit(Rotation(), size=2.5).fit(np.zeros((1, 4, 4)))


@pytest.mark.parametrize("params", [{"group": "rotation"}, {"distribution": "haar"}, {"group": Haar()}], ids=str)
def test_a_part_of_the_wrong_kind_is_named(params):
    with pytest.raises(InputError, match=next(iter(params))):
        Orbit(**params).check()


# ---- convergence: the rate that makes a few turns enough ------------------------------------------------------------

SIZES = (8, 16, 32)


def mean_square_errors(images: np.ndarray, sampling: str, q) -> dict[str, np.ndarray]:
    """E |psi_r - psi_fine|^2 by size for each rule, over frequencies, images and seeds.

    Random phases are on, so that no error is hidden by nodes shared with the fine rule.
    """
    X = Polar(n_angles=32).fit_transform(images) if sampling == "polar" else unit_mean_norm(images)
    group = Rotation(sampling)  # type: ignore[arg-type]

    def features(**params) -> np.ndarray:
        orb = Orbit(group, q, **params)
        return RandomFourier(Gaussian(0.5), orb, 48, frequencies=MonteCarlo(), random_state=0).fit_transform(X)

    fine = features(size=512)
    rules = {"monte_carlo": {"rule": "monte_carlo"}, "quadrature": {"random_phase": True}}
    return {
        name: np.array(
            [
                np.mean([np.square(features(size=r, random_state=s, **rule) - fine).mean() for s in range(6)])
                for r in SIZES
            ]
        )
        for name, rule in rules.items()
    }


@pytest.mark.parametrize("sampling", ["cartesian", "polar"])
@pytest.mark.parametrize("q", [Haar(), VonMises(0.2)], ids=repr)
@pytest.mark.parametrize(
    ("source", "least_ratios"),
    # measured 6, 38, 450 and more on digits; 23, 1300, 4200 and more on smooth images
    [pytest.param("digits", (2.5, 12, 120), marks=pytest.mark.slow), ("smooth", (8, 250, 1000))],
)
def test_quadrature_converges_faster_than_monte_carlo(rng, source, least_ratios, sampling, q):
    if source == "digits":
        images = RotatedDigits(n_train=8).load(0).X_train.astype(np.float64)
    else:
        images = smooth_images(rng, 4, 20, 20)
    errors = mean_square_errors(images, sampling, q)
    monte_carlo, quadrature = errors["monte_carlo"], errors["quadrature"]

    # mean square error 1/r: a quarter from 8 to 32; over 6 seeds of correlated features a factor 2 is room enough
    assert 2 < monte_carlo[0] / monte_carlo[2] < 8
    assert quadrature[0] / quadrature[2] > 100
    assert np.all(monte_carlo / quadrature > least_ratios), f"ratios {monte_carlo / quadrature}"


def test_local_invariance_converges_too(rng):
    """A concentrated q needs the nodes to resolve its peak first: no gain at 8, orders of magnitude at 32."""
    errors = mean_square_errors(smooth_images(rng, 4, 20, 20), "polar", VonMises(4.0))
    assert errors["quadrature"][0] / errors["quadrature"][2] > 100
    assert errors["monte_carlo"][2] / errors["quadrature"][2] > 200


def test_gauss_rule_on_a_range_converges_too(rng):
    X = unit_mean_norm(smooth_images(rng, 6, 20, 20))

    def features(**params) -> np.ndarray:
        orb = Orbit(Rotation(), Uniform(-60, 60), **params)
        return RandomFourier(Gaussian(0.5), orb, n_components=48, random_state=0).fit_transform(X)

    fine = features(size=200)
    quadrature = np.square(features(size=12) - fine).mean()
    monte_carlo = np.mean(
        [np.square(features(size=12, rule="monte_carlo", random_state=s) - fine).mean() for s in (0, 1, 2)]
    )
    assert monte_carlo / quadrature > 500


# ---- random orbit points ---------------------------------------------------------------------------------------------


def test_random_orbit_points_are_of_distinct_points_moved_by_many_elements(rng):
    """The pixels of an image, sorted, are those of all its orbit points."""
    X, group = rng.random((300, 4, 4)), Dihedral()
    moved = random_orbit_points(Orbit(group).fit(X), X, 200, random_state=0)
    pixels = [tuple(np.sort(x.ravel())) for x in X]
    found = [pixels.index(tuple(np.sort(x.ravel()))) for x in moved]
    assert len(set(found)) == len(moved) == 200
    every = group.act(group.elements(), X[found]) == moved
    assert np.unique(np.argmax(every.all((2, 3)), axis=0)).size == group.order
