"""The figure of a regularisation path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orbit.learners.base import Curve
from orbit.plots.axes import axes_or_new, figure_of, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def selection_curve(curve: Curve, ax: Axes | None = None) -> Figure:
    """The validation score along a regularisation path, and the chosen value.

    Parameters
    ----------
    curve : Curve
        Of a fitted learner: ``learner.selection_curve()``. Scores that are all at most 0 are negative errors, and drawn
        as errors. Values that are not finite are omitted.
    ax : Axes or None
        Axes to draw into; None makes a new figure.

    Examples
    --------
    >>> import orbit
    >>> from orbit import plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 3))
    >>> learner = orbit.RidgeRegressor().fit(X, X[:, 0] + 0.1 * rng.standard_normal(40))
    >>> plots.selection_curve(learner.selection_curve()).axes[0].get_ylabel()
    'loo error'
    """
    path, scores = curve.path, curve.scores
    ax = axes_or_new(ax, 5, 3.4)
    finite = np.isfinite(scores)
    is_error = curve.criterion != "marginal_likelihood" and bool((scores[finite] <= 0).all())
    errors = None if curve.errors is None else curve.errors[finite]
    ax.errorbar(path[finite], -scores[finite] if is_error else scores[finite], errors, fmt="o-", ms=4, capsize=3)
    ax.axvline(curve.chosen, color="C1", ls="--", label=f"chosen {curve.chosen:.3g}")
    ax.set_xscale("log")
    if is_error:
        ax.set_yscale("log")
    ax.set_xlabel("regularisation λ" if curve.parameter == "regularization" else plain(curve.parameter))
    ax.set_ylabel(plain(_score_label(curve.criterion, is_error)))
    ax.legend()
    ax.grid(alpha=0.3)
    return figure_of(ax)


def _score_label(criterion: str, is_error: bool) -> str:
    """
    >>> _score_label("k_fold_log_loss", True), _score_label("hold_out", False)
    ('k-fold log loss', 'hold-out accuracy')
    """
    if criterion == "marginal_likelihood":
        return "log marginal likelihood"
    parts, is_log_loss, _ = criterion.partition("_log_loss")
    return f"{parts.replace('_', '-')} {'log loss' if is_log_loss else 'error' if is_error else 'accuracy'}"
