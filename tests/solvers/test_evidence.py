"""The log marginal likelihood, its gradient and its maximum, against plain formulas."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from orbit.solvers.evidence import evidence_of_features, log_evidence, maximise


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
    assert value == max(value, *density)


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


def test_the_best_start_is_taken(rng):
    x = rng.uniform(0, 10, 40)
    Y, squares = np.sin(3 * x)[:, None], torch.from_numpy(np.square(x[:, None] - x))
    best = maximise(
        lambda logs: (-squares * (-2 * logs).exp() / 2).exp(), Y, [np.array([3.0]), np.array([-0.5])], [(-4.0, 4.0)]
    )
    assert best.log_evidence == max(best.found)
    assert best.parameters[0] < 0.5
    assert best.noise < 1e-4


def test_features_have_the_evidence_of_their_products(X, Y):
    values, vectors = np.linalg.eigh(gram(X, np.zeros(2)))
    psi = vectors * np.sqrt(np.maximum(values, 0))
    best = max(log_evidence(psi @ psi.T, noise, Y)[0] for noise in np.geomspace(1e-8, 10, 2000))
    assert evidence_of_features(psi, Y) == pytest.approx(best, abs=1e-4)
