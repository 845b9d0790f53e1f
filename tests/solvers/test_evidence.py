"""The log marginal likelihood, its gradient and its maximum, against plain formulas."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from orbit.solvers.evidence import NOISE_BOUNDS, differentiated, evidence_of_features, log_evidence, maximise


@pytest.fixture
def X(rng):
    return rng.standard_normal((12, 2))


@pytest.fixture
def Y(rng):
    return rng.standard_normal((12, 3))


def gram(X, logs):
    scaled = X * np.exp(-logs)
    return np.exp(-np.square(scaled[:, None] - scaled).sum(2) / 2)


def test_it_is_the_density_of_the_targets_at_the_best_amplitude(X, Y):
    A = gram(X, np.zeros(2)) + 0.3 * np.eye(12)
    value, _, _ = log_evidence(gram(X, np.zeros(2)), 0.3, Y)
    amplitude = np.trace(Y.T @ np.linalg.solve(A, Y)) / Y.size
    density = [multivariate_normal(np.zeros(12), a * A).logpdf(Y.T).sum() for a in amplitude * np.array([0.9, 1, 1.1])]
    assert value == pytest.approx(density[1])
    assert value > max(density[0], density[2])


def test_the_gradient_is_that_of_differences(X, Y):
    logs, h = np.array([0.2, -0.3]), 1e-5
    _, G, by_noise = log_evidence(gram(X, logs), 0.3, Y)
    for step in np.eye(2) * h:
        up, down = (gram(X, logs + sign * step) for sign in (1, -1))
        expected = (log_evidence(up, 0.3, Y)[0] - log_evidence(down, 0.3, Y)[0]) / (2 * h)
        assert (G * (up - down)).sum() / (2 * h) == pytest.approx(expected, rel=1e-5)
    K = gram(X, logs)
    expected = (log_evidence(K, 0.3 * np.exp(h), Y)[0] - log_evidence(K, 0.3 * np.exp(-h), Y)[0]) / (2 * h)
    assert by_noise == pytest.approx(expected, rel=1e-5)


def test_an_indefinite_matrix_is_refused(Y):
    with pytest.raises(np.linalg.LinAlgError):
        log_evidence(-np.eye(12), 0.3, Y)


@pytest.fixture
def wave(rng):
    """The covariance of 40 points of a line as a function of log lengthscale, and their targets."""
    x = rng.uniform(0, 10, 40)
    squares = torch.from_numpy(np.square(x[:, None] - x))
    return differentiated(lambda logs: (-squares * (-2 * logs).exp() / 2).exp()), np.sin(3 * x)[:, None]


def test_the_best_start_is_taken(wave):
    best = maximise(*wave, [np.array([3.0]), np.array([-0.5])], (-4.0, 4.0))
    assert best.log_evidence == max(best.found)
    assert best.parameters[0] < 0.5
    assert best.noise < 1e-4


def test_a_search_keeps_to_its_bounds(wave):
    best = maximise(*wave, [np.array([1.0])], (0.9, 1.5))
    assert best.parameters[0] in (0.9, 1.5)
    assert best.log_evidence < maximise(*wave, [np.array([-0.5])], (-4.0, 4.0)).log_evidence


def test_a_search_that_knows_second_derivatives_takes_fewer_steps(wave, rng):
    covariance, Y = wave[0], wave[1] + 0.1 * rng.standard_normal((40, 1))  # the best noise is not at its bound
    calls = []

    def counted(parameters):
        calls.append(parameters)
        return covariance(parameters)

    first = maximise(covariance, Y, [np.array([-0.5])], (-4.0, 4.0))
    start, counts = first.parameters + 0.1, []
    for hessian in (None, first.inverse_hessian):
        calls.clear()
        again = maximise(counted, Y, [start], (-4.0, 4.0), first.noise, inverse_hessian=hessian)
        assert again.log_evidence == pytest.approx(first.log_evidence, abs=1e-3)
        counts.append(len(calls))
    assert counts[1] < counts[0]


def test_a_search_finds_what_scipy_finds(rng):
    X = rng.uniform(-1, 1, (60, 3))
    Y = np.sin(3 * X[:, :1]) + X[:, 1:2] + 0.1 * rng.standard_normal((60, 1))
    covariance = differentiated(
        lambda logs: (-(torch.cdist(*[torch.from_numpy(X) * (-logs).exp()] * 2) ** 2) / 2).exp()
    )

    def negative(theta):
        return -log_evidence(gram(X, theta[:-1]), np.exp(theta[-1]), Y)[0]

    found = maximise(covariance, Y, [np.zeros(3)], (-4.0, 4.0))
    expected = minimize(negative, np.array([0, 0, 0, np.log(0.1)]), bounds=[*[(-4, 4)] * 3, np.log(NOISE_BOUNDS)])
    assert found.log_evidence == pytest.approx(-expected.fun, abs=1e-4)
    np.testing.assert_allclose([*found.parameters, np.log(found.noise)], expected.x, atol=0.02)


def test_features_have_the_evidence_of_their_products(X, Y):
    values, vectors = np.linalg.eigh(gram(X, np.zeros(2)))
    psi = vectors * np.sqrt(np.maximum(values, 0))
    best = max(log_evidence(psi @ psi.T, noise, Y)[0] for noise in np.geomspace(1e-8, 10, 2000))
    assert evidence_of_features(psi, Y) == pytest.approx(best, abs=1e-4)
