"""The runs of experiments: from MLflow, and from run folders that MLflow does not have."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from orbit.core.errors import InputError
from runners.tracking.mlflow import Tracker
from runners.tracking.record import FIGURES, RECORD, RESULTS, Record, RunFolder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """A run of an experiment.

    Attributes
    ----------
    record : Record
    metrics : dict of str to float
    path : Path
        Its folder or, with a tracker, the folder that its files are downloaded to.
    tracker : Tracker or None
        None for a run folder.
    """

    record: Record
    metrics: dict[str, float]
    path: Path
    tracker: Tracker | None = None

    @property
    def finished(self) -> bool:
        return self.record.status == "FINISHED"

    @property
    def experiment(self) -> str:
        return self.record.tags["experiment"]

    @property
    def size(self) -> str:
        return str(self.record.params.get("size", "small"))

    @property
    def sweep(self) -> str:
        """The id of the sweep that the run is a job of; empty for a single run."""
        return self.record.tags.get("sweep", "")

    @cached_property
    def folder(self) -> RunFolder:
        """Its results and figures, which are downloaded once; without those that no longer exist."""
        if self.tracker is not None and not self.path.is_dir():
            assert self.record.run_id is not None
            self.path.mkdir()
            try:
                self.tracker.download(self.record.run_id, self.path, (".png", RESULTS), [FIGURES])
            except InputError as error:
                log.debug("the files of %s cannot be read: %s", self.record.run_id, error)
        return RunFolder(self.path)


def read_runs(outputs: Path, tracker: Tracker | None, scratch: Path) -> list[Run]:
    """The runs of experiments, newest first.

    Parameters
    ----------
    outputs : Path
        The folder with the run folders.
    tracker : Tracker or None
        None reads run folders only.
    scratch : Path
        An empty folder for downloaded files.

    Raises
    ------
    InputError
        If the tracking server cannot be reached.
    """
    pending = set() if tracker is None else {folder.path for folder in tracker.pending()}
    found = [run for run in _in(outputs) if tracker is None or run.record.run_id is None or run.path in pending]
    known = {run.record.run_id for run in found}
    for record, metrics in [] if tracker is None else tracker.runs():
        if record.run_id not in known:
            found.append(Run(record, metrics, scratch / str(record.run_id), tracker))
    found = [run for run in found if run.record.tags.get("experiment") and not _opens_sweep(run)]
    return sorted(found, key=lambda run: (run.record.start, run.record.run_id or ""), reverse=True)


def _in(outputs: Path) -> Iterator[Run]:
    """The run folders: of single runs, and of the jobs of sweeps."""
    for path in sorted(path for depth in ("*/*", "*/*/*") for path in outputs.absolute().glob(f"{depth}/{RECORD}")):
        folder = RunFolder(path.parent)
        try:
            record = folder.read_record()
        except InputError as error:  # truncated, or written by another program
            log.warning("%s is left out: its %s cannot be read (%s)", folder.path, RECORD, error)
            continue
        if record is not None:
            yield Run(record, folder.read_metrics(), folder.path)


def _opens_sweep(run: Run) -> bool:
    """Whether a run is the parent of a sweep, which has no results of its own."""
    return bool(run.sweep) and run.record.job is None
