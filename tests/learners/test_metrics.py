"""Metrics against their formulas."""

import itertools

import numpy as np
import pytest
from mlflow.utils.validation import _validate_metric_name
from sklearn.metrics import average_precision_score, f1_score, log_loss, recall_score, roc_auc_score

from runners.measure.metrics import (
    ahead,
    evaluate,
    evaluate_probabilities,
    evaluate_ranking,
    evaluate_std,
    evaluate_targets,
    metric_name,
    target_labels,
)


def test_accuracy_is_the_share_of_correct_predictions():
    found = evaluate("classification", np.array(["a", "b", "b", "a"]), np.array(["a", "b", "a", "a"]))
    assert found["accuracy"] == 0.75


@pytest.mark.parametrize("labels", [[0, 1, 2], ["owl", "barn owl", "cat"], [False, True]], ids=str)
def test_rare_classes_count_as_much_as_frequent_ones(rng, labels):
    y = rng.choice(labels[:-1], 300, p=[0.9, 0.1][: len(labels) - 1] if len(labels) > 2 else [1.0])
    predicted = np.where(rng.random(300) < 0.7, y, rng.choice(labels, 300))  # the last class is only predicted
    found = evaluate("classification", y, predicted)
    true = np.unique(y)
    assert found["balanced_accuracy"] == pytest.approx(recall_score(y, predicted, labels=true, average="macro"))
    assert found["macro_f1"] == pytest.approx(f1_score(y, predicted, average="macro"))
    assert found["accuracy"] == np.mean(y == predicted)
    assert all(type(value) is float for value in found.values())


def test_each_target_has_its_own_metrics(rng):
    y = rng.standard_normal((20, 3))
    predicted = y + 0.1 * rng.standard_normal((20, 3))
    found = evaluate_targets(y, predicted, ["a/b", "a,b", "größe (cm)"])
    labels = ["a_b", "a_b 1", "größe _cm_"]
    assert list(found) == [f"{label}/{metric}" for label in labels for metric in ("rmse", "mae", "r2")]
    for k, label in enumerate(labels):
        for metric, value in evaluate("regression", y[:, k], predicted[:, k]).items():
            assert found[f"{label}/{metric}"] == value
    for name in found:
        _validate_metric_name(f"test/{name}")  # by MLflow
        assert metric_name(name) == name
    assert evaluate_targets(y[:, 0], predicted[:, 0], ["a"]) == {}
    assert len(evaluate_targets(np.zeros((2, 60)), np.zeros((2, 60)), [str(i) for i in range(60)])) == 150


def test_probabilities(rng):
    classes = np.array(["a", "b", "c"])
    y = rng.choice(classes, 500)
    probabilities = rng.dirichlet([1, 1, 1], 500)
    found = evaluate_probabilities(y, probabilities, classes)
    assert found["log_loss"] == pytest.approx(log_loss(y, probabilities))
    confidence, right = probabilities.max(1), classes[probabilities.argmax(1)] == y
    edges = np.linspace(0, 1, 16)
    inside = [(low < confidence) & (confidence <= high) for low, high in itertools.pairwise(edges)]
    gaps = [part.mean() * abs(right[part].mean() - confidence[part].mean()) for part in inside if part.any()]
    assert found["calibration_error"] == pytest.approx(sum(gaps))


def test_probabilities_of_a_class_that_was_not_in_training_are_zero():
    probabilities = np.array([[0.5, 0.5], [1.0, 0.0]], dtype=np.float32)
    found = evaluate_probabilities(np.array([2, 0]), probabilities, np.array([0, 1]))
    assert found["log_loss"] == pytest.approx(-np.log(np.finfo(np.float32).eps) / 2)
    calibrated = np.tile([0.25, 0.75], (8, 1))
    assert evaluate_probabilities(np.array([0, 1, 1, 1] * 2), calibrated, np.array([0, 1]))["calibration_error"] == 0


def test_scores_of_classes_rank_their_points(rng):
    y, scores = rng.integers(0, 4, 200), rng.standard_normal((200, 4))
    scores[np.arange(200), y] += 1
    found = evaluate_ranking(y, scores, np.arange(4))
    expected = [[one(y == k, scores[:, k]) for k in range(4)] for one in (roc_auc_score, average_precision_score)]
    assert list(found.values()) == pytest.approx(np.mean(expected, axis=1))
    without = y != 2
    assert evaluate_ranking(y[without], scores[without], np.arange(4))["roc_auc"] > 0.6
    two = scores[:, 1] - scores[:, 0]
    of_two = evaluate_ranking(y == 1, two, np.array([False, True]))
    assert of_two == evaluate_ranking(y == 1, np.column_stack([-two, two]), np.array([False, True]))
    assert of_two["roc_auc"] == pytest.approx(roc_auc_score(y == 1, two))
    assert evaluate_ranking(np.ones(3), np.arange(3.0), np.array([0, 1])) == {}


def test_what_is_added_to_all_scores_of_a_point_does_not_rank_it(rng):
    y, scores = rng.integers(0, 3, 200), rng.standard_normal((200, 3))
    scores[np.arange(200), y] += 2
    found = evaluate_ranking(y, ahead(scores + 100 * rng.standard_normal((200, 1))), np.arange(3))
    assert found == pytest.approx(evaluate_ranking(y, ahead(scores), np.arange(3)))
    assert found["roc_auc"] > 0.85


@pytest.mark.parametrize("rare", ["fraud", "wrong"])
def test_the_rarer_of_two_classes_is_ranked(rare, rng):
    y = np.where(rng.random(300) < 0.1, rare, "ok")
    scores, classes = rng.standard_normal(300) + 1.5 * (y == rare), np.unique(y)
    found = evaluate_ranking(y, scores if classes[1] == rare else -scores, classes)
    expected = [one(y == rare, scores) for one in (roc_auc_score, average_precision_score)]
    assert list(found.values()) == pytest.approx(expected)


def test_standard_deviations_of_observations(rng):
    y = rng.standard_normal((4000, 2)) * [1.0, 3.0]
    found = evaluate_std(y, np.zeros((4000, 2)), np.tile([1.0, 3.0], (4000, 1)))
    assert found["coverage"] == pytest.approx(0.95, abs=0.01)
    assert found["nlpd"] == pytest.approx(np.log(2 * np.pi) / 2 + 0.5 + np.log(3) / 2, abs=0.02)


@pytest.mark.parametrize("shape", [(20,), (20, 3)])
def test_regression(rng, shape):
    y = rng.standard_normal(shape)
    predicted = y + 0.1 * rng.standard_normal(shape)
    found = evaluate("regression", y, predicted)
    columns = np.square(y - predicted).reshape(20, -1).mean(0)
    assert found["rmse"] == pytest.approx(np.sqrt(columns).mean())
    assert found["mae"] == pytest.approx(np.abs(y - predicted).mean())
    assert found["r2"] == pytest.approx(np.mean(1 - columns / y.reshape(20, -1).var(0)))
    assert all(type(value) is float for value in found.values())


def test_labels_of_targets_are_never_equal():
    labels = target_labels(["w/h 2", "w/h", "w:h", "w,h", "w h 2"])
    assert labels[:3] == ["w_h 2", "w_h", "w_h 3"]
    assert len(set(labels)) == 5
