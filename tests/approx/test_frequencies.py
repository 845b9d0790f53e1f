"""Rules that draw frequencies: the distribution of each, and the errors stated in the documentation."""

import pickle

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.linalg import hadamard
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import orbit
from orbit import Engine, Gaussian, InputError, Laplacian, Matern, RandomFourier, RationalQuadratic
from orbit.approx.frequencies import Automatic, MonteCarlo, Orthogonal, QuasiMonteCarlo, Structured
from orbit.approx.hadamard import FastProjection
from orbit.core.lru import Lru
from orbit.testing import FrequenciesContract

ISOTROPIC = [Gaussian(1.3), Matern(2.0, nu=0.5), Matern(1.5, nu=1.5), RationalQuadratic(1.2, alpha=0.7)]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Threads that meet after every small product cost more than they save, most of all on shared cores."""
    with threadpool_limits(1):
        yield


class TestQuasiMonteCarlo(FrequenciesContract):
    component = QuasiMonteCarlo


class TestOrthogonal(FrequenciesContract):
    component = Orthogonal


class TestAutomatic(FrequenciesContract):
    component = Automatic


@pytest.mark.filterwarnings("ignore:frequencies=structured is biased")
class TestStructured(FrequenciesContract):
    component = Structured

    def test_mean_wave_is_the_kernel(self):
        kernel, d, size = Gaussian(2.0).fit(np.zeros((1, 40))), 40, 40_000
        frequencies = self.create().draw(kernel, size, d, np.random.default_rng(0))
        difference = np.random.default_rng(1).standard_normal(d) / 4
        waves = np.cos(frequencies @ difference)
        expected = np.exp(-difference @ difference / 8)
        assert waves.mean() == pytest.approx(expected, abs=5 * waves.std() / np.sqrt(size))


def gram_error(rule, kernel, d, size, seeds=12):
    """Root mean square over seeds of the relative Frobenius error of the Gram matrix; and that of the mean matrix."""
    X = np.random.default_rng(99).standard_normal((60, d))
    kernel = clone(kernel).fit(X)
    K, errors, mean = kernel.gram(X), [], np.zeros((60, 60))
    for seed in range(seeds):
        angles = X @ rule.draw(kernel, size, d, np.random.default_rng(seed)).T
        approximation = (np.cos(angles) @ np.cos(angles).T + np.sin(angles) @ np.sin(angles).T) / size
        errors.append(np.linalg.norm(approximation - K) / np.linalg.norm(K))
        mean += approximation / seeds
    return np.sqrt(np.mean(np.square(errors))), np.linalg.norm(mean - K) / np.linalg.norm(K)


# ---- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ISOTROPIC, ids=str)
@pytest.mark.parametrize("rule", [Orthogonal(), Structured(), QuasiMonteCarlo()], ids=str)
def test_every_frequency_follows_the_spectrum(rule, kernel):
    """One frequency from each of many draws, so that the frequencies compared are independent."""
    d, draws = 16, 500
    kernel = kernel.fit(np.zeros((1, d)))
    first = np.array([rule.draw(kernel, 5, d, np.random.default_rng(seed))[3] for seed in range(draws)])
    independent = kernel.sample_spectrum(20_000, d, np.random.default_rng(9))
    assert stats.kstest(np.linalg.norm(first, axis=1), np.linalg.norm(independent, axis=1)).pvalue > 1e-3
    if not isinstance(rule, Structured):  # whose directions form a finite set
        assert stats.kstest(first[:, 0], independent[:, 0]).pvalue > 1e-3
        assert stats.kstest(first @ np.ones(d) / 4, independent[:, 1]).pvalue > 1e-3


@pytest.mark.parametrize("size", [3, 7, 16, 20])
def test_orthogonal_blocks_are_orthogonal(size):
    d = 7
    W = Orthogonal().draw(Matern(2.0).fit(np.zeros((1, d))), size, d, np.random.default_rng(0))
    for start in range(0, size, d):
        products = W[start : start + d] @ W[start : start + d].T
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-10 * np.abs(products).max())
    if size > d:
        assert np.abs(W[:d] @ W[d : 2 * d].T).max() > 1e-3, "blocks are independent"


@pytest.mark.parametrize("kernel", ISOTROPIC, ids=str)
def test_orthogonal_is_unbiased(kernel):
    """The error of the mean over draws decreases as the inverse square root of their number."""
    seeds = 100
    one, mean = gram_error(Orthogonal(), kernel, d=3, size=9, seeds=seeds)
    assert mean < 2 * one / np.sqrt(seeds)


@pytest.mark.filterwarnings("ignore:frequencies=structured is biased")
def test_structured_is_biased_for_few_features_and_not_for_many():
    seeds = 100
    one, mean = gram_error(Structured(), Gaussian(), d=3, size=256, seeds=seeds)
    assert mean > 4 * one / np.sqrt(seeds)
    one, mean = gram_error(Structured(), Gaussian(), d=16, size=256, seeds=seeds)
    assert mean < 2 * one / np.sqrt(seeds)


# ---- accuracy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [Orthogonal(), Structured()], ids=str)
def test_orthogonal_rules_halve_the_error_at_64_features(rule):
    error, independent = (gram_error(r, Gaussian(), 64, 256)[0] for r in (rule, MonteCarlo()))
    assert error < independent / 2


@pytest.mark.parametrize(("kernel", "gain"), [(Gaussian(), 4), (Matern(), 1.8), (Laplacian(), 1.4)], ids=str)
def test_qmc_is_far_better_for_four_features(kernel, gain):
    error, independent = (gram_error(r, kernel, 4, 512)[0] for r in (QuasiMonteCarlo(), MonteCarlo()))
    assert error < independent / gain


@pytest.mark.parametrize("kernel", [*ISOTROPIC, Laplacian()], ids=str)
@pytest.mark.parametrize("d", [2, 12, 40])
def test_the_automatic_choice_beats_independent_draws(kernel, d):
    kernel = type(kernel)()
    error, independent = (gram_error(r, kernel, d, 512)[0] for r in (Automatic(), MonteCarlo()))
    assert error < independent


def test_the_automatic_choice():
    rule = Automatic()
    assert isinstance(rule.choice(Gaussian(), 12), QuasiMonteCarlo)
    assert isinstance(rule.choice(Matern(), 13), Orthogonal)
    assert isinstance(rule.choice(Gaussian(), 2048), Orthogonal)
    assert isinstance(rule.choice(Gaussian(), 2049), Structured)
    assert isinstance(rule.choice(Laplacian(), 784), QuasiMonteCarlo)
    assert isinstance(rule.choice(Laplacian(), 30_000), MonteCarlo)


# ---- products without a matrix ---------------------------------------------------------------------------------------


def signs_and_hadamard(blocks):
    """diag(lengths) H D1 H D2 H D3, by scipy's Hadamard matrix."""
    H = hadamard(blocks.block) / np.sqrt(blocks.block)
    rows = [H * third @ (H * second) @ (H * first) for first, second, third in blocks.signs]
    return blocks.lengths[:, None] * np.concatenate(rows)[: len(blocks), : blocks.n_features]


