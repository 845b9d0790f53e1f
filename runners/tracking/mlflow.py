"""Logging to MLflow. No other module imports it.

Everything that is logged is read from the run folder, which is complete before it is uploaded.
If an upload fails, no result is lost: the folder is marked as pending, and the next
run, or ``runner=sync``, uploads it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import logging
import os
import pickle
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np

from orbit.core.errors import InputError
from orbit.version import __version__
from runners.machine import hardware
from runners.tracking.record import CONFIG, EXAMPLE, MODEL, RECORD, Record, RunFolder

log = logging.getLogger(__name__)

_REACH_TIMEOUT_S = 5.0
_METRICS_IN_A_BATCH = 1000  # the limit of MLflow
_RUNS_ON_A_PAGE = 1000
_LONGEST_TAG = 5000  # MLflow truncates longer ones; longer command lines are left out
_PACKAGES = ("numpy", "torch", "scikit-learn", "mlflow", "hydra-core")


class Tracker:
    """Logs run folders to an MLflow server or database.

    Parameters
    ----------
    outputs : Path
        The outputs folder; the default database and artifacts live in it.
    uri : str or None
        Tracking URI; None is ``sqlite:///`` and the absolute path of ``outputs/mlflow.db``.
    experiment : str
    """

    def __init__(self, outputs: Path, uri: str | None, experiment: str) -> None:
        self.outputs = Path(outputs).absolute()
        self.local = uri is None
        self.uri = uri or f"sqlite:///{self.outputs / 'mlflow.db'}"
        self.experiment = experiment

    def open(self) -> None:
        """Reach the server, and create the database and the experiment if they do not exist.

        Workers that start on a new database race in creating its tables, so a
        sweep calls this once, in the parent process, before any of them.

        Raises
        ------
        InputError
            If the server cannot be reached or the database cannot be used.
        """
        with self._usable():
            self._experiment_id()

    def start(self, record: Record) -> str:
        """Create the run, shown as running, and return its id."""
        tags = record.tags | {"config_hash": record.config_hash}
        overrides = shlex.join(record.overrides)
        if len(overrides) <= _LONGEST_TAG:
            tags["overrides"] = overrides
        if record.parent_id:
            tags["mlflow.parentRunId"] = record.parent_id
        run = self._client().create_run(
            self._experiment_id(), start_time=int(record.start * 1000), tags=tags, run_name=record.name
        )
        return run.info.run_id

    def upload(self, folder: RunFolder) -> bool:
        """Log all content of a finished run folder. On failure, return False and keep the folder marked as pending."""
        marker = self._mark_pending(folder)
        try:
            self._upload(folder)
        except Exception as error:
            log.debug("upload failed", exc_info=True)
            log.warning(
                "Upload to MLflow failed (%s). Nothing is lost: all results are in %s, and the next run, "
                "or python run.py runner=sync, uploads them.",
                str(error).strip().split("\n")[0],
                folder.path,
            )
            return False
        marker.unlink(missing_ok=True)
        return True

    def pending(self) -> list[RunFolder]:
        """Finished run folders that have not been uploaded."""
        markers = sorted(self._pending_dir().glob("*")) if self._pending_dir().is_dir() else []
        return [RunFolder(Path(marker.read_text())) for marker in markers]

    def sync(self) -> tuple[int, int]:
        """Upload the pending run folders. Returns the numbers of successes and failures."""
        results = [self.upload(folder) for folder in self.pending() if folder.path.is_dir()]
        return results.count(True), results.count(False)

    def finished(self, config_hash: str) -> str | None:
        """The id of a finished run of the same configuration, if there is one."""
        runs = self._client().search_runs(
            [self._experiment_id()],
            f"tags.config_hash = '{config_hash}' and attributes.status = 'FINISHED'",
            max_results=1,
        )
        return runs[0].info.run_id if runs else None

    def fetch(self, run_id: str, folder: RunFolder) -> Any:
        """The model of a run; its record and configuration are copied into ``folder``.

        Raises
        ------
        InputError
            If the server cannot be reached, or has no such run with a model.
        """
        self._check_reachable()
        mlflow = _mlflow()
        mlflow.set_tracking_uri(self.uri)
        try:
            for name in (RECORD, CONFIG):
                mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path=name, dst_path=str(folder.path))
            return mlflow.sklearn.load_model(f"runs:/{run_id}/model")
        except Exception as error:
            log.debug("fetching %s failed", run_id, exc_info=True)
            raise InputError(
                f"runner.model: {self.uri} has no run {run_id} with a model ({str(error).strip().splitlines()[0]}); "
                "set tracking.uri if it is elsewhere"
            ) from error

    def metrics(self, run_id: str) -> dict[str, float]:
        """The metrics of a run."""
        return dict(self._client().get_run(run_id).data.metrics)

    def runs(self) -> list[tuple[Record, dict[str, float]]]:
        """All runs of the experiment, of any status, with their metrics; empty if there is no such experiment.

        Raises
        ------
        InputError
            If the server cannot be reached or the database cannot be used.
        """
        if self.local and not (self.outputs / "mlflow.db").is_file():
            return []
        with self._usable():
            client = self._client()
            found = client.get_experiment_by_name(self.experiment)
            runs: list[Any] = []
            token = "" if found is not None else None
            while token is not None:
                page = client.search_runs([found.experiment_id], max_results=_RUNS_ON_A_PAGE, page_token=token or None)
                runs, token = [*runs, *page], page.token or None
            return [(_record(run), dict(run.data.metrics)) for run in runs]

    def download(self, run_id: str, target: Path, endings: Collection[str], folders: Collection[str] = ()) -> None:
        """Copy the files of a run, at its top level and in ``folders``, whose names end in one of ``endings``.

        Raises
        ------
        InputError
            If the server cannot be reached, or the files no longer exist.
        """
        with self._usable():
            client = self._client()
            found = [item for folder in ("", *folders) for item in client.list_artifacts(run_id, folder)]
            for path in (item.path for item in found if not item.is_dir and item.path.endswith(tuple(endings))):
                (target / path).parent.mkdir(exist_ok=True)
                with tempfile.TemporaryDirectory(dir=target) as arrived:  # stores differ in where they put the file
                    shutil.move(client.download_artifacts(run_id, path, arrived), target / path)

    def pages(self) -> str | None:
        """The web address of a run's page without the run id at its end; None without a server."""
        if urlparse(self.uri).scheme not in ("http", "https"):
            return None
        return f"{self.uri.rstrip('/')}/#/experiments/{self._experiment_id()}/runs/"

    def close(self, run_id: str, status: str, folder: Path) -> None:
        """End a parent run, with everything directly in ``folder`` as its artifacts."""
        client = self._client()
        for path in sorted(folder.iterdir()):
            if path.is_file():
                client.log_artifact(run_id, str(path))
        if (folder / "figures").is_dir():
            client.log_artifacts(run_id, str(folder / "figures"), "figures")
        client.set_terminated(run_id, status)

    def how_to_open(self) -> str:
        """The command that shows the results."""
        return f"mlflow ui --backend-store-uri {self.uri}" if self.local else self.uri

    def _upload(self, folder: RunFolder) -> None:
        record = folder.read_record()
        if record is None:
            raise InputError(f"{folder.path} has no run record")
        if record.run_id is None:
            record.run_id = self.start(record)
            folder.write_record(record)
        mlflow = _mlflow()
        mlflow.set_tracking_uri(self.uri)
        with _fluent_run(mlflow, record.run_id):
            mlflow.log_params({key: str(value)[:6000] for key, value in record.params.items()})
            mlflow.log_metrics({_metric_name(key): value for key, value in folder.read_metrics().items()})
            _log_history(self._client(), record.run_id, folder.read_history())
            if record.dataset:
                _log_dataset(mlflow, record.dataset)
            for path in sorted(folder.path.iterdir()):
                if path.name.startswith(".") or path.name in (MODEL, EXAMPLE):
                    continue
                mlflow.log_artifacts(str(path), path.name) if path.is_dir() else mlflow.log_artifact(str(path))
            if (folder.path / MODEL).is_file():
                _log_model(mlflow, folder.path)
        end = int(record.end * 1000) if record.end else None
        self._client().set_terminated(record.run_id, record.status, end)

    def _client(self) -> Any:
        return _mlflow().MlflowClient(tracking_uri=self.uri)

    def _experiment_id(self) -> str:
        client = self._client()
        found = client.get_experiment_by_name(self.experiment)
        if found is not None:
            return found.experiment_id
        location = (self.outputs / "artifacts" / self.experiment).as_uri() if self.local else None
        return client.create_experiment(self.experiment, artifact_location=location)

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        """Re-raise errors of the store as an InputError of one line, with the key to change."""
        self._check_reachable()
        try:
            yield
        except Exception as error:
            log.debug("using %s failed", self.uri, exc_info=True)
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InputError(
                f"tracking.uri: cannot use {self.uri} ({reason}); set tracking.uri, or tracking.enabled=false"
            ) from error

    def _check_reachable(self) -> None:
        """Fail within seconds, where MLflow's own retries would take minutes."""
        address = urlparse(self.uri)
        if address.scheme not in ("http", "https"):
            return
        port = address.port or (443 if address.scheme == "https" else 80)
        try:
            socket.create_connection((address.hostname or "", port), timeout=_REACH_TIMEOUT_S).close()
        except OSError as error:
            raise InputError(
                f"tracking.uri: no tracking server answers at {self.uri} ({error.strerror or error}); "
                "start it, change tracking.uri, or set tracking.enabled=false"
            ) from error

    def _pending_dir(self) -> Path:
        return self.outputs / "pending"

    def _mark_pending(self, folder: RunFolder) -> Path:
        path = folder.path.absolute()
        marker = self._pending_dir() / hashlib.sha256(str(path).encode()).hexdigest()[:16]
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_text(str(path))
        return marker


