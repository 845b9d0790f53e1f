"""Feature maps: the contract for each; exactness, error bounds and rates against the exact orbit-averaged kernel."""

import numpy as np
import oracles
import pytest
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import orbit
from orbit import Engine, Haar, InputError, Orbit, ParameterError, RidgeClassifier, UnitNorm, VonMises, registry
from orbit.approx import AveragedMap, Exact, Nystrom, OperatorRandomFourier, RandomFourier
from orbit.approx.frequencies import MonteCarlo
from orbit.approx.raw_points import _Coordinates
from orbit.core.linalg import inverse_root
from orbit.groups import Permutation, ProductGroup, Rotation
from orbit.kernels import CurlFree, Gaussian, Polynomial
from orbit.kernels.landmarks import Uniform
from orbit.testing import FrequenciesContract, KernelMapContract, LandmarksContract
from orbit.testing.samples import signals, smooth_images, unit_mean_norm


class TestRandomFourierPairs(KernelMapContract):
    gram_error = 0.1  # 400 frequencies, kernel values near one
    component = RandomFourier
    params = {"n_components": 400}

    def evaluate(self, fitted, points, points_fit):
        return oracles.fourier_pairs(points, fitted.orbit_.weights_, fitted.frequencies_)


class TestRandomFourierOffset(KernelMapContract):
    gram_error = 0.15
    component = RandomFourier
    params = {"variant": "offset", "n_components": 400}

    def evaluate(self, fitted, points, points_fit):
        return oracles.fourier_offset(points, fitted.orbit_.weights_, fitted.frequencies_, fitted.offsets_)


class TestNystrom(KernelMapContract):
    gram_error = 0.4  # five landmarks for eight points; no features at all would be 1 off
    component = Nystrom
    params = {"n_components": 5}

    def evaluate(self, fitted, points, points_fit):
        columns = oracles.landmark_columns(points, fitted.orbit_.weights_, fitted.landmarks_, self.lengthscale)
        return columns @ fitted.normalization_.T


class TestNystromFromOrbitPoints(TestNystrom):
    params = {"n_components": 5, "landmarks": Uniform("orbit")}


class TestExact(KernelMapContract):
    gram_error = 1e-10
    random = False
    component = Exact

    def evaluate(self, fitted, points, points_fit):
        columns = oracles.exact_gram(points, points_fit, fitted.orbit_.weights_, self.lengthscale)
        return columns[:, fitted.pivots_] @ fitted.normalization_.T


class TestMonteCarloFrequencies(FrequenciesContract):
    component = MonteCarlo


class TestUniformLandmarks(LandmarksContract):
    component = Uniform

    def test_landmarks_are_points_of_the_source(self, rng):
        X = signals(rng, 6, (2, 3))
        turns = {x.round(10).tobytes() for k in range(3) for x in np.roll(X, k, -1).reshape(6, -1)}
        plain = {x.round(10).tobytes() for x in X.reshape(6, -1)}
        data, moved = ({x.round(10).tobytes() for x in self.select(X, 5, source)} for source in ("data", "orbit"))
        assert len(data) == len(moved) == 5
        assert data <= plain
        assert moved <= turns
        assert not moved <= plain


# ---- random Fourier features -----------------------------------------------------------------------------------------


def test_features_of_images_have_names_in_a_pipeline(rng):
    X = rng.random((20, 4, 4))
    model = make_pipeline(UnitNorm(), Nystrom(n_components=3, random_state=0), RidgeClassifier()).fit(
        X, X[:, 0, 0] > 0.5
    )
    assert model[:-1].get_feature_names_out().tolist() == ["nystrom0", "nystrom1", "nystrom2"]


