"""Learners: the contract for each; ridge against plain formulas and scikit-learn, and every way of choosing lambda."""

import copy
import warnings

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, SVR, LinearSVC

from orbit import CurlFree, Decomposable, Gaussian, InputError, ParameterError
from orbit.approx import Exact, Nystrom, OperatorRandomFourier, RandomFourier
from orbit.core.parts import validation_parts
from orbit.core.random import hold_out, spawn
from orbit.learners import (
    AdaGradRegressor,
    CGRegressor,
    GaussianProcess,
    KernelRidgeRegressor,
    KernelSVMClassifier,
    KernelSVMRegressor,
    LogisticClassifier,
    NeighborsClassifier,
    NeighborsRegressor,
    RidgeClassifier,
    RidgeRegressor,
    SteinClassifier,
    SteinRegressor,
    SVMClassifier,
)
from orbit.testing import ClassifierContract, PathContract, RegressorContract

PATH = [1e-6, 1e-4, 1e-2, 1.0]


class TestSVM(PathContract, ClassifierContract):
    component, params = SVMClassifier, {"random_state": 0, "regularization": [1e-4, 1e-2]}
    weights_error = 1e-3  # liblinear stops by the scale of its gradient


class TestLogistic(PathContract, ClassifierContract):
    component, params = LogisticClassifier, {"tolerance": 1e-8, "random_state": 0, "regularization": [1e-4, 1e-2]}
    weights_error = 1e-5


class TestKernelSVMClassifier(PathContract, ClassifierContract):
    component, params = KernelSVMClassifier, {"random_state": 0, "regularization": [1e-3, 1e-2]}
    weights_error = 0.02  # libsvm's tolerance of 1e-3, on dual problems of different sizes

    path = [1e-1, 1e-3, 1.0, 1e-2]

    def scores(self, fitted, X):
        """One against one: the others count votes, and jump."""
        solver = copy.deepcopy(fitted.estimator_).set_params(decision_function_shape="ovo", break_ties=False)
        return solver.decision_function(X)


class TestKernelSVMRegressor(PathContract, RegressorContract):
    component, params = KernelSVMRegressor, {"random_state": 0, "regularization": [1e-3, 1e-2]}
    exactness = weights_error = float32_error = 0.05
    weights_repeat = False  # the targets' standard deviation is not weighted

    path = [1e-1, 1e-3, 1.0, 1e-2]


class TestNeighborsClassifier(PathContract, ClassifierContract):
    component, params = NeighborsClassifier, {"random_state": 0}
    path = [60, 1, 90, 3]
    fixed = {"n_neighbors": 3}


class TestNeighborsRegressor(PathContract, RegressorContract):
    component, params = NeighborsRegressor, {"vote": "distance", "random_state": 0}
    path = [9, 1, 30, 3]
    fixed = {"n_neighbors": 3}

    def problem(self, rng, n=120):
        X = rng.standard_normal((n, 1))
        return X, X[:, 0] + 4

    def scores(self, fitted, X):
        """Not of training points, which predict themselves where votes count by distance."""
        return fitted.predict(X + 0.05)


def test_features_with_a_structure_that_a_learner_does_not_take_are_refused(rng):
    X, y = rng.random((30, 2)), rng.standard_normal(30)
    K, classes = Exact(Gaussian(0.4), precomputed=True).fit_transform(X), y > 0
    regressors = SteinRegressor(), KernelSVMRegressor(), NeighborsRegressor(), AdaGradRegressor(), CGRegressor()
    classifiers = KernelSVMClassifier(), SVMClassifier(), LogisticClassifier(), NeighborsClassifier()
    for learner in (*regressors, *classifiers):
        with pytest.raises(InputError, match=f"{type(learner).__name__} takes no kernel values: set precomputed=False"):
            learner.fit(K, classes if learner in classifiers else y)
    with pytest.raises(InputError, match="partial_fit takes no kernel values"):
        RidgeRegressor(1e-3).partial_fit(K, y)
    Y = rng.standard_normal((30, 2))
    coupled = OperatorRandomFourier(CurlFree(), n_components=10, random_state=0).fit_transform(X)
    for learner in (RidgeRegressor(), KernelRidgeRegressor(), KernelSVMRegressor()):
        with pytest.raises(InputError, match=f"{type(learner).__name__} fits each output by itself"):
            learner.fit(coupled, Y)
    single = OperatorRandomFourier(Decomposable(), n_components=10, random_state=0).fit_transform(X)
    np.testing.assert_allclose(
        RidgeRegressor(1e-3).fit(single, Y).predict(single), SteinRegressor(1e-3).fit(single, Y).predict(single)
    )


