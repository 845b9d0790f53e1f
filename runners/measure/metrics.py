"""Metrics of predictions, under the names that runs log."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from scipy import stats
from sklearn import metrics

from orbit.core.errors import InputError
from orbit.learners.answers import QUANTILE
from orbit.learners.calibration import reliability

#: Task -> its metrics, the main one first.
METRICS = {"classification": ("accuracy", "balanced_accuracy", "macro_f1"), "regression": ("rmse", "mae", "r2")}
#: Metrics of what learners say beside their predictions: scores, probabilities or standard deviations.
METRICS_OF_MORE = {"classification": ("roc_auc", "average_precision", "log_loss"), "regression": ("nlpd",)}
LOWER_IS_BETTER = ("rmse", "mae", "log_loss", "nlpd")

#: Metric -> whether larger is better. The main metric of a run is the first of these that it has.
MAIN_METRICS = {"test/accuracy": True, "test/rmse": False, "test/forces/mae": False} | {
    f"validation/{name}": name not in LOWER_IS_BETTER
    for kinds in (METRICS, METRICS_OF_MORE)
    for names in kinds.values()
    for name in names
}

# What metrics need that parts or learners may not have.
_NEEDED = {
    "r2": "parts of at least two validation points, found one of 1",
    "log_loss": "probabilities, as of learner=logistic",
    "nlpd": "standard deviations, as of learner=gp",
}
_NEEDED_TO_RANK = "parts with points of two classes, and a learner with scores or probabilities"

# Targets that have metrics of their own, and characters of their names in those of the metrics.
_MOST_TARGETS, _LONGEST_NAME = 50, 100


def ranks_classes(y: np.ndarray, area: float | None) -> bool:
    """Whether an area under the ROC curve of two classes is above one half by more than chance.

    By the variance of the Mann-Whitney statistic of equal scores, with p below 0.001.

    >>> y = np.arange(1000) % 10 == 0
    >>> ranks_classes(y, 0.7), ranks_classes(y, 0.52), ranks_classes(y, None)
    (True, False, False)
    """
    classes, counts = np.unique(y, return_counts=True)
    if area is None or len(classes) != 2:
        return False
    deviation = float((len(y) + 1) / 12 / counts.prod(dtype=float)) ** 0.5
    return bool(stats.norm.sf((area - 0.5) / deviation) < 1e-3)


def evaluate(task: str, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Metrics of a prediction.

    Parameters
    ----------
    task : {"classification", "regression"}
    y, predicted : arrays, shape (n,) or (n, k)

    Returns
    -------
    dict
        For classification ``accuracy``, ``balanced_accuracy`` (the mean of the classes' recalls) and ``macro_f1`` (the
        mean of the classes' F1 scores), all from 0 to 1; for regression ``rmse``, ``mae`` (units of y) and ``r2``,
        means over the targets if there are several; a single point has no ``r2``.

    >>> evaluate("classification", np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))["balanced_accuracy"]
    0.5
    """
    if task == "classification":
        return _by_class(y, predicted)
    found = {
        "rmse": float(metrics.root_mean_squared_error(y, predicted)),
        "mae": float(metrics.mean_absolute_error(y, predicted)),
    }
    return found | {"r2": float(metrics.r2_score(y, predicted))} if len(y) > 1 else found


def score(found: Mapping[str, float], metric: str) -> float:
    """One of the metrics of a validation part.

    Raises
    ------
    InputError
        For one that the points of the part or the learner do not have.
    """
    if metric not in found:
        raise InputError(f"selection.metric={metric} needs {_NEEDED.get(metric, _NEEDED_TO_RANK)}")
    return found[metric]