@pytest.mark.parametrize(
    ("size", "d"), [(1, 1), (5, 2), (3, 20), (40, 20), (64, 64), (70, 33), (300, 200), (1500, 1024)]
)
@pytest.mark.parametrize("available", [False, True], ids=["torch", "compiled"])
@pytest.mark.filterwarnings("ignore:frequencies=structured is biased")
def test_fast_products_are_those_with_the_matrix(rng, monkeypatch, available, size, d):
    if not available:
        monkeypatch.setattr("orbit.approx.hadamard.loops", lambda *args, **kwargs: None)
    kernel, rule = Matern(2.0).fit(np.zeros((1, d))), Structured()
    blocks = rule.draw_factored(kernel, size, d, np.random.default_rng(3))
    W = signs_and_hadamard(blocks)
    np.testing.assert_allclose(blocks.dense(), W, atol=1e-11 * np.abs(W).max())
    np.testing.assert_array_equal(rule.draw(kernel, size, d, np.random.default_rng(3)), blocks.dense())
    X = rng.standard_normal((7, d))
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 3e-6)):
        points = torch.from_numpy(X).to(dtype)
        product = FastProjection(blocks, points)
        scale = np.abs(X @ W.T).max()
        for start in range(0, size, blocks.block):
            units = slice(start, min(start + blocks.block, size))
            found = product(points, units, points.new_full((7, units.stop - start), np.nan)).numpy()
            np.testing.assert_allclose(found, X @ W[units].T, atol=tolerance * scale)


@pytest.mark.parametrize("variant", ["pairs", "offset"])
@pytest.mark.parametrize("size", [1, 5], ids=["no orbit", "orbit"])
def test_features_by_fast_products_are_features_by_the_matrix(rng, variant, size):
    X = rng.standard_normal((30, 30, 30))
    group = orbit.build("group", "rotation" if size > 1 else "identity")
    phi = RandomFourier(
        Gaussian(30.0),
        orbit.Orbit(group, size=size),
        1500,
        variant,
        Structured(),
        engine=Engine(workers=2),
        random_state=0,
    ).fit(X)
    assert isinstance(phi._projection(X.dtype), FastProjection)
    found = phi.transform(X)
    phi._drawn = phi.frequencies_
    phi._cached_embeddings = Lru(most=1)
    np.testing.assert_allclose(found, phi.transform(X), atol=1e-12)


