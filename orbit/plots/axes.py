"""Helpers shared by several figures: new axes, legends, ticks, lines with a band, and samples drawn by their shape."""

from __future__ import annotations

from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

MARKERS = "osv^D<>"


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """``ax``, or the axes of a new figure of ``width`` x ``height`` inches."""
    return Figure(figsize=(width, height), layout="constrained").subplots() if ax is None else ax


def figure_of(ax: Axes) -> Figure:
    """The figure that the axes belong to, also through subfigures."""
    figure = ax.figure
    return figure if isinstance(figure, Figure) else figure.figure


def row_of_axes(n: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A new figure with ``n`` panels beside each other, each ``width`` x ``height`` inches."""
    figure = Figure(figsize=(width * n, height), layout="constrained")
    return figure, list(figure.subplots(1, n, squeeze=False)[0])


def line_with_band(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    marker: str,
    label: str,
    color: str | None = None,
) -> Line2D:
    """A line through ``y`` and a band from ``low`` to ``high``, all of shape (m,); None is the next colour."""
    (line,) = ax.plot(x, y, marker + "-", ms=4, label=label, color=color)
    ax.fill_between(x, low, high, alpha=0.2, color=line.get_color())
    return line


def is_geometric(x: np.ndarray) -> bool:
    """Whether values are positive and span a factor of at least 8, which suits a logarithmic axis."""
    return len(x) > 2 and bool(x.min() > 0) and bool(x.max() / x.min() >= 8)


def set_log_ticks(ax: Axes, x: np.ndarray) -> None:
    """Make the horizontal axis logarithmic, with ticks at the values of ``x`` only."""
    ax.set_xscale("log")
    ax.set_xticks(x, [f"{value:g}" for value in x])
    ax.minorticks_off()


def hide_ticks(ax: Axes) -> None:
    ax.set_xticks([])
    ax.set_yticks([])


def short(value: object) -> str:
    """A short text for a value: numbers with four digits, a component's section by its name and parameters.

    >>> short(0.123456), short({"name": "rf", "n_components": 5}), short(np.array([1.0, 2.5]))
    ('0.1235', 'rf n_components=5', '1, 2.5')
    """
    if isinstance(value, np.ndarray):
        return ", ".join(short(item) for item in value[:3].tolist()) + (", …" if len(value) > 3 else "")
    if isinstance(value, dict):
        return " ".join(str(v) if k == "name" else f"{k}={short(v)}" for k, v in value.items())
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)


def draw_sample(ax: Axes, x: np.ndarray, reference: np.ndarray, cloud: bool = False) -> None:
    """Draw one sample, without ticks.

    Parameters
    ----------
    ax : Axes
    x : array
        A signal (length,), an image (height, width), a colour image (height, width, 3 or 4), an image with
        several numbers a pixel, of which the first is drawn, or, with ``cloud``, points (n, 2 or 3).
    reference : array, the shape of x
        The sample that sets the ranges of axes and colours, the same for all moved copies of it.
    """
    if cloud:
        _draw_cloud(ax, x, reference)
    elif x.ndim == 1:
        _draw_signal(ax, x, reference)
    elif x.ndim == 3 and x.shape[2] in (3, 4):
        low, high = reference.min(), reference.max()
        ax.imshow(np.clip((x - low) / ((high - low) or 1.0), 0, 1), aspect="auto")
    else:
        _draw_image(ax, *(image.reshape(*image.shape[:2], -1)[:, :, 0] for image in (x, reference)))
    hide_ticks(ax)


def _draw_signal(ax: Axes, x: np.ndarray, reference: np.ndarray) -> None:
    low, high = reference.min(), reference.max()
    margin = 0.1 * (high - low) + 1e-9
    ax.plot(x, lw=0.7)
    ax.set_ylim(low - margin, high + margin)


def _draw_image(ax: Axes, x: np.ndarray, reference: np.ndarray) -> None:
    aspect: Literal["equal", "auto"] = "equal" if x.shape[0] == x.shape[1] else "auto"
    ax.imshow(x, cmap="gray_r", vmin=reference.min(), vmax=reference.max(), aspect=aspect)


def _draw_cloud(ax: Axes, x: np.ndarray, reference: np.ndarray) -> None:
    x, reference = np.atleast_2d(x, reference)
    depth = x[:, 2] if x.shape[1] > 2 else None
    ax.scatter(x[:, 0], x[:, 1], s=6, c=depth)
    radius = 1.1 * float(np.linalg.norm(reference, axis=1).max()) or 1.0
    ax.set_xlim(-radius, radius)
    ax.set_ylim(-radius, radius)
    ax.set_aspect("equal")
