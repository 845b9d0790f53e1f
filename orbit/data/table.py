"""A user's own table with named columns, CSV or Parquet."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from orbit.core.errors import InputError, ParameterError, located
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.base import Dataset, OwnData, Points, names_of
from orbit.data.files import existing, existing_file
from orbit.data.splits import check_clusters
from orbit.registry import register

if TYPE_CHECKING:  # pandas is imported when a table is read
    import pandas as pd

# What pandas calls a first column without a name.
_UNNAMED = "Unnamed: 0"


@register("dataset", "table")
@dataclass(eq=False, repr=False)
class Table(OwnData):
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
    separator : str
        Between the columns of a CSV file, such as ``;``; ``\\t`` is a tab.
    decimal : {"point", "comma"}
        What the decimals of numbers in a CSV file begin with.
    encoding : str
        Encoding of a CSV file, by one of Python's names such as ``latin-1``.
    categories : {"refuse", "onehot"} or list of str
        Columns of strings or categories are refused by name, or become one column of 0 and 1 for each value in the
        training part (scikit-learn's OneHotEncoder): all of them, or the columns listed here, which may hold numbers.
        ``onehot`` refuses columns that are rather numbers, dates or names: at least half of the strings are numbers, or
        there are more than 20 different ones with digits, or more than half as many as rows; list them to encode them.
        Other values, in the test part or in new points, are zeros in all of these columns, and a warning counts them.
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
    reads: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".txt", ".parquet", ".pq")
    ignored_keys = {}
    reading = "features", "targets", "categories"

    path: str | None = None
    target: str | list[str] | None = None
    features: list[str] | None = None
    _: KW_ONLY
    exclude: list[str] | None = None
    weight: str | None = None
    missing: Literal["refuse", "mean", "median"] = "refuse"
    missing_texts: list[str] | None = None
    test_path: str | None = None
    separator: str = ","
    decimal: Literal["point", "comma"] = "point"
    encoding: str = "utf-8"
    categories: Literal["refuse", "onehot"] | list[str] = "refuse"
    group_column: str | None = None

    def check(self) -> None:
        super().check()
        if self.features is not None and not self.features:
            raise self.wrong("features", "at least one column, or null for all columns")
        if self.features is not None and self.exclude:
            raise self.wrong("exclude", "null where features names the columns to learn from")
        for key, columns in (("features", self.features or []), ("target", names_of(self.target))):
            if len(set(columns)) < len(columns):
                raise self.wrong(key, "columns named once each")
        if self.weight in names_of(self.target):
            raise self.wrong("weight", "another column than the target")
        if self.group_column is not None and self.group_column in (*names_of(self.target), self.weight):
            raise self.wrong("group_column", "another column than the target and the weight")
        if used := [column for column in self.exclude or [] if column in self._others()]:
            raise ParameterError(
                "exclude", "columns that are not the target, the weight or the group", used, self.section
            )
        if not self.separator:
            raise self.wrong("separator", "at least one character")

    def input_files(self) -> list[Path]:
        return existing([self.path, self.test_path])

    def check_files(self) -> None:
        if self.path is None:
            raise InputError("dataset.path: expected the path of a .csv or .parquet file, found none")
        if not names_of(self.target):
            raise InputError("dataset.target: expected the name of the column to predict, found none")
        for key, path in (("path", self.path), ("test_path", self.test_path)):
            if path is not None:
                existing_file(path, f"dataset.{key}")

    def _load(self, random_state: RandomState) -> Dataset:
        from orbit.data.frames import TableEncoder, targets, weights

        self.check_files()
        names, path = names_of(self.target), str(self.path)
        labels = names if len(names) == 1 and self.task != "regression" else []
        with located(f"dataset.path: {path}"):
            table = self._read(path, self._given_texts(), labels)
            features = self._features(table)
            y, clusters = targets(table, names, self.task), self._clusters(table)
            weight = None if self.weight is None else weights(table, self.weight)
            encoder = TableEncoder(self.missing, self.categories).fit(table[features])  # whose errors know all rows
        task = self._task(y)
        train, test = np.arange(len(y)), None
        if self.test_path is None:
            train, test = self._split(y, task, random_state, path, clusters)
        with located(f"dataset.path: {path}"):
            encoder.fit(table[features].iloc[train])
            X = np.asarray(encoder.transform(table))
        if test is not None:
            X_test, y_test = X[test], y[test]
        else:
            with located(f"dataset.test_path: {self.test_path}"):
                strings = [*encoder.categories_, *(names if y.dtype.kind == "U" else [])]
                tested = self._read(str(self.test_path), [*self._given_texts(), *strings])
                y_test = targets(tested, names, task)
                X_test, test = np.asarray(encoder.transform(tested)), np.arange(len(tested))
                check_clusters(clusters, self._clusters(tested), "dataset.group_column")
        more: dict[str, Any] = {
            "clusters": None if clusters is None else clusters[train],
            "sample_weight": None if weight is None else weight[train],
            "encoder": encoder,
            "test_rows": test,
            "reading": {"features": features, "targets": names, "categories": list(encoder.categories_)},
        }
        return Dataset(self.name, task, X[train], y[train], X_test, y_test, f"file {Path(path).name}", **more)

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        existing_file(path, self.label())
        with located(path):
            table = self._read(path, form["categories"])
            known = {*form["features"], *form["targets"], *self._others(), *(self.exclude or [])}
            if self.features is None and (others := [column for column in table if column not in known]):
                raise InputError(
                    f"the table has columns that the model was not fitted to: {', '.join(others)}; leave them out"
                )
        return Points(table)

    def _others(self) -> set[str | None]:
        """The columns that are no features, and are not left out."""
        return {*names_of(self.target), self.weight, self.group_column}

    def _given_texts(self) -> list[str]:
        """The columns that are strings whatever they look like."""
        of_categories = self.categories if isinstance(self.categories, list) else []
        return [*of_categories, *([] if self.group_column is None else [self.group_column])]

    def _clusters(self, table: pd.DataFrame) -> np.ndarray | None:
        from orbit.data.frames import as_texts, refuse_missing, require

        if self.group_column is None:
            return None
        require(table, [self.group_column], "set dataset.group_column")
        refuse_missing(table[[self.group_column]], "remove those rows")
        return as_texts(table[self.group_column]).to_numpy(dtype=str)

    def _features(self, table: pd.DataFrame) -> list[str]:
        from orbit.data.frames import require

        named = {"target": names_of(self.target), "features": self.features, "exclude": self.exclude}
        for key, columns in (named | {"weight": [self.weight] if self.weight else []}).items():
            require(table, columns or [], f"set dataset.{key}")
        left_out = self._others() | {*(self.exclude or [])}
        features = list(self.features or [column for column in table if column not in left_out])
        if self.features is None and _UNNAMED in features:
            warnings.warn(
                f"dataset.path: {self.path}: the first column has no name and is used as a feature; if it numbers "
                "the rows, save the table without it (in pandas index=False), or leave it out with dataset.exclude",
                stacklevel=2,
            )
        if both := self._others() & {*features}:
            raise InputError(
                f"dataset.features: {', '.join(map(str, both))} is a target, the weight or the group as well"
            )
        if not features:
            raise InputError("the table has no columns besides targets, weight and group, and those left out")
        return features

    def _read(self, path: str, texts: Iterable[str], labels: Sequence[str] = ()) -> pd.DataFrame:
        from orbit.data.frames import read_table

        options = {
            "sep": self.separator.replace("\\t", "\t"),  # as a tab is written in a shell
            "decimal": "," if self.decimal == "comma" else ".",
            "encoding": self.encoding,
            "na_values": self.missing_texts,
            "keep_default_na": self.missing_texts is None,
        }
        return read_table(user_path(path, "dataset.path"), texts, labels, options)
