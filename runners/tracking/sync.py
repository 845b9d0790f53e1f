"""runner=sync: upload finished runs that MLflow does not have yet."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from orbit.core.errors import InputError
from orbit.registry import register
from runners.base import Job, Runner
from runners.tracking.mlflow import Tracker


@register("runner", "sync")
class Sync(Runner):
    """Uploads every run folder whose upload failed. Uses only the settings ``outputs`` and ``tracking``."""

    tracked: ClassVar[bool] = False
    uses_data: ClassVar[bool] = False

    def __init__(self) -> None:
        pass

    def run(self, job: Job) -> None:
        settings = job.plan.config["tracking"]
        tracker = Tracker(Path(job.plan.config["outputs"]), settings["uri"], settings["experiment"])
        tracker.open()
        uploaded, failed = tracker.sync()
        job.row("uploaded", str(uploaded))
        job.row("still pending", str(failed))
        if failed:
            raise InputError(f"tracking.uri: {failed} runs could not be uploaded to {tracker.uri}; they stay pending")
