"""Figures. Each function returns a matplotlib figure and touches no global state, so it works in any thread."""

from __future__ import annotations

import itertools
from typing import Literal

import matplotlib
import matplotlib.patches
import matplotlib.ticker
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

from orbit.kernels.skeletons import Skeleton
from orbit.orbits import Orbit


def orbit_examples(orbit: Orbit, X: np.ndarray, n_elements: int = 8) -> Figure:
    """Points moved by elements of the orbit, a row a point, with the weights below.

    Parameters
    ----------
    orbit : a fitted Orbit
    X : array, shape (n, *shape): a few signals, images, matrices or point clouds; of numbers at every pixel that
        are no colours, the first is drawn
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
        _draw_image(ax, *(points.reshape(*points.shape[:2], -1)[:, :, 0] for points in (moved, x)))
        return
    ax.imshow(np.clip((moved - x.min()) / ((x.max() - x.min()) or 1.0), 0, 1), aspect="auto")


def _draw_cloud(ax: Axes, moved: np.ndarray, x: np.ndarray) -> None:
    moved, x = np.atleast_2d(moved, x)
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


def selection_curve(
    path: np.ndarray, scores: np.ndarray, chosen: float, criterion: str, name: str = "regularization"
) -> Figure:
    """The score of every strength tried, and the one chosen; ``name`` is the parameter."""
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    ax = figure.subplots()
    finite = np.isfinite(scores)
    negative = bool((scores[finite] <= 0).all())  # an error with its sign turned, so that higher is better
    ax.plot(path[finite], -scores[finite] if negative else scores[finite], "o-", ms=4)
    ax.axvline(chosen, color="C1", ls="--", label=f"chosen {chosen:.3g}")
    ax.set_xscale("log")
    if negative:
        ax.set_yscale("log")
    ax.set_xlabel("regularisation $\\lambda$" if name == "regularization" else name)
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


_MOST_ERRORS = 24

# Arrows of one field: more hide each other.
_MOST_ARROWS = 324


def error_examples(X: np.ndarray, y: np.ndarray, predicted: np.ndarray, task: str) -> Figure | None:
    """Points that were predicted wrongly, each with its target and its prediction; None without an error.

    Of classes the first errors in the order of the data, of numbers the points
    with the largest residuals (over several outputs, the root mean square).

    Parameters
    ----------
    X : array, shape (n, *shape): images as pictures, vectors and signals as lines
    y, predicted : arrays, shape (n,) or (n, k)
    task : {"classification", "regression"}
    """
    if task == "classification":
        worst, total = np.flatnonzero(predicted != y), int(np.sum(predicted != y))
    else:
        residual = np.square(np.asarray(predicted - y, dtype=np.float64).reshape(len(y), -1)).mean(1)
        worst, total = np.argsort(-residual, kind="stable"), len(y)
    worst = worst[:_MOST_ERRORS]
    if len(worst) == 0:
        return None
    columns = min(6, len(worst))
    rows = -(-len(worst) // columns)
    figure = Figure(figsize=(1.5 * columns, 1.6 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    draw = _DRAW[min(X.ndim - 1, 3)]
    for ax in axes:
        ax.set_axis_off()
    for ax, i in zip(axes, worst, strict=False):
        ax.set_axis_on()
        draw(ax, X[i], X[i])
        ax.set_xticks([])
        ax.set_yticks([])
        between, size = (" ", 8) if y.ndim == 1 else ("\n", 5)  # several numbers need a line each
        ax.set_title(f"{short(y[i])}{between}→ {short(predicted[i])}", fontsize=size)
    shown = f"{len(worst)} of {total} errors" if task == "classification" else f"the {len(worst)} largest residuals"
    figure.suptitle(f"{shown}: true → predicted", fontsize=9)
    return figure


def short(value: object) -> str:
    """A value in few letters: numbers to four digits, the name of a component's section.

    >>> short(0.123456), short({"name": "rf", "n_components": 5}), short(np.array([1.0, 2.5]))
    ('0.1235', 'rf n_components=5', '1, 2.5')
    """
    if isinstance(value, np.ndarray):
        return ", ".join(short(item) for item in value[:3].tolist()) + (", …" if len(value) > 3 else "")
    if isinstance(value, dict):
        return " ".join(str(v) if k == "name" else f"{k}={short(v)}" for k, v in value.items())
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)


def grid_scores(points: list[dict[str, object]], scores: np.ndarray, metric: str, best: int) -> Figure:
    """A figure of merit over a grid of settings: a curve, a heat map, or a curve for each of several settings.

    Parameters
    ----------
    points : key -> value, for every point of the grid
    scores : array, shape (points, splits); curves show mean and standard deviation over splits
    metric : its name
    best : index of the chosen point
    """
    keys = list(points[0])
    if len(keys) == 2:
        return _heat_map(points, scores.mean(1), metric, best)
    figure = Figure(figsize=(5 * len(keys), 3.6), layout="constrained")
    for ax, key in zip(figure.subplots(1, len(keys), squeeze=False)[0], keys, strict=True):
        # other settings at their chosen values
        line = [i for i, p in enumerate(points) if all(p[k] == points[best][k] for k in keys if k != key)]
        values = np.array([points[i][key] for i in line])
        numeric = np.issubdtype(values.dtype, np.number) and values.ndim == 1
        at = values if numeric else np.arange(len(line))
        order = np.argsort(at)
        ax.errorbar(at[order], scores[line].mean(1)[order], scores[line].std(1)[order], fmt="o-", ms=4, capsize=3)
        ax.plot(
            at[line.index(best)], scores[best].mean(), "D", color="C1", ms=8, label=f"chosen {short(points[best][key])}"
        )
        if not numeric:
            ax.set_xticks(at, [short(points[i][key]) for i in line], rotation=20)
        elif _is_geometric(at):
            ax.set_xscale("log")
            ax.set_xticks(at, [f"{value:g}" for value in at])
            ax.minorticks_off()
        ax.set_xlabel(key)
        ax.set_ylabel(f"{metric} on points kept from the fit")
        ax.legend()
        ax.grid(alpha=0.3)
    return figure


def _heat_map(points: list[dict[str, object]], means: np.ndarray, metric: str, best: int) -> Figure:
    rows_key, columns_key = points[0]
    rows, columns = (list(dict.fromkeys(short(p[key]) for p in points)) for key in (rows_key, columns_key))
    table = np.full((len(rows), len(columns)), np.nan)
    for point, mean in zip(points, means, strict=True):
        table[rows.index(short(point[rows_key])), columns.index(short(point[columns_key]))] = mean
    figure = Figure(figsize=(1.0 * len(columns) + 2.4, 0.6 * len(rows) + 1.6), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(table, cmap="viridis", aspect="auto")
    figure.colorbar(image, label=f"{metric} on points kept from the fit")
    middle = (np.nanmin(table) + np.nanmax(table)) / 2
    for (i, j), mean in np.ndenumerate(table):
        ax.text(j, i, f"{mean:.4g}", ha="center", va="center", fontsize=8, color="white" if mean < middle else "black")
    at = rows.index(short(points[best][rows_key])), columns.index(short(points[best][columns_key]))
    ax.add_patch(matplotlib.patches.Rectangle((at[1] - 0.5, at[0] - 0.5), 1, 1, fill=False, ec="C1", lw=3))
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(columns_key)
    ax.set_ylabel(rows_key)
    return figure


def compared(
    results: dict[str, list[float]], metric: str, published: dict[str, float] | None = None, median: bool = False
) -> Figure:
    """A bar for each configuration: the mean of its runs, a dot for each run, a diamond for a published figure.

    Parameters
    ----------
    results : name -> the metric of each of its runs (seeds or folds)
    published : name -> the published figure, for some of the names
    median : bool
        Bars are medians instead, and whiskers from the least to the most stand for the dots.
    """
    figure = Figure(figsize=(6, 0.42 * len(results) + 1.1), layout="constrained")
    ax = figure.subplots()
    names = list(results)
    for i, name in enumerate(names):
        least, most = min(results[name]), max(results[name])
        middle = float(np.median(results[name]) if median else np.mean(results[name]))
        ax.barh(i, middle, color="C0", alpha=0.6, height=0.7)
        if median:
            ax.errorbar(middle, i, xerr=[[middle - least], [most - middle]], fmt="none", ecolor="k", capsize=3)
        else:
            ax.plot(results[name], np.full(len(results[name]), i), "k.", ms=5)
        beyond = max(middle, most, (published or {}).get(name) or middle)  # where nothing is in the way
        ax.annotate(f"{middle:.4g}", (beyond, i), xytext=(6, 0), textcoords="offset points", va="center")
    ax.margins(x=0.18)
    known = [(i, float(value)) for i, name in enumerate(names) if (value := (published or {}).get(name)) is not None]
    if known:
        ax.plot([value for _, value in known], [i for i, _ in known], "D", color="C3", ms=6, label="published")
        figure.legend(loc="outside upper right")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel(metric)
    return figure


def agreement(
    found: dict[str, tuple[float, float]], published: dict[str, tuple[float, float]], axes: tuple[str, str], title: str
) -> Figure:
    """Two figures of merit of the same things against each other, a panel for ours and one for published ones.

    Parameters
    ----------
    found, published : name -> the figure on the horizontal and on the vertical axis
    """
    parts = [(found, "oC0", "here"), *([(published, "DC3", "published")] if published else [])]
    figure = Figure(figsize=(5.4 * len(parts), 4.4), layout="constrained")
    for ax, (points, style, label) in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        x, y = np.array(list(points.values())).T
        ax.plot(x, y, style, ms=5, alpha=0.8)
        for name, at in points.items():
            ax.annotate(name, at, xytext=(4, 3), textcoords="offset points", fontsize=7)
        ax.set_xlabel(axes[0])
        ax.set_ylabel(axes[1])
        ax.margins(x=0.15)
        ax.set_title(label, fontsize=9)
        ax.grid(alpha=0.3)
    figure.suptitle(title, fontsize=10)
    return figure


def epochs(scores: dict[str, list[float]]) -> Figure:
    """Scores of trainings after every epoch, a line each."""
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    ax = figure.subplots()
    styles = itertools.product(("-", "--", ":"), range(10))
    for (style, colour), (name, values) in zip(styles, scores.items(), strict=False):
        ax.plot(np.arange(1, len(values) + 1), values, style, color=f"C{colour}", lw=1.2, label=name)
    ax.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
    ax.set_xlabel("epoch")
    ax.set_ylabel("score before each batch was learnt from")
    ax.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=6)
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


def growth(n: np.ndarray, panels: dict[str, dict[str, np.ndarray]], title: str, level: str) -> Figure:
    """What grows with the number of points, a panel a quantity, on logarithmic axes with the slope of each line.

    Parameters
    ----------
    n : numbers of points, shape (m,)
    panels : label of the axis -> line -> values, shape (m,)
    level : the panel that is drawn from zero on a plain axis
    """
    figure = Figure(figsize=(4.6 * len(panels), 3.6), layout="constrained")
    for ax, (label, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for marker, (name, values) in zip("os^D", lines.items(), strict=False):
            slope = np.polyfit(np.log(n), np.log(values), 1)[0]
            ax.plot(n, values, marker + "-", ms=4, label=f"{name} (slope {slope:.2f})")
        ax.set_xscale("log")
        ax.set_yscale("linear" if label == level else "log")
        if label == level:
            ax.set_ylim(0, 1.3 * max(values.max() for values in lines.values()))
        ax.set_xlabel("points")
        ax.set_ylabel(label)
        ax.legend()
        ax.grid(alpha=0.3)
    figure.suptitle(title, fontsize=10)
    return figure


def curves(
    lines: dict[str, tuple[np.ndarray, np.ndarray]],
    levels: dict[str, list[float]],
    x_label: str,
    y_label: str,
    log_y: bool = False,
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
    places = np.unique(np.concatenate([x for x, _ in lines.values()]))  # a line may end before the others
    if numeric and _is_geometric(places):
        ax.set_xscale("log")
        ax.set_xticks(places, [f"{value:g}" for value in places])
        ax.minorticks_off()
    if log_y:
        ax.set_yscale("log")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    figure.legend(loc="outside upper center", ncols=2, fontsize=9)
    ax.grid(alpha=0.3)
    return figure


def _is_geometric(x: np.ndarray) -> bool:
    """Whether values rise by factors rather than by steps."""
    return len(x) > 2 and bool(x.min() > 0) and bool(x.max() / x.min() >= 8)


def panels(curves: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]], x_label: str, n_columns: int) -> Figure:
    """A panel for each title, a line a method: mean, and a band from least to largest; errors on logarithmic axes.

    Parameters
    ----------
    curves : title -> name -> (x, values), shapes (m,) and (repeats, m)
    """
    n_rows = -(-len(curves) // n_columns)
    figure = Figure(figsize=(3.3 * n_columns, 2.9 * n_rows + 0.4), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax, (title, lines) in zip(axes, curves.items(), strict=False):
        for marker, (name, (x, values)) in zip(itertools.cycle("osv^D<>"), lines.items(), strict=False):
            (line,) = ax.plot(x, values.mean(0), marker + "-", ms=3, label=name)
            ax.fill_between(x, values.min(0), values.max(0), alpha=0.2, color=line.get_color())
        ax.set_xscale("log")
        ax.set_yscale("linear" if title.endswith("correlation") else "log")
        ax.set_title(title, fontsize=9)
        ax.set_xlabel(x_label)
        ax.grid(alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    return figure


def locality(maps: dict[str, np.ndarray], pixels: list[list[int]]) -> Figure:
    """For each name, the largest correlation of any chosen pixel with every other; the chosen ones are blue.

    Parameters
    ----------
    maps : name -> correlations, shape (chosen, height, width)
    """
    figure = Figure(figsize=(2.6 * len(maps), 2.9), layout="constrained")
    for ax, (name, values) in zip(figure.subplots(1, len(maps), squeeze=False)[0], maps.items(), strict=True):
        shown = values.max(0)
        for row, column in pixels:
            shown[row, column] = np.nan
        # the tiers differ by factors of ten: a power of the correlation shows all of them
        ax.imshow(np.sqrt(np.clip(shown, 0, None)), cmap="gray", vmin=0, vmax=max(0.05, np.sqrt(np.nanmax(shown))))
        ax.plot([column for _, column in pixels], [row for row, _ in pixels], "s", color="C0", ms=4)
        ax.set_title(name, fontsize=9)
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


# Arrows of a skeleton that are drawn all together; of more only those along one path are.
_ARROWS = 250


def skeleton(drawn: Skeleton, inputs: str) -> Figure:
    """The nodes of a skeleton, a row a level, inputs at the bottom, with arrows from parents and the activations.

    Of a skeleton with very many arrows those into one node of each level are drawn: what that node sees.

    Parameters
    ----------
    drawn : Skeleton
    inputs : what an input is, said beside the lowest row
    """
    rows = [range(drawn.n_inputs), *(range(level.start, level.stop) for level in drawn.levels)]
    x = np.concatenate([(np.arange(len(row)) + 0.5) / len(row) for row in rows])
    y = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    if any((y[level.parents] < y[level.start] - 1).any() for level in drawn.levels):
        x += np.where(y % 2, 0.08, -0.08)  # arrows that pass a level shall not pass through its nodes
    figure = Figure(figsize=(8, 1.3 * len(rows) + 0.4), layout="constrained")
    ax = figure.subplots()
    for child, parents in _arrows(drawn).items():
        for parent in parents:
            many = len(parents) > 40
            ax.annotate(
                "",
                (x[child], y[child]),
                (x[parent], y[parent]),
                arrowprops={
                    "arrowstyle": "-" if many else "->",
                    "color": f"C{y[child] % 10}",
                    "lw": 0.4 if many else 0.8,
                    "alpha": 0.4 if many else 0.8,
                    "shrinkA": 2,
                    "shrinkB": 3,
                },
            )
    for height, row in enumerate(rows):
        size = float(np.clip(300 / len(row), 1.5, 9))
        colour = "0.35" if height == 0 else f"C{height % 10}"
        ax.plot(x[row], y[row], "o", ms=size, color=colour, clip_on=False)
    texts = [f"{drawn.n_inputs} inputs: {inputs}", *drawn.labels]
    for height, text in enumerate(texts):
        ax.annotate(
            text, (1.02, height), xycoords=("axes fraction", "data"), va="center", fontsize=8, annotation_clip=False
        )
    ax.set_xlim(min(0, x.min()), max(1, x.max()))
    ax.set_ylim(-0.3, len(rows) - 0.7)
    ax.set_axis_off()
    ax.set_title(f"{len(x)} nodes, C(S) = {drawn.complexity():.3g}", fontsize=10)
    return figure


def _arrows(drawn: Skeleton) -> dict[int, np.ndarray]:
    """Parents of the nodes whose arrows are drawn: of all, or of the output, a middle parent of it, and so on down."""
    level_of = {node: level for level in drawn.levels for node in range(level.start, level.stop)}
    if sum(len(level.parents) for level in drawn.levels) <= _ARROWS:
        return {node: level.parents_of(node) for node, level in level_of.items()}
    chosen, node = {}, drawn.output
    while node in level_of:
        parents = level_of[node].parents_of(node)
        chosen[node] = parents
        node = int(np.sort(parents)[len(parents) // 2])
    return chosen


def field(points: np.ndarray, truth: np.ndarray, predicted: np.ndarray, title: str) -> Figure:
    """A vector field in the plane, its prediction and the difference beside each other, all arrows to one scale.

    Parameters
    ----------
    points : array, shape (n, 2)
    truth, predicted : vectors at the points, shape (n, 2)
    title : str
        What stands above, with the numbers of points where not all are drawn.
    """
    shown = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MOST_ARROWS)).astype(int))
    panels = {"truth": truth, "prediction": predicted, "error": predicted - truth}
    longest = max(float(np.linalg.norm(vectors[shown], axis=1).max()) for vectors in panels.values()) or 1.0
    figure = Figure(figsize=(3.6 * len(panels), 3.9), layout="constrained")
    for ax, (name, vectors) in zip(np.ravel(figure.subplots(1, len(panels))), panels.items(), strict=True):
        lengths = np.linalg.norm(vectors[shown], axis=1)
        ax.quiver(*points[shown].T, *vectors[shown].T, lengths, scale=12 * longest, clim=(0, longest))
        rms = float(np.sqrt(np.square(vectors).mean()))
        ax.set_title(f"{name} (root mean square {rms:.2g})", fontsize=9)
        ax.set_aspect("equal")
    some = f" ({len(shown)} of {len(points)})" if len(shown) < len(points) else ""
    figure.suptitle(title + some, fontsize=10)
    return figure