def test_exact_coordinates_are_those_of_the_last_fit(rng):
    X = rng.random((20, 4, 4))
    phi = Exact(Gaussian(2.0)).fit(X[:10])
    K = phi.fit_gram(X[10:])
    with pytest.raises(NotFittedError, match="no coordinates after fit_gram or precomputed=True: call fit"):
        phi.transform(X)
    np.testing.assert_allclose(K, phi.gram(X[10:]))
    phi.set_params(precomputed=True).fit(X).set_params(precomputed=False)
    with pytest.raises(NotFittedError):
        phi.transform(X)
    psi = phi.fit(X).transform(X)
    np.testing.assert_allclose(psi @ psi.T, phi.gram(X), atol=1e-8)


def test_both_variants_share_frequencies_of_the_kernel(rng):
    X = rng.standard_normal((5, 4))
    pairs, offset = (
        RandomFourier(Gaussian(2.0), n_components=4000, variant=v, random_state=0).fit(X) for v in ("pairs", "offset")
    )
    np.testing.assert_array_equal(pairs.frequencies_, offset.frequencies_)
    assert pairs.offsets_ is None
    assert stats.kstest(offset.offsets_, stats.uniform(0, 2 * np.pi).cdf).pvalue > 1e-3
    assert pairs.frequencies_.std() == pytest.approx(0.5, rel=0.03)
    assert pairs.transform(X).shape == (5, 8000)
    assert offset.transform(X).shape == (5, 4000)


@pytest.fixture
def near_images():
    return unit_mean_norm(smooth_images(np.random.default_rng(1), 24, 10, 10, blob=1.5))


@pytest.mark.parametrize("orb", [Orbit(), Orbit(Rotation(), VonMises(1.0), size=12)], ids=["plain", "turned"])
class TestAgainstTheExactGram:
    """The three bounds of scikit-learn's own tests: bias, mean absolute and largest error over seeds."""

    SEEDS = range(8)
    SIZE = 500

    def errors(self, X, orb, variant, size, seeds):
        K = Exact(Gaussian(0.5), orb).fit(X).gram(X)
        out = []
        for seed in seeds:
            features = RandomFourier(Gaussian(0.5), orb, size, variant, MonteCarlo(), random_state=seed).fit_transform(
                X
            )
            out.append(features @ features.T - K)
        return np.array(out)[:, *np.triu_indices(len(X))]

    @pytest.mark.parametrize(("variant", "variance"), [("pairs", 0.5), ("offset", 1.0)])
    def test_bias_mean_and_largest_error(self, near_images, orb, variant, variance):
        """One cosine of difference has variance at most 1/2, a random phase adds 1/2 (Jensen: averaging adds none)."""
        errors = self.errors(near_images, orb, variant, self.SIZE, self.SEEDS)
        deviation = np.sqrt(variance / self.SIZE)
        assert np.abs(errors.mean(0)).max() < 4.5 * deviation / np.sqrt(len(self.SEEDS)), "bias, entry by entry"
        assert np.abs(errors).mean() < np.sqrt(2 / np.pi) * deviation, "mean of a half-normal of largest variance"
        assert np.abs(errors).max() < 5.5 * deviation


def test_pairs_beat_offsets_for_near_pairs(near_images):
    """The variance of a pair's cosine goes to zero with the distance, that of a random phase goes to 1/2."""
    n = len(near_images)
    X = np.concatenate([near_images, near_images + 0.02 * near_images[::-1]])
    rows = np.arange(n), np.arange(n) + n
    K = Gaussian(0.5).gram(X)
    assert K[rows].min() > 0.95

    def error(variant) -> float:
        errors = []
        for seed in range(6):
            values = RandomFourier(Gaussian(0.5), None, 200, variant, MonteCarlo(), random_state=seed).fit_transform(X)
            errors.append(np.square((values @ values.T - K)[rows]).mean())
        return float(np.mean(errors))

    assert error("offset") / error("pairs") > 30


