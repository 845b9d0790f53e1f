"""How the data were read that the model in a run folder was fitted to, and the model as others use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline

import orbit
from orbit.core.errors import InputError, located
from orbit.data import Loader
from orbit.data.frames import TableEncoder
from runners.tracking.record import CONFIG, RECORD, RunFolder

_COLUMNS = "columns"

#: How errors of a model on disk name its folder and what trusts it: as ``runner=predict`` does.
MODEL_KEYS = "runner.model", "runner.trust=true"


@located(MODEL_KEYS[0])
def data_of(folder: RunFolder) -> tuple[Loader, Mapping[str, Any]]:
    """The loader of the data set that a run was fitted to, and the form of that data set (``Dataset.form``).

    Raises
    ------
    InputError
        If the folder does not have them, or has those of two data sets.
    """
    form = folder_form(folder)
    if form is None:
        raise InputError(f"{folder.path / RECORD} has no record of the data that the run was fitted to")
    loader = _loader(folder)
    if lacking := [key for key in loader.reading if key not in form]:
        raise InputError(
            f"{folder.path / CONFIG} has {loader.label()}, {folder.path / RECORD} another data set: "
            f"it lacks {', '.join(lacking)}"
        )
    return loader, form


def with_encoder(model: Pipeline, encoder: TableEncoder | None) -> Pipeline:
    """A model as others use it: that of a table, whose encoder is ``Dataset.encoder``, takes data frames."""
    return model if encoder is None else Pipeline([(_COLUMNS, encoder), *model.steps])


def without_encoder(model: Any) -> tuple[TableEncoder | None, Any]:
    """The encoder and the model that :func:`with_encoder` was given."""
    has_encoder = isinstance(model, Pipeline) and isinstance(model[0], TableEncoder)
    return (model[0], model[1:]) if has_encoder else (None, model)


def _loader(folder: RunFolder) -> Loader:
    section = folder.read_config().get("dataset")
    if not isinstance(section, dict) or "name" not in section:
        raise InputError(f"{folder.path / CONFIG} has no section dataset with a name")
    try:
        return orbit.build("dataset", **section)
    except InputError as error:
        raise InputError(f"{folder.path / CONFIG}: {error}") from error


def folder_form(folder: RunFolder) -> Mapping[str, Any] | None:
    """The form of the data set of a run; None if its record has none with a shape."""
    record = folder.read_record()
    dataset: Any = record.dataset if record is not None else None
    form = dataset.get("form") if isinstance(dataset, dict) else None
    shape = form.get("shape") if isinstance(form, dict) else None
    valid = isinstance(shape, list) and all(isinstance(size, int) for size in shape)
    return form if valid else None
