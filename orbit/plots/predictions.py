"""Figures of predictions beside the truth."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

from orbit.plots.axes import axes_or_new, draw_sample, figure_of, short

_MAX_ERRORS = 24
_MAX_LABELLED_CLASSES = 20


def confusion(y: np.ndarray, predicted: np.ndarray, ax: Axes | None = None) -> Figure:
    """The confusion matrix: shares of each true class (rows) by predicted class (columns), counts in the cells.

    Parameters
    ----------
    y, predicted : arrays, shape (n,)
        Classes. With more than 20 of them neither names nor counts are written.
    ax : Axes or None
        Axes to draw into; None makes a new figure.
    """
    classes = np.unique(np.concatenate([np.unique(y), np.unique(predicted)]))
    counts = confusion_matrix(y, predicted, labels=classes)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    ax = axes_or_new(ax, 5.2, 4.6)
    figure = figure_of(ax)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=ax, label="share of the true class")
    if len(classes) <= _MAX_LABELLED_CLASSES:
        ax.set_xticks(range(len(classes)), classes, rotation=90 if len(classes) > 10 else 0)
        ax.set_yticks(range(len(classes)), classes)
        for i, j in np.argwhere(counts):
            color = "white" if shares[i, j] > 0.5 else "black"
            ax.text(j, i, counts[i, j], ha="center", va="center", fontsize=7, color=color)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title(f"accuracy {np.mean(y == predicted):.2%}")
    return figure


def predicted_against_true(y: np.ndarray, predicted: np.ndarray, ax: Axes | None = None) -> Figure:
    """A scatter plot of predictions against targets, all outputs together, with the diagonal.

    Parameters
    ----------
    y, predicted : arrays, shape (n,) or (n, k)
    ax : Axes or None
        Axes to draw into; None makes a new figure.
    """
    ax = axes_or_new(ax, 4.4, 4.2)
    y, predicted = np.ravel(y), np.ravel(predicted)
    ax.plot(y, predicted, ".", ms=3, alpha=0.5)
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, "k-", lw=0.8)
    ax.set_xlabel("true")
    ax.set_ylabel("predicted")
    ax.grid(alpha=0.3)
    return figure_of(ax)


def error_examples(X: np.ndarray, y: np.ndarray, predicted: np.ndarray, task: str) -> Figure | None:
    """The samples with the worst predictions, each with its target and prediction; at most 24.

    For classification the first errors in the order of the data; for regression the samples with the largest
    residuals (root mean square over outputs).

    Parameters
    ----------
    X : array, shape (n, *shape)
        Images are drawn as images, vectors and signals as lines.
    y, predicted : arrays, shape (n,) or (n, k)
    task : {"classification", "regression"}

    Returns
    -------
    Figure, or None if every class was predicted correctly
    """
    if task == "classification":
        order = np.flatnonzero(predicted != y)
    else:
        order = np.argsort(-_mean_square(predicted - y), kind="stable")
    worst = order[:_MAX_ERRORS]
    if len(worst) == 0:
        return None
    n_columns = min(6, len(worst))
    n_rows = -(-len(worst) // n_columns)
    figure = Figure(figsize=(1.5 * n_columns, 1.6 * n_rows + 0.5), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    separator, size = (" ", 8) if y.ndim == 1 else ("\n", 5)  # several outputs need a line each
    for ax, i in zip(axes, worst, strict=False):
        draw_sample(ax, X[i], X[i])
        ax.set_title(f"{short(y[i])}{separator}→ {short(predicted[i])}", fontsize=size)
    for ax in axes[len(worst) :]:
        ax.set_axis_off()
    classes = task == "classification"
    shown = f"{len(worst)} of {len(order)} errors" if classes else f"the {len(worst)} largest residuals"
    figure.suptitle(f"{shown}: true → predicted", fontsize=9)
    return figure


def _mean_square(residuals: np.ndarray) -> np.ndarray:  # (n,) or (n, k) -> (n,)
    return np.square(np.asarray(residuals, dtype=np.float64).reshape(len(residuals), -1)).mean(1)
