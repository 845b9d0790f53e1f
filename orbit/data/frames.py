"""Tables with named columns, and the numbers that their columns become."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import OneHotEncoder

from orbit.core.errors import DataFileError, InputError, shortened, suggestion
from orbit.data.base import Column
from orbit.data.csv_files import Csv, read_csv

_PARQUET = (".parquet", ".pq")

#: What to do about missing features.
REMOVE = "remove those rows, or impute them with missing='mean' or missing='median'"

# Columns of one categorical column: more are rather names or free text.
_MOST_CATEGORIES = 1000


@dataclass(frozen=True)
class Values:
    """The features of some rows, by column.

    Attributes
    ----------
    numbers : dict of float64 arrays, shape (n,)
        NaN where a value is missing.
    texts : dict of object arrays, shape (n,)
        Strings, None where a value is missing.
    """

    numbers: Mapping[str, np.ndarray]
    texts: Mapping[str, np.ndarray]

    def take(self, rows: np.ndarray) -> Values:
        """Some of the rows, by index."""
        numbers = {name: values[rows] for name, values in self.numbers.items()}
        return Values(numbers, {name: values[rows] for name, values in self.texts.items()})


@dataclass(frozen=True)
class Encoding:
    """The numbers that the columns of a table become, determined from its training part.

    Attributes
    ----------
    features : list of str
        The columns, in their order.
    fill : dict of str to float
        Imputation values of columns of numbers; empty where missing values are refused.
    categories : dict of str to list of str
        The values of each categorical column, which become one column of 0 and 1 each.
    """

    features: list[str]
    fill: dict[str, float]
    categories: dict[str, list[str]]

    @classmethod
    def of(cls, features: list[str], train: Values, missing: Literal["refuse", "mean", "median"]) -> Encoding:
        """The encoding of a training part.

        Raises
        ------
        InputError
            For a column without a value, or a categorical one with more than 1000 different values.
        """
        everything = {**train.numbers, **{name: _codes(values) for name, values in train.texts.items()}}
        if empty := [name for name in features if np.isnan(everything[name]).all()]:
            raise InputError(f"features: {', '.join(empty)} has no value in the training part; leave it out")
        statistic = np.nanmedian if missing == "median" else np.nanmean
        numbers = {} if missing == "refuse" else train.numbers
        fill = {name: _without_overflow(statistic, values) for name, values in numbers.items()}
        categories = {name: sorted({*values} - {None}) for name, values in train.texts.items()}
        for name, values in categories.items():
            if len(values) > _MOST_CATEGORIES:
                raise InputError(
                    f"features: {name} has {len(values):,} different values, categories='onehot' takes at most "
                    f"{_MOST_CATEGORIES:,}; leave it out"
                )
        return cls(features, fill, categories)

    def encode(self, values: Values, where: str) -> np.ndarray:
        """The numbers of some rows, float64, shape (n, columns).

        Missing and unknown categories are zeros in all their columns. A warning names the columns with unknown ones,
        and ``where`` the rows are from.
        """
        unknown = {name: _unknown(values.texts[name], known) for name, known in self.categories.items()}
        if found := [f"{name} ({text})" for name, text in unknown.items() if text]:
            warnings.warn(
                f"{where} has values that the training part does not have: {', '.join(found)}; they are encoded as "
                "zeros",
                stacklevel=2,
            )
        return np.column_stack([self._block(values, name) for name in self.features])

    def _block(self, values: Values, name: str) -> np.ndarray:
        if name not in self.categories:
            numbers = values.numbers[name]
            return np.where(np.isnan(numbers), self.fill[name], numbers) if name in self.fill else numbers
        if not len(values.texts[name]):  # which scikit-learn refuses
            return np.zeros((0, len(self.categories[name])))
        known = np.array(self.categories[name], dtype=object)[:, None]
        encoder = OneHotEncoder(categories=[known[:, 0]], handle_unknown="ignore", sparse_output=False).fit(known)
        return encoder.transform(values.texts[name][:, None])

    def decode(self, X: np.ndarray) -> pd.DataFrame:
        """The inverse of :meth:`encode`: rows from numbers, shape (n, columns); None where no category is set."""
        table, start = {}, 0
        for column in self.columns():
            block = X[:, start : start + column.width]
            start += column.width
            if column.name in self.categories:
                known = np.array([*column.categories, None], dtype=object)
                table[column.name] = known[np.where(block.any(1), block.argmax(1), -1)]
            else:
                table[column.name] = block[:, 0].astype(np.float64)
        return pd.DataFrame(table)

    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(name, tuple(self.categories.get(name, ()))) for name in self.features)


def _without_overflow(statistic: Callable[[np.ndarray], float], values: np.ndarray) -> float:
    """A mean or median of numbers whose sum may exceed float64."""
    exponent = np.frexp(np.nanmax(np.abs(values)))[1]
    return float(np.ldexp(statistic(np.ldexp(values, -exponent)), exponent))


def _codes(texts: np.ndarray) -> np.ndarray:
    """0.0 for a text, NaN for a missing one."""
    return np.where(texts == None, np.nan, 0.0)  # noqa: E711  of every entry


def _unknown(texts: np.ndarray, known: Sequence[str]) -> str:
    """The number of rows with texts that are not known, and one of them; empty if there are none."""
    expected = {*known, None}
    found = [text for text in texts if text not in expected]
    rows = f"{len(found)} row{'s' if len(found) > 1 else ''}"
    return f"{rows}, e.g. {shortened(repr(found[0]))}" if found else ""


class NamedColumns(TransformerMixin, BaseEstimator):
    """First step of a pipeline that takes data frames: their columns by name, in any order, become numbers.

    Parameters
    ----------
    encoding : Encoding
    imputes : bool
        Whether missing values are imputed, as in training; else they are refused.
    """

    def __init__(self, encoding: Encoding, imputes: bool) -> None:
        self.encoding = encoding
        self.imputes = imputes

    def fit(self, X: Any = None, y: Any = None) -> NamedColumns:
        """Nothing to fit; for pipelines."""
        return self

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """The numbers, float64, shape (n, columns).

        Raises
        ------
        InputError
            Naming the columns that are missing, hold no numbers, or lack values that are not imputed.
        """
        if not isinstance(X, pd.DataFrame):
            names = ", ".join(self.encoding.features)
            raise InputError(f"expected a data frame with the columns {names}, found {type(X).__name__}")
        frame = Frame(X.infer_objects(), "the table")
        frame.check_names(X.columns)
        return frame.encoded(self.encoding, self.imputes)

    def __sklearn_is_fitted__(self) -> bool:
        return True


# A column of strings with at most this number of different values is categorical, also if most of them are numbers.
_FEW_VALUES = 20

#: What to do about a column that holds no numbers, where categories are encoded.
CORRECT = "leave it out of features, or make all of its values numbers"

_ADVICE = (
    "list the columns to learn from in features, leave it out with exclude, convert it to numbers, or encode columns "
    "of strings with categories='onehot'"
)

# What to do about columns of numbers whose decimals begin with another sign, of divided thousands, and of dates.
_DISGUISED = {
    "comma": "set decimal='comma' if decimals begin with a comma, remove commas that divide thousands, or set "
    "decimal='point' if these are texts",
    "point": "set decimal='point' if decimals begin with a point, or remove points that divide thousands",
    "thousands": "remove the signs that divide thousands",
    "dates": "write numbers in place of dates, such as days since a first day",
}

# Kinds that give a warning -> their names in it.
_WARNED = {"thousands": "numbers with signs that divide thousands", "dates": "dates"}

# The decimal sign of a file -> name and character of the other one.
_OTHERS: dict[str | None, tuple[str, str]] = {None: ("comma", ","), "comma": ("point", ".")}

# A number, whose decimals begin with this sign; one whose thousands are divided, by a point, a comma, one of several
# spaces or an apostrophe; a date, such as 2026-01-31 or 31.1.26, perhaps with a time.
_NUMBER = r"\s*[+-]?(?:\d+(?:{0}\d*)?|{0}\d+)(?:[eE][+-]?\d+)?\s*"
_DIVIDED = (
    r"\s*[+-]?[1-9]\d{0,2}"
    r"(?:(?:\.\d{3})+(?:,\d+)?|(?:,\d{3})+(?:\.\d+)?|([ \u00a0\u202f'’])\d{3}(?:\1\d{3})*(?:[.,]\d+)?)\s*"
)
_PLAIN = r"\s*[+-]?\d*[.,]?\d+\s*"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"  # of a month, or a month
_DATE = rf"\s*(?:\d{{4}}([-./]){_DAY}\1{_DAY}|{_DAY}([-./]){_DAY}\2(?:\d{{4}}|\d{{2}}))(?:[ T]\d{{1,2}}:.*)?\s*"


# What pandas calls Python objects that are numbers.
_NUMBERS = ("integer", "decimal", "floating", "mixed-integer-float")


class Frame:
    """A table.

    Parameters
    ----------
    frame : DataFrame
    where : str
        Its name for error messages.
    csv : Csv or None
        How its file was written; None if it has types of its own.
    """

    def __init__(self, frame: pd.DataFrame, where: str, csv: Csv | None = None) -> None:
        self.frame, self.where, self.csv = frame, where, csv

    @classmethod
    def read(
        cls, file: Path, where: str, csv: Csv | None = None, texts: Iterable[str] = (), labels: Iterable[str] = ()
    ) -> Frame:
        """Read a CSV or Parquet file.

        Parameters
        ----------
        file : Path
        where : str
            Its name in error messages.
        csv : Csv or None
            How a CSV file is written; None: as is found.
        texts : iterable of str
            Columns of a CSV file that are read as strings, also where all values are digits.
        labels : iterable of str
            Columns of a CSV file that are read as strings if a value has a leading zero, such as 007.

        Raises
        ------
        DataFileError, InputError
            If it cannot be read, may have one of several separators, or has several columns of one name.
        """
        csv = None if file.suffix.lower() in _PARQUET else csv or Csv()
        options: dict[str, Any] = {}
        try:
            if csv is None:
                frame = pd.read_parquet(file)
                names = frame.columns = frame.columns.map(str)  # of several levels, too
            else:
                options = csv.options(file, where)
                frame, names = read_csv(file, where, options, texts, labels)
        except InputError:
            raise
        except Exception as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            advice = f"; separator is {options['sep']!r}" if "sep" in options else ""
            if csv is not None and isinstance(error, UnicodeError):
                advice = "; set encoding to that of the file, such as encoding='latin-1'"
            raise DataFileError(f"{where} is not a readable .csv or .parquet file ({reason}){advice}") from error
        made = cls(frame, where, csv)
        made.check_names(names)
        return made

    def check_names(self, names: Any) -> None:
        """Raise ``InputError`` for several columns of one name."""
        if names.duplicated().any():
            hint = "" if self.csv is None else "; the first line of the file has to name the columns"
            twice = ", ".join(names[names.duplicated()])
            raise InputError(f"{self.where} has several columns of one name: {twice}{hint}")

    def require(self, columns: Sequence[str], what_to_do: str) -> None:
        """Raise ``InputError`` naming the columns that are missing."""
        lacking = [column for column in columns if column not in self.frame]
        if lacking:
            close = suggestion(lacking[0], self.frame.columns) if len(lacking) == 1 else "."
            raise InputError(
                f"{self.where} has no column {', '.join(lacking)}{close} It has {', '.join(self.frame.columns)}; "
                f"{what_to_do}"
            )

    def refuse_others(self, known: Sequence[str | None]) -> None:
        """Raise ``InputError`` naming the columns that are not in ``known``."""
        others = [column for column in self.frame if column not in known]
        if others:
            raise InputError(
                f"{self.where} has columns that the model was not fitted to: {', '.join(others)}; leave them out"
            )

    def categorical(self, columns: Sequence[str]) -> list[str]:
        """The columns among ``columns`` that hold strings or categories.

        If more than half of its values are numbers, a column is one only if it has at most 20 different values and each
        value that is no number occurs at least twice; a single one may be a typing error.
        """
        return [column for column in columns if _is_categorical(self.frame[column])]

    def check_texts(self, columns: Sequence[str], targets: bool = False) -> None:
        """Refuse numbers with other signs, or warn of them and of dates, in columns that are taken for categories.

        Parameters
        ----------
        columns : sequence of str
        targets : bool
            Whether they are targets, and would be taken for classes.

        Raises
        ------
        InputError
            For a column of a CSV file whose values all are numbers, some of them with a decimal comma, unless
            ``decimal`` says what decimals begin with; or some with a decimal point, if it says a comma; or some with
            signs that divide thousands, unless it says a point, which gives a warning. So do other files.
        """
        texts_are_meant = self.csv is None or self.csv.decimal == "point"
        for column in columns:
            kind, example = self._disguised(column)
            if not kind:
                continue
            found = f"{self.where}: column {column} holds"
            advice = _DISGUISED[kind] if targets else _what_to_do(kind, column)
            if kind != "dates" and not texts_are_meant:
                raise InputError(f"{found} {example}, expected numbers; {advice}")
            taken = f"which are taken for {'classes' if targets else 'categories'}"
            warnings.warn(f"{found} {_WARNED[kind]}, e.g. {example}, {taken}; {advice}", stacklevel=2)

    def values(self, columns: Sequence[str], texts: Sequence[str], advice: str = _ADVICE) -> Values:
        """The columns, those of ``texts`` as strings and the others as numbers."""
        numeric = [column for column in columns if column not in texts]
        numbers = self.numbers(numeric, advice)
        return Values(dict(zip(numeric, numbers.T, strict=True)), {column: self._strings(column) for column in texts})

    def encoded(self, encoding: Encoding, imputes: bool) -> np.ndarray:
        """The numbers that a model was fitted to, shape (n, columns); missing values are refused unless imputed."""
        self.require(encoding.features, "the model was fitted to it")
        values = self.values(encoding.features, list(encoding.categories))
        if not imputes:
            self.refuse_missing(encoding.features, REMOVE)
        return encoding.encode(values, self.where)

    def numbers(self, columns: Sequence[str], advice: str = _ADVICE) -> np.ndarray:
        """The columns as float64, shape (n, len(columns)); NaN where a value is missing."""
        self.require(columns, "every part needs it")
        for column in columns:
            values = self.frame[column]
            if not (_are_numbers(values) or _are_truth_values(values) or values.isna().all()):
                text = values[_parsed(values).isna() & values.notna()]
                example = f", e.g. {shortened(repr(text.iloc[0]))} in row {text.index[0]}" if len(text) else ""
                found = f"{self.where}: column {column} holds {values.dtype}{example}"
                kind = self._disguised(column)[0]
                what_to_do = _what_to_do(kind, column) if kind else advice
                raise InputError(f"{found}, expected numbers; {what_to_do}")
        numbers = self.frame[list(columns)].to_numpy(dtype=np.float64, na_value=np.nan)
        infinite = [f"{name} ({count})" for name, count in zip(columns, np.isinf(numbers).sum(0), strict=True) if count]
        if infinite:
            raise InputError(f"{self.where} has infinite values: {', '.join(infinite)}; remove those rows")
        return numbers

    def targets(self, columns: Sequence[str]) -> np.ndarray:
        """One target unchanged, shape (n,); several as numbers, shape (n, k)."""
        self.require(columns, "set target")
        self.refuse_missing(columns, "targets are not imputed: remove those rows")
        if len(columns) > 1:
            return self.numbers(columns, "several targets are numbers, and classes a single target")
        values = self.frame[columns[0]]
        if pd.api.types.is_bool_dtype(values):
            return values.to_numpy(dtype=bool)
        if pd.api.types.is_integer_dtype(values):
            return values.to_numpy(dtype=np.uint64 if pd.api.types.is_unsigned_integer_dtype(values) else np.int64)
        if pd.api.types.is_numeric_dtype(values):
            return self.numbers(columns)[:, 0]
        return self.labels(columns[0], "target", (str, bool, int, float, np.integer))

    def labels(self, column: str, what: str, types: tuple[type, ...] = (object,)) -> np.ndarray:
        """The values of a column as strings, shape (n,).

        Parameters
        ----------
        column : str
        what : str
            What the column is, for errors.
        types : tuple of type
            What a value may be, unless they are categories.

        Raises
        ------
        InputError
            For missing values, lists and values of other types, naming the column.
        """
        self.require([column], f"set {what}")
        self.refuse_missing([column], "remove those rows")
        values = self.frame[column]
        plain = isinstance(values.dtype, pd.CategoricalDtype)
        other = next((v for v in values if not (pd.api.types.is_scalar(v) and (plain or isinstance(v, types)))), None)
        if other is not None:
            found = f"column {column} holds {shortened(repr(other))}"
            raise InputError(f"{self.where}: {found}, expected one number or string in each row as {what}")
        return values.to_numpy(dtype=str)

    def weights(self, column: str) -> np.ndarray:
        """Weights of the points, shape (n,)."""
        self.refuse_missing([column], "weights are not imputed: remove those rows")
        weights = self.numbers([column], "weights are numbers >= 0")[:, 0]
        if not (np.isfinite(weights).all() and weights.min() >= 0):
            raise InputError(f"{self.where}: column {column} (weight) expected numbers >= 0, found others")
        return weights

    def refuse_missing(self, columns: Sequence[str], what_to_do: str) -> None:
        """Raise ``InputError`` naming the columns with missing values, and the number of rows."""
        counts = {column: int(self.frame[column].isna().sum()) for column in columns}
        found = [f"{column} ({count} row{'s' if count > 1 else ''})" for column, count in counts.items() if count]
        texts = [
            column
            for column, count in counts.items()
            if count and not pd.api.types.is_numeric_dtype(self.frame[column])
        ]
        if texts and self.csv is not None and self.csv.missing is None:
            what_to_do += ", or set missing_texts if texts such as NA and None are values"
        if found:
            raise InputError(f"{self.where} has missing values: {', '.join(found)}; {what_to_do}")

    def _disguised(self, column: str) -> tuple[str, str]:
        """The kind of a column that was read as texts: numbers with a ``comma``, a ``point``, ``thousands``; ``dates``.

        Returns
        -------
        such a word, or an empty text, and a value of the column
        """
        values = self.frame[column].dropna()
        if pd.api.types.is_datetime64_any_dtype(values):
            return "dates", str(next(iter(values), ""))
        if not len(values) or not pd.api.types.is_string_dtype(values):
            return "", ""
        texts = values.astype(str)
        if self.csv is not None and self.csv.decimal in _OTHERS:
            other, sign = _OTHERS[self.csv.decimal]
            signed = texts[texts.str.contains(sign, regex=False)]
            if len(signed) and texts.str.fullmatch(_NUMBER.format(re.escape(sign))).all():
                return other, repr(signed.iloc[0])
        divided = texts[texts.str.fullmatch(_DIVIDED)]
        if len(divided) and texts.str.fullmatch(f"{_DIVIDED}|{_PLAIN}").all():
            return "thousands", repr(divided.iloc[0])
        return ("dates", repr(texts.iloc[0])) if texts.str.fullmatch(_DATE).all() else ("", "")

    def _strings(self, column: str) -> np.ndarray:
        """A column as strings, None where a value is missing, shape (n,)."""
        self.require([column], "every part needs it")
        return np.array([None if pd.isna(value) else _text(value) for value in self.frame[column]], dtype=object)


def _what_to_do(kind: str, column: str) -> str:
    """Advice about a feature of a kind of ``_DISGUISED``, with the column's name if a shell needs no quotes for it."""
    if kind not in _WARNED:
        return _DISGUISED[kind]
    name = f"=[{column}]" if column.isascii() and column.isidentifier() else ""
    return f"{_DISGUISED[kind]}, or leave it out with exclude{name}"