# ---- Nyström ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [Rotation("polar"), Rotation("cartesian")], ids=repr)
@pytest.mark.parametrize("q", [Haar(), VonMises(1.0)], ids=repr)
def test_nystrom_with_all_orbit_points_is_exact(rng, group, q):
    """Every embedded point lies in the span of the landmarks, so nothing is approximated.

    The error left is rounding times the condition number, below 1e-16 * 1e6 by the choice of lengthscale.
    """
    X, r = signals(rng, 6, (3, 8)), 8
    orb = Orbit(group, q, size=r)
    kernel = Gaussian(0.6)
    everything = Nystrom(kernel, orb, 6 * r, Uniform("orbit"), random_state=0).fit(X)
    assert everything.landmarks_.shape == (6 * r, 24)
    assert np.linalg.cond(kernel.gram(everything.landmarks_)) < 1e6
    exact = Exact(kernel, orb).fit(X).gram(X)
    features = everything.transform(X)
    np.testing.assert_allclose(features @ features.T, exact, atol=1e-9)
    half = Nystrom(kernel, orb, 3 * r, Uniform("orbit"), random_state=0).fit_transform(X)
    assert np.abs(half @ half.T - exact).max() > 1e-3, "with half of them it is not"


def test_nystrom_error_falls_with_landmarks_and_is_one_sided(rng):
    X = unit_mean_norm(smooth_images(rng, 60, 12, 12))
    orb = Orbit(Rotation(), size=8)
    exact = Exact(Gaussian(0.5), orb).fit(X).gram(X)
    errors = []
    for m in (4, 16, 60):
        features = Nystrom(Gaussian(0.5), orb, m, Uniform("orbit"), random_state=0).fit_transform(X)
        missing = exact - features @ features.T
        assert np.linalg.eigvalsh(missing).min() > -1e-8, "a projection never overshoots"
        errors.append(np.linalg.norm(missing))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_nystrom_of_singular_gram(rng):
    """Copies of points add no rank, and no infinities (as scikit-learn's test_nystroem_singular_kernel)."""
    points = rng.standard_normal((6, 4))
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-4)):
        X = points.astype(dtype)
        fitted = Nystrom(Gaussian(1.0), n_components=18, random_state=0).fit(np.vstack([X, X, X]))
        assert fitted.normalization_.shape == (6, 6)
        assert len(np.unique(fitted.landmarks_, axis=0)) == 6
        features = fitted.transform(X).astype(np.float64)
        np.testing.assert_allclose(features @ features.T, Gaussian(1.0).gram(X.astype(np.float64)), atol=tolerance)


def test_nystrom_of_a_smooth_kernel_has_few_features(rng):
    """Of 400 points in the plane. At other points features give the kernel of all landmarks, by eigenvalues."""
    X, others = rng.standard_normal((400, 2)), rng.uniform(-1, 1, (50, 2))
    fitted = Nystrom(Gaussian(3.0), n_components=400, random_state=0).fit(X)
    assert len(fitted.landmarks_) == len(fitted.normalization_) < 80
    features = fitted.transform(others)
    values, vectors = np.linalg.eigh(Gaussian(3.0).gram(X))
    root = vectors[:, values > 1e-12] / np.sqrt(values[values > 1e-12])  # the product K^+ itself loses ten digits
    expected = Gaussian(3.0).gram(others, X) @ root
    np.testing.assert_allclose(features @ features.T, expected @ expected.T, rtol=0, atol=1e-11)


def test_float32_nystrom_is_as_accurate_by_pivots_as_by_eigenvalues(rng):
    """Pivots average rounding errors over fewer kernel values: their mean is larger, up to float32 rounding."""
    errors: dict[str, list[np.ndarray]] = {"pivots": [], "eigenvalues": []}
    for _ in range(5):
        X, others = np.split(rng.standard_normal((700, 5)).astype(np.float32), [500])
        kernel = Gaussian(6.0)
        root = inverse_root(kernel.gram(X), float(np.finfo(np.float32).eps)).astype(np.float32)
        of_pivots = Nystrom(kernel, n_components=500, random_state=0).fit(X).transform(others)
        for name, psi in (("pivots", of_pivots), ("eigenvalues", kernel.gram(others, X) @ root.T)):
            assert psi.shape[1] < 200
            errors[name].append(np.abs(np.float64(psi) @ np.float64(psi).T - kernel.gram(others)))
    pivoted, eigen = (np.array(each) for each in errors.values())
    assert pivoted.max((1, 2)).mean() < 2 * eigen.max((1, 2)).mean()
    assert pivoted.mean() < eigen.mean() + 4 * np.finfo(np.float32).eps


