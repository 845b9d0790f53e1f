"""Deterministic rules: equispaced angles, Gauss rules of measures that are not symmetric."""

import numpy as np
import pytest
from scipy import special

from orbit.groups.quadrature import gauss, trapezoid


@pytest.mark.parametrize("period", [2 * np.pi, 1.0, 7.0])
def test_equispaced_points_are_in_one_period_around_zero(period):
    points = trapezoid(6, 0.3, period)
    assert np.all((points >= -period / 2) & (points < period / 2))
    np.testing.assert_allclose(np.sort(points % period), (np.arange(6) + 0.3) * period / 6, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_gauss_rule_of_any_masses_has_their_moments(size):
    """Masses that are not symmetric, so that the recurrence has a diagonal."""
    rng = np.random.default_rng(0)
    points, masses = rng.uniform(-1, 2, 40), rng.random(40) ** 3
    nodes, weights = gauss(points, masses, size)
    for degree in range(2 * size):
        assert weights @ nodes**degree == pytest.approx(masses @ points**degree / masses.sum(), rel=1e-10)


def test_the_gauss_rule_of_a_fine_grid_is_that_of_its_density():
    """Of exp(-x) on the positive numbers: Gauss-Laguerre."""
    fine = np.linspace(0, 60, 600_001)
    trapezoid_weights = np.exp(-fine) * np.where((fine == 0) | (fine == 60), 0.5, 1.0)
    nodes, weights = gauss(fine, trapezoid_weights, 4)
    expected_nodes, expected_weights = special.roots_laguerre(4)
    np.testing.assert_allclose(nodes, expected_nodes, rtol=1e-5)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-4)
