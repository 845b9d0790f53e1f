"""The template and spectral paths: equal to the direct one, to rounding and to the tolerance."""

import time
import weakref

import numpy as np
import pytest
import torch

from orbit import Gaussian, GaussianDistribution, Haar, Orbit, RationalQuadratic, VonMises
from orbit.approx import CumulativeDistribution, Exact, Nystrom, RandomFourier
from orbit.approx.exact import OrbitColumns
from orbit.engine import Engine, fourier, spectral
from orbit.engine.embedding import Scratch
from orbit.engine.strategy import Task
from orbit.groups import Cyclic, Rotation, Scaling, Translation
from orbit.testing.samples import signals, unit_mean_norm

TOLERANCES = [(np.float64, 1e-10), (np.float32, 1e-4)]

CYCLIC = {
    "polar, on the grid": (Orbit(Rotation("polar"), Haar(), size=8), (3, 8)),
    "polar, pairs of unequal weights": (Orbit(Rotation("polar"), VonMises(0.8), size=8), (3, 8)),
    "polar, off the grid": (Orbit(Rotation("polar"), VonMises(0.8), size=6), (3, 8)),
    "polar, odd": (Orbit(Rotation("polar"), VonMises(0.8), size=5), (3, 7)),
    "polar, more modes than turns": (Orbit(Rotation("polar"), VonMises(0.8), size=8), (3, 32)),
    "polar, more modes than turns, off the grid": (
        Orbit(Rotation("polar"), VonMises(0.8), size=6, random_phase=True, random_state=1),
        (3, 32),
    ),
    "polar, random": (Orbit(Rotation("polar"), size=7, rule="monte_carlo", random_state=1), (2, 6)),
    "cyclic": (Orbit(Cyclic(), size=9), (9,)),
    "cyclic, middle axis": (Orbit(Cyclic(axis=1), size=6), (2, 6, 3)),
    "wrapped pixels": (Orbit(Translation("wrap", "pixel"), Haar(), size=30), (5, 6)),
    "wrapped, between pixels": (Orbit(Translation("wrap"), GaussianDistribution(sigma=1.0), size=11), (4, 6)),
    "wrapped, colours": (Orbit(Translation("wrap"), GaussianDistribution(sigma=1.0), size=8), (4, 5, 3)),
}

MAPS = {
    "pairs": lambda **p: RandomFourier(Gaussian(0.6), n_components=150, random_state=0, **p),
    "offset": lambda **p: RandomFourier(Gaussian(0.6), n_components=30, variant="offset", random_state=0, **p),
    "nystrom": lambda **p: Nystrom(Gaussian(0.6), n_components=9, random_state=0, **p),
    "cdf": lambda **p: CumulativeDistribution(n_components=30, n_bins=6, random_state=0, **p),
    "cdf, quantiles": lambda **p: CumulativeDistribution(
        n_components=30, n_bins=6, thresholds="quantile", random_state=0, **p
    ),
    "nystrom, rational quadratic": lambda **p: Nystrom(RationalQuadratic(0.6), n_components=9, random_state=0, **p),
}


def along(path: str, make, orb, X, **params) -> np.ndarray:
    fitted = make(orbit=orb, engine=Engine(path=path, **params)).fit(X[:10])
    features = fitted.transform(X)
    assert fitted.route_.path == path
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
        assert fitted.route_.path == path
        assert K.dtype == dtype
        group, elements, weights = fitted.orbit_.group_, fitted.orbit_.elements_, fitted.orbit_.weights_
        moved_x, moved_z = (group.act(elements, of.astype(np.float64)).reshape(-1, X[0].size) for of in (X, Z))
        values = kernel.gram(moved_x, moved_z).reshape(len(weights), len(X), len(weights), len(Z))
        expected = np.einsum("i,injm,j->nm", weights, values, weights)
        np.testing.assert_allclose(K, expected, atol=tolerance, err_msg=path)


