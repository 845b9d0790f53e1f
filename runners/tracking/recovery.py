"""Runs that a process left behind: ended, if it died, and uploaded."""

from __future__ import annotations

import logging
from pathlib import Path

from orbit.core.errors import InputError
from runners.tracking import stores
from runners.tracking.mlflow import Tracker
from runners.tracking.pending import Marker, Pending
from runners.tracking.record import RUNNING, Record, RunFolder, SweepFolder, run_folder
from runners.tracking.summary import job_records, write_summary

log = logging.getLogger(__name__)


def recover(outputs: Path, tracker: Tracker | None) -> tuple[int, int]:
    """End every run whose process has died, with status FAILED, and upload the runs that are not in MLflow.

    Parameters
    ----------
    outputs : Path
    tracker : Tracker or None
        Only its runs are uploaded.

    Returns
    -------
    uploaded, failed : int
        Numbers of uploads.
    """
    pending = Pending(outputs)
    taken = [marker for marker in map(pending.take, reversed(pending.markers())) if marker]  # jobs before their sweep
    try:
        if tracker is not None and any(map(tracker.is_mine, taken)):
            try:
                stores.check(tracker.uri)
            except InputError as error:
                log.warning("%s", error)
                tracker = None
        results = [_recover(marker, pending, tracker) for marker in taken]
    finally:
        for marker in taken:
            pending.release(marker)
    return results.count(True), results.count(False)


def _recover(marker: Marker, pending: Pending, tracker: Tracker | None) -> bool | None:
    """Whether the run was uploaded; None if it needs no upload by this tracker."""
    folder = run_folder(marker.folder)
    try:
        record = folder.read_record()
    except InputError as error:
        log.warning("%s cannot be uploaded: its %s cannot be read (%s)", folder.path, folder.record_file, error)
        return False
    if record is not None and record.status == RUNNING:
        _end(folder, record, marker)
    if record is None or record.status == "SKIPPED" or not marker.uri:
        pending.remove(marker)
        return None
    return tracker is not None and tracker.is_mine(marker) and tracker.upload(folder)


def _end(folder: RunFolder, record: Record, marker: Marker) -> None:
    last_write = max(path.stat().st_mtime for path in folder.path.iterdir())
    record.status, record.end = "FAILED", max(record.start, last_write)
    record.error = (
        f"process {marker.pid} on {marker.host} ended without a result: its disk was full, it was killed, or the "
        "machine stopped"
    )
    folder.write_record(record)
    if isinstance(folder, SweepFolder):
        write_summary(folder, job_records(folder))
    log.warning("%s: %s", record.name, record.error)