# ---- the exact kernel ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "move"), [(Rotation(), oracles.rotate), (Rotation("polar"), oracles.turn)], ids=["cartesian", "polar"]
)
def test_exact_gram_is_the_double_sum(rng, group, move):
    X, Z = signals(rng, 5, (4, 6)), signals(rng, 3, (4, 6))
    fitted = Exact(Gaussian(0.6), Orbit(group, VonMises(0.7), size=6)).fit(X)
    weights, elements = fitted.orbit_.weights_, fitted.orbit_.elements_
    points_x, points_z = (oracles.orbit_points(move, elements, P) for P in (X, Z))
    np.testing.assert_allclose(fitted.gram(X), oracles.exact_gram(points_x, points_x, weights, 0.6), atol=1e-10)
    np.testing.assert_allclose(fitted.gram(Z), oracles.exact_gram(points_z, points_x, weights, 0.6), atol=1e-10)
    np.testing.assert_allclose(fitted.gram(X, Z), oracles.exact_gram(points_x, points_z, weights, 0.6), atol=1e-10)
    np.testing.assert_allclose(fitted.gram(X, Z).T, fitted.gram(Z, X), atol=1e-12)


@pytest.mark.parametrize("memory", [1e-7, 1e-5, 1.0])
def test_exact_gram_does_not_depend_on_memory(rng, memory):
    X = signals(rng, 12, (5, 6))
    orb = Orbit(Rotation(), size=7)
    expected = Exact(Gaussian(0.6), orb).fit(X).gram(X)
    np.testing.assert_allclose(Exact(Gaussian(0.6), orb, engine=Engine(memory)).fit(X).gram(X), expected, atol=1e-12)


def test_exact_features_of_float32_points_have_float32_accuracy(rng):
    """A smooth kernel has eigenvalues far below float32 rounding, and features divide by their roots."""
    X = rng.standard_normal((60, 2)).astype(np.float32)
    fitted = Exact(Gaussian(2.0)).fit(X)
    features = fitted.transform(X)
    assert features.dtype == np.float32
    assert features.shape[1] > 30, "of eigenvalues down to float64 rounding"
    np.testing.assert_allclose(features @ features.T, fitted.gram(X.astype(np.float64)), atol=1e-6)


# ---- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature_map", "message"),
    [
        (Nystrom(n_components=0), "approx.n_components: expected an integer >= 1, found 0"),
        (Exact(engine=Engine(memory=0)), "engine.memory: expected a finite number > 0 and <= 1e+06, found 0"),
        (Nystrom(orbit=Orbit(size=0)), "orbit.size: expected an integer >= 1 or null, found 0"),
        (Nystrom(landmarks=Uniform("nowhere")), "landmarks.source: expected one of 'data', 'orbit', found 'nowhere'"),
    ],
    ids=repr,
)
def test_invalid_parameters_are_rejected(feature_map, message):
    for call in (feature_map.check, lambda: clone(feature_map).fit(np.ones((3, 2)))):
        with pytest.raises(ParameterError) as error:
            call()
        assert str(error.value) == message


def test_kernel_that_is_zero_between_all_points(rng):
    """A lengthscale far too small: the Gram matrix is the identity, features are finite."""
    features = Nystrom(Gaussian(1e-6), n_components=5, random_state=0).fit_transform(rng.random((5, 3)))
    np.testing.assert_allclose(features @ features.T, np.eye(5), atol=1e-12)


