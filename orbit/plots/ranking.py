"""The figure of a comparison of groups."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orbit.orbits import Orbit
from orbit.plots.axes import bars_from_top, figure_of, new_figure, plain
from orbit.plots.orbits import orbit_examples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NORMAL = 1.96  # standard errors in an interval of 95 %
_MOVES = 6  # elements of the orbit that are shown
_LINE = 44  # characters of a label, which has at most two lines


def ranking(
    labels: Sequence[str],
    errors: np.ndarray,
    standard_errors: np.ndarray,
    helps: Sequence[bool],
    baseline: float,
    orbit: Orbit,
    X: np.ndarray,
    ax: Axes | None = None,
) -> Figure:
    """Leave-one-out errors of groups as bars, those that help in another colour; below them points on an orbit.

    Parameters
    ----------
    labels : the groups, from top to bottom
    errors, standard_errors : arrays, shape (m,)
        Bars, and their standard errors, drawn as intervals of 95 %.
    helps : whether each is lower than the baseline by more than chance
    baseline : the error without a group, a dotted line
    orbit : fitted
    X : array, shape (n, *shape)
        Points that are drawn moved by the orbit, in a new figure.
    ax : Axes or None
        Axes to draw the bars into, without the points; None makes a new figure.

    Examples
    --------
    >>> import orbit
    >>> X = np.random.default_rng(0).random((1, 8, 8))
    >>> turns = orbit.Orbit(orbit.Rotation()).fit(X)
    >>> errors, deviations = np.array([0.1, 0.2]), np.array([0.01, 0.0])
    >>> figure = ranking(["rotation", "identity"], errors, deviations, [True, False], 0.2, turns, X)
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['rotation', 'identity']
    """
    below = None
    if ax is None:
        heights = 0.3 * len(labels) + 0.9, 1.9
        figure = new_figure(8, sum(heights))
        parts: Any = figure.subfigures(2, 1, height_ratios=heights)
        ax, below = parts[0].subplots(), parts[1].subplots()
    rows = np.arange(len(labels))
    ax.barh(rows, errors, color=["C2" if each else "0.6" for each in helps], height=0.7)
    ax.errorbar(errors, rows, xerr=_NORMAL * standard_errors, fmt="none", ecolor="k", capsize=3)
    ax.axvline(baseline, color="k", ls=":", lw=1)
    ax.set_yticks(
        rows, [plain(textwrap.fill(label, _LINE, max_lines=2, placeholder=" …")) for label in labels], fontsize=8
    )
    bars_from_top(ax, len(labels))
    ax.set_xlim(left=0)
    ax.set_xlabel("leave-one-out error, as a share of the variance of y (green: lower by a paired test)")
    if below is not None:
        orbit_examples(orbit, X, _MOVES, below)
    return figure_of(ax)
