"""Figures of skeletons (Daniely et al., 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orbit.kernels.skeletons import Skeleton
from orbit.plots.axes import axes_or_new, figure_of, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Largest number of arrows for which all are drawn; otherwise only the arrows along one path.
_MAX_ARROWS = 250
# For nodes with more parents, thin and pale lines are drawn instead of arrows.
_MANY_PARENTS = 40


def skeleton(drawn: Skeleton, inputs: str, ax: Axes | None = None) -> Figure:
    """The nodes of a skeleton, a row for each level, inputs at the bottom, with arrows from parents and activations.

    With more than 250 arrows, only arrows into one node of each level are drawn: the receptive field of that node.

    Parameters
    ----------
    drawn : Skeleton
    inputs : str
        Description of an input, written beside the lowest row.
    ax : Axes or None
        Axes to draw into; None makes a new figure.
    """
    rows = [range(drawn.n_inputs), *(range(level.start, level.stop) for level in drawn.levels)]
    x = np.concatenate([(np.arange(len(row)) + 0.5) / len(row) for row in rows])
    y = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    if any((y[level.parents] < y[level.start] - 1).any() for level in drawn.levels):
        x += np.where(y % 2, 0.08, -0.08)  # arrows that skip a level must not cross its nodes
    ax = axes_or_new(ax, 8, 1.3 * len(rows) + 0.4)
    for child, parents in _arrows(drawn).items():
        many = len(parents) > _MANY_PARENTS
        style = {"arrowstyle": "-", "lw": 0.4, "alpha": 0.4} if many else {"arrowstyle": "->", "lw": 0.8, "alpha": 0.8}
        style |= {"color": f"C{y[child] % 10}", "shrinkA": 2, "shrinkB": 3}
        for parent in parents:
            ax.annotate("", (x[child], y[child]), (x[parent], y[parent]), arrowprops=style)
    labels = [f"{drawn.n_inputs} inputs: {inputs}", *drawn.labels]
    for height, (row, label) in enumerate(zip(rows, labels, strict=True)):
        size = float(np.clip(300 / len(row), 1.5, 9))
        ax.plot(x[row], y[row], "o", ms=size, color=f"C{height % 10}" if height else "0.35", clip_on=False)
        at = 1.02, height
        ax.annotate(
            plain(label), at, xycoords=("axes fraction", "data"), va="center", fontsize=8, annotation_clip=False
        )
    ax.set(xlim=(min(0, x.min()), max(1, x.max())), ylim=(-0.3, len(rows) - 0.7))
    ax.set_axis_off()
    ax.set_title(f"{len(x)} nodes, C(S) = {drawn.complexity():.3g}", fontsize=10)
    return figure_of(ax)


def _arrows(drawn: Skeleton) -> dict[int, np.ndarray]:
    """Node -> parents whose arrows are drawn: for all nodes, or for one path down from the output."""
    level_of = {node: level for level in drawn.levels for node in range(level.start, level.stop)}
    if sum(len(level.parents) for level in drawn.levels) <= _MAX_ARROWS:
        return {node: level.parents_of(node) for node, level in level_of.items()}
    path, node = {}, drawn.output
    while node in level_of:
        path[node] = level_of[node].parents_of(node)
        node = int(np.sort(path[node])[len(path[node]) // 2])
    return path
