"""Predictions of points left out of a ridge fit, against explicit fits without them."""

import numpy as np
import oracles
import pytest

from orbit import CurlFree, Exact, OperatorRandomFourier
from orbit.solvers.left_out import encoded_targets, left_out
from orbit.solvers.structure import unpacked


def refitted(X, Y, clusters, regularization):
    """Predictions for each cluster by the fit to the sum of squares of the others."""
    predicted = np.empty_like(Y)
    for cluster in np.unique(clusters):
        out = clusters == cluster
        kept = np.count_nonzero(~out)
        W, b = oracles.ridge(X[~out], Y[~out], regularization * len(X) / kept)  # lambda is relative to the mean
        predicted[out] = X[out] @ W + b
    return predicted


@pytest.mark.parametrize("n_features", [5, 60])
@pytest.mark.parametrize("clusters", [None, np.arange(40) // 3, np.repeat([0, 1], [10, 30])])
def test_predictions_are_those_of_fits_without_the_cluster(rng, n_features, clusters):
    X = rng.standard_normal((40, n_features))
    Y = np.tanh(X[:, :2]) + 0.1 * rng.standard_normal((40, 2))
    predicted, regularization = left_out(X, Y, clusters)
    expected = refitted(X, Y, np.arange(40) if clusters is None else clusters, regularization)
    np.testing.assert_allclose(predicted, expected, rtol=1e-8, atol=1e-8)


def test_equal_rows_are_left_out_together(rng):
    X, Y = np.repeat(rng.standard_normal((20, 4)), 2, axis=0), rng.standard_normal((40, 1))
    predicted, regularization = left_out(X, Y)
    np.testing.assert_allclose(predicted, refitted(X, Y, np.arange(40) // 2, regularization), atol=1e-8)


def test_all_outputs_of_a_point_are_left_out_of_an_operator_valued_fit(rng):
    X = rng.standard_normal((15, 2))
    Y = np.column_stack([np.cos(X[:, 0]), X[:, 1]])
    psi = OperatorRandomFourier(CurlFree(lengthscale=1.0), n_components=20, random_state=0).fit_transform(X)
    predicted, regularization = left_out(psi, Y)
    structure, values = unpacked(psi)
    P = structure.operator(Y).dense(values)  # (n p, F)
    for i in range(len(X)):
        out = np.arange(len(P)) // 2 == i
        A = P[~out].T @ P[~out] + len(P) * regularization * np.eye(P.shape[1])
        np.testing.assert_allclose(predicted[i], P[out] @ np.linalg.solve(A, P[~out].T @ Y.ravel()[~out]), atol=1e-8)


def test_kernel_values_give_the_predictions_of_coordinates(rng):
    X, Y = rng.standard_normal((30, 3)), rng.standard_normal((30, 1))
    coordinates, values = (
        left_out(Exact(precomputed=precomputed).fit_transform(X), Y)[0] for precomputed in (False, True)
    )
    np.testing.assert_allclose(values, coordinates, atol=1e-5)


def test_labels_are_columns_of_classes():
    targets, of_classes = encoded_targets(np.array(["left", "right", "left"]))
    assert of_classes
    np.testing.assert_array_equal(targets > 0, [[True, False], [False, True], [True, False]])


def test_one_cluster_is_predicted_by_the_mean():
    np.testing.assert_array_equal(left_out(np.eye(3), np.arange(3.0)[:, None], np.zeros(3))[0], np.ones((3, 1)))


@pytest.mark.parametrize("clusters", [None, np.arange(12) // 3])
def test_features_that_underflow_predict_the_mean(rng, clusters):
    Y = rng.standard_normal((12, 2))
    predicted, _ = left_out(1e-200 * rng.standard_normal((12, 4)), Y, clusters)
    np.testing.assert_array_equal(predicted, np.tile(Y.mean(0), (12, 1)))


def test_mean_prediction_has_error_one(rng):
    for y in (rng.integers(3, size=60), rng.standard_normal((60, 2)) * [1, 100], np.arange(200)):
        targets, _ = encoded_targets(y)
        assert np.square(targets - targets.mean(0)).sum(1).mean() == pytest.approx(1)
    assert not encoded_targets(np.arange(200))[1]
