"""Figures of orbits, predictions, selection, curves, skeletons and vector fields, for notebooks and for runs.

Each function returns a :class:`matplotlib.figure.Figure` and touches no global state of pyplot, so it works in any
thread and a notebook shows its result. Functions that draw a single panel take ``ax`` to draw into an existing one.
"""

from orbit.plots.axes import short as short
from orbit.plots.curves import (
    convergence as convergence,
    curves as curves,
    epochs as epochs,
    panels as panels,
)
from orbit.plots.fields import field as field
from orbit.plots.orbits import orbit_error as orbit_error, orbit_examples as orbit_examples
from orbit.plots.predictions import (
    confusion as confusion,
    error_examples as error_examples,
    predicted_against_true as predicted_against_true,
    reliability as reliability,
)
from orbit.plots.ranking import ranking as ranking
from orbit.plots.selection import selection_curve as selection_curve
from orbit.plots.skeletons import skeleton as skeleton