@pytest.mark.parametrize("path", ["direct", "spectral", "template"])
def test_threads_lose_no_part_of_the_double_sum_over_the_orbit(rng, monkeypatch, path):
    """The orbit points g_j z of one z add to one column: two threads that did so at once would lose one of the sums."""
    add = OrbitColumns._add_to_points

    def slowly(self, values, weight, units, total):
        columns = sorted({unit % self.width for unit in range(units.start, units.stop)})
        added, before = torch.zeros_like(total), total[:, columns]
        add(self, values, weight, units, added)
        time.sleep(1e-3)
        total[:, columns] = before + added[:, columns]

    monkeypatch.setattr(OrbitColumns, "_add_to_points", slowly)
    X, orb = signals(rng, 40, (6, 6)), Orbit(Cyclic(), size=6)
    one, many = (
        Exact(Gaussian(0.6), orb, engine=Engine(path=path, workers=workers), random_state=0).fit(X[:10]).gram(X, X[:10])
        for workers in (1, 4)
    )
    np.testing.assert_allclose(many, one, rtol=1e-12)


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
    features, route = fitted.transform(X), fitted.route_
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
    assert fitted.route_.modes == fitted.route_.all_modes == 17
    assert fitted.route_.error == 0


def test_points_of_zero_norm(rng):
    X = np.concatenate([np.zeros((2, 3, 8)), signals(rng, 10, (3, 8))])
    orb = Orbit(Rotation("polar"), size=8)
    np.testing.assert_allclose(
        along("spectral", MAPS["pairs"], orb, X), along("direct", MAPS["pairs"], orb, X), atol=1e-10
    )


def of_modes(axes: fourier.CyclicAxes, modes) -> np.ndarray:
    """All coefficients of some modes, shape (M, R)."""
    return np.isin(np.arange(axes.n_modes), modes)[:, None].repeat(axes.n_rest, axis=1)


def share_left_out(axes: fourier.CyclicAxes, kept: np.ndarray, points: torch.Tensor) -> float:
    conjugate = np.arange(axes.n_modes) % 2 == 0
    analysis = fourier.Analysis(axes, conjugate, torch.zeros(0, dtype=points.dtype))
    return fourier.OmittedShare(analysis, kept).share(points, analysis(points))


@pytest.mark.parametrize("magnitude", [1e-30, 1e-20, 1e20])
def test_squares_of_small_and_large_numbers_do_not_overflow(rng, magnitude):
    """They are 0 or infinite in float32."""
    modes = 10.0 ** (-np.arange(17) / 4)
    X = magnitude * np.fft.irfft(modes * np.fft.rfft(unit_mean_norm(rng.standard_normal((40, 3, 32)))), 32)
    X, orb = X.astype(np.float32), Orbit(Rotation("polar"), VonMises(0.5), size=8)

    def features(path: str) -> np.ndarray:
        return RandomFourier(
            Gaussian(0.6 * magnitude), orb, 50, random_state=0, engine=Engine(path=path)
        ).fit_transform(X)

    np.testing.assert_allclose(features("spectral"), features("direct"), atol=1e-5)
    axes = fourier.CyclicAxes((3, 32), (1,))
    expected, scaled = (
        share_left_out(axes, of_modes(axes, range(5)), torch.from_numpy(points)) for points in (X.astype(float), X)
    )
    assert scaled == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("path", ["direct", "template", "spectral"])
def test_one_row_at_a_time_of_points_read_backwards(rng, path):
    """In NumPy a single row is contiguous whatever its stride, even a negative one, which torch has none of."""
    X, orb = signals(rng, 4, (1, 8)), Orbit(Rotation("polar"), size=8)
    fitted = MAPS["pairs"](orbit=orb, engine=Engine(path=path, workers=2)).fit(X[:2][::-1])
    expected = fitted.transform(X)
    np.testing.assert_allclose(fitted.transform(X[:2][::-1]), expected[:2][::-1], atol=1e-13)
    np.testing.assert_allclose(fitted.transform(X[:1][::-1, ::-1]), expected[:1], atol=1e-13)


@pytest.mark.parametrize("path", ["auto", "direct", "template", "spectral"])
def test_zero_points_give_zero_rows(rng, path):
    X, orb = signals(rng, 4, (3, 8)), Orbit(Rotation("polar"), size=8)
    fitted = MAPS["pairs"](orbit=orb).fit(X)
    assert Engine(path=path).average(Task(fitted._embedding(X.dtype), fitted.orbit_, X[:0]))[0].shape == (0, 300)


def spoke(rng, n: int) -> np.ndarray:
    """Polar images with as much energy in every mode."""
    return unit_mean_norm(rng.standard_normal((n, 4, 32)))


