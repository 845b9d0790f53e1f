"""Figures that compare a metric between configurations, and with published values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orbit.plots.axes import bars_from_top, plain, row_of_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def compared(
    results: dict[str, list[float]],
    metric: str,
    published: dict[str, float] | None = None,
    median: bool = False,
) -> Figure:
    """A bar for each configuration: the mean of its runs, with a dot for each run and a diamond for a published value.

    Numbers stand beside the axes, those of the runs and the published ones in columns with a heading.

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

    Examples
    --------
    >>> figure = compared({"rf": [0.95, 0.96], "nystrom": [0.96, 0.97]}, "test accuracy")
    >>> [f"{bar.get_width():.3f}" for bar in figure.axes[0].patches]
    ['0.955', '0.965']
    """
    published = published or {}
    figure, (ax,) = row_of_axes(1, 6, 0.42 * len(results) + 1.1)
    for i, values in enumerate(results.values()):
        centre = float(np.median(values) if median else np.mean(values))
        low, high = min(values), max(values)
        ax.barh(i, centre, color="C0", alpha=0.6, height=0.7)
        if median:
            ax.errorbar(centre, i, xerr=[[centre - low], [high - centre]], fmt="none", ecolor="k", capsize=3)
        else:
            ax.plot(values, np.full(len(values), i), "k.", ms=5)
        _beside(ax, i, f"{centre:.4g}", 0)
    ax.margins(x=0.06)
    known = [(float(published[name]), i) for i, name in enumerate(results) if published.get(name) is not None]
    if known:
        ax.plot(*np.transpose(known), "D", color="C3", ms=6)
        _beside(ax, -0.85, "here", 0, "C0")
        _beside(ax, -0.85, "published ◆", 1, "C3")
        for value, i in known:
            _beside(ax, i, f"{value:.4g}", 1, "C3")
    ax.set_yticks(range(len(results)), map(plain, results))
    bars_from_top(ax, len(results))
    ax.set_xlabel(plain(metric))
    return figure


def _beside(ax: Axes, row: float, text: str, column: int, color: str = "k") -> None:
    """Text right of the axes, in one of two columns."""
    place: dict[str, Any] = {
        "xytext": (6 + 48 * column, 0),
        "textcoords": "offset points",
        "va": "center",
        "annotation_clip": False,
    }
    ax.annotate(text, (1, row), xycoords=("axes fraction", "data"), color=color, **place)


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
        _name_points(ax, points)
        ax.set(xlabel=plain(axes[0]), ylabel=plain(axes[1]))
        ax.margins(x=0.15)
        ax.set_title(label, fontsize=9)
        ax.grid(alpha=0.3)
    figure.suptitle(plain(title), fontsize=10)
    return figure


def _name_points(ax: Axes, points: dict[str, tuple[float, float]]) -> None:
    """Names of points in a column right of the axes, in the order of their heights, with a line to each point."""
    heights = np.linspace(0.02, 0.98, len(points))
    for height, (name, xy) in zip(heights, sorted(points.items(), key=lambda item: item[1][1]), strict=True):
        line = {"arrowstyle": "-", "lw": 0.5, "color": "0.6", "relpos": (0, 0.5), "shrinkA": 1}
        place: dict[str, Any] = {
            "xytext": (1.04, height),
            "textcoords": "axes fraction",
            "va": "center",
            "annotation_clip": False,
        }
        ax.annotate(plain(name), xy, fontsize=7, arrowprops=line, **place)
