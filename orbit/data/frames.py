"""Tables with named columns, read by pandas, and the numbers that scikit-learn's encoders make of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from orbit.core.errors import DataFileError, InputError, shortened, suggestion

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer

_PARQUET, _SPREADSHEETS = (".parquet", ".pq"), (".xls", ".xlsx", ".ods")

#: What to do about missing features.
REMOVE = "remove those rows, or impute them with dataset.missing=mean or dataset.missing=median"
_NO_NUMBERS = (
    "leave it out with dataset.exclude, write numbers (such as days since a first day in place of dates), or encode "
    "columns of strings with dataset.categories=onehot"
)
_NO_CATEGORIES = (
    "write numbers without other signs, leave it out with dataset.exclude, or name columns of categories as in "
)

# What pandas calls Python objects that are numbers, such as decimals and integers beyond 64 bits.
_NUMBERS = ("integer", "decimal", "floating", "mixed-integer-float", "boolean")

# Different texts up to which a column of them is categorical, unless the user says so; and in any case.
_FEW_CATEGORIES, _MOST_CATEGORIES = 20, 1000

_TARGETS: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.uint64}


def read_table(file: Path, texts: Iterable[str], labels: Sequence[str], options: dict[str, Any]) -> pd.DataFrame:
    """The table in a CSV or Parquet file, as :func:`plain` returns it.

    Parameters
    ----------
    file : Path
    texts : iterable of str
        Columns of a CSV file that are read as strings, also if all values are digits.
    labels : sequence of str
        Columns of a CSV file that are read as strings if a value has a leading zero, such as 007.
    options : dict
        Arguments of ``pandas.read_csv``; ``sep`` and ``encoding`` of those that the user can set.

    Raises
    ------
    DataFileError, InputError
        If it cannot be read, or has no rows or several columns of one name.
    """
    is_parquet = file.suffix.lower() in _PARQUET
    try:
        if file.suffix.lower() in _SPREADSHEETS:
            raise ValueError("it is a spreadsheet; save it as CSV")
        frame = plain(pd.read_parquet(file) if is_parquet else _csv(file, texts, labels, options))
    except InputError:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        what, advice = "Parquet" if is_parquet else "CSV", ""
        if options and not is_parquet:
            given = f"dataset.separator is {options['sep']!r}, dataset.encoding is {options['encoding']!r}"
            advice = f"; {given}: set those of the file, such as dataset.encoding=latin-1"
        raise DataFileError(f"expected a readable {what} file ({reason}){advice}") from error
    if not len(frame):
        raise InputError("the table has no rows, expected at least one")
    return frame


def _csv(file: Path, texts: Iterable[str], labels: Sequence[str], options: dict[str, Any]) -> pd.DataFrame:
    # by the fast parser a column would have one type for each chunk; it knows separators of one character only
    options = options | ({"low_memory": False} if len(options.get("sep", ",")) == 1 else {"engine": "python"})
    frame = pd.read_csv(file, dtype=dict.fromkeys(texts, str), **options)
    names = pd.read_csv(file, header=None, nrows=1, dtype=str, **options).iloc[0].dropna()
    _check_names(names[names != ""])  # pandas renames the second of two
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes the first column for names of rows
        raise ValueError("its rows have more entries than the line of column names")
    for column in labels:
        if column in frame and frame[column].dtype.kind == "i":
            written = pd.read_csv(file, usecols=[column], dtype=str, **options)[column]
            if written.str.match(r"\s*[+-]?0\d").any():
                frame[column] = written
    unnamed = [name for name in frame if name.startswith("Unnamed: ")]  # as of a separator at the end of each line
    return frame.drop(columns=[name for name in unnamed if (frame[name].isna() | (frame[name] == "")).all()])


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose names of columns are strings, and whose Python objects that are numbers are float64."""
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    _check_names(frame.columns)
    objects = {name: values for name, values in frame.items() if values.dtype == object}
    numbers = {name: values for name, values in objects.items() if infer_dtype(values) in _NUMBERS}
    return frame.assign(
        **{name: values.where(values.notna(), np.nan).astype(float) for name, values in numbers.items()}
    )


