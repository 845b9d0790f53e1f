"""Figures of orbits."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure

from orbit.orbits import Orbit
from orbit.plots.axes import draw_sample


def orbit_examples(orbit: Orbit, X: np.ndarray, n_elements: int = 8) -> Figure:
    """Samples moved by elements of an orbit: a row for each sample, a column for each element, weights below.

    Parameters
    ----------
    orbit : Orbit
        A fitted orbit.
    X : array, shape (n, *shape)
        A few signals, images, matrices or point clouds. Of images with channels that are not colours, the first
        channel is drawn.
    n_elements : int
        The largest number of elements shown, evenly spaced in the orbit.

    Examples
    --------
    >>> import orbit
    >>> from orbit import plots
    >>> X = np.random.default_rng(0).random((2, 8, 8))
    >>> turns = orbit.Orbit(orbit.build("group", "rotation"), size=6).fit(X)
    >>> len(plots.orbit_examples(turns, X, n_elements=4).axes)
    8
    """
    r = len(orbit.weights_)
    shown = np.unique(np.linspace(0, r - 1, min(n_elements, r)).astype(int))
    if orbit.elements_.ndim == 1 and not orbit.distribution_.data_dependent:  # angles from left to right
        shown = np.argsort(orbit.elements_)[shown]
    points = torch.from_numpy(np.array(X))
    moved = [orbit.points(points, slice(i, i + 1))[0].numpy() for i in shown]
    figure = Figure(figsize=(1.1 * len(shown), 1.1 * len(X) + 0.9), layout="constrained")
    axes = figure.subplots(len(X), len(shown), squeeze=False)
    for (i, j), ax in np.ndenumerate(axes):
        draw_sample(ax, moved[j][i], X[i], cloud=orbit.group_.clouds)
    for top, bottom, element in zip(axes[0], axes[-1], shown, strict=True):
        top.set_title(orbit.describe(element), fontsize=8)
        bottom.set_xlabel(f"w={orbit.weights_[element]:.3f}", fontsize=8)
    figure.suptitle(orbit.label(), fontsize=9)
    return figure
