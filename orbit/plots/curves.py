"""Curves: metrics against a parameter, a size or the epoch."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from orbit.plots.axes import (
    MARKERS,
    axes_or_new,
    figure_of,
    is_geometric,
    line_with_band,
    new_figure,
    plain,
    row_of_axes,
    set_log_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Name of a line -> (x, values), shapes (m,) and (repeats, m).
Lines = dict[str, tuple[np.ndarray, np.ndarray]]


def epochs(scores: dict[str, list[float]], ax: Axes | None = None) -> Figure:
    """Progressive scores of training, one line per run: each batch is scored before the step on it.

    Parameters
    ----------
    scores : dict
        Name of a run -> its score in each epoch.
    ax : Axes or None
        Axes to draw into; None makes a new figure.
    """
    from matplotlib.ticker import MaxNLocator

    alone, ax = ax is None, axes_or_new(ax, 6.4, 4)
    styles = itertools.product(("-", "--", ":"), range(10))
    for (style, colour), (name, values) in zip(styles, scores.items(), strict=False):
        ax.plot(np.arange(1, len(values) + 1), values, style, color=f"C{colour}", lw=1.2, label=plain(name))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="epoch", ylabel="score before each batch was learnt from")
    ax.grid(alpha=0.3)
    return _with_legend(ax, alone, "outside right upper", fontsize=6)


def convergence(
    curves: Lines, x_label: str, y_label: str, title: str, slopes: bool = False, ax: Axes | None = None
) -> Figure:
    """Errors on logarithmic axes, one line per method: the mean, and a band from smallest to largest.

    Parameters
    ----------
    curves : dict
        Name -> (x, errors), shapes (m,) and (repeats, m).
    x_label, y_label, title : str
    slopes : bool
        Give the slope of a straight line fitted to the logarithms in the legend.
    ax : Axes or None
        Axes to draw into; None makes a new figure.

    Examples
    --------
    >>> x = np.array([8, 16, 32])
    >>> figure = convergence({"mc": (x, 1 / np.sqrt([x, x]))}, "r", "error", "Monte Carlo", slopes=True)
    >>> figure.legends[0].get_texts()[0].get_text()
    'mc (slope -0.50)'
    """
    alone, ax = ax is None, axes_or_new(ax, 5.4, 3.8)
    for marker, (name, (x, errors)) in zip(itertools.cycle(MARKERS), curves.items(), strict=False):
        mean = errors.mean(0)
        label = name + _slope(x, mean) if slopes and len(x) > 1 else name
        line_with_band(ax, x, mean, errors.min(0), errors.max(0), marker, label)
    set_log_ticks(ax, np.unique(np.concatenate([x for x, _ in curves.values()])))
    ax.set_yscale("log")
    ax.set(xlabel=plain(x_label), ylabel=plain(y_label))
    ax.set_title(plain(title), fontsize=10)
    ax.grid(alpha=0.3, which="both")
    return _with_legend(ax, alone, "outside lower center", columns=2)


def costs(panels: dict[str, dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]], title: str) -> Figure:
    """Seconds against sizes: one panel for each size, logarithmic axes, one colour for each way to compute the same.

    Parameters
    ----------
    panels : dict
        Label of the horizontal axis -> name of a line -> sizes, seconds and the seconds that operations alone take,
        shapes (m,), (rounds, m) and (m,): the median, a band from smallest to largest, and a dashed line.
    title : str

    Examples
    --------
    >>> n = np.array([100, 200, 400])
    >>> figure = costs({"points": {"direct": (n, n / np.array([[1e3], [2e3]]), n / 4e3)}}, "rotation")
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['direct', 'direct, operations alone']
    """
    figure, axes = row_of_axes(len(panels), 3.6, 3.8)
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    entries: dict[str, Line2D] = {}
    for ax, (label, lines) in zip(axes, panels.items(), strict=True):
        for name, (x, seconds, floor) in lines.items():
            i = names.index(name)
            middle, marker = np.median(seconds, axis=0), MARKERS[i % len(MARKERS)]
            line = line_with_band(ax, x, middle, seconds.min(0), seconds.max(0), marker, name, f"C{i}")
            dashes = 4 * i, (4, 4)  # those of equal lines alternate
            (alone,) = ax.plot(x, floor, linestyle=dashes, color=line.get_color())
            entries |= {name: line, f"{name}, operations alone": alone}
        set_log_ticks(ax, np.unique(np.concatenate([x for x, *_ in lines.values()])))
        ax.set_yscale("log")
        ax.set_xlabel(plain(label))
        ax.grid(alpha=0.3, which="both")
    axes[0].set_ylabel("seconds")
    figure.suptitle(plain(title), fontsize=10)
    figure.legend([*entries.values()], map(plain, entries), loc="outside lower center", ncols=4, fontsize=9)
    return figure


def growth(n: np.ndarray, panels: dict[str, dict[str, np.ndarray]], title: str, level: str) -> Figure:
    """Quantities against the number of points: one panel each, logarithmic axes, slopes in the legends.

    Parameters
    ----------
    n : array, shape (m,)
        Numbers of points.
    panels : dict
        Label of the vertical axis -> name of a line -> values, shape (m,).
    title : str
    level : str
        The panel drawn on a linear axis that starts at zero, for a quantity that should stay constant.
    """
    figure, axes = row_of_axes(len(panels), 4.6, 3.6)
    for ax, (label, lines) in zip(axes, panels.items(), strict=True):
        for marker, (name, values) in zip(itertools.cycle(MARKERS), lines.items(), strict=False):
            ax.plot(n, values, marker + "-", ms=4, label=plain(name) + _slope(n, values))
        ax.set_xscale("log")
        if label == level:
            ax.set_ylim(0, 1.3 * max(values.max() for values in lines.values()))
        else:
            ax.set_yscale("log")
        ax.set(xlabel="points", ylabel=plain(label))
        ax.legend()
        ax.grid(alpha=0.3)
    figure.suptitle(plain(title), fontsize=10)
    return figure


def curves(
    lines: Lines,
    levels: dict[str, list[float]],
    x_label: str,
    y_label: str,
    log_y: bool = False,
    published: dict[float, float] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """A metric along a parameter, one line per method: the mean, and a band of one standard deviation.

    Parameters
    ----------
    lines : dict
        Name -> (x, values), shapes (m,) and (repeats, m); x are numbers or names.
    levels : dict
        Name -> values that do not depend on x, drawn as a dashed line at their mean.
    x_label, y_label : str
    log_y : bool
        Whether the vertical axis is logarithmic.
    published : dict or None
        x -> value of a paper, drawn as a diamond.
    ax : Axes or None
        Axes to draw into; None makes a new figure.
    """
    alone, ax = ax is None, axes_or_new(ax, 5.4, 3.8)
    numeric = all(np.issubdtype(x.dtype, np.number) for x, _ in lines.values())
    for marker, (name, (x, values)) in zip(itertools.cycle(MARKERS), lines.items(), strict=False):
        places = x if numeric else np.arange(len(x))
        mean, spread = values.mean(0), values.std(0)
        line_with_band(ax, places, mean, mean - spread, mean + spread, marker, name)
        if not numeric:
            ax.set_xticks(places, map(plain, x))
    for i, (name, level) in enumerate(levels.items(), len(lines)):
        ax.axhline(float(np.mean(level)), ls="--", lw=1.2, color=f"C{i % 10}", label=plain(name))
    if published:
        ax.plot(*zip(*published.items(), strict=True), "D", color="black", mfc="none", ms=7, label="published")
    ticks = np.unique(np.concatenate([x for x, _ in lines.values()]))  # lines may have different lengths
    if numeric and is_geometric(ticks):
        set_log_ticks(ax, ticks)
    if log_y:
        ax.set_yscale("log")
    ax.set(xlabel=plain(x_label), ylabel=plain(y_label))
    ax.grid(alpha=0.3)
    return _with_legend(ax, alone, "outside upper center", columns=2)


def panels(curves: dict[str, Lines], x_label: str, n_columns: int) -> Figure:
    """Convergence, one panel for each measure and one legend: the mean, and a band from smallest to largest.

    Parameters
    ----------
    curves : dict
        Title of the panel -> name of a line -> (x, values), shapes (m,) and (repeats, m). Vertical axes are
        logarithmic, except where the title ends in "correlation".
    x_label : str
    n_columns : int
        Panels in a row.
    """
    n_rows = -(-len(curves) // n_columns)
    figure = new_figure(3.3 * n_columns, 2.9 * n_rows + 0.4)
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax, (title, lines) in zip(axes, curves.items(), strict=False):
        for marker, (name, (x, values)) in zip(itertools.cycle(MARKERS), lines.items(), strict=False):
            line_with_band(ax, x, values.mean(0), values.min(0), values.max(0), marker, name).set_markersize(3)
        ax.set_xscale("log")
        ax.set_yscale("linear" if title.endswith("correlation") else "log")
        ax.set_title(plain(title), fontsize=9)
        ax.set_xlabel(plain(x_label))
        ax.grid(alpha=0.3)
    return _with_legend(axes[0], True, "outside lower center", len(axes[0].get_lines()))


def budgets(panels: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]], x_label: str, y_label: str) -> Figure:
    """What a budget reaches: a panel for each problem, a line for each method, the budget on a logarithmic axis.

    Parameters
    ----------
    panels : dict
        Title of the panel -> name of a line -> (budgets, shares such as accuracies), both of shape (m,).
    x_label, y_label : str
    """
    _, axes = row_of_axes(len(panels), 4.2, 3.6)
    for ax, (title, lines) in zip(axes, panels.items(), strict=True):
        for marker, (name, (x, y)) in zip(itertools.cycle(MARKERS), lines.items(), strict=False):
            order = np.argsort(x)
            ax.plot(x[order], y[order], marker + "-", ms=4, label=plain(name))
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g} %")
        ax.set_title(plain(title), fontsize=10)
        ax.set_xlabel(plain(x_label))
        ax.grid(alpha=0.3)
    axes[0].set_ylabel(plain(y_label))
    return _with_legend(axes[0], True, "outside lower center", len(axes[0].get_lines()))


def _with_legend(ax: Axes, outside: bool, place: Any, columns: int = 1, fontsize: float = 9) -> Figure:
    """The figure of the axes with a legend of their lines: outside of all axes, where it covers no curve, or within."""
    if outside:
        lines, names = ax.get_legend_handles_labels()
        figure_of(ax).legend(lines, names, loc=place, ncols=columns, fontsize=fontsize)
    else:
        ax.legend(fontsize=fontsize)
    return figure_of(ax)


def _slope(x: np.ndarray, y: np.ndarray) -> str:
    """The slope of a straight line fitted to the logarithms, for a legend."""
    return f" (slope {np.polyfit(np.log(x), np.log(y), 1)[0]:.2f})"