def _check_names(names: Any) -> None:
    if names.duplicated().any():
        twice = ", ".join(names[names.duplicated()])
        raise InputError(
            f"the table has several columns of one name: {twice}; the first line of a file names its columns"
        )


def require(frame: pd.DataFrame, columns: Iterable[str], what_to_do: str) -> None:
    """Raise ``InputError`` naming the columns that are missing."""
    lacking = [column for column in columns if column not in frame]
    if lacking:
        close = suggestion(lacking[0], frame.columns) if len(lacking) == 1 else "."
        several = ", or dataset.separator if these are several" if re.search("[,;|\t]", "".join(frame.columns)) else ""
        found = f"{', '.join(lacking)}{close} It has {', '.join(frame.columns)}"
        raise InputError(f"the table has no column {found}; {what_to_do}{several}")


def require_values(frame: pd.DataFrame, columns: Iterable[tuple[str, str]], file: Path) -> None:
    """Raise ``InputError`` for a column that is missing or has empty entries; ``columns`` are pairs (key, name)."""
    for key, column in columns:
        if column not in frame:
            has = f"{suggestion(column, frame.columns)} It has {', '.join(frame.columns)}"
            raise InputError(f"dataset.{key}: {file.name} has no column {column!r}{has}")
        if len(empty := np.flatnonzero(frame[column].isna())):
            raise InputError(f"dataset.{key}: column {column!r} of {file.name} has no value in row {empty[0] + 1}")


def refuse_missing(frame: pd.DataFrame, what_to_do: str) -> None:
    """Raise ``InputError`` naming the columns with missing values, and the number of rows."""
    counts = {name: count for name, count in frame.isna().sum().items() if count}
    if counts:
        found = ", ".join(f"{name} ({count} row{'s' if count > 1 else ''})" for name, count in counts.items())
        is_text = any(_is_text(frame[name]) for name in counts)
        others = ", or set dataset.missing_texts if texts such as NA and None are values" if is_text else ""
        raise InputError(f"the table has missing values: {found}; {what_to_do}{others}")


def numbers(frame: pd.DataFrame, advice: str = _NO_NUMBERS) -> np.ndarray:
    """The columns as float64, shape (n, k); NaN where a value is missing.

    Raises
    ------
    InputError
        Naming the column that holds something else, or infinite values.
    """
    for name, values in frame.items():
        if not (is_numeric_dtype(values) or values.isna().all()):
            row, example = _no_number(values)
            found = f"{values.dtype}, e.g. {shortened(repr(example))} in row {row}"
            raise InputError(f"column {name} holds {found}, expected numbers; {_decimals(example)}{advice}")
    found = frame.to_numpy(np.float64, na_value=np.nan)
    if infinite := [name for name, column in zip(frame, found.T, strict=True) if np.isinf(column).any()]:
        raise InputError(f"the table has infinite values: {', '.join(infinite)}; remove those rows")
    return found


def targets(frame: pd.DataFrame, columns: list[str], task: str) -> np.ndarray:
    """One target as it is, shape (n,), or several as numbers, shape (n, k).

    Raises
    ------
    InputError
        For missing values, values that are neither numbers nor strings, and strings that are rather numbers or dates
        than classes, unless ``task`` says which.
    """
    require(frame, columns, "set target")
    refuse_missing(frame[columns], "targets are not imputed: remove those rows")
    if len(columns) > 1:
        return numbers(frame[columns], "several targets are numbers, and classes a single target")
    values = frame[columns[0]]
    if values.dtype.kind in _TARGETS:
        return values.to_numpy(_TARGETS[values.dtype.kind])
    if is_numeric_dtype(values) or task == "regression":
        return numbers(frame[columns], "targets of a regression are numbers")[:, 0]
    if not _is_text(values):
        found = shortened(repr(values.iloc[0]))
        raise InputError(f"column {values.name} holds {found}, expected one number or string in each row as target")
    texts = as_texts(values)
    if task == "auto":
        _check_texts(texts, 1.0, "set dataset.task=classification if these are classes, else write numbers")
    return texts.to_numpy(dtype=str)


