"""Figures that compare a metric between configurations, and with published values."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbit.plots.axes import axes_or_new, figure_of, row_of_axes


def compared(
    results: dict[str, list[float]],
    metric: str,
    published: dict[str, float] | None = None,
    median: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """A bar for each configuration: the mean of its runs, with a dot for each run and a diamond for a published value.

    Parameters
    ----------
    results : dict
        Name -> the metric of each run (seeds or folds).
    metric : str
        The label of the axis.
    published : dict or None
        Name -> the published value, for some of the names.
    median : bool
        Draw medians, with whiskers from the smallest to the largest value instead of dots.
    ax : Axes or None
        Axes to draw into; None makes a new figure.

    Examples
    --------
    >>> figure = compared({"rf": [0.95, 0.96], "nystrom": [0.96, 0.97]}, "test accuracy")
    >>> [f"{bar.get_width():.3f}" for bar in figure.axes[0].patches]
    ['0.955', '0.965']
    """
    alone, published = ax is None, published or {}
    ax = axes_or_new(ax, 6, 0.42 * len(results) + 1.1)
    for i, (name, values) in enumerate(results.items()):
        centre = float(np.median(values) if median else np.mean(values))
        low, high = min(values), max(values)
        ax.barh(i, centre, color="C0", alpha=0.6, height=0.7)
        if median:
            ax.errorbar(centre, i, xerr=[[centre - low], [high - centre]], fmt="none", ecolor="k", capsize=3)
        else:
            ax.plot(values, np.full(len(values), i), "k.", ms=5)
        right = max(centre, high, published.get(name) or centre)  # right of all marks
        ax.annotate(f"{centre:.4g}", (right, i), xytext=(6, 0), textcoords="offset points", va="center")
    ax.margins(x=0.22)
    known = [(float(published[name]), i) for i, name in enumerate(results) if published.get(name) is not None]
    if known:
        ax.plot(*np.transpose(known), "D", color="C3", ms=6, label="published")
        if alone:
            figure_of(ax).legend(loc="outside upper right")
        else:
            ax.legend()
    ax.set_yticks(range(len(results)), list(results))
    ax.invert_yaxis()
    ax.set_xlabel(metric)
    return figure_of(ax)


def agreement(
    found: dict[str, tuple[float, float]], published: dict[str, tuple[float, float]], axes: tuple[str, str], title: str
) -> Figure:
    """Two metrics of the same configurations against each other, one panel for ours and one for published values.

    Parameters
    ----------
    found, published : dict
        Name -> the values on the horizontal and on the vertical axis. Without published values there is one panel.
    axes : tuple of str
        Labels of the horizontal and the vertical axis.
    title : str
    """
    parts = [(found, "oC0", "here"), *([(published, "DC3", "published")] if published else [])]
    figure, panels = row_of_axes(len(parts), 5.4, 4.4)
    for ax, (points, style, label) in zip(panels, parts, strict=True):
        x, y = np.array(list(points.values())).T
        ax.plot(x, y, style, ms=5, alpha=0.8)
        for name, xy in points.items():
            ax.annotate(name, xy, xytext=(4, 3), textcoords="offset points", fontsize=7)
        ax.set_xlabel(axes[0])
        ax.set_ylabel(axes[1])
        ax.margins(x=0.15)
        ax.set_title(label, fontsize=9)
        ax.grid(alpha=0.3)
    figure.suptitle(title, fontsize=10)
    return figure
