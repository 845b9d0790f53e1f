"""New files for the model of a run: read as the files that it was fitted to, and predicted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.pipeline import Pipeline

from orbit.core.errors import InputError
from orbit.core.models import RECORD, load
from orbit.core.paths import user_path
from orbit.data.base import Loader, Points
from orbit.data.frames import TableEncoder
from orbit.learners.answers import answer_table
from orbit.registry import build

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = "columns"

# Points that are predicted at once, so that their features take little memory.
_BATCH = 1000


def predict(folder: str | Path, path: str | Path, *, id_column: str | None = None, trust: bool = False) -> pd.DataFrame:
    """Predictions of new files by the model of a run, as ``runner=predict`` writes them.

    Parameters
    ----------
    folder : str or Path
        The run folder.
    path : str or Path
        A file, or a folder of files, in a format that the data set of the run reads; targets are not needed.
    id_column : str or None
        Column of a table that names the points, and that the model did not learn from.
    trust : bool
        Load a model that you did not fit on this machine. Loading it runs the code in it.

    Returns
    -------
    data frame
        A row for each point: ``point``, its file or row; ``prediction``, or one for each of several targets; and
        probabilities, or standard deviations and ends of intervals, of learners that have them.

    Raises
    ------
    InputError
        If the folder has no model, or the files cannot be read, or have other points.
    """
    import pandas as pd

    whole = load(folder, trust)
    loader, form = data_of(user_path(str(folder), "folder"))
    encoder, model = without_encoder(whole)
    points = loader.read_points(str(path), form, encoder, id_column)
    starts = range(0, len(points.X), _BATCH)
    frames = [answer_table(model, points.X[start : start + _BATCH], form.get("targets")) for start in starts]
    named = pd.DataFrame({"point": points.ids} | points.names)
    return pd.concat([named, pd.concat(frames, ignore_index=True)], axis=1)


def read_points(folder: str | Path, path: str | Path) -> Points:
    """New files read and scaled as those that the model of a run was fitted to: what ``orbit.load(folder)`` takes.

    Parameters
    ----------
    folder, path : str or Path
        As for :func:`predict`; no table, whose model takes data frames.

    Returns
    -------
    Points
        ``X``, shape (n, *shape), and ``ids``, the names of the points, such as those of files.

    Raises
    ------
    InputError
        If the folder has no record of its data, or the files cannot be read, or have other points.
    """
    loader, form = data_of(user_path(str(folder), "folder"))
    if "features" in form:
        raise InputError(f"{path}: the model of a table takes its columns by name: orbit.predict reads and predicts it")
    return loader.read_points(str(path), form)


def data_of(folder: Path) -> tuple[Loader, Mapping[str, Any]]:
    """The loader of the data set that a run was fitted to, and the form of that data set (``Dataset.form``).

    Raises
    ------
    InputError
        If the folder does not have them, or has those of two data sets.
    """
    path = folder / RECORD
    about = _recorded_data(path)
    form, section = about.get("form"), about.get("loader")
    shape = form.get("shape") if isinstance(form, dict) else None
    if not (isinstance(form, dict) and isinstance(shape, list) and all(isinstance(size, int) for size in shape)):
        raise InputError(f"{path} has no record of the data that the run was fitted to")
    if not isinstance(section, dict) or "name" not in section:
        raise InputError(f"{path} has no name of the data set that the run was fitted to; fit it again")
    try:
        loader: Loader = build("dataset", **section)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if lacking := [key for key in loader.reading if key not in form]:
        raise InputError(f"{path} has {loader.label()} and the form of another one: it lacks {', '.join(lacking)}")
    return loader, form


def with_encoder(model: Pipeline, encoder: TableEncoder | None) -> Pipeline:
    """A model as others use it: that of a table, whose encoder is ``Dataset.encoder``, takes data frames."""
    return model if encoder is None else Pipeline([(_COLUMNS, encoder), *model.steps])


def without_encoder(model: Any) -> tuple[TableEncoder | None, Any]:
    """The encoder and the model that :func:`with_encoder` was given."""
    has_encoder = isinstance(model, Pipeline) and isinstance(model[0], TableEncoder)
    return (model[0], model[1:]) if has_encoder else (None, model)


def _recorded_data(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # the last for a text of many brackets
        raise InputError(f"{path} is damaged ({error})") from error
    about = record.get("dataset") if isinstance(record, dict) else None
    return about if isinstance(about, dict) else {}
