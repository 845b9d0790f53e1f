"""runner=table: a table of a paper, our figures beside the published ones."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from orbit import plots
from orbit.data import Dataset
from orbit.errors import InputError
from orbit.progress import Progress
from orbit.registry import register
from runners.base import Job, Runner, Stopwatch
from runners.fit import fit_and_score
from runners.markdown import markdown_table
from runners.plan import Plan


@register("runner", "table")
class Table(Runner):
    """Fits every row of a table, over folds or seeds, and sets means and deviations beside published figures.

    Parameters
    ----------
    rows : dict of dict, at least one
        Label -> what the row changes in the configuration: whole sections
        (``approx: {name: rf}``) or single keys (``kernel.lengthscale: 4000``).
    repeats : dict or None
        One key -> the values it takes, e.g. ``{dataset.fold: [0, 1, 2, 3, 4]}``. A
        row's figure is the mean over them, with its standard deviation.
    metric : str
        The figure of the table, e.g. ``test/rmse``.
    published : dict or None
        Label -> the published figure, in the same unit; rows that no paper has are left out.
    source : str
        Where the published figures are from.
    """

    def __init__(
        self,
        rows: dict[str, Any] | None = None,
        repeats: dict[str, Any] | None = None,
        metric: str = "test/accuracy",
        published: dict[str, Any] | None = None,
        source: str = "",
    ) -> None:
        self.rows = rows
        self.repeats = repeats
        self.metric = metric
        self.published = published
        self.source = source

    def check(self) -> None:
        super().check()
        if not self.rows:
            raise InputError("runner.rows: expected at least one row; choose an experiment, e.g. experiment=qm7")
        if len(self.repeats or {}) > 1:
            raise InputError(f"runner.repeats: expected one key, found {', '.join(self.repeats or {})}")
        unknown = set(self.published or {}) - set(self.rows)
        if unknown:
            raise InputError(f"runner.published: {', '.join(sorted(unknown))} is not a row of the table")

    def run(self, job: Job) -> None:
        plans = [
            (label, job.plan.variant(changes | repeat))
            for repeat in self._repeats()
            for label, changes in (self.rows or {}).items()
        ]
        results: dict[str, list[dict[str, float]]] = {label: [] for label in self.rows or {}}
        loaded = _LastLoaded(job)
        # all rows of a fold before the next fold: its data is loaded once, and a table
        # that is stopped half-way has whole folds
        with Progress(len(plans), "table", job.plan.config["engine"]["progress"]) as progress:
            for label, plan in plans:
                results[label].append(self._fit(plan, loaded))
                self._record(job, results)
                progress.step()
        self._show(job, results)

    def _repeats(self) -> list[dict[str, Any]]:
        return [{key: value} for key, values in (self.repeats or {}).items() for value in values] or [{}]

    def _fit(self, plan: Plan, loaded: _LastLoaded) -> dict[str, float]:
        clock = Stopwatch()
        with clock.stage("total"):
            metrics = fit_and_score(plan, loaded.data(plan), clock).metrics
        if self.metric not in metrics:
            raise InputError(f"runner.metric: no such figure {self.metric!r}; choose from {', '.join(metrics)}")
        return metrics | clock.metrics

    def _record(self, job: Job, results: dict[str, list[dict[str, float]]]) -> None:
        for label, found in results.items():
            values = [metrics[self.metric] for metrics in found]
            if values:
                mean, deviation = float(np.mean(values)), float(np.std(values))
                job.log_metrics({f"{label}/{self.metric}": mean, f"{label}/{self.metric}_std": deviation})
        job.log_text("table.md", self._markdown(results))

    def _show(self, job: Job, results: dict[str, list[dict[str, float]]]) -> None:
        values = {label: [metrics[self.metric] for metrics in found] for label, found in results.items()}
        job.log_figure("table", plots.compared(values, self.metric, self.published))
        job.say(self._markdown(results))

    def _markdown(self, results: dict[str, list[dict[str, float]]]) -> str:
        header = ["", self.metric, "published", "columns", "seconds"]
        rows = [[label, *self._cells(label, found)] for label, found in results.items() if found]
        return markdown_table(header, rows) + (f"\n\nPublished: {self.source}.\n" if self.source else "\n")

    def _cells(self, label: str, found: list[dict[str, float]]) -> list[str]:
        values = [metrics[self.metric] for metrics in found]
        spread = f" ± {np.std(values):.2g}" if len(values) > 1 else ""
        columns, seconds = (np.mean([m[key] for m in found]) for key in ("features/dim", "time/total_s"))
        published = str((self.published or {}).get(label, ""))
        return [f"{np.mean(values):.4g}{spread}", published, f"{columns:.0f}", f"{seconds:.1f}"]


class _LastLoaded:
    """Keeps the data set that was loaded last, because the rows of a table mostly share it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._last: dict[str, Dataset] = {}

    def data(self, plan: Plan) -> Dataset:
        key = json.dumps([plan.config["dataset"], plan.config["seed"]], sort_keys=True)
        if key not in self._last:
            self._last = {key: Job(plan, self._job.folder, self._job.record).load()}
        return self._last[key]
