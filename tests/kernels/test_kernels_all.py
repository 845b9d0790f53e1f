"""All kernels: values by plain formulas and by scikit-learn, spectra by goodness of fit, parameters."""

import pickle

import numpy as np
import pytest
import torch
from scipy import special, stats
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

import orbit
from orbit import CDF, ArcCos, Gaussian, Laplacian, Matern, Orbit, Polynomial, RationalQuadratic, SkeletonKernel
from orbit.approx import Exact, Nystrom, RandomFourier
from orbit.core.errors import InputError
from orbit.groups import Identity, Rotation
from orbit.kernels.base import median_distance
from orbit.testing import DotProductKernelContract, KernelContract

SPECTRAL = [
    Gaussian(1.3),
    Laplacian(4.0),
    Matern(1.7, nu=0.5),
    Matern(1.7, nu=1.5),
    Matern(1.7, nu=3.2),
    RationalQuadratic(1.2, alpha=0.4),
    RationalQuadratic(1.2, alpha=3.0),
]
OTHERS = [Polynomial(3, gamma=0.3, coef0=0.5), ArcCos(0), ArcCos(1)]
ALL = SPECTRAL + OTHERS


class TestLaplacian(KernelContract):
    component = Laplacian
    params = {"lengthscale": 4.0}

    def evaluate(self, x, z):
        return np.exp(-np.abs(x - z).sum() / 4)


class TestExponential(KernelContract):
    component = Matern
    params = {"lengthscale": 2.1, "nu": 0.5}

    def evaluate(self, x, z):
        return np.exp(-np.linalg.norm(x - z) / 2.1)


class TestMatern(KernelContract):
    component = Matern
    params = {"lengthscale": 1.7, "nu": 1.5}

    def evaluate(self, x, z):
        nu = self.params["nu"]
        r = np.sqrt(2 * nu) * np.linalg.norm(x - z) / 1.7
        return 2 ** (1 - nu) / special.gamma(nu) * r**nu * special.kv(nu, r) if r else 1.0


class TestMaternFiveHalves(TestMatern):
    params = {"lengthscale": 1.7, "nu": 2.5}


class TestMaternByBessel(TestMatern):
    params = {"lengthscale": 1.7, "nu": 0.3}


class TestRationalQuadratic(KernelContract):
    component = RationalQuadratic
    params = {"lengthscale": 1.2, "alpha": 0.4}

    def evaluate(self, x, z):
        return (1 + np.sum((x - z) ** 2) / (2 * 0.4 * 1.2**2)) ** -0.4


class TestPolynomial(DotProductKernelContract):
    component = Polynomial
    params = {"degree": 3, "gamma": 0.05, "coef0": 0.5}

    def evaluate(self, x, z):
        return (0.05 * (x @ z) + 0.5) ** 3


class TestArcCosRectified(DotProductKernelContract):
    component = ArcCos
    params = {"order": 1}

    def evaluate(self, x, z):
        order = self.params["order"]
        size = np.linalg.norm(x) * np.linalg.norm(z)
        theta = np.arccos(np.clip(x @ z / size, -1, 1))
        return size**order * [np.pi - theta, np.sin(theta) + (np.pi - theta) * np.cos(theta)][order] / np.pi


class TestArcCosThreshold(TestArcCosRectified):
    params = {"order": 0}


# ---- values ----------------------------------------------------------------------------------------------------------

SKLEARN = {
    "laplacian": (Laplacian(1.4), lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=1 / 1.4)),
    **{f"matern-{nu}": (Matern(1.4, nu=nu), gp.Matern(1.4, nu=nu)) for nu in (0.5, 0.9, 1.5, 2.5, 7.0)},
    "rational_quadratic": (RationalQuadratic(1.4, alpha=0.6), gp.RationalQuadratic(1.4, alpha=0.6)),
    "rational_quadratic-gaussian": (RationalQuadratic(1.4, alpha=1e9), gp.RBF(1.4)),
    "polynomial": (Polynomial(4, coef0=0.7), lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=4, coef0=0.7)),
}