def test_kernel_values_that_float32_does_not_hold_raise(rng):
    X = (1e15 * rng.random((5, 3))).astype(np.float32)
    expected = "kernel matrix: NaN or infinite for 5 of 5 points.*kernel=polynomial"
    with pytest.raises(InputError, match=expected):
        Exact(Polynomial(2)).fit_gram(X)
    exact = Exact(Polynomial(2)).fit(X)
    for Z in (X, None):
        with pytest.raises(InputError, match=expected):
            exact.gram(X, Z)
    np.testing.assert_allclose(
        Exact(Polynomial(2), engine=Engine(dtype="float64")).fit_gram(X),
        (X.astype(float) @ X.astype(float).T / 3 + 1) ** 2,
    )


@pytest.mark.parametrize("part", ["frequencies", "landmarks"])
def test_rule_of_the_wrong_kind_raises(part):
    cls = RandomFourier if part == "frequencies" else Nystrom
    with pytest.raises(InputError, match=part):
        cls(**{part: "monte_carlo"}).fit(np.random.default_rng(0).random((5, 3)))


# ---- few orbits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [Permutation("blocks"), Permutation("entries"), Permutation("blocks", n=2)])
@pytest.mark.parametrize("name", [name for name in registry.available("approx") if name != "ovk"])  # takes no group
def test_features_of_few_orbits_are_computed_by_orbit(rng, monkeypatch, name, group):
    """Words of two letters: of 150 points, a few orbits."""
    words = rng.integers(2, size=(150, 4))
    X = np.eye(2)[words[:, :3]] if (group.mode, group.n) == ("blocks", None) else words.astype(float)
    fitted = registry.build("approx", name, orbit=Orbit(group, rule="quadrature"), random_state=0)
    if "n_components" in fitted.get_params():
        fitted.set_params(n_components=20)
    by_orbit = np.asarray(fitted.fit(X[:20]).transform(X))
    assert fitted.route_.orbits == len({tuple(sorted(map(tuple, blocks(group, x)))) for x in X})
    monkeypatch.setattr(Orbit, "representatives", lambda self, X: None)
    by_point = np.asarray(fitted.transform(X))
    assert fitted.route_.orbits == 0
    np.testing.assert_allclose(by_orbit @ by_orbit.T, by_point @ by_point.T, rtol=0, atol=1e-7)


def blocks(group, x) -> np.ndarray:
    return x.reshape(len(x) if group.n is None else group.n, -1)


def test_features_of_part_of_a_group_are_computed_by_point(rng):
    X = rng.integers(2, size=(300, 3)).astype(float)
    fitted = RandomFourier(orbit=Orbit(Permutation(), size=5, rule="monte_carlo"), n_components=9, random_state=0).fit(
        X
    )
    fitted.transform(X)
    assert str(fitted.route_) == "direct path"


PRODUCTS = {
    "reflection, cyclic": [{"name": "reflection"}, {"name": "cyclic", "axis": 1}],
    "cyclic, cyclic": [{"name": "cyclic", "axis": 0}, {"name": "cyclic", "axis": 1}],
    "cyclic, dihedral": [{"name": "cyclic", "axis": 0}, {"name": "dihedral"}],
    "dihedral, cyclic": [{"name": "dihedral"}, {"name": "cyclic", "axis": 0}],
    "reflection, dihedral": [{"name": "reflection"}, {"name": "dihedral"}],
}


@pytest.mark.parametrize("factors", PRODUCTS)
def test_the_exact_kernel_of_a_product_is_the_double_sum_also_if_actions_do_not_commute(rng, factors):
    X = rng.random((4, 3, 3))
    exact = Exact(Gaussian(0.5), Orbit(ProductGroup(PRODUCTS[factors]), rule="quadrature")).fit(X)
    group, elements = exact.orbit_.group_, exact.orbit_.elements_
    moved = group.act(elements, X).reshape(len(elements), 4, 9)
    expected = np.mean([[np.exp(-2 * cdist(a, b, "sqeuclidean")) for b in moved] for a in moved], axis=(0, 1))
    np.testing.assert_allclose(exact.gram(X), expected, rtol=1e-10)
    np.testing.assert_allclose(exact.diagonal(X), np.diag(expected), rtol=1e-10)
    single = np.mean([np.exp(-2 * cdist(part, moved[0], "sqeuclidean")) for part in moved], axis=0)  # h = identity
    assert group.is_closed((3, 3)) == np.allclose(single, expected)


