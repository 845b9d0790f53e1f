"""The runs of experiments, from their folders."""

from __future__ import annotations

import logging
from pathlib import Path

from orbit.core.errors import InputError
from runners.tracking.record import RECORD, Record, RunFolder

log = logging.getLogger(__name__)


def read_runs(outputs: Path) -> list[tuple[Record, RunFolder]]:
    """The finished runs of experiments, single ones and jobs of sweeps, in the folder of outputs, newest first."""
    found = []
    for path in (path for depth in ("*/*", "*/*/*") for path in outputs.absolute().glob(f"{depth}/{RECORD}")):
        folder = RunFolder(path.parent)
        try:
            record = folder.read_record()
        except InputError as error:  # truncated, or written by another program
            log.warning("%s is left out: its %s cannot be read (%s)", folder.path, RECORD, error)
            continue
        if record is not None and record.status == "FINISHED" and record.tags.get("experiment"):
            found.append((record, folder))
    return sorted(found, key=lambda run: (run[0].start, str(run[1].path)), reverse=True)