@pytest.mark.parametrize("name", SKLEARN)
def test_values_are_scikit_learns_where_points_coincide_too(rng, name):
    kernel, theirs = SKLEARN[name]
    X = rng.standard_normal((40, 6)) * rng.choice([0.1, 1, 3], (40, 1))
    Z = np.concatenate([X[:10], X[10:20] + 1e-7, rng.standard_normal((9, 6))])
    tolerance = 1e-8 if name.endswith("gaussian") else 1e-10  # the Gaussian is the limit of large alpha
    np.testing.assert_allclose(kernel.gram(X, Z), theirs(X, Z), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernel", ALL, ids=str)
@pytest.mark.parametrize("d", [1, 3, 200])
def test_float32_tiles_are_near_float64(rng, kernel, d):
    X = (rng.standard_normal((60, d)) / np.sqrt(d) + 0.5).astype(np.float32)
    Z = np.concatenate([X[:20], X[20:40] * (1 + 1e-5), X[::-1][:30] * 0.3])
    A, B = torch.from_numpy(X), torch.from_numpy(Z)
    columns = kernel.fit(X).against(B)
    for rows, part in ((slice(0, 60), slice(0, 70)), (slice(10, 25), slice(5, 50))):
        tile = torch.empty(rows.stop - rows.start, part.stop - part.start)
        np.testing.assert_allclose(columns(A[rows], part, tile), kernel.gram(X[rows], Z[part]), rtol=1e-4, atol=1e-4)


def test_bessel_values_reach_both_ends():
    """Around the largest smoothness K_nu overflows near the origin; far away it underflows."""
    X = np.array([[0.0], [1e-300], [1e-6], [1e-3], [1.0], [1e3]])
    for nu in (0.25, 3.0, 50.0):
        K = Matern(1.0, nu=nu).gram(X[:1], X)[0]
        assert np.all(np.isfinite(K))
        assert np.all(np.diff(K) <= 1e-15)
        assert K[0] == 1
        assert K[-1] < 1e-6
    np.testing.assert_allclose(Matern(1.0, nu=50.0).gram(X), Gaussian(1.0).gram(X), atol=0.01)


def test_the_close_pairs_of_a_tile_are_refined_in_pieces(rng, monkeypatch):
    X = np.repeat(rng.standard_normal((3, 7)), 20, axis=0)
    expected = Matern(1.0, nu=0.5).gram(X)
    monkeypatch.setattr("orbit.kernels.radial.REFINED_NUMBERS", 50)
    np.testing.assert_array_equal(Matern(1.0, nu=0.5).gram(X), expected)


def test_arccos_keeps_small_angles_and_defines_zero():
    angle = np.array([0.0, 1e-12, 1e-7, 1e-3])
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(ArcCos(0).gram(circle[:1], circle)[0], 1 - angle / np.pi, rtol=0, atol=1e-15)
    zero = np.array([[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(ArcCos(0).gram(zero)[0], [0.5, 0.5])
    np.testing.assert_array_equal(ArcCos(1).gram(zero)[0], [0.0, 0.0])


@pytest.mark.parametrize("size", [1e-30, 1e20, 1e30])
def test_arccos_of_points_whose_squares_float32_does_not_hold(size):
    X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for order, factor in ((0, 1.0), (1, size)):
        Z = X * size if order == 0 else X
        values = ArcCos(order).against(Z)(X * size, slice(0, 3), torch.empty(3, 3)) / factor
        np.testing.assert_allclose(values.numpy(), ArcCos(order).gram(X.numpy()), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", [Polynomial(2), CDF(), ArcCos(1), Gaussian(1.0), SkeletonKernel()], ids=repr)
def test_points_may_be_lists(kernel):
    points = [[0.0, 1.0], [2.0, 0.5]]
    np.testing.assert_array_equal(kernel.gram(points), kernel.gram(np.array(points)))


# ---- spectra ---------------------------------------------------------------------------------------------------------

MARGINALS = {  # of one coordinate, and of the length in d dimensions
    "gaussian": (Gaussian(1.3), stats.norm(scale=1 / 1.3).cdf, lambda d: stats.chi(d, scale=1 / 1.3).cdf),
    "laplacian": (Laplacian(4.0), stats.cauchy(scale=1 / 4).cdf, None),
    "exponential": (Matern(2.1, nu=0.5), stats.cauchy(scale=1 / 2.1).cdf, lambda d: _student_length(d, 0.5, 2.1)),
    "matern": (Matern(1.7, nu=1.5), stats.t(3, scale=1 / 1.7).cdf, lambda d: _student_length(d, 1.5, 1.7)),
    "rational_quadratic": (RationalQuadratic(1.2, alpha=1.0), stats.laplace(scale=1 / (1.2 * np.sqrt(2))).cdf, None),
}


def _student_length(d, nu, lengthscale):
    """|w|^2 / d follows the F distribution with (d, 2 nu) degrees of freedom, in units of the scale."""
    return lambda length: stats.f(d, 2 * nu).cdf((length * lengthscale) ** 2 / d)


@pytest.mark.parametrize("name", MARGINALS)
def test_spectral_samples_follow_the_known_distributions(name):
    kernel, marginal, length = MARGINALS[name]
    W = kernel.fit(np.zeros((1, 3))).sample_spectrum(20_000, 3, np.random.default_rng(7))
    for j in range(3):
        assert stats.kstest(W[:, j], marginal).pvalue > 1e-3
    if length is not None:
        assert stats.kstest(np.linalg.norm(W, axis=1), length(3)).pvalue > 1e-3


@pytest.mark.parametrize("d", [3, 8])
@pytest.mark.parametrize("name", [name for name, (_, _, length) in MARGINALS.items() if length is not None])
def test_lengths_of_frequencies_follow_the_known_distributions(name, d):
    kernel, _, length = MARGINALS[name]
    uniforms = np.random.default_rng(11).random((20_000, 2))
    lengths = kernel.fit(np.zeros((1, d))).spectrum_lengths(uniforms, d)
    assert stats.kstest(lengths, length(d)).pvalue > 1e-3


@pytest.mark.parametrize("kernel", SPECTRAL, ids=str)
def test_declared_isotropic_spectra_are_isotropic(kernel):
    """The length of (w_1 + w_2) / sqrt(2) has the law of w_1 in an isotropic spectrum."""
    W = kernel.fit(np.zeros((1, 2))).sample_spectrum(20_000, 2, np.random.default_rng(5))
    pvalue = stats.kstest(W @ [1, 1] / np.sqrt(2), W[::-1, 0]).pvalue
    assert (pvalue > 1e-3) == kernel.is_isotropic


@pytest.mark.parametrize("kernel", SPECTRAL, ids=str)
def test_the_ends_of_the_unit_interval_give_finite_frequencies(kernel):
    kernel = kernel.fit(np.zeros((1, 2)))
    for u in (2.0**-54, 2.0**-31, 1 - 2.0**-53):
        frequencies = kernel.spectrum_ppf(np.full((1, kernel.spectrum_dim(2)), u)).astype(np.float32)
        assert np.all(np.isfinite(frequencies))


@pytest.mark.parametrize("kernel", OTHERS, ids=str)
def test_random_fourier_features_reject_kernels_without_a_spectrum(kernel):
    with pytest.raises(InputError, match=f"^kernel={kernel.name} is not shift invariant.*choose approx=nystrom"):
        RandomFourier(kernel).check()
    with pytest.raises(InputError, match="no spectrum"):
        kernel.spectrum_ppf(np.full((1, 2), 0.5))


# ---- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", orbit.available("kernel"))
def test_median_lengthscale_is_in_the_kernels_own_distance(rng, name):
    kernel = orbit.build("kernel", name)
    if "lengthscale" not in kernel.get_params():
        pytest.skip(f"{name} has no lengthscale")
    X = rng.standard_normal((30, 4))
    metric = "cityblock" if name == "laplacian" else "euclidean"
    assert kernel.fit(X).lengthscale_ == pytest.approx(np.median(pdist(X, metric)))


def test_a_fitted_kernel_keeps_its_lengthscale_on_other_points(rng):
    X = rng.standard_normal((30, 4))
    kernel = Gaussian().fit(X)
    np.testing.assert_allclose(kernel.gram(X[:5]), kernel.gram(X)[:5, :5], rtol=1e-13)


def test_the_median_of_wide_points_is_that_of_their_differences(rng):
    X = rng.standard_normal((40, 2000)) + 50
    assert median_distance(X) == pytest.approx(np.median(pdist(X)), rel=1e-10)


def test_nystrom_with_a_median_lengthscale_is_exact_on_its_landmarks(rng):
    """The landmarks' own matrix must use the lengthscale of the data, not that of the landmarks."""
    X = rng.standard_normal((30, 4)) * np.linspace(0.1, 3, 30)[:, None]
    phi = Nystrom(Gaussian(), n_components=10, random_state=0).fit(X)
    Psi = phi.transform(phi.landmarks_)
    np.testing.assert_allclose(Psi @ Psi.T, phi.kernel_.gram(phi.landmarks_), atol=1e-9)


def test_polynomial_gamma_is_one_over_the_number_of_features(rng):
    X = rng.random((5, 3, 4))
    assert Polynomial().fit(X).gamma_ == pytest.approx(1 / 12)
    np.testing.assert_allclose(Polynomial().gram(X), pairwise.polynomial_kernel(X.reshape(5, 12)), rtol=1e-12)


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_a_fitted_kernel_pickles_and_a_clone_is_unfitted(rng, kernel):
    X = rng.standard_normal((6, 3))
    kernel = clone(kernel).fit(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel)).gram(X), kernel.gram(X))
    assert not [name for name in vars(clone(kernel)) if name.endswith("_")]


# ---- invariance ------------------------------------------------------------------------------------------------------


class Swap(Identity):
    """Reverses the coordinates: unitary, and a permutation. Not registered."""

    def permutes(self, shape):
        return True


class Mix(Identity):
    """Unitary, but not a permutation."""

    def permutes(self, shape):
        return False


@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_invariance_follows_the_kernels_own_distance(rng, kernel):
    X = rng.standard_normal((5, 4))
    orthogonal = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    K = kernel.gram(X)
    assert kernel.is_invariant_under(Identity(), (4,))
    assert kernel.is_invariant_under(Swap(), (4,))
    np.testing.assert_allclose(kernel.gram(X[:, ::-1]), K, atol=1e-12)
    holds = np.abs(kernel.gram(X @ orthogonal) - K).max() < 1e-9
    assert kernel.is_invariant_under(Mix(), (4,)) == holds == (kernel.name != "laplacian")
    assert not kernel.is_invariant_under(Rotation(), (4, 4))


# ---- the exact matrix of one set of points ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 4, 5, 18])
def test_symmetric_exact_gram_is_the_plain_one(rng, n, monkeypatch):
    monkeypatch.setattr("orbit.approx.exact.NARROWEST_BLOCK", 2)
    X = rng.standard_normal((n, 3, 5))
    exact = Exact(Laplacian(9.0), Orbit(Rotation("polar"), size=5)).fit(X)
    plain = exact.gram(X, X.copy())
    np.testing.assert_allclose(exact.gram(X, X), plain, atol=1e-12)
    np.testing.assert_allclose(exact.gram(X), plain, atol=1e-12)
    np.testing.assert_allclose(exact.gram(X, X), exact.gram(X, X).T, atol=1e-12)
