"""Checkpoints on disk, arrays of numbers and text that are never unpickled; and a training that writes one an epoch."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.files import replacing
from orbit.core.fingerprint import digest
from orbit.learners.streaming import FeatureStream
from runners.config.plan import Plan
from runners.job.job import Job
from runners.tracking.storage import writing

log = logging.getLogger(__name__)

# Raised whenever a checkpoint of before could not be resumed.
_VERSION = 4

_VERSION_KEY = "version"


def checkpoint_path(plan: Plan, suffix: str) -> Path:
    """The file for what is kept of a fit of ``plan`` in its outputs folder: the same for one model on the same data."""
    name = "-".join(filter(None, [plan.model_hash, digest(plan.fingerprints())]))
    return Path(plan.config["outputs"]) / "checkpoints" / f"{name}{suffix}"


def write_checkpoint(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of numbers or text with a version; a reader finds the old file or the new one."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            np.savez(file, allow_pickle=False, **arrays, **{_VERSION_KEY: np.array(_VERSION)})


def read_checkpoint(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint.

    Raises
    ------
    InputError
        If it is damaged, holds Python objects, or is of another version of the program.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}  # each has a checksum in the archive
        version = int(arrays.pop(_VERSION_KEY))
    except Exception as error:  # zipfile, zlib and NumPy raise errors of many kinds for damaged files
        raise damaged(path, str(error) or type(error).__name__) from error
    if version != _VERSION:
        raise damaged(path, f"it has version {version}, this program reads version {_VERSION}")
    return arrays


def damaged(path: Path, reason: str) -> InputError:
    """The error for a checkpoint that cannot be resumed."""
    line = " ".join(reason.split())
    return InputError(f"resume: the checkpoint {path.absolute()} is damaged ({line}); delete it, or set resume=false")


_STREAM, _SECONDS = "stream", "seconds"


class Training:
    """Follows one learner of a job through its epochs.

    After every epoch the score is logged as a step of a metric, and the state is written
    to ``outputs/checkpoints`` under the hashes of the model and of its data. A later run that
    fits the same model to the same data with ``resume=true`` continues from there and ends
    with the same result.

    Parameters
    ----------
    job : Job
        Records the metrics.
    plan : Plan
        The plan that is trained: the job's own, or a variant of it.
    label : str
        Name of this training, for jobs with several.

    Attributes
    ----------
    earlier : array of two numbers
        Seconds and processor seconds of earlier runs, from the start of this training to their last epoch.
    """

    def __init__(self, job: Job, plan: Plan, label: str = "") -> None:
        self.job, self.metric = job, f"{label}/epoch/score".lstrip("/")
        self.path = checkpoint_path(plan, ".npz")
        self.earlier, self._begun = np.zeros(2), _now()

    def resume(self, learner: Any, stream: FeatureStream) -> None:
        """Continue from the checkpoint of an earlier run, if there is one and ``resume`` is true."""
        if not (self.job.plan.resumes and self.path.is_file()):
            return
        arrays = read_checkpoint(self.path)
        try:
            stream.state = json.loads(str(arrays.pop(_STREAM)))
            self.earlier = arrays.pop(_SECONDS, self.earlier)  # older checkpoints have none
            learner.resume(arrays)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise damaged(self.path, f"it is of another training: {error}") from error
        self.job.add_earlier(*self.earlier)
        for score in learner.history_:
            self.job.log_step(self.metric, score)
        log.info("training continues after epoch %d of %d (%s)", learner.epochs_done_, learner.epochs, self.path)

    def after_epoch(self, learner: Any, stream: FeatureStream) -> None:
        """Record the score of the epoch and write a checkpoint."""
        self.job.log_step(self.metric, learner.history_[-1])
        log.info("%s after epoch %d of %d: %.4g", self.metric, learner.epochs_done_, learner.epochs, self._last())
        own = {_STREAM: np.array(json.dumps(stream.state)), _SECONDS: self.earlier + _now() - self._begun}
        write_checkpoint(self.path, learner.checkpoint() | own)

    def draw(self) -> None:
        """Draw the scores of the epochs, if there are several."""
        if len(scores := self.job.history.get(self.metric, [])) > 1:
            self.job.log_figure("epochs", plots.epochs, {self.metric: scores})

    def end(self) -> None:
        """Delete the checkpoint: the training is complete."""
        self.path.unlink(missing_ok=True)

    def _last(self) -> float:
        return self.job.history[self.metric][-1]


def _now() -> np.ndarray:
    """The time and the processor time in seconds, from some moment on."""
    return np.array([time.monotonic(), time.process_time()])