def test_structured_operator_valued_features_take_the_fast_product(rng):
    X = rng.standard_normal((20, 300))
    maps = [
        cls(kernel, n_components=1024, frequencies=orbit.build("frequencies", "structured"), random_state=0).fit(X)
        for cls, kernel in (
            (RandomFourier, Gaussian(20.0)),
            (OperatorRandomFourier, orbit.build("kernel", "decomposable", lengthscale=20.0)),
        )
    ]
    one, other = (np.asarray(fitted.transform(X)) for fitted in maps)
    np.testing.assert_array_equal(one, other)
    assert maps[0].route_.operations == maps[1].route_.operations < 2 * 300


@pytest.mark.parametrize(
    "features",
    [
        OperatorRandomFourier(CurlFree(), n_components=10, equivariant=True),
        OperatorRandomFourier(orbit.build("kernel", "helmholtz"), n_components=10, equivariant=True),
        OperatorRandomFourier(n_components=10, equivariant=True),
        OperatorRandomFourier(n_components=10),
        orbit.build("approx", "skeleton", n_components=10),
        orbit.build("approx", "skeleton", n_components=10, variant="phase"),
        orbit.build(
            "approx",
            "skeleton",
            kernel=orbit.build("kernel", "skeleton", base="binary"),
            n_components=10,
            deduplicate=False,
        ),
    ],
    ids=repr,
)
def test_the_number_of_columns_is_known_before_the_fit(rng, features):
    X = rng.standard_normal((6, 3))
    assert features.n_columns(*X.shape) == features.fit_transform(X).shape[1]


def test_a_feature_map_that_is_not_registered_has_the_name_of_its_class(rng):
    class Mine(AveragedMap):
        def __init__(self, kernel=None, orbit=None, engine=None, random_state=None) -> None:
            self.kernel, self.orbit, self.engine, self.random_state = kernel, orbit, engine, random_state

        def _fit_map(self, X: np.ndarray, random_state: int) -> None:
            self._n_features_out = X.shape[1]

        def _embedding(self, dtype: np.dtype) -> _Coordinates:
            return _Coordinates(self._n_features_out)

    X = rng.standard_normal((5, 2))
    np.testing.assert_allclose(Mine().fit(X).transform(X), X)
    assert Mine().fit(X).label() == "component=Mine, kernel=gaussian"


def test_equivariant_features_of_points_of_one_orbit_are_their_own():
    X = np.array([[1.0, 2, 4], [4, 1, 2], [2, 4, 1], [1, 4, 2]])
    orb = Orbit(Permutation(), rule="quadrature")
    features = OperatorRandomFourier(
        CurlFree(lengthscale=2.0), orb, n_components=8, equivariant=True, random_state=0
    ).fit(X)
    alone = [np.asarray(features.transform(X[i : i + 1])) for i in range(len(X))]
    np.testing.assert_allclose(np.asarray(features.transform(X)), np.concatenate(alone), atol=1e-12)


@pytest.mark.parametrize("rows", [1, 5, 8, 1024])
def test_the_linear_map_of_nystrom_features_is_multiplied_in_blocks(rng, monkeypatch, rows):
    monkeypatch.setattr("orbit.approx.kernel_sums._LINEAR_ROWS", rows)
    X = rng.standard_normal((30, 4))
    phi = Nystrom(Gaussian(1.5), n_components=13, random_state=0).fit(X)
    expected = phi.kernel_.gram(X, phi.landmarks_) @ phi.normalization_.T
    np.testing.assert_allclose(phi.transform(X), expected, atol=1e-10)
