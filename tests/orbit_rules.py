"""The contract of the rules that choose the elements of an orbit."""

from typing import ClassVar

import numpy as np
import pytest

from orbit import Delta, Haar, InputError, Orbit, Rotation, VonMises


class OrbitRuleContract:
    """Elements and weights whose mean approximates the mean over q.

    Attributes
    ----------
    rule : name of the rule
    moment_error : largest error of E cos(t) for von Mises with concentration 2, by 64 elements
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

    def test_fit_changes_no_parameter(self):
        params = Orbit(Rotation(), VonMises(1.0), size=3, rule=self.rule)
        before = repr(params)
        params.fit(self.X)
        assert repr(params) == before
        assert params.group_ is not params.group
