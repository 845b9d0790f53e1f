"""``hydra/launcher=joblib``, ``submitit_local``, ``submitit_slurm`` and ``ray``: jobs of a sweep in other processes.

A job is a command line, which a process of this machine, of submitit or of Ray is given; what comes back is its exit
code, and the results are in its folder. A process that dies loses its own job only; with Hydra's own plugins it ends
the sweep.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import sys
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus, configure_log, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from joblib import cpu_count
from omegaconf import DictConfig

from orbit.core import interruption
from orbit.core.errors import InputError
from runners.app import cli
from runners.app.processes import GRACE_S, end_with
from runners.config.program import PROGRAM_ENV, arguments, program, python_path
from runners.measure.metrics import MAIN_METRICS
from runners.tracking.record import RECORD, RunFolder
from runners.tracking.sweep import job_lost

_POLL_S = 0.1
#: Environment variables with the number of threads of the libraries that have them.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_FOLDER_ENV = "ORBIT_SWEEP_FOLDER"

Submit = Callable[..., Any]  # from the arguments of work() to a job with done(), exception(), result() and cancel()


class JobLauncher(Launcher):
    """Base class of launchers that run the jobs of a sweep in other processes, of which some may die.

    Parameters
    ----------
    n_jobs : int
        Number of jobs at a time; -1 is one for each core.
    """

    local = True  # whether jobs run on this machine, and end with this process

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = cpu_count() if n_jobs == -1 else n_jobs

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.config, self.folder = config, Path(config.hydra.sweep.dir).absolute()

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run every job, and those whose process died a second time, one by one, if ``retry_failed`` is set."""
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        self.folder.mkdir(parents=True, exist_ok=True)
        jobs = dict(enumerate(job_overrides, initial_job_idx))
        codes = self._run(jobs, min(self.n_jobs, len(jobs)))
        if self.config.retry_failed:
            lost = {number: jobs[number] for number, code in codes.items() if code is None}
            codes |= self._run(lost, 1)
        return [self._returned(number, code) for number, code in sorted(codes.items())]

    @abstractmethod
    def _opened(self, n_processes: int) -> contextlib.AbstractContextManager[Submit]:
        """Context manager with a function that starts a job. After an exception, jobs in progress are ended."""

    def _run(self, jobs: Mapping[int, Sequence[str]], n_processes: int) -> dict[int, int | None]:
        """The exit code of each job; None if its process died."""
        waiting, running, codes = deque(jobs), dict[Any, int](), dict[int, int | None]()
        if not jobs:
            return codes
        with _environment(threads(n_processes) if self.local else {}), self._opened(n_processes) as submit:
            while waiting or running:
                interruption.check()
                while waiting and len(running) < n_processes:
                    number = waiting.popleft()
                    running[submit(*self._job(number, jobs[number]))] = number
                time.sleep(_POLL_S)
                for job in [job for job in running if job.done()]:
                    number = running.pop(job)
                    codes[number] = None if job.exception() is not None else job.result()
                    if codes[number] is None or not (self._run_folder(number).path / RECORD).is_file():
                        job_lost(number, jobs[number])
        return codes

    def _job(self, number: int, overrides: Sequence[str]) -> tuple[list[str], dict[str, str], str, int | None]:
        """The arguments of :func:`work`."""
        own = f"hydra.run.dir=${{oc.env:{_FOLDER_ENV}}}/${{hydra.sweep.subdir}}", f"hydra.job.num={number}"
        line = [*arguments(self.config.hydra, overrides, sweep=True), *own, "hydra.mode=RUN"]
        inherited = {name: value for name, value in os.environ.items() if name.startswith("ORBIT_")}
        inherited[_FOLDER_ENV] = str(self.folder)
        return line, inherited, os.getcwd(), os.getpid() if self.local else None

    def _run_folder(self, number: int) -> RunFolder:
        return RunFolder(next(self.folder.glob(f"{number}-*"), self.folder / str(number)))

    def _returned(self, number: int, code: int | None) -> JobReturn:
        """The main metric of a job, for Hydra's sweepers; NaN, not an exception, which ends a sweep, if it failed."""
        metrics = self._run_folder(number).read_metrics() if code == 0 else {}
        value = next((metrics[name] for name in MAIN_METRICS if name in metrics), math.nan)
        return JobReturn(status=JobStatus.COMPLETED, _return_value=value)


def work(line: Sequence[str], environment: Mapping[str, str], folder: str, parent: int | None) -> int:
    """Run a command line in the process of a launcher, and return the exit code.

    Parameters
    ----------
    line : sequence of str
        The arguments.
    environment : mapping
        Added variables, which identify the sweep.
    folder : str
        The working directory.
    parent : int or None
        The process on this machine with which this one ends.
    """
    os.environ.update(environment)
    os.chdir(folder)
    if parent is not None:
        end_with(parent)
    sys.argv[1:] = line
    return cli.main()


