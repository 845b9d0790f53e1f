"""Figures of model selection by validation over a grid of settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orbit.plots.axes import axes_or_new, figure_of, is_geometric, plain, row_of_axes, set_log_ticks, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    ax = axes_or_new(None, 1.0 * len(columns) + 2.4, 0.6 * len(rows) + 1.6)
    figure = figure_of(ax)
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
