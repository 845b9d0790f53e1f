"""Contracts of groups: the axioms, the action and its adjoint."""

from typing import ClassVar

import numpy as np
import pytest
import torch

from orbit.approx import Exact, Nystrom, RandomFourier
from orbit.core.errors import InputError
from orbit.distributions import Haar
from orbit.groups.domains import Circle, wrap
from orbit.kernels import Gaussian
from orbit.orbits import Orbit
from orbit.testing.component import FLOATS, ComponentContract, no_warnings
from orbit.testing.samples import smooth_images


class GroupContract(ComponentContract):
    """Group axioms; an action ``act(elements, X)`` of shape ``(r, n, *shape)``; error messages.

    If the group is ``linear``, the action is, and has its adjoint.

    Attributes
    ----------
    shape : shape of an input
    composes_exactly : whether ``(g h) x = g (h x)`` up to rounding; if not, ``smooth_points`` satisfy it up to
        ``composition_error`` times their largest absolute value
    wrong_shapes : shapes the group must refuse

    Examples
    --------
    >>> import orbit
    >>> class TestColumnShifts(GroupContract):
    ...     component = orbit.groups.Cyclic
    ...     params = {"length": 6, "axis": 1}
    ...     shape = (4, 6)
    >>> TestColumnShifts().test_composition_is_associative()
    """

    kind = "group"
    shape: ClassVar[tuple[int, ...]] = (8, 8)
    composes_exactly: ClassVar[bool] = True
    composition_error: ClassVar[float] = 0.05
    wrong_shapes: ClassVar[list[tuple[int, ...]]] = []

    def points(self, rng, n: int = 4) -> np.ndarray:
        return rng.standard_normal((n, *self.shape))

    def smooth_points(self, rng, n: int = 4) -> np.ndarray:
        return smooth_images(rng, n, self.shape[0], self.shape[1], blob=min(self.shape[:2]) / 8)

    def elements(self, seed: int, r: int = 5) -> np.ndarray:
        """``r`` elements drawn from the group's default distribution."""
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

    def test_canonical_points_are_of_the_orbit_and_the_same_for_all_of_it(self, rng):
        group, X = self.create(), np.round(self.points(rng))  # with equal numbers, and zeros of both signs
        canonical = group.canonical(X)
        if canonical is None:
            pytest.skip("the group has no fast way to find them")
        for moved in group.act(self.elements(0), X):
            np.testing.assert_array_equal(group.canonical(moved), canonical)
        orbit = group.act(group.elements(), X)
        assert (orbit == canonical).reshape(*orbit.shape[:2], -1).all(-1).any(0).all()

    def test_action_is_linear(self, rng):
        group, g = self.create(), self.elements(0)
        X, Z = self.points(rng), self.points(rng)
        if not group.linear:
            with pytest.raises(InputError, match=f"group={group.name} does not act linearly, so it has no adjoint"):
                group.adjoint(g, X)
            return
        expected = 2 * group.act(g, X) - 3 * group.act(g, Z)
        np.testing.assert_allclose(group.act(g, 2 * X - 3 * Z), expected, atol=1e-11)

    def test_every_element_acts_on_every_point(self, rng):
        group, g, X = self.create(), self.elements(0, r=3), self.points(rng, n=4)
        moved = group.act(g, X)
        assert moved.shape == (len(g), 4, *self.shape)
        for i in range(len(g)):
            for j in range(4):
                np.testing.assert_allclose(moved[i, j], group.act(g[i : i + 1], X[j : j + 1])[0, 0], atol=1e-13)

    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("method", ["act", "adjoint"])
    def test_array_type_and_precision_are_kept(self, rng, method, dtype):
        group, g, X = self.create(), self.elements(0), self.points(rng).astype(dtype)
        if method == "adjoint" and not group.linear:
            pytest.skip("the group does not act linearly")
        apply = getattr(group, method)
        array, tensor = apply(g, X), apply(g, torch.from_numpy(X))
        assert isinstance(array, np.ndarray)
        assert array.dtype == dtype
        assert isinstance(tensor, torch.Tensor)
        assert tensor.dtype == torch.from_numpy(X).dtype
        np.testing.assert_array_equal(array, tensor.numpy())

    def test_float32_is_close_to_float64(self, rng):
        group, g, X = self.create(), self.elements(0), self.points(rng)
        np.testing.assert_allclose(group.act(g, X.astype(np.float32)), group.act(g, X), atol=2e-5)

    def test_any_memory_layout_is_accepted_and_input_not_modified(self, rng):
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
        if not group.linear:
            pytest.skip("the group does not act linearly")
        X, W = self.points(rng, n=5), self.points(rng, n=3)
        moved = group.act(g, X).reshape(len(g), 5, -1)
        back = group.adjoint(g, W).reshape(len(g), 3, -1)
        left = np.einsum("wd,rnd->rwn", W.reshape(3, -1), moved)
        right = np.einsum("rwd,nd->rwn", back, X.reshape(5, -1))
        np.testing.assert_allclose(left, right, atol=1e-10)
        assert np.abs(left).max() > 1, "both sides are far from zero"

    def test_is_unitary_if_and_only_if_inner_products_are_kept(self, rng):
        group, g, X = self.create(), self.elements(0, r=8), self.points(rng)
        moved = group.act(g, X).reshape(len(g), len(X), -1)
        flat = X.reshape(len(X), -1)
        change = np.abs(np.einsum("rnd,rmd->rnm", moved, moved) - flat @ flat.T).max()
        if group.is_unitary(self.shape):
            assert change < 1e-10
            np.testing.assert_allclose(group.adjoint(g, X), group.act(group.inverse(g), X), atol=1e-10)
        else:
            assert change > 1e-6

    def test_error_for_a_wrong_shape_names_group_and_shape(self, rng):
        group = self.create()
        for shape in self.wrong_shapes:
            found = f"vectors of length {shape[0]}" if len(shape) == 1 else str(shape)
            for apply in (group.act, *([group.adjoint] if group.linear else [])):
                with pytest.raises(InputError) as error:
                    apply(group.identity(), np.zeros((2, *shape)))
                assert f"group={group.name}" in str(error.value)
                assert found in str(error.value)

    def test_defaults_make_an_orbit(self):
        group = self.create()
        fitted = Orbit(group).fit(np.zeros((1, *self.shape)))
        assert 1 <= len(fitted.weights_) <= group.default_size
        assert fitted.weights_.sum() == pytest.approx(1)

    def test_elements_are_described(self):
        group = self.create()
        texts = {group.describe(element) for element in group.identity()}
        assert all(isinstance(text, str) and text for text in texts)


