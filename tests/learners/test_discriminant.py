"""The rule of linear discriminant analysis on leave-one-out predictions: where it is taken, and what it is."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from orbit.learners import RidgeClassifier
from orbit.learners.discriminant import discriminant
from orbit.solvers.selection import LeftOutRows


def on_a_line(rng, n, spread=3.0):
    """Three classes whose means lie on a line, with four columns of noise."""
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 5))
    X[:, 0] += spread * (y - 1)
    return X, np.array(["low", "middle", "high"])[y]


def left_out(rng, n=150, weights=None):
    """Scores of one-against-all targets of classes on a line, with noise."""
    y = np.arange(n) % 3
    scores = np.stack([1.0 - y, 0 * y - 0.4, y - 1.0], 1) + 0.3 * rng.normal(size=(n, 3))
    return LeftOutRows(scores, 2.0 * (y[:, None] == np.arange(3)) - 1, np.ones(n) if weights is None else weights)


def test_classes_on_a_line_are_told_apart(rng):
    X, y = on_a_line(rng, 900)
    largest, auto = (RidgeClassifier(decision=rule).fit(X[:150], y[:150]) for rule in ("largest", "auto"))
    assert (largest.decision_, auto.decision_) == ("largest", "discriminant")
    assert auto.score(X[150:], y[150:]) > largest.score(X[150:], y[150:]) + 0.1
    scores = auto.decision_function(X)
    np.testing.assert_allclose(scores, X @ auto.coef_.T + auto.intercept_)
    np.testing.assert_allclose(scores.sum(1), 0, atol=1e-8)
    assert (auto.classes_[scores.argmax(1)] == auto.predict(X)).all()


@pytest.mark.parametrize(
    "settings", [{"decision": "largest"}, {"regularization": 1e-3}, {"selection": "gcv"}, {"selection": "hold_out"}]
)
def test_the_largest_score_decides_without_leave_one_out_predictions(settings, rng):
    assert RidgeClassifier(**settings).fit(*on_a_line(rng, 150)).decision_ == "largest"


def test_the_largest_score_decides_where_it_is_as_good(rng):
    y = np.arange(150) % 3
    X = np.eye(3)[y] + 0.3 * rng.normal(size=(150, 3))
    assert RidgeClassifier().fit(X, y).decision_ == "largest"
    two = y > 0
    assert RidgeClassifier().fit(X, two).decision_ == "largest"


def test_the_rule_is_discriminant_analysis(rng):
    rows = left_out(rng)
    A, c = discriminant(rows)
    labels = rows.targets.argmax(1)
    # scikit-learn's covariance is S (1 - g) + g tr(S) / k; with g = 0.1 / 1.1 this is ours over 1.1, for equal priors
    n, k = rows.predicted.shape
    oracle = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1 / 1.1, priors=np.full(k, 1 / k))
    oracle.fit(rows.predicted, labels)
    expected = oracle.decision_function(rows.predicted) * (n - k) / n / 1.1
    np.testing.assert_allclose(rows.predicted @ A + c, expected - expected.mean(1, keepdims=True), atol=1e-8)


def test_a_weight_is_a_repeated_row(rng):
    rows = left_out(rng, 60)
    times = 1 + (np.arange(60) % 7 == 0)
    weighted = discriminant(LeftOutRows(rows.predicted, rows.targets, times.astype(float)))
    repeated = discriminant(
        LeftOutRows(rows.predicted.repeat(times, 0), rows.targets.repeat(times, 0), np.ones(times.sum()))
    )
    labels, k = rows.targets.argmax(1), 3
    ratio = (60 / (60 - k)) / (times.sum() / (times.sum() - k))  # of the degrees of freedom of both covariances
    np.testing.assert_allclose(weighted[0] * ratio, repeated[0], rtol=1e-10)
    assert len(np.unique(labels)) == k


def test_equal_scores_have_no_rule():
    targets = 2.0 * np.eye(3)[np.arange(30) % 3] - 1
    assert discriminant(LeftOutRows(np.zeros((30, 3)), targets, np.ones(30))) is None
    assert discriminant(LeftOutRows(targets, targets, np.ones(30))) is None


def test_classes_of_one_row_have_no_rule(rng):
    rows = left_out(rng, 60)
    few = LeftOutRows(rows.predicted[:4], rows.targets[:4], rows.weights[:4])
    assert discriminant(few) is None
