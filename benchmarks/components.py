"""Importing this module registers the runners of the benchmarks."""

from benchmarks import budget, memory, timing  # noqa: F401
