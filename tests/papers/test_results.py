"""The results in docs are those of the code: small experiments give the same figures again."""

import os
import shlex
from pathlib import Path

import pytest

from papers.records import PublishedRun, read_records
from runners.measure.results import Result
from runners.tracking.record import RunFolder

DOCS = Path(__file__).parents[2] / "docs" / "results"

# Seconds of processor time: longer ones are left to people.
_QUICK = 60.0

# The same seed gives the same figures but for the rounding of another machine, which iterations and the choice of a
# regularisation enlarge: one point of accuracy, and three per cent of an error.
_POINTS, _SHARE = 0.01, 0.03

QUICK = {
    run.stem: run
    for gathered in read_records(DOCS).values()
    for run in gathered.runs
    if run.size == "small" and 0 < (run.processor_s or 0) <= _QUICK
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(QUICK))
def test_a_small_experiment_gives_the_figures_in_docs(name, run):
    kept = QUICK[name]
    needs_files = "dataset.root=" in kept.command
    if needs_files and "ORBIT_DATA" not in os.environ:
        pytest.skip("needs ORBIT_DATA=FOLDER")
    folder = run.finished(*_arguments(kept), "tracking.enabled=false", "engine.progress=false")
    found = [Result.unpacked(values) for values in RunFolder(folder).read_results()]
    compared = {_place(result): result for result in found}
    assert set(compared) == {_place(result) for result in kept.results}
    for result in kept.results:
        if not _is_time(result):
            mean, allowed = compared[_place(result)].mean, _allowed(result)
            assert abs(mean - result.mean) <= allowed, f"{_place(result)}: {mean}, in docs {result.mean} ± {allowed}"


def test_quick_experiments_are_repeated():
    assert "orff_error-small" in QUICK


def _arguments(kept: PublishedRun) -> list[str]:
    """The arguments of its command; the data folder is that of the environment."""
    words = shlex.split(kept.command.removeprefix("python run.py "))
    return [word for word in words if not word.startswith("dataset.root=")]


def _place(result: Result) -> tuple:
    return result.part, result.label, result.metric, result.x


def _is_time(result: Result) -> bool:
    return result.metric == "seconds" or result.metric.startswith("time/")


def _allowed(result: Result) -> float:
    return _POINTS if result.metric.endswith("accuracy") else _SHARE * abs(result.mean)
