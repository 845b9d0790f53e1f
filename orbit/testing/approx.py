"""Contracts of feature maps and of their parts: frequencies, landmarks, second layers."""

import copy
import re
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from orbit.approx import Exact
from orbit.approx.landmarks import select
from orbit.core.errors import InputError
from orbit.distributions import Delta, Haar, VonMises
from orbit.engine import Engine
from orbit.groups import Identity, Rotation
from orbit.kernels import Gaussian
from orbit.orbits import Orbit
from orbit.solvers.structure import unpacked
from orbit.testing import oracles
from orbit.testing.component import FLOATS, ComponentContract, TransformerContract
from orbit.testing.distributions import Elsewhere
from orbit.testing.samples import signals


class FeatureMapContract(TransformerContract):
    """A feature map averaged over an orbit: values, precision, seeds, tiles, errors.

    A subclass supplies a small map with a fixed seed, and the formulas ``evaluate`` of its features and
    ``expected_gram`` of their inner products.

    Attributes
    ----------
    gram_error : largest absolute error of inner products against ``expected_gram``
    for_gram : parameters for that comparison
    random : whether the features depend on the seed
    settings : name -> group, shape of an input, formula ``move(x, g)`` of the action; all are tested
    """

    kind = "approx"
    rounding = 1e-11
    gram_error: ClassVar[float]
    for_gram: ClassVar[dict[str, Any]] = {}
    random: ClassVar[bool] = True

    settings: ClassVar[dict[str, tuple[Any, tuple[int, ...], Any]]] = {
        "plain": (None, (4, 5), None),
        "cartesian": (Rotation(), (5, 6), oracles.rotate),
        "polar-odd": (Rotation("polar"), (3, 7), oracles.turn),
        "polar-even": (Rotation("polar"), (3, 8), oracles.turn),
    }

    def create(self, **params: Any) -> Any:
        return super().create(**{"random_state": 0, **self.params, **params})

    def evaluate(self, fitted, points: np.ndarray, points_fit: np.ndarray) -> np.ndarray:
        """Features by their formula, from the orbits ``(r, n, d)`` of the inputs and of the training points."""
        raise self.lacks("evaluate", "the features by their formula")

    def expected_gram(self, fitted, points: np.ndarray) -> np.ndarray:
        """The kernel ``(n, n)`` that inner products of features approximate, from orbits ``(r, n, d)``."""
        raise self.lacks("expected_gram", "the kernel that inner products of features approximate")

    def orbit(self, group, **params) -> Orbit:
        return Orbit(group, VonMises(0.8), **{"size": 5, **params})

    @pytest.fixture
    def X(self, rng):
        return self.case(rng, "cartesian")[1]

    def fitted(self, X: np.ndarray) -> Any:
        return self.create(orbit=self.orbit(Rotation())).fit(X)

    def case(self, rng, name: str) -> tuple[Orbit, np.ndarray, Any]:
        group, shape, move = self.settings[name]
        return self.orbit(group), signals(rng, 8, shape), move or (lambda x, g: x)

    @pytest.mark.parametrize("setting", settings)
    @pytest.mark.parametrize("rule", ["quadrature", "monte_carlo"])
    @pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)], ids=["f64", "f32"])
    def test_features_are_the_plain_formula(self, rng, setting, rule, dtype, tolerance):
        orb, X, move = self.case(rng, setting)
        orb.set_params(rule=rule)
        X = X.astype(dtype)
        fitted = self.create(orbit=orb).fit(X[:6])
        weights, elements = fitted.orbit_.weights_, fitted.orbit_.elements_
        assert len(weights) == (1 if setting == "plain" else 5)
        points = oracles.orbit_points(move, elements, X.astype(np.float64))
        features = fitted.transform(X)
        assert features.dtype == dtype
        np.testing.assert_allclose(features, self.evaluate(fitted, points, points[:, :6]), atol=tolerance)

    @pytest.mark.parametrize("setting", settings)
    def test_inner_products_approximate_the_orbit_averaged_kernel(self, rng, setting):
        orb, X, move = self.case(rng, setting)
        fitted = self.create(orbit=orb, **self.for_gram).fit(X)
        points = oracles.orbit_points(move, fitted.orbit_.elements_, X)
        expected = self.expected_gram(fitted, points)
        features = fitted.transform(X)
        assert np.abs(features @ features.T - expected).max() < self.gram_error

    def test_haar_over_all_grid_turns_is_invariant(self, rng):
        X, n_angles = signals(rng, 6, (3, 9)), 9
        group = Rotation("polar")
        turned = group.act(np.array([4 * np.pi / n_angles]), X)[0]

        def change(orb) -> float:
            fitted = self.create(orbit=orb).fit(X)
            return float(np.abs(fitted.transform(turned) - fitted.transform(X)).max())

        assert change(Orbit(group, Haar(), size=n_angles)) < 1e-10
        assert change(Orbit(group, Haar(), size=n_angles, random_phase=True)) < 1e-10
        assert change(None) > 1e-2
        assert change(Orbit(group, VonMises(20.0), size=n_angles)) > 1e-2

    @pytest.mark.parametrize("orb", [Orbit(Rotation(), Delta()), Orbit(Identity(), Haar(), size=9), Orbit()], ids=repr)
    def test_trivial_orbits_give_the_base_map(self, rng, orb):
        X = signals(rng, 8, (5, 6))
        expected = self.create().fit(X).transform(X)
        np.testing.assert_allclose(self.create(orbit=orb).fit(X).transform(X), expected, atol=1e-10)

    def test_columns_are_named_and_counted(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        fitted = self.create(orbit=orb).fit(X)
        names = fitted.get_feature_names_out()
        assert fitted.transform(X).shape == (len(X), len(names))
        assert len(set(names)) == len(names)

    @pytest.mark.parametrize(
        "params",
        [{"workers": 1}, {"workers": 3}, {"workers": 2, "memory": 1e-4}, {"workers": 1, "memory": 1e-6}],
        ids=str,
    )
    def test_engine_settings_change_rounding_only(self, rng, params):
        X = signals(rng, 25, (5, 6))
        make = lambda **p: self.create(orbit=self.orbit(Rotation(), size=9), engine=Engine(**p))  # noqa: E731
        expected = make(workers=1, memory=1.0).fit(X[:8]).transform(X)
        np.testing.assert_allclose(make(**params).fit(X[:8]).transform(X), expected, atol=1e-11)

    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("given", FLOATS)
    def test_engine_dtype_overrides_the_data(self, rng, given, dtype):
        X = signals(rng, 6, (4, 5)).astype(given)
        engine = Engine(dtype=np.dtype(dtype).name)
        assert self.create(engine=engine).fit(X).transform(X).dtype == dtype

    def test_same_seed_same_features(self, rng):
        orb, X, _ = self.case(rng, "polar-even")
        orb.set_params(rule="monte_carlo")
        one, two = (self.create(orbit=orb, random_state=7).fit(X) for _ in range(2))
        other = self.create(orbit=orb, random_state=8).fit(X)
        np.testing.assert_array_equal(one.transform(X), two.transform(X))
        assert np.abs(one.orbit_.elements_ - other.orbit_.elements_).max() > 1e-3
        if self.random:
            plain = [self.create(random_state=seed).fit_transform(X) for seed in (7, 8)]
            assert np.abs(plain[0] - plain[1]).max() > 1e-3

    def test_features_on_the_device_are_those_of_transform(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        fitted = self.create(orbit=orb).fit(X)
        (structure, features), (own, expected) = unpacked(fitted.transform_on_device(X)), unpacked(fitted.transform(X))
        assert structure == own
        np.testing.assert_allclose(features.cpu().numpy(), expected, atol=1e-12)

    def test_seed_of_the_orbit_is_kept(self, rng):
        _, X, _ = self.case(rng, "polar-even")
        orb = self.orbit(Rotation("polar"), rule="monte_carlo", random_state=3)
        one, two = (self.create(orbit=orb, random_state=seed).fit(X) for seed in (7, 8))
        np.testing.assert_array_equal(one.orbit_.elements_, two.orbit_.elements_)

    def test_fit_draws_everything_and_changes_no_parameter(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        orb.set_params(rule="monte_carlo")
        feature_map = self.create(orbit=orb)
        before, state = repr(feature_map), copy.deepcopy(vars(orb))
        fitted = feature_map.fit(X)
        assert repr(fitted) == before
        assert vars(orb).keys() == state.keys()
        np.testing.assert_array_equal(fitted.transform(X), fitted.transform(X))

    def test_group_that_does_not_act_on_the_input_is_refused(self):
        with pytest.raises(InputError, match="group=rotation acts on images.*vectors of length 7"):
            self.create(orbit=Orbit(Rotation())).fit(np.ones((4, 7)))

    def test_transform_refuses_another_shape(self, rng):
        fitted = self.create().fit(rng.random((6, 4, 5)))
        for shape in ((4, 4), (3, 5), (20,), (1, 4, 5)):
            message = f"was fitted on points of shape (4, 5), found {shape}"
            with pytest.raises(ValueError, match=re.escape(message)):
                fitted.transform(rng.random((6, *shape)))

    def test_metrics_before_fit_are_refused(self):
        with pytest.raises(NotFittedError):
            self.create().metrics()

    def test_check_refuses_a_distribution_that_is_not_defined_on_the_group(self):
        with pytest.raises(InputError, match="distribution=von_mises is not defined on group=elsewhere"):
            self.create(orbit=self.orbit(Elsewhere())).check()

    @pytest.mark.parametrize(
        ("part", "wrong"),
        [("orbit", Rotation()), ("engine", 4), ("random_state", "seed")],
        ids=str,
    )
    def test_error_names_a_part_of_the_wrong_kind(self, rng, part, wrong):
        with pytest.raises(InputError, match=part):
            self.create(**{part: wrong}).fit(rng.random((6, 4)))


class KernelMapContract(FeatureMapContract):
    """A feature map of a base kernel, with a Gaussian kernel of a fixed lengthscale.

    Attributes
    ----------
    lengthscale : lengthscale of the kernel, for points of mean norm one
    """

    lengthscale: ClassVar[float] = 0.7
    for_gram = {"kernel": Gaussian(2.0)}  # wide, so that a few landmarks approximate the kernel between all points

    def create(self, **params: Any) -> Any:
        return super().create(**{"kernel": Gaussian(self.lengthscale), **self.params, **params})

    def expected_gram(self, fitted, points: np.ndarray) -> np.ndarray:
        return oracles.exact_gram(points, points, fitted.orbit_.weights_, self.for_gram["kernel"].lengthscale)

    def test_median_lengthscale_is_computed_once_from_the_data(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        X.flags.writeable = False
        automatic = self.create(orbit=orb, kernel=Gaussian("median")).fit(X)
        distances = [np.linalg.norm(X[i] - X[j]) for i in range(8) for j in range(i)]
        assert automatic.kernel_.lengthscale_ == pytest.approx(np.median(distances))
        by_hand = self.create(orbit=orb, kernel=Gaussian(automatic.kernel_.lengthscale_)).fit(X)
        A, B = automatic.transform(X), by_hand.transform(X)
        np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-10)

    def test_fit_does_not_modify_the_kernel(self, rng):
        kernel = Gaussian("median")
        self.create(kernel=kernel).fit(self.case(rng, "plain")[1])
        assert vars(kernel) == {"lengthscale": "median"}

    @pytest.mark.parametrize("wrong", ["gaussian", Orbit()], ids=str)
    def test_error_names_a_kernel_of_the_wrong_kind(self, rng, wrong):
        with pytest.raises(InputError, match="kernel"):
            self.create(kernel=wrong).fit(rng.random((6, 4)))

    def test_oracle_is_the_exact_kernel(self, rng):
        orb, X, move = self.case(rng, "cartesian")
        fitted = Exact(Gaussian(self.lengthscale), orb).fit(X)
        points = oracles.orbit_points(move, fitted.orbit_.elements_, X)
        expected = oracles.exact_gram(points, points, fitted.orbit_.weights_, self.lengthscale)
        np.testing.assert_allclose(fitted.gram(X), expected, atol=1e-10)


class FrequenciesContract(ComponentContract):
    """A rule that draws frequencies: shape, seed, and the kernel as the mean of cosines."""

    kind = "frequencies"

    def test_shape_and_seed(self):
        kernel = Gaussian(2.0).fit(np.zeros((1, 3)))
        draws = [self.create().draw(kernel, 5, 3, np.random.default_rng(seed)) for seed in (0, 0, 1)]
        assert draws[0].shape == (5, 3)
        assert draws[0].dtype == np.float64
        np.testing.assert_array_equal(draws[0], draws[1])
        assert np.abs(draws[0] - draws[2]).max() > 1e-3

    def test_mean_wave_is_the_kernel(self):
        kernel, size = Gaussian(2.0).fit(np.zeros((1, 3))), 40_000
        frequencies = self.create().draw(kernel, size, 3, np.random.default_rng(0))
        difference = np.array([1.0, -2.0, 0.5])
        waves = np.cos(frequencies @ difference)
        expected = oracles.gaussian(difference, np.zeros(3), 2.0)
        assert waves.mean() == pytest.approx(expected, abs=5 * waves.std() / np.sqrt(size))


class LandmarksContract(ComponentContract):
    """A rule that selects landmarks from the data or, with ``source="orbit"``, from its orbits."""

    kind = "landmarks"

    def select(self, X: np.ndarray, size: int, source: str, seed: int = 0) -> np.ndarray:
        orb = Orbit(Rotation("polar"), size=X.shape[-1]).fit(X)
        kernel = Gaussian(0.7).fit(X)
        return select(self.create(source=source), X, kernel, orb, Engine(), size, np.random.default_rng(seed))

    @pytest.mark.parametrize("source", ["data", "orbit"])
    def test_shape_seed_and_precision(self, rng, source):
        X = signals(rng, 9, (2, 5)).astype(np.float32)
        chosen = [self.select(X, 4, source, seed) for seed in (0, 0, 1)]
        assert chosen[0].shape == (4, 10)
        assert chosen[0].dtype == np.float32
        np.testing.assert_array_equal(chosen[0], chosen[1])
        assert np.abs(chosen[0] - chosen[2]).max() > 1e-3

    def test_size_above_the_number_of_candidates_gives_all(self, rng):
        X = signals(rng, 5, (2, 3))
        assert _rows(self.select(X, 99, "data")) == _rows(X.reshape(5, -1))
        turns = np.concatenate([np.roll(X, k, -1) for k in range(3)])
        assert _rows(self.select(X, 99, "orbit")) == _rows(turns.reshape(15, -1))


def _rows(array: np.ndarray) -> list[tuple[float, ...]]:
    return sorted(map(tuple, array.round(10)))


class HyperContract(TransformerContract):
    """A second layer on features."""

    kind = "hyper"
    rounding = 1e-10

    @pytest.fixture
    def X(self, rng):
        return rng.standard_normal((20, 6)) / 6**0.5
