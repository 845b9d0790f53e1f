"""Times and memory, measured: ``runner=timing``, ``runner=memory``, ``runner=budget`` and ``experiment=bench_...``.

A package like any user's, but for a clone alone: ``orbit_benchmarks.dist-info`` beside it has the entry point of the
group ``orbit.runners`` that an installation would write, so that it is known wherever the clone is imported from.
"""
