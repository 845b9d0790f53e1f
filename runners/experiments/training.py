"""Records training in epochs: a metric value and a checkpoint after each epoch."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import numpy as np

from orbit import plots
from orbit.learners.streaming import FeatureStream
from runners.config.plan import Plan
from runners.experiments.checkpoint import checkpoint_path, damaged, read_checkpoint, write_checkpoint
from runners.job.job import Job

log = logging.getLogger(__name__)

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
        score = learner.history_[-1]
        self.job.log_step(self.metric, score)
        log.info("%s after epoch %d of %d: %.4g", self.metric, learner.epochs_done_, learner.epochs, score)
        own = {_STREAM: np.array(json.dumps(stream.state)), _SECONDS: self.earlier + _now() - self._begun}
        write_checkpoint(self.path, learner.checkpoint() | own)

    def draw(self) -> None:
        """Draw the scores of the epochs, if there are several."""
        if len(scores := self.job.history.get(self.metric, [])) > 1:
            self.job.log_figure("epochs", plots.epochs, {self.metric: scores})

    def end(self) -> None:
        """Delete the checkpoint: the training is complete."""
        self.path.unlink(missing_ok=True)


def _now() -> np.ndarray:
    """The time and the processor time in seconds, from some moment on."""
    return np.array([time.monotonic(), time.process_time()])