def _text(value: Any) -> str:
    """A value as text; truth values in the form that pandas gives to those of a CSV file that it recognises."""
    text = str(value)
    return text.capitalize() if text.lower() in ("true", "false") else text


def _are_numbers(values: pd.Series) -> bool:
    """Whether a column holds numbers, also as Python objects: decimals, and integers beyond 64 bits."""
    return pd.api.types.is_numeric_dtype(values) or pd.api.types.infer_dtype(values) in _NUMBERS


def _are_truth_values(values: pd.Series) -> bool:
    """Whether a column holds truth values, which are Python objects if some are missing."""
    return pd.api.types.infer_dtype(values) == "boolean"


def _is_categorical(values: pd.Series) -> bool:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return not values.isna().all()
    holds_objects = pd.api.types.is_object_dtype(values) or pd.api.types.is_string_dtype(values)
    if not holds_objects or values.isna().all() or _are_numbers(values):
        return False
    if not all(pd.api.types.is_scalar(value) for value in values):
        return False
    numbers, present = int(_parsed(values).notna().sum()), int(values.notna().sum())
    if not present / 2 < numbers < present:
        return True
    others = values[_parsed(values).isna()].value_counts()
    return values.nunique() <= _FEW_VALUES and others.min() > 1  # what is there once may be a typing error


def _parsed(values: pd.Series) -> Any:
    """The values as numbers, NaN for those that are none."""
    plain = values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values
    return pd.to_numeric(plain, errors="coerce")
