"""runner=predict: a fitted model on new points."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from orbit.core.errors import InputError, located, shortened
from orbit.core.files import write_whole
from orbit.core.models import MODEL, load_model
from orbit.core.paths import user_path
from orbit.data import Loader
from orbit.learners.answers import answer_table
from orbit.learners.base import Learner
from orbit.learners.saved import data_of, without_encoder
from orbit.registry import register
from runners.config.names import key_of
from runners.config.schema import FILE_GROUPS
from runners.config.signatures import KINDS
from runners.job.job import Job
from runners.job.runner import Runner
from runners.tracking.mlflow import Tracker
from runners.tracking.record import MODEL_KEYS, RECORD, RunFolder

_RUNS = "runs:/"
_FILE = "predictions.csv"


@register("runner", "predict")
@dataclass(eq=False, repr=False)
class Predict(Runner):
    """Predicts new points, which are read in the same way as the data set of the model.

    ``predictions.csv`` has a row for each point: ``point`` (row number, id or file name; of an atom its molecule,
    then ``atom``, its place there, and ``element``), ``prediction`` (of several outputs ``prediction_NAME``), and
    ``probability_CLASS``, or ``std``, ``std_observed``, ``lower`` and ``upper``, where the learner gives them: the
    standard deviation of the predicted function, that of one observation, with its noise, and the ends of the interval
    that has 95 % of the observations.

    A model is a pickle, which is a program that runs when it is loaded. Only models that you fitted on this machine are
    loaded without ``trust``.

    Parameters
    ----------
    model : str or None
        A run folder of ``runner=fit``, or ``runs:/ID/model`` in MLflow. Required.
    input : str or None
        New points: an .npz or .npy file, or files as those of training: for a model of ``dataset=table`` a CSV or
        Parquet file, of ``images``, ``volumes``, ``sounds`` and ``molecules`` one file, a folder of them, or a CSV file
        that lists them, of ``series`` and ``fields`` a file. Required.
    output : str or None
        File of the predictions; None is ``predictions.csv`` in the folder of this run.
    id_column : str or None
        Column of a table whose values name the points in the predictions; the model must not learn from it
        (``dataset.exclude``).
    trust : bool
        Load a model from elsewhere, or from MLflow, and with it run the code in it.
    """

    tracked: ClassVar[bool] = False
    uses_data: ClassVar[bool] = False

    model: str | None = None
    input: str | None = None
    output: str | None = None
    id_column: str | None = None
    trust: bool = False

    def check(self) -> None:
        super().check()
        if self.model is None:
            raise self.wrong("model", "the folder of a run, or runs:/ID/model")
        if self.model.startswith(_RUNS) and not self.trust:
            raise self.wrong("trust", f"true, because {self.model} runs the code in it when it is loaded")
        if self.input is None or not user_path(self.input, "runner.input").exists():
            raise self.wrong("input", "an existing file or folder with new points")
        if self.output is not None:
            path = user_path(self.output, "runner.output").absolute()
            if not path.parent.is_dir() or (path.exists() and not path.is_file()):
                raise self.wrong("output", "a file in an existing folder")
            if path.exists() and path.samefile(user_path(self.input, "runner.input")):
                raise self.wrong("output", "another file than runner.input")

    def run(self, job: Job) -> None:
        assert self.input is not None
        _refuse_components(job.record.overrides)
        with job.stage("load"):
            whole, loader, form = self._load(job)
            encoder, model = without_encoder(whole)
            with _naming_input():
                points = loader.read_points(self.input, form, encoder, self.id_column)
        with job.stage("predict"), _naming_input():
            batches = job.plan.engine().row_batches(len(points.X), 2 * self._widest(model, points.X[:1]))
            frames = [answer_table(model, points.X[rows], form.get("targets")) for rows in batches]
        table = pd.concat(frames, ignore_index=True)
        table = pd.concat([pd.DataFrame({"point": points.ids} | points.names), table], axis=1)
        path = self._write(job, table.to_csv(index=False))
        job.row("points", str(len(table)))
        job.row("predictions", str(path.absolute()))

    def _load(self, job: Job) -> tuple[Pipeline, Loader, Mapping[str, Any]]:
        """The fitted pipeline, the loader of its data set, and the form of that data set (``Dataset.form``)."""
        assert self.model is not None
        if not self.model.startswith(_RUNS):
            folder = RunFolder(user_path(self.model, "runner.model"))
            return (_model(folder, self.trust), *_data_of(folder))
        tracker = Tracker.of(job.plan.config)
        with tempfile.TemporaryDirectory() as temporary:
            folder = RunFolder(Path(temporary))
            model = tracker.fetch(self.model.removeprefix(_RUNS).split("/")[0], folder)
            return (model, *_data_of(folder))

    def _widest(self, model: Pipeline, X: np.ndarray) -> int:
        """Bytes of the largest array before the learner for the single point in ``X``."""
        sizes = [X.nbytes]
        for _, step in model.steps[:-1]:
            try:
                with warnings.catch_warnings(action="ignore"):  # the prediction of all points gives them
                    X = step.transform(X)
            except InputError:  # its numbers
                raise
            except AttributeError as error:
                problem = f"its {type(step).__name__} was fitted by another version of orbit; fit it again"
                raise InputError(f"runner.model: {self.model}: {problem} ({error})") from error
            except ValueError as error:
                problem = f"its model does not take points of shape {X.shape[1:]}, which its {RECORD} has"
                raise InputError(f"runner.model: {self.model}: {problem} ({error})") from error
            sizes.append(X.nbytes)
        return max(sizes)

    def _write(self, job: Job, text: str) -> Path:
        if self.output is None:
            return job.folder.write_text(_FILE, text)
        path = user_path(self.output, "runner.output")
        try:
            write_whole(path, text)
        except OSError as error:
            raise InputError(f"runner.output: cannot write to {path.absolute()} ({error.strerror})") from error
        return path


@contextlib.contextmanager
def _naming_input() -> Iterator[None]:
    """Errors of new points name the key that they come from."""
    try:
        yield
    except InputError as error:
        if str(error).startswith("runner."):
            raise
        fixed = " (settings are those of the model, given when it is fitted)" if "dataset." in str(error) else ""
        raise InputError(f"runner.input: {error}{fixed}") from error


@located(MODEL_KEYS[0])
def _data_of(folder: RunFolder) -> tuple[Loader, Mapping[str, Any]]:
    folder.read_record()  # an error for one that is damaged
    return data_of(folder.path)


def _model(folder: RunFolder, trust: bool) -> Pipeline:
    model = load_model(folder.path, trust, *MODEL_KEYS)
    if not (isinstance(model, Pipeline) and isinstance(model[-1], Learner)):
        raise InputError(
            f"runner.model: {(folder.path / MODEL).absolute()} is no model of runner=fit: expected a pipeline that "
            f"ends in a learner, found {shortened(type(model).__name__)}"
        )
    return model


def _refuse_components(overrides: Sequence[str]) -> None:
    """Raise ``InputError`` for settings of components, which are those of the model."""
    for key in map(key_of, overrides):
        if key.partition(".")[0] in {*KINDS, *FILE_GROUPS, "orbit"} - {"runner"}:
            raise InputError(f"{key}: runner=predict takes the components of its model: leave {key} out")
