"""scikit-learn's own checks on every estimator, and use in its pipelines and searches."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import orbit
from orbit.approx import Exact, Nystrom, RandomFourier
from orbit.core.params import parameters
from orbit.data import RotatedDigits
from orbit.distributions import Haar, VonMises
from orbit.engine import Engine
from orbit.groups import Rotation
from orbit.kernels import Gaussian
from orbit.learners import RidgeClassifier, SVMClassifier
from orbit.learners.base import Learner
from orbit.orbits import Orbit
from orbit.representations import Polar

KINDS = ("approx", "hyper", "representation", "classifier", "regressor")
PARAMS = {
    "adagrad": {"epochs": 20},
    "cdf": {"n_components": 5, "n_bins": 3},
    "crop": {"size": 2},
    "gradients": {"n_directions": 2},
    "kernel_svm": {"regularization": 0.1},
    "knn": {"n_neighbors": [1, 3]},
    "network": {"width": 32, "learning_rate": 0.05},
    "patch_pca": {"size": 2, "n_components": 2},
}


def small(cls):
    few = {"n_components": 5} if "n_components" in parameters(cls) else {}
    return cls(**few | PARAMS.get(cls.name, {}))


# Representations of images declare so in their tags, and most checks, which use vectors, skip them.
ESTIMATORS = [small(orbit.get(kind, name)) for kind in KINDS for name in orbit.available(kind)]


def expected_failures(estimator) -> dict[str, str]:
    """Estimators that select a regularisation by validation, where a point of weight two is one point, not two."""
    reason = "the choice of the strength depends on the number of points; the contract of learners fixes it"
    chooses = isinstance(estimator, Learner) and estimator.path_parameter
    return {"check_sample_weight_equivalence_on_dense_data": reason} if chooses else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- pipelines -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def turned():
    return RotatedDigits(n_train=400, n_test=300).load(0)


def pipeline(approx=None, learner=None):
    orb = Orbit(Rotation("polar"), Haar(), size=16)
    approx = approx or RandomFourier(Gaussian(0.5), orb, 200, random_state=0)
    return make_pipeline(Polar(), approx, clone(learner or RidgeClassifier()))


@pytest.mark.parametrize("approx", [RandomFourier, Nystrom, pytest.param(Exact, marks=pytest.mark.slow)])
@pytest.mark.parametrize("learner", [RidgeClassifier(), SVMClassifier(1e-4, random_state=0)], ids=repr)
def test_pipeline_learns_turned_digits(turned, approx, learner):
    params = {} if approx is Exact else {"n_components": 200}
    make = lambda orb: pipeline(approx(Gaussian(0.5), orb, random_state=0, **params), learner)  # noqa: E731
    invariant = make(Orbit(Rotation("polar"), Haar(), size=16)).fit(turned.X_train, turned.y_train)
    plain = make(None).fit(turned.X_train, turned.y_train)
    scores = [model.score(turned.X_test, turned.y_test) for model in (invariant, plain)]
    assert scores[0] > 0.85  # measured 0.90 to 0.92
    assert scores[0] > scores[1] + 0.03, "invariance helps on turned images"


def test_fitted_pipeline_pickles_and_clones(turned):
    model = pipeline().fit(turned.X_train, turned.y_train)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.decision_function(turned.X_test), model.decision_function(turned.X_test))
    again = clone(model).fit(turned.X_train, turned.y_train)
    np.testing.assert_allclose(
        again.decision_function(turned.X_test), model.decision_function(turned.X_test), atol=1e-5
    )


def test_nested_parameters_are_searched(turned):
    model = pipeline(RandomFourier(Gaussian(0.5), Orbit(Rotation("polar"), size=1), 60, random_state=0))
    grid = {
        "randomfourier__kernel__lengthscale": [0.5, 1e-3],
        "randomfourier__orbit__size": [1, 8],
        "polar__n_angles": [32],
    }
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(turned.X_train, turned.y_train)
    assert search.best_params_["randomfourier__kernel__lengthscale"] == 0.5, "a thousandth sees no neighbours"
    assert search.best_params_["randomfourier__orbit__size"] == 8
    assert model.get_params()["randomfourier__orbit__size"] == 1, "the search works on clones"


def test_whole_parts_are_searched(turned):
    grid = {"orbit": [None, Orbit(Rotation(), VonMises(0.2), size=4)], "kernel": [Gaussian(3.0)]}
    model = make_pipeline(RandomFourier(n_components=40, random_state=0), RidgeClassifier())
    grid = {f"randomfourier__{key}": values for key, values in grid.items()}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(turned.X_train, turned.y_train)
    assert len(search.cv_results_["params"]) == 2


def test_deep_parameters_are_set_and_read():
    model = RandomFourier(Gaussian(), Orbit(Rotation(), VonMises()), engine=Engine())
    model.set_params(orbit__distribution__concentration=3.0, orbit__group__sampling="polar", engine__workers=1)
    assert model.orbit.distribution.concentration == 3.0
    assert model.get_params()["orbit__group__sampling"] == "polar"
    assert model.get_params()["engine__workers"] == 1


@pytest.mark.parametrize("approx", [RandomFourier(n_components=6), Nystrom(n_components=6), Exact()], ids=repr)
def test_pandas_output_and_column_names(approx):
    pd = pytest.importorskip("pandas")
    X = load_digits().data[:20] / 16
    frame = clone(approx).set_output(transform="pandas").fit_transform(X)
    assert isinstance(frame, pd.DataFrame)
    name = type(approx).__name__.lower()
    assert list(frame.columns) == [f"{name}{i}" for i in range(frame.shape[1])]
    named = clone(approx).fit(pd.DataFrame(X, columns=[f"p{i}" for i in range(64)]))
    assert list(named.feature_names_in_) == [f"p{i}" for i in range(64)]
    with pytest.raises(ValueError, match="feature names"):
        named.transform(pd.DataFrame(X, columns=[f"q{i}" for i in range(64)]))
