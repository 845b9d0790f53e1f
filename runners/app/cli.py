"""The command line: composes a configuration, runs it, and reports errors as one line and an exit code.

Exit codes: 0 success, 1 a defect or a failed job of a sweep, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from orbit.core import distributed
from orbit.core.errors import InputError, shortened
from runners import report  # noqa: F401  importing registers them
from runners.app import info, processes
from runners.app.arguments import check_arguments
from runners.app.checks import check_files
from runners.app.messages import bad_input, in_keys, is_configuration_error
from runners.app.plan import Plan, plan
from runners.app.schema import register_schemas
from runners.base import MAIN_METRICS, Job
from runners.experiments import (  # noqa: F401
    compare,
    fit,
    invariance,
    kernel_error,
    orbit_error,
    orff_error,
    predict,
    result_table,
    skeleton_error,
    skeleton_locality,
    vector_fields,
)
from runners.machine import environment_tags
from runners.timing import budget, memory, timing  # noqa: F401
from runners.tracking import sync  # noqa: F401
from runners.tracking.identity import add_fingerprints, identity, in_common, other_code
from runners.tracking.mlflow import Tracker
from runners.tracking.passwords import conceal, masked_output
from runners.tracking.pending import Marker, Pending
from runners.tracking.record import TRACEBACK, Record, RunFolder
from runners.tracking.recovery import recover
from runners.tracking.sweep import PARENT_ENV, SWEEP_ENV, close_sweep

log = logging.getLogger(__name__)

_WAIT_S = 1.0

_exit_code = 0  # of the last job run in this process


def main(config_dir: Path) -> int:
    """Run the command line with the configuration files in ``config_dir``, and return the exit code."""
    with masked_output():
        return _main(config_dir)


def _main(config_dir: Path) -> int:
    global _exit_code
    _exit_code = 0
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them
    processes.end_on_signals()
    try:
        sys.argv[1:] = conceal(sys.argv[1:])
        if (topic := info.requested(sys.argv[1:])) is not None:
            print(info.describe_topic(topic, config_dir), flush=True)
            return 0
        check_arguments(sys.argv[1:])
        config_dirs = config_dir, *_added_config_dirs(sys.argv[1:])
        check_files(*config_dirs)
        register_schemas(*config_dirs)
        with _own_folder_unless_first():
            hydra.main(version_base="1.3", config_path=str(config_dir), config_name="config")(run_job)()
    except KeyboardInterrupt:
        close_sweep(interrupted=True)
        print("interrupted; finished results are kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read the output has stopped, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter fails to flush at its end
        return 1
    except Exception as error:
        close_sweep()
        if isinstance(error, OSError) and not is_configuration_error(error):
            # a job reports its own errors, so this one is from Hydra's creation of the run folder
            problem = f"outputs: cannot write to {shortened(str(error.filename))} ({error.strerror})"
            return _report(InputError(f"{problem}; set outputs to a folder you can write to"))
        return _report(error)
    failed = close_sweep()
    return _exit_code if failed is None else int(failed > 0)


def _added_config_dirs(arguments: list[str]) -> list[Path]:
    """The folder that Hydra's ``--config-dir`` adds to those it searches."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-dir", "-cd", type=Path)
    added = parser.parse_known_args(arguments)[0].config_dir
    return [] if added is None else [added]


@contextlib.contextmanager
def _own_folder_unless_first() -> Iterator[None]:
    """In a job of several processes, only the first logs to MLflow and keeps its run folder."""
    if distributed.rank() == 0:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        sys.argv += [f"hydra.run.dir={folder}", "tracking.enabled=false", "engine.progress=false"]
        yield


def run_job(cfg: DictConfig) -> float:
    """Run one job. Hydra calls it once for a run, and once for each job of a sweep.

    Returns the main metric, for Hydra's search plugins; NaN if there is none or
    the job failed. It raises only when interrupted: on any other exception Hydra
    would stop the sweep without its summary.
    """
    global _exit_code
    try:
        with masked_output(), processes.job(), distributed.job(_device(cfg)), _logged_warnings():
            return _run_job(cfg)
    except distributed.ShareDone:
        return math.nan
    except Exception as error:
        if isinstance(error, distributed.ProcessLostError):
            recover(Path(cfg.outputs), None)  # the first process may be the one that died, with the record of the run
        _exit_code = _report(error)
        return math.nan


def _device(cfg: DictConfig) -> str:
    """The device asked for; ``auto`` without a section ``engine``, which the plan refuses."""
    return str(OmegaConf.select(cfg, "engine.device", default="auto"))


