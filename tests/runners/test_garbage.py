"""The garbage collector is off while a program starts, and on in its jobs and after it."""

from __future__ import annotations

import gc

import pytest
from command_line import SMALL

from runners.app import garbage
from runners.experiments import fit


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    monkeypatch.setattr(garbage, "_started", False)
    yield
    gc.unfreeze()
    gc.enable()


def test_it_is_off_until_the_start_is_complete():
    with garbage.start():
        assert not gc.isenabled()
        garbage.started()
        assert gc.isenabled()
        frozen = gc.get_freeze_count()
        assert frozen > 10_000
    more = [[] for _ in range(1000)]
    garbage.started()
    assert (gc.get_freeze_count() <= frozen, len(more)) == (True, 1000)  # garbage of later jobs is collected
    with garbage.start():
        assert gc.isenabled()


def test_it_is_on_again_after_a_start_that_fails():
    with pytest.raises(ValueError, match="wrong"), garbage.start():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_it_stays_off_for_a_program_that_has_switched_it_off():
    gc.disable()
    with garbage.start():
        pass
    assert not gc.isenabled()


def test_jobs_collect_garbage(run, monkeypatch):
    states = []
    fitted = fit.fit_and_score
    monkeypatch.setattr(fit, "fit_and_score", lambda *args: states.append(gc.isenabled()) or fitted(*args))
    assert run(*SMALL, "tracking.enabled=false", "runner.check_group=false")[0] == 0
    assert states == [True]
    assert gc.isenabled()
