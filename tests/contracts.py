"""What every component must do, by kind. A new component gets all of it by naming itself:

    class TestReflection(GroupContract):
        shape = (8, 8)

        def create(self):
            return Reflection()

A contract's class attributes say what kind of component it is; its tests say what follows. Classes here do not start
with ``Test``, so they run only through their subclasses.
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import warnings
from typing import Any, ClassVar

import numpy as np
import oracles
import pytest
import torch
from samples import signals, smooth_images
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

import orbit
from orbit.approx import Exact
from orbit.core.errors import InputError, ParameterError
from orbit.core.params import parameters
from orbit.data import Dataset
from orbit.distributions import Delta, Haar, VonMises
from orbit.engine import Engine
from orbit.groups import Group, Identity, Rotation
from orbit.groups.domains import Circle, Domain, wrap
from orbit.kernels import Gaussian
from orbit.orbits import Orbit

FLOATS = (np.float32, np.float64)


@contextlib.contextmanager
def no_warnings():
    """Any warning is an error; torch, which warns once a process of tensors over read-only memory, warns each time."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        torch.set_warn_always(before)


def leaves(contract: type) -> list[type]:
    """The classes that inherit a contract and that no other class inherits."""
    direct = contract.__subclasses__()
    return [leaf for cls in direct for leaf in leaves(cls)] if direct else [contract]


class ComponentContract:
    """A value object: registered by name, cloned, pickled, searched over."""

    kind: ClassVar[str]

    def create(self) -> Any:
        raise NotImplementedError

    def test_is_registered_under_its_name(self):
        component = self.create()
        assert component.kind == self.kind
        assert orbit.get(self.kind, component.name) is type(component)

    def test_default_parameters_are_allowed_by_the_signature(self):
        defaults = type(self.create())()
        for name, parameter in parameters(type(defaults)).items():
            assert getattr(defaults, name) is parameter.default, "the constructor only stores"

    def test_every_parameter_is_annotated(self):
        for name, parameter in parameters(type(self.create())).items():
            assert parameter.annotation is not Any, name

    def test_clone_and_pickle_keep_the_parameters(self):
        component = self.create()
        for copied in (clone(component), pickle.loads(pickle.dumps(component))):
            assert copied is not component
            assert repr(copied) == repr(component)

    def test_an_unknown_parameter_is_refused_by_build(self):
        name = self.create().name
        with pytest.raises(InputError, match=f"{self.kind}={name} has no parameter 'nonsense'"):
            orbit.build(self.kind, name, nonsense=1)


# ---- groups ----------------------------------------------------------------------------------------------------------


class GroupContract(ComponentContract):
    """The axioms, the action and its adjoint.

    Attributes
    ----------
    shape : shape of a point
    composes_exactly : whether ``(g h) x = g (h x)`` to rounding; else up to ``composition_error`` (a share of the
        largest value) on ``smooth_points``
    wrong_shapes : shapes the group must refuse
    """

    kind = "group"
    shape: ClassVar[tuple[int, ...]] = (8, 8)
    composes_exactly: ClassVar[bool] = True
    composition_error: ClassVar[float] = 0.05
    wrong_shapes: ClassVar[list[tuple[int, ...]]] = []

    def create(self) -> Group:
        raise NotImplementedError

    def points(self, rng, n: int = 4) -> np.ndarray:
        return rng.standard_normal((n, *self.shape))

    def smooth_points(self, rng, n: int = 4) -> np.ndarray:
        return smooth_images(rng, n, *self.shape[:2], blob=min(self.shape[:2]) / 8)

    def elements(self, seed: int, r: int = 5) -> np.ndarray:
        """Elements drawn from the group's own default distribution."""
        blank = np.zeros((1, *self.shape))
        return Orbit(self.create(), size=r, rule="monte_carlo", random_state=seed).fit(blank).elements_

    def assert_same(self, left: np.ndarray, right: np.ndarray) -> None:
        difference = np.subtract(left, right)
        if isinstance(self.create().domain, Circle):
            difference = wrap(difference)
        assert np.abs(difference).max() < 1e-12

    def test_identity_is_neutral(self):
        group, g = self.create(), self.elements(0)
        self.assert_same(group.compose(group.identity(), g), g)
        self.assert_same(group.compose(g, group.identity()), g)

    def test_inverses_cancel_on_both_sides(self):
        group, g = self.create(), self.elements(0)
        identity = np.broadcast_to(group.identity(), g.shape)
        self.assert_same(group.compose(g, group.inverse(g)), identity)
        self.assert_same(group.compose(group.inverse(g), g), identity)
        self.assert_same(group.inverse(group.inverse(g)), g)

    def test_composition_is_associative(self):
        group = self.create()
        f, g, h = self.elements(0), self.elements(1), self.elements(2)
        self.assert_same(group.compose(group.compose(f, g), h), group.compose(f, group.compose(g, h)))

    def test_composition_and_inverse_stay_in_the_group(self):
        group, g, h = self.create(), self.elements(0), self.elements(1)
        for element in (group.compose(g, h), group.inverse(g)):
            assert element.shape == g.shape
            assert element.dtype == np.float64
            if isinstance(group.domain, Circle):
                assert np.all((element >= -np.pi) & (element < np.pi))

    def test_identity_acts_trivially(self, rng):
        group, X = self.create(), self.points(rng)
        np.testing.assert_allclose(group.act(group.identity(), X)[0], X, atol=1e-12)

    def test_acting_twice_is_acting_by_the_composition(self, rng):
        group, g, h = self.create(), self.elements(0), self.elements(1)
        X = self.points(rng) if self.composes_exactly else self.smooth_points(rng)
        tolerance = 1e-10 if self.composes_exactly else self.composition_error * np.abs(X).max()
        at_once = group.act(group.compose(g, h), X)
        for i in range(len(g)):
            one_by_one = group.act(g[i : i + 1], group.act(h[i : i + 1], X)[0])[0]
            np.testing.assert_allclose(at_once[i], one_by_one, atol=tolerance)

    def test_action_is_linear(self, rng):
        group, g = self.create(), self.elements(0)
        X, Z = self.points(rng), self.points(rng)
        np.testing.assert_allclose(
            group.act(g, 2 * X - 3 * Z), 2 * group.act(g, X) - 3 * group.act(g, Z), atol=1e-12 * 10
        )

    def test_every_element_acts_on_every_point(self, rng):
        group, g, X = self.create(), self.elements(0, r=3), self.points(rng, n=4)
        moved = group.act(g, X)
        assert moved.shape == (len(g), 4, *self.shape)
        for i in range(len(g)):
            for j in range(4):
                np.testing.assert_allclose(moved[i, j], group.act(g[i : i + 1], X[j : j + 1])[0, 0], atol=1e-13)

    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("method", ["act", "adjoint"])
    def test_arrays_and_tensors_come_back_as_they_went_in(self, rng, method, dtype):
        g, X = self.elements(0), self.points(rng).astype(dtype)
        apply = getattr(self.create(), method)
        array, tensor = apply(g, X), apply(g, torch.from_numpy(X))
        assert isinstance(array, np.ndarray)
        assert array.dtype == dtype
        assert isinstance(tensor, torch.Tensor)
        assert tensor.dtype == torch.from_numpy(X).dtype
        np.testing.assert_array_equal(array, tensor.numpy())

    def test_float32_is_near_float64(self, rng):
        group, g, X = self.create(), self.elements(0), self.points(rng)
        np.testing.assert_allclose(group.act(g, X.astype(np.float32)), group.act(g, X), atol=2e-5)

    def test_any_memory_layout_will_do_and_input_is_left_alone(self, rng):
        group, g, X = self.create(), self.elements(0), self.points(rng, n=6)
        expected, before = group.act(g, X), X.copy()
        read_only = X.copy()
        read_only.flags.writeable = False
        with no_warnings():
            np.testing.assert_array_equal(group.act(g, read_only), expected)
            np.testing.assert_array_equal(group.act(g, np.asfortranarray(X)), expected)
            np.testing.assert_array_equal(group.act(g, read_only[::-2]), expected[:, ::-2])
        np.testing.assert_array_equal(X, before)

    def test_adjoint_satisfies_its_definition(self, rng):
        group, g = self.create(), self.elements(0)
        X, W = self.points(rng, n=5), self.points(rng, n=3)
        moved = group.act(g, X).reshape(len(g), 5, -1)
        back = group.adjoint(g, W).reshape(len(g), 3, -1)
        left = np.einsum("wd,rnd->rwn", W.reshape(3, -1), moved)
        right = np.einsum("rwd,nd->rwn", back, X.reshape(5, -1))
        np.testing.assert_allclose(left, right, atol=1e-10)
        assert np.abs(left).max() > 1, "both sides are far from zero"

    def test_is_unitary_is_true_exactly_where_inner_products_are_kept(self, rng):
        group, g, X = self.create(), self.elements(0, r=8), self.points(rng)
        moved = group.act(g, X).reshape(len(g), len(X), -1)
        flat = X.reshape(len(X), -1)
        change = np.abs(np.einsum("rnd,rmd->rnm", moved, moved) - flat @ flat.T).max()
        if group.is_unitary(self.shape):
            assert change < 1e-10
            np.testing.assert_allclose(group.adjoint(g, X), group.act(group.inverse(g), X), atol=1e-10)
        else:
            assert change > 1e-6

    def test_wrong_shapes_are_refused_with_group_and_shape(self, rng):
        group = self.create()
        for shape in self.wrong_shapes:
            found = f"vectors of length {shape[0]}" if len(shape) == 1 else str(shape)
            for apply in (group.act, group.adjoint):
                with pytest.raises(InputError) as error:
                    apply(group.identity(), np.zeros((2, *shape)))
                assert f"group={group.name}" in str(error.value)
                assert found in str(error.value)

    def test_defaults_make_an_orbit(self):
        group = self.create()
        fitted = Orbit(group).fit(np.zeros((1, *self.shape)))
        assert 1 <= len(fitted.weights_) <= group.default_size
        assert fitted.weights_.sum() == pytest.approx(1)

    def test_elements_describe_themselves(self):
        group = self.create()
        texts = {group.describe(element) for element in group.identity()}
        assert all(isinstance(text, str) and text for text in texts)


