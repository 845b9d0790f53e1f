"""Importing this module registers the runners of the papers."""

from papers import fields, invariance, measure, report  # noqa: F401