def test_features_do_not_depend_on_batches(rng):
    X, orb = rings(rng, 60), Orbit(Rotation("polar"), VonMises(0.5), size=16)
    fitted = MAPS["pairs"](orbit=orb, engine=Engine(path="spectral", spectral_tolerance=0.05)).fit(X)
    together = fitted.transform(X)
    assert fitted.route_.modes < 17
    apart = np.concatenate([fitted.transform(X[i : i + 7]) for i in range(0, 60, 7)])
    np.testing.assert_allclose(apart, together, atol=1e-13)


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_points_over_the_tolerance_are_mapped_with_modes_of_their_own(rng, make):
    smooth, rough, orb = rings(rng, 40), spoke(rng, 40), Orbit(Rotation("polar"), VonMises(0.5), size=16)
    fitted = make(orbit=orb, engine=Engine(path="spectral", spectral_tolerance=1e-2)).fit(smooth)
    before = fitted.transform(smooth)
    modes = fitted.route_.modes
    features, route = fitted.transform(rough), fitted.route_
    assert modes < route.modes
    assert route.error <= 1e-2
    direct = make(orbit=orb, engine=Engine(path="direct")).fit(smooth).transform(rough)
    # histograms jump where a point crosses a threshold
    assert np.abs(features - direct).mean() < 2e-2 * np.abs(direct).mean()
    np.testing.assert_array_equal(fitted.transform(smooth), before, err_msg="what came between changes nothing")


@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_any_tile_over_the_tolerance_restarts_the_call(rng, make):
    """The last row alone: tiles before it are done, and done again."""
    X, orb = np.concatenate([rings(rng, 39), spoke(rng, 1)]), Orbit(Rotation("polar"), VonMises(0.5), size=16)
    engine = Engine(path="spectral", spectral_tolerance=1e-3, memory=1e-4, workers=2)
    fitted = make(orbit=orb, engine=engine).fit(X[:39])
    features = fitted.transform(X)
    assert fitted.route_.error <= 1e-3
    whole = make(orbit=orb, engine=Engine(path="spectral", spectral_tolerance=0.0)).fit(X[:39]).transform(X)
    assert np.abs(features - whole).mean() < 5e-3 * np.abs(whole).mean()


@pytest.mark.parametrize("workers", [1, 2])
def test_the_second_attempt_has_the_memory_of_the_first(rng, monkeypatch, workers):
    X, orb = np.concatenate([rings(rng, 39), spoke(rng, 1)]), Orbit(Rotation("polar"), VonMises(0.5), size=16)
    engine = Engine(path="spectral", spectral_tolerance=1e-3, memory=1e-4, workers=workers)
    fitted = MAPS["pairs"](orbit=orb, engine=engine).fit(X[:39])
    made, in_use, tile = weakref.WeakSet(), [], spectral.Spectral._tile

    def scratch(*args) -> Scratch:
        one = Scratch(*args)
        made.add(one)
        return one

    def counted(self, *args) -> tuple[int, int]:
        in_use.append(len(made))
        return tile(self, *args)

    monkeypatch.setattr(spectral, "Scratch", scratch)
    monkeypatch.setattr(spectral.Spectral, "_tile", counted)
    fitted.transform(X)
    assert in_use == [0, 0]
    assert not made


def test_a_tolerance_changed_after_fit_is_used(rng):
    X, orb = rings(rng, 40), Orbit(Rotation("polar"), size=16)
    fitted = MAPS["pairs"](orbit=orb, engine=Engine(path="spectral", spectral_tolerance=1e-2)).fit(X)
    fitted.transform(X)
    for tolerance in (1e-4, 1e-6):
        fitted.engine_.set_params(spectral_tolerance=tolerance)
        fitted.transform(X)
        assert fitted.route_.error <= tolerance


@pytest.mark.parametrize(("shape", "axes"), [((3, 8), (1,)), ((2, 7, 3), (1,)), ((4, 6), (0, 1)), ((3, 300), (1,))])
@pytest.mark.parametrize("kept", [[0], [0, 1, 3], [], "half"], ids=str)
def test_the_norm_left_out_is_the_energy_of_the_other_coefficients(rng, shape, axes, kept):
    """``(3, 300)`` is long enough for fast transforms."""
    X, cyclic = torch.from_numpy(signals(rng, 20, shape)), fourier.CyclicAxes(shape, axes)
    if kept == "half":
        mask = rng.random((cyclic.n_modes, cyclic.n_rest)) < 0.5
    else:
        mask = of_modes(cyclic, kept or np.arange(cyclic.n_modes))
    energies = cyclic.coefficients(X).abs().square().numpy() * cyclic.multiplicity[:, None, None]
    expected = np.sqrt((energies * ~mask[:, None]).sum((0, 2)) / energies.sum((0, 2))).max()
    found = share_left_out(cyclic, mask, X)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-15)
    assert (found == 0) == (not kept)