# ---- distributions ---------------------------------------------------------------------------------------------------


class DistributionContract(ComponentContract):
    """A probability distribution on the circle: density, inverse distribution function and quadrature agree.

    Attributes
    ----------
    has_density : False for point masses
    """

    kind = "distribution"
    domain: ClassVar[Domain] = Circle()
    has_density: ClassVar[bool] = True
    seed: ClassVar[int] = 0

    @pytest.mark.parametrize("size", [1, 2, 3, 8, 33])
    @pytest.mark.parametrize("phase", [0.0, 0.3])
    def test_quadrature_weights_are_a_distribution(self, size, phase):
        nodes, weights = self.create().quadrature(self.domain, size, phase)
        assert nodes.shape == weights.shape
        assert 1 <= len(nodes) <= size
        assert np.all(np.isfinite(nodes))
        assert np.all(weights >= 0)
        assert weights.sum() == pytest.approx(1, abs=1e-12)

    def test_density_is_normalised_to_haar_measure(self):
        if not self.has_density:
            pytest.skip("a point mass has no density")
        n = 1_000_000
        angles = -np.pi + (np.arange(n) + 0.5) * 2 * np.pi / n
        density = self.create().density(self.domain, angles)
        assert np.all(density >= 0)
        assert density.mean() == pytest.approx(1, abs=1e-5)

    def test_samples_follow_the_density(self):
        if not self.has_density:
            pytest.skip("a point mass has no density")
        grid = np.linspace(-np.pi, np.pi, 200_001)
        middles = (grid[1:] + grid[:-1]) / 2
        cdf = np.concatenate([[0], np.cumsum(self.create().density(self.domain, middles))])
        samples = self.create().ppf(self.domain, np.random.default_rng(self.seed).random(1000))
        result = stats.kstest(wrap(samples), lambda t: np.interp(t, grid, cdf / cdf[-1]))
        assert result.pvalue > 1e-3

    def test_inverse_distribution_function_rises_over_the_half_open_unit_interval(self):
        u = np.concatenate([[0.0], np.linspace(1e-9, 1 - 1e-9, 101), [1 - 2**-53]])
        values = self.create().ppf(self.domain, u)
        assert values.shape == u.shape
        assert np.all(np.isfinite(values)), f"not finite at u={u[~np.isfinite(values)]}"
        assert np.all(np.diff(values[1:]) >= 0)

    def test_quadrature_integrates_what_samples_average(self):
        nodes, weights = self.create().quadrature(self.domain, 64, 0.0)
        samples = self.create().ppf(self.domain, (np.arange(400) + 0.5) / 400)  # the midpoint rule in u
        for k in (1, 2, 3):
            for wave in (np.cos, np.sin):
                assert weights @ wave(k * nodes) == pytest.approx(wave(k * samples).mean(), abs=2e-3)

    def test_quadrature_integrates_against_the_density(self):
        if not self.has_density:
            pytest.skip("a point mass has no density")
        nodes, weights = self.create().quadrature(self.domain, 64, 0.0)
        n = 1_000_000
        angles = -np.pi + (np.arange(n) + 0.5) * 2 * np.pi / n
        density = self.create().density(self.domain, angles)
        for k in (1, 2, 3):
            assert weights @ np.cos(k * nodes) == pytest.approx((density * np.cos(k * angles)).mean(), abs=1e-5)

    def test_is_accepted_on_the_trivial_group(self):
        fitted = Orbit(Identity(), self.create(), size=7).fit(np.zeros((1, 3)))
        np.testing.assert_array_equal(fitted.weights_, [1.0])

    def test_an_undefined_pair_is_refused_with_both_names(self):
        with pytest.raises(InputError) as error:
            Orbit(_Elsewhere(), self.create()).check()
        for part in (f"distribution={self.create().name}", "group=elsewhere", "a place no distribution knows"):
            assert part in str(error.value)


