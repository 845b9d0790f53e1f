"""Upload of a run folder to MLflow, in steps that can be repeated: one that broke off is completed by the next."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from orbit.core.errors import InputError, encodable
from orbit.core.models import MODEL, load_model
from orbit.learners.answers import Answering
from orbit.learners.protocols import GivesProbabilities, GivesStd
from orbit.learners.saved import data_of, without_encoder
from runners.config.imports import large_imports
from runners.measure.metrics import metric_name
from runners.tracking.record import EXAMPLE, MODEL_KEYS, Record, RunFolder

log = logging.getLogger(__name__)

_METRICS_IN_A_BATCH, _PARAMS_IN_A_BATCH = 1000, 100  # the limits of MLflow


@functools.cache
def mlflow_module() -> Any:
    """MLflow, imported on first use (it takes seconds), with warnings and progress bars turned off."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # no usage data is sent
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # it shows one bar per file
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # MLflow's 7 take minutes; later runs upload again
    with warnings.catch_warnings(action="ignore"), large_imports():
        import mlflow
        import mlflow.sklearn

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # tracebacks of errors that it also raises
    return mlflow


def upload_folder(client: Any, uri: str, record: Record, folder: RunFolder) -> None:
    """Log all content of a run folder that the run does not have yet, and then end the run with its status.

    Parameters
    ----------
    client : mlflow.MlflowClient
    uri : str
        The tracking URI of the client.
    record : Record
        With the ``run_id`` of a run that exists.
    folder : RunFolder
    """
    run = client.get_run(record.run_id)
    if run.info.status == record.status and run.info.end_time:
        return
    _log_params(client, run, record.params)
    end = int(record.end * 1000) if record.end else run.info.start_time
    _log_metrics(client, run, folder, end)
    if record.dataset and not run.inputs.dataset_inputs:
        _log_dataset(client, run.info.run_id, record.dataset)
    for path in folder.contents():
        client.log_artifact(record.run_id, str(folder.path / path), str(path.parent) if path.parent.name else None)
    if (folder.path / MODEL).is_file():
        _log_model(client, uri, run, folder.path)
    client.set_terminated(record.run_id, record.status, end)
    _drop_artifact_stores()


def _log_params(client: Any, run: Any, params: dict[str, Any]) -> None:
    """Log the parameters; MLflow leaves out those that the run has."""
    from mlflow.entities import Param

    found = [Param(key, encodable(str(value))[:6000]) for key, value in params.items()]
    for start in range(0, len(found), _PARAMS_IN_A_BATCH):
        client.log_batch(run.info.run_id, params=found[start : start + _PARAMS_IN_A_BATCH])


def _log_metrics(client: Any, run: Any, folder: RunFolder, time_ms: int) -> None:
    """Log the metrics, and the steps of those with several, numbered from 1; MLflow leaves out what the run has."""
    from mlflow.entities import Metric

    steps = [(name, value, 0) for name, value in folder.read_metrics().items()]
    for name, values in folder.read_history().items():
        steps += [(name, value, step) for step, value in enumerate(values, 1)]
    found = [Metric(metric_name(name), value, time_ms, step) for name, value, step in steps]
    for start in range(0, len(found), _METRICS_IN_A_BATCH):
        client.log_batch(run.info.run_id, metrics=found[start : start + _METRICS_IN_A_BATCH])


def _log_dataset(client: Any, run_id: str, dataset: dict[str, Any]) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    digest = hashlib.sha256(encodable(dataset["description"]).encode()).hexdigest()[:8]
    source = {"tags": {"source": dataset["source"], "description": dataset["description"]}}
    described = Dataset(dataset["name"], digest, source_type="code", source=json.dumps(source))
    tag = InputTag(key="mlflow.data.context", value="training")
    client.log_inputs(run_id, datasets=[DatasetInput(dataset=described, tags=[tag])])


def _log_model(client: Any, uri: str, run: Any, folder: Path) -> None:
    """Log the fitted pipeline as the model of the run, unless it has a complete one."""
    begun = [client.get_logged_model(output.model_id) for output in run.outputs.model_outputs] if run.outputs else []
    if any(str(model.status) == "READY" for model in begun):
        return
    with np.load(folder / EXAMPLE, allow_pickle=False) as example:
        X, y = example["X"], example["y"]
    try:
        model = load_model(folder, False, *MODEL_KEYS)
    except InputError as error:  # a folder in somebody else's outputs
        log.warning("the model is not uploaded: %s", error)
        return
    encoder, _ = without_encoder(model)
    if encoder is not None:  # numbers with a unit are texts to MLflow, which would refuse 3 mg as a number
        X = encoder.inverse_transform(X)
        X = X.assign(**{name: X[name].map(str, na_action="ignore") for name in encoder.units or {}})
    any_size, form = False, dict[str, Any]()
    with contextlib.suppress(InputError):  # a run that has no record of its data
        loader, found = data_of(folder)
        any_size, form = loader.any_size, {**found}
    if isinstance(model, Pipeline) and isinstance(model[-1], (GivesProbabilities, GivesStd)):
        model = Answering(model, form.get("targets"))
        y = model.predict(X)
    mlflow = mlflow_module()
    mlflow.set_tracking_uri(uri)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*schema contains integer column")  # predicted classes are never missing
        signature = mlflow.models.infer_signature(X, y)
    if any_size:
        signature.inputs = mlflow.types.Schema([mlflow.types.TensorSpec(X.dtype, (-1,) * X.ndim)])
    # MLflow would look for these versions, which are those installed, in lists of the files of all packages: 0.3 s
    mlflow.utils.requirements_utils._MODULES_TO_PACKAGES = {}
    requirements = [f"{name}=={importlib.metadata.version(name)}" for name in ("numpy", "torch", "scikit-learn")]
    # MLflow links the model and the active run, and refuses to do so twice
    with contextlib.nullcontext() if begun else _fluent_run(mlflow, run.info.run_id):
        mlflow.sklearn.log_model(
            model,
            name="model",
            model_id=(begun[0] if begun else _begin_model(client, run)).model_id,
            signature=signature,
            input_example=X,
            pip_requirements=requirements,
            serialization_format="cloudpickle",
        )


def _begin_model(client: Any, run: Any) -> Any:
    """A model of the run, with its source: MLflow would look for that of this process, which may be a later one."""
    source = {key: value for key, value in run.data.tags.items() if key.startswith("mlflow.source.")}
    params = client.get_run(run.info.run_id).data.params  # which were logged meanwhile
    return client.create_logged_model(run.info.experiment_id, "model", run.info.run_id, source, params)


def _drop_artifact_stores() -> None:
    """Drop what MLflow keeps of the last 1,024 runs and models: for each an artifact store with a pool of threads."""
    getattr(mlflow_module().tracking._tracking_service.utils, "_artifact_repos_cache", {}).clear()


@contextlib.contextmanager
def _fluent_run(mlflow: Any, run_id: str) -> Iterator[None]:
    """Make the run MLflow's active one. Its status stays RUNNING; the caller sets the final one."""
    with warnings.catch_warnings(action="ignore"):
        mlflow.start_run(run_id=run_id)
        try:
            yield
        finally:
            mlflow.end_run("RUNNING")
