"""``hydra/launcher=submitit_local``, ``submitit_slurm`` and ``ray``: the jobs of a sweep on other machines.

Hydra's own plugins end a sweep with the first job that dies, and its plugin for Ray needs a version of cloudpickle with
which joblib does not work. So submitit and Ray are used directly; a job runs as with ``hydra/launcher=joblib``.
"""

from __future__ import annotations

import contextlib
import os
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from hydra.core.utils import JobReturn

from orbit.core import interruption
from runners.app.launcher import Job, JobLauncher, run_in_process, threads
from runners.app.processes import end_with
from runners.config.messages import ConfigError
from runners.config.program import PROGRAM_ENV, program, python_path
from runners.tracking.sweep import job_lost

_POLL_S = 0.5

_INHERITED = "ORBIT_"  # start of the environment variables that identify a sweep


class _RemoteLauncher(JobLauncher):
    """A launcher whose jobs have handles: it submits them, asks which have ended, and takes their results."""

    def _run(self, jobs: Sequence[Job], n_processes: int) -> dict[int, JobReturn]:
        waiting, running, done = deque(jobs), dict[Any, Job](), dict[int, JobReturn]()
        with self._opened(n_processes):
            try:
                while waiting or running:
                    interruption.check()
                    while waiting and len(running) < n_processes:
                        job = waiting.popleft()
                        running[self._submit(job)] = job
                    done |= self._collect(running)
            except BaseException:
                self._cancel(list(running))
                raise
        return done

    def _collect(self, running: dict[Any, Job]) -> dict[int, JobReturn]:
        """Take the jobs that have ended out of ``running``; returns the results of those whose process has not died."""
        done: dict[int, JobReturn] = {}
        for handle in self._ended(list(running)):
            job = running.pop(handle)
            if (result := self._result(handle)) is None:
                job_lost(*job)
            else:
                done[job[0]] = result
        return done

    @abstractmethod
    def _opened(self, n_processes: int) -> contextlib.AbstractContextManager[None]:
        """What jobs are submitted to."""

    @abstractmethod
    def _submit(self, job: Job) -> Any: ...

    @abstractmethod
    def _ended(self, handles: list[Any]) -> list[Any]:
        """The handles of jobs that have ended, after waiting for a moment."""

    @abstractmethod
    def _result(self, handle: Any) -> JobReturn | None:
        """The result of a job that has ended; None if its process died."""

    @abstractmethod
    def _cancel(self, handles: list[Any]) -> None: ...


class SubmititLauncher(_RemoteLauncher):
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
        self.cluster, self.folder = cluster, folder
        self.resources = {"timeout_min": timeout_min, **resources}
        if cluster == "slurm":
            self.resources |= {"slurm_additional_parameters": dict(more or {}), "slurm_partition": partition}

    @contextlib.contextmanager
    def _opened(self, n_processes: int) -> Iterator[None]:
        try:
            import submitit
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"hydra/launcher=submitit_{self.cluster}: submitit is not installed; pip install 'orbit-kernels[slurm]'"
            ) from error
        local = self.cluster == "local"
        with _environment(threads(n_processes) if local else {}):  # which the jobs inherit
            try:
                self._executor = submitit.AutoExecutor(folder=self.folder, cluster=self.cluster)
            except RuntimeError as error:
                raise ConfigError(f"hydra/launcher=submitit_{self.cluster}: {error}") from error
            self._executor.update_parameters(**{k: v for k, v in self.resources.items() if v not in (None, {})})
            yield

    def _submit(self, job: Job) -> Any:
        parent = os.getpid() if self.cluster == "local" else None
        return self._executor.submit(_work, parent, {}, os.getcwd(), *job, *self._arguments())

    def _ended(self, handles: list[Any]) -> list[Any]:
        time.sleep(_POLL_S)
        return [handle for handle in handles if handle.done()]

    def _result(self, handle: Any) -> JobReturn | None:
        return None if handle.exception() is not None else handle.result()

    def _cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            handle.cancel()


class RayLauncher(_RemoteLauncher):
    """Runs jobs by Ray. See the settings of :class:`runners.config.schema.Ray`."""

    def __init__(self, n_jobs: int, address: str | None, num_cpus: float, num_gpus: float) -> None:
        super().__init__(n_jobs)
        self.address, self.resources = address, {"num_cpus": num_cpus, "num_gpus": num_gpus}

    @contextlib.contextmanager
    def _opened(self, n_processes: int) -> Iterator[None]:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise ConfigError("hydra/launcher=ray: Ray is not installed; pip install 'orbit-kernels[ray]'") from error
        local: dict[str, Any] = {}
        if self.address is None:  # with fewer CPUs than the jobs need, they would wait for ever
            local = {"num_cpus": max(1, n_processes * self.resources["num_cpus"]), "include_dashboard": False}
        with _environment({"RAY_USAGE_STATS_ENABLED": "0", **threads(n_processes)}):
            try:
                ray.init(self.address, logging_level="ERROR", log_to_driver=False, **local)
            except ConnectionError as error:
                raise ConfigError(f"hydra/launcher=ray: no cluster at {self.address} ({error})") from error
            # one process for each job, and no second try by Ray, which knows nothing of runs
            self._task = ray.remote(max_calls=1, max_retries=0, **self.resources)(_work)
            try:
                yield
            finally:
                ray.shutdown()

    def _submit(self, job: Job) -> Any:
        parent = os.getpid() if self.address is None else None
        inherited = {name: value for name, value in os.environ.items() if name.startswith(_INHERITED)}
        return self._task.remote(parent, inherited, os.getcwd(), *job, *self._arguments())

    def _ended(self, handles: list[Any]) -> list[Any]:
        import ray

        return ray.wait(handles, timeout=_POLL_S)[0]

    def _result(self, handle: Any) -> JobReturn | None:
        import ray

        try:
            return ray.get(handle)
        except ray.exceptions.RayError:
            return None

    def _cancel(self, handles: list[Any]) -> None:
        import ray

        for handle in handles:
            ray.cancel(handle)


def _work(parent: int | None, environment: dict[str, str], folder: str, *job: Any) -> JobReturn:
    """Run a job in the process of a launcher: in the folder of the sweep, and no longer than its parent, if known."""
    os.environ.update(environment)
    os.chdir(folder)
    if parent is not None:
        end_with(parent)
    return run_in_process(*job)


@contextlib.contextmanager
def _environment(added: dict[str, str]) -> Iterator[None]:
    """Environment variables for processes that are started meanwhile."""
    wanted = {**added, "PYTHONPATH": python_path(), "PYTHONUNBUFFERED": "1", PROGRAM_ENV: program()}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