class _UnknownDomain(Domain):
    def __str__(self) -> str:
        return "a place no distribution knows"


class _Elsewhere(Identity):
    """A group whose domain is no distribution's."""

    name = "elsewhere"
    domain = _UnknownDomain()  # type: ignore[assignment]


# ---- orbit rules -----------------------------------------------------------------------------------------------------


class OrbitRuleContract:
    """Weights and elements that average over q.

    Attributes
    ----------
    rule : name of the rule
    moment_error : of E cos(t) for von Mises with concentration 2 by 64 elements
    """

    rule: ClassVar[str]
    moment_error: ClassVar[float]
    X = np.zeros((2, 6, 6))

    def fitted(self, q=None, **params) -> Orbit:
        params = {"size": 64, "random_state": 0, **params}
        return Orbit(Rotation(), q, rule=self.rule, **params).fit(self.X)

    @pytest.mark.parametrize("size", [1, 5, 64])
    @pytest.mark.parametrize("q", [Haar(), VonMises(0.2), VonMises(9.0), Delta()], ids=repr)
    def test_weights_are_a_distribution(self, q, size):
        fitted = self.fitted(q, size=size)
        assert len(fitted.elements_) == len(fitted.weights_) <= size
        assert fitted.weights_.dtype == np.float64
        assert np.all(fitted.weights_ >= 0)
        assert fitted.weights_.sum() == pytest.approx(1, abs=1e-12)

    def test_averages_over_q(self):
        fitted = self.fitted(VonMises(2.0))
        expected = 0.6977746579640077  # I_1(2) / I_0(2)
        assert fitted.weights_ @ np.cos(fitted.elements_) == pytest.approx(expected, abs=self.moment_error)

    def test_same_seed_same_orbit(self):
        one, two = self.fitted(random_phase=True), self.fitted(random_phase=True)
        other = self.fitted(random_phase=True, random_state=1)
        np.testing.assert_array_equal(one.elements_, two.elements_)
        assert np.abs(one.elements_ - other.elements_).max() > 1e-6

    def test_delta_is_the_identity(self):
        np.testing.assert_array_equal(self.fitted(Delta()).elements_, 0)

    def test_group_that_does_not_act_on_the_points_is_refused(self):
        with pytest.raises(InputError, match="group=rotation acts on images.*vectors of length 3"):
            Orbit(Rotation(), rule=self.rule).fit(np.zeros((2, 3)))

    def test_parameters_are_left_alone(self):
        params = Orbit(Rotation(), VonMises(1.0), size=3, rule=self.rule)
        before = repr(params)
        params.fit(self.X)
        assert repr(params) == before
        assert params.group_ is not params.group


# ---- kernels ---------------------------------------------------------------------------------------------------------


