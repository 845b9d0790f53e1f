"""The runs of experiments, from their folders."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orbit.core.errors import InputError
from runners.tracking.record import RECORD, Record, RunFolder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """A run of an experiment.

    Attributes
    ----------
    record : Record
    metrics : dict of str to float
    folder : RunFolder
    """

    record: Record
    metrics: dict[str, float]
    folder: RunFolder

    @property
    def experiment(self) -> str:
        return self.record.tags["experiment"]

    @property
    def size(self) -> str:
        return str(self.record.params.get("size", "small"))


def read_runs(outputs: Path) -> list[Run]:
    """The finished runs of experiments in the folder of outputs, newest first."""
    found = [run for run in _in(outputs) if run.record.tags.get("experiment") and run.record.status == "FINISHED"]
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
            yield Run(record, folder.read_metrics(), folder)
