"""Figures. Each function returns a matplotlib figure and touches no global state, so it works in any thread."""

from __future__ import annotations

import itertools
from typing import Literal

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

from orbit.orbits import Orbit


def orbit_examples(orbit: Orbit, X: np.ndarray, n_elements: int = 8) -> Figure:
    """Points moved by elements of the orbit, a row a point, with the weights below.

    Parameters
    ----------
    orbit : a fitted Orbit
    X : array, shape (n, *shape): a few signals, images, matrices or point clouds
    n_elements : at most so many elements are shown, evenly chosen
    """
    chosen = np.unique(np.linspace(0, len(orbit.weights_) - 1, min(n_elements, len(orbit.weights_))).astype(int))
    if orbit.elements_.ndim == 1 and not orbit.distribution_.data_dependent:  # angles from left to right
        chosen = np.argsort(orbit.elements_)[chosen]
    points = torch.from_numpy(np.array(X))
    moved = [orbit.points(points, slice(i, i + 1))[0].numpy() for i in chosen]
    figure = Figure(figsize=(1.1 * len(chosen), 1.1 * len(X) + 0.9), layout="constrained")
    axes = figure.subplots(len(X), len(chosen), squeeze=False)
    draw = _draw_cloud if orbit.group_.clouds else _DRAW[min(X.ndim - 1, 3)]
    for i, point_axes in enumerate(axes):
        for j, ax in enumerate(point_axes):
            draw(ax, moved[j][i], X[i])
            ax.set_xticks([])
            ax.set_yticks([])
    for j, ax in enumerate(axes[0]):
        ax.set_title(orbit.describe(chosen[j]), fontsize=8)
        axes[-1][j].set_xlabel(f"w={orbit.weights_[chosen[j]]:.3f}", fontsize=8)
    figure.suptitle(orbit.label(), fontsize=9)
    return figure


def _draw_signal(ax: Axes, moved: np.ndarray, x: np.ndarray) -> None:
    low, high = x.min(), x.max()
    ax.plot(moved, lw=0.7)
    ax.set_ylim(low - 0.1 * (high - low) - 1e-9, high + 0.1 * (high - low) + 1e-9)


def _draw_image(ax: Axes, moved: np.ndarray, x: np.ndarray) -> None:
    aspect: Literal["equal", "auto"] = "equal" if x.shape[0] == x.shape[1] else "auto"
    ax.imshow(moved, cmap="gray_r", vmin=x.min(), vmax=x.max(), aspect=aspect)


def _draw_colours(ax: Axes, moved: np.ndarray, x: np.ndarray) -> None:
    if x.ndim != 3 or x.shape[2] not in (3, 4):
        _draw_image(ax, moved.reshape(len(moved), -1), x)
        return
    ax.imshow(np.clip((moved - x.min()) / ((x.max() - x.min()) or 1.0), 0, 1), aspect="auto")


def _draw_cloud(ax: Axes, moved: np.ndarray, x: np.ndarray) -> None:
    depth = moved[:, 2] if moved.shape[1] > 2 else None
    ax.scatter(moved[:, 0], moved[:, 1], s=6, c=depth)
    radius = 1.1 * float(np.linalg.norm(x, axis=1).max()) or 1.0
    ax.set_xlim(-radius, radius)
    ax.set_ylim(-radius, radius)
    ax.set_aspect("equal")


_DRAW = {1: _draw_signal, 2: _draw_image, 3: _draw_colours}


def confusion(y: np.ndarray, predicted: np.ndarray) -> Figure:
    """How often each class (rows) was taken for each other (columns); counts of errors are written in the cells."""
    classes = np.unique(np.concatenate([np.unique(y), np.unique(predicted)]))
    counts = confusion_matrix(y, predicted, labels=classes)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, label="share of the true class")
    if len(classes) <= 20:
        ax.set_xticks(range(len(classes)), classes, rotation=90 if len(classes) > 10 else 0)
        ax.set_yticks(range(len(classes)), classes)
        for (i, j), count in np.ndenumerate(counts):
            if count:
                ax.text(
                    j, i, count, ha="center", va="center", fontsize=7, color="white" if shares[i, j] > 0.5 else "black"
                )
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title(f"accuracy {np.mean(y == predicted):.2%}")
    return figure


def selection_curve(path: np.ndarray, scores: np.ndarray, chosen: float, criterion: str) -> Figure:
    """The score of every regularisation strength tried, and the one chosen."""
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    ax = figure.subplots()
    finite = np.isfinite(scores)
    negative = bool((scores[finite] <= 0).all())  # an error with its sign turned, so that higher is better
    ax.plot(path[finite], -scores[finite] if negative else scores[finite], "o-", ms=4)
    ax.axvline(chosen, color="C1", ls="--", label=f"chosen {chosen:.3g}")
    ax.set_xscale("log")
    if negative:
        ax.set_yscale("log")
    ax.set_xlabel("regularisation $\\lambda$")
    ax.set_ylabel(f"{criterion} {'error' if negative else 'accuracy'}")
    ax.legend()
    ax.grid(alpha=0.3)
    return figure


