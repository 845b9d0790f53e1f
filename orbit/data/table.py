"""A user's own table with named columns, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from orbit.core.errors import DataFileError, InputError, ParameterError, shortened, suggestion
from orbit.core.params import Fraction, PositiveInt
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.base import Dataset, Loader, Points, Task
from orbit.data.files import existing, existing_file
from orbit.data.splits import guess_task, split_off_test
from orbit.registry import register

_PARQUET = (".parquet", ".pq")


@register("dataset", "table")
class Table(Loader):
    """Rows of a CSV or Parquet file: numeric columns are features, one or more other columns are targets.

    Parameters
    ----------
    path : str or None
        A .parquet file, or anything else as CSV with a line of column names. Required.
    target : str, list of str, or None
        Column to predict; several columns make a multi-output regression. Required.
    features : list of str or None
        Numeric columns to learn from, at least one; None: every column that is neither target nor weight.
    weight : str or None
        Column with a weight >= 0 for each training point.
    missing : {"refuse", "mean", "median"}
        Missing features are refused by name, or imputed by the mean or median of the column over the training part,
        in training, test and new points. Missing targets and weights are always refused.
    test_path : str or None
        A file with the test part; None: a random part of the data.
    test_fraction : float in (0, 1)
        Share of the points in the random test part.
    task : {"auto", "classification", "regression"}
        ``auto``: classification for strings, booleans and at most 100 distinct integers, else regression.
    separator : str
        Column separator of a CSV file.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from orbit.data import Table
    >>> path = tempfile.mkdtemp() + "/mine.csv"
    >>> pd.DataFrame({"width": range(20), "height": range(20), "kind": ["cat", "owl"] * 10}).to_csv(path, index=False)
    >>> data = Table(path, target="kind").load(0)
    >>> data.X_train.shape, data.task, data.reading["features"]
    ((15, 2), 'classification', ['width', 'height'])
    """

    default_representation = {"name": "standardize"}
    fixed_task = None
    reading = "features", "targets", "fill"

    def __init__(
        self,
        path: str | None = None,
        target: str | list[str] | None = None,
        features: list[str] | None = None,
        weight: str | None = None,
        missing: Literal["refuse", "mean", "median"] = "refuse",
        test_path: str | None = None,
        test_fraction: Fraction = 0.25,
        task: Literal["auto", "classification", "regression"] = "auto",
        separator: str = ",",
        n_train: PositiveInt | None = None,
        n_test: PositiveInt | None = None,
    ) -> None:
        self.path = path
        self.target = target
        self.features = features
        self.weight = weight
        self.missing = missing
        self.test_path = test_path
        self.test_fraction = test_fraction
        self.task = task
        self.separator = separator
        self.n_train = n_train
        self.n_test = n_test

    def check(self) -> None:
        super().check()
        if self.features is not None and not self.features:
            raise ParameterError("features", "at least one column, or null for all columns", self.features)
        for key, columns in (("features", self.features or []), ("target", self._targets())):
            if len(set(columns)) < len(columns):
                raise ParameterError(key, "columns named once each", columns)
        if self.weight in self._targets():
            raise ParameterError("weight", "another column than the target", self.weight)

    def input_files(self) -> list[Path]:
        return existing([self.path, self.test_path])

    def check_files(self) -> None:
        if self.path is None:
            raise InputError("path: expected the path of a .csv or .parquet file, found none")
        if not self._targets():
            raise InputError("target: expected the name of the column to predict, found none")
        for key, path in (("path", self.path), ("test_path", self.test_path)):
            if path is not None:
                existing_file(path, key)

    def _load(self, random_state: RandomState) -> Dataset:
        self.check_files()
        assert self.path is not None
        whole = _Part(self._read(self.path, "path"), f"path: {self.path}")
        features = self._features(whole)
        y = whole.targets(self._targets())
        task: Task = guess_task(y) if self.task == "auto" else self.task
        X = self._numbers(whole, features)
        if self.test_path is not None:
            tested = _Part(self._read(self.test_path, "test_path"), f"test_path: {self.test_path}")
            train, X_test, y_test = np.arange(len(y)), self._numbers(tested, features), tested.targets(self._targets())
        else:
            train, test = split_off_test(y, task, self.test_fraction, random_state, self.path)
            X_test, y_test = X[test], y[test]
        X, y = X[train], y[train]
        weight = None if self.weight is None else whole.weights(self.weight)[train]
        fill = self._fill(features, X)
        X, X_test = _filled(X, features, fill), _filled(X_test, features, fill)
        reading = {"features": features, "targets": self._targets(), "fill": fill}
        source = f"file {Path(self.path).name}"
        return Dataset(self.name, task, X, y, X_test, y_test, source, sample_weight=weight, reading=reading)

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        existing_file(path, self.label())
        part = _Part(self._read(path, self.label()), path)
        features = form["features"]
        part.require(features, "the model was fitted to it")
        if self.features is None:
            part.refuse_others([*features, *form["targets"], self.weight])
        X = _filled(self._numbers(part, features), features, form["fill"])
        return Points(X, [str(i) for i in range(len(X))])

    def _targets(self) -> list[str]:
        return [self.target] if isinstance(self.target, str) else list(self.target or [])

    def _features(self, part: _Part) -> list[str]:
        part.require(self._targets(), "set target")
        part.require([self.weight] if self.weight else [], "set weight")
        part.require(self.features or [], "set features")
        others = {*self._targets(), self.weight}
        features = list(self.features or [column for column in part.frame if column not in others])
        both = others & set(features)
        if both:
            raise InputError(f"features: {', '.join(map(str, both))} is a target or the weight as well")
        if not features:
            raise InputError(f"{part.where} has no columns besides targets and weight")
        return features

    def _numbers(self, part: _Part, features: list[str]) -> np.ndarray:
        X = part.numbers(features)
        if self.missing == "refuse":
            part.refuse_missing(features, "remove those rows, or impute them with missing='mean' or missing='median'")
        return X

    def _fill(self, features: list[str], X: np.ndarray) -> dict[str, float]:
        """Imputation values by column; empty where missing values are refused."""
        if self.missing == "refuse":
            return {}
        empty = [name for name, column in zip(features, X.T, strict=True) if np.isnan(column).all()]
        if empty:
            raise InputError(f"features: {', '.join(empty)} has no value in the training part; leave it out")
        statistic = np.nanmean if self.missing == "mean" else np.nanmedian
        return {name: float(statistic(column)) for name, column in zip(features, X.T, strict=True)}

    def _read(self, path: str, key: str) -> pd.DataFrame:
        file = user_path(path, key)
        try:
            if file.suffix.lower() in _PARQUET:
                frame = pd.read_parquet(file).rename(columns=str)
                names = frame.columns
            else:
                frame = pd.read_csv(file, sep=self.separator).rename(columns=str)
                # as they are in the file: pandas renames a second "a" to "a.1"
                names = pd.read_csv(file, sep=self.separator, header=None, nrows=1, dtype=str).iloc[0].dropna()
        except Exception as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise DataFileError(
                f"{key}: {path} is not a readable .csv or .parquet file ({reason}); separator is {self.separator!r}"
            ) from error
        if names.duplicated().any():
            raise InputError(f"{key}: {path} has several columns of one name: {', '.join(names[names.duplicated()])}")
        return frame


class _Part:
    """A table, and its name ``where`` for error messages."""

    def __init__(self, frame: pd.DataFrame, where: str) -> None:
        self.frame, self.where = frame, where

    def require(self, columns: list[str], what_to_do: str) -> None:
        """Raise ``InputError`` naming the columns that are missing."""
        lacking = [column for column in columns if column not in self.frame]
        if lacking:
            close = suggestion(lacking[0], self.frame.columns) if len(lacking) == 1 else "."
            raise InputError(
                f"{self.where} has no column {', '.join(lacking)}{close} It has {', '.join(self.frame.columns)}; "
                f"{what_to_do}"
            )

    def refuse_others(self, known: list[str | None]) -> None:
        """Raise ``InputError`` naming the columns that are not in ``known``."""
        others = [column for column in self.frame if column not in known]
        if others:
            raise InputError(
                f"{self.where} has columns that the model was not fitted to: {', '.join(others)}; leave them out"
            )

    def numbers(self, columns: list[str]) -> np.ndarray:
        """The columns as float64, shape (n, len(columns)); NaN where a value is missing."""
        self.require(columns, "every part needs it")
        for column in columns:
            values = self.frame[column]
            if not pd.api.types.is_numeric_dtype(values) and not values.isna().all():
                text = values[pd.to_numeric(values, errors="coerce").isna() & values.notna()]
                example = f", e.g. {shortened(repr(text.iloc[0]))} in row {text.index[0]}" if len(text) else ""
                raise InputError(
                    f"{self.where}: column {column} holds {values.dtype}{example}, expected numbers; list the columns "
                    "to learn from in features, or convert it to numbers"
                )
        numbers = self.frame[columns].to_numpy(dtype=np.float64, na_value=np.nan)
        infinite = [f"{name} ({count})" for name, count in zip(columns, np.isinf(numbers).sum(0), strict=True) if count]
        if infinite:
            raise InputError(f"{self.where} has infinite values: {', '.join(infinite)}; remove those rows")
        return numbers

    def targets(self, columns: list[str]) -> np.ndarray:
        """One target unchanged, shape (n,); several as numbers, shape (n, k)."""
        self.require(columns, "set target")
        self.refuse_missing(columns, "targets are not imputed: remove those rows")
        if len(columns) > 1:
            return self.numbers(columns)
        values = self.frame[columns[0]]
        if pd.api.types.is_bool_dtype(values):
            return values.to_numpy(dtype=bool)
        if pd.api.types.is_integer_dtype(values):
            return values.to_numpy(dtype=np.int64)
        if pd.api.types.is_numeric_dtype(values):
            return self.numbers(columns)[:, 0]
        nested = next((value for value in values if not pd.api.types.is_scalar(value)), None)
        if nested is not None:
            found = f"column {columns[0]} holds {shortened(repr(nested))}"
            raise InputError(f"{self.where}: {found}, expected one number or string in each row as target")
        return values.to_numpy(dtype=str)

    def weights(self, column: str) -> np.ndarray:
        """Weights of the points, shape (n,)."""
        self.refuse_missing([column], "weights are not imputed: remove those rows")
        weights = self.numbers([column])[:, 0]
        if not (np.isfinite(weights).all() and weights.min() >= 0):
            raise InputError(f"{self.where}: column {column} (weight) expected numbers >= 0, found others")
        return weights

    def refuse_missing(self, columns: list[str], what_to_do: str) -> None:
        """Raise ``InputError`` naming the columns with missing values, and the number of rows."""
        counts = {column: int(self.frame[column].isna().sum()) for column in columns}
        found = [f"{column} ({count} row{'s' if count > 1 else ''})" for column, count in counts.items() if count]
        if found:
            raise InputError(f"{self.where} has missing values: {', '.join(found)}; {what_to_do}")


def _filled(X: np.ndarray, columns: list[str], fill: Mapping[str, float]) -> np.ndarray:
    """``X`` with missing values imputed, if there are imputation values."""
    return np.where(np.isnan(X), [fill[column] for column in columns], X) if fill else X
