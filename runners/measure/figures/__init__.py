"""Figures of runs: compared configurations, sweeps and searches, rows of tables. See :mod:`orbit.plots` for others."""

from runners.measure.figures.comparisons import agreement, compared
from runners.measure.figures.rows import error_rows, importance
from runners.measure.figures.settings import grid_scores, search_progress, setting_effects

__all__ = ["agreement", "compared", "error_rows", "grid_scores", "importance", "search_progress", "setting_effects"]
