"""The figures of a fit, and the rows of a table with the worst predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from orbit import plots
from orbit.data import Dataset
from orbit.learners.answers import columns_of
from orbit.plots.predictions import worst_first
from runners.experiments.fitting import Fitted
from runners.job.job import EXAMPLES, Job
from runners.measure import figures

# Rows of errors.csv.
_MOST_ERRORS = 100


def draw_fit(job: Job, data: Dataset, fitted: Fitted) -> None:
    """Draw orbit, skeleton, predictions, errors and the learner's own selection."""
    model, predicted = fitted.model, fitted.predicted
    features, learner = model["features"], model["learner"]
    job.log_orbit(features.orbit_, model["representation"].transform(data.X_test[_examples(data)]))
    job.log_skeleton(features.kernel_)
    if data.task == "classification":
        job.log_figure("confusion", plots.confusion, data.y_test, predicted)
    else:
        kinds = data.test_kinds
        job.log_figure("predictions", plots.predicted_against_true, data.y_test, predicted, data.targets, kinds=kinds)
    if (shares := fitted.answers.get("probability")) is not None:
        job.log_figure("reliability", plots.reliability, data.y_test, shares, learner.classes_)
    _draw_errors(job, data, fitted)
    if _is_in_plane(data) and (features.operator_valued or not data.columns):
        if data.columns:
            points = data.encoder.inverse_transform(data.X_test).to_numpy()
        else:
            points = job.plan.component("dataset").in_units_of_files(data.X_test, data.reading)
        names = data.reading.get("features", ("", ""))
        job.log_figure("field", plots.field, points, data.y_test, predicted, "test points", names)
    if (curve := learner.selection_curve()) is not None:
        job.log_figure("selection", plots.selection_curve, curve)


def _examples(data: Dataset) -> np.ndarray:
    """Test points whose orbits are drawn: of different classes."""
    if data.task == "regression":
        return np.arange(min(EXAMPLES, len(data.X_test)))
    return np.sort(np.unique(data.y_test, return_index=True)[1])[:EXAMPLES]


def _draw_errors(job: Job, data: Dataset, fitted: Fitted) -> None:
    """The worst predictions: rows of a table with their columns, other points but those in a plane as they look.

    Of points with names, such as files and atoms, and of rows, all predictions, with what the learner says beside them.
    """
    predicted = fitted.predicted
    if names := data.test_names or ({} if data.test_rows is None else {"row": data.test_rows}):
        beside = {name: values for name, values in fitted.answers.items() if name != "prediction"}
        table = names | _true_and_predicted(data, predicted) | columns_of(beside, fitted.model[-1], data.targets)
        job.log_text("predictions.csv", pd.DataFrame(table).to_csv(index=False))
    if data.columns:
        rows = data.encoder.inverse_transform(data.X_test)
        columns = {name: values.to_numpy() for name, values in rows.items()}
        job.log_text("errors.csv", _errors_csv(data, columns, predicted))
        job.log_figure(
            "errors", figures.error_rows, columns, data.y_test, predicted, data.task, data.targets, data.test_rows
        )
    elif data.kinds is None and not _is_in_plane(data):
        loader = job.plan.component("dataset")
        is_raw = job.plan.config["representation"]["name"] == "raw"
        how = {"ink": loader.ink, "shown_as": job.shown_as if is_raw else loader.shown_as}
        job.log_figure("errors", plots.error_examples, data.X_test, data.y_test, predicted, data.task, **how)


def _is_in_plane(data: Dataset) -> bool:
    """Whether points and targets are two numbers each, as places and vectors of a field."""
    return data.X_test.shape[1:] == data.y_test.shape[1:] == (2,)


def _errors_csv(data: Dataset, columns: dict[str, np.ndarray], predicted: np.ndarray) -> str:
    """The worst predictions of a table: row of the file, true and predicted values of each target, all columns."""
    rows = np.arange(len(predicted)) if data.test_rows is None else data.test_rows
    table = {"row": rows} | _true_and_predicted(data, predicted)
    worst = worst_first(data.y_test, predicted, data.task, standardize=True)[:_MOST_ERRORS]
    return pd.DataFrame(columns | table)[[*table, *columns]].iloc[worst].to_csv(index=False)


def _true_and_predicted(data: Dataset, predicted: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of a table for each target, with its name if it has one."""
    ends = [f" {name}" for name in data.targets] if "targets" in data.reading or predicted.ndim > 1 else [""]
    return {
        f"{kind}{end}": values.reshape(len(values), -1)[:, k]
        for k, end in enumerate(ends)
        for kind, values in (("true", data.y_test), ("predicted", predicted))
    }
