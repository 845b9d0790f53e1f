"""``runner=report``: the pages of the papers, with published values beside ours."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar

from orbit.core.errors import InputError
from orbit.core.files import write_whole
from orbit.core.paths import user_path
from orbit.registry import register
from papers.overview import PICTURE, draw
from papers.pages import pages
from papers.published import experiments, papers
from papers.records import FOLDER, PublishedRun, published_runs, read_records
from papers.runs import read_runs
from papers.versions import versions
from runners.job.job import Job
from runners.job.runner import Runner, check_only
from runners.measure.tables import markdown_table
from runners.tracking.record import FIGURES, RunFolder


@register("runner", "report")
class Report(Runner):
    """Writes a page for each paper with published values beside ours, and an index of them, as Markdown.

    The results of the papers' experiments are kept beside the pages, as small JSON files (``records``) with their
    pictures (``figures``). A newer run replaces what is kept of its experiment, size and seed; values of several seeds
    are shown as one mean. Runs are read from their folders in ``outputs``, those that have finished. The same runs give
    the same text. In a clone, ``versions.md`` in the run folder says which results are older than the code that they
    depend on.

    Parameters
    ----------
    folder : str or None
        Folder of the pages; other files in it stay as they are. None is ``report`` in ``outputs``.
    only : list of str, or None
        Names of the experiments whose results are read. None: all.
    """

    tracked: ClassVar[bool] = False
    uses_data: ClassVar[bool] = False

    def __init__(self, folder: str | None = None, only: list[str] | None = None) -> None:
        self.folder = folder
        self.only = only

    def check(self) -> None:
        super().check()
        check_only(self.only, "experiment of the papers", sorted(experiments()))

    def run(self, job: Job) -> None:
        outputs = Path(job.plan.config["outputs"])
        folder = (outputs / "report" if self.folder is None else user_path(self.folder, "folder")).absolute()
        new = publish(folder, outputs, self.only)
        job.row("new results", ", ".join(new) or "none")
        rows = versions(read_records(folder), experiments())
        if rows:
            job.log_text("versions.md", markdown_table(["results", "commit", "changes of its code since"], rows) + "\n")
            older = sum(count != "0" for *_, count in rows)
            job.row("older than its code", f"{older} of {len(rows)} results (versions.md in the run folder)")
        job.row("pages", str(folder / "index.md"))


def publish(folder: Path, outputs: Path, only: Collection[str] | None = None) -> list[str]:
    """Keep the results of the papers in a folder, and write the pages there.

    Parameters
    ----------
    folder : Path
    outputs : Path
        The folder with the run folders.
    only : collection of str, or None
        Names of the experiments whose results are read.

    Returns
    -------
    list of str
        ``EXPERIMENT-SIZE`` of the results that are new.

    Raises
    ------
    InputError
        For a folder that cannot be written.
    """
    found = published_runs(read_runs(outputs), only or experiments())
    try:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        for kept, run in found:
            _write(kept, run, folder)
        write_pages(folder)
    except OSError as error:
        raise InputError(f"runner.folder: cannot write to {folder} ({error.strerror})") from error
    return sorted({kept.name for kept, _ in found})


def write_pages(folder: Path) -> None:
    """Write the pages of a folder and their overview picture from the results that are kept in it."""
    kept = read_records(folder)
    draw(kept, folder / PICTURE)
    for name, text in pages(papers(), kept, experiments(), folder).items():
        write_whole(folder / f"{name}.md", text)


def _write(kept: PublishedRun, run: RunFolder, folder: Path) -> None:
    """Write results and the pictures that the pages show; of a whole run, instead of all that it replaces."""
    pictures = folder / FIGURES / kept.name
    if kept.is_whole:
        for path in (folder / FOLDER).glob(f"{kept.name}-*.json"):
            earlier = PublishedRun.read(path)
            if earlier.started < kept.started and kept.replaces(earlier):
                path.unlink()
        shutil.rmtree(pictures, ignore_errors=True)
    kept.write(folder / FOLDER)
    items = [item for paper in papers() for item in paper.items if item.experiment == kept.experiment]
    shown = {stem for item in items for stem in item.pictures}
    for path in sorted((run.path / FIGURES).glob("*.png")):
        stem = path.stem.replace(" ", "_")
        if stem in shown:
            pictures.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, pictures / f"{stem}.png")
