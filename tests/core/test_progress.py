"""Progress lines, with a clock that the tests control."""

from __future__ import annotations

import logging

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


def lines(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "orbit.core.progress"]


def test_one_line_each_minute_with_the_remaining_time(clock, caplog):
    with caplog.at_level(logging.INFO, "orbit"), progress.Progress(10, "features") as steps:
        for _ in range(10):
            clock[0] += 25
            steps.step()
    assert lines(caplog) == [
        "features: 3 of 10, about 175 s left",
        "features: 6 of 10, about 100 s left",
        "features: 9 of 10, about 25 s left",
    ]


def test_short_or_hidden_work_prints_nothing(clock, caplog):
    with caplog.at_level(logging.INFO, "orbit"):
        for shown, pause in ((True, 1), (False, 100)):
            with progress.Progress(5, "features", shown) as steps:
                for _ in range(5):
                    clock[0] += pause
                    steps.step()
    assert lines(caplog) == []


def test_the_engine_counts_its_tiles(clock, caplog, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(direct, "BATCHED", memory.Tiling(rows=10, elements=1, units=1024))
    X = np.random.default_rng(0).random((35, 3))
    fitted = RandomFourier(n_components=4, engine=Engine(progress=True, workers=2), random_state=0).fit(X)
    with caplog.at_level(logging.INFO, "orbit"):
        fitted.transform(X)
    assert [line.split(",")[0] for line in lines(caplog)] == [f"features: {i} of 4" for i in (1, 2, 3, 4)]
