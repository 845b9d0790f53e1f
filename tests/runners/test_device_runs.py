"""Runs whose features stay on the device, here the processor, are those whose features are copied."""

import numpy as np
import pytest
import torch
from command_line import fitted

from orbit import Engine, FeatureMap
from orbit.learners.linear import LinearLearner
from orbit.solvers.structure import unpacked

RUNS = {
    "rf": ["approx=rf"],
    "nystrom": ["approx=nystrom", "learner.regularization=1e-4"],
    "exact": ["approx=exact"],
    "exact, float64": ["approx=exact", "engine.dtype=float64", "group=identity"],
    "coordinates": ["approx=exact", "approx.precomputed=false"],
    "encoder": ["approx=exact", "encoder=pca"],
    "krr": ["dataset=vector_field", "group=identity", "approx=exact", "learner=krr"],
}


@pytest.mark.parametrize("name", RUNS)
def test_the_features_of_a_run_stay_on_the_device(name, monkeypatch):
    data = [] if name == "krr" else ["dataset=digits", "orbit.size=4", "kernel.lengthscale=median"]
    settings = *data, "dataset.n_train=200", "dataset.n_test=100", *RUNS[name], "engine.progress=false"
    expected, taken = fitted(*settings), []
    monkeypatch.setattr(Engine, "free_bytes", lambda self: 2**30)
    monkeypatch.setattr(FeatureMap, "transform", None)
    fit, scores = LinearLearner.fit, LinearLearner._scores
    monkeypatch.setattr(LinearLearner, "fit", lambda self, X, *rest: taken.append(X) or fit(self, X, *rest))
    monkeypatch.setattr(LinearLearner, "_scores", lambda self, X: taken.append(X) or scores(self, X))
    found = fitted(*settings)
    assert len(taken) >= 3, "of training points twice, and of test points"
    for features in taken:
        assert isinstance(unpacked(features)[1], torch.Tensor)
    equal = np.testing.assert_allclose if name == "krr" else np.testing.assert_array_equal
    equal(found.predicted, expected.predicted)
