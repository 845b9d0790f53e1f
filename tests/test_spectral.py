"""The template and spectral paths: equal to the direct one, to rounding and to the tolerance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from samples import signals, unit_mean_norm

from orbit import engine, spectral
from orbit.approx import CumulativeDistribution, Exact, Nystrom, RandomFourier
from orbit.distributions import Gaussian as Normal
from orbit.distributions import Haar, VonMises
from orbit.engine import Engine
from orbit.errors import InputError
from orbit.groups import Cyclic, Rotation, Scaling, Translation
from orbit.kernels import Exponential, Gaussian, RationalQuadratic
from orbit.orbits import Orbit

TOLERANCES = [(np.float64, 1e-10), (np.float32, 1e-4)]

CYCLIC = {
    "polar, on the grid": (Orbit(Rotation("polar"), Haar(), size=8), (3, 8)),
    "polar, pairs of unequal weights": (Orbit(Rotation("polar"), VonMises(0.8), size=8), (3, 8)),
    "polar, off the grid": (Orbit(Rotation("polar"), VonMises(0.8), size=6), (3, 8)),
    "polar, odd": (Orbit(Rotation("polar"), VonMises(0.8), size=5), (3, 7)),
    "polar, random": (Orbit(Rotation("polar"), size=7, rule="monte_carlo", random_state=1), (2, 6)),
    "cyclic": (Orbit(Cyclic(), size=9), (9,)),
    "cyclic, middle axis": (Orbit(Cyclic(axis=1), size=6), (2, 6, 3)),
    "wrapped pixels": (Orbit(Translation("wrap", "pixel"), Haar(), size=30), (5, 6)),
    "wrapped, between pixels": (Orbit(Translation("wrap"), Normal(sigma=1.0), size=11), (4, 6)),
    "wrapped, colours": (Orbit(Translation("wrap"), Normal(sigma=1.0), size=8), (4, 5, 3)),
}

MAPS = {
    "pairs": lambda **p: RandomFourier(Gaussian(0.6), n_components=150, random_state=0, **p),
    "offset": lambda **p: RandomFourier(Gaussian(0.6), n_components=30, variant="offset", random_state=0, **p),
    "nystrom": lambda **p: Nystrom(Gaussian(0.6), n_components=9, random_state=0, **p),
    "cdf": lambda **p: CumulativeDistribution(n_components=30, n_bins=6, random_state=0, **p),
    "cdf, quantiles": lambda **p: CumulativeDistribution(
        n_components=30, n_bins=6, thresholds="quantile", random_state=0, **p
    ),
    "nystrom, rational quadratic": lambda **p: Nystrom(
        RationalQuadratic(0.6), n_components=9, rank_tolerance=1e-6, random_state=0, **p
    ),
}


def along(path: str, make, orb, X, **params) -> np.ndarray:
    fitted = make(orbit=orb, engine=Engine(path=path, **params)).fit(X[:10])
    features = fitted.transform(X)
    assert fitted.engine_.route_.path == path
    return features


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES, ids=["f64", "f32"])
@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
@pytest.mark.parametrize(("orb", "shape"), CYCLIC.values(), ids=CYCLIC)
def test_every_path_gives_the_same_features(rng, orb, shape, make, dtype, tolerance):
    X = signals(rng, 40, shape).astype(dtype)
    direct = along("direct", make, orb, X)
    assert np.abs(direct).max() > 0.01
    for path in ("spectral", "template"):
        features = along(path, make, orb, X)
        assert features.dtype == dtype
        np.testing.assert_allclose(features, direct, atol=tolerance, err_msg=path)


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES, ids=["f64", "f32"])
@pytest.mark.parametrize("kernel", [Gaussian(0.6), RationalQuadratic(0.6)], ids=repr)
@pytest.mark.parametrize(("orb", "shape"), CYCLIC.values(), ids=CYCLIC)
def test_every_path_gives_the_same_exact_kernel(rng, orb, shape, kernel, dtype, tolerance):
    """Of the kernel itself: coordinates in the span of the training points have signs of their own."""
    X, Z = signals(rng, 12, shape).astype(dtype), signals(rng, 7, shape).astype(dtype)

    for path in ("direct", "spectral", "template"):
        fitted = Exact(kernel, orb, engine=Engine(path=path), random_state=0).fit(X)
        K = fitted.gram(X, Z)
        assert fitted.engine_.route_.path == path
        assert K.dtype == dtype
        group, elements, weights = fitted.orbit_.group_, fitted.orbit_.elements_, fitted.orbit_.weights_
        moved_x, moved_z = (group.act(elements, of.astype(np.float64)).reshape(-1, X[0].size) for of in (X, Z))
        values = kernel.gram(moved_x, moved_z).reshape(len(weights), len(X), len(weights), len(Z))
        expected = np.einsum("i,injm,j->nm", weights, values, weights)
        np.testing.assert_allclose(K, expected, atol=tolerance, err_msg=path)


@pytest.mark.parametrize("group", [Rotation(), Scaling(), Translation()], ids=repr)
@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_templates_moved_by_the_adjoint_give_the_features_of_moved_points(rng, make, group):
    X, orb = signals(rng, 40, (6, 7)), Orbit(group, size=6)
    np.testing.assert_allclose(along("template", make, orb, X), along("direct", make, orb, X), atol=1e-10)


@pytest.mark.parametrize("path", ["direct", "template", "spectral"])
@pytest.mark.parametrize(("memory", "workers"), [(1.0, 2), (1e-4, 1), (1e-6, 3)])
def test_tiles_and_workers_change_rounding_only(rng, path, memory, workers):
    X, orb = signals(rng, 35, (3, 8)), Orbit(Rotation("polar"), VonMises(0.8), size=8)
    for make in (MAPS["pairs"], MAPS["nystrom"]):
        expected = along("direct", make, orb, X, workers=1)
        features = along(path, make, orb, X, memory=memory, workers=workers)
        np.testing.assert_allclose(features, expected, atol=1e-11)


# ---- the tolerance ---------------------------------------------------------------------------------------------------


def rings(rng, n: int) -> np.ndarray:
    """Polar images with geometrically falling modes: coefficients 10^-k."""
    modes = 10.0 ** -np.arange(17.0)
    phases = rng.standard_normal((n, 4, 17)) + 1j * rng.standard_normal((n, 4, 17))
    return unit_mean_norm(np.fft.irfft(modes * phases, 32))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
def test_modes_without_energy_are_left_out_and_the_error_is_within_the_tolerance(rng, tolerance):
    X, orb = rings(rng, 50), Orbit(Rotation("polar"), VonMises(0.5), size=16)
    make = MAPS["pairs"]
    fitted = make(orbit=orb, engine=Engine(path="spectral", spectral_tolerance=tolerance)).fit(X)
    features, route = fitted.transform(X), fitted.engine_.route_
    direct = along("direct", make, orb, X)
    assert 0 < route.error <= tolerance
    assert route.modes == pytest.approx(-np.log10(tolerance), abs=2)
    assert route.all_modes == 17
    # an angle moves by <w, lost>, of standard deviation |lost| / lengthscale; features by no more
    off = np.linalg.norm(features - direct, axis=1).max()
    assert 1e-13 < off < 2 * tolerance / 0.6, "less than the bound: averaging over turns wipes out high modes"


def test_no_tolerance_keeps_every_mode(rng):
    fitted = MAPS["pairs"](
        orbit=Orbit(Rotation("polar"), size=16), engine=Engine(path="spectral", spectral_tolerance=0.0)
    )
    fitted.fit(rings(rng, 20)).transform(rings(rng, 20))
    assert fitted.engine_.route_.modes == fitted.engine_.route_.all_modes == 17
    assert fitted.engine_.route_.error == 0


def test_points_of_zero_norm_lose_nothing(rng):
    X = np.concatenate([np.zeros((2, 3, 8)), signals(rng, 10, (3, 8))])
    orb = Orbit(Rotation("polar"), size=8)
    np.testing.assert_allclose(
        along("spectral", MAPS["pairs"], orb, X), along("direct", MAPS["pairs"], orb, X), atol=1e-10
    )


# ---- the choice ------------------------------------------------------------------------------------------------------


def chosen(feature_map, X) -> str:
    return feature_map.fit(X[:20]).transform(X) is not None and feature_map.engine_.route_.path


def test_the_cheapest_path_is_chosen(rng):
    polar, square = signals(rng, 40, (4, 16)), signals(rng, 40, (8, 8))
    pairs = MAPS["pairs"]
    assert chosen(pairs(orbit=Orbit(Rotation("polar"), size=16)), polar) == "spectral"
    assert chosen(pairs(orbit=Orbit(Rotation("polar"), size=1)), polar) == "direct"
    assert chosen(pairs(orbit=Orbit(Rotation(), size=16)), square) == "direct"
    assert chosen(pairs(orbit=Orbit(Rotation(), size=16)), np.repeat(square, 20, axis=0)) == "template"
    assert chosen(Nystrom(Exponential(0.6), Orbit(Rotation("polar"), size=16), random_state=0), polar) == "direct"
    assert chosen(Exact(Gaussian(0.6), Orbit(Rotation("polar"), size=16)), polar) == "spectral"
    assert chosen(Exact(Exponential(0.6), Orbit(Rotation("polar"), size=16)), polar) == "direct"


@pytest.mark.parametrize(
    ("feature_map", "message"),
    [
        (RandomFourier(orbit=Orbit(Rotation()), engine=Engine(path="spectral")), "shifts an axis cyclically"),
        (Exact(Exponential(), Orbit(Rotation("polar")), engine=Engine(path="template")), "a map made of projections"),
    ],
    ids=["spectral", "template"],
)
def test_a_path_that_does_not_apply_is_refused(rng, feature_map, message):
    with pytest.raises(InputError, match=f"engine.path=.*{message}.*choose engine.path=auto"):
        feature_map.fit(signals(rng, 8, (4, 6))).transform(signals(rng, 8, (4, 6)))


# ---- pieces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("orb", "shape"), CYCLIC.values(), ids=CYCLIC)
def test_the_response_is_what_every_element_does_to_coefficients(rng, orb, shape):
    X = torch.from_numpy(signals(rng, 3, shape))
    fitted = Orbit(**orb.get_params(deep=False)).fit(X.numpy())
    group, elements = fitted.group_, fitted.elements_
    axes = spectral.CyclicAxes(shape, group.cyclic_axes(shape))
    response = axes.response(group, elements)
    for i in range(len(elements)):
        moved = axes.coefficients(group.act(elements[i : i + 1], X)[0])
        expected = torch.from_numpy(response[i])[:, None, None] * axes.coefficients(X)
        np.testing.assert_allclose(moved, expected, atol=1e-10)
    energies = axes.energies(X) * torch.from_numpy(axes.multiplicity)
    np.testing.assert_allclose(energies.sum(1), X.flatten(1).square().sum(1))


@pytest.mark.parametrize(("size", "paired"), [(8, True), (6, True), (5, False)])
def test_turns_half_a_turn_apart_are_paired(size, paired):
    orb = Orbit(Rotation("polar"), VonMises(0.8), size=size).fit(np.zeros((1, 2, 16)))
    axes = spectral.CyclicAxes((2, 16), (1,))
    made = spectral.synthesis(axes.response(orb.group_, orb.elements_), orb.weights_, np.arange(9))
    assert (made.odd is not None) == paired
    if paired:
        np.testing.assert_array_equal(np.sort(made.modes[-4:]), [1, 3, 5, 7])
        apart = np.abs(orb.elements_[made.elements] - orb.elements_[made.mirrored_elements])
        np.testing.assert_allclose(apart, np.pi)
        np.testing.assert_array_equal(np.sort(np.concatenate([made.elements, made.mirrored_elements])), np.arange(size))


@pytest.mark.parametrize("path", ["template", "spectral"])
def test_templates_that_do_not_fit_are_halved_and_no_sum_is_made_twice(rng, monkeypatch, path):
    X, orb = signals(rng, 40, (3, 8)), Orbit(Rotation("polar"), size=8)
    fitted = MAPS["pairs"](orbit=orb, engine=Engine(path=path, workers=1)).fit(X)
    expected, calls = fitted.transform(X), []
    at, name = {"template": (Rotation, "adjoint"), "spectral": (engine._Spectral, "_templates")}[path]
    original = getattr(at, name)

    def scarce(self, *args):
        size = len(args[1]) if path == "template" else args[0].stop - args[0].start
        calls.append(size)
        if size > 6 and (path == "spectral" or len(calls) > 1):  # on the way, when some sums are made
            raise torch.OutOfMemoryError("pretended")
        return original(self, *args)

    monkeypatch.setattr(at, name, scarce)
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-12)
    assert 1 < min(calls) <= 6 < max(calls)


def test_a_tile_that_does_not_fit_is_halved(rng, monkeypatch):
    X, orb = signals(rng, 40, (3, 8)), Orbit(Rotation("polar"), size=8)
    fitted = MAPS["pairs"](orbit=orb, engine=Engine(path="direct", workers=1)).fit(X)
    expected, points = fitted.transform(X), Orbit.points
    rows: list[int] = []

    def scarce(self, X, elements):
        rows.append(len(X))
        if len(X) > 6:
            raise torch.OutOfMemoryError("pretended")
        return points(self, X, elements)

    monkeypatch.setattr(Orbit, "points", scarce)
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-12)
    assert min(rows) == 5
    monkeypatch.setattr(Orbit, "points", lambda *args: (_ for _ in ()).throw(torch.OutOfMemoryError("always")))
    with pytest.raises(torch.OutOfMemoryError, match="always"):
        fitted.transform(X)
