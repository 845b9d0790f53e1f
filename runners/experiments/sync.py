"""runner=sync: end runs whose process has died, and upload those that MLflow does not have yet."""

from __future__ import annotations

from typing import ClassVar

from orbit.core.errors import InputError
from orbit.registry import register
from runners.job.job import Job
from runners.job.runner import Runner
from runners.tracking.mlflow import Tracker
from runners.tracking.recovery import recover


@register("runner", "sync")
class Sync(Runner):
    """Ends every run whose process has died, with status FAILED, and uploads all runs that MLflow does not have.

    Uses only the settings ``outputs`` and ``tracking``; runs of another tracking URI or experiment stay pending.
    """

    tracked: ClassVar[bool] = False
    uses_data: ClassVar[bool] = False

    def run(self, job: Job) -> None:
        tracker = Tracker.of(job.plan.config)
        tracker.open()
        uploaded, failed = recover(tracker.outputs, tracker)
        job.row("uploaded", str(uploaded))
        job.row("still pending", str(failed))
        if failed:
            raise InputError(f"tracking.uri: {failed} runs could not be uploaded to {tracker.uri}; they stay pending")