class ProcessLauncher(JobLauncher):
    """Runs jobs in processes of this machine, each one job after the other: imports take seconds."""

    @contextlib.contextmanager
    def _opened(self, n_processes: int) -> Iterator[Submit]:
        pools, idle = list[ProcessPoolExecutor](), deque[ProcessPoolExecutor]()

        def submit(*job: Any) -> Future[int]:
            if not idle:  # a pool of one process each, because a pool ends when one of its processes dies
                pools.append(ProcessPoolExecutor(1, multiprocessing.get_context("spawn")))
                idle.append(pools[-1])
            pool = idle.pop()
            try:
                future = pool.submit(work, *job)
            except BrokenExecutor as error:  # its process has died between two jobs
                future = Future()
                future.set_exception(error)
            future.add_done_callback(lambda done: idle.append(pool) if done.exception() is None else None)
            return future

        try:
            yield submit
        except BaseException:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)
            time.sleep(_POLL_S)  # in which idle processes end
            busy = multiprocessing.active_children()
            for process in busy:
                process.terminate()
            for process in busy:  # which write what they have
                process.join(GRACE_S)
                process.kill()
            raise
        for pool in pools:
            pool.shutdown()


class SubmititLauncher(JobLauncher):
    """Runs jobs by submitit. See the settings of :class:`runners.config.schema.SubmititSlurm`."""

    def __init__(
        self,
        cluster: str,
        folder: str,
        n_jobs: int,
        timeout_min: int,
        partition: str | None = None,
        more: dict[str, Any] | None = None,
        **resources: Any,
    ) -> None:
        super().__init__(n_jobs)
        self.cluster, self.logs, self.local = cluster, folder, cluster == "local"
        self.resources = {"timeout_min": timeout_min, **resources}
        if cluster == "slurm":
            self.resources |= {"slurm_additional_parameters": dict(more or {}), "slurm_partition": partition}

    @contextlib.contextmanager
    def _opened(self, n_processes: int) -> Iterator[Submit]:
        submitit, jobs = _imported("submitit", f"submitit_{self.cluster}", "slurm"), list[Any]()
        try:
            executor = submitit.AutoExecutor(folder=self.logs, cluster=self.cluster)
        except RuntimeError as error:
            raise InputError(f"hydra/launcher=submitit_{self.cluster}: {error}") from error
        executor.update_parameters(**{k: v for k, v in self.resources.items() if v not in (None, {})})

        def submit(*job: Any) -> Any:
            jobs.append(executor.submit(work, *job))
            return jobs[-1]

        try:
            yield submit
        except BaseException:
            for job in jobs:
                job.cancel()
            raise


class RayLauncher(JobLauncher):
    """Runs jobs by Ray. See the settings of :class:`runners.config.schema.Ray`."""

    def __init__(self, n_jobs: int, address: str | None, num_cpus: float, num_gpus: float) -> None:
        super().__init__(n_jobs)
        self.address, self.resources = address, {"num_cpus": num_cpus, "num_gpus": num_gpus}
        self.local = address is None

    @contextlib.contextmanager
    def _opened(self, n_processes: int) -> Iterator[Submit]:
        ray, jobs = _imported("ray", "ray", "ray"), list[Any]()
        own: dict[str, Any] = {}
        if self.local:  # with fewer CPUs than the jobs need, they would wait for ever
            own = {"num_cpus": max(1, n_processes * self.resources["num_cpus"]), "include_dashboard": False}
        try:
            ray.init(self.address, logging_level="ERROR", log_to_driver=False, **own)
        except ConnectionError as error:
            raise InputError(f"hydra/launcher=ray: no cluster at {self.address} ({error})") from error
        # one process for each job, and no second try by Ray, which knows nothing of runs
        task = ray.remote(max_calls=1, max_retries=0, **self.resources)(work)

        def submit(*job: Any) -> Future[int]:
            jobs.append(task.remote(*job))
            return jobs[-1].future()

        try:
            yield submit
        finally:
            for job in jobs:  # without effect on those that have ended
                ray.cancel(job)
            ray.shutdown()


def _imported(module: str, launcher: str, extra: str) -> Any:
    try:
        return __import__(module)
    except ModuleNotFoundError as error:
        raise InputError(
            f"hydra/launcher={launcher}: {module} is not installed; pip install 'orbit-kernels[{extra}]'"
        ) from error


def threads(count: int) -> dict[str, str]:
    """The environment variables that share the cores of this machine between ``count`` processes."""
    return {name: str(max(1, cpu_count() // count)) for name in THREADS if name not in os.environ}


@contextlib.contextmanager
def _environment(added: Mapping[str, str]) -> Iterator[None]:
    """Context manager with environment variables for processes that are started meanwhile."""
    own = {"PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1", "RAY_USAGE_STATS_ENABLED": "0", PROGRAM_ENV: program()}
    before = dict(os.environ)
    os.environ.update({**added, **own})
    try:
        yield
    finally:
        for name in {*added, *own} - before.keys():
            del os.environ[name]
        os.environ.update(before)
