"""Figures of orbits, predictions, selection, curves, skeletons and vector fields, for notebooks and for runs.

Each function returns a :class:`matplotlib.figure.Figure` and touches no global state of pyplot, so it works in any
thread and a notebook shows its result. Functions that draw a single panel take ``ax`` to draw into an existing one.
"""

from orbit.plots.axes import short
from orbit.plots.curves import budgets, convergence, costs, curves, epochs, growth, panels
from orbit.plots.fields import field
from orbit.plots.orbits import orbit_error, orbit_examples
from orbit.plots.predictions import confusion, error_examples, predicted_against_true, reliability
from orbit.plots.ranking import ranking
from orbit.plots.selection import grid_scores, selection_curve
from orbit.plots.skeletons import locality, skeleton

__all__ = [
    "budgets",
    "confusion",
    "convergence",
    "costs",
    "curves",
    "epochs",
    "error_examples",
    "field",
    "grid_scores",
    "growth",
    "locality",
    "orbit_error",
    "orbit_examples",
    "panels",
    "predicted_against_true",
    "ranking",
    "reliability",
    "selection_curve",
    "short",
    "skeleton",
]
