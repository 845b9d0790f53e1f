"""Importing this module registers the runners of the papers, and a data set."""

from papers import fields, invariance, low_rank, measure, report  # noqa: F401
