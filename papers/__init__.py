"""The four papers: their experiments, what they measure, and pages with their values beside ours.

A package like any user's: an entry point of the group ``orbit.runners`` names :mod:`papers.components`, and
``conf`` beside it has the configuration files.
"""
