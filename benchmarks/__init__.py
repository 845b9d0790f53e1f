"""Times and memory, measured: ``runner=timing``, ``runner=memory``, ``runner=budget`` and ``experiment=bench_...``.

A package like any user's, with an entry point of the group ``orbit.runners`` in ``pyproject.toml``; a wheel lacks it.
"""
