"""The pictures of runs that the pages of the papers show."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from papers.published import Paper
from papers.records import Kept
from papers.runs import Results, Run
from runners.tracking.record import FIGURES


def copy_pictures(results: Results, run: Run, kept: Kept, papers: Sequence[Paper], folder: Path) -> None:
    """Copy the figures of a run that items of the papers show into ``folder``."""
    files = results.files(run)
    items = (item for paper in papers for item in paper.items if item.experiment == kept.experiment)
    stems = {stem for item in items for stem in item.pictures}
    target = folder / FIGURES / kept.name
    for path in sorted((files / FIGURES).glob("*.png")) if files is not None else []:
        stem = path.stem.replace(" ", "_")
        if stem in stems:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / f"{stem}.png")