def test_hadamard_factors_are_used_where_they_are_faster():
    def chosen(d, size, engine=None, **orbit_parts):
        orb = orbit.Orbit(**orbit_parts) if orbit_parts else None
        phi = RandomFourier(Gaussian(1.0), orb, size, frequencies=Structured(), engine=engine, random_state=0)
        fast = isinstance(phi.fit(np.ones((2, *d)))._projection(np.dtype(float)), FastProjection)
        phi.transform(np.ones((2, *d)))
        return "factors" if fast and phi.route_.path == "direct" else phi.route_.path

    turns = {"group": orbit.build("group", "rotation", sampling="polar")}
    assert chosen((64,), 64) == "direct"
    assert chosen((2048,), 2048) == "factors"
    assert chosen((2048,), 8) == "direct", "most of a block would be thrown away"
    assert chosen((32, 64), 2048, **turns) == "spectral", "which is faster still"
    assert chosen((32, 64), 2048, Engine(path="direct"), **turns) == "factors"
    assert chosen((2048,), 2048, Engine(path="template")) == "template"


@pytest.mark.parametrize("path", ["template", "spectral"])
def test_other_paths_use_the_matrix_of_the_hadamard_factors(rng, path):
    X, turns = rng.standard_normal((6, 32, 64)), orbit.Orbit(orbit.build("group", "rotation", sampling="polar"), size=5)
    found, expected = (
        RandomFourier(
            Gaussian(30.0), turns, 2048, frequencies=Structured(), engine=Engine(path=chosen), random_state=0
        ).fit_transform(X)
        for chosen in (path, "direct")
    )
    np.testing.assert_allclose(found, expected, atol=1e-11)


def test_large_second_layers_store_no_matrix():
    blocks = Structured().draw_factored(Gaussian(1.0).fit(np.zeros((1, 2))), 17_000, 14_000, np.random.default_rng(0))
    assert blocks.signs.nbytes + blocks.lengths.nbytes < 300_000


# ---- sizes, seeds, errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", orbit.available("frequencies"))
@pytest.mark.parametrize(("size", "d"), [(1, 1), (1, 9), (5, 1), (13, 9), (33, 20)])
@pytest.mark.filterwarnings("ignore:frequencies=structured is biased")
def test_any_size_and_number_of_features(name, size, d):
    rule = orbit.build("frequencies", name)
    for kernel in (Gaussian(1.0), Matern(1.0)):
        W = pickle.loads(pickle.dumps(rule)).draw(kernel.fit(np.zeros((1, d))), size, d, np.random.default_rng(4))
        assert W.shape == (size, d)
        assert np.all(np.isfinite(W))


@pytest.mark.filterwarnings("error")
def test_a_sobol_sequence_of_any_length_gives_no_warning():
    QuasiMonteCarlo().draw(Gaussian(1.0).fit(np.zeros((1, 3))), 100, 3, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["orthogonal", "structured"])
def test_orthogonal_rules_reject_the_laplacian_before_fit(name):
    rule = orbit.build("frequencies", name)
    message = (
        f"^frequencies={name} needs a spectrum unchanged by rotations, which kernel=laplacian does not have: choose"
    )
    with pytest.raises(InputError, match=message):
        RandomFourier(Laplacian(), frequencies=rule).check()
    with pytest.raises(InputError, match=message):
        rule.draw(Laplacian(1.0).fit(np.zeros((1, 3))), 5, 3, np.random.default_rng(0))


@pytest.mark.filterwarnings("error")
def test_structured_warns_for_few_features_and_suggests_another_rule():
    with pytest.warns(UserWarning, match="frequencies=structured is biased.*found 8: choose frequencies=qmc or"):
        Structured().draw(Gaussian(1.0).fit(np.zeros((1, 8))), 4, 8, np.random.default_rng(0))
    Structured().draw(Gaussian(1.0).fit(np.zeros((1, 9))), 4, 9, np.random.default_rng(0))


def test_qmc_reports_the_largest_dimension_of_sobol_sequences():
    with pytest.raises(
        InputError, match=r"^frequencies=qmc is for at most 21201 dimensions, kernel=matern needs 21202"
    ):
        QuasiMonteCarlo().draw(Matern(1.0).fit(np.zeros((1, 21_201))), 1, 21_201, np.random.default_rng(0))


@pytest.mark.parametrize("rule", [None, MonteCarlo(), Orthogonal(), QuasiMonteCarlo()], ids=str)
def test_random_fourier_features_use_the_rule(rng, rule):
    X = rng.standard_normal((10, 20))
    phi = RandomFourier(Gaussian(3.0), n_components=400, frequencies=rule, random_state=0)
    Psi, same = phi.fit_transform(X), clone(phi).fit_transform(X)
    np.testing.assert_array_equal(Psi, same)
    np.testing.assert_allclose(Psi @ Psi.T, Gaussian(3.0).gram(X), atol=0.2)


def test_a_numpy_integer_is_a_number_of_components(rng):
    X = rng.random((20, 6))
    found, expected = (RandomFourier(n_components=n, random_state=0).fit_transform(X) for n in (np.int64(12), 12))
    np.testing.assert_array_equal(found, expected)
