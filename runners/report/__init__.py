"""runner=report: every result so far, the experiments beside the papers' figures, on one page."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

from hydra.core.hydra_config import HydraConfig

from orbit.core.errors import InputError, suggestion
from orbit.core.params import Range
from orbit.registry import register
from runners.base import Job, Runner
from runners.report.content import arrange, without_password
from runners.report.render import FILES, render
from runners.report.results import Experiment, Results, experiments
from runners.tracking.mlflow import Tracker

_PICTURES = "figures"


@register("runner", "report")
class Report(Runner):
    """Reads what runs have logged, and writes it as ``index.html``, ``report.md`` and the pictures they show.

    Of every experiment and size, the newest finished run: what it logged, how it was made, and which other
    configurations there are. Then runs and sweeps of no experiment, and the experiments that have not run. Runs are
    read from MLflow, and from run folders where MLflow does not have them (``tracking.enabled=false``: from these
    alone). Twice over the same runs, it writes the same text.

    Parameters
    ----------
    folder : str or None
        Where to write, replacing an earlier report; None is ``report`` in ``outputs``.
    only : list of str, or None
        The experiments shown; None is all.
    latest : int >= 0
        How many runs and sweeps of no experiment are shown, the newest.
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
        settings, tracker = job.plan.config["tracking"], None
        if settings["enabled"]:
            tracker = Tracker(outputs, settings["uri"], settings["experiment"])
        known = experiments(_config_dir())
        with tempfile.TemporaryDirectory() as scratch, _replacing(target) as folder:
            results = Results(outputs, tracker, known, Path(scratch))
            shown = self._chosen(known, results)
            content = arrange(results, shown, _sources(results, tracker, outputs), self.latest, folder)
            for name, template in FILES.items():
                (folder / name).write_text(render(content, template), encoding="utf-8")
        done = {section.name for section in content.sections}
        job.row("experiments", f"{len(done)} of {len(shown)} have finished runs")
        for name in FILES:
            job.row(name, str(target / name))

    def _chosen(self, known: list[Experiment], results: Results) -> list[Experiment]:
        names = {experiment.name for experiment in known}
        removed = sorted({run.experiment for run in results.runs} - names - {""})
        every = [*known, *(Experiment(name, "", [f"python run.py experiment={name}"], []) for name in removed)]
        if self.only is None:
            return every
        choices = [experiment.name for experiment in every]
        for name in self.only:
            if name not in choices:
                raise InputError(
                    f"runner.only: no such experiment as {name!r}{suggestion(str(name), choices)} "
                    f"Choose from {', '.join(choices)}."
                )
        return [experiment for experiment in every if experiment.name in self.only]


def _config_dir() -> Path:
    """The folder of the configuration that this process was started with."""
    sources = HydraConfig.get().runtime.config_sources
    return Path(next(source.path for source in sources if source.provider == "main"))


def _sources(results: Results, tracker: Tracker | None, outputs: Path) -> list[str]:
    local = [run for run in results.runs if run.folder is not None]
    if tracker is None:
        return [f"Run folders in {outputs.absolute()} (tracking.enabled=false): {len(local)}"]
    where = f"MLflow experiment {tracker.experiment} at {without_password(tracker.uri)}"
    said = [f"Runs in the {where}: {len(results.runs) - len(local)}"]
    if local:
        names = ", ".join(run.record.name for run in local)
        said.append(f"Runs that MLflow does not have, read from their folders: {len(local)} ({names})")
    return said


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``target`` once the body is done; until then the old one stays.

    Raises
    ------
    InputError
        If it cannot be written, or holds anything but a report.
    """
    new, old = (target.with_name(f".{target.name}-{os.getpid()}-{what}") for what in ("new", "old"))
    try:
        _check_own(target)
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


def _check_own(target: Path) -> None:
    """Nothing that is not a report's is ever replaced."""
    if not target.exists():
        return
    others = {path.name for path in target.iterdir()} - {*FILES, _PICTURES}
    if others:
        raise InputError(
            f"runner.folder: expected a new folder or that of an earlier report, found {min(others)} in {target}"
        )