class KernelContract(ComponentContract):
    """Values, tiles, and the spectrum of those that have one. ``create`` gives one that needs no data."""

    kind = "kernel"
    n_features: ClassVar[int] = 5

    def evaluate(self, x: np.ndarray, z: np.ndarray) -> float:
        """k(x, z) by its formula."""
        raise NotImplementedError

    def oracle(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.array([[self.evaluate(x, z) for z in Z] for x in X])

    @pytest.fixture
    def X(self, rng):
        return rng.standard_normal((9, self.n_features))

    @pytest.fixture
    def Z(self, rng):
        return rng.standard_normal((7, self.n_features)) + 0.3

    def test_gram_is_the_formula(self, X, Z):
        np.testing.assert_allclose(self.create().gram(X, Z), self.oracle(X, Z), rtol=1e-10, atol=1e-12)

    def test_gram_is_symmetric_positive_semidefinite(self, X):
        K = self.create().gram(X)
        np.testing.assert_allclose(K, K.T, atol=1e-13)
        assert np.linalg.eigvalsh(K).min() > -1e-12
        np.testing.assert_allclose(K, self.create().gram(X, X), atol=1e-13)

    def test_points_of_any_shape_are_flattened(self, X):
        np.testing.assert_array_equal(self.create().gram(X[..., None]), self.create().gram(X))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_columns_come_in_any_pieces(self, X, Z, dtype):
        A, B = torch.from_numpy(X).to(dtype), torch.from_numpy(Z).to(dtype)
        columns = self.create().fit(X).against(B)
        whole = torch.empty(len(A), len(B), dtype=dtype)
        given_back = columns(A, slice(0, len(B)), whole)
        assert given_back.data_ptr() == whole.data_ptr()
        np.testing.assert_allclose(whole, self.oracle(X, Z), atol=1e-12 if dtype == torch.float64 else 1e-5)
        for rows, part in ((slice(0, 4), slice(0, 3)), (slice(4, 9), slice(3, 7))):
            piece = columns(A[rows], part, torch.empty(rows.stop - rows.start, part.stop - part.start, dtype=dtype))
            np.testing.assert_allclose(piece, whole[rows, part], atol=1e-12 if dtype == torch.float64 else 1e-6)

    def test_far_from_the_origin_float32_keeps_its_digits(self, X, Z):
        shift = 100.0
        A, B = (torch.from_numpy((P + shift).astype(np.float32)) for P in (X, Z))
        columns = self.create().fit(X).against(B)
        expected = self.oracle(A.double().numpy(), B.double().numpy())
        np.testing.assert_allclose(columns(A, slice(0, len(B)), torch.empty(len(A), len(B))), expected, atol=2e-4)

    def test_fit_changes_no_parameter(self, X):
        kernel = self.create()
        before = repr(kernel)
        kernel.gram(X)
        kernel.fit(X, 0)
        assert repr(kernel) == before

    def test_spectrum_averages_to_the_kernel(self, X, Z):
        kernel = self.create().fit(X)
        if not kernel.has_spectrum:
            with pytest.raises(InputError, match=f"kernel={kernel.name} is not shift invariant"):
                kernel.sample_spectrum(3, self.n_features, np.random.default_rng(0))
            return
        size = 40_000
        frequencies = kernel.sample_spectrum(size, self.n_features, np.random.default_rng(0))
        assert frequencies.shape == (size, self.n_features)
        for x, z in zip(X, Z, strict=False):
            waves = np.cos(frequencies @ (x - z))
            assert waves.mean() == pytest.approx(self.evaluate(x, z), abs=5 * waves.std() / np.sqrt(size) + 1e-12)

    @pytest.mark.parametrize(
        ("group", "shape"),
        [(Identity(), (3, 5)), (Rotation("polar"), (3, 5)), (Rotation("polar"), (3, 6)), (Rotation(), (6, 6))],
        ids=str,
    )
    def test_invariance_is_claimed_only_where_it_holds(self, rng, group, shape):
        kernel = self.create()
        if not kernel.is_invariant_under(group, shape):
            return
        X = rng.standard_normal((5, *shape))
        moved = group.act(np.array([0.7]) if isinstance(group, Rotation) else group.identity(), X)[0]
        np.testing.assert_allclose(kernel.gram(moved), kernel.gram(X), atol=1e-10)


class OperatorKernelContract(ComponentContract):
    """Exact signatures against sampled and differentiated ones, factors, positive matrices."""

    kind = "operator_kernel"
    n_features: ClassVar[int] = 3

    def evaluate(self, delta: np.ndarray) -> np.ndarray:
        """K0(delta) for a Gaussian base of lengthscale 1.3, by its formula."""
        raise NotImplementedError

    @pytest.fixture
    def delta(self, rng):
        return np.concatenate([np.zeros((1, self.n_features)), rng.standard_normal((6, self.n_features))])

    def test_signature_is_the_formula(self, delta):
        kernel = self.create().fit(delta)
        np.testing.assert_allclose(kernel.signatures(delta), [self.evaluate(x) for x in delta], atol=1e-13)

    def test_waves_average_to_the_signature(self, delta):
        kernel, size = self.create().fit(delta), 40_000
        W = kernel.base_.sample_spectrum(size, self.n_features, np.random.default_rng(0))
        A = kernel.spectral_matrices(W)
        for x, exact in zip(delta, kernel.signatures(delta), strict=True):
            draws = np.cos(W @ x)[:, None, None] * A
            np.testing.assert_array_less(abs(draws.mean(0) - exact), 5 * draws.std(0) / np.sqrt(size) + 1e-12)

    def test_gram_is_symmetric_positive_semidefinite(self, delta):
        K = self.create().fit(delta).gram(delta)
        assert K.shape == (len(delta) * self.n_features,) * 2
        np.testing.assert_allclose(K, K.T, atol=1e-12)
        assert np.linalg.eigvalsh(K).min() > -1e-10

    def test_a_base_without_spectrum_is_refused(self):
        kernel = self.create().set_params(base="polynomial", lengthscale=1.0)
        with pytest.raises(InputError, match="lengthscale|not shift invariant"):
            kernel.check()

    def test_fit_changes_no_parameter(self, delta):
        kernel = self.create()
        before = repr(kernel)
        kernel.fit(delta, 0)
        assert repr(kernel) == before


# ---- feature maps ----------------------------------------------------------------------------------------------------


class FeatureMapContract(ComponentContract):
    """Averaging over the orbit, precision, seeds, tiles, errors.

    A subclass gives ``create(**params)``, a small map with a fixed seed unless ``params`` say otherwise, and its
    features and their inner products by plain formulas, ``evaluate`` and ``expected_gram``.

    Attributes
    ----------
    gram_error : largest error of inner products against the exact orbit-averaged kernel for the points of ``case``
    for_gram : parameters for that comparison
    random : whether another seed gives other features
    """

    kind = "approx"
    gram_error: ClassVar[float]
    for_gram: ClassVar[dict[str, Any]] = {}
    random: ClassVar[bool] = True

    settings: ClassVar[dict[str, tuple[Any, tuple[int, ...], Any]]] = {
        "plain": (None, (4, 5), None),
        "cartesian": (Rotation(), (5, 6), oracles.rotate),
        "polar-odd": (Rotation("polar"), (3, 7), oracles.turn),
        "polar-even": (Rotation("polar"), (3, 8), oracles.turn),
    }

    def evaluate(self, fitted, points: np.ndarray, points_fit: np.ndarray) -> np.ndarray:
        """Features by plain formulas, from orbit points ``(r, n, d)`` of the points to map and of those fitted on."""
        raise NotImplementedError

    def expected_gram(self, fitted, points: np.ndarray) -> np.ndarray:
        """What inner products approximate, by plain formulas, from orbit points ``(r, n, d)``."""
        raise NotImplementedError

    def orbit(self, group, **params) -> Orbit:
        return Orbit(group, VonMises(0.8), **{"size": 5, **params})

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
        turned = group.act([2 * np.pi * 2 / n_angles], X)[0]

        def change(orb) -> float:
            fitted = self.create(orbit=orb).fit(X)
            return float(np.abs(fitted.transform(turned) - fitted.transform(X)).max())

        assert change(Orbit(group, Haar(), size=n_angles)) < 1e-10
        assert change(Orbit(group, Haar(), size=n_angles, random_phase=True)) < 1e-10
        assert change(None) > 1e-2
        assert change(Orbit(group, VonMises(20.0), size=n_angles)) > 1e-2

    @pytest.mark.parametrize("orb", [Orbit(Rotation(), Delta()), Orbit(Identity(), Haar(), size=9), Orbit()], ids=repr)
    def test_without_averaging_every_orbit_is_the_base_map(self, rng, orb):
        X = signals(rng, 8, (5, 6))
        expected = self.create().fit(X).transform(X)
        np.testing.assert_allclose(self.create(orbit=orb).fit(X).transform(X), expected, atol=1e-10)

    def test_columns_are_named_and_counted(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        fitted = self.create(orbit=orb).fit(X)
        names = fitted.get_feature_names_out()
        assert fitted.transform(X).shape == (len(X), len(names))
        assert len(set(names)) == len(names)

    def test_points_are_mapped_one_by_one(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        fitted = self.create(orbit=orb).fit(X)
        whole = fitted.transform(X)
        np.testing.assert_allclose(
            np.concatenate([fitted.transform(X[i : i + 1]) for i in range(8)]), whole, atol=1e-11
        )
        np.testing.assert_allclose(fitted.transform(X[::-1])[::-1], whole, atol=1e-11)

    def test_input_is_left_alone(self, rng):
        self.leaves_input_alone(rng)

    def leaves_input_alone(self, rng, **params):
        orb, X, _ = self.case(rng, "cartesian")
        X.flags.writeable = False
        before = X.copy()
        with no_warnings():
            self.create(orbit=orb, **params).fit_transform(X)
        np.testing.assert_array_equal(X, before)

    @pytest.mark.parametrize(
        "params",
        [
            {"workers": 1},
            {"workers": 2},
            {"workers": 3},
            {"workers": 2, "memory": 1e-4},
            {"workers": 1, "memory": 1e-6},
        ],
        ids=str,
    )
    def test_engine_settings_change_rounding_only(self, rng, params):
        X = signals(rng, 25, (5, 6))
        make = lambda **p: self.create(orbit=self.orbit(Rotation(), size=9), engine=Engine(**p))  # noqa: E731
        expected = make(workers=1, memory=1.0).fit(X[:8]).transform(X)
        np.testing.assert_allclose(make(**params).fit(X[:8]).transform(X), expected, atol=1e-11)

    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("given", FLOATS)
    def test_engine_precision_wins_over_the_data(self, rng, given, dtype):
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

    def test_an_orbit_keeps_a_seed_of_its_own(self, rng):
        _, X, _ = self.case(rng, "polar-even")
        orb = self.orbit(Rotation("polar"), rule="monte_carlo", random_state=3)
        one, two = (self.create(orbit=orb, random_state=seed).fit(X) for seed in (7, 8))
        np.testing.assert_array_equal(one.orbit_.elements_, two.orbit_.elements_)

    def test_fit_freezes_everything_and_changes_no_parameter(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        orb.set_params(rule="monte_carlo")
        feature_map = self.create(orbit=orb)
        before, state = repr(feature_map), copy.deepcopy(vars(orb))
        fitted = feature_map.fit(X)
        assert repr(fitted) == before
        assert vars(orb).keys() == state.keys()
        np.testing.assert_array_equal(fitted.transform(X), fitted.transform(X))

    def test_a_fitted_map_pickles(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        fitted = self.create(orbit=orb).fit(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))

    def test_a_group_that_does_not_act_on_the_points_is_refused(self):
        with pytest.raises(InputError, match="group=rotation acts on images.*vectors of length 7"):
            self.create(orbit=Orbit(Rotation())).fit(np.ones((4, 7)))

    def test_points_of_another_shape_are_refused_after_fit(self, rng):
        fitted = self.create().fit(rng.random((6, 4, 5)))
        with pytest.raises(ValueError, match=r"\(4, 5\).*\(4, 4\)|\(4, 4\).*\(4, 5\)|4 features|5 features"):
            fitted.transform(rng.random((6, 4, 4)))

    def test_not_fitted_is_said(self, rng):
        with pytest.raises(NotFittedError):
            self.create().transform(rng.random((6, 4)))

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_values_that_are_not_finite_are_refused(self, rng, bad):
        X = rng.random((6, 4, 5))
        fitted = self.create().fit(X)
        X[2, 1, 1] = bad
        for call in (self.create().fit, fitted.transform):
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                call(X)

    def test_q_that_is_not_defined_on_the_group_is_refused_before_the_data_is_seen(self):
        with pytest.raises(InputError, match="distribution=von_mises is not defined on group=elsewhere"):
            self.create(orbit=self.orbit(_Elsewhere())).check()

    @pytest.mark.parametrize(
        ("part", "wrong"),
        [("orbit", Rotation()), ("engine", 4), ("random_state", "seed")],
        ids=str,
    )
    def test_a_part_of_the_wrong_kind_is_named(self, rng, part, wrong):
        with pytest.raises(InputError, match=part):
            self.create(**{part: wrong}).fit(rng.random((6, 4)))


class KernelMapContract(FeatureMapContract):
    """Maps of a base kernel, given or Gaussian. ``create`` gives one of the fixed lengthscale.

    Attributes
    ----------
    lengthscale : for points of mean norm one
    """

    lengthscale: ClassVar[float] = 0.7
    for_gram = {"kernel": Gaussian(2.0)}  # wide, so that a few landmarks see all points

    def expected_gram(self, fitted, points: np.ndarray) -> np.ndarray:
        return oracles.exact_gram(points, points, fitted.orbit_.weights_, self.for_gram["kernel"].lengthscale)

    def test_the_median_lengthscale_is_settled_once_on_the_data(self, rng):
        orb, X, _ = self.case(rng, "cartesian")
        automatic = self.create(orbit=orb, kernel=Gaussian("median")).fit(X)
        distances = [np.linalg.norm(X[i] - X[j]) for i in range(8) for j in range(i)]
        assert automatic.kernel_.lengthscale_ == pytest.approx(np.median(distances))
        by_hand = self.create(orbit=orb, kernel=Gaussian(automatic.kernel_.lengthscale_)).fit(X)
        A, B = automatic.transform(X), by_hand.transform(X)
        np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-10)

    def test_input_is_left_alone_by_the_median(self, rng):
        self.leaves_input_alone(rng, kernel=Gaussian("median"))

    def test_fit_leaves_the_kernel_alone(self, rng):
        kernel = Gaussian("median")
        self.create(kernel=kernel).fit(self.case(rng, "plain")[1])
        assert vars(kernel) == {"lengthscale": "median"}

    @pytest.mark.parametrize("wrong", ["gaussian", Orbit()], ids=str)
    def test_a_kernel_of_the_wrong_kind_is_named(self, rng, wrong):
        with pytest.raises(InputError, match="kernel"):
            self.create(kernel=wrong).fit(rng.random((6, 4)))

    def test_exact_kernel_oracle_and_library_agree(self, rng):
        orb, X, move = self.case(rng, "cartesian")
        fitted = Exact(Gaussian(self.lengthscale), orb).fit(X)
        points = oracles.orbit_points(move, fitted.orbit_.elements_, X)
        expected = oracles.exact_gram(points, points, fitted.orbit_.weights_, self.lengthscale)
        np.testing.assert_allclose(fitted.gram(X), expected, atol=1e-10)


# ---- landmarks and frequencies ---------------------------------------------------------------------------------------


class FrequenciesContract(ComponentContract):
    """Rules that draw frequencies: shape, seeds, and that their waves average to the kernel."""

    kind = "frequencies"

    def test_shape_and_seed(self):
        kernel = Gaussian(2.0).fit(np.zeros((1, 3)))
        draws = [self.create().draw(kernel, 5, 3, np.random.default_rng(seed)) for seed in (0, 0, 1)]
        assert draws[0].shape == (5, 3)
        assert draws[0].dtype == np.float64
        np.testing.assert_array_equal(draws[0], draws[1])
        assert np.abs(draws[0] - draws[2]).max() > 1e-3

    def test_waves_average_to_the_kernel(self):
        kernel, size = Gaussian(2.0).fit(np.zeros((1, 3))), 40_000
        frequencies = self.create().draw(kernel, size, 3, np.random.default_rng(0))
        difference = np.array([1.0, -2.0, 0.5])
        waves = np.cos(frequencies @ difference)
        expected = oracles.gaussian(difference, np.zeros(3), 2.0)
        assert waves.mean() == pytest.approx(expected, abs=5 * waves.std() / np.sqrt(size))


class LandmarksContract(ComponentContract):
    """Rules that select landmarks from the data (or, with ``source="orbit"``, from its orbits)."""

    kind = "landmarks"

    def create(self, **params) -> Any:
        raise NotImplementedError

    def select(self, X: np.ndarray, size: int, source: str, seed: int = 0) -> np.ndarray:
        orb = Orbit(Rotation("polar"), size=X.shape[-1]).fit(X)
        kernel = Gaussian(0.7).fit(X)
        return self.create(source=source).select(X, kernel, orb, Engine(), size, np.random.default_rng(seed))

    @pytest.mark.parametrize("source", ["data", "orbit"])
    def test_shape_seed_and_precision(self, rng, source):
        X = signals(rng, 9, (2, 5)).astype(np.float32)
        chosen = [self.select(X, 4, source, seed) for seed in (0, 0, 1)]
        assert chosen[0].shape == (4, 10)
        assert chosen[0].dtype == np.float32
        np.testing.assert_array_equal(chosen[0], chosen[1])
        assert np.abs(chosen[0] - chosen[2]).max() > 1e-3

    def test_more_than_there_are_gives_all(self, rng):
        X = signals(rng, 5, (2, 3))
        assert _rows(self.select(X, 99, "data")) == _rows(X.reshape(5, -1))
        turns = np.concatenate([np.roll(X, k, -1) for k in range(3)])
        assert _rows(self.select(X, 99, "orbit")) == _rows(turns.reshape(15, -1))


def _rows(array: np.ndarray) -> list[tuple[float, ...]]:
    return sorted(map(tuple, array.round(10)))


# ---- representations -------------------------------------------------------------------------------------------------


class HyperContract(ComponentContract):
    """A second layer on features: keeps precision, maps point by point once fitted, and pickles."""

    kind = "hyper"

    @pytest.fixture
    def psi(self, rng):
        return rng.standard_normal((20, 6)) / 6**0.5

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_precision_is_kept(self, psi, dtype):
        assert self.create().fit_transform(psi.astype(dtype)).dtype == dtype

    def test_points_are_mapped_one_by_one(self, psi):
        fitted = self.create().fit(psi)
        one_by_one = np.concatenate([fitted.transform(x[None]) for x in psi])
        np.testing.assert_allclose(one_by_one, fitted.transform(psi), atol=1e-10)

    def test_a_fitted_one_pickles(self, psi):
        fitted = self.create().fit(psi)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(psi), fitted.transform(psi))


class RepresentationContract(ComponentContract):
    """scikit-learn transformers that keep precision and act on every point alone once fitted."""

    kind = "representation"
    shape: ClassVar[tuple[int, ...]] = (5,)

    @pytest.fixture
    def X(self, rng):
        return rng.random((7, *self.shape))

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_precision_is_kept(self, X, dtype):
        assert self.create().fit_transform(X.astype(dtype)).dtype == dtype

    def test_float32_is_near_float64(self, X):
        np.testing.assert_allclose(
            self.create().fit_transform(X.astype(np.float32)), self.create().fit_transform(X), atol=1e-5
        )

    def test_points_are_mapped_one_by_one(self, X):
        fitted = self.create().fit(X)
        whole = fitted.transform(X)
        assert len(whole) == len(X)
        np.testing.assert_allclose(np.concatenate([fitted.transform(x[None]) for x in X]), whole, atol=1e-12)

    def test_input_is_left_alone(self, X):
        X.flags.writeable = False
        before = X.copy()
        with no_warnings():
            self.create().fit_transform(X)
        np.testing.assert_array_equal(X, before)

    def test_blank_points_stay_finite(self, X):
        assert np.isfinite(self.create().fit_transform(np.zeros_like(X))).all()
        X[3] = 0
        assert np.isfinite(self.create().fit_transform(X)).all()

    def test_another_shape_is_refused_after_fit(self, X):
        with pytest.raises(ValueError, match=r"shape|features"):
            self.create().fit(X).transform(np.ones((2, self.shape[0] + 1, *self.shape[1:])))

    def test_not_fitted_is_said(self, X):
        with pytest.raises(NotFittedError):
            self.create().transform(X)

    def test_values_that_are_not_finite_are_refused(self, X):
        X.flat[4] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            self.create().fit(X)

    def test_a_fitted_one_pickles(self, X):
        fitted = self.create().fit(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))

    def test_the_group_behind_it_takes_its_parameters(self):
        group = Rotation(**{k: v for k, v in self.create().group_params.items() if k == "sampling"})
        group.check()


# ---- augmentation ----------------------------------------------------------------------------------------------------


class AugmentationContract(ComponentContract):
    """Random changes of points (n, *shape) that keep their shape and precision and come from the generator alone."""

    kind = "augmentation"
    shape: ClassVar[tuple[int, ...]] = (6, 5, 3)

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_shape_and_precision_are_kept_and_input_left_alone(self, rng, dtype):
        X = rng.random((4, *self.shape)).astype(dtype)
        before = X.copy()
        changed = self.create().apply(X, np.random.default_rng(0))
        assert (changed.shape, changed.dtype) == (X.shape, dtype)
        assert np.isfinite(changed).all()
        np.testing.assert_array_equal(X, before)

    def test_same_generator_same_changes(self, rng):
        X = rng.random((4, *self.shape))
        one, two = (self.create().apply(X, np.random.default_rng(3)) for _ in range(2))
        np.testing.assert_array_equal(one, two)


# ---- learners --------------------------------------------------------------------------------------------------------


class LearnerContract(ComponentContract):
    """Estimators that learn what a linear model can."""

    fixed: ClassVar[dict] = {"regularization": 0.1}  # parameters that leave nothing to choose
    within: ClassVar[float] = 1e-3  # of float64 in float32
    exactness: ClassVar[float] = 1e-8
    weighted_within: ClassVar[float] = 1e-8
    weights_repeat: ClassVar[bool] = True  # whether a weight of 2 is the same as a point that is there twice

    def create(self, **params) -> Any:
        raise NotImplementedError

    def seeded(self, seed: int, **params) -> Any:
        takes_seed = "random_state" in parameters(type(self.create()))
        return self.create(**({"random_state": seed} if takes_seed else {}), **params)

    def scores(self, fitted, X: np.ndarray) -> np.ndarray:
        method = ("decision_function", "predict_proba", "predict")
        return next(getattr(fitted, name) for name in method if hasattr(fitted, name))(X)

    def problem(self, rng, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def test_learns_what_a_linear_model_can(self, rng):
        X, y = self.problem(rng, 240)
        assert self.create().fit(X[:120], y[:120]).score(X[120:], y[120:]) > 0.85

    def test_same_seed_same_model(self, rng):
        X, y = self.problem(rng)
        one, two = (self.seeded(3).fit(X, y) for _ in range(2))
        np.testing.assert_array_equal(self.scores(one, X), self.scores(two, X))

    def test_a_fitted_one_pickles(self, rng):
        X, y = self.problem(rng)
        fitted = self.create().fit(X, y)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))

    def test_not_fitted_is_said(self, rng):
        with pytest.raises(NotFittedError):
            self.create().predict(self.problem(rng)[0])

    def test_float32_predicts_what_float64_predicts(self, rng):
        X, y = self.problem(rng)
        single_X = X.astype(np.float32)
        double, single = self.seeded(0).fit(X, y), self.seeded(0).fit(single_X, y)
        np.testing.assert_allclose(single.predict(single_X), double.predict(X), atol=self.within)

    def test_only_ratios_of_sample_weights_count_and_zero_leaves_out(self, rng):
        if not has_fit_parameter(self.create(), "sample_weight"):
            pytest.skip("takes no sample weights")
        X, y = self.problem(rng, 60)
        weights = rng.integers(0, 3, 60)
        fit = lambda X, y, w: self.seeded(0, **self.fixed).fit(X, y, sample_weight=w)  # noqa: E731
        expected = self.scores(fit(X, y, weights), X)
        if self.weights_repeat:
            expected = self.scores(fit(np.repeat(X, weights, axis=0), np.repeat(y, weights), None), X)
        assert np.abs(expected - self.scores(fit(X, y, None), X)).max() > 1e-3, "weights matter"
        for scale in (1, 10.0):
            np.testing.assert_allclose(self.scores(fit(X, y, scale * weights), X), expected, atol=self.weighted_within)


