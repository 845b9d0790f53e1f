"""Figures of orbits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from orbit.groups import Group, ProductGroup
from orbit.orbits import Orbit
from orbit.plots.axes import (
    Draw,
    Sample,
    axes_or_new,
    draw_cloud,
    draw_samples,
    draw_signal,
    draw_vectors,
    figure_of,
    plain,
    slice_shown,
)
from orbit.plots.curves import convergence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from orbit.data.base import ShownAs


def orbit_examples(
    orbit: Orbit,
    X: np.ndarray,
    n_elements: int = 8,
    ax: Axes | None = None,
    ink: bool = False,
    shown_as: ShownAs = "image",
) -> Figure:
    """Samples moved by elements of an orbit: a row for each sample, a column for each element.

    Weights are below, or in the title if they are equal.

    Parameters
    ----------
    orbit : Orbit
        A fitted orbit.
    X : array, shape (n, *shape)
        A few signals, images, matrices or point clouds. Of images with channels that are not colours, the first
        channel is drawn, of volumes the slice that the title names. Vectors that turn with an image are arrows.
    n_elements : int
        The largest number of elements shown, evenly spaced in the orbit.
    ax : Axes or None
        Axes to draw into; None makes a new figure.
    ink : bool
        Draw large values of images dark.
    shown_as : {"image", "series", "molecule", "cloud"}
        ``series``: draw points of shape (length, channels) as lines, one for each channel. ``cloud``: draw points of
        shape (points, coordinates) as points, as those that ``group=orthogonal`` turns always are. Others by shape.

    Examples
    --------
    >>> import orbit
    >>> from orbit import plots
    >>> X = np.random.default_rng(0).random((2, 8, 8))
    >>> turns = orbit.Orbit(orbit.build("group", "rotation"), size=6).fit(X)
    >>> len(plots.orbit_examples(turns, X, n_elements=4).axes[0].images)
    8
    """
    r = len(orbit.weights_)
    shown = np.unique(np.linspace(0, r - 1, min(n_elements, r)).astype(int))
    if orbit.elements_.ndim == 1 and not orbit.distribution_.data_dependent:  # angles from left to right
        shown = np.argsort(orbit.elements_)[shown]
    points = torch.from_numpy(np.array(X))
    moved = [orbit.points(points, slice(i, i + 1))[0].numpy() for i in shown]
    ax = axes_or_new(ax, 1.1 * len(shown), 1.1 * len(X) + 0.9)
    weights, drawing = orbit.weights_, _drawing(orbit.group_, shown_as)
    are_equal = np.allclose(weights, weights[0])
    drawn = [orbit.label(), f"each w={weights[0]:.3g}" if are_equal else ""] if r > 1 else [orbit.group_.name]
    title = [*drawn, "" if drawing is draw_cloud else slice_shown(X.shape[1:])]
    ax.set_title(plain(", ".join(filter(None, title))), fontsize=9)
    last = -1 if are_equal else len(X) - 1  # the row with weights below
    samples = [
        Sample(
            moved[j][i],
            x,
            above="" if i or r == 1 else orbit.describe(element),
            below=f"w={weights[element]:.3f}" if i == last else "",
            ink=ink,
        )
        for i, x in enumerate(X)
        for j, element in enumerate(shown)
    ]
    draw_samples(ax, samples, len(shown), draw=drawing)
    return figure_of(ax)


def _drawing(group: Group, shown_as: ShownAs) -> Draw | None:
    """How points that the group acts on are drawn; None: as images or signals."""
    if group.clouds or shown_as == "cloud":
        return draw_cloud
    if shown_as == "series":
        return draw_signal
    parts = group.parts() if isinstance(group, ProductGroup) else [group]
    return draw_vectors if any(getattr(part, "vectors", False) for part in parts) else None


def orbit_error(errors: dict[str, np.ndarray], sizes: Sequence[int], title: str = "", ax: Axes | None = None) -> Figure:
    """The error of the average over the orbit against its size, a line for each rule: mean, smallest and largest.

    Parameters
    ----------
    errors : dict
        Rule -> errors, shape (repeats, sizes), as of :func:`orbit.approx.orbit_errors`.
    sizes : sequence of int
    title : str
    ax : Axes or None
        Axes to draw into; None makes a new figure.

    Examples
    --------
    >>> import orbit
    >>> from orbit import plots
    >>> X = np.random.default_rng(0).random((3, 8, 8))
    >>> phi = orbit.RandomFourier(orbit=orbit.Orbit(orbit.Rotation()), n_components=20, random_state=0)
    >>> errors = orbit.approx.orbit_errors(phi, X, sizes=[2, 8], reference=64, repeats=2, random_state=0)
    >>> plots.orbit_error(errors, [2, 8]).axes[0].get_xlabel()
    'orbit size r'
    """
    lines = {rule: (np.array(sizes), values) for rule, values in errors.items()}
    return convergence(lines, "orbit size r", "mean square feature error", title, ax=ax)