class FiniteGroupContract(GroupContract):
    """A group that lists its elements and moves entries of an input without interpolation.

    Examples
    --------
    >>> import orbit
    >>> class TestSquare(FiniteGroupContract):
    ...     component = orbit.groups.Dihedral
    ...     shape = (5, 5)
    >>> TestSquare().test_elements_are_the_whole_group()
    """

    def test_elements_are_the_whole_group(self):
        group = self.create()
        elements = group.elements()
        rows = elements.reshape(len(elements), -1)
        assert group.order == len(elements) == len(np.unique(rows, axis=0))
        np.testing.assert_array_equal(elements[:1], group.identity())
        known = {tuple(row) for row in rows}
        left, right = np.repeat(elements, len(elements), 0), np.concatenate([elements] * len(elements))
        assert {tuple(row) for row in group.compose(left, right).reshape(len(left), -1)} == known
        assert {tuple(row) for row in group.inverse(elements).reshape(len(elements), -1)} == known
        back = group.compose(elements, group.inverse(elements))
        np.testing.assert_array_equal(back, np.repeat(group.identity(), len(elements), 0))

    def test_action_reorders_exactly(self, rng):
        group = self.create()
        X = self.points(rng)
        moved = group.act(group.elements(), X)
        name = type(group).__name__
        assert group.is_unitary(self.shape), f"{name}.is_unitary: expected true, as reordering keeps norms"
        rows, found = X.reshape(1, len(X), -1), moved.reshape(len(moved), len(X), -1)
        is_sorted = bool((np.sort(found) == np.sort(rows)).all())
        assert group.permutes(self.shape) == is_sorted, f"{name}.permutes: expected {is_sorted}, as numbers reorder"
        magnitudes = np.sort(np.abs(found))  # of components of vectors, whose signs may change
        np.testing.assert_array_equal(magnitudes, np.broadcast_to(np.sort(np.abs(rows)), magnitudes.shape))
        g = group.elements()[rng.integers(group.order, size=9)]
        h = group.elements()[rng.integers(group.order, size=9)]
        for i in range(9):
            twice = group.act(g[i : i + 1], group.act(h[i : i + 1], X)[0])
            np.testing.assert_array_equal(group.act(group.compose(g[i : i + 1], h[i : i + 1]), X), twice)

    @pytest.mark.parametrize("approx", [RandomFourier, Nystrom, Exact])
    def test_features_by_full_enumeration_are_exactly_invariant(self, rng, approx):
        group = self.create()
        X = rng.random((6, *self.shape))
        orb = Orbit(group, Haar(), rule="quadrature")
        fitted = approx(Gaussian(1.5), orb, random_state=0).fit(X)
        assert fitted.orbit_.is_whole_group
        plain = approx(Gaussian(1.5), random_state=0).fit(X)
        change = {}
        for name, phi in (("invariant", fitted), ("plain", plain)):
            features = phi.transform(X)
            change[name] = max(
                np.abs(phi.transform(moved) - features).max() for moved in group.act(group.elements()[1:6], X)
            )
        assert change["invariant"] < 1e-10  # Nystrom and Exact divide by small eigenvalues
        assert change["plain"] > 1e-3
