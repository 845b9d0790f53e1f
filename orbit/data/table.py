"""A user's own table with named columns, CSV or Parquet."""

from __future__ import annotations

import re
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

    from orbit.data.frames import TableEncoder

# Columns that a note names, and what to do where a unit is none.
_NAMED, _AS_TEXTS = 6, "dataset.categories names columns to read as texts"

# Columns named by a number each, such as 1100 or t17, are samples of series from so many on, if neighbours have such a
# correlation, by at most so many rows.
_NUMBERED, _SAMPLES, _CORRELATION, _ROWS = r"\D*?(\d+(?:\.\d+)?)\D*", 16, 0.9, 1000


@register("dataset", "table")
@dataclass(eq=False, repr=False)
class Table(OwnData):
    """Rows of a CSV or Parquet file: some columns are features, one or more other columns are targets.

    Columns that cannot be features are left out, unless ``features`` names them: those that number the rows, dates, and
    more different texts than ``categories`` takes. The notes of the data set name them, and say what was imputed.

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
        Column with a weight >= 0 for each training point. Missing ones are refused.
    missing : {"median", "mean", "refuse"}
        Missing features are imputed by the median or mean of the column over the training part, in training, test and
        new points, missing categories are zeros in all their columns, and rows without a target are left out; or all of
        them are refused by name.
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
        Between the columns of a CSV file, such as ``;``; ``\\t`` is a tab. None: that of comma, semicolon, tab, ``|``
        and blanks with which the first line has the columns that are named here.
    decimal : {"auto", "point", "comma"}
        What the decimals of numbers in a CSV file begin with. ``auto``: what makes more columns numbers; commas may
        separate thousands too. New points are read as the training points were.
    encoding : str or None
        Encoding of a CSV file, by one of Python's names such as ``latin-1``; None: UTF-8, UTF-16 if the file begins
        with its mark, or Windows-1252 for other bytes.
    categories : "onehot" or list of str
        Columns of strings become one column of 0 and 1 for each value in the training part (scikit-learn's
        OneHotEncoder), unless they are rather numbers, dates or names: there are more than 20 different ones with
        digits, or more than half as many as rows; or at least half are numbers, and others signs such as ``?``, or of
        more than 20 different ones words without digits: these are missing values.
        Columns listed here are encoded in any case, and may hold numbers.
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
    >>> table = pd.DataFrame({"width": [2, 3, 4, 9] * 5, "case": range(20), "kind": ["cat", "owl"] * 10})
    >>> table.to_csv(path, index=False)
    >>> data = Table(path, target="kind").load(0)
    >>> data.X_train.shape, data.task, data.reading["features"]
    ((15, 1), 'classification', ['width'])
    >>> data.notes
    ['left out: case (the numbers of the rows); dataset.features names columns to use']
    """

    default_representation = {"name": "standardize"}
    default_group = {"name": "identity"}
    reads: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".txt", ".parquet", ".pq")
    reading = "features", "targets", "categories"

    path: str | None = None
    target: str | list[str] | None = None
    features: list[str] | None = None
    _: KW_ONLY
    exclude: list[str] | None = None
    weight: str | None = None
    missing: Literal["refuse", "mean", "median"] = "median"
    missing_texts: list[str] | None = None
    test_path: str | None = None
    separator: str | None = None
    decimal: Literal["auto", "point", "comma"] = "auto"
    encoding: str | None = None
    categories: Literal["onehot"] | list[str] = "onehot"
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
        if self.separator == "":
            raise self.wrong("separator", "at least one character")

    def input_files(self) -> list[Path]:
        return existing([self.path, self.test_path])

    def check_files(self) -> None:
        path = self._required("path", "the path of a .csv or .parquet file")
        self._required("target", "the name of the column to predict")
        existing_file(path, "dataset.path")
        if self.test_path is not None:
            existing_file(self.test_path, "dataset.test_path")

    def _load(self, random_state: RandomState) -> Dataset:
        from orbit.data.frames import REMOVE, TableEncoder, refuse_missing, require, targets, weights
        from orbit.data.units import limits_of, without_units

        self.check_files()
        names, path = names_of(self.target), str(self.path)
        labels = names if len(names) == 1 and self.task != "regression" else []
        with located(f"dataset.path: {path}"):
            csv = self._csv_options(path, {})
            whole = self._read(path, self._given_texts(), csv, labels)
            candidates = self._features(whole)
            units = self._units(whole, [*candidates, *names, *([self.weight] if self.weight else [])], csv)
            of_answers = {name: unit for name, unit in units.items() if name not in candidates}
            table = self._with_targets(without_units(whole, of_answers, csv))
            y, clusters = targets(table, names, self.task), self._clusters(table)
            weight = None if self.weight is None else weights(table, self.weight)
        has_unit = self.task == "auto" and not units.keys().isdisjoint(names)
        task = "regression" if has_unit else self._task(y)
        train, test = np.arange(len(y)), None
        if self.test_path is None:
            train, test, _ = self._divide(y, task, random_state, path, clusters)
        with located(f"dataset.path: {path}"):
            if self.missing == "refuse":
                refuse_missing(table[candidates], REMOVE)
            numbers = without_units(table, units, csv)
            features, categories, left_out = self._usable(numbers, candidates, train)
            encoder = TableEncoder(self.missing, categories, *_of_features(units, features, csv)).fit(
                table[features].iloc[train]
            )
            X = np.asarray(encoder.transform(table))
        limits = limits_of(table, units)
        removed = {name: unit for name, unit in units.items() if unit or name not in limits}
        notes = [] if self.group_column else [_note_of_repeats(table[candidates], left_out)]
        notes += [_note_of_csv(csv), _note("units removed", removed, _AS_TEXTS)]
        notes += [_note("limits read as numbers", limits, _AS_TEXTS), _note_of_columns(left_out)]
        notes += [_note_of_missing(encoder, table), _note_of_signs(numbers, features, self.missing_texts)]
        notes += [_note_of_samples(encoder.widths(), X[train])]
        if test is not None:
            X_test, y_test, test_rows = X[test], y[test], table.index.to_numpy()[test]
        else:
            with located(f"dataset.test_path: {self.test_path}"):
                strings = [*self._given_texts(), *categories, *(names if y.dtype.kind == "U" else [])]
                tested = self._read(str(self.test_path), strings, self._csv_options(str(self.test_path), csv))
                require(tested, names, "set dataset.target")
                tested = self._with_targets(without_units(tested, of_answers, csv))
                y_test = targets(tested, names, task)
                X_test, test_rows = np.asarray(encoder.transform(tested)), tested.index.to_numpy()
                check_clusters(clusters, self._clusters(tested), "dataset.group_column")
        if lost := len(whole) - len(table):
            notes.append(f"left out: {lost} of {len(whole)} rows, where {' or '.join(names)} is missing")
        more: dict[str, Any] = {
            "clusters": None if clusters is None else clusters[train],
            "sample_weight": None if weight is None else weight[train],
            "encoder": encoder,
            "test_rows": test_rows,
            "reading": {"features": features, "targets": names, "categories": categories, "csv": csv},
            "notes": [note for note in notes if note],
        }
        return Dataset(self.name, task, X[train], y[train], X_test, y_test, f"file {Path(path).name}", **more)

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        existing_file(path, self.label())
        with located(path):
            csv = self._csv_options(path, form.get("csv", {}), form["features"])
            return Points(self._read(path, form["categories"], csv))

    def _usable(
        self, table: pd.DataFrame, candidates: list[str], train: np.ndarray
    ) -> tuple[list[str], list[str], dict[str, str]]:
        """The features, those of them that are categories, and what the columns hold that are left out."""
        from orbit.data.frames import NO_NUMBERS, column_kinds, require, row_numbers

        listed = self.categories if isinstance(self.categories, list) else []
        require(table[candidates], listed, "set dataset.categories")
        categories, left_out = column_kinds(table[candidates], listed)
        if self.features is not None and left_out:
            name, found = next(iter(left_out.items()))
            raise InputError(
                f"dataset.features: column {name} holds {found}, expected numbers or few categories; {NO_NUMBERS}"
            )
        left_out |= {name: "no value" for name in candidates if table[name].iloc[train].isna().all()}
        if self.features is None:
            left_out |= {name: found for name, found in row_numbers(table[candidates]).items() if name not in listed}
        features = [name for name in candidates if name not in left_out]
        if not features:
            raise InputError(f"expected a column to learn from, found none: {_note_of_columns(left_out)}")
        return features, [name for name in categories if name in features], left_out

    def _units(self, table: pd.DataFrame, names: list[str], signs: Mapping[str, str]) -> dict[str, str]:
        """The units of columns, but of categories, and of a target of few texts, which are classes."""
        from orbit.data.frames import units_of_targets
        from orbit.data.units import units_of

        texts, answers = self._given_texts(), names_of(self.target)
        others = [name for name in names if name not in (*texts, *answers)]
        of_answers = units_of_targets(table, [name for name in answers if name not in texts], self.task, signs)
        return units_of(table[others], signs) | of_answers

    def _with_targets(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows that have targets, unless missing values are refused."""
        if self.missing == "refuse":
            return table
        known = table.dropna(subset=(names := names_of(self.target)))
        if not len(known):
            raise InputError(f"the table has no rows with a value of {' and '.join(names)}")
        return known

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
        if both := self._others() & {*features}:
            raise InputError(
                f"dataset.features: {', '.join(map(str, both))} is a target, the weight or the group as well"
            )
        if not features:
            raise InputError("the table has no columns besides targets, weight and group, and those left out")
        return features

    def _csv_options(self, path: str, fitted: Mapping[str, Any], names: Sequence[str] = ()) -> dict[str, Any]:
        """Arguments that pandas reads a CSV file by: given, as of the training part ``fitted``, or found."""
        from orbit.data.table_files import csv_options

        named = names or [*names_of(self.target), *(self.features or []), *(self.exclude or [])]
        given = {
            "sep": self.separator and self.separator.replace("\\t", "\t"),  # as a tab is written in a shell
            "decimal": {"comma": ",", "point": "."}.get(self.decimal),
            "encoding": self.encoding,
            "na_values": self.missing_texts,
            "keep_default_na": self.missing_texts is None,
        }
        return csv_options(user_path(path, "dataset.path"), named, self._given_texts(), given, fitted)

    def _read(
        self, path: str, texts: Iterable[str], options: dict[str, Any], labels: Sequence[str] = ()
    ) -> pd.DataFrame:
        from orbit.data.table_files import read_table

        return read_table(user_path(path, "dataset.path"), texts, labels, options)


def _note_of_csv(options: Mapping[str, Any]) -> str:
    """How a CSV file was read, if it was not in the usual way."""
    usual = {"sep": ",", "encoding": "utf-8", "decimal": "."}
    names = {"sep": "separator", "encoding": "encoding", "decimal": "decimals after", "thousands": "thousands before"}
    found = [f"{names[key]} {options[key]!r}" for key in names if key in options and options[key] != usual.get(key)]
    return f"read with {', '.join(found)}" if found else ""


def _of_features(units: Mapping[str, str], features: list[str], csv: Mapping[str, Any]) -> list[dict[str, str]]:
    """What the encoder of a table is told about units: nothing where there are none."""
    found = {name: unit for name, unit in units.items() if name in features}
    return [found, {key: csv[key] for key in ("decimal", "thousands") if key in csv}] if found else []


def _note(what: str, columns: Mapping[str, str], advice: str) -> str:
    """What is said of columns, each with some words: of many the first, and how many others there are."""
    if not columns:
        return ""
    named = [f"{name} ({about})" if about else name for name, about in columns.items()]
    others = f" and {len(named) - _NAMED} others" if len(named) > _NAMED else ""
    return f"{what}: {', '.join(named[:_NAMED])}{others}; {advice}"


def _note_of_columns(left_out: Mapping[str, str]) -> str:
    molecules = any("smiles" in name.lower() for name in left_out)
    hint = "dataset=molecules reads SMILES" if molecules else "dataset.features names columns to use"
    return _note("left out", left_out, hint)


def _note_of_repeats(table: pd.DataFrame, left_out: Mapping[str, str]) -> str:
    """Columns that may say which rows belong together, such as those of one patient."""
    from orbit.data.frames import repeated_names

    found = {name: f"{count} different in {len(table)} rows" for name, count in repeated_names(table, left_out).items()}
    together = f"dataset.group_column={next(iter(found), '')} keeps them in one part, dataset.exclude leaves it out"
    return _note("names that repeat", found, f"if rows of one name belong together, {together}")


def _note_of_signs(table: pd.DataFrame, features: list[str], texts: list[str] | None) -> str:
    """Numbers that may stand for missing values, unless it was said which texts do."""
    from orbit.data.units import signs_of_missing

    found = {} if texts is not None else signs_of_missing(table, features)
    example = next(iter(found.values()), "").partition(" ")[0]
    return _note("numbers that may be missing values", found, f"if so, dataset.missing_texts=['{example}','']")


def _note_of_samples(columns: Mapping[str, int], X: np.ndarray) -> str:
    """Columns that are the samples of a series, as of spectra: named by numbers in an order, neighbours agree."""
    found = {name: re.fullmatch(_NUMBERED, name) for name, width in columns.items() if width == 1}
    at = {name: float(match[1]) for name, match in found.items() if match is not None}
    steps = np.diff([*at.values()])
    if len(at) < _SAMPLES or not ((steps > 0).all() or (steps < 0).all()):
        return ""
    places = dict(zip(columns, np.cumsum([0, *columns.values()]), strict=False))
    values = X[:_ROWS, [places[name] for name in at]]
    values = values - values.mean(0)
    lengths = np.maximum(np.linalg.norm(values, axis=0), np.finfo(float).tiny)
    if np.median((values[:, 1:] / lengths[1:] * (values[:, :-1] / lengths[:-1])).sum(0)) < _CORRELATION:
        return ""
    first, *_, last = at
    return (
        f"columns {first} to {last} are like the samples of spectra or other series: dataset=series compares their "
        "slopes and patches, too, and is mostly better"
    )


def _note_of_missing(encoder: TableEncoder, table: pd.DataFrame) -> str:
    missing = encoder.count_missing(table)
    zeros = ", zeros for texts" if encoder.categories_.keys() & missing.keys() else ""
    return _note("missing", missing, f"imputed by the {encoder.missing}{zeros} (dataset.missing)")
