"""Progress lines, with a clock that the tests control."""

import numpy as np
import pytest

from orbit.approx import RandomFourier
from orbit.core import progress
from orbit.engine import Engine, direct, memory


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_one_line_each_minute_with_the_remaining_time(clock, log_messages):
    with progress.Progress(10, "features") as steps:
        for _ in range(10):
            clock[0] += 25
            steps.step()
    assert log_messages == [
        "features: 3 of 10, about 175 s left",
        "features: 6 of 10, about 100 s left",
        "features: 9 of 10, about 25 s left",
    ]


def test_steps_of_an_earlier_run_do_not_shorten_the_estimate(clock, log_messages):
    with progress.Progress(10, "table") as steps:
        for i in range(10):
            clock[0] += 0.1 if i < 6 else 60
            steps.step(earlier=i < 6)
    assert log_messages == [f"table: {i} of 10, about {60 * (10 - i)} s left" for i in (7, 8, 9, 10)]


def test_short_or_hidden_work_prints_nothing(clock, log_messages):
    for shown, pause in ((True, 1), (False, 100)):
        with progress.Progress(5, "features", shown) as steps:
            for _ in range(5):
                clock[0] += pause
                steps.step()
    assert log_messages == []


def test_the_engine_counts_its_tiles(clock, log_messages, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(direct, "BATCHED", memory.Tiling(rows=10, elements=1, units=1024))
    X = np.random.default_rng(0).random((35, 3))
    fitted = RandomFourier(n_components=4, engine=Engine(progress=True, workers=2), random_state=0).fit(X)
    fitted.transform(X)
    assert [line.split(",")[0] for line in log_messages] == [f"features: {i} of 4" for i in (1, 2, 3, 4)]
