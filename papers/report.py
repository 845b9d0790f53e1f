"""``runner=report``: the pages of the papers, with published values beside ours, and all other runs."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

from hydra.core.hydra_config import HydraConfig

from orbit.core.errors import InputError
from orbit.core.files import replacing_folder
from orbit.core.params import Range
from orbit.registry import register
from papers.cells import public
from papers.content import Page
from papers.pages import pages
from papers.pictures import copy_pictures
from papers.published import Paper, experiments_of, papers
from papers.records import FOLDER, Gathered, Kept, gathered, kept_runs, read_kept
from papers.render import FILES, render, render_page
from papers.runs import Experiment, Results, experiments
from papers.sections import Paged, arrange
from runners.config.program import program
from runners.job.job import Job
from runners.job.runner import Runner, check_only
from runners.tracking.mlflow import Tracker
from runners.tracking.record import FIGURES

log = logging.getLogger(__name__)


@register("runner", "report")
class Report(Runner):
    """Writes a page for each paper with published values beside ours, an index of them, and a page of all other runs.

    The pages are Markdown files and, together, ``index.html``. For every experiment and size they show the newest
    finished run. ``runs.md`` has experiments of no paper, then runs and sweeps of no experiment. Runs are read from
    MLflow, and from run folders where MLflow does not have them (with ``tracking.enabled=false`` from run folders
    only). The same runs give the same text.

    Parameters
    ----------
    folder : str or None
        Folder of the report; an earlier report in it is replaced. None is ``report`` in ``outputs``.
    only : list of str, or None
        Names of the experiments shown; None shows all.
    latest : int >= 0
        Number of runs and sweeps without an experiment that are shown, newest first.
    publish : str or None
        A folder, such as ``docs/results``, in which the results of the papers are kept as small JSON files
        (``records``), with their pictures (``figures``) and the pages made from them. A newer run replaces what is
        kept of its experiment, size and seed; values of several seeds are shown as one mean. Other files in the
        folder stay as they are.
    """

    tracked: ClassVar[bool] = False
    uses_data: ClassVar[bool] = False

    def __init__(
        self,
        folder: str | None = None,
        only: list[str] | None = None,
        latest: Annotated[int, Range(low=0)] = 20,
        publish: str | None = None,
    ) -> None:
        self.folder = folder
        self.only = only
        self.latest = latest
        self.publish = publish

    def run(self, job: Job) -> None:
        outputs = Path(job.plan.config["outputs"])
        target = (outputs / "report" if self.folder is None else Path(self.folder).expanduser()).absolute()
        tracker = Tracker.of(job.plan.config) if job.plan.config["tracking"]["enabled"] else None
        if self.publish is not None:
            folder = Path(self.publish).expanduser().absolute()
            names = publish(folder, outputs, tracker, _config_dirs(), self.only)
            job.row("new results", ", ".join(names) or "none")
            job.row("pages", str(folder))
            return
        write_report(target, outputs, tracker, _config_dirs(), self.only, self.latest)
        for name in ("index.md", *FILES):
            job.row(name, str(target / name))


def write_report(
    target: Path,
    outputs: Path,
    tracker: Tracker | None,
    config_dirs: Sequence[Path],
    only: list[str] | None = None,
    latest: int = 20,
) -> None:
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

    Raises
    ------
    InputError
        For unknown names in ``only``, a tracking server that cannot be reached, or a folder that cannot be written
        or holds other files.
    """
    known = experiments(*config_dirs)
    with tempfile.TemporaryDirectory() as scratch, _replacing(target) as folder:
        results = Results(outputs, tracker, known, Path(scratch))
        if not results.runs:
            log.warning("no runs in %s: the report is empty; set outputs, or tracking.uri", outputs.absolute())
        shown = _chosen(known, results, only)
        of_papers = _of(papers(), {experiment.name for experiment in shown} if only else None)
        runs = kept_runs(results, experiments_of(of_papers))
        for kept, run in runs:
            copy_pictures(results, run, kept, of_papers, folder)
        paged = Paged(experiments_of(of_papers), {(kept.experiment, kept.size) for kept, _ in runs})
        content = arrange(results, shown, _sources(results, tracker, outputs), latest, folder, paged)
        content.pages = pages(
            of_papers, gathered(kept for kept, _ in runs), {each.name: each for each in known}, folder
        )
        _write_pages(content.pages, folder)
        for name, template in FILES.items():
            (folder / name).write_text(render(content, template), encoding="utf-8")