class PathContract:
    """Besides a learner's contract: one strength, given or chosen from a path on training data only.

    ``path`` are four values of the strength, not in order; ``size`` says how large the fitted function is.
    """

    path: ClassVar[list] = [1e-1, 1e-5, 10.0, 1e-3]

    def strength(self, value) -> dict[str, Any]:
        return {self.create().path_parameter: value}

    def size(self, fitted, X: np.ndarray) -> float:
        if hasattr(fitted, "coef_"):
            return float(np.linalg.norm(fitted.coef_))
        return float(self.scores(fitted, X).std())

    def test_given_strength_is_used(self, rng):
        value = min(self.path)
        learner = self.create(**self.strength(value)).fit(*self.problem(rng))
        assert getattr(learner, f"{learner.path_parameter}_") == value
        np.testing.assert_array_equal(learner.path_, [value])
        assert np.isnan(learner.path_scores_).all(), "one value needs no scores"

    def test_strength_is_the_best_of_the_path(self, rng):
        learner = self.seeded(0, **self.strength(self.path)).fit(*self.problem(rng))
        np.testing.assert_array_equal(learner.path_, sorted(self.path))
        assert learner.path_scores_.shape == (4,)
        best = learner.path_[learner.path_scores_ == learner.path_scores_.max()]
        assert getattr(learner, f"{learner.path_parameter}_") == best.max(), "the larger one of equals"

    def test_more_regularisation_gives_smaller_functions(self, rng):
        X, y = self.problem(rng)
        sizes = [self.size(self.create(**self.strength(value)).fit(X, y), X) for value in sorted(self.path)[1:]]
        assert sizes[0] > sizes[1] > sizes[2] > 0

    @pytest.mark.parametrize(
        ("value", "found"), [(0.0, "0.0"), (-1, "-1"), ("big", "'big'"), ([], r"\[\]"), ([0.1, 0.0], r"\[0.1, 0.0\]")]
    )
    def test_impossible_strengths_are_refused(self, rng, value, found):
        name = self.create().path_parameter
        with pytest.raises(ParameterError, match=f"^{name}: expected .*found {found}$"):
            self.create(**self.strength(value)).fit(*self.problem(rng))

    @pytest.mark.parametrize("fraction", [0.0, 1.0, 1.5])
    def test_impossible_validation_fractions_are_refused(self, fraction):
        if "validation_fraction" not in parameters(type(self.create())):
            pytest.skip("holds nothing out")
        with pytest.raises(ParameterError, match="validation_fraction"):
            self.create(validation_fraction=fraction).check()

    def test_a_path_is_predicted_as_by_a_fit_for_each_value(self, rng):
        X, y = self.problem(rng)
        learner = self.create()
        if not hasattr(learner, "path_predictions"):
            pytest.skip("has no short cut")
        weighted = has_fit_parameter(learner, "sample_weight")
        for weights in [{}, {"sample_weight": rng.random(120)}] if weighted else [{}]:
            found = list(learner.path_predictions(X, y, np.array(self.path), X[:7] + 0.1, **weights))
            for value, predicted in zip(self.path, found, strict=True):
                expected = self.create(**self.strength(value)).fit(X, y, **weights).predict(X[:7] + 0.1)
                assert predicted.dtype == expected.dtype
                if expected.dtype.kind == "f":
                    np.testing.assert_allclose(predicted, expected, atol=1e-8)
                else:
                    np.testing.assert_array_equal(predicted, expected)


