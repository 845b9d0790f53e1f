"""Figures of predictions beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import confusion_matrix

from orbit.learners.calibration import reliability as binned
from orbit.plots.axes import (
    Sample,
    axes_or_new,
    cut,
    draw_cloud,
    draw_samples,
    draw_signal,
    figure_of,
    grid_of_axes,
    plain,
    short,
    slice_shown,
)
from orbit.plots.molecules import draw_molecule, name_elements

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from orbit.data.base import ShownAs

# How points are drawn that are neither images nor drawn by their shape.
_DRAWN = {"series": draw_signal, "molecule": draw_molecule, "cloud": draw_cloud}

_MAX_ERRORS = 24
_MAX_TARGETS = 12
_MAX_LABELLED_CLASSES = 20
_LONGEST_ABOVE = 17  # characters above a sample, as wide as it
_LONGEST_CLASS, _MOST_BESIDE = 24, 36  # characters of a name, and of all names that stand beside each other


def confusion(y: np.ndarray, predicted: np.ndarray, ax: Axes | None = None) -> Figure:
    """The confusion matrix: shares of each true class (rows) by predicted class (columns), counts in the cells.

    Parameters
    ----------
    y, predicted : arrays, shape (n,)
        Classes. Of more than 20, some names and no counts are written.
    ax : Axes or None
        Axes to draw into; None makes a new figure.
    """
    classes = np.unique(np.concatenate([np.unique(y), np.unique(predicted)]))
    counts = confusion_matrix(y, predicted, labels=classes)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    named = range(0, len(classes), -(-len(classes) // _MAX_LABELLED_CLASSES))
    names = [cut(str(classes[i]), _LONGEST_CLASS) for i in named]
    upright = len(names) > 10 or sum(map(len, names)) > _MOST_BESIDE
    room = 0.075 * max(map(len, names))  # inches for the names
    ax = axes_or_new(ax, 5.1 + room, 4.5 + (room if upright else 0.1))
    figure = figure_of(ax)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=ax, label="share of the true class")
    size = 8 if len(names) > 10 else None
    ax.set_xticks(named, map(plain, names), rotation=90 if upright else 0, fontsize=size)
    ax.set_yticks(named, map(plain, names), fontsize=size)
    if len(classes) <= _MAX_LABELLED_CLASSES:
        for i, j in np.argwhere(counts):
            color = "white" if shares[i, j] > 0.5 else "black"
            ax.text(j, i, counts[i, j], ha="center", va="center", fontsize=7, color=color)
    ax.set(xlabel="predicted", ylabel="true")
    ax.set_title(f"accuracy {np.mean(y == predicted):.2%}")
    return figure


def predicted_against_true(
    y: np.ndarray,
    predicted: np.ndarray,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
    kinds: np.ndarray | None = None,
) -> Figure:
    """Predictions against targets, with the diagonal: a panel for each target.

    Parameters
    ----------
    y, predicted : arrays, shape (n,) or (n, k)
        Of more than 12 targets the first are drawn.
    names : sequence of str or None
        Names of the k targets; None is 0, 1 and so on.
    ax : Axes or None
        Axes to draw into, all targets together; None makes a new figure.
    kinds : array of str, shape (n,), or None
        Kinds of points, which get a colour each.

    Examples
    --------
    >>> y = np.array([[1.0, 20.0], [2.0, 30.0]])
    >>> [ax.get_title() for ax in predicted_against_true(y, y + 1, ["width", "height"]).axes]
    ['width', 'height']
    """
    y, predicted = (np.reshape(values, (len(values), -1)) for values in (y, predicted))
    if ax is not None or y.shape[1] == 1:
        ax = axes_or_new(ax, 4.4, 4.2)
        _draw_against_true(ax, np.ravel(y), np.ravel(predicted), None if kinds is None else kinds.repeat(y.shape[1]))
        return figure_of(ax)
    shown = range(min(y.shape[1], _MAX_TARGETS))
    figure, axes = grid_of_axes(len(shown), 4, 3.2, 3.1, more=0.3)
    for k, panel in zip(shown, axes, strict=True):
        _draw_against_true(panel, y[:, k], predicted[:, k], kinds)
        panel.set_title(plain(k if names is None else names[k]), fontsize=10)
    if len(shown) < y.shape[1]:
        figure.suptitle(f"the first {len(shown)} of {y.shape[1]} targets", fontsize=9)
    return figure


def _draw_against_true(ax: Axes, y: np.ndarray, predicted: np.ndarray, kinds: np.ndarray | None = None) -> None:
    if kinds is None:
        ax.plot(y, predicted, ".", ms=3, alpha=0.5)
    else:
        for kind in np.unique(kinds):
            ax.plot(y[kinds == kind], predicted[kinds == kind], ".", ms=3, alpha=0.5, label=plain(kind))
        ax.legend(fontsize=8, markerscale=3)
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, "k-", lw=0.8)
    ax.locator_params(axis="x", nbins=4)  # labels such as -2000 do not overlap
    ax.set(xlabel="true", ylabel="predicted")
    ax.grid(alpha=0.3)


def reliability(y: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, ax: Axes | None = None) -> Figure:
    """Accuracy against confidence, the largest probability of each point, in 15 bins, with the share of points in each.

    Points on the diagonal are calibrated; below it the probabilities are too large. The title has the expected
    calibration error.

    Parameters
    ----------
    y : array, shape (n,)
        Classes.
    probabilities : array, shape (n, k)
    classes : array, shape (k,)
        The classes of the columns.
    ax : Axes or None
        Axes to draw into; None makes a new figure.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.9, 0.1]])
    >>> reliability(np.array([0, 1]), probabilities, np.array([0, 1])).axes[0].get_title()
    'expected calibration error 40.0%'
    """
    found = binned(y, probabilities, classes)
    ax = axes_or_new(ax, 4.6, 4.2)
    ax.plot([0, 1], [0, 1], "k-", lw=0.8)
    ax.vlines(found.confidence, 0, found.share, color="0.6", lw=6, alpha=0.6, label="share of the points")
    ax.plot(found.confidence, found.accuracy, "o-", ms=5, label="accuracy")
    ax.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="confidence (largest probability)", ylabel="accuracy")
    ax.set_title(f"expected calibration error {found.error:.1%}", fontsize=10)
    ax.legend(fontsize=8, loc="upper left")
    ax.grid(alpha=0.3)
    return figure_of(ax)


def error_examples(
    X: np.ndarray,
    y: np.ndarray,
    predicted: np.ndarray,
    task: str,
    ink: bool = False,
    shown_as: ShownAs = "image",
) -> Figure | None:
    """The samples with the worst predictions, each with its target and prediction; at most 24.

    For classification errors of all true classes in turn; for regression the samples with the largest
    residuals (root mean square over outputs).

    Parameters
    ----------
    X : array, shape (n, *shape)
        Images are drawn as images, vectors and signals as lines.
    y, predicted : arrays, shape (n,) or (n, k)
    task : {"classification", "regression"}
    ink : bool
        Draw large values of images dark.
    shown_as : {"image", "series", "molecule", "cloud"}
        ``series``: draw points of shape (length, channels) as lines, one for each channel. ``molecule``: Coulomb
        matrices in atomic units as atoms and bonds, seen along their shortest axis. ``cloud``: points of shape (points,
        coordinates), or more columns, as points. Others by their shape.

    Returns
    -------
    Figure, or None if every class was predicted correctly
    """
    order = worst_first(y, predicted, task)
    worst = order[:_MAX_ERRORS]
    if len(worst) == 0:
        return None
    n_columns = min(6, len(worst))
    n_rows = -(-len(worst) // n_columns)
    size = 8 if y.ndim == 1 else 5
    samples = [Sample(X[i], X[i], _above(y[i], predicted[i]), ink=ink) for i in worst]
    ax = axes_or_new(None, 1.5 * n_columns, 1.6 * n_rows + 0.5)
    draw = _DRAWN.get(shown_as)
    draw_samples(ax, samples, n_columns, size, draw)
    classes = task == "classification"
    shown = f"{len(worst)} of {len(order)} errors" if classes else f"the {len(worst)} largest residuals"
    part = "" if draw else slice_shown(X.shape[1:])
    ax.set_title(f"{shown}: true → predicted" + (part and f"; {part}"), fontsize=9)
    if shown_as == "molecule":
        name_elements(ax, X[worst])
    return figure_of(ax)


def _above(truth: np.ndarray, predicted: np.ndarray) -> str:
    """Target and prediction above a sample, in two lines if they are long, as several outputs are."""
    names = [cut(short(value), _LONGEST_ABOVE - 2) if truth.ndim == 0 else short(value) for value in (truth, predicted)]
    in_one = truth.ndim == 0 and sum(map(len, names)) + 3 <= _LONGEST_ABOVE
    return f"{names[0]}{' ' if in_one else chr(10)}→ {names[1]}"


def worst_first(y: np.ndarray, predicted: np.ndarray, task: str, standardize: bool = False) -> np.ndarray:
    """Indices of wrong classes, those of all true classes in turn; or of all points, the largest residuals first.

    Residuals of several targets are averaged (root mean square), with ``standardize`` in units of each target's
    standard deviation.
    """
    if task == "classification":
        return _in_turn(np.flatnonzero(predicted != y), y)
    deviation = y.std(0) if standardize and y.ndim > 1 else np.ones(y.shape[1:])
    return np.argsort(-_mean_square((predicted - y) / np.where(deviation > 0, deviation, 1)), kind="stable")


def _in_turn(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows in the order of the data: the first one of each class, the second one of each, and so on."""
    by_class = rows[np.argsort(y[rows], kind="stable")]
    _, first, counts = np.unique(y[by_class], return_index=True, return_counts=True)
    turn = np.arange(len(rows)) - np.repeat(first, counts)
    return by_class[np.argsort(turn, kind="stable")]


def _mean_square(residuals: np.ndarray) -> np.ndarray:  # (n,) or (n, k) -> (n,)
    return np.square(np.asarray(residuals, dtype=np.float64).reshape(len(residuals), -1)).mean(1)