def publish(
    folder: Path, outputs: Path, tracker: Tracker | None, config_dirs: Sequence[Path], only: list[str] | None = None
) -> list[str]:
    """Keep the results of the papers in a folder, and write the pages there.

    Of a run that has not finished, tables and figures that are complete are kept until there is one that has.

    Returns
    -------
    list of str
        ``EXPERIMENT-SIZE`` of the results that are new.

    Raises
    ------
    InputError
        As :func:`write_report` does.
    """
    known = experiments(*config_dirs)
    try:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            results = Results(outputs, tracker, known, Path(scratch))
            names = {experiment.name for experiment in _chosen(known, results, only)}
            finished = {name for name, earlier in read_kept(folder).items() if not earlier.unfinished}
            found = kept_runs(results, names & experiments_of(papers()))
            runs = [(_complete(kept), run) for kept, run in found if not kept.unfinished or kept.name not in finished]
            runs = [(kept, run) for kept, run in runs if kept.results]
            for kept, run in runs:
                if kept.is_whole:
                    _remove_replaced(kept, folder)
                kept.write(folder / FOLDER)
                copy_pictures(results, run, kept, papers(), folder)
        republish(folder, config_dirs)
    except OSError as error:
        raise InputError(f"runner.publish: cannot write to {folder} ({error.strerror})") from error
    return sorted({kept.name for kept, _ in runs})


def _remove_replaced(kept: Kept, folder: Path) -> None:
    """Remove earlier results, and all pictures, of an experiment and size of which there is a new whole run."""
    for path in (folder / FOLDER).glob(f"{kept.name}-*.json"):
        earlier = Kept.read(path)
        if earlier.started < kept.started and kept.replaces(earlier):
            path.unlink()
    shutil.rmtree(folder / FIGURES / kept.name, ignore_errors=True)


def _complete(kept: Kept) -> Kept:
    """What is kept of a run: if it has not finished, the parts of those tables and figures that are complete."""
    if not kept.unfinished:
        return kept
    items = [item for paper in papers() for item in paper.items if item.experiment == kept.experiment]
    complete = {part for item in items for part in item.parts or [] if not Gathered([kept]).missing(item.parts)}
    return replace(kept, results=[result for result in kept.results if result.part in complete])


def republish(folder: Path, config_dirs: Sequence[Path]) -> None:
    """Write the pages of a folder again, from the results that are kept in it."""
    known = {experiment.name: experiment for experiment in experiments(*config_dirs)}
    _write_pages(pages(papers(), read_kept(folder), known, folder), folder)


def _write_pages(made: Sequence[Page], folder: Path) -> None:
    for page in made:
        (folder / f"{page.name}.md").write_text(render_page(page), encoding="utf-8")


def _of(every: Sequence[Paper], names: set[str] | None) -> list[Paper]:
    """The papers with the items of some experiments; all for None."""
    if names is None:
        return list(every)
    chosen = [replace(paper, items=[item for item in paper.items if item.experiment in names]) for paper in every]
    return [paper for paper in chosen if paper.items]


def _chosen(known: list[Experiment], results: Results, only: list[str] | None) -> list[Experiment]:
    """The experiments to show, including those that have runs but whose file no longer exists."""
    removed = sorted({run.experiment for run in results.runs} - {experiment.name for experiment in known} - {""})
    every = [*known, *(Experiment(name, "", [f"{program()} experiment={name}"], []) for name in removed)]
    if only is None:
        return every
    choices = [experiment.name for experiment in every]
    check_only(only, "experiment", choices)
    return [experiment for experiment in every if experiment.name in only]


def _config_dirs() -> list[Path]:
    """The folders of configuration files that this process searches, the project's own first."""
    return [Path(source.path) for source in HydraConfig.get().runtime.config_sources if source.schema == "file"]


def _sources(results: Results, tracker: Tracker | None, outputs: Path) -> list[str]:
    local = [run for run in results.runs if run.folder is not None]
    if tracker is None:
        return [f"Run folders in {outputs.absolute()} (tracking.enabled=false): {len(local)}"]
    where = f"MLflow experiment {tracker.experiment} at {public(tracker.uri)}"
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
    try:
        _check_is_report(target)
        with replacing_folder(target) as folder:
            yield folder
    except OSError as error:
        raise InputError(f"runner.folder: cannot write to {target} ({error.strerror})") from error


def _check_is_report(target: Path) -> None:
    if not target.exists():
        return
    own = {*FILES, FIGURES, "report.md", "index.md", *(f"{paper.name}.md" for paper in papers())}
    others = {path.name for path in target.iterdir()} - own
    if others:
        raise InputError(
            f"runner.folder: expected a new folder or that of an earlier report, found {min(others)} in {target}"
        )
