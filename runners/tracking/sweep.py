"""Sweeps: one parent run for all jobs, created before the first starts and closed with a summary of all jobs."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from matplotlib.figure import Figure
from omegaconf import DictConfig

from orbit import plots
from orbit.core.errors import InputError
from runners.base import MAIN_METRICS
from runners.markdown import markdown_table, mean_and_spread
from runners.tracking.mlflow import Tracker, environment_tags
from runners.tracking.record import Record, RunFolder

log = logging.getLogger(__name__)

#: Environment variables that identify the sweep to its jobs, which may run in other processes.
PARENT_ENV = "ORBIT_PARENT_RUN_ID"
SWEEP_ENV = "ORBIT_SWEEP_ID"

#: Metrics in the table of a sweep, where the jobs have them.
_SHOWN_METRICS = (*MAIN_METRICS, "features/dim", "time/total_s")

Jobs = list[tuple[Record, dict[str, float]]]  # each job's record and metrics

_open: list[SweepCallback] = []


class SweepCallback(Callback):
    """Callback for multirun, created by Hydra from the section ``hydra.callbacks``."""

    def __init__(self) -> None:
        self.tracker: Tracker | None = None
        self.parent_id: str | None = None
        self.folder = Path()

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Create database, experiment and parent run, in this process, before any job."""
        self.folder = Path(config.hydra.sweep.dir)
        os.environ[SWEEP_ENV] = "/".join(self.folder.parts[-2:])
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if config.tracking.enabled:
                self._open_parent(config)
        except (InputError, OSError) as error:
            # Hydra turns an exception of a callback into a warning; a sweep must not start without its parent run.
            message = (
                error if isinstance(error, InputError) else f"outputs: cannot write to {self.folder} ({error.strerror})"
            )
            print(f"error: {message}", file=sys.stderr)
            raise SystemExit(2) from error
        _open.append(self)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Nothing: Hydra does not call this when a job failed, so ``close_sweep`` does the work."""

    def close(self, interrupted: bool) -> int:
        """Print and log the table of all jobs, and return the number of jobs that failed."""
        records = _job_records(self.folder)
        failed = [record for record, _ in records if record.status not in ("FINISHED", "SKIPPED")]
        if records:
            table = summary(records)
            (self.folder / "summary.md").write_text(table + "\n", encoding="utf-8")
            if (figure := _figure(records)) is not None:
                RunFolder(self.folder).write_figure("summary", figure)
            print(f"\n{table}\n")
            print(f"  {len(records) - len(failed)} of {len(records)} jobs finished; folder {self.folder.absolute()}")
        if self.tracker is not None and self.parent_id is not None:
            status = "KILLED" if interrupted else "FAILED" if failed or not records else "FINISHED"
            self.tracker.close(self.parent_id, status, self.folder)
            print(f"  browse: {self.tracker.how_to_open()}")
        for record in failed:
            print(f"  {record.status} job {record.job}, {record.name}: {record.error}", file=sys.stderr)
        return len(failed)

    def _open_parent(self, config: DictConfig) -> None:
        self.tracker = Tracker(Path(config.outputs), config.tracking.uri, config.tracking.experiment)
        self.tracker.open()
        name, overrides = f"sweep-{self.folder.name.removesuffix('-sweep')}", list(config.hydra.overrides.task)
        record = Record(name, overrides=overrides, tags=environment_tags() | {"sweep": os.environ[SWEEP_ENV]})
        self.parent_id = self.tracker.start(record)
        os.environ[PARENT_ENV] = self.parent_id


def close_sweep(interrupted: bool = False) -> int | None:
    """Close the sweep of this process, and return the number of failed jobs; None without a sweep."""
    if not _open:
        return None
    failed = _open.pop().close(interrupted)
    for name in (PARENT_ENV, SWEEP_ENV):
        os.environ.pop(name, None)
    return failed


def summary(records: Jobs) -> str:
    """A Markdown table with a row for each job: the overrides that differ between jobs, and the metrics."""
    varied = _varied(records)
    metrics = [key for key in _SHOWN_METRICS if any(key in m for _, m in records)]
    header = ["job", "run", *varied, *metrics, "status"]
    rows = [
        [
            str(r.job),
            r.name,
            *(_overrides(r).get(key, "") for key in varied),
            *(_number(m.get(key)) for key in metrics),
            r.status,
        ]
        for r, m in records
    ]
    table = markdown_table(header, rows)
    return f"{table}\n\n{_over_seeds(records)}" if "seed" in varied else table


def _over_seeds(records: Jobs) -> str:
    """A Markdown table with a row for each configuration: means and standard deviations over its seeds."""
    varied = [key for key in _varied(records) if key != "seed"]
    groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for record, metrics in records:
        if metrics:
            groups.setdefault(tuple(_overrides(record).get(key, "") for key in varied), []).append(metrics)
    shown = [key for key in _SHOWN_METRICS if any(key in m for found in groups.values() for m in found)]
    rows = [
        [*values, str(len(found)), *(mean_and_spread([m[key] for m in found if key in m]) for key in shown)]
        for values, found in groups.items()
    ]
    return markdown_table([*varied, "seeds", *shown], rows)


def _figure(records: Jobs) -> Figure | None:
    """A figure of the main metric of every configuration, over its seeds; None if only seeds differ."""
    metric = next((key for key in MAIN_METRICS if any(key in m for _, m in records)), None)
    varied = [key for key in _varied(records) if key != "seed"]
    if metric is None or not varied:
        return None
    results: dict[str, list[float]] = {}
    for record, metrics in records:
        if metric in metrics:
            name = ", ".join(f"{key}={_overrides(record).get(key, '')}" for key in varied)
            results.setdefault(name, []).append(metrics[metric])
    return plots.compared(results, metric)


def _overrides(record: Record) -> dict[str, str]:
    return dict(override.lstrip("+~").partition("=")[::2] for override in record.overrides)


def _varied(records: Jobs) -> list[str]:
    """The overridden keys whose values differ between jobs, in the order they were given."""
    names = dict.fromkeys(key for record, _ in records for key in _overrides(record))
    return [key for key in names if len({_overrides(record).get(key) for record, _ in records}) > 1]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _job_records(folder: Path) -> Jobs:
    folders = [RunFolder(path) for path in folder.iterdir() if path.is_dir()]
    found = [(record, run.read_metrics()) for run in folders if (record := run.read_record()) is not None]
    return sorted(found, key=lambda pair: pair[0].job or 0)
