"""Rules for orbit elements: convergence of each rule for every continuous group, whole groups, runs."""

import numpy as np
import pytest
import torch
from orbit_rules import OrbitRuleContract

import orbit
from orbit import Gaussian, GaussianDistribution, Haar, InputError, RandomFourier, Uniform, plots
from orbit.groups import Cyclic, Dihedral, Identity, Orthogonal, Permutation, Rotation, Translation
from orbit.orbits import Orbit, sobol
from orbit.testing.samples import smooth_images, unit_mean_norm


class TestQmc(OrbitRuleContract):
    rule = "qmc"
    moment_error = 0.02


def cloud(rng, dim):
    return unit_mean_norm(rng.standard_normal((4, 5, dim)))


def images(rng):
    return unit_mean_norm(smooth_images(rng, 2, 12, 12))


def tones(rng):
    t = np.arange(128) - 63.5
    return unit_mean_norm(np.exp(-((t / 25) ** 2)) * np.sin(rng.uniform(0.2, 0.5, (4, 1)) * t))


# group, its points, and how many times smaller than monte_carlo's the mean square errors at 64 elements must be:
# by qmc, and by quadrature. About a third of what is measured; on clouds of random points, in three dimensions and
# more, the functions are too rough for 64 elements to gain much.
CONTINUOUS = {
    "rotation": ({}, images, 70, 10_000),
    "translation": ({}, images, 15, 9),
    "scaling": ({}, images, 100, 1000),
    "shear": ({}, images, 100, 3000),
    "affine": ({}, images, 15, 5),
    "orthogonal": ({}, lambda rng: cloud(rng, 3), 1.3, 1.4),
    "orthogonal-plane": ({"dim": 2}, lambda rng: cloud(rng, 2), 40, 10_000),
    "orthogonal-mirrored": ({"special": False}, lambda rng: cloud(rng, 3), 1.1, 1.5),
    "orthogonal-5": ({"dim": 5}, lambda rng: cloud(rng, 5), 0.7, None),
    "pitch_tempo": ({"mode": "resample"}, tones, 3, 50),
    "product": ({}, images, 5, 2.5),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "product" else []) for name in CONTINUOUS]
)
def test_rules_converge_to_the_same_average(rng, name):
    params, points, qmc_gain, quadrature_gain = CONTINUOUS[name]
    group, X = orbit.build("group", name.partition("-")[0], **params), points(rng)

    def features(**settings):
        return RandomFourier(Gaussian(0.5), Orbit(group, **settings), 48, random_state=0).fit_transform(X)

    truth = features(size=2048 if qmc_gain > 50 else 1024, rule="qmc", random_state=99)

    def error(rule, size, seeds=4):
        return np.mean([np.square(features(size=size, rule=rule, random_state=s) - truth).mean() for s in range(seeds)])

    random = error("monte_carlo", 16, 8), error("monte_carlo", 64, 8)
    assert 1.8 < random[0] / random[1] < 9, "mean square error falls as 1/r"
    assert random[1] / error("qmc", 64) > qmc_gain
    if quadrature_gain is not None:
        assert random[1] / error("quadrature", 64, 1) > quadrature_gain


def test_sobol_is_balanced_and_seeded():
    u = sobol(64, (3,), np.random.default_rng(0))
    assert u.shape == (64, 3)
    counts = [np.histogram(column, 64, (0, 1))[0] for column in u.T]
    assert np.all(np.array(counts) == 1)
    np.testing.assert_array_equal(u, sobol(64, (3,), np.random.default_rng(0)))
    np.testing.assert_array_equal(u[:50], sobol(50, (3,), np.random.default_rng(0)))
    with pytest.raises(InputError, match=r"^orbit.rule=qmc: an element takes 21202 numbers"):
        sobol(4, (21_202,), np.random.default_rng(0))


def test_finite_groups_are_enumerated_whatever_the_size():
    for group, shape, order in ((Dihedral(), (4, 4), 8), (Cyclic(), (50,), 50), (Permutation(), (5,), 120)):
        for size in (1, 1000):
            fitted = Orbit(group, Haar(), size=size, rule="quadrature").fit(np.zeros((1, *shape)))
            assert len(fitted.weights_) == order
            assert fitted.is_whole_group


def test_is_whole_group():
    X = np.zeros((1, 6, 6))
    assert Orbit().fit(X).is_whole_group
    assert Orbit(Identity(), size=9).fit(X).is_whole_group
    assert Orbit(Translation("wrap", "pixel"), Haar(), rule="quadrature").fit(X).is_whole_group
    assert not Orbit(Translation("wrap", "pixel"), GaussianDistribution()).fit(X).is_whole_group
    assert not Orbit(Translation("wrap", "pixel"), Uniform(-1, 1, "native")).fit(X).is_whole_group
    assert not Orbit(Dihedral(), rule="monte_carlo", size=8, random_state=0).fit(X).is_whole_group
    assert not Orbit(Rotation()).fit(X).is_whole_group
    assert not Orbit(Orthogonal(dim=6), size=8).fit(X).is_whole_group


def test_nodes_of_negligible_weight_are_dropped():
    fitted = Orbit(orbit.build("group", "scaling"), size=100).fit(np.zeros((1, 6, 6)))
    assert len(fitted.weights_) < 60
    assert fitted.weights_.min() > 0
    assert fitted.weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "params", "shape"),
    [
        ("cyclic", {}, (40,)),
        ("affine", {}, (8, 8)),
        ("translation", {}, (8, 8, 3)),
        ("permutation", {"mode": "rows_columns"}, (5, 5)),
        ("orthogonal", {}, (9, 3)),
        ("pitch_tempo", {}, (64,)),
        ("product", {}, (8, 8)),
    ],
)
def test_orbits_of_every_kind_of_point_are_drawn(rng, name, params, shape):
    X = rng.random((2, *shape))
    figure = plots.orbit_examples(Orbit(orbit.build("group", name, **params), random_state=0).fit(X), X, n_elements=3)
    (ax,) = figure.axes
    assert len(ax.images) + len(ax.child_axes) == 6
    assert sum(bool(text.get_text()) for text in ax.texts) == 3
    figure.draw_without_rendering()


def test_points_of_single_elements_are_those_of_all(rng):
    X = torch.from_numpy(rng.random((3, 6, 6)))
    for name in ("affine", "dihedral", "product", "translation"):
        fitted = Orbit(orbit.build("group", name), size=4, random_state=0).fit(X.numpy())
        every = fitted.points(X, slice(None))
        for i in range(len(fitted.weights_)):
            torch.testing.assert_close(fitted.points(X, slice(i, i + 1))[0], every[i], rtol=0, atol=0)


def test_errors_of_orbits_are_those_of_one_draw_of_frequencies(rng):
    X, orb = images(rng), Orbit(Rotation())
    for random_state in (0, None):
        phi = RandomFourier(Gaussian(1.0), orb, n_components=16, random_state=random_state)
        errors = orbit.approx.orbit_errors(phi, X, [2, 32], rules=["quadrature"], repeats=2, random_state=0)
        assert np.all(errors["quadrature"][:, 1] < 0.05 * errors["quadrature"][:, 0])
