"""Environment variables that other libraries read when they are loaded."""

import os

from orbit.core.environment import let_waiting_threads_sleep


def test_waiting_threads_sleep_unless_the_user_wants_otherwise(monkeypatch):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    let_waiting_threads_sleep()
    assert (os.environ["OMP_WAIT_POLICY"], os.environ["OPENBLAS_THREAD_TIMEOUT"]) == ("ACTIVE", "4")
