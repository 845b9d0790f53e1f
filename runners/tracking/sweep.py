"""Sweeps: one parent run for all jobs, created before the first starts and closed with a summary of all jobs.

Hydra imports this module for every run, so what takes long to import is imported where a sweep uses it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, read_write

from orbit.core.errors import InputError
from runners.config.names import VARIED_ENV, data_name, given, key_of, split_override, sweep_name
from runners.config.program import command
from runners.config.schema import Tracking
from runners.config.settings import resolved
from runners.tracking.pending import Marker, Pending
from runners.tracking.record import RECORD, Record, RunFolder, SweepFolder
from runners.tracking.storage import cannot_write

if TYPE_CHECKING:
    from runners.tracking.mlflow import Tracker
    from runners.tracking.summary import Jobs

#: Environment variables that identify the sweep to its jobs, which may run in other processes.
PARENT_ENV = "ORBIT_PARENT_RUN_ID"
SWEEP_ENV = "ORBIT_SWEEP_ID"
#: Environment variable that tells the jobs of a sweep that features of one are those of others.
SHARES_ENV = "ORBIT_SWEEP_SHARES_FEATURES"

_LONGEST_END_S = 10.0  # from the moment that a process is killed

_open_sweeps: list[SweepCallback] = []
_unkept: list[tempfile.TemporaryDirectory[str]] = []  # the folders of dry runs


class SweepCallback(Callback):
    """Callback for runs and sweeps, created by Hydra from the section ``hydra.callbacks``.

    :func:`close_sweep` ends it, because Hydra does not call ``on_multirun_end`` when a job failed.
    """

    def __init__(self) -> None:
        self.tracker: Tracker | None = None
        self.marker: Marker | None = None
        self.folder = SweepFolder(Path())
        self.record = Record("")
        self.outputs = Path()
        self.was_empty = False
        self.begun = time.monotonic()
        self.hydra: Any = None  # its section of the configuration
        self.complete = ""  # why there is no job, if there is none to run
        self.varied: list[str] = []  # overrides
        self.problems: dict[str, None] = {}  # in the order in which they were found

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers need none of its state, and connections cannot be sent to them."""
        return SweepCallback, ()

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Let Hydra write a dry run, wherever ``dry_run`` was set, to a folder that is not kept."""
        if config.dry_run and SWEEP_ENV not in os.environ:
            with read_write(config.hydra):
                config.hydra.run.dir = _unkept_folder()

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Create database, experiment and parent run, in this process, before any job; nothing for a dry run."""
        if config.dry_run:
            _check_lists_jobs(config.hydra.sweeper)
            with read_write(config.hydra):
                config.hydra.sweep.dir = _unkept_folder()
                # each job is composed anew, and none may write results to a folder that is not kept
                config.hydra.overrides.hydra += [f"hydra.sweep.dir={config.hydra.sweep.dir}", "dry_run=true"]
            return
        self.hydra, self.folder = config.hydra, SweepFolder(Path(config.hydra.sweep.dir))
        self.outputs = Path(config.outputs)
        os.environ[SWEEP_ENV] = "/".join(self.folder.path.parts[-2:])
        self.varied = _varied(config.hydra)
        os.environ[VARIED_ENV] = ",".join(map(key_of, self.varied))
        if _shares_features(self.varied):
            os.environ[SHARES_ENV] = "1"
        try:
            _check_numbers(config.hydra)
            self.folder.path.mkdir(parents=True, exist_ok=True)
            self.was_empty = not any(self.folder.path.iterdir())
            if not (config.resume or config.retry_failed):
                self._check_is_free()
            self._open(config)
        except (InputError, OSError) as error:
            # Hydra turns an exception of a callback into a warning; a sweep must not start without its parent run.
            if isinstance(error, OSError):
                error = cannot_write(self.folder.path, error)
            _leave_environment()
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(2) from error
        _open_sweeps.append(self)

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """Drop the configurations that Hydra keeps of every job until the last ends, half a megabyte each."""
        job_return.cfg = job_return.hydra_cfg = None

    def discard(self) -> None:
        """Leave no trace of a sweep that was refused before its first job, in a folder that was empty before."""
        if self.tracker is not None:
            self.tracker.delete(self.record)
        if self.marker is not None:
            Pending(self.outputs).remove(self.marker)
        self.folder.discard()

    def close(self, interrupted: bool, ended: bool) -> int:
        """Print and log the table of all jobs, and return the exit code."""
        jobs = self._summarised()
        failed = [record for record, _ in jobs if record.status not in ("FINISHED", "SKIPPED")]
        if self.complete:
            print(f"\n{self.complete}{'' if jobs else chr(10) + self.folder.description()}")
        elif ended and not jobs:
            self.problems["the sweep has no job: expected keys with values, or glob() of a name that exists"] = None
        if jobs:
            started = " that were started" if interrupted else ""
            finished = f"{len(jobs) - len(failed)} of {len(jobs)} jobs{started} finished"
            print(f"\n{self.folder.description()}\n  {finished}; folder {self.folder.path.absolute()}")
        has_failed = failed or not (jobs or self.complete)
        self.record.status = "KILLED" if interrupted else "FAILED" if has_failed else "FINISHED"
        self.record.end = self.record.start + time.monotonic() - self.begun  # the clock may have been set meanwhile
        with self._going_on():
            self.folder.write_record(self.record)
            self._complete()
        for record in failed:
            print(f"  {record.status} job {record.job}, {record.name}: {record.error}", file=sys.stderr)
        for problem in self.problems:
            print(f"error: {problem}", file=sys.stderr)
        if jobs and all(record.refused for record, _ in jobs) and not self.problems:
            return 2
        return int(bool(failed or self.problems))

    def _summarised(self) -> Jobs:
        """The records and metrics of all jobs, also of those whose worker has died; their summary is in the folder."""
        from runners.tracking.recovery import recover
        from runners.tracking.summary import job_records, write_summary

        with self._going_on():
            recover(self.outputs, self.tracker)
        jobs = job_records(self.folder)
        with self._going_on():
            write_summary(self.folder, jobs)
        return jobs

    def _complete(self) -> None:
        """Upload the sweep, whose record is final. Without that record, the next start ends the sweep."""
        if self.tracker is None and self.marker is not None:
            Pending(self.outputs).remove(self.marker)
        elif self.tracker is not None and self.tracker.upload(self.folder):
            print(f"  browse: {self.tracker.how_to_open(self.folder)}")

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Keep a problem, such as a full disk, for the end, and go on: finished results are shown and kept."""
        try:
            yield
        except InputError as error:
            self.problems[str(error)] = None

    def _check_is_free(self) -> None:
        """Raise ``InputError`` if a sweep is in the folder: its jobs would be taken for those of this one."""
        if any(self.folder.path.glob(f"*/{RECORD}")):
            found = self.folder.path.absolute()
            raise InputError(f"hydra.sweep.dir: expected a folder without a sweep, or resume=true, found {found}")

    def _open(self, config: DictConfig) -> None:
        from runners.measure.machine import environment_tags
        from runners.tracking.mlflow import Tracker
        from runners.tracking.recovery import recover

        tracking = resolved(config.tracking)
        Tracking(**tracking).check()
        overrides = given(config.hydra.overrides.task)
        experiment = dict(map(split_override, overrides)).get("experiment")
        self.record = Record(
            sweep_name(experiment or data_name(config.dataset), self.varied, time.strftime("%H:%M")),
            overrides=overrides,
            params=dict(map(split_override, overrides)),
            command=command(config.hydra, overrides, sweep=True),
            tags=environment_tags() | {"sweep": os.environ[SWEEP_ENV]},
        )
        self.marker = Pending(self.outputs).add(self.folder.path)
        if config.tracking.enabled:
            self.tracker = Tracker.of({"outputs": config.outputs, "tracking": tracking})
            self.tracker.open()
            self.tracker.mark(self.folder)
        recover(self.outputs, self.tracker)
        self.folder.write_record(self.record)
        if self.tracker is not None:
            self.record.run_id = os.environ[PARENT_ENV] = self.tracker.start(self.record)
            self.folder.write_record(self.record)


def _unkept_folder() -> str:
    _unkept.append(tempfile.TemporaryDirectory())
    return _unkept[-1].name


@contextlib.contextmanager
def nothing_kept() -> Iterator[None]:
    """Context manager at whose end the folders of dry runs are removed."""
    try:
        yield
    finally:
        while _unkept:
            _unkept.pop().cleanup()


def _check_numbers(hydra_config: DictConfig) -> None:
    """Raise ``InputError`` for numbers of jobs or trials that launcher and sweeper do not take."""
    for part, key in (("sweeper", "n_trials"), ("sweeper", "n_jobs"), ("launcher", "n_jobs")):
        value = hydra_config[part].get(key, 1)
        all_cores = part == "launcher" and value == -1
        if not all_cores and (not isinstance(value, int) or value < 1):
            expected = "an integer >= 1, or -1" if part == "launcher" else "an integer >= 1"
            raise InputError(f"hydra.{part}.{key}: expected {expected}, found {value!r}")


def _check_lists_jobs(sweeper: DictConfig) -> None:
    """End with an error for a sweeper that chooses its jobs by earlier results, of which a dry run has none."""
    if not sweeper._target_.endswith("BasicSweeper"):
        print(f"error: dry_run=true: {sweeper._target_} needs results; leave hydra/sweeper out", file=sys.stderr)
        raise SystemExit(2)


def nothing_left(reason: str) -> None:
    """Tell the sweep of this process that earlier ones have run all its jobs."""
    _open_sweeps[-1].complete = reason


def job_lost(number: int, overrides: Sequence[str]) -> None:
    """Record, in the sweep of this process, that the process of a job has died; nothing for a dry run."""
    from runners.tracking.recovery import recover

    if not _open_sweeps:
        return
    sweep = _open_sweeps[-1]
    path = next(sweep.folder.path.glob(f"{number}-*"), sweep.folder.path / f"{number}-lost")
    if not Pending(sweep.outputs).wait_until_free(path, _LONGEST_END_S):
        return  # the next start, or runner=sync, records how it ended
    recover(sweep.outputs, sweep.tracker)
    folder = RunFolder(path)
    record = folder.read_record()
    if record is None:
        path.mkdir(exist_ok=True)
        given = [override for override in overrides if not key_of(override).startswith("hydra")]
        again = command(sweep.hydra, given)
        record = Record(path.name.removeprefix(f"{number}-"), job=number, overrides=given, command=again)
        record.status, record.end, record.error = "FAILED", record.start, "its process ended before the job could start"
    if record.run_id is None:  # nor is it in MLflow
        record.parent_id = sweep.record.run_id
        record.tags |= {"sweep": os.environ[SWEEP_ENV], "job": str(number)}
        folder.write_record(record)
        if sweep.tracker is not None:
            sweep.tracker.upload(folder)


def open_folder() -> Path | None:
    """The folder of the sweep of this process; None without a sweep."""
    return _open_sweeps[-1].folder.path.absolute() if _open_sweeps else None


def _varied(hydra_config: DictConfig) -> list[str]:
    """The overrides, and parameters of a search, in which the jobs of a sweep differ."""
    overrides = OverridesParser.create().parse_overrides(list(hydra_config.overrides.task))
    varied = [str(override.input_line) for override in overrides if override.is_sweep_override()]
    return varied + [f"{key}={values}" for key, values in (hydra_config.sweeper.get("params") or {}).items()]


def _shares_features(varied: list[str]) -> bool:
    """Whether jobs of a sweep differ in the learner, and in no number that a search draws anew for every job."""
    learner = [one for one in varied if re.match(r"learner[.=]", one)]
    return bool(learner) and not any("interval(" in one for one in varied if one not in learner)


def close_sweep(interrupted: bool = False, ended: bool = False, refused: bool = False) -> int | None:
    """Close the sweep of this process, and return the exit code; None without a sweep.

    A sweep that has ``ended``, not by an error, has at least one job. One that was ``refused`` may have none.
    """
    if not _open_sweeps:
        return None
    sweep, code = _open_sweeps.pop(), None
    if refused and sweep.was_empty and not any(sweep.folder.path.rglob(RECORD)):
        sweep.discard()
    else:
        code = sweep.close(interrupted, ended)
    _leave_environment()
    return code


def _leave_environment() -> None:
    """Remove what tells jobs of the sweep that they are its own."""
    for name in (PARENT_ENV, SWEEP_ENV, SHARES_ENV, VARIED_ENV):
        os.environ.pop(name, None)