@pytest.mark.parametrize("learner", [RidgeRegressor(1e-3), SteinRegressor(1e-3), AdaGradRegressor(0.1)])
@pytest.mark.parametrize(("first", "second"), [(2, 1), (1, 2)])
def test_batches_have_one_number_of_outputs(rng, learner, first, second):
    X, Y = rng.standard_normal((30, 4)), rng.standard_normal((30, 2))
    learner = clone(learner).partial_fit(X, Y[:, :first])
    with pytest.raises(ValueError, match=f"expected targets with {first} outputs, as before, found {second}"):
        learner.partial_fit(X, Y[:, :second])


def test_a_point_without_weight_does_not_move_the_targets_of_kernel_svm(rng):
    X = rng.standard_normal((60, 4))
    y, weights = X[:, 0] + 0.1 * rng.standard_normal(60), np.ones(60)
    wrong = np.append(y[:-1], 1e4)
    weights[-1] = 1e-9
    expected = KernelSVMRegressor(1e-3).fit(X[:-1], y[:-1]).predict(X)
    np.testing.assert_allclose(KernelSVMRegressor(1e-3).fit(X, wrong, weights).predict(X), expected, atol=0.02)


@pytest.mark.parametrize("path", [np.array([1e-3, 1.0]), range(1, 3), (1e-3, 1.0)], ids=["array", "range", "tuple"])
def test_a_path_is_any_sequence_of_numbers(rng, path):
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    for learner in (RidgeRegressor, GaussianProcess, SteinRegressor, AdaGradRegressor, KernelSVMRegressor):
        found, expected = (learner(each).fit(X, y) for each in (path, [float(value) for value in path]))
        np.testing.assert_array_equal(found.path_, expected.path_)
    with pytest.raises(ParameterError, match="regularization: expected"):
        RidgeRegressor(np.ones((2, 2))).fit(X, y)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_targets_whose_squares_are_no_numbers_are_refused(rng, size):
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    for learner in (RidgeRegressor(), KernelRidgeRegressor(), GaussianProcess(), SteinRegressor(), CGRegressor()):
        with pytest.raises(InputError, match=f"{type(learner).__name__}: the largest target must be between 1e-30 and"):
            learner.fit(X, size * y)
    assert RidgeRegressor().fit(X, 0 * y).predict(X).tolist() == [0.0] * 30


# ---- agreement with scikit-learn, the same features given to both ----------------------------------------------------


@pytest.fixture(params=[Exact, RandomFourier, Nystrom], ids=lambda cls: cls.name)
def digit_features(request):
    X, y = load_digits(return_X_y=True)
    X = X[:300] / 16
    params = {} if request.param is Exact else {"n_components": 60, "random_state": 0}
    psi = request.param(Gaussian(2.0), **params).fit(X[:200]).transform(X)
    return psi[:200], y[:200], psi[200:]


def test_logistic_is_scikit_learns(digit_features):
    psi, y, new = digit_features
    theirs = LogisticRegression(C=1 / (2 * 1e-3 * 200), tol=1e-8, max_iter=5000).fit(psi, y)
    ours = LogisticClassifier(1e-3, tolerance=1e-8, max_iter=5000).fit(psi, y)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-9)


def test_logistic_minimises_its_objective(rng):
    """(1/n) sum_i w_i log(1 + exp(-y_i f(x_i))) + lambda |v|^2; for two classes f is the difference of two scores."""
    X, y, w = rng.standard_normal((60, 3)), rng.integers(0, 2, 60), rng.random(60)
    w, signs = w / w.mean(), 2 * y - 1

    def objective(v):
        return (w * np.log1p(np.exp(-signs * (X @ v[:3] + v[3])))).mean() + 0.02 * v[:3] @ v[:3]

    best = optimize.minimize(objective, np.zeros(4), tol=1e-12).x
    ours = LogisticClassifier(0.02, tolerance=1e-10).fit(X, y, sample_weight=w)
    np.testing.assert_allclose([*ours.coef_[0], *ours.intercept_], best, atol=1e-5)


