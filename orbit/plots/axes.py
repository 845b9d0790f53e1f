"""Helpers shared by several figures: new axes, legends, ticks, lines with a band, and samples drawn by their shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from orbit.core.errors import encodable
from orbit.core.grid import PLACE, grid_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Draws a sample, and the one that sets its ranges, into axes of its own.
Draw = Callable[["Axes", np.ndarray, np.ndarray], None]

MARKERS = "osv^D<>"

# Margin of a sample in its place, whose side is 1.
_GAP = 0.04

# An image keeps its proportions up to these; a longer one is drawn wider than it is, to be seen.
_LONGEST_IMAGE = 4.0


def new_figure(width: float, height: float) -> Figure:
    """A new figure of ``width`` x ``height`` inches. Matplotlib is imported here, as most processes draw nothing."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """``ax``, or the axes of a new figure of ``width`` x ``height`` inches."""
    return new_figure(width, height).subplots() if ax is None else ax


def figure_of(ax: Axes) -> Figure:
    """The figure that the axes belong to, also through subfigures."""
    from matplotlib.figure import Figure

    figure = ax.figure
    return figure if isinstance(figure, Figure) else figure.figure


def row_of_axes(n: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A new figure with ``n`` panels beside each other, each ``width`` x ``height`` inches."""
    return grid_of_axes(n, n, width, height)


