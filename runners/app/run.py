"""The work of a job: its plan, the runner, and the upload of the results."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

import runners.components  # noqa: F401  registers what a plan is made of
from orbit.core import distributed, ranks
from orbit.core.errors import InputError
from runners.config.names import data_name
from runners.config.plan import Plan, plan
from runners.config.schema import Root
from runners.experiments.discover import with_discovered_settings
from runners.job.estimate import report
from runners.job.features import features_cached
from runners.job.job import Job
from runners.job.runner import Runner
from runners.measure.machine import environment_tags, peak_memory_mb
from runners.measure.metrics import MAIN_METRICS
from runners.tracking.mlflow import Tracker
from runners.tracking.record import Record, RunFolder, add_fingerprints
from runners.tracking.recovery import recover
from runners.tracking.sweep import PARENT_ENV, SHARES_ENV, SWEEP_ENV

log = logging.getLogger(__name__)


def run(cfg: DictConfig, folder: RunFolder, record: Record, afterwards: contextlib.ExitStack) -> float:
    """Run a job, and return its main metric; NaN if there is none.

    Parameters
    ----------
    cfg : DictConfig
    folder : RunFolder
    record : Record
        Filled in.
    afterwards : ExitStack
        Gets the calls that need the final record.
    """
    with distributed.job(cfg.engine.device):
        plan_, finding = with_discovered_settings(plan(cfg), None if record.job is None else folder.path.parent)
        record.name = _name(cfg, plan_)
        folder.write_config(plan_.config | {"run_name": record.name}, plan_.defaults)
        _warn_of_size(cfg.size)
        runner = plan_.component("runner")
        _fill_in(record, plan_, runner, folder)
        job = Job(plan_, folder, record, finding)
        tracker = _tracker(plan_) if runner.tracked else None
        is_done = False
        if tracker is not None:
            tracker.mark(folder)  # before MLflow knows the run, which the next start must end if this process dies
            is_done = plan_.resumes and _is_done(job, tracker)
        if plan_.resumes and distributed.of_the_first(is_done):
            distributed.end_other_processes()
            return _main_metric(job)
        if tracker is not None:
            afterwards.callback(_upload, tracker, folder)  # after the final record is written, also if begin is ended
            tracker.begin(record, folder)
        processor = time.process_time()
        with job.stage("total"), features_cached(job, runner, shared=SHARES_ENV in os.environ):
            runner.run(job)
        job.log_metrics({"time/processor_s": time.process_time() - processor, "memory/peak_mb": peak_memory_mb()})
        record.status = "FINISHED"
        _show(job, tracker)
        return _main_metric(job)


def dry_run(cfg: DictConfig) -> None:
    """Print what the job would take. Raises InputError for a row that would be refused, after all are printed."""
    plan_, _ = with_discovered_settings(plan(cfg), None)
    runner = plan_.component("runner")
    runner.plans(plan_)  # which refuses what the run would refuse
    _warn_of_size(cfg.size)
    estimates = runner.estimates(plan_)
    if ranks.rank() == 0:
        print(report(_name(cfg, plan_), estimates), flush=True)
    for estimate in estimates:
        if estimate.refused:
            raise InputError(f"{estimate.label}: {estimate.refused}")


def _name(cfg: DictConfig, plan_: Plan) -> str:
    """The name of the run, with the features that ``approx=auto`` has become."""
    if cfg.approx.name != "auto":
        return str(cfg.run_name)
    sections: Any = OmegaConf.to_container(cfg)
    return str(OmegaConf.create(sections | {"approx": plan_.config["approx"]}).run_name)


def _fill_in(record: Record, plan_: Plan, runner: Runner, folder: RunFolder) -> None:
    """Record what the run computes, and from which files."""
    record.config_hash = plan_.config_hash
    record.params = {"data": data_name(plan_.config["dataset"])} | plan_.params()
    runner.plans(plan_)  # an error in the last row is reported before the first is fitted; rows may read other files
    add_fingerprints(record, plan_.all_fingerprints())
    choices = HydraConfig.get().runtime.choices
    record.tags = environment_tags() | {
        "experiment": str(choices.get("experiment") or ""),
        "seed": str(plan_.config["seed"]),
        "launcher": str(choices.get("hydra/launcher", "")),
        "device": plan_.engine().device_name(),
        "folder": str(folder.path.absolute()),
    }
    record.tags |= runner.tags()
    if record.job is not None:
        record.tags |= {"sweep": os.environ.get(SWEEP_ENV, ""), "job": str(record.job)}


def _warn_of_size(size: str) -> None:
    """Warn of a size that is not used; it is no error, so that a loop over experiments can give one size to all."""
    choices = HydraConfig.get().runtime.choices
    experiment = choices.get("experiment")
    has_sizes = any(key.partition("@")[0] == f"experiment/{experiment}" for key in choices)
    if size == Root.size or has_sizes:
        return
    reason = (
        f"experiment={experiment} has one size" if experiment else "it is that of an experiment, and none is chosen"
    )
    log.warning("size=%s has no effect: %s", size, reason)


def _is_done(job: Job, tracker: Tracker) -> bool:
    """Whether this run is skipped, because an earlier run of the same configuration has finished."""
    record = job.record
    recover(tracker.outputs, tracker)  # the others' results must be in MLflow, or be ended, before it is asked
    done = tracker.finished(record)
    if done is None:
        return False
    record.status, record.run_id, record.skipped = (
        "SKIPPED",
        done.info.run_id,
        _in_common(record, done.info.run_id, done.data.tags),
    )
    log.info("skipped: %s", record.skipped)
    if (difference := other_code(record, done.info.run_id, done.data.tags)) is not None:
        log.warning("%s", difference)
    job.log_metrics(dict(done.data.metrics))
    return True


def _in_common(record: Record, run_id: str, tags: Mapping[str, str]) -> str:
    """What a run has in common with a finished one, of that id and tags, in one line."""
    names = ", ".join(Path(file["path"]).name for file in record.files[:3]) + (", ..." if len(record.files) > 3 else "")
    data = f"data (content of {names}: {record.data_hash})" if record.files else "generated data"
    return (
        f"run {run_id} has finished with the same configuration ({record.config_hash}), the same {data}, "
        f"and code of {_code(tags)}"
    )


def other_code(record: Record, run_id: str, tags: Mapping[str, str]) -> str | None:
    """A warning if the code of the finished run may be another one; None if both are of one clean commit."""
    if _code(record.tags) == _code(tags) and record.tags.get("git.dirty", "false") == "false":
        return None
    return (
        f"the code of run {run_id} may differ: it is of {_code(tags)}, this one of {_code(record.tags)}; "
        "set resume=false to run again"
    )


def _code(tags: Mapping[str, str]) -> str:
    """The version of a run's code, from its tags."""
    commit = tags.get("git.commit")
    if commit is None:
        return f"version {tags.get('version.orbit', 'unknown')}"
    changes = " with uncommitted changes" if tags.get("git.dirty") == "true" else ""
    return f"commit {commit[:10]}{changes}"


def _upload(tracker: Tracker, folder: RunFolder) -> None:
    if folder.is_refused():
        tracker.delete(folder.read_record())
    elif folder.has_ended() and tracker.upload(folder):
        recover(tracker.outputs, tracker)


def _tracker(plan_: Plan) -> Tracker | None:
    if not plan_.config["tracking"]["enabled"]:
        return None
    tracker = Tracker.of(plan_.config)
    if PARENT_ENV not in os.environ:  # the parent of a sweep has done this for all jobs
        tracker.open()
        recover(tracker.outputs, tracker)
    return tracker


def _show(job: Job, tracker: Tracker | None) -> None:
    """Log the main metric; of a run that is no job of a sweep, print the summary."""
    metric = _main_metric(job)
    log.info("%s finished%s", job.record.name, "" if math.isnan(metric) else f": {metric:.4g}")
    if job.record.job is not None:
        return
    job.row("run folder", str(job.folder.path.absolute()))
    if tracker is not None:
        job.row("browse", tracker.how_to_open(job.folder))
    print(f"\n{job.record.name}\n{job.summary()}\n")


def _main_metric(job: Job) -> float:
    return next((job.metrics[key] for key in MAIN_METRICS if key in job.metrics), math.nan)
