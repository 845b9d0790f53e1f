"""``runner=report``: all results on one page, with the papers' values beside them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from hydra.core.hydra_config import HydraConfig

from orbit.core.errors import InputError, suggestion
from orbit.core.params import Range
from orbit.registry import register
from runners.base import Job, Runner
from runners.program import program
from runners.report.cells import without_password
from runners.report.content import Content
from runners.report.render import FILES, render
from runners.report.results import Experiment, Results, experiments
from runners.report.sections import arrange
from runners.tracking.mlflow import Tracker

_PICTURES = "figures"


@register("runner", "report")
class Report(Runner):
    """Writes all logged results as ``index.html`` and ``report.md``, with their figures.

    For every experiment and size the report shows the newest finished run: its tables and figures, its command, and
    the runs of other configurations. Runs and sweeps that belong to no experiment follow, then the experiments that
    have not run. Runs are read from MLflow, and from run folders where MLflow does not have them (with
    ``tracking.enabled=false`` from run folders only). The same runs give the same text.

    Parameters
    ----------
    folder : str or None
        Folder of the report; an earlier report in it is replaced. None is ``report`` in ``outputs``.
    only : list of str, or None
        Names of the experiments shown; None shows all.
    latest : int >= 0
        Number of runs and sweeps without an experiment that are shown, newest first.
    """

    tracked: ClassVar[bool] = False
    uses_data: ClassVar[bool] = False

    def __init__(
        self, folder: str | None = None, only: list[str] | None = None, latest: Annotated[int, Range(low=0)] = 20
    ) -> None:
        self.folder = folder
        self.only = only
        self.latest = latest

    def run(self, job: Job) -> None:
        outputs = Path(job.plan.config["outputs"])
        target = (outputs / "report" if self.folder is None else Path(self.folder).expanduser()).absolute()
        tracker = Tracker.of(job.plan.config) if job.plan.config["tracking"]["enabled"] else None
        content, n_experiments = write_report(target, outputs, tracker, _config_dirs(), self.only, self.latest)
        done = {section.name for section in content.sections}
        job.row("experiments", f"{len(done)} of {n_experiments} have finished runs")
        for name in FILES:
            job.row(name, str(target / name))


def write_report(
    target: Path,
    outputs: Path,
    tracker: Tracker | None,
    config_dirs: Sequence[Path],
    only: list[str] | None = None,
    latest: int = 20,
) -> tuple[Content, int]:
    """Write a report, replacing an earlier one only when the new one is complete.

    Parameters
    ----------
    target : Path
        The folder of the report.
    outputs : Path
        The folder with the run folders.
    tracker : Tracker or None
        None reads run folders only.
    config_dirs : sequence of Path
        The folders whose ``experiment`` folders name the experiments.
    only : list of str, or None
        Names of the experiments shown; None shows all.
    latest : int >= 0
        Number of runs and sweeps without an experiment that are shown.

    Returns
    -------
    content : Content
    n_experiments : int
        Number of experiments in the report, with or without runs.

    Raises
    ------
    InputError
        For unknown names in ``only``, a tracking server that cannot be reached, or a folder that cannot be written
        or holds other files.
    """
    known = experiments(*config_dirs)
    with tempfile.TemporaryDirectory() as scratch, _replacing(target) as folder:
        results = Results(outputs, tracker, known, Path(scratch))
        shown = _chosen(known, results, only)
        content = arrange(results, shown, _sources(results, tracker, outputs), latest, folder)
        for name, template in FILES.items():
            (folder / name).write_text(render(content, template), encoding="utf-8")
    return content, len(shown)


def _chosen(known: list[Experiment], results: Results, only: list[str] | None) -> list[Experiment]:
    """The experiments to show, including those that have runs but whose file no longer exists."""
    removed = sorted({run.experiment for run in results.runs} - {experiment.name for experiment in known} - {""})
    every = [*known, *(Experiment(name, "", [f"{program()} experiment={name}"], []) for name in removed)]
    if only is None:
        return every
    choices = [experiment.name for experiment in every]
    for name in only:
        if name not in choices:
            raise InputError(
                f"runner.only: no such experiment {name!r}{suggestion(str(name), choices)} "
                f"Choose from {', '.join(choices)}."
            )
    return [experiment for experiment in every if experiment.name in only]


def _config_dirs() -> list[Path]:
    """The folders of configuration files that this process searches, the project's own first."""
    return [Path(source.path) for source in HydraConfig.get().runtime.config_sources if source.schema == "file"]


def _sources(results: Results, tracker: Tracker | None, outputs: Path) -> list[str]:
    local = [run for run in results.runs if run.folder is not None]
    if tracker is None:
        return [f"Run folders in {outputs.absolute()} (tracking.enabled=false): {len(local)}"]
    where = f"MLflow experiment {tracker.experiment} at {without_password(tracker.uri)}"
    sources = [f"Runs in the {where}: {len(results.runs) - len(local)}"]
    if local:
        names = ", ".join(run.record.name for run in local)
        sources.append(f"Runs that MLflow does not have, read from their folders: {len(local)} ({names})")
    return sources


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A new folder that replaces ``target`` when the body succeeds; until then the old one is kept.

    Raises
    ------
    InputError
        If the folder cannot be written, or the old one has files that are not part of a report.
    """
    new, old = (target.with_name(f".{target.name}-{os.getpid()}-{suffix}") for suffix in ("new", "old"))
    try:
        _check_is_report(target)
        new.mkdir(parents=True)
        yield new
        if target.exists():
            target.rename(old)
        try:
            new.rename(target)
        except BaseException:
            if old.exists():
                old.rename(target)
            raise
    except OSError as error:
        raise InputError(f"runner.folder: cannot write to {target} ({error.strerror})") from error
    finally:
        for folder in (new, old):
            shutil.rmtree(folder, ignore_errors=True)


def _check_is_report(target: Path) -> None:
    if not target.exists():
        return
    others = {path.name for path in target.iterdir()} - {*FILES, _PICTURES}
    if others:
        raise InputError(
            f"runner.folder: expected a new folder or that of an earlier report, found {min(others)} in {target}"
        )