def grid_of_axes(n: int, most: int, width: float, height: float, more: float = 0.0) -> tuple[Figure, list[Axes]]:
    """A new figure with ``n`` panels in rows of at most ``most``, each ``width`` x ``height`` inches.

    It is ``more`` inches higher, for a title or a legend.
    """
    n_columns = min(most, n)
    n_rows = -(-n // n_columns)
    figure = new_figure(width * n_columns, height * n_rows + more)
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in axes[n:]:
        ax.remove()
    return figure, list(axes[:n])


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
    (line,) = ax.plot(x, y, marker + "-", ms=4, label=plain(label), color=color)
    ax.fill_between(x, low, high, alpha=0.2, color=line.get_color())
    return line


def is_geometric(x: np.ndarray) -> bool:
    """Whether values are positive and span a factor of at least 8, which suits a logarithmic axis."""
    return len(x) > 2 and bool(x.min() > 0) and bool(x.max() / x.min() >= 8)


def set_log_ticks(ax: Axes, x: np.ndarray, most: int | None = None) -> None:
    """Make the horizontal axis logarithmic, with ticks at the values of ``x`` only, and labels at ``most`` of them.

    ``x`` are in ascending order. Labels are at least a share 1 / ``most`` of the range apart; the last value has one.
    """
    shown = [len(x) - 1]
    for i in range(len(x) - 2, -1, -1):
        if most is None or (x[shown[-1]] / x[i]) ** most >= x[-1] / x[0]:
            shown.append(i)
    ax.set_xscale("log")
    ax.set_xticks(x, [f"{value:g}" if i in shown else "" for i, value in enumerate(x)])
    ax.minorticks_off()


def bars_from_top(ax: Axes, n: int) -> None:
    """The rows of ``n`` horizontal bars from top to bottom, without the empty ones that a margin in per cent makes."""
    ax.set_ylim(n - 0.45, -0.55)


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


# Arrows along a side of an image of vectors, at most.
_ARROWS = 8

# Channels of a signal that are drawn on one line, and the distance of the lines of more, in standard deviations.
_MOST_TOGETHER, _ROW = 4, 4.0


@dataclass(frozen=True)
class Sample:
    """A sample to be drawn, with a text above and below it.

    Attributes
    ----------
    x : array
        A signal (length,) or (length, channels), an image (height, width), a colour image (height, width, 3 or 4),
        an image with several numbers a pixel, of which the first is drawn, a volume, of which a slice is drawn (see
        :func:`slice_shown`), or points of a cloud (n, 2 or more).
    reference : array, the shape of x
        The sample that sets the ranges of axes and colours, the same for all moved copies of it.
    """

    x: np.ndarray
    reference: np.ndarray
    above: str = ""
    below: str = ""
    ink: bool = False  # large values of an image are dark


def slice_shown(shape: Sequence[int]) -> str:
    """The slice of a volume (depth, height, width) that is drawn; empty for other points.

    >>> slice_shown((13, 12, 12)), slice_shown((12, 12, 3))
    ('slice 7 of 13 in depth', '')
    """
    return f"slice {shape[0] // 2 + 1} of {shape[0]} in depth" if _is_volume(shape) else ""


def _is_volume(shape: Sequence[int]) -> bool:
    return len(shape) > 2 and grid_axes(tuple(shape)) == 3


def draw_samples(
    ax: Axes, samples: Sequence[Sample], n_columns: int, fontsize: float = 8, draw: Draw | None = None
) -> None:
    """Draw samples in rows, in the place of ``ax``, by ``draw`` or, if it is None, as images or signals.

    Images share these axes, because axes for each would take most of the time of a figure. Others have axes of their
    own within them.
    """
    rows = [samples[i : i + n_columns] for i in range(0, len(samples), n_columns)]
    above = np.array([_most_lines(each.above for each in row) for row in rows])
    below = np.array([_most_lines(each.below for each in row) for row in rows])
    line = 1.4 * fontsize / _side(ax, len(rows), n_columns, 1.4 * fontsize * (above.sum() + below.sum()))
    above, below = line * above, line * below
    tops = -np.cumsum([0.0, *(over + 1 + under for over, under in zip(above, below, strict=True))])
    for place, sample in enumerate(samples):
        row, column = divmod(place, n_columns)
        top = float(tops[row]) - above[row]
        _draw_sample(ax, sample, (column + _GAP, top - 1 + _GAP, 1 - 2 * _GAP), draw)
        for y, text, va in ((top, sample.above, "bottom"), (top - 1, sample.below, "top")):
            if text:
                ax.text(column + 0.5, y, plain(text), ha="center", va=va, fontsize=fontsize)
    ax.set_axis_off()
    ax.set(xlim=(0, n_columns), ylim=(tops[len(rows)], 0), aspect="equal")


def _side(ax: Axes, n_rows: int, n_columns: int, texts: float) -> float:
    """The side of a sample in points, where texts take some of the height; before a layout moves the axes."""
    width, height = 72 * figure_of(ax).get_size_inches() * ax.get_position().size
    return max(1.0, min(width / n_columns, (height - texts) / n_rows))


def _most_lines(texts: Iterable[str]) -> int:
    return max(len(text.splitlines()) for text in texts)


def _draw_sample(ax: Axes, sample: Sample, square: tuple[float, float, float], draw: Draw | None) -> None:
    """Draw a sample into a square of the axes: left, bottom, side."""
    from matplotlib.patches import Rectangle

    left, bottom, side = square
    if draw is None and grid_axes(sample.x.shape) > 1:
        width, height = _proportions(sample.x.shape)
        width, height = side * width, side * height
        left, bottom = left + (side - width) / 2, bottom + (side - height) / 2
        _draw_image(ax, sample, (left, left + width, bottom, bottom + height))
        ax.add_patch(Rectangle((left, bottom), width, height, fill=False, edgecolor="0.6", linewidth=0.5))
        return
    panel = ax.inset_axes((left, bottom, side, side), transform=ax.transData)
    hide_ticks(panel)
    (draw or draw_signal)(panel, sample.x, sample.reference)


def _proportions(shape: Sequence[int]) -> tuple[float, float]:
    """Width and height of an image or slice, of which the larger is 1.

    >>> _proportions((100, 140)), _proportions((13, 12, 24)), _proportions((2, 60))
    ((1.0, 0.7142857142857143), (1.0, 0.5), (1.0, 0.25))
    """
    height, width = shape[1:3] if _is_volume(shape) else shape[:2]
    longest = min(max(height, width), _LONGEST_IMAGE * min(height, width))
    return min(1.0, width / longest), min(1.0, height / longest)


def _draw_image(ax: Axes, sample: Sample, extent: tuple[float, float, float, float]) -> None:
    x, reference = sample.x, sample.reference
    if _is_volume(x.shape):
        x, reference = x[len(x) // 2], reference[len(x) // 2]
    low, high = reference.min(), reference.max()
    if x.ndim == 3 and x.shape[2] in (3, 4):
        ax.imshow(np.clip((x - low) / ((high - low) or 1.0), 0, 1), extent=extent)
        return
    x, reference = (each.reshape(*each.shape[:2], -1)[:, :, 0] for each in (x, reference))
    ax.imshow(x, cmap="gray_r" if sample.ink else "gray", vmin=reference.min(), vmax=reference.max(), extent=extent)


def draw_signal(ax: Axes, x: np.ndarray, reference: np.ndarray) -> None:
    """A signal, shape (length,) or (length, channels), with a line for each channel, below each other if many."""
    if x.ndim == 2 and x.shape[1] > _MOST_TOGETHER:
        shifts = _ROW * (float(reference.std(0).mean()) or 1.0) * np.arange(x.shape[1])
        x, reference = x - x.mean(0) - shifts, reference - reference.mean(0) - shifts
    low, high = reference.min(), reference.max()
    margin = 0.1 * (high - low) + 1e-9
    ax.plot(x, lw=0.7)
    ax.set_ylim(low - margin, high + margin)


def draw_vectors(ax: Axes, x: np.ndarray, reference: np.ndarray) -> None:
    """An image of vectors, shape (height, width, 2), as arrows: to the right, and down to larger rows, if positive."""
    height, width = x.shape[:2]
    step = -(-max(height, width) // _ARROWS)
    rows, columns = np.mgrid[step // 2 : height : step, step // 2 : width : step]
    longest = float(np.linalg.norm(reference, axis=2).max()) or 1.0
    lengths = {"angles": "xy", "scale_units": "xy", "scale": longest / (1.5 * step), "width": 0.012}
    ax.quiver(columns, rows, x[rows, columns, 0], x[rows, columns, 1], **lengths)
    ax.set(xlim=(-1, width), ylim=(height, -1), aspect="equal")


def draw_cloud(ax: Axes, x: np.ndarray, reference: np.ndarray) -> None:
    """Points in two or three dimensions, coloured by the third, the nearest last; without zeros after a cloud."""
    x, reference = (each[each.any(1), :PLACE] for each in np.atleast_2d(x, reference))
    depth = x[:, 2] if x.shape[1] > 2 else np.zeros(len(x))
    order = np.argsort(depth)
    ax.scatter(x[order, 0], x[order, 1], s=min(6, 600 / max(1, len(x))), c=depth[order], linewidths=0)
    radius = 1.1 * float(np.linalg.norm(reference, axis=1).max(initial=0)) or 1.0
    ax.set(xlim=(-radius, radius), ylim=(-radius, radius))
    ax.set_aspect("equal")


def plain(text: object) -> str:
    r"""A text that is not ours, as matplotlib draws it: ``$`` begins no formula, lone surrogates are escaped.

    >>> plain("$5 to $10")
    '\\$5 to \\$10'
    """
    return encodable(str(text)).replace("$", r"\$")


def cut(text: str, longest: int) -> str:
    """A text of at most ``longest`` characters: of a longer one the beginning and the end, which may tell it apart.

    >>> cut("length of the petal in mm", 15)
    'length …l in mm'
    """
    if len(text) <= longest:
        return text
    end = (longest - 1) // 2
    return f"{text[: longest - 1 - end]}…{text[-end:]}"
