"""``hydra/launcher=joblib``: the jobs of a sweep in parallel, in processes of joblib's loky.

The plugin hydra-joblib-launcher runs all jobs in one pool, and loky ends all processes of a pool when one dies.
Here each process is a pool of its own: one that dies, for want of memory or otherwise, loses its own job only.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from omegaconf import DictConfig, open_dict

from orbit.core import interruption
from runners.app.processes import GRACE_S, end_with
from runners.config.program import PROGRAM_ENV, program
from runners.tracking.sweep import job_lost

log = logging.getLogger(__name__)

_POLL_S = 0.5
#: Environment variables with the number of threads of the libraries that have them.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

Job = tuple[int, Sequence[str]]  # its number and overrides


class JobLauncher(Launcher):
    """Base class of launchers that run the jobs of a sweep in other processes, of which some may die.

    Parameters
    ----------
    n_jobs : int
        Number of jobs at a time; -1 is one for each core.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = cpu_count() if n_jobs == -1 else n_jobs

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.config, self.hydra_context, self.task_function = config, hydra_context, task_function

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run every job, and those whose process died a second time, one by one, if ``retry_failed`` is set."""
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        Path(self.config.hydra.sweep.dir).mkdir(parents=True, exist_ok=True)
        jobs = list(enumerate(job_overrides, initial_job_idx))
        done = self._run(jobs, min(self.n_jobs, len(jobs)))
        lost = [job for job in jobs if job[0] not in done]
        if lost and self.config.retry_failed:
            log.info("running the %d jobs whose process died again, one by one (retry_failed=true)", len(lost))
            done |= self._run(lost, 1)
        return [done.get(number, _lost()) for number, _ in jobs]

    @abstractmethod
    def _run(self, jobs: Sequence[Job], n_processes: int) -> dict[int, JobReturn]:
        """The results of the jobs, by number, without those whose process died."""

    def _arguments(self) -> tuple[Any, ...]:
        """What :func:`run_in_process` needs beside a job."""
        return self.hydra_context, self.config, self.task_function, Singleton.get_state()


def run_in_process(
    number: int,
    overrides: Sequence[str],
    hydra_context: HydraContext,
    config: DictConfig,
    task_function: TaskFunction,
    state: dict[Any, Any],
) -> JobReturn:
    """Run a job in a process that Hydra has not started; ``state`` is that of Hydra's singletons where it has."""
    setup_globals()
    Singleton.set_state(state)
    job = hydra_context.config_loader.load_sweep_config(config, list(overrides))
    with open_dict(job):
        job.hydra.job.id, job.hydra.job.num = f"{job.hydra.job.name}_{number}", number
    HydraConfig.instance().set_config(job)
    return run_job(
        hydra_context=hydra_context,
        config=job,
        task_function=task_function,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )


class ProcessLauncher(JobLauncher):
    """Runs jobs in parallel processes of this machine."""

    def _run(self, jobs: Sequence[Job], n_processes: int) -> dict[int, JobReturn]:
        waiting, done = deque(jobs), dict[int, JobReturn]()
        with _processes(n_processes) as processes:
            while waiting or any(process.job for process in processes):
                interruption.check()
                for process in processes:
                    if process.job is None and waiting:
                        process.start(waiting.popleft(), self._arguments())
                wait([p.future for p in processes if p.future], timeout=_POLL_S, return_when=FIRST_COMPLETED)
                for process in processes:
                    done |= process.collect()
        return done


@dataclass
class _Process:
    """A process, and the job that runs in it."""

    environment: dict[str, str]
    pool: Any = None
    pid: Future[int] | None = None
    job: Job | None = None
    future: Future[JobReturn] | None = None

    def start(self, job: Job, arguments: tuple[Any, ...]) -> None:
        try:
            future = self._submit(job, arguments)
        except BrokenProcessPool:  # it died after its last job
            self.end(kill=True)
            future = self._submit(job, arguments)
        self.job, self.future = job, future

    def _submit(self, job: Job, arguments: tuple[Any, ...]) -> Future[JobReturn]:
        if self.pool is None:
            self.pool = ProcessPoolExecutor(1, env=self.environment)
        self.pid = self.pool.submit(_ready, os.getpid())
        return self.pool.submit(run_in_process, *job, *arguments)

    def collect(self) -> dict[int, JobReturn]:
        """The result of the job, by its number, if it has ended and the process has not died."""
        if self.job is None or self.future is None or not self.future.done():
            return {}
        (number, overrides), error = self.job, self.future.exception()
        result = {} if error else {number: self.future.result()}
        self.job = self.future = None
        if isinstance(error, (BrokenProcessPool, KeyboardInterrupt)):  # the latter if only this process was terminated
            self.end(kill=True)
            job_lost(number, overrides)
        elif error is not None:
            raise error
        return result

    def terminate(self) -> None:
        """Ask the process to write what it has."""
        if self.job is not None and self.pid is not None and self.pid.done() and self.pid.exception() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid.result(), signal.SIGTERM)

    def end(self, kill: bool = False) -> None:
        if self.pool is not None:
            self.pool.shutdown(kill_workers=kill)
            self.pool = None


def _ready(parent: int) -> int:
    """Import everything, and return the id of this process: loky ends one that grows by 300 MB after its first task."""
    end_with(parent)
    import runners.components  # noqa: F401
    from runners.tracking.upload import mlflow_module

    mlflow_module()
    return os.getpid()


@contextlib.contextmanager
def _processes(count: int) -> Iterator[list[_Process]]:
    processes = [_Process(threads(count) | {PROGRAM_ENV: program()}) for _ in range(count)]
    # loky warns when it ends a process because a job has left much in memory; the next job gets a new process
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given to the executor")
    try:
        yield processes
    except BaseException:
        for process in processes:
            process.terminate()
        wait([process.future for process in processes if process.future], timeout=GRACE_S)
        for process in processes:
            process.end(kill=True)
        raise
    for process in processes:
        process.end()


def threads(count: int) -> dict[str, str]:
    """The environment variables that share the cores of this machine between ``count`` processes."""
    return {name: str(max(1, cpu_count() // count)) for name in THREADS if name not in os.environ}


def _lost() -> JobReturn:
    """The result of a job whose process died: Hydra stops the sweep if it is an exception."""
    return JobReturn(status=JobStatus.COMPLETED, _return_value=math.nan)