@pytest.mark.parametrize("vote", ["uniform", "distance"])
def test_neighbors_are_scikit_learns(digit_features, vote):
    psi, y, new = digit_features
    classifier = KNeighborsClassifier(3, weights=vote).fit(psi, y)
    ours = NeighborsClassifier(3, vote).fit(psi, y)
    np.testing.assert_array_equal(ours.predict(new), classifier.predict(new))
    np.testing.assert_allclose(ours.predict_proba(new), classifier.predict_proba(new))
    regressor = KNeighborsRegressor(3, weights=vote).fit(psi, y)
    np.testing.assert_allclose(NeighborsRegressor(3, vote).fit(psi, y).predict(new), regressor.predict(new))


@pytest.mark.parametrize("vote", ["uniform", "distance"])
def test_neighbors_with_equal_shares_are_the_class_of_predict(vote, rng):
    X, y = rng.integers(0, 3, (90, 2)).astype(float), rng.integers(0, 4, 90)
    learner = NeighborsClassifier(4, vote).fit(X, y)
    new = rng.integers(0, 5, (60, 2)).astype(float)
    labels, shares = learner.predict_with_probabilities(new)
    assert (np.sort(shares, axis=1)[:, -1] == np.sort(shares, axis=1)[:, -2]).any(), "some shares are equal"
    np.testing.assert_array_equal(labels, learner.predict(new))
    np.testing.assert_array_equal(shares, learner.predict_proba(new))


def test_kernel_svm_is_scikit_learns_on_the_gram_matrix(digit_features):
    psi, y, new = digit_features
    C = 1 / (2 * 1e-4 * 200)
    theirs = SVC(C=C, kernel="precomputed", break_ties=True).fit(psi @ psi.T, y)
    ours = KernelSVMClassifier(1e-4).fit(psi, y)
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new @ psi.T))
    np.testing.assert_allclose(ours.decision_function(new), theirs.decision_function(new @ psi.T), atol=1e-6)
    scaled = (y - y.mean()) / y.std()
    regressor = SVR(C=C, epsilon=0.01, kernel="precomputed").fit(psi @ psi.T, scaled)
    expected = regressor.predict(new @ psi.T) * y.std() + y.mean()
    np.testing.assert_allclose(KernelSVMRegressor(1e-4).fit(psi, y).predict(new), expected, atol=1e-4)


# ---- support vector machines -----------------------------------------------------------------------------------------


@pytest.fixture
def two_classes(rng):
    y = rng.integers(0, 2, 150)
    return rng.standard_normal((150, 4)) + 0.8 * y[:, None], y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_many_columns_of_few_rows_are_solved_in_their_span(rng, classes, weighted):
    X, y = rng.standard_normal((30, 400)), np.arange(30) % classes
    X[:5] = X[5:10]  # fewer independent rows than rows
    weights = rng.random(30) + 0.5 if weighted else np.ones(30)
    weights /= weights.mean()
    C, new = 1 / (2 * 0.1 * 30), rng.standard_normal((9, 400))
    for ours, theirs in (
        (SVMClassifier(0.1, random_state=0), LinearSVC(C=C, tol=1e-8, max_iter=10**6)),
        (LogisticClassifier(0.1, tolerance=1e-9), LogisticRegression(C=C, tol=1e-9, max_iter=10**4)),
    ):
        ours.fit(X, y, sample_weight=weights)
        theirs.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(ours.estimator_.decision_function(new), theirs.decision_function(new), atol=1e-3)


def test_rows_of_zeros_are_fitted_by_the_intercept():
    svm = SVMClassifier(0.1, random_state=0).fit(np.zeros((4, 40)), [0, 1, 1, 1])
    assert svm.predict(np.zeros((2, 40))).tolist() == [1, 1]


def test_time_of_an_svm_does_not_grow_with_columns_beyond_rows(rng, monkeypatch):
    seen = []
    fit = LinearSVC.fit
    monkeypatch.setattr(LinearSVC, "fit", lambda self, X, y, **more: seen.append(X.shape) or fit(self, X, y, **more))
    X, y = rng.standard_normal((20, 500)), np.arange(20) % 2
    assert SVMClassifier(0.1, random_state=0).fit(X, y).coef_.shape == (1, 500)
    assert seen == [(20, 20)]


