"""Importing this module registers the runners of the papers."""

from papers import fields, invariance, report  # noqa: F401
from papers.measures import kernel_error, orbit_error, orff_error, skeleton_error, skeleton_locality  # noqa: F401