class ClassifierContract(LearnerContract):
    kind = "classifier"

    def problem(self, rng, n: int = 120):
        centres = 2 * np.random.default_rng(5).standard_normal((3, 6))
        labels = rng.integers(0, 3, n)
        return centres[labels] + 0.7 * rng.standard_normal((n, 6)), labels

    @pytest.mark.parametrize("names", [[3, 8, 1], ["owl", "cat", "eel"], [2, 9], ["no", "yes"], [True, False]], ids=str)
    def test_any_labels_will_do(self, rng, names):
        X, labels = self.problem(rng)
        keep = labels < len(names)
        X, y = X[keep], np.array(names)[labels[keep]]
        classifier = self.create().fit(X, y)
        np.testing.assert_array_equal(classifier.classes_, np.unique(names))
        assert classifier.score(X, y) > 0.85
        if hasattr(classifier, "decision_function"):
            scores = classifier.decision_function(X)
            assert scores.shape == ((len(X), 3) if len(names) == 3 else (len(X),))
            chosen = scores.argmax(1) if len(names) == 3 else (scores > 0).astype(int)
            np.testing.assert_array_equal(classifier.classes_[chosen], classifier.predict(X))
        if hasattr(classifier, "predict_proba"):
            shares = classifier.predict_proba(X)
            np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)
            np.testing.assert_array_equal(classifier.classes_[shares.argmax(1)], classifier.predict(X))

    def test_one_class_is_refused(self, rng):
        with pytest.raises(ValueError, match="at least 2 classes, found one class"):
            self.create().fit(self.problem(rng)[0], np.zeros(120, dtype=int))

    def test_numbers_are_refused_as_labels(self, rng):
        with pytest.raises(ValueError, match="continuous"):
            self.create().fit(self.problem(rng)[0], rng.random(120))