def test_svm_minimises_its_objective(two_classes):
    """(1/n) sum max(0, 1 - y f(x))^2 + lambda |w|^2; liblinear counts the intercept as one of the weights."""
    X, y = two_classes
    signs, A, regularization = 2 * y - 1, np.hstack([X, np.ones((len(X), 1))]), 0.05

    def objective(w):
        return np.square(np.maximum(0, 1 - signs * (A @ w))).mean() + regularization * w @ w

    best = optimize.minimize(objective, np.zeros(5), tol=1e-12)
    ours = SVMClassifier(regularization, random_state=0).fit(X, y)
    np.testing.assert_allclose([*ours.coef_[0], *ours.intercept_], best.x, atol=1e-3)


def test_svm_path_scores_are_mean_accuracies_of_repeated_folds(two_classes):
    X, y = two_classes
    ours = SVMClassifier([1e-4, 1e-2, 10.0], random_state=0).fit(X, y)
    parts = validation_parts(150, 0.2, y, None, spawn(0, 1)[0])
    assert len(parts) == 10
    scores = [SVMClassifier(10.0).fit(X[fit], y[fit]).score(X[held], y[held]) for fit, held in parts]
    assert ours.path_scores_[2] == pytest.approx(np.mean(scores))
    assert ours.path_errors_[2] == pytest.approx(np.std(scores, ddof=1) / np.sqrt(10))
    np.testing.assert_array_equal(ours.selection_curve().errors, ours.path_errors_)
    assert ours.metrics()["learner/score_std_error"] in ours.path_errors_


def test_learners_that_choose_keep_clusters_together(rng):
    """Points of a cluster have one target, which a fit to the others of the cluster can look up."""
    clusters = np.repeat(np.arange(20), 5)
    X = rng.standard_normal((20, 20))[clusters] + 0.01 * rng.standard_normal((100, 20))
    y = rng.permutation(np.arange(20) % 2)[clusters]
    path = [1e-4, 1.0]
    for learner in (
        *(RidgeClassifier(path), SteinClassifier(path), SteinRegressor(path), KernelRidgeRegressor(path)),
        *(CGRegressor(path), LogisticClassifier(path), SVMClassifier(path), KernelSVMClassifier(path)),
    ):
        alone, together = (clone(learner).fit(X, y, clusters=each).path_scores_ for each in (None, clusters))
        assert alone[0] > together[0] + 0.1, type(learner).__name__
    neighbours = NeighborsClassifier([1, 3], random_state=0)
    assert neighbours.fit(X, y).path_scores_[0] > 0.95 > 0.7 > neighbours.fit(X, y, clusters).path_scores_[0]


@pytest.mark.parametrize(
    "learner",
    [
        SVMClassifier([1e-9, 1e-8], max_iter=1, random_state=0),
        KernelSVMClassifier([1e-9, 1e-8], max_iter=2, random_state=0),
        KernelSVMRegressor([1e-9, 1e-8], max_iter=2, random_state=0),
        LogisticClassifier([1e-9, 1e-8], max_iter=1, random_state=0),
    ],
)
def test_solvers_that_do_not_converge_are_warned_of_once(learner, two_classes):
    X, y = two_classes
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        learner.fit(X, y)
    found = [one for one in found if issubclass(one.category, ConvergenceWarning)]
    assert [str(one.message) for one in found] == [
        f"the solver stopped after learner.max_iter={learner.max_iter} steps before it converged for "
        "learner.regularization=1e-09, 1e-08: give larger values, or more steps"
    ]