def narrow_inside(rng, n: int) -> np.ndarray:
    """Polar images whose ring k has energy in modes up to 4 k."""
    modes = np.arange(17) <= 4 * np.arange(5)[:, None]
    phases = rng.standard_normal((n, 5, 17)) + 1j * rng.standard_normal((n, 5, 17))
    return unit_mean_norm(np.fft.irfft(modes * phases, 32))


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES, ids=["f64", "f32"])
@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
def test_rings_without_high_modes_have_fewer_coefficients(rng, make, dtype, tolerance):
    X, orb = narrow_inside(rng, 40).astype(dtype), Orbit(Rotation("polar"), VonMises(0.5), size=8)
    fitted = make(orbit=orb, engine=Engine(path="spectral")).fit(X[:10])
    np.testing.assert_array_equal(fitted._plan.kept, np.arange(17)[:, None] <= 4 * np.arange(5))
    np.testing.assert_allclose(fitted.transform(X), along("direct", make, orb, X), atol=tolerance)


# ---- pieces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "n_classes"), [(1, 1), (2, 2), (7, 5), (8, 5), (16, 9), (64, 33)])
def test_turns_equally_apart_cannot_tell_more_modes_apart_than_half_their_number(size, n_classes):
    """33 modes; at an odd number of turns the highest is a class of its own, because it has no sine on the grid."""
    orb = Orbit(Rotation("polar"), Haar(), size=size).fit(np.zeros((1, 2, 64)))
    found = fourier.aliases(fourier.CyclicAxes((2, 64), (1,)).response(orb.group_, orb.elements_))
    assert found.response.shape[1] == n_classes


def test_aliases_are_found_among_any_responses(rng):
    own = rng.standard_normal((9, 5)) + 1j * rng.standard_normal((9, 5))
    factors = rng.standard_normal(20) + 1j * rng.standard_normal(20)
    response = own[:, np.arange(20) % 5] * factors
    response[:, 10:] = response[:, 10:].conj()
    response[:, 13] = 0  # a multiple of any mode
    response[:, 14] = 1e-12
    found = fourier.aliases(response)
    others = np.delete(np.arange(20), [13, 14])
    np.testing.assert_array_equal(found.classes[others], others % 5)
    np.testing.assert_array_equal(found.conjugate[others], others >= 10)
    assert found.response.shape == (9, 5)


def test_all_shifts_of_a_long_signal(rng):
    """As many classes of modes and pairs of shifts as take minutes to find by comparing each with each."""
    X, orb = signals(rng, 4, (1200,)), Orbit(Cyclic())
    psi = [
        RandomFourier(Gaussian(40.0), orb, 6, engine=Engine(path=path), random_state=0).fit_transform(X)
        for path in ("spectral", "direct")
    ]
    np.testing.assert_allclose(*psi, atol=1e-10)


@pytest.mark.parametrize(("size", "paired"), [(8, True), (6, True), (5, False)])
def test_turns_half_a_turn_apart_are_paired(size, paired):
    orb = Orbit(Rotation("polar"), VonMises(0.8), size=size).fit(np.zeros((1, 2, 16)))
    axes = fourier.CyclicAxes((2, 16), (1,))
    made = fourier.synthesis(axes.response(orb.group_, orb.elements_), orb.weights_, np.ones((9, 2), dtype=bool))
    assert (made.odd is not None) == paired
    if paired:
        np.testing.assert_array_equal(np.sort(made.modes[-4:]), [1, 3, 5, 7])
        apart = np.abs(orb.elements_[made.elements] - orb.elements_[made.mirrored_elements])
        np.testing.assert_allclose(apart, np.pi)
        np.testing.assert_array_equal(np.sort(np.concatenate([made.elements, made.mirrored_elements])), np.arange(size))
