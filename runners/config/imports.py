"""Imports of thousands of modules."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def large_imports() -> Iterator[None]:
    """Context manager around imports, whose objects the garbage collector leaves alone from then on.

    They stay until the process ends, but every full collection would look at all of them, which takes a quarter of the
    processor time of a small fit. Objects that exist when the context ends and later become a cycle without references
    are not freed: for use before the work begins.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
