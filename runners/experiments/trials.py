"""Many fits within one run: the cells of a table, the points of a curve."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orbit.core.errors import InputError
from orbit.data import Dataset
from runners.config.plan import Plan
from runners.experiments.checkpoint import checkpoint_path, damaged, read_checkpoint, write_checkpoint
from runners.experiments.fit import record_selection
from runners.experiments.fitting import fit_and_score
from runners.experiments.training import Training
from runners.job.job import Job, Stopwatch
from runners.measure.metrics import derived

log = logging.getLogger(__name__)

# What is kept of a finished fit.
_METRICS, _PROCESSOR, _CODE = "metrics", "processor_s", "code"


class Trials:
    """Fits variants of a job's plan, each only once. Keeps the last data set in memory.

    The figures of a finished fit are written to ``outputs/checkpoints``. A later run of the
    same code on the same data takes them from there with ``resume=true``, so that a table
    that was stopped goes on with the fit that it was at.

    Parameters
    ----------
    job : Job
    metric : str
        Metric that every fit must have, e.g. ``test/accuracy``.

    Attributes
    ----------
    is_earlier : bool
        Whether the last fit was taken from an earlier run.
    """

    def __init__(self, job: Job, metric: str) -> None:
        self.is_earlier = False
        self._job, self._metric = job, metric
        self._last: dict[str, Dataset] = {}
        self._selections = 0
        self._done: dict[str, dict[str, float]] = {}
        self._trainings: list[Training] = []
        self._files: list[Path] = []

    def fit(self, plan: Plan, label: str = "") -> dict[str, float]:
        """The metrics of a plan, with ``time/total_s``; ``label`` is part of the names of its files and metrics.

        Raises
        ------
        InputError
            If the metric is not among them.
        """
        if plan.config_hash not in self._done:
            self._done[plan.config_hash] = self._taken_or_fitted(plan, label)
        metrics = self._done[plan.config_hash]
        if self._metric not in metrics:
            raise InputError(f"runner.metric: no such metric {self._metric!r}; choose from {', '.join(metrics)}")
        return metrics

    def data(self, plan: Plan) -> Dataset:
        """The data set of a plan."""
        sections = ["dataset", "seed"]
        if plan.config["engine"]["stream"]:  # a process holds its share and a sample, whose size these set
            sections += ["engine", "approx", "hyper"]
        key = json.dumps([plan.config[section] for section in sections], sort_keys=True)
        if key not in self._last:
            self._last = {key: self._job.load(plan)}
        return self._last[key]

    def end(self, all_fits: bool = True) -> None:
        """Delete the checkpoints: the fits are complete.

        Parameters
        ----------
        all_fits : bool
            Whether they are all of their table; else their figures are kept for a run of the whole table.
        """
        for training in self._trainings:
            training.end()
        for path in self._files if all_fits else ():
            path.unlink(missing_ok=True)

    def _taken_or_fitted(self, plan: Plan, label: str) -> dict[str, float]:
        """The metrics of an earlier run, or of the fit."""
        path, self.is_earlier = checkpoint_path(plan, ".fit.npz"), False
        self._files.append(path)
        code = {key: value for key, value in self._job.record.tags.items() if key.startswith(("git.", "version."))}
        if self._job.plan.resumes and path.is_file():
            earlier, earlier_s, earlier_code = _read(path)
            if earlier_code == code:
                changed = code.get("git.dirty") == "true"
                log.log(
                    logging.WARNING if changed else logging.INFO,
                    "%s: taken from an earlier run%s (%s)",
                    label or "a fit",
                    ", whose uncommitted changes may differ" if changed else "",
                    path,
                )
                self._job.add_earlier(earlier["time/total_s"], earlier_s)
                self.is_earlier = True
                return earlier
            log.warning("%s: computed again, because an earlier run has it by other code (%s)", label or "a fit", path)
        processor = time.process_time()
        metrics = self._fitted(plan, label)
        processor_s = time.process_time() - processor + float(self._trainings[-1].earlier[1])
        arrays = {_METRICS: json.dumps(metrics), _PROCESSOR: processor_s, _CODE: json.dumps(code)}
        write_checkpoint(path, {key: np.array(value) for key, value in arrays.items()})
        return metrics

    def _fitted(self, plan: Plan, label: str) -> dict[str, float]:
        clock = Stopwatch()
        with clock.stage("total"):
            training = Training(self._job, plan, label)
            fitted = fit_and_score(plan, self.data(plan), clock, training)
        metrics = fitted.metrics | derived(fitted.metrics)
        seconds = clock.metrics | {"time/total_s": clock.metrics["time/total_s"] + float(training.earlier[0])}
        self._job.log_skeleton(fitted.model["features"].kernel_, label)
        if fitted.selected:
            self._selections += 1
            record_selection(self._job, fitted.selected, f"{self._selections} {label}".strip())
        if label and self._metric in metrics:
            log.info("%s: %s %.4g, %.1f s", label, self._metric, metrics[self._metric], seconds["time/total_s"])
        self._trainings.append(training)
        return metrics | seconds


def _read(path: Path) -> tuple[dict[str, float], float, dict[str, str]]:
    """The metrics, the processor time and the code of a finished fit; ``InputError`` if they are damaged."""
    arrays = read_checkpoint(path)
    try:
        metrics, code = (json.loads(str(arrays[key])) for key in (_METRICS, _CODE))
        return metrics, float(arrays[_PROCESSOR]), code
    except (KeyError, ValueError, TypeError) as error:
        raise damaged(path, str(error)) from error


def settings(key_values: Mapping[str, Any] | None, key_path: str) -> list[dict[str, Any]]:
    """``{key: values}`` as a list with one ``{key: value}`` for each value; ``[{}]`` if it is empty.

    >>> settings({"seed": [0, 1]}, "runner.repeats")
    [{'seed': 0}, {'seed': 1}]

    Raises
    ------
    InputError
        For several keys, or values that are not a list.
    """
    if not key_values:
        return [{}]
    if not isinstance(key_values, Mapping):
        raise InputError(f"{key_path}: expected one key with a list of values, found {key_values!r}")
    if len(key_values) > 1:
        raise InputError(f"{key_path}: expected one key, found {', '.join(key_values)}")
    ((key, values),) = key_values.items()
    if not isinstance(values, list) or not values:
        raise InputError(f"{key_path}: expected a list of values for {key}, found {values!r}")
    return [{key: value} for value in values]