def _by_class(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Recalls are averaged over the classes in ``y``, F1 scores also over those that are only predicted."""
    classes, codes = np.unique(np.concatenate([y, predicted]), return_inverse=True)
    truth, found = codes[: len(y)], codes[len(y) :]
    right, n_true, n_found = (np.bincount(c, minlength=len(classes)) for c in (truth[truth == found], truth, found))
    present = n_true > 0
    return {
        "accuracy": float(right.sum() / len(y)),
        "balanced_accuracy": float((right[present] / n_true[present]).mean()),
        "macro_f1": float((2 * right / (n_true + n_found)).mean()),
    }


def derived(found: Mapping[str, float]) -> dict[str, float]:
    """Metrics in the units of some papers, from those of :func:`evaluate` on test points.

    >>> derived({"test/accuracy": 0.75})
    {'test/error_percent': 25.0}
    """
    return {"test/error_percent": 100 * (1 - found["test/accuracy"])} if "test/accuracy" in found else {}


def evaluate_targets(y: np.ndarray, predicted: np.ndarray, names: list[str]) -> dict[str, float]:
    """The metrics of each target of a regression with several, ``NAME/rmse`` and so on; of the first 50.

    Parameters
    ----------
    y, predicted : arrays, shape (n,) or (n, k)
    names : list of str
        Names of the k targets.

    >>> evaluate_targets(np.array([[0.0, 1.0]] * 2), np.array([[0.0, 3.0]] * 2), ["width", "height"])["height/rmse"]
    2.0
    """
    if y.ndim == 1:
        return {}
    found: dict[str, float] = {}
    for k, label in enumerate(target_labels(names)[:_MOST_TARGETS]):
        found |= {f"{label}/{key}": v for key, v in evaluate("regression", y[:, k], predicted[:, k]).items()}
    return found


def evaluate_kinds(task: str, y: np.ndarray, predicted: np.ndarray, kinds: np.ndarray) -> dict[str, float]:
    """The metrics of the points of each kind, ``KIND/mae`` and so on.

    Parameters
    ----------
    task : {"classification", "regression"}
    y, predicted : arrays, shape (n,) or (n, k)
    kinds : array of str, shape (n,)
        Such as the element of each atom.

    >>> evaluate_kinds("regression", np.zeros(2), np.array([1.0, 2.0]), np.array(["C", "H"]))["H/mae"]
    2.0
    """
    found: dict[str, float] = {}
    for kind in np.unique(kinds):
        rows = kinds == kind
        found |= {f"{kind}/{key}": value for key, value in evaluate(task, y[rows], predicted[rows]).items()}
    return found


def target_labels(names: list[str]) -> list[str]:
    """Names of targets as parts of the names of metrics: with the characters that MLflow allows, no two equal.

    >>> target_labels(["width/cm", "width cm", "width,cm", "größe"])
    ['width_cm', 'width cm', 'width_cm 2', 'größe']
    """
    labels: list[str] = []
    for k, name in enumerate(names):
        base = label = re.sub(r"[^\w\- ]", "_", name.strip())[:_LONGEST_NAME] or "_"
        number = k
        while label in labels:
            label, number = f"{base} {number}", number + 1
        labels.append(label)
    return labels


def metric_name(name: str) -> str:
    """The name without the characters that MLflow rejects, such as a comma in the label of a row.

    >>> metric_name("LGIKA, second layer/test/accuracy")
    'LGIKA second layer/test/accuracy'
    """
    return re.sub(r"[^\w\-./ :]", "", name)


def evaluate_probabilities(y: np.ndarray, probabilities: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Metrics of the probabilities of a classifier.

    Parameters
    ----------
    y : array, shape (n,)
    probabilities : array, shape (n, k)
    classes : array, shape (k,)
        The sorted classes of the columns. Others in ``y`` have the probability 0.

    Returns
    -------
    dict
        ``log_loss``, the mean of -log of the true class's probability (at least the precision of its type), and
        ``calibration_error``, the expected calibration error (0 to 1) over 15 bins of confidence.

    >>> evaluate_probabilities(np.array([0]), np.array([[0.25, 0.75]]), np.array([0, 1]))
    {'log_loss': 1.3862943611198906, 'calibration_error': 0.75}
    """
    column = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    of_truth = np.where(classes[column] == y, probabilities[np.arange(len(y)), column], 0)
    log_loss = -np.log(np.maximum(of_truth, np.finfo(probabilities.dtype).eps, dtype=np.float64)).mean()
    return {"log_loss": float(log_loss), "calibration_error": reliability(y, probabilities, classes).error}


def evaluate_std(y: np.ndarray, predicted: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """How well the standard deviations of observations agree with the errors, all of shape (n,) or (n, k).

    Returns
    -------
    dict
        ``nlpd``, the mean negative log density of the targets, and ``coverage``, the share of them in the normal
        intervals of 95 %.

    >>> evaluate_std(np.array([0.0, 3.0]), np.zeros(2), np.ones(2))["coverage"]
    0.5
    """
    return {
        "nlpd": -float(stats.norm.logpdf(y, predicted, std).mean()),
        "coverage": float((np.abs(y - predicted) <= QUANTILE * std).mean()),
    }


def evaluate_ranking(y: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """How well the scores of a classifier rank the points of a class before the others, whatever the threshold.

    Parameters
    ----------
    y : array, shape (n,)
    scores : array, shape (n, k), or (n,) for the second of two classes
        Probabilities or other scores.
    classes : array, shape (k,)

    Returns
    -------
    dict
        ``roc_auc`` and ``average_precision``: of two classes those of the rarer one in ``y`` (of the second if they are
        equally frequent), of more the means over the classes in ``y``, each against all others. Empty if ``y`` has none
        of them, or one class only.

    >>> evaluate_ranking(np.array([0, 0, 1]), np.array([0.1, 0.4, 0.3]), np.array([0, 1]))
    {'roc_auc': 0.5, 'average_precision': 0.5}
    """
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    truth = y[:, None] == classes
    shown = truth.any(0) & ~truth.all(0)
    if len(classes) == 2:
        shown[truth.sum(0).argmax()] = False  # any scores rank the points of a class that nearly all have first
    if not shown.any():
        return {}
    truth, scores = truth[:, shown], scores[:, shown]
    return {
        "roc_auc": float(metrics.roc_auc_score(truth, scores)),
        "average_precision": float(metrics.average_precision_score(truth, scores)),
    }


def ahead(scores: np.ndarray) -> np.ndarray:
    """How far the score of each of three or more classes is ahead of the best other one, shape (n, k).

    Scores of a classifier say which class of a point is likeliest. Those of one class need not be comparable between
    points: what is added to all scores of a point, as in discriminant analysis, changes no prediction, but their order.

    >>> ahead(np.array([[1.0, 2.0, 5.0], [11.0, 13.0, 12.0]])).tolist()
    [[-4.0, -3.0, 3.0], [-2.0, 1.0, -1.0]]
    """
    if scores.ndim == 1:
        return scores
    second, first = np.sort(scores, axis=1)[:, -2:].T[:, :, None]
    return scores - np.where(scores == first, second, first)


def paired_test(task: str, y: np.ndarray, one: np.ndarray, two: np.ndarray) -> dict[str, float]:
    """Whether two models differ, by their predictions for the same points.

    Parameters
    ----------
    task : {"classification", "regression"}
    y, one, two : arrays, shape (n,) or (n, k)
        Targets, and the predictions of both models.

    Returns
    -------
    dict
        For classification ``only_first_right`` and ``only_second_right``, numbers of points, and ``p_mcnemar``, the
        exact McNemar test: a binomial test of these two numbers (McNemar 1947). For regression ``p_t`` and
        ``p_wilcoxon``, the paired t test and Wilcoxon's signed rank test of the squared errors of each point. All are
        two-sided, and 1 for equal predictions.

    >>> y = np.zeros(6)
    >>> paired_test("classification", y, y, np.array([1, 1, 1, 1, 1, 0]))
    {'only_first_right': 5.0, 'only_second_right': 0.0, 'p_mcnemar': 0.0625}
    """
    if task == "classification":
        first, second = one == y, two == y
        only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
        discordant = only_first + only_second
        p = stats.binomtest(only_first, discordant).pvalue if discordant else 1.0
        return {"only_first_right": float(only_first), "only_second_right": float(only_second), "p_mcnemar": float(p)}
    return paired_values_test(*(np.square(found - y).reshape(len(y), -1).sum(1) for found in (one, two)))


def paired_values_test(one: np.ndarray, two: np.ndarray) -> dict[str, float]:
    """Whether two settings differ, by the values that they have in the same cases, such as points or seeds.

    Parameters
    ----------
    one, two : arrays, shape (n,), n >= 2

    Returns
    -------
    dict
        ``p_t`` and ``p_wilcoxon``, two-sided, of the paired t test and Wilcoxon's signed rank test; 1 for equal values.
        With n pairs Wilcoxon's is at least 2^(1 - n); it stands for both if all differences are equal.

    >>> {name: round(p, 4) for name, p in paired_values_test(np.array([1.0, 2, 3]), np.array([2.0, 4, 4])).items()}
    {'p_t': 0.0572, 'p_wilcoxon': 0.25}
    """
    difference = np.asarray(one) - np.asarray(two)
    if not difference.any():
        return {"p_t": 1.0, "p_wilcoxon": 1.0}
    p_wilcoxon = float(stats.wilcoxon(difference).pvalue)
    spread = np.ptp(difference) > 1e-12 * np.abs(difference).max()  # t is infinite for equal differences
    return {"p_t": float(stats.ttest_1samp(difference, 0).pvalue) if spread else p_wilcoxon, "p_wilcoxon": p_wilcoxon}