def predicted_against_true(y: np.ndarray, predicted: np.ndarray) -> Figure:
    """A scatter of predictions over truth, all outputs together."""
    figure = Figure(figsize=(4.4, 4.2), layout="constrained")
    ax = figure.subplots()
    y, predicted = np.ravel(y), np.ravel(predicted)
    ax.plot(y, predicted, ".", ms=3, alpha=0.5)
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, "k-", lw=0.8)
    ax.set_xlabel("true")
    ax.set_ylabel("predicted")
    ax.grid(alpha=0.3)
    return figure


def compared(results: dict[str, list[float]], metric: str, published: dict[str, float] | None = None) -> Figure:
    """A bar for each configuration: the mean of its runs, a dot for each run, a diamond for a published figure.

    Parameters
    ----------
    results : name -> the metric of each of its runs (seeds or folds)
    published : name -> the published figure, for some of the names
    """
    figure = Figure(figsize=(6, 0.42 * len(results) + 1.1), layout="constrained")
    ax = figure.subplots()
    names = list(results)
    for i, name in enumerate(names):
        mean = float(np.mean(results[name]))
        ax.barh(i, mean, color="C0", alpha=0.6, height=0.7)
        ax.plot(results[name], np.full(len(results[name]), i), "k.", ms=5)
        ax.annotate(f"{mean:.4g}", (mean, i), xytext=(-14, 0), textcoords="offset points", va="center", ha="right")
    known = [(i, float(value)) for i, name in enumerate(names) if (value := (published or {}).get(name)) is not None]
    if known:
        ax.plot([value for _, value in known], [i for i, _ in known], "D", color="C3", ms=6, label="published")
        ax.legend()
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(metric)
    return figure


def convergence(
    curves: dict[str, tuple[np.ndarray, np.ndarray]], x_label: str, y_label: str, title: str, slopes: bool = False
) -> Figure:
    """Errors on logarithmic axes, a line a method: mean, and a band from least to largest.

    Parameters
    ----------
    curves : name -> (x, errors), shapes (m,) and (repeats, m)
    slopes : give the slope of a straight line through each curve, in the logarithms, in the legend
    """
    figure = Figure(figsize=(5.4, 3.8), layout="constrained")
    ax = figure.subplots()
    for marker, (name, (x, errors)) in zip(itertools.cycle("osv^D<>"), curves.items(), strict=False):
        mean = errors.mean(0)
        slope = f" (slope {np.polyfit(np.log(x), np.log(mean), 1)[0]:.2f})" if slopes and len(x) > 1 else ""
        (line,) = ax.plot(x, mean, marker + "-", ms=4, label=name + slope)
        ax.fill_between(x, errors.min(0), errors.max(0), alpha=0.2, color=line.get_color())
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_title(title, fontsize=10)
    ax.legend()
    ax.grid(alpha=0.3, which="both")
    return figure


def curves(
    lines: dict[str, tuple[np.ndarray, np.ndarray]], levels: dict[str, list[float]], x_label: str, y_label: str
) -> Figure:
    """A figure of merit along a setting, a line a method: mean, and a band of one standard deviation.

    Parameters
    ----------
    lines : name -> (x, values), shapes (m,) and (repeats, m); x are numbers or names
    levels : name -> values of what does not depend on x, drawn as dashed lines at their mean
    """
    figure = Figure(figsize=(5.4, 3.8), layout="constrained")
    ax = figure.subplots()
    numeric = True
    for marker, (name, (x, values)) in zip(itertools.cycle("osv^D<>"), lines.items(), strict=False):
        numeric = np.issubdtype(x.dtype, np.number)
        at = x if numeric else np.arange(len(x))
        mean, spread = values.mean(0), values.std(0)
        (line,) = ax.plot(at, mean, marker + "-", ms=4, label=name)
        ax.fill_between(at, mean - spread, mean + spread, alpha=0.2, color=line.get_color())
        if not numeric:
            ax.set_xticks(at, x)
    for i, (name, level) in enumerate(levels.items()):
        ax.axhline(float(np.mean(level)), ls="--", lw=1.2, color=f"C{(len(lines) + i) % 10}", label=name)
    if numeric and _is_geometric(x):
        ax.set_xscale("log")
        ax.set_xticks(x, [f"{value:g}" for value in x])
        ax.minorticks_off()
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.legend()
    ax.grid(alpha=0.3)
    return figure


def _is_geometric(x: np.ndarray) -> bool:
    """Whether values rise by factors rather than by steps."""
    return len(x) > 2 and bool(x.min() > 0) and bool(x.max() / x.min() >= 8)
