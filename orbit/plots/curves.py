"""Curves: metrics against a parameter, a size or the epoch."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from orbit.plots.axes import (
    MARKERS,
    axes_or_new,
    figure_of,
    grid_of_axes,
    is_geometric,
    line_with_band,
    plain,
    set_log_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Labels on the horizontal axis of a panel of 3.3 inches, so that those of six digits do not touch.
_MOST_LABELS = 4

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
    _draw(ax, curves, [*curves], slopes)
    set_log_ticks(ax, np.unique(np.concatenate([x for x, _ in curves.values()])))
    ax.set_yscale("log")
    ax.set(xlabel=plain(x_label), ylabel=plain(y_label))
    ax.set_title(plain(title), fontsize=10)
    ax.grid(alpha=0.3, which="both")
    return _with_legend(ax, alone, "outside lower center", columns=2)


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


def panels(
    curves: dict[str, Lines],
    x_label: str,
    y_label: str = "",
    n_columns: int = 4,
    linear: Collection[str] = (),
    slopes: bool = False,
) -> Figure:
    """Lines in one panel for each quantity: the mean, and a band from smallest to largest; logarithmic axes.

    Parameters
    ----------
    curves : dict
        Title of the panel -> name of a line -> (x, values), shapes (m,) and (repeats, m).
    x_label, y_label : str
    n_columns : int
        The most panels in a row.
    linear : collection of str
        Titles of the panels whose vertical axes are linear.
    slopes : bool
        Give the slopes of straight lines fitted to the logarithms, in a legend of each panel; else one is for all.

    Examples
    --------
    >>> x = np.array([100, 200, 400])
    >>> figure = panels({"seconds": {"direct": (x, x / np.array([[1e3], [2e3]]))}}, "points")
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['direct']
    """
    figure, axes = grid_of_axes(len(curves), n_columns, 3.3, 2.9, more=0.4)
    names = list(dict.fromkeys(name for lines in curves.values() for name in lines))
    entries: dict[str, Line2D] = {}
    for ax, (title, lines) in zip(axes, curves.items(), strict=True):
        entries |= _draw(ax, lines, names, slopes)
        set_log_ticks(ax, np.unique(np.concatenate([x for x, _ in lines.values()])), _MOST_LABELS)
        ax.tick_params("x", labelsize=8)
        ax.set_yscale("linear" if title in linear else "log")
        ax.set_title(plain(title), fontsize=9)
        ax.set_xlabel(plain(x_label))
        ax.grid(alpha=0.3)
        if slopes:
            ax.legend(fontsize=8)
    axes[0].set_ylabel(plain(y_label))
    if not slopes:
        figure.legend(
            [*entries.values()], map(plain, entries), loc="outside lower center", ncols=min(4, len(entries)), fontsize=9
        )
    return figure


def _draw(ax: Axes, lines: Lines, names: list[str], slopes: bool) -> dict[str, Line2D]:
    """Draw means, and bands from smallest to largest, each in the colour of its place among ``names``."""
    drawn = {}
    for name, (x, values) in lines.items():
        i, mean = names.index(name), values.mean(0)
        label = name + _slope(x, mean) if slopes and len(x) > 1 else name
        marker, colour = MARKERS[i % len(MARKERS)], f"C{i % 10}"
        drawn[name] = line_with_band(ax, x, mean, values.min(0), values.max(0), marker, label, colour)
    return drawn


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