def _run_job(cfg: DictConfig) -> float:
    hydra_config = HydraConfig.get()
    multirun = hydra_config.mode == RunMode.MULTIRUN
    folder = RunFolder(Path(hydra_config.runtime.output_dir))
    record = Record(
        name=cfg.run_name,
        overrides=list(hydra_config.overrides.task),
        job=int(hydra_config.job.num) if multirun else None,
        parent_id=os.environ.get(PARENT_ENV) if multirun else None,
    )
    folder.write_text("overrides.yaml", "".join(f"- {o}\n" for o in hydra_config.overrides.task))
    if multirun:
        log.info("job %d: %s", record.job, " ".join(record.overrides))
    pending = Pending(Path(cfg.outputs))
    marker = pending.add(folder.path)
    with contextlib.ExitStack() as afterwards, _recorded(folder, record):
        afterwards.callback(pending.remove, marker)
        plan_ = plan(cfg)
        folder.write_config(plan_.config, plan_.defaults)
        runner = plan_.component("runner")
        record.config_hash, record.params = plan_.config_hash, plan_.params()
        add_fingerprints(record, plan_.input_files())
        record.tags = environment_tags() | {
            "experiment": str(hydra_config.runtime.choices.get("experiment") or ""),
            "seed": str(plan_.config["seed"]),
            "launcher": str(hydra_config.runtime.choices.get("hydra/launcher", "")),
            "device": plan_.engine().device_name(),
            "folder": str(folder.path.absolute()),
        }
        if multirun:
            record.tags |= {"sweep": os.environ.get(SWEEP_ENV, ""), "job": str(record.job)}
        job = Job(plan_, folder, record)
        tracker = _tracker(plan_) if runner.tracked else None
        if tracker is not None:
            if _resumes(plan_.config) and _is_done(job, tracker, tracker.mark(folder)):
                return _main_metric(job)
            tracker.begin(record, folder)
            afterwards.callback(_upload, tracker, folder)  # after the final record is written
        with job.stage("total"):
            runner.run(job)
        job.log_metrics({})
        record.status = "FINISHED"
        _show(job, tracker, shown=not multirun)
        return _main_metric(job)


@contextlib.contextmanager
def _logged_warnings() -> Iterator[None]:
    """Write Python's warnings to the log, which is shown on the terminal and kept in the run folder."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        log.warning("%s: %s", category.__name__, " ".join(str(message).split()))

    before, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = before


def _resumes(config: dict[str, Any]) -> bool:
    return config["resume"] or config["retry_failed"]


def _is_done(job: Job, tracker: Tracker, marker: Marker) -> bool:
    """Whether this run is skipped, because an earlier run of the same configuration has finished."""
    record = job.record
    while not tracker.markers.claim(marker, identity(record)):
        log.info("waiting for another process that runs this configuration")
        time.sleep(_WAIT_S)
    recover(tracker.outputs, tracker)  # the others' results must be in MLflow, or be ended, before it is asked
    done = tracker.finished(record)
    if done is None or done.run_id is None:
        return False
    record.status, record.run_id, record.skipped = "SKIPPED", done.run_id, in_common(record, done)
    log.info("skipped: %s", record.skipped)
    if (difference := other_code(record, done)) is not None:
        log.warning("%s", difference)
    job.log_metrics(tracker.metrics(done.run_id))
    return True


def _upload(tracker: Tracker, folder: RunFolder) -> None:
    if tracker.upload(folder):
        recover(tracker.outputs, tracker)


@contextlib.contextmanager
def _recorded(folder: RunFolder, record: Record) -> Iterator[None]:
    """Keep the record of a job on disk; if the job fails, its traceback too."""
    folder.write_record(record)
    try:
        yield
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        record.status = "KILLED" if interrupted else "FAILED"
        record.error = "interrupted" if interrupted else _describe(error)
        folder.write_text(TRACEBACK, traceback.format_exc())
        raise
    finally:
        record.end = time.time()
        folder.write_record(record)


def _tracker(plan_: Plan) -> Tracker | None:
    if not plan_.config["tracking"]["enabled"]:
        return None
    tracker = Tracker.of(plan_.config)
    if PARENT_ENV not in os.environ:  # the parent of a sweep has done this for all jobs
        tracker.open()
        recover(tracker.outputs, tracker)
    return tracker


def _show(job: Job, tracker: Tracker | None, shown: bool) -> None:
    metric = _main_metric(job)
    log.info("%s finished%s", job.record.name, "" if math.isnan(metric) else f": {metric:.4f}")
    if not shown:
        return
    job.row("run folder", str(job.folder.path.absolute()))
    if tracker is not None:
        job.row("browse", tracker.how_to_open())
    print(f"\n{job.record.name}\n{job.summary()}\n")


def _main_metric(job: Job) -> float:
    return next((job.metrics[key] for key in MAIN_METRICS if key in job.metrics), math.nan)


def _describe(error: BaseException) -> str:
    return in_keys(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"


def _report(error: BaseException) -> int:
    """Print an error: bad input in one line (its traceback is in the log file), anything else in full."""
    if isinstance(error, distributed.ProcessLostError):
        print(f"error: {error}", file=sys.stderr)
        return 1
    line = bad_input(error)
    if line is None:
        log.error("the program failed; this is a defect", exc_info=error)
        if not logging.getLogger().handlers:
            traceback.print_exception(error)
        return 1
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handle(
                log.makeRecord(log.name, logging.ERROR, "", 0, line, (), (type(error), error, error.__traceback__))
            )
    print(f"error: {line}", file=sys.stderr)
    return 2
