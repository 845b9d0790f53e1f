"""Figures of tables: rows with the worst predictions, and the importance of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from orbit.plots.axes import bars_from_top, cut, plain, row_of_axes, short
from orbit.plots.predictions import worst_first

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_ROWS, _MAX_COLUMNS, _MAX_TARGETS, _MAX_BARS = 15, 8, 4, 20
_LONGEST_CELL, _LONGEST_NAME = 16, 32


def error_rows(
    columns: Mapping[str, np.ndarray],
    y: np.ndarray,
    predicted: np.ndarray,
    task: str,
    names: Sequence[str] = ("target",),
    rows: Sequence[int] | np.ndarray | None = None,
) -> Figure | None:
    """The rows of a table with the worst predictions, with their columns; at most 15 rows and 8 columns.

    For classification the first errors in the order of the data; for regression the rows with the largest residuals, in
    units of the standard deviation of each target if there are several. A cell is the darker, the fewer rows have a
    value as extreme, or the category; of more than 8 columns those with the darkest cells are shown.

    Parameters
    ----------
    columns : mapping of str to arrays, shape (n,)
        Numbers or strings by name, such as a DataFrame.
    y, predicted : arrays, shape (n,) or (n, k)
    task : {"classification", "regression"}
    names : sequence of str
        Names of the k targets; of more than 4 the first are shown.
    rows : sequence of int or None
        Names of the rows; None is 0, 1 and so on.

    Returns
    -------
    Figure, or None if every class was predicted correctly

    Examples
    --------
    >>> columns = {"width": np.arange(5.0), "kind": np.array(["cat", "owl", "owl", "owl", "owl"])}
    >>> y = np.zeros(5)
    >>> figure = error_rows(columns, y, np.array([0, 0, 0, 0, 3.0]), "regression", ["price"])
    >>> [cell.get_text().get_text() for (i, _), cell in figure.axes[0].tables[0].get_celld().items() if i == 1]
    ['4', '0 → 3', '4', 'owl']
    """
    y, predicted = np.asarray(y), np.asarray(predicted)
    order = worst_first(y, predicted, task, standardize=True)
    if len(order) == 0:
        return None
    from matplotlib.colors import to_rgba

    worst = order[:_MAX_ROWS]
    unusual = {name: _unusualness(np.asarray(values)) for name, values in columns.items()}
    darkest = sorted(unusual, key=lambda name: -unusual[name][worst].mean())[:_MAX_COLUMNS]
    shown = [name for name in columns if name in darkest]
    targets = list(names)[:_MAX_TARGETS]
    truth, found = y.reshape(len(y), -1), predicted.reshape(len(y), -1)
    text = [
        [
            str(i if rows is None else rows[i]),
            *(f"{_cell(truth[i, k])} → {_cell(found[i, k])}" for k in range(len(targets))),
            *(_cell(np.asarray(columns[name])[i]) for name in shown),
        ]
        for i in worst
    ]
    plain = ["white"] * (1 + len(targets))
    colours = [[*plain, *(to_rgba("C1", 0.75 * unusual[name][i] ** 4) for name in shown)] for i in worst]
    labels = ["row", *(f"{_cell(name)}\ntrue → predicted" for name in targets), *map(_cell, shown)]
    figure, (ax,) = row_of_axes(1, 1.0 + 1.5 * len(targets) + 1.0 * len(shown), 0.27 * len(worst) + 1.1)
    _draw_table(ax, text, colours, labels)
    what = f"{len(worst)} of {len(order)} errors" if task == "classification" else f"{len(worst)} largest residuals"
    part = f"; {len(shown)} of {len(columns)} columns" if len(shown) < len(columns) else ""
    ax.set_title(f"{what}{part}; dark: unusual values", fontsize=9)
    return figure


def _draw_table(ax: Axes, text: list[list[str]], colours: Any, labels: list[str]) -> None:
    ax.set_axis_off()
    table = ax.table(
        cellText=[[plain(cell) for cell in row] for row in text],
        cellColours=colours,
        colLabels=[plain(label) for label in labels],
        loc="center",
        cellLoc="right",
        edges="closed",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    table.auto_set_column_width(list(range(len(labels))))
    for (i, _), cell in table.get_celld().items():
        cell.set_edgecolor("0.85")
        cell.set_height((1.9 if i == 0 else 1.0) / (len(text) + 1.9))


def _unusualness(values: np.ndarray) -> np.ndarray:
    """0 for a median, 1 for the smallest and the largest number; for a category the share of rows with another one."""
    if values.dtype.kind in "biuf":
        ranks = rankdata(values, nan_policy="omit")
        return np.nan_to_num(np.abs(2 * (ranks - 1) / max(1, len(values) - 1) - 1))
    _, codes, counts = np.unique(values.astype(str), return_inverse=True, return_counts=True)
    return 1 - counts[codes] / len(values)


def _cell(value: object, longest: int = _LONGEST_CELL) -> str:
    return cut(short(value) if isinstance(value, (float, np.floating)) else str(value), longest)


def importance(names: Sequence[str], values: np.ndarray, metric: str) -> Figure:
    """The change of a metric when a column is permuted: mean and standard deviation, for the 20 largest.

    Parameters
    ----------
    names : sequence of str
        The m columns.
    values : array, shape (m, repeats)
        As ``importances`` of scikit-learn's ``permutation_importance``.
    metric : str
        What changes, such as "decrease of accuracy".

    Examples
    --------
    >>> figure = importance(["width", "height"], np.array([[0.1, 0.1], [0.4, 0.6]]), "decrease of accuracy")
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['height', 'width']
    """
    order = np.argsort(-values.mean(1), kind="stable")[:_MAX_BARS]
    figure, (ax,) = row_of_axes(1, 5.6, 0.3 * len(order) + 1.1)
    ax.barh(range(len(order)), values[order].mean(1), xerr=values[order].std(1), color="C0", alpha=0.7, ecolor="k")
    ax.axvline(0, color="k", lw=0.8)
    ax.set_yticks(range(len(order)), [plain(_cell(names[i], _LONGEST_NAME)) for i in order])
    bars_from_top(ax, len(order))
    ax.set_xlabel(f"{plain(metric)} when the column is permuted")
    if len(order) < len(names):
        ax.set_title(f"the largest {len(order)} of {len(names)} columns", fontsize=9)
    ax.grid(alpha=0.3, axis="x")
    return figure
