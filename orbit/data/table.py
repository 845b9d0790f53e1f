"""A user's own table with named columns, CSV or Parquet."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from orbit.core.errors import InputError, ParameterError
from orbit.core.params import Fraction, PositiveInt
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.base import Dataset, Loader, Points, Task
from orbit.data.files import existing, existing_file
from orbit.data.splits import check_groups, guess_task, split_off_test
from orbit.registry import register

# What pandas calls a first column without a name.
_UNNAMED = "Unnamed: 0"

if TYPE_CHECKING:  # pandas is imported when a table is read
    from orbit.data.frames import Frame, NamedColumns, Values


@register("dataset", "table")
class Table(Loader):
    """Rows of a CSV or Parquet file: some columns are features, one or more other columns are targets.

    Parameters
    ----------
    path : str or None
        A .parquet file, or anything else as CSV with a line of column names. Required.
    target : str, list of str, or None
        Column to predict; several columns make a multi-output regression. Required.
    features : list of str or None
        Columns to learn from, at least one; None: every column that is neither target, weight, group nor excluded.
    exclude : list of str or None
        Columns to leave out, such as numbers of cases, dates and names; not together with ``features``.
    weight : str or None
        Column with a weight >= 0 for each training point.
    missing : {"refuse", "mean", "median"}
        Missing features are refused by name, or imputed by the mean or median of the column over the training part,
        in training, test and new points; missing categories are then zeros in all their columns. Missing targets and
        weights are always refused.
    test_path : str or None
        A file with the test part; None: a random part of the data.
    test_fraction : float in (0, 1)
        Share of the points in the random test part.
    missing_texts : list of str or None
        Texts of a CSV file that stand for a missing value, such as ``['']`` if NA and None are values; None: those that
        pandas takes for missing, the empty text, 'NA', 'None', 'null', 'nan' and others.
    task : {"auto", "classification", "regression"}
        ``auto``: classification for strings, booleans and at most 100 distinct integers, else regression. Integers of a
        CSV file are strings if one of them has a leading zero, unless the task is ``regression``.
    separator : str or None
        Column separator of a CSV file; ``\\t`` is a tab. None: the one of comma, semicolon, tab and vertical bar that
        the line of column names has.
    decimal : {"point", "comma"} or None
        What the decimals of numbers in a CSV file begin with. None: a point, and a column whose values are all numbers,
        some of them with a comma, is refused. Numbers whose thousands are divided are refused too, and warned of where
        this is a point.
    encoding : str or None
        Encoding of a CSV file, by one of Python's names such as ``latin-1``; None: UTF-8, or UTF-16 with a byte order
        mark.
    categories : {"refuse", "onehot"}
        Columns of strings or categories are refused by name, or become one column of 0 and 1 for each value in the
        training part (scikit-learn's OneHotEncoder). Other values, in the test part or in new points, are zeros in all
        of these columns, and a warning counts them.
    group_column : str or None
        Column that names the group of each row, e.g. a patient with several rows: all rows of a group are in the same
        part, training or test, and in the same fold of ``selection='k_fold'``. It is not a feature.
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
    default_group = {"name": "identity"}
    fixed_task = None
    ignored_keys = {}
    reading = "features", "targets", "fill"

    def __init__(
        self,
        path: str | None = None,
        target: str | list[str] | None = None,
        features: list[str] | None = None,
        *,
        exclude: list[str] | None = None,
        weight: str | None = None,
        missing: Literal["refuse", "mean", "median"] = "refuse",
        missing_texts: list[str] | None = None,
        test_path: str | None = None,
        test_fraction: Fraction = 0.25,
        task: Literal["auto", "classification", "regression"] = "auto",
        separator: str | None = None,
        decimal: Literal["point", "comma"] | None = None,
        encoding: str | None = None,
        categories: Literal["refuse", "onehot"] = "refuse",
        group_column: str | None = None,
        n_train: PositiveInt | None = None,
        n_test: PositiveInt | None = None,
    ) -> None:
        self.path = path
        self.target = target
        self.features = features
        self.exclude = exclude
        self.weight = weight
        self.missing = missing
        self.missing_texts = missing_texts
        self.test_path = test_path
        self.test_fraction = test_fraction
        self.task = task
        self.separator = separator
        self.decimal = decimal
        self.encoding = encoding
        self.categories = categories
        self.group_column = group_column
        self.n_train = n_train
        self.n_test = n_test

    def check(self) -> None:
        super().check()
        if self.features is not None and not self.features:
            raise ParameterError("features", "at least one column, or null for all columns", self.features)
        if self.features is not None and self.exclude:
            raise ParameterError("exclude", "null where features names the columns to learn from", self.exclude)
        for key, columns in (("features", self.features or []), ("target", self._targets())):
            if len(set(columns)) < len(columns):
                raise ParameterError(key, "columns named once each", columns)
        if self.weight in self._targets():
            raise ParameterError("weight", "another column than the target", self.weight)
        if self.group_column is not None and self.group_column in (*self._targets(), self.weight):
            raise ParameterError("group_column", "another column than the target and the weight", self.group_column)
        if used := [column for column in self.exclude or [] if column in self._others()]:
            raise ParameterError("exclude", "columns that are not the target, the weight or the group", used)
        if self.encoding is not None and not _is_encoding(self.encoding):
            raise ParameterError("encoding", "an encoding that Python knows, such as utf-8 or latin-1", self.encoding)

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
        from orbit.data.frames import Encoding

        self.check_files()
        assert self.path is not None
        whole = self._read(self.path, f"path: {self.path}", labels=self._targets())
        features = self._features(whole)
        texts = self._texts(whole, features)
        y, groups = whole.targets(self._targets()), self._groups(whole)
        task: Task = guess_task(y) if self.task == "auto" else self.task
        values = self._values(whole, features, texts)
        if self.test_path is not None:
            strings = [*texts, *self._targets()] if y.dtype.kind == "U" else texts
            labels = [] if y.dtype.kind in "iu" else self._targets()
            tested = self._read(self.test_path, f"test_path: {self.test_path}", strings, labels)
            train, test = np.arange(len(y)), np.arange(len(tested.frame))
            test_values, y_test = self._values(tested, features, texts), tested.targets(self._targets())
            check_groups(groups, self._groups(tested), "group_column")
        else:
            train, test = split_off_test(y, task, self.test_fraction, random_state, self.path, groups)
            test_values, y_test = values.take(test), y[test]
        encoding = Encoding.of(features, values.take(train), self.missing)
        return Dataset(
            self.name,
            task,
            encoding.encode(values.take(train), "the training part"),
            y[train],
            encoding.encode(test_values, "the test part"),
            y_test,
            f"file {Path(self.path).name}",
            groups=None if groups is None else groups[train],
            sample_weight=None if self.weight is None else whole.weights(self.weight)[train],
            columns=encoding.columns(),
            test_rows=test,
            reading=vars(encoding) | {"targets": self._targets()},
        )

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        existing_file(path, self.label())
        columns = self.named_columns(form)
        encoding = columns.encoding
        part = self._read(path, path, encoding.categories)
        part.require(encoding.features, "the model was fitted to it")
        if self.features is None:
            part.refuse_others([*encoding.features, *form["targets"], *self._others(), *(self.exclude or [])])
        X = part.encoded(encoding, columns.imputes)
        return Points(X, [str(i) for i in range(len(X))])

    def named_columns(self, form: Mapping[str, Any]) -> NamedColumns:
        from orbit.data.frames import Encoding, NamedColumns

        categories = form.get("categories", {})  # models of earlier versions have none
        return NamedColumns(Encoding(form["features"], form["fill"], categories), self.missing != "refuse")

    def _targets(self) -> list[str]:
        return [self.target] if isinstance(self.target, str) else list(self.target or [])

    def _others(self) -> set[str | None]:
        """The columns that are no features, and are not left out."""
        return {*self._targets(), self.weight, self.group_column}

    def _texts(self, part: Frame, features: list[str]) -> list[str]:
        """The columns of categories."""
        texts = part.categorical(features) if self.categories == "onehot" else []
        part.check_texts(texts)
        if self.task != "classification":
            part.check_texts(self._targets(), targets=True)
        return texts

    def _groups(self, part: Frame) -> np.ndarray | None:
        return None if self.group_column is None else part.labels(self.group_column, "group_column")

    def _features(self, part: Frame) -> list[str]:
        part.require(self._targets(), "set target")
        part.require([self.weight] if self.weight else [], "set weight")
        part.require(self.features or [], "set features")
        part.require(self.exclude or [], "set exclude")
        others = self._others()
        left_out = others | {*(self.exclude or [])}
        features = list(self.features or [column for column in part.frame if column not in left_out])
        if self.features is None and _UNNAMED in features:
            warnings.warn(
                f"{part.where}: the first column has no name and is used as a feature; if it numbers the rows, save "
                "the table without it (in pandas index=False), or leave it out with exclude",
                stacklevel=2,
            )
        if both := others & set(features):
            raise InputError(f"features: {', '.join(map(str, both))} is a target, the weight or the group as well")
        if not features:
            raise InputError(f"{part.where} has no columns besides targets, weight and group, and those left out")
        return features

    def _values(self, part: Frame, features: list[str], texts: list[str]) -> Values:
        from orbit.data.frames import CORRECT, REMOVE

        values = part.values(features, texts, CORRECT) if self.categories == "onehot" else part.values(features, texts)
        if self.missing == "refuse":
            part.refuse_missing(features, REMOVE)
        return values

    def _read(self, path: str, where: str, texts: Iterable[str] = (), labels: Sequence[str] = ()) -> Frame:
        from orbit.data.csv_files import Csv
        from orbit.data.frames import Frame

        names = [] if self.task == "regression" or len(labels) > 1 else [*labels]
        names += [self.group_column] if self.group_column is not None else []
        csv = Csv(self.separator, self.decimal, self.encoding, self.missing_texts)
        return Frame.read(user_path(path, "path"), where, csv, texts, names)


def _is_encoding(name: str) -> bool:
    try:
        "".encode(name)
    except (LookupError, ValueError):  # unknown, or no encoding of texts; a name with a null character
        return False
    return True
