"""Large imports: the garbage collector does not look at their objects again."""

import gc

from runners.config.imports import large_imports


def test_the_objects_of_a_large_import_are_not_collected():
    before = gc.get_freeze_count()
    try:
        with large_imports():
            made = [[] for _ in range(1000)]
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() - before >= len(made)
    finally:
        gc.unfreeze()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with large_imports():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()
