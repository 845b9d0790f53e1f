"""Solvers on a device that is not there (:mod:`pretend_gpu`): results of arrays, and nothing as large as the features
leaves it."""

from unittest import mock

import numpy as np
import pytest
import torch
from pretend_gpu import on_gpu, pretended

from orbit import InputError, KernelRidgeRegressor, RidgeClassifier, RidgeRegressor
from orbit.core.device_matrix import DeviceMatrix, as_array
from orbit.core.linalg import eigh
from orbit.solvers.moments import System
from orbit.solvers.structure import GramStructure, StructuredFeatures

TOLERANCE = {np.float64: 1e-10, np.float32: 1e-5}
PATH = [1e-3, 1e-2, 1e-1, 1.0]

LEARNERS = {
    "one": lambda: RidgeRegressor(1e-3),
    "loo": lambda: RidgeRegressor(PATH),
    "gcv": lambda: RidgeRegressor(PATH, selection="gcv"),
    "hold_out": lambda: RidgeRegressor(PATH, selection="hold_out", random_state=0),
    "krr": lambda: KernelRidgeRegressor(PATH),
    "classes": lambda: RidgeClassifier(PATH, random_state=0),
}
SHAPES = {"primal": (300, 40), "dual": (40, 300)}


def points(rng, n, d, dtype):
    X = (rng.standard_normal((n + 20, d)) * np.geomspace(1, 0.01, d)).astype(dtype)
    return X[:n], X[n:]


def targets(rng, X, name):
    Y = X[:, :3] + 0.1 * rng.standard_normal((len(X), 3))
    return np.array(["a", "b", "c"])[Y.argmax(1)] if name == "classes" else Y


def on_device(features):
    if isinstance(features, StructuredFeatures):
        return StructuredFeatures(on_gpu(features.values), features.structure)
    return on_gpu(features)


def compare(make, X, y, X_new, tolerance, **options):
    """Fits and predictions of arrays and on the device, from which only columns of coefficients and targets come."""
    expected = make().fit(X, y, **options)
    with pretended() as copied:
        found = make().fit(on_device(X), y, **options)
        largest = max(copied)
        predicted = found.predict(on_device(X_new))
        assert copied[-1] == 3 * len(X_new), "predictions alone"
    columns = (3 + 1) * len(PATH)  # targets and the intercept
    assert largest <= min(columns * max(X.shape), X.shape[0] * X.shape[1] // 3)
    assert found.regularization_ == expected.regularization_
    np.testing.assert_allclose(found.path_scores_, expected.path_scores_, rtol=1e-5 if tolerance < 1e-8 else 1e-2)
    assert type(found.coef_) is np.ndarray
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=tolerance * np.abs(expected.coef_).max())
    if predicted.dtype.kind == "f":
        np.testing.assert_allclose(predicted, expected.predict(X_new), atol=tolerance)
    else:
        np.testing.assert_array_equal(predicted, expected.predict(X_new))
    return found


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", LEARNERS)
def test_features(rng, name, shape, dtype):
    X, X_new = points(rng, *SHAPES[shape], dtype)
    y = targets(rng, X, name)
    compare(LEARNERS[name], X, y, X_new, TOLERANCE[dtype])
    compare(LEARNERS[name], X, y, X_new, TOLERANCE[dtype], sample_weight=rng.integers(0, 3, len(X)))


def test_folds_of_clusters(rng):
    X, X_new = points(rng, 300, 40, np.float64)
    clusters = np.arange(300) // 5
    compare(LEARNERS["classes"], X, targets(rng, X, "classes"), X_new, 1e-10, clusters=clusters)


def test_points_that_repeat(rng):
    X, X_new = points(rng, 150, 40, np.float64)
    X = np.repeat(X, 2, axis=0)
    compare(LEARNERS["loo"], X, targets(rng, X, "loo"), X_new, 1e-10)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["one", "loo", "hold_out"])
