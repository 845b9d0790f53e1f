"""Figures of vector fields in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from orbit.plots.axes import plain, row_of_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Largest number of arrows in a panel: more would overlap.
_MAX_ARROWS = 324


def field(
    points: np.ndarray, truth: np.ndarray, predicted: np.ndarray, title: str, names: Sequence[str] = ("", "")
) -> Figure:
    """A vector field in the plane, its prediction and the error, side by side, with arrows on the same scale.

    Parameters
    ----------
    points : array, shape (n, 2)
    truth, predicted : arrays, shape (n, 2)
        Vectors at the points. At most 324 are drawn; if there are more, the title states the number.
    title : str
    names : sequence of two str
        Names of the coordinates.
    """
    shown = np.unique(np.linspace(0, len(points) - 1, min(len(points), _MAX_ARROWS)).astype(int))
    fields = {"truth": truth, "prediction": predicted, "error": predicted - truth}
    longest = max(float(np.linalg.norm(vectors[shown], axis=1).max()) for vectors in fields.values()) or 1.0
    figure, axes = row_of_axes(len(fields), 3.6, 3.9)
    for ax, (name, vectors) in zip(axes, fields.items(), strict=True):
        lengths = np.linalg.norm(vectors[shown], axis=1)
        ax.quiver(*points[shown].T, *vectors[shown].T, lengths, scale=12 * longest, clim=(0, longest))
        ax.set_title(f"{name} (root mean square {np.sqrt(np.square(vectors).mean()):.2g})", fontsize=9)
        ax.set(xlabel=plain(names[0]), ylabel=plain(names[1]), aspect="equal")
    subset = f" ({len(shown)} of {len(points)})" if len(shown) < len(points) else ""
    figure.suptitle(plain(title) + subset, fontsize=10)
    return figure
