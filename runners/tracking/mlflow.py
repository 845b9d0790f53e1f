"""Logging to MLflow. No other module imports it.

Everything that is logged is read from the run folder, which is complete before it is uploaded.
If an upload fails, no result is lost: the folder is marked as pending, and the next
run, or ``runner=sync``, uploads it.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import tempfile
import time
import uuid
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from orbit.core.errors import InputError, encodable, shortened
from orbit.core.files import write_new
from orbit.learners.answers import Answering
from runners.config.imports import large_imports
from runners.config.program import program
from runners.measure.metrics import MAIN_METRICS
from runners.tracking import stores, views
from runners.tracking.pending import Marker, Pending
from runners.tracking.record import CONFIG, RECORD, Record, RunFolder
from runners.tracking.upload import mlflow_module, upload_folder

log = logging.getLogger(__name__)

_LONGEST_TAG = 5000  # MLflow truncates longer ones; longer command lines are left out
_KEY_TAG = "run_key"


class Tracker:
    """Logs run folders to an MLflow server or database.

    Parameters
    ----------
    outputs : Path
        The outputs folder; the default database and artifacts live in it.
    uri : str or None
        Tracking URI; None is ``sqlite:///`` and the absolute path of ``outputs/mlflow.db``.
    experiment : str
    artifacts : str or None
        Folder or URI for the artifacts of a new experiment; None is ``outputs/artifacts``, and for a server the
        server's own choice.
    """

    def __init__(self, outputs: Path, uri: str | None, experiment: str, artifacts: str | None = None) -> None:
        self.outputs = Path(outputs).absolute()
        self.local = uri is None
        if self.local and set("?%") & set(str(self.outputs)):
            raise InputError(f"outputs: expected a path without ? and %, which mean something in a URI: {self.outputs}")
        if self.local and str(self.outputs) != encodable(str(self.outputs)):
            raise InputError(f"outputs: expected a path in UTF-8, found {self.outputs}")
        self.uri = uri or f"sqlite:///{self.outputs / 'mlflow.db'}"
        self.experiment = experiment
        self.artifacts = artifacts
        self.markers = Pending(self.outputs)
        self._opened = ""  # the id of the experiment

    @classmethod
    def of(cls, config: dict[str, Any]) -> Tracker:
        """The tracker of a configuration, from its keys ``outputs`` and ``tracking``."""
        settings = config["tracking"]
        return cls(Path(config["outputs"]), settings["uri"], settings["experiment"], settings["artifacts"])

    def open(self) -> None:
        """Reach the server, and create the database and the experiment if they do not exist.

        Raises
        ------
        InputError
            If the server cannot be reached or the database cannot be used.
        """
        stores.check(self.uri)
        try:
            with large_imports():  # MLflow imports the modules of the store when it is first asked
                self._opened = self._experiment_id()
            tags = self._client.get_experiment(self._opened).tags
            for key in views.EXPERIMENT_TAGS.keys() - tags.keys():
                self._client.set_experiment_tag(self._opened, key, views.EXPERIMENT_TAGS[key])
        except InputError:
            raise
        except Exception as error:
            log.debug("using the store failed", exc_info=True)
            raise stores.unusable(self.uri, error) from error

    def mark(self, folder: RunFolder) -> Marker:
        """The marker of a run of this process, from its start until it is uploaded. See :mod:`.pending`."""
        return self.markers.add(folder.path, self.uri, self.experiment)

    def start(self, record: Record) -> str:
        """Create the run, shown as running, and return its id."""
        tags = record.tags | {"config_hash": record.config_hash, "data_hash": record.data_hash, _KEY_TAG: record.key}
        overrides = shlex.join(record.overrides)
        if len(overrides) <= _LONGEST_TAG:
            tags["overrides"] = overrides
        tags |= _source(record)
        if record.parent_id:
            tags["mlflow.parentRunId"] = record.parent_id
        tags = {key: encodable(value) for key, value in tags.items()}
        run = self._client.create_run(
            self._experiment_id(), start_time=int(record.start * 1000), tags=tags, run_name=record.name
        )
        return run.info.run_id

    def begin(self, record: Record, folder: RunFolder) -> None:
        """Show the run as running. If the store cannot be used, the upload at its end does it."""
        try:
            stores.check(self.uri)
            record.run_id = self.start(record)
        except Exception as error:
            log.debug("start failed", exc_info=True)
            log.warning("%s cannot be shown in MLflow yet (%s); the run goes on", record.name, stores.reason(error))
        folder.write_record(record)

    def upload(self, folder: RunFolder) -> bool:
        """Log all content of a finished run folder. On failure, return False and keep the folder marked as pending."""
        marker = self.mark(folder)
        try:
            stores.check(self.uri)
            self._upload(folder)
        except BaseException as error:
            self.markers.release(marker)  # also at an interrupt: the run is not complete
            if not isinstance(error, Exception):
                raise
            log.debug("upload failed", exc_info=True)
            log.warning(
                "Upload to MLflow failed (%s). Nothing is lost: all results are in %s, and the next run, "
                "or %s runner=sync, uploads them.",
                stores.reason(error),
                folder.path,
                program(),
            )
            return False
        self.markers.remove(marker)
        return True

    def delete(self, record: Record | None) -> None:
        """Delete the run of a record that has no results, if there is one and the store can be used."""
        if record is not None and record.run_id is not None:
            with contextlib.suppress(Exception):
                self._client.delete_run(record.run_id)

    def is_mine(self, marker: Marker) -> bool:
        """Whether a run is tracked by this tracker."""
        return (marker.uri, marker.experiment) == (self.uri, self.experiment)

    def finished(self, record: Record) -> Any:
        """A finished run of the same configuration and data as ``record``, as MLflow has it; None if there is none."""
        same = f"tags.config_hash = '{record.config_hash}' and tags.data_hash = '{record.data_hash}'"
        runs = self._client.search_runs(
            [self._experiment_id()], f"{same} and attributes.status = 'FINISHED'", max_results=1
        )
        return runs[0] if runs else None

    def fetch(self, run_id: str, folder: RunFolder) -> Any:
        """The model of a run; its record and configuration are copied into ``folder``.

        Raises
        ------
        InputError
            If the server cannot be reached, or has no such run with a model.
        """
        stores.check(self.uri)
        mlflow = mlflow_module()
        mlflow.set_tracking_uri(self.uri)
        try:
            for name in (RECORD, CONFIG):
                mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path=name, dst_path=str(folder.path))
            model = mlflow.sklearn.load_model(f"runs:/{run_id}/model")
            return model.model if isinstance(model, Answering) else model
        except Exception as error:
            log.debug("fetching %s failed", run_id, exc_info=True)
            raise InputError(
                f"runner.model: {self.uri} has no run {run_id} with a model ({stores.reason(error)}); "
                "set tracking.uri if it is elsewhere"
            ) from error

    def how_to_open(self, folder: RunFolder) -> str:
        """Where the results are shown: the command that starts MLflow's pages, if it is needed, and the address."""
        record = folder.read_record()
        view = record.key if record and folder.view() else self._view_of_runs(folder.read_metrics())
        shown = views.page(self._opened, view)
        if stores.is_server(self.uri):
            return f"{self.uri.rstrip('/')}/{shown}"
        return f"mlflow ui --backend-store-uri {shlex.quote(self.uri)}, then http://127.0.0.1:5000/{shown}"

    def _view_of_runs(self, found: Collection[str]) -> str | None:
        """The key of the view of all runs with the main metric of a run; it is saved if there is none yet."""
        metric = next((key for key in MAIN_METRICS if key in found), None)
        if metric is None:
            return None
        end = metric.rpartition("/")[2]
        references = [key for key in found if key.startswith("reference/") and key.endswith(f"/{end}")]
        key = uuid.uuid5(uuid.NAMESPACE_OID, metric).hex
        with contextlib.suppress(Exception):  # of the server: the results are in the run folder
            views.save(self._client, self._opened, key, metric, time.time(), views.all_runs([metric, *references]))
        return key

    def _upload(self, folder: RunFolder) -> None:
        record = folder.read_record()
        if record is None:
            raise InputError(f"{folder.path} has no run record")
        if record.run_id is None:
            record.run_id = self._begun(record) or self.start(record)
            folder.write_record(record)
        self._describe(record, folder)
        upload_folder(self._client, self.uri, record, folder)

    def _describe(self, record: Record, folder: RunFolder) -> None:
        """The description of a run, and the saved view of the jobs of a sweep."""
        description, view = folder.description(), folder.view()
        if not description:
            return
        experiment_id = self._experiment_id()
        if view is not None:
            state = views.jobs_of_a_sweep(record.tags["sweep"], **view)
            views.save(self._client, experiment_id, record.key, record.name, record.start, state)
        text = views.note(description, experiment_id, record.key if view else None)
        self._client.set_tag(record.run_id, views.NOTE_TAG, text)

    def _begun(self, record: Record) -> str | None:
        """The id of the run of a record, if its process created the run and ended before it wrote the id."""
        runs = self._client.search_runs([self._experiment_id()], f"tags.{_KEY_TAG} = '{record.key}'", max_results=1)
        return runs[0].info.run_id if runs else None

    @cached_property
    def _client(self) -> Any:
        """The client. Making the first one creates the tables of a database."""
        file = stores.sqlite_file(self.uri)
        if file is not None and not file.exists():
            _create_database(file)
        return mlflow_module().MlflowClient(tracking_uri=self.uri)

    def _experiment_id(self) -> str:
        found = self._client.get_experiment_by_name(self.experiment)
        if found is not None:
            return found.experiment_id
        try:
            return self._client.create_experiment(
                self.experiment, artifact_location=self._artifact_location(), tags=views.EXPERIMENT_TAGS
            )
        except Exception:  # another process has created it
            found = self._client.get_experiment_by_name(self.experiment)
            if found is None:
                raise
            return found.experiment_id

    def _artifact_location(self) -> str | None:
        """Where the artifacts of a new experiment go; None lets a server choose."""
        if self.artifacts is not None:
            root = self.artifacts if "://" in self.artifacts else _writable(Path(self.artifacts)).absolute().as_uri()
            return f"{root.rstrip('/')}/{self.experiment}"
        return None if stores.is_server(self.uri) else (self.outputs / "artifacts" / self.experiment).as_uri()


def _create_database(file: Path) -> None:
    """Create an SQLite database with MLflow's tables, elsewhere; it gets its name when it is complete.

    MLflow makes the tables in many steps, and cannot use a file in which another process, or an interruption, has left
    some of them. Of several processes that do this at once, one gives its file the name.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # MLflow keeps a connection to the file
        made = Path(folder) / file.name
        mlflow_module().MlflowClient(tracking_uri=f"sqlite:///{quote(str(made))}")
        write_new(file.resolve(), made.read_bytes())


def _writable(folder: Path) -> Path:
    """A folder for artifacts, which is made if it does not exist: an experiment keeps its folder for good."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"tracking.artifacts: cannot write to {shortened(str(folder.absolute()))} ({error.strerror}); set it to a "
            "folder you can write to"
        ) from error
    return folder


def _source(record: Record) -> dict[str, str]:
    """Tags that MLflow shows as Source and Version: the command line and the commit."""
    tags = {"mlflow.source.git.commit": record.tags.get("git.commit", "")}
    if record.command:  # of the type LOCAL, MLflow shows only what follows the last slash
        tags |= {"mlflow.source.name": record.command[:_LONGEST_TAG], "mlflow.source.type": "JOB"}
    return {key: value for key, value in tags.items() if value}