def test_values_that_do_not_converge_and_are_worse_are_not_tried_on_all_parts(rng, monkeypatch):
    X = rng.standard_normal((60, 3))
    y = X + rng.standard_normal((60, 3))  # noise, so that the smallest values, which take the most steps, are worse
    fits, fit = [], SVR.fit
    monkeypatch.setattr(SVR, "fit", lambda svr, *args, **options: fits.append(svr.C) or fit(svr, *args, **options))
    learner = KernelSVMRegressor([1e-9, 1e-8, 0.1, 0.3, 1.0], epsilon=0.5, max_iter=1000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # values that are not tried give none
        learner.fit(X, y)
    assert np.isnan(learner.path_scores_).tolist() == [True, True, False, False, False]
    parts = len(validation_parts(60, 0.2, None, None, 0))
    assert len(fits) == 3 * (3 * parts + 1 + 1), "three values on all parts, one on the first, and the chosen one"


def test_default_paths():
    np.testing.assert_allclose(SVMClassifier().fit(np.eye(8), [0, 1] * 4).path_, np.logspace(-6, -1, 6))
    np.testing.assert_allclose(LogisticClassifier().fit(np.eye(8), [0, 1] * 4).path_, np.logspace(-8, -1, 8))


def test_logistic_tells_apart_fits_of_one_accuracy(rng):
    X = rng.normal(size=(200, 1))
    y = np.where(X[:, 0] > 0, "b", "a")
    learner = LogisticClassifier([1e-4, 1e-2, 1.0], random_state=0)
    with pytest.warns(UserWarning, match="the smallest value of its path"):
        learner.fit(X, y)
    assert learner.regularization_ == 1e-4, "all are right, and this one is surest"
    assert (np.diff(learner.path_scores_) < 0).all()
    mixed = rng.permutation(y)
    assert learner.fit(X, mixed).regularization_ > 1e-4
    losses = [
        log_loss(mixed[held], LogisticClassifier(1e-4).fit(X[fit], mixed[fit]).predict_proba(X[held]))
        for fit, held in validation_parts(200, 0.2, mixed, None, spawn(0, 1)[0])
    ]
    assert learner.path_scores_[0] == pytest.approx(-np.mean(losses), rel=1e-4)


@pytest.mark.filterwarnings("error")
def test_logistic_takes_the_largest_value_where_its_log_loss_has_levelled_off(rng):
    X = np.where(np.arange(60)[:, None] % 2, 1.0, -1.0) * rng.uniform(1, 2, (60, 3))
    learner = LogisticClassifier(random_state=0).fit(X, np.arange(60) % 2)
    gains = learner.path_scores_.max() - learner.path_scores_
    assert 0 < gains[learner.path_ == learner.regularization_] < learner.negligible_score
    assert (gains[learner.path_ > learner.regularization_] > learner.negligible_score).all()


def test_logistic_leaves_out_held_out_points_of_classes_it_was_not_fitted_to(rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    for row in range(0, 30, 3):  # the one point of its class is held out once, with each cluster and either class
        of_three = np.where(np.arange(40) == row, 2, y)
        scores = LogisticClassifier([1e-2, 1e-1], random_state=0).fit(X, of_three, np.arange(40) % 5).path_scores_
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("learner", [SVMClassifier, KernelSVMClassifier, LogisticClassifier])
@pytest.mark.filterwarnings("error")
def test_a_regularization_held_out_at_an_end_of_its_path_is_warned_of(learner, two_classes):
    X, y = two_classes
    with pytest.warns(UserWarning, match="the chosen learner.regularization=1 is the smallest value of its path"):
        learner([1.0, 1e3, 1e6], random_state=0).fit(np.hstack([X, np.ones((len(X), 1))]), y)
    learner([1e-3, 1e-2], random_state=0).fit(np.sign(X[:, :1]), X[:, 0] > 0)  # all values are as good


# ---- learners that know output operators; more in test_operators.py --------------------------------------------------


class TestSteinRegressorByGcv(PathContract, RegressorContract):
    component = SteinRegressor


class TestSteinRegressorByHoldOut(PathContract, RegressorContract):
    component, params = SteinRegressor, {"selection": "hold_out"}


class TestSteinRegressorByTwoFold(PathContract, RegressorContract):
    component, params = SteinRegressor, {"selection": "two_fold"}

    def test_scores_are_means_over_the_two_halves(self, rng):
        X, path = rng.standard_normal((41, 8)), [1e-3, 1e-2, 0.1, 1.0]
        y = X @ rng.standard_normal(8) + rng.standard_normal(41)
        chosen = self.create(regularization=path, random_state=3).fit(X, y)
        halves = hold_out(41, 0.5, None, 3)
        errors = [
            np.mean(
                [
                    np.square(SteinRegressor(value).fit(X[a], y[a]).predict(X[b]) - y[b]).mean()
                    for a, b in (halves, halves[::-1])
                ]
            )
            for value in path
        ]
        np.testing.assert_allclose(chosen.path_scores_, -np.array(errors), rtol=1e-6)
        assert chosen.regularization_ == path[int(np.argmin(errors))]


class TestCG(PathContract, RegressorContract):
    component = CGRegressor

    def test_early_termination_warns_once_with_the_values(self, rng):
        X = rng.standard_normal((60, 20)) * np.geomspace(1, 1e-3, 20)
        y = X @ rng.standard_normal(20)
        hurried = CGRegressor([1e-8, 1e-7, 1e3], rank=1, max_iter=3, random_state=0)
        with pytest.warns(
            ConvergenceWarning, match=r"learner.regularization=1e-08, 1e-07: .*raise learner.max_iter"
        ) as said:
            hurried.fit(X, y)
        assert len([warning for warning in said if warning.category is ConvergenceWarning]) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            hurried.set_params(max_iter=500).fit(X, y)


class TestSteinClassifierByGcv(PathContract, ClassifierContract):
    component = SteinClassifier


class TestSteinClassifierByHoldOut(PathContract, ClassifierContract):
    component, params = SteinClassifier, {"selection": "hold_out"}


@pytest.mark.parametrize("seed", range(5))
def test_learned_outputs_of_fewer_rows_than_columns_are_no_interpolation(seed):
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((80, 6)), 0.1 * rng.standard_normal(80)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + noise
    kernel = Decomposable(lengthscale=2.0, output="learned")
    features = OperatorRandomFourier(kernel, n_components=200, random_state=seed).fit_transform(X)
    learner = SteinRegressor().fit(features, np.stack([y, y + 0.3 * np.cos(X[:, 1])], axis=1))
    assert learner.regularization_ > 1e-9


@pytest.mark.parametrize("seed", range(20, 28))
def test_large_float32_systems_of_a_given_path_are_no_interpolation(seed):
    """Whose products of operator-valued features are in float32, of any size."""
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((80, 5)), 0.1 * rng.standard_normal(80)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + noise
    features = RandomFourier(Gaussian(2.0), n_components=400, random_state=seed).fit_transform(X)
    chosen = [SteinRegressor(list(10.0 ** np.arange(-8, 1))).fit(features.astype(t), y) for t in (np.float32, float)]
    assert chosen[0].regularization_ == chosen[1].regularization_


def test_a_path_of_learned_outputs_is_one_fit_for_each_value(rng):
    X, X_new = rng.standard_normal((60, 3)), rng.standard_normal((5, 3))
    Y = np.sin(X @ rng.standard_normal((3, 2))) @ rng.standard_normal((2, 4)) + 0.1 * rng.standard_normal((60, 4))
    kernel = Decomposable(lengthscale=1.0, output="learned")
    features = OperatorRandomFourier(kernel, n_components=30, random_state=0).fit(X)
    psi, psi_new = features.transform(X), features.transform(X_new)
    found = SteinRegressor().path_predictions(psi, Y, np.array(PATH), psi_new)
    for value, predicted in zip(PATH, found, strict=True):
        np.testing.assert_allclose(predicted, SteinRegressor(value).fit(psi, Y).predict(psi_new), rtol=1e-8)


@pytest.mark.parametrize("kind", [RidgeClassifier, LogisticClassifier, SVMClassifier, KernelSVMClassifier])
def test_balanced_classes_count_the_same(rng, kind):
    y = (np.arange(400) % 20 == 0).astype(int)
    X = rng.standard_normal((400, 3)) + y[:, None]
    weights = rng.random(400) + 0.1
    ours = kind(1e-2, class_weight="balanced", random_state=0).fit(X, y, sample_weight=weights)
    for other in (
        kind(1e-2, random_state=0).fit(X, y, sample_weight=weights * np.where(y, 19, 1)),
        kind(1e-2, class_weight={0: 2, 1: 38}, random_state=0).fit(X, y, sample_weight=weights),
    ):
        np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X), atol=1e-6)
    assert ours.predict(X).mean() > 0.15 > kind(1e-2, random_state=0).fit(X, y).predict(X).mean()


def test_a_stream_cannot_balance_classes():
    with pytest.raises(InputError, match="learner.class_weight=balanced needs the labels of all points"):
        RidgeClassifier(class_weight="balanced").partial_fit(np.eye(4), [0, 1, 0, 1])