def weights(frame: pd.DataFrame, column: str) -> np.ndarray:
    """Weights of the points, shape (n,)."""
    refuse_missing(frame[[column]], "weights are not imputed: remove those rows")
    found = numbers(frame[[column]], "weights are numbers >= 0")[:, 0]
    if found.min() < 0:
        raise InputError(f"column {column} (weight) expected numbers >= 0, found others")
    return found


def as_texts(values: pd.Series) -> pd.Series:
    """A column as strings, whole numbers without decimals; missing values stay so."""
    return values.astype(object).convert_dtypes().astype("string").astype(object)


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """The numbers that the columns of a data frame become, by name and in any order: the first step of a pipeline.

    Numbers and truth values stay one column, imputed by SimpleImputer; a category becomes one column of 0 and 1 for
    each of its values, by OneHotEncoder. Missing categories and those that ``fit`` has not seen are zeros in all of
    them, and a warning counts the latter.

    Parameters
    ----------
    missing, categories : see :class:`~orbit.data.Table`

    Attributes
    ----------
    categories_ : dict of str to list of str
        The values of each column of categories.
    encoder_ : ColumnTransformer

    Examples
    --------
    >>> frame = pd.DataFrame({"width": [1.0, None], "kind": ["cat", "owl"]})
    >>> encoder = TableEncoder("mean", "onehot").fit(frame)
    >>> encoder.transform(frame[["kind", "width"]])
    array([[1., 1., 0.],
           [1., 0., 1.]])
    >>> encoder.get_feature_names_out()
    array(['width', 'kind_cat', 'kind_owl'], dtype=object)
    """

    missing: Literal["refuse", "mean", "median"] = "refuse"
    categories: Literal["refuse", "onehot"] | list[str] = "refuse"

    def fit(self, X: pd.DataFrame, y: Any = None) -> TableEncoder:
        """Find the columns, their values for imputation and their categories.

        Raises
        ------
        InputError
            Naming the columns that hold no numbers, no categories, or no values.
        """
        frame = plain(X)
        if empty := [name for name in frame if frame[name].isna().all()]:
            raise InputError(f"dataset.features: {', '.join(empty)} has no value in the training part; leave it out")
        self.feature_names_in_, self.n_features_in_ = frame.columns.to_numpy(object), frame.shape[1]
        self.categories_ = {name: self._categories(frame[name]) for name in self._texts(frame)}
        self.encoder_ = self._encoder().fit(self._values(frame))
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """The numbers, float64, shape (n, columns).

        Raises
        ------
        InputError
            Naming the columns that are missing, hold no numbers, or lack values that are not imputed.
        """
        check_is_fitted(self)
        if not isinstance(X, pd.DataFrame):
            names = ", ".join(self.feature_names_in_)
            raise InputError(f"expected a data frame with the columns {names}, found {type(X).__name__}")
        return self.encoder_.transform(self._values(plain(X)))

    def inverse_transform(self, X: np.ndarray) -> pd.DataFrame:
        """Rows from numbers, shape (n, columns); an empty string where no category is set."""
        table, start = {}, 0
        for name, width in self.widths().items():
            block, start = X[:, start : start + width], start + width
            known = np.array(self.categories_.get(name, []), dtype=object)
            table[name] = np.where(block.any(1), known[block.argmax(1)], "") if len(known) else block[:, 0]
        return pd.DataFrame(table)

    def widths(self) -> dict[str, int]:
        """How many columns of numbers each column becomes."""
        return {name: len(self.categories_.get(name, [name])) for name in self.feature_names_in_}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        check_is_fitted(self)
        return self.encoder_.get_feature_names_out(input_features)

    def _texts(self, frame: pd.DataFrame) -> list[str]:
        if isinstance(self.categories, list):
            require(frame, self.categories, "set dataset.categories")
            return self.categories
        return [name for name in frame if _is_text(frame[name])] if self.categories == "onehot" else []

    def _categories(self, values: pd.Series) -> list[str]:
        texts = as_texts(values)
        known = sorted(texts.dropna().unique())
        if self.categories == "onehot":
            _check_texts(texts, 0.5, f"{_NO_CATEGORIES}dataset.categories=[{values.name}]")
        if len(known) > _MOST_CATEGORIES:
            raise InputError(
                f"column {values.name} has {len(known):,} different values, expected at most {_MOST_CATEGORIES:,} "
                "categories; leave it out with dataset.exclude"
            )
        return known

    def _encoder(self) -> ColumnTransformer:
        """One step for each run of columns of one kind, so that the columns keep their order."""
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OneHotEncoder

        steps: list[tuple[str, Any, list[str]]] = []
        for is_text, run in groupby(self.feature_names_in_, self.categories_.__contains__):
            names, step = list(run), "passthrough" if self.missing == "refuse" else SimpleImputer(strategy=self.missing)
            if is_text:
                known = [self.categories_[name] for name in names]
                step = OneHotEncoder(categories=known, handle_unknown="ignore", sparse_output=False)
            steps.append((str(len(steps)), step, names))
        return ColumnTransformer(steps, verbose_feature_names_out=False)

    def _values(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns: numbers as float64, categories as strings."""
        require(frame, self.feature_names_in_, "the model was fitted to it")
        frame = frame[list(self.feature_names_in_)]
        if self.missing == "refuse":
            refuse_missing(frame, REMOVE)
        texts = {name: as_texts(frame[name]) for name in self.categories_}
        self._warn_of_others(texts)
        plain_numbers = frame.drop(columns=list(texts))
        return pd.DataFrame(numbers(plain_numbers), frame.index, plain_numbers.columns).assign(**texts)

    def _warn_of_others(self, texts: dict[str, pd.Series]) -> None:
        found = []
        for name, values in texts.items():
            others = values[values.notna() & ~values.isin(self.categories_[name])]
            if count := len(others):
                example = shortened(repr(others.iloc[0]))
                found.append(f"{name} ({count} row{'s' if count > 1 else ''}, e.g. {example})")
        if found:
            warnings.warn(
                f"values that the training part does not have: {', '.join(found)}; they are encoded as zeros",
                stacklevel=2,
            )


def _is_text(values: pd.Series) -> bool:
    return infer_dtype(values) in ("string", "categorical")


def _check_texts(texts: pd.Series, share: float, advice: str) -> None:
    """Raise ``InputError`` for texts that are rather numbers, dates or names than categories.

    Such are texts of which at least a ``share`` are numbers, with a decimal point or comma; and more than 20 different
    ones in which there are digits, or that are more than half as many as the rows.
    """
    known = texts.dropna().drop_duplicates()
    row, example = _no_number(texts)
    if pd.to_numeric(texts.dropna().str.replace(",", "."), errors="coerce").notna().mean() >= share:
        found = "numbers as texts"
    elif len(known) > max(_FEW_CATEGORIES, len(texts) / 2):
        found = f"{len(known):,} different texts in {len(texts):,} rows"
    elif len(known) > _FEW_CATEGORIES and known.str.contains(r"\d").all():
        found = f"{len(known):,} different texts with digits"
    else:
        return
    raise InputError(
        f"column {texts.name} holds {found}, e.g. {shortened(repr(example))} in row {row}, expected few categories; "
        f"{_decimals(example)}{advice}"
    )


def _no_number(values: pd.Series) -> tuple[Any, Any]:
    """A row of a column and its value: the first that is no number, if there is one."""
    values = values.astype(object).dropna()
    others = values[pd.to_numeric(values, errors="coerce").isna()]
    return next((others if len(others) else values).items())


def _decimals(example: Any) -> str:
    """The advice to set ``decimal``, if an example is a number with the other decimal sign."""
    if not isinstance(example, str) or np.isnan(pd.to_numeric(example.replace(",", "."), errors="coerce")):
        return ""
    sign = "comma" if "," in example else "point"
    return f"set dataset.decimal={sign} if decimals begin with a {sign}, or "
