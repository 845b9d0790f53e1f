"""The importance of columns by permutation (Breiman 2001, "Random forests", section 10), by scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from orbit.core.errors import InputError
from orbit.core.random import generator
from orbit.data import Dataset
from orbit.engine import Engine
from runners.experiments.pipeline import predict
from runners.measure.metrics import LOWER_IS_BETTER, METRICS, evaluate

# Permutations of a column.
_REPEATS = 5

# At most this many predictions in all, times the elements of the orbit; and at least this many rows in each
# permutation, if the test part has them.
_MOST, _FEWEST = 20_000, 100


@dataclass(frozen=True)
class Importance:
    """How much worse a metric is for each column and permutation.

    Attributes
    ----------
    names : list of str, the m columns
    values : array, shape (m, repeats)
    change : what the values are, ``decrease of accuracy``
    """

    names: list[str]
    values: np.ndarray
    change: str

    def csv(self) -> str:
        """Mean and standard deviation of each column, the most important one first."""
        mean, deviation = self.values.mean(1), self.values.std(1)
        table = pd.DataFrame({"column": self.names, self.change: mean, "standard deviation": deviation})
        return table.sort_values(self.change, ascending=False, kind="stable").to_csv(index=False)


def is_cheap(model: Pipeline, data: Dataset) -> bool:
    """Whether the data is a table, and 100 of its test rows in each permutation are within the limit."""
    n_columns = len(data.columns)
    return n_columns > 0 and min(_FEWEST, len(data.X_test)) <= _affordable(model, n_columns)


def _affordable(model: Pipeline, n_columns: int) -> int:
    """Rows in each permutation."""
    return _MOST // (_REPEATS * n_columns * len(model["features"].orbit_.weights_))


def importance(model: Pipeline, data: Dataset, engine: Engine, random_state: int) -> Importance:
    """How much worse accuracy, root mean square error, or R2 of several targets is, if one column is permuted.

    A categorical column is permuted as a whole. Of large test parts some random rows are used, so that at most 20,000
    are predicted (times the elements of the orbit), or 100 in each permutation.

    Raises
    ------
    InputError
        For points that are not vectors.
    """
    from sklearn.inspection import permutation_importance

    if len(data.X_test.shape) != 2:
        raise InputError(f"runner.importance: points of shape {data.X_test.shape[1:]} have no columns")
    columns = data.columns or {str(j): 1 for j in range(data.X_test.shape[1])}
    n = min(len(data.X_test), max(_FEWEST, _affordable(model, len(columns))))
    rows = np.sort(generator(random_state).choice(len(data.X_test), n, replace=False))
    permuted = _Permuted(model, np.asarray(data.X_test[rows]), columns, engine)
    metric = "r2" if data.y_test.ndim > 1 and n > 1 else METRICS[data.task][0]  # targets may have different units
    sign, change = (-1, "increase") if metric in LOWER_IS_BETTER else (1, "decrease")

    def score(estimator: _Permuted, order: np.ndarray, y: np.ndarray) -> float:
        return sign * evaluate(data.task, y, estimator.predict(order))[metric]

    order = np.tile(np.arange(n)[:, None], len(columns))
    found = permutation_importance(
        permuted, order, data.y_test[rows], scoring=score, n_repeats=_REPEATS, random_state=random_state
    )
    return Importance([*columns], found.importances, f"{change} of {metric}")


class _Permuted(BaseEstimator):
    """Predicts rows whose columns come from different rows of ``X``, shape (n, d), by their row numbers."""

    def __init__(self, model: Pipeline, X: np.ndarray, columns: dict[str, int], engine: Engine) -> None:
        self.model, self.X, self.engine = model, X, engine
        self.widths = [*columns.values()]

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Permuted:
        return self

    def predict(self, order: np.ndarray) -> np.ndarray:
        """Predictions for rows with the columns of the rows ``order``, shape (n, columns)."""
        X = np.take_along_axis(self.X, np.repeat(order, self.widths, axis=1), axis=0)
        return predict(self.model, X, self.engine)