class RegressorContract(LearnerContract):
    """
    Attributes
    ----------
    linear_in_targets : whether predictions are linear in the targets fitted to
    """

    kind = "regressor"
    linear_in_targets: ClassVar[bool] = True

    def problem(self, rng, n: int = 120):
        X = rng.standard_normal((n, 6))
        return X, X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0, 1.0]) + 4 + 0.1 * rng.standard_normal(n)

    def test_outputs_are_shaped_as_targets(self, rng):
        X, y = self.problem(rng)
        assert self.create().fit(X, y).predict(X).shape == y.shape
        Y = np.column_stack([y, 2 * y + 1])
        predicted = self.create(**self.fixed).fit(X, Y).predict(X)
        assert predicted.shape == Y.shape
        if self.linear_in_targets:
            np.testing.assert_allclose(predicted[:, 1], 2 * predicted[:, 0] + 1, atol=self.exactness)


# ---- selection -------------------------------------------------------------------------------------------------------


class SelectionContract(ComponentContract):
    """What settings are tried."""

    kind = "selection"

    def create(self, **params) -> Any:
        raise NotImplementedError

    def test_without_a_grid_nothing_is_tried(self):
        assert self.create().points() == []


class SplittingContract(SelectionContract):
    """Ways to split training points into some to fit to and some to judge by."""

    def data(self, n: int = 30) -> Dataset:
        X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2
        return Dataset("rows", "classification", X, y, X[:3] - 1, y[:3], "made here", folds=np.arange(n) % 3)

    def test_judges_are_training_points_kept_from_the_fit(self):
        splits = self.create().splits(self.data(), 0)
        assert splits
        for fit, judge in splits:
            assert len(judge) > 0
            assert sorted([*fit, *judge]) == list(range(30))
            part = self.data().split(fit, judge)
            assert not {tuple(x) for x in part.X_test} & {tuple(x) for x in self.data().X_test}, "never the test part"
            assert set(part.y_test) == {0, 1}

    def test_same_seed_same_splits(self):
        for one, two in zip(*(self.create().splits(self.data(), 4) for _ in range(2)), strict=True):
            np.testing.assert_array_equal(one[1], two[1])

    def test_points_are_all_combinations(self):
        grid = {"kernel.lengthscale": [1, 2], "approx": [{"name": "rf"}]}
        expected = [{"kernel.lengthscale": value, "approx": {"name": "rf"}} for value in (1, 2)]
        assert self.create(grid=grid).points() == expected

    @pytest.mark.parametrize("values", [[], 3, None])
    def test_a_key_without_values_is_refused(self, values):
        with pytest.raises(ParameterError, match=r"^grid.seed: expected a list of values to try, found"):
            self.create(grid={"seed": values}).check()


