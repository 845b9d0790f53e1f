"""Splits for data that comes without a test part, shared by all loaders."""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from orbit.core.errors import InputError, ParameterError, shortened
from orbit.core.random import RandomState, hold_out, part_size, spawn
from orbit.data.checks import Task, are_labels, are_one_hot

#: Different integers up to which they are taken for classes.
MOST_CLASSES = 100

#: The parts that users give, and how they may be spelled.
TRAIN, VALIDATION, TEST = "train", "val", "test"
_PARTS = {TRAIN: r"train(ing)?", VALIDATION: r"val(id|idation)?", TEST: r"test(ing)?"}

# More different integers than the first number, with fewer points each than the second, give a warning: they may be
# meant as numbers.
_FEW_CLASSES, _FEW_POINTS = 10, 30

# Random splits of clusters that are tried; the one with the best sizes is taken.
_CLUSTER_SPLITS = 10


def guess_task(y: np.ndarray, n: int | None = None) -> Task:
    """Classification for strings, booleans and at most 100 distinct integers; regression otherwise.

    Floating-point numbers are taken for integers if they are exact ones; of several columns only one-hot rows are,
    which :func:`~orbit.data.checks.check_arrays` refuses. ``y`` may be the different values among ``n`` targets.

    >>> guess_task(np.array([0.0, 1.0])), guess_task(np.array([0.5, 1.0])), guess_task(np.arange(200))
    ('classification', 'regression', 'regression')
    >>> guess_task(np.eye(3)), guess_task(2 * np.eye(3))
    ('classification', 'regression')
    """
    if y.dtype.kind not in "iuf":
        return "classification"
    if y.dtype.kind == "f" and not (are_one_hot(y) if y.ndim > 1 else are_labels(y)):
        return "regression"
    count = len(np.unique(y))
    if _FEW_CLASSES < count <= MOST_CLASSES and (n or len(y)) < _FEW_POINTS * count:
        warnings.warn(
            f"the targets are {count} different whole numbers, which are taken for classes, with fewer than "
            f"{_FEW_POINTS} points each on average; set dataset.task=regression if they are numbers",
            stacklevel=2,
        )
    return "classification" if count <= MOST_CLASSES else "regression"


def split_off_test(
    y: np.ndarray,
    task: Task,
    test_fraction: float,
    random_state: RandomState,
    path: str,
    clusters: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Random indices of a training and a test part, stratified by class as far as possible, or of whole clusters.

    Raises
    ------
    InputError
        If there are too few points, naming the file ``path``.
    """
    labels = y if task == "classification" else None
    if clusters is not None:
        return split_clusters(clusters, test_fraction, spawn(random_state, 1)[0], labels)
    n = len(y)
    if n < 2:
        raise InputError(f"dataset.path: {path} has {n} points, too few to split; expected at least 2")
    return hold_out(n, test_fraction, labels, random_state)


def split_clusters(
    clusters: np.ndarray, fraction: float, random_state: RandomState, labels: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Random indices of two parts, neither empty, that have no cluster in common.

    Clusters may have different sizes and classes: of ten random splits (scikit-learn's GroupShuffleSplit) it is the
    first whose first part lacks the fewest classes, and whose second part has a share of the points of each class that
    is closest to ``fraction``.

    Raises
    ------
    InputError
        If there is only one cluster.

    Examples
    --------
    >>> clusters = np.array(["a", "b", "b", "c", "c", "c"])
    >>> one, two = split_clusters(clusters, 0.5, random_state=0)
    >>> len(two), set(clusters[one]) & set(clusters[two])
    (3, set())
    """
    n_clusters = len(np.unique(clusters))
    if n_clusters < 2:
        raise InputError(f"all {len(clusters)} points are of one group: expected at least 2 groups to split them")
    size = part_size(n_clusters, fraction)
    splits = GroupShuffleSplit(_CLUSTER_SPLITS, test_size=size, random_state=spawn(random_state, 1)[0])
    classes = np.zeros(len(clusters), int) if labels is None else np.unique(labels, return_inverse=True)[1]
    counts = np.bincount(classes)

    def distance(parts: tuple[np.ndarray, np.ndarray]) -> tuple[int, float]:
        of_two = np.bincount(classes[parts[1]], minlength=len(counts))
        return int((of_two == counts).sum()), float(np.abs(of_two - fraction * counts).sum())

    one, two = min(splits.split(clusters, groups=clusters), key=distance)
    return one, two


def check_clusters(train: np.ndarray | None, test: np.ndarray | None, name: str) -> None:
    """Raise ``InputError`` for a cluster in both parts, naming the parameter ``name``; None is no clusters."""
    if train is None or test is None:
        return
    if len(both := np.intersect1d(train, test)):
        raise InputError(
            f"{name}: expected all points of a group in one part, found {len(both)} groups with points in the training "
            f"part and in the test part, e.g. {shortened(str(both[0]))}"
        )


def balanced(y: np.ndarray, per_class: int, rng: np.random.Generator, name: str) -> np.ndarray:
    """Indices of ``per_class`` random points of every class, in ascending order.

    Raises
    ------
    InputError
        If a class has fewer, naming the parameter ``name``.

    Examples
    --------
    >>> y = np.array([5, 5, 5, 8, 8])
    >>> y[balanced(y, 2, np.random.default_rng(0), "per_class")].tolist()
    [5, 5, 8, 8]
    """
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < per_class:
        smallest = classes[counts.argmin()]
        raise ParameterError(name, f"at most {counts.min()}, the points of class {smallest}", per_class, "dataset")
    chosen = [rng.choice(np.flatnonzero(y == label), per_class, replace=False) for label in classes]
    return np.sort(np.concatenate(chosen))


def given_parts(names: Iterable[object], key: str) -> np.ndarray:
    """The part of each point by its name: train, test or val.

    Raises
    ------
    InputError
        If there are others, or no training or test part, naming the parameter ``key``.

    Examples
    --------
    >>> given_parts(["train", "Testing", "valid"], "split_column").tolist()
    ['train', 'test', 'val']
    """
    names = list(names)
    parts = np.array([_part(name) for name in names])
    if not {TRAIN, TEST} <= {*parts} <= {*_PARTS}:
        found = shortened(", ".join(dict.fromkeys(map(str, names))))
        raise InputError(f"dataset.{key}: expected the parts train and test, perhaps val, found {found}")
    return parts


def divided(parts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Indices of the training points, validation points included, and of the test points; and folds, or None."""
    train, test = np.flatnonzero(parts != TEST), np.flatnonzero(parts == TEST)
    return train, test, np.where(parts[train] == VALIDATION, 0, -1) if VALIDATION in parts else None


def folders_of_parts(folder: Path) -> dict[str, Path]:
    """The folders of the training, validation and test part in a folder; empty if it has none for training or test."""
    found = {_part(path.name): path for path in sorted(folder.iterdir()) if path.is_dir()}
    parts = {part: found[part] for part in _PARTS if part in found}
    return parts if {TRAIN, TEST} & {*parts} else {}


def _part(name: object) -> str:
    """The part that a name means, or the name itself."""
    return next((part for part, names in _PARTS.items() if re.fullmatch(names, str(name), re.IGNORECASE)), str(name))