def _record(run: Any) -> Record:
    """The record of a run in MLflow."""
    tags = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    job = tags.get("job", "")
    return Record(
        name=run.info.run_name or run.info.run_id,
        config_hash=tags.get("config_hash", ""),
        status=run.info.status,
        start=run.info.start_time / 1000,
        end=run.info.end_time / 1000 if run.info.end_time else None,
        job=int(job) if job.isdigit() else None,
        overrides=_split(tags.pop("overrides", "")),
        run_id=run.info.run_id,
        parent_id=run.data.tags.get("mlflow.parentRunId"),
        params=dict(run.data.params),
        tags=tags,
    )


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # of a run that was not logged by this program
        return command.split()


def _metric_name(name: str) -> str:
    """The name without the characters that MLflow rejects, such as a comma in the label of a row."""
    return re.sub(r"[^\w\-./ :]", "", name)


def environment_tags() -> dict[str, str]:
    """Tags for the machine, the versions, the git commit, and whether there were uncommitted changes."""
    tags = {"machine": hardware(), "version.orbit": __version__}
    tags |= {f"version.{name}": importlib.metadata.version(name) for name in _PACKAGES}
    root = Path(__file__).resolve().parent.parent
    commit = _git(root, "rev-parse", "HEAD")
    if commit is not None:
        tags["git.commit"] = commit
        tags["git.dirty"] = str(bool(_git(root, "status", "--porcelain"))).lower()
    return tags