# ---- loaders ---------------------------------------------------------------------------------------------------------


class LoaderContract(ComponentContract):
    """Data sets: complete, finite, split by the seed, cut to size, without a test point in training."""

    kind = "dataset"
    sizes: ClassVar[tuple[int, int]]

    def create(self, **params) -> Any:
        raise NotImplementedError

    def test_loads_a_complete_data_set(self):
        data = self.create().load(0)
        assert (len(data.X_train), len(data.X_test)) == self.sizes
        assert data.X_train.shape[1:] == data.X_test.shape[1:]
        assert data.X_train.dtype == data.X_test.dtype
        assert data.X_train.dtype in FLOATS
        assert data.name == self.create().name
        assert data.source
        assert "\n" not in data.source
        for size in self.sizes:
            assert str(size) in data.describe()

    def test_task_and_representation_are_what_the_loader_says(self):
        loader = self.create()
        data = loader.load(0)
        assert loader.fixed_task in (None, data.task)
        if data.task == "classification":
            assert set(data.y_test) <= set(data.y_train)
        choice = dict(loader.default_representation)
        orbit.build("representation", choice.pop("name"), **choice).fit(data.X_train[:20])

    def test_same_seed_same_data(self):
        one, two = self.create(n_train=7, n_test=6).load(3), self.create(n_train=7, n_test=6).load(3)
        for part in ("X_train", "y_train", "X_test", "y_test"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part))

    def test_points_left_in_files_are_the_points(self):
        loader = self.create(n_train=7, n_test=6)
        held, left = loader.load(3), loader.load(3, lazy=True)
        for part in ("X_train", "y_train", "X_test", "y_test"):
            np.testing.assert_array_equal(np.asarray(getattr(left, part)), getattr(held, part))

    def test_subsets_are_drawn_by_the_seed_from_the_whole(self):
        whole, small, other = self.create().load(0), self.create(n_train=9, n_test=8).load(0), None
        other = self.create(n_train=9, n_test=8).load(1)
        assert small.X_train.shape == (9, *whole.X_train.shape[1:])
        assert small.y_test.shape[:1] == (8,)
        assert not np.array_equal(small.X_train, other.X_train)
        index = {x.tobytes(): i for i, x in enumerate(whole.X_train)}
        for x, y in zip(small.X_train, small.y_train, strict=True):
            assert np.array_equal(whole.y_train[index[x.tobytes()]], y)

    def test_no_test_point_is_in_training(self):
        data = self.create().load(0)
        assert not {x.tobytes() for x in data.X_train} & {x.tobytes() for x in data.X_test}

    def test_more_points_than_there_are_are_refused(self):
        n_train, n_test = self.sizes
        self.create(n_train=n_train, n_test=n_test).load(0)
        with pytest.raises(InputError, match=rf"dataset\.n_train: expected at most {n_train}.*found {n_train + 1}"):
            self.create(n_train=n_train + 1).load(0)
        with pytest.raises(InputError, match=rf"dataset\.n_test: expected at most {n_test}.*found {n_test + 1}"):
            self.create(n_test=n_test + 1).load(0)

    @pytest.mark.parametrize("size", [0, -3, 2.5, "all"])
    def test_impossible_sizes_are_refused(self, size):
        with pytest.raises(ParameterError, match="n_train: expected an integer >= 1 or null"):
            self.create(n_train=size).load(0)
