"""Importing this module registers the runners of the benchmarks."""

from benchmarks import archive, budget, memory, timing  # noqa: F401
