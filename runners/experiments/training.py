"""The record of a training in several passes: a metric for each epoch, and a checkpoint to go on from."""

from __future__ import annotations

import logging
import os
import pickle
from pathlib import Path
from typing import Any

from orbit import plots
from orbit.learners.streaming import FeatureStream
from runners.app.plan import Plan
from runners.base import Job

log = logging.getLogger(__name__)


class Training:
    """Follows one learner of a job through its epochs.

    After every epoch its score so far becomes a step of a metric, and everything
    needed to go on is written to ``outputs/checkpoints``, under the identity of the
    model. A later run that fits the same model with ``resume=true`` goes on from
    there and ends with the same result.

    Parameters
    ----------
    job : Job
        What the metrics belong to.
    plan : Plan
        What is trained: the job's own, or a variant of it.
    label : str
        Tells the trainings of a job apart.
    """

    def __init__(self, job: Job, plan: Plan, label: str = "") -> None:
        self.job, self.metric = job, f"{label}/epoch/score".lstrip("/")
        self.path = Path(plan.config["outputs"]) / "checkpoints" / f"{plan.model_hash}.pkl"

    def resume(self, learner: Any, stream: FeatureStream) -> None:
        """Go on where an earlier run was stopped, if there is one and ``resume`` asks for it."""
        if not (self.job.plan.config["resume"] and self.path.is_file()):
            return
        with open(self.path, "rb") as file:
            state, stream.state = pickle.load(file)
        vars(learner).update(state)
        for score in learner.history_:
            self.job.log_step(self.metric, score)
        log.info("training goes on after epoch %d of %d (%s)", learner.epochs_done_, learner.epochs, self.path)

    def after_epoch(self, learner: Any, stream: FeatureStream) -> None:
        """Note the score of the epoch and write a checkpoint."""
        if not learner.trains_in_epochs:
            return
        self.job.log_step(self.metric, learner.history_[-1])
        log.info("%s after epoch %d of %d: %.4g", self.metric, learner.epochs_done_, learner.epochs, self._last())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".part")
        with open(temporary, "wb") as file:
            pickle.dump((vars(learner), stream.state), file)
        os.replace(temporary, self.path)

    def draw(self) -> None:
        """A curve of the epochs, where there were several."""
        if len(scores := self.job.history.get(self.metric, [])) > 1:
            self.job.log_figure("epochs", plots.epochs({self.metric: scores}))

    def end(self) -> None:
        """The checkpoint is not needed any more."""
        self.path.unlink(missing_ok=True)

    def _last(self) -> float:
        return self.job.history[self.metric][-1]