def _git(root: Path, *args: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _mlflow() -> Any:
    """MLflow, imported on first use (it takes seconds), with warnings and progress bars turned off."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # no usage data is sent
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # it shows one bar per file
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow
        import mlflow.sklearn

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return mlflow


@contextlib.contextmanager
def _fluent_run(mlflow: Any, run_id: str) -> Iterator[None]:
    """Make the run MLflow's active one. Its status stays RUNNING; the caller sets the final one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.start_run(run_id=run_id)
        try:
            yield
        finally:
            mlflow.end_run("RUNNING")


def _log_history(client: Any, run_id: str, history: dict[str, list[float]]) -> None:
    """Log the values of each metric as steps, from 1."""
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    steps = [
        Metric(_metric_name(name), value, now, step)
        for name, values in history.items()
        for step, value in enumerate(values, 1)
    ]
    for start in range(0, len(steps), _METRICS_IN_A_BATCH):
        client.log_batch(run_id, metrics=steps[start : start + _METRICS_IN_A_BATCH])


def _log_dataset(mlflow: Any, dataset: dict[str, Any]) -> None:
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.data.meta_dataset import MetaDataset

    digest = hashlib.sha256(dataset["description"].encode()).hexdigest()[:8]
    source = CodeDatasetSource(tags={"source": dataset["source"], "description": dataset["description"]})
    described = MetaDataset(source, name=dataset["name"], digest=digest)  # type: ignore[abstract]  # MLflow's own oversight
    mlflow.log_input(described, context="training")


def _log_model(mlflow: Any, folder: Path) -> None:
    with open(folder / MODEL, "rb") as file:
        model = pickle.load(file)
    example = np.load(folder / EXAMPLE)
    requirements = [f"{name}=={importlib.metadata.version(name)}" for name in ("numpy", "torch", "scikit-learn")]
    mlflow.sklearn.log_model(
        model,
        name="model",
        signature=mlflow.models.infer_signature(example["X"], example["y"]),
        input_example=example["X"],
        pip_requirements=requirements,
        serialization_format="cloudpickle",
    )
