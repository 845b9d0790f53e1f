"""Figures of a metric against settings: those of a sweep or a search, and the grid of a selection by validation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from orbit.plots.axes import (
    MARKERS,
    is_geometric,
    new_figure,
    plain,
    row_of_axes,
    set_log_ticks,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LINES = 8
_MOST_JOINED = 12  # values of a setting; more, as in a search, are points without a line

_Lines = dict[str, dict[str, list[float]]]  # label -> value of the setting -> metric of each run


def setting_effects(rows: Mapping[str, tuple[Sequence[dict[str, str]], Sequence[float]]]) -> Figure:
    """A metric against each setting: one panel for each, whose vertical axis spans the values found.

    A line joins runs that differ in this setting only. Its points are means, with standard deviations, over the runs
    that differ in the seed. Where that would be more than eight lines, the means are over all other settings.

    Parameters
    ----------
    rows : dict
        Name of a row of panels, such as that of the metric -> its runs: for each the dict setting -> value as text,
        and the metrics of all. All runs have the same settings.

    Examples
    --------
    >>> runs = [{"n_components": n, "seed": seed} for n in ("10", "100") for seed in ("0", "1")]
    >>> figure = setting_effects({"accuracy": (runs, [0.80, 0.82, 0.90, 0.91])})
    >>> [line.get_ydata().round(3).tolist() for line in figure.axes[0].lines[:1]]
    [[0.81, 0.905]]
    """
    keys = [key for key in next(iter(rows.values()))[0][0] if key != "seed"]
    figure = new_figure(4.8 * len(keys), 3.6 * len(rows))
    panels = figure.subplots(len(rows), len(keys), squeeze=False)
    for (name, (settings, values)), axes in zip(rows.items(), panels, strict=True):
        for ax, key in zip(axes, keys, strict=True):
            _draw(ax, _lines(key, [other for other in keys if other != key], settings, values))
            ax.set(xlabel=plain(key), ylabel=plain(name))
            ax.ticklabel_format(axis="y", useOffset=False)
            ax.grid(alpha=0.3)
    return figure


def search_progress(
    values: dict[int, float], importances: dict[str, float], metric: str, larger_is_better: bool = True
) -> Figure:
    """The progress of a search: the metric of each trial with the best so far, and the importance of each setting.

    Parameters
    ----------
    values : dict
        Number of a trial -> its metric.
    importances : dict
        Setting -> its share in the variance of the metric; the panel is left out if it is empty.
    metric : str
        Its name.
    larger_is_better : bool

    Examples
    --------
    >>> figure = search_progress({0: 0.8, 1: 0.7, 2: 0.9}, {"lengthscale": 0.9, "seed": 0.1}, "accuracy")
    >>> figure.axes[0].lines[1].get_ydata().tolist()
    [0.8, 0.8, 0.9]
    """
    figure, axes = row_of_axes(2 if importances else 1, 4.8, 3.6)
    numbers = np.array(sorted(values))
    found = np.array([values[number] for number in numbers])
    axes[0].plot(numbers, found, "o", ms=4, alpha=0.6, label="trial")
    best = (np.maximum if larger_is_better else np.minimum).accumulate(found)
    axes[0].step(numbers, best, where="post", color="C1", label="best so far")
    axes[0].set(xlabel="trial", ylabel=plain(metric))
    axes[0].legend()
    axes[0].grid(alpha=0.3)
    if importances:
        axes[1].barh([plain(key) for key in importances], list(importances.values()))
        axes[1].invert_yaxis()
        axes[1].set_xlabel(f"share in the variance of {plain(metric)}")
    return figure


def _lines(key: str, others: list[str], settings: Sequence[dict[str, str]], values: Sequence[float]) -> _Lines:
    lines: _Lines = {}
    for setting, value in zip(settings, values, strict=True):
        label = ", ".join(f"{other}={setting[other]}" for other in others)
        lines.setdefault(label, {}).setdefault(setting[key], []).append(value)
    if len(lines) <= _MOST_LINES:
        return lines
    means: dict[str, list[float]] = {}
    for setting, value in zip(settings, values, strict=True):
        means.setdefault(setting[key], []).append(value)
    return {"mean over all other settings": means}


def _draw(ax: Axes, lines: _Lines) -> None:
    names = list(dict.fromkeys(name for line in lines.values() for name in line))
    numbers = _numbers(names)
    places = dict(zip(names, np.arange(len(names)) if numbers is None else numbers, strict=True))
    for marker, (label, line) in zip(itertools.cycle(MARKERS), lines.items(), strict=False):
        x, means, deviations = np.array(
            sorted((places[name], np.mean(found), np.std(found)) for name, found in line.items())
        ).T
        joined = "" if len(x) > _MOST_JOINED else ":" if numbers is None else "-"
        ax.errorbar(x, means, deviations, fmt=f"{marker}{joined}", ms=4, capsize=3, label=plain(label))
    if numbers is None:
        ax.set_xticks(range(len(names)), map(plain, names), rotation=20 if len(names) > 4 else 0)
        ax.margins(x=0.2)
    elif is_geometric(numbers) and len(names) > _MOST_JOINED:
        ax.set_xscale("log")
    elif is_geometric(numbers):
        set_log_ticks(ax, np.sort(numbers))
    if len(lines) > 1:
        ax.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)  # above the data
    elif any(lines):
        ax.set_title(plain(next(iter(lines))), fontsize=8)


def _numbers(names: list[str]) -> np.ndarray | None:
    """The names as numbers; None if one of them is no finite number."""
    try:
        found = np.array([float(name) for name in names])
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def grid_scores(points: list[dict[str, object]], scores: np.ndarray, metric: str, best: int) -> Figure:
    """Validation scores over a grid of settings.

    One key gives a curve, two keys a heat map; more keys give a curve for each, with the others at their chosen values.

    Parameters
    ----------
    points : list of dict
        Key -> value, for every point of the grid.
    scores : array, shape (points, splits)
        Curves show mean and standard deviation over splits.
    metric : str
        The name of the score.
    best : int
        Index of the chosen point.
    """
    keys = list(points[0])
    if len(keys) == 2:
        return _heat_map(points, scores.mean(1), metric, best)
    figure, axes = row_of_axes(len(keys), 5, 3.6)
    for ax, key in zip(axes, keys, strict=True):
        others = {k: v for k, v in points[best].items() if k != key}
        line = [i for i, point in enumerate(points) if all(point[k] == v for k, v in others.items())]
        _grid_curve(ax, np.array([points[i][key] for i in line]), scores[line], line.index(best))
        ax.set(xlabel=plain(key), ylabel=_validation_label(metric))
    return figure


def _grid_curve(ax: Axes, values: np.ndarray, scores: np.ndarray, best: int) -> None:
    numeric = np.issubdtype(values.dtype, np.number) and values.ndim == 1
    x = values if numeric else np.arange(len(values))
    order = np.argsort(x)
    ax.errorbar(x[order], scores.mean(1)[order], scores.std(1)[order], fmt="o-", ms=4, capsize=3)
    ax.plot(x[best], scores[best].mean(), "D", color="C1", ms=8, label=f"chosen {plain(short(values[best]))}")
    if not numeric:
        ax.set_xticks(x, [plain(short(value)) for value in values], rotation=20)
    elif is_geometric(x):
        set_log_ticks(ax, x)
    ax.legend()
    ax.grid(alpha=0.3)


def _heat_map(points: list[dict[str, object]], means: np.ndarray, metric: str, best: int) -> Figure:
    from matplotlib.patches import Rectangle

    cells = [tuple(short(value) for value in point.values()) for point in points]
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    table = np.full((len(rows), len(columns)), np.nan)
    for (row, column), mean in zip(cells, means, strict=True):
        table[rows.index(row), columns.index(column)] = mean
    figure, (ax,) = row_of_axes(1, 1.0 * len(columns) + 2.4, 0.6 * len(rows) + 1.6)
    figure.colorbar(ax.imshow(table, cmap="viridis", aspect="auto"), label=_validation_label(metric))
    middle = (np.nanmin(table) + np.nanmax(table)) / 2
    for (i, j), mean in np.ndenumerate(table):
        ax.text(j, i, f"{mean:.4g}", ha="center", va="center", fontsize=8, color="white" if mean < middle else "black")
    corner = columns.index(cells[best][1]) - 0.5, rows.index(cells[best][0]) - 0.5
    ax.add_patch(Rectangle(corner, 1, 1, fill=False, ec="C1", lw=3))
    ax.set_xticks(range(len(columns)), map(plain, columns))
    ax.set_yticks(range(len(rows)), map(plain, rows))
    y_key, x_key = points[0]
    ax.set(xlabel=plain(x_key), ylabel=plain(y_key))
    return figure


def _validation_label(metric: str) -> str:
    return f"{plain(metric)} on validation points"
