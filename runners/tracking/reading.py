"""How the data were read that the model in a run folder was fitted to, and the model as others use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import orbit
from orbit.core.errors import InputError
from orbit.data import Loader
from orbit.data.frames import NamedColumns
from runners.tracking.record import CONFIG, RECORD, Record, RunFolder

_COLUMNS = "columns"

#: How errors of a model on disk name its folder and what trusts it: as ``runner=predict`` does.
MODEL_KEYS = "runner.model", "runner.trust=true"


def data_of(folder: RunFolder) -> tuple[Loader, Mapping[str, Any]]:
    """The loader of the data set that a run was fitted to, and the form of that data set (``Dataset.form``).

    Raises
    ------
    InputError
        If the folder does not have them, or has those of two data sets.
    """
    form = _form(folder.read_record())
    if form is None:
        raise InputError(f"{folder.path / RECORD} has no record of the data that the run was fitted to")
    loader = _loader(folder)
    if lacking := [key for key in loader.reading if key not in form]:
        raise InputError(
            f"{folder.path / CONFIG} has {loader.label()}, {folder.path / RECORD} another data set: "
            f"it lacks {', '.join(lacking)}"
        )
    return loader, form


def with_names(model: Pipeline, loader: Loader, form: Mapping[str, Any]) -> Pipeline:
    """A model as others use it: that of a table takes rows by names of columns, as data frames.

    Parameters
    ----------
    model : Pipeline
    loader : Loader
        Of the data set that it was fitted to.
    form : mapping
        ``Dataset.form`` of that data set.
    """
    columns = loader.named_columns(form)
    return model if columns is None else Pipeline([(_COLUMNS, columns), *model.steps])


def as_given(model: Any, X: np.ndarray) -> Any:
    """The points ``X``, shape (n, *shape), as others give them to the model of :func:`with_names`."""
    return model[0].encoding.decode(X) if _has_names(model) else X


def without_names(model: Any) -> Any:
    """The model that :func:`with_names` was given."""
    return model[1:] if _has_names(model) else model


def _has_names(model: Any) -> bool:
    return isinstance(model, Pipeline) and isinstance(model[0], NamedColumns)


def _loader(folder: RunFolder) -> Loader:
    section = folder.read_config().get("dataset")
    if not isinstance(section, dict) or "name" not in section:
        raise InputError(f"{folder.path / CONFIG} has no section dataset with a name")
    try:
        return orbit.build("dataset", **section)
    except InputError as error:
        raise InputError(f"{folder.path / CONFIG}: {error}") from error


def _form(record: Record | None) -> Mapping[str, Any] | None:
    """The form of the data set of a record; None if there is none with a shape."""
    dataset: Any = record.dataset if record is not None else None
    form = dataset.get("form") if isinstance(dataset, dict) else None
    shape = form.get("shape") if isinstance(form, dict) else None
    valid = isinstance(shape, list) and all(isinstance(size, int) for size in shape)
    return form if valid else None
