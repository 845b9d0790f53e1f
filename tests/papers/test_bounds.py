"""Bounds of the papers, derived again: by the inequality behind them, or by a search over what they optimise."""

import math

import numpy as np
import pytest

from papers.bounds import cdf_error_bound, decomposable_uniform_bound, gamma_orlicz_norm, operator_uniform_bound


@pytest.mark.parametrize(("m", "n", "s", "confidence"), [(1000, 25, 1.1, 0.95), (50, 4, 3.0, 0.5)])
def test_the_error_of_distribution_features_is_that_of_hoeffdings_inequality(m, n, s, confidence):
    """P(|mean - expectation| >= t) <= 2 exp(-2 m t^2 / range^2) is 1 - confidence at the error less its bias s / n."""
    t = cdf_error_bound(m, n, s, confidence) - s / n
    assert 2 * math.exp(-2 * m * t**2 / (2 * s + s / n) ** 2) == pytest.approx(1 - confidence)


@pytest.mark.parametrize(
    ("error", "size", "d", "variance", "m"),
    [(0.5, 9000, 2, 1.0, 3.0), (0.3, 2_000_000, 5, 8.0, 9.0), (0.1, 4_000_000, 3, 30.0, 31.0), (2.0, 9000, 2, 9.0, 2)],
)
def test_the_uniform_bound_is_the_least_over_radii_of_a_covering(error, size, d, variance, m):
    """A net of (2 l / r)^d balls, an error of half on its centres, and a Lipschitz constant that Markov bounds."""
    p, diameter, sigma = 3, 2.5, 1.7
    largest = 2 * m * math.log(2 * math.sqrt(2) * (m / variance) ** 2)
    if error * largest <= 2 * (math.e - 1) * variance:  # Bernstein's inequality where the variance decides
        tail = size * (error / 2) ** 2 / (4 * (variance + error * largest / 6))
    else:
        tail = size * error / (2 * (math.e - 1) * largest)
    radii = np.geomspace(1e-8, 10, 200_001)
    sums = 2 * (2 * diameter / radii) ** d * math.exp(-tail) + (4 * sigma * radii / error) ** 2
    bound = operator_uniform_bound(error, size, d, p, diameter, variance, m, sigma)
    assert 0 < bound < 1
    assert bound == pytest.approx(p * sums.min(), rel=1e-6)


def test_the_bound_of_decomposable_kernels_is_that_of_rahimi_and_recht():
    """Claim 1 of Random features for large-scale kernel machines: 2^8 (sigma l / e)^2 exp(-D e^2 / (4 (d + 2)))."""
    bound = decomposable_uniform_bound(0.1, 80_000, 4, 3.0, 2.0)
    assert bound == pytest.approx(256 * 60**2 * math.exp(-800 / 24))
    assert decomposable_uniform_bound(0.1, 80_000, 4, 6.0, 2.0) == pytest.approx(4 * bound)
    assert decomposable_uniform_bound(0.3, 80_000, 4, 3.0, 2.0, norm=3.0) == pytest.approx(bound)
    assert decomposable_uniform_bound(0.1, 100, 4, 3.0, 2.0) == 1.0


@pytest.mark.parametrize(("d", "lengthscale"), [(1, 0.7), (4, 3.5)])
def test_the_orlicz_norm_is_where_the_moment_generating_function_is_two(d, lengthscale):
    """Of chi-squared: E exp(t |w|^2 lengthscale^2) = (1 - 2 t)^(-d / 2)."""
    t = 1 / (gamma_orlicz_norm(d, lengthscale) * lengthscale**2)
    assert (1 - 2 * t) ** (-d / 2) == pytest.approx(2)