def test_large_systems(rng, name, shape, dtype, monkeypatch):
    """Reduced by blocks, and of many rows for each column with products in float32 and a refined solution."""
    for place in ("base.LARGE", "factorisations.BAND_FROM", "weighted_rows.LEVERAGES_BY_EIGENVALUES"):
        monkeypatch.setattr(f"orbit.solvers.{place}", 10)
    monkeypatch.setattr("orbit.solvers.selection.LEVERAGES_BY_EIGENVALUES", 10)
    monkeypatch.setattr("orbit.solvers.factorisations._ROWS_BANDED", 1)
    X, X_new = points(rng, *SHAPES[shape], dtype)
    compare(LEARNERS[name], X, targets(rng, X, name), X_new, 10 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("large", [10, 3000])
@pytest.mark.parametrize("name", LEARNERS)
def test_kernel_values(rng, name, large, dtype, monkeypatch):
    monkeypatch.setattr("orbit.solvers.base.LARGE", large)
    X, X_new = points(rng, 250, 5, np.float64)
    structure = GramStructure(len(X), False)
    K, K_new = (
        StructuredFeatures(np.exp(-np.square(A[:, None] - X).sum(2) / 8).astype(dtype), structure) for A in (X, X_new)
    )
    y = targets(rng, X, name)
    compare(LEARNERS[name], K, y, K_new, TOLERANCE[dtype])
    # coefficients of kernel values differ by more than predictions
    found = compare(LEARNERS[name], K, y, K_new, TOLERANCE[dtype], sample_weight=rng.uniform(0.5, 2, len(X)))
    assert (found.solution_error_ is not None) == (dtype == np.float32)
    with pretended():
        tensor = on_gpu(K.values)
        before = tensor.clone()
        LEARNERS[name]().fit(StructuredFeatures(tensor, structure), y)
        assert bool((tensor == before).all()), "restored"


def test_an_eigendecomposition_that_fails_is_the_processors(rng, monkeypatch):
    A = np.cov(rng.random((6, 20)))
    monkeypatch.setattr("torch.linalg.eigh", mock.Mock(side_effect=torch.linalg.LinAlgError))
    with pretended():
        values, vectors = eigh(DeviceMatrix(on_gpu(A)))
        np.testing.assert_allclose(as_array((vectors * values) @ vectors.T), A, atol=1e-12)


def test_second_moments_of_many_columns(rng):
    """Whose outer products are subtracted in blocks of the upper triangle."""
    X = rng.random((20, 40))
    with mock.patch("orbit.core.linalg.BLOCK_COLUMNS", 16), pretended():
        system = System.from_rows(DeviceMatrix(on_gpu(X)), X[:, :1], None, "both", precise=True)
        np.testing.assert_allclose(as_array(system.A), np.cov(X.T, ddof=0), atol=1e-12)


def test_a_stream_of_tensors(rng):
    X, X_new = points(rng, 300, 40, np.float64)
    Y = targets(rng, X, "loo")
    expected, found = RidgeRegressor(PATH), RidgeRegressor(PATH)
    with pretended():
        for rows in (slice(0, 100), slice(100, 300)):
            expected.partial_fit(X[rows], Y[rows])
            found.partial_fit(on_gpu(X[rows]), Y[rows])
        predicted = found.finalize().predict(on_gpu(X_new))
    np.testing.assert_allclose(predicted, expected.finalize().predict(X_new), atol=1e-10)


def test_predictions_of_a_path(rng):
    X, X_new = points(rng, 300, 40, np.float64)
    Y = targets(rng, X, "one")
    expected = RidgeRegressor().path_predictions(X, Y, np.array(PATH), X_new)
    with pretended() as copied:
        found = list(RidgeRegressor().path_predictions(on_gpu(X), Y, np.array(PATH), on_gpu(X_new)))
        assert max(copied) < X.size / 3
    np.testing.assert_allclose(found, list(expected), atol=1e-10)


def test_kernel_values_that_are_not_symmetric_are_refused(rng):
    K = rng.random((50, 50))
    with pretended(), pytest.raises(ValueError, match="not symmetric"):
        RidgeRegressor().fit(StructuredFeatures(on_gpu(K), GramStructure(50, False)), rng.random(50))


def test_a_factor_that_does_not_fit_on_the_device_is_refused(rng, monkeypatch):
    K = StructuredFeatures(on_gpu(np.ones((60, 60), np.float32)), GramStructure(60, False))
    with pretended():
        monkeypatch.setattr(DeviceMatrix, "device_bytes", lambda self: 1000)
        with pytest.raises(InputError, match="whose factor in float64 takes"):
            RidgeRegressor([1e-20, 1e-19]).fit(K, rng.random(60))


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (np.ones((4, 3)) * np.nan, "NaN or infinity"),
        (np.ones(4), r"X: expected a tensor of shape \(m, d\), float32 or float64, found \(4,\)"),
        (np.ones((4, 3), int), r"found \(4, 3\), torch.int64"),
        (np.ones((5, 3)), "y: expected as many targets as points, 5, found 4"),
    ],
)
def test_wrong_tensors_are_refused(values, found):
    with pretended(), pytest.raises(ValueError, match=found):
        RidgeRegressor(1.0).fit(on_gpu(values), np.arange(4.0))


def test_the_device_that_is_not_there_refuses_what_a_gpu_refuses(rng):
    with pretended() as copied:
        X = on_gpu(rng.random((3, 2)))
        assert str((X @ X.T).device) == "cuda:0"
        with pytest.raises(TypeError, match="can't convert"):
            X.numpy()
        with pytest.raises(AssertionError, match="two devices"):
            X + X.cpu()
        assert copied == [6]
