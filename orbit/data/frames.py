"""Tables with named columns, read by pandas, and the numbers that scikit-learn's encoders make of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from orbit.core.errors import InputError, in_one_line, shortened, suggestion
from orbit.data.units import several_units, units_of, without_units

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer

#: What to do about missing features, and about columns that are no numbers.
REMOVE = "remove those rows, or impute them with dataset.missing=mean or dataset.missing=median"
NO_NUMBERS = (
    "leave it out with dataset.exclude, write numbers (such as days since a first day in place of dates), or name "
    "columns of categories in dataset.categories"
)

# What pandas calls Python objects that are numbers, such as decimals and integers beyond 64 bits.
_OF_NUMBERS = ("integer", "decimal", "floating", "mixed-integer-float", "boolean")

# What a column holds, and the share of numbers from which words among them are taken for missing values.
_NUMBERS, _CATEGORIES, _MOSTLY = "numbers", "categories", 0.5

# What has digits, and is no error of a spreadsheet such as #DIV/0!.
_DIGITS = r"^[^#]*\d"

# Different texts up to which a column of them is categorical, unless the user says so; and in any case.
_FEW_CATEGORIES, _MOST_CATEGORIES = 20, 1000

# Names of columns that are taken to number the rows if all values differ.
_ID = r"(?i:id|index|row|unnamed: 0|nr|no|number)|.*([^a-zA-Z](?i:id)|[a-z](Id|ID))"

_TARGETS: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.uint64}


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose names of columns are strings, and whose Python objects that are numbers are float64."""
    frame = frame.set_axis(frame.columns.map(str), axis=1)
    check_names(frame.columns)
    objects = {name: values for name, values in frame.items() if values.dtype == object}
    numbers = {name: values for name, values in objects.items() if infer_dtype(values) in _OF_NUMBERS}
    return frame.assign(
        **{name: values.where(values.notna(), np.nan).astype(float) for name, values in numbers.items()}
    )


def check_names(names: Any) -> None:
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
        several = ", or dataset.separator if these are several" if re.search("[,;|:\t]", "".join(frame.columns)) else ""
        found = f"{_listed(lacking)}{close} It has {_listed(frame.columns)}"
        raise InputError(f"the table has no column {found}; {what_to_do}{several}")


def require_values(frame: pd.DataFrame, columns: Iterable[tuple[str, str]], file: Path) -> None:
    """Raise ``InputError`` for a column that is missing or has empty entries; ``columns`` are pairs (key, name)."""
    for key, column in columns:
        if column not in frame:
            has = f"{suggestion(column, frame.columns)} It has {_listed(frame.columns)}"
            raise InputError(f"dataset.{key}: {file.name} has no column {column!r}{has}")
        if len(empty := np.flatnonzero(frame[column].isna())):
            raise InputError(f"dataset.{key}: column {column!r} of {file.name} has no value in row {empty[0] + 1}")


def _listed(columns: Iterable[str]) -> str:
    return shortened(in_one_line(", ".join(columns)))


def refuse_missing(frame: pd.DataFrame, what_to_do: str) -> None:
    """Raise ``InputError`` naming the columns with missing values, and the number of rows."""
    if counts := _rows_without(frame):
        found = ", ".join(f"{name} ({count})" for name, count in counts.items())
        has_texts = any(is_text(frame[name]) for name in counts)
        others = ", or set dataset.missing_texts if texts such as NA and None are values" if has_texts else ""
        raise InputError(f"the table has missing values: {found}; {what_to_do}{others}")


def numbers(frame: pd.DataFrame, advice: str = NO_NUMBERS) -> np.ndarray:
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


def units_of_targets(frame: pd.DataFrame, columns: list[str], task: str, signs: Mapping[str, str]) -> dict[str, str]:
    """The units of targets (:func:`~orbit.data.units.units_of`); a single one of few texts is classes, unless ``task``
    says otherwise."""
    found = units_of(frame[columns], signs)
    if len(columns) > 1 or task == "regression":
        return found
    return {name: unit for name, unit in found.items() if many_texts(as_texts(frame[name]))}


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
    if not is_text(values):
        found = shortened(repr(values.iloc[0]))
        raise InputError(f"column {values.name} holds {found}, expected one number or string in each row as target")
    texts = as_texts(values)
    if task == "auto" and (many := _as_numbers(texts) or many_texts(texts)):
        row, example = _no_number(texts)
        raise InputError(
            f"column {values.name} holds {many}, e.g. {shortened(repr(example))} in row {row}, expected few "
            f"categories; {_decimals(example)}set dataset.task=classification if these are classes, else write numbers"
        )
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


def column_kinds(frame: pd.DataFrame, categories: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The columns of categories, which are those listed and those with few words; and what others hold than numbers.

    >>> column_kinds(pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [None, None], "d": [[1], [2]]}), [])
    (['b'], {'c': 'no value', 'd': 'object, e.g. [1]'})
    """
    kinds = {name: _CATEGORIES if name in categories else _kind(values) for name, values in frame.items()}
    left_out = {str(name): kind for name, kind in kinds.items() if kind not in (_NUMBERS, _CATEGORIES)}
    return [str(name) for name, kind in kinds.items() if kind == _CATEGORIES], left_out


def _kind(values: pd.Series) -> str:
    """Numbers or categories, or what else the column holds."""
    if values.isna().all():
        return "no value"
    if is_numeric_dtype(values):
        return _NUMBERS
    _, example = _no_number(values)
    if not is_text(values):
        return f"{values.dtype}, e.g. {shortened(repr(example))}"
    texts = as_texts(values)
    known = texts.dropna().drop_duplicates()
    others = known[pd.to_numeric(known, errors="coerce").isna()]
    are_signs = not others.str.contains(r"\w").any()  # such as ?
    if (are_signs or len(known) > _FEW_CATEGORIES) and _share_of_numbers(texts) >= _MOSTLY:
        with_digits = others[others.str.contains(_DIGITS)]
        return f"numbers and texts, e.g. {_asked(with_digits.iloc[0])}" if len(with_digits) else _NUMBERS
    many = many_texts(texts)
    if many and (units := several_units(texts)):
        return f"numbers with several units, e.g. {units}"
    return _CATEGORIES if many is None else f"{many}, e.g. {shortened(repr(example))}"


def row_numbers(frame: pd.DataFrame) -> dict[str, str]:
    """Columns of integers that number the rows: those from 0 or 1 on, and different ones in a column named as an id."""
    integers = {str(name): values for name, values in frame.items() if values.dtype.kind in "iu"}
    first = {name: int(values.iloc[0]) for name, values in integers.items()}
    counted = [name for name in first if first[name] in (0, 1) and (integers[name].diff()[1:] == 1).all()]
    named = [name for name, values in integers.items() if re.fullmatch(_ID, name) and values.is_unique]
    return dict.fromkeys(named, "a different number in each row") | dict.fromkeys(counted, "the numbers of the rows")


def repeated_names(frame: pd.DataFrame, left_out: Iterable[str]) -> dict[str, int]:
    """How many different names are in columns with two rows or more for each of them, in the mean.

    Names are texts or integers in a column named as an id, and texts in those that are left out.
    """
    names = [name for name in frame if re.fullmatch(_ID, str(name)) or (name in left_out and is_text(frame[name]))]
    counts = {str(name): frame[name].nunique() for name in names if frame[name].dtype.kind not in "fb"}
    return {name: count for name, count in counts.items() if 1 < count <= frame[name].notna().sum() / 2}


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """The numbers that the columns of a data frame become, by name and in any order: the first step of a pipeline.

    Numbers and truth values stay one column, imputed by SimpleImputer; a category becomes one column of 0 and 1 for
    each of its values, by OneHotEncoder. Missing categories and those that ``fit`` has not seen are zeros in all of
    them, and a warning counts the latter. Where values are imputed, texts without digits are missing in a column of
    numbers.

    Parameters
    ----------
    missing : see :class:`~orbit.data.Table`
    categories : list of str
        The columns of categories.
    units : dict of str to str or None
        The unit of each column whose numbers have one (:func:`~orbit.data.units.units_of`); they may also lack it.
    signs : dict of str to str or None
        ``decimal`` and ``thousands``, by which numbers with units are read.

    Attributes
    ----------
    categories_ : dict of str to list of str
        The values of each column of categories.
    encoder_ : ColumnTransformer

    Examples
    --------
    >>> frame = pd.DataFrame({"width": [1.0, None], "kind": ["cat", "owl"]})
    >>> encoder = TableEncoder("mean", ["kind"]).fit(frame)
    >>> encoder.transform(frame[["kind", "width"]])
    array([[1., 1., 0.],
           [1., 0., 1.]])
    >>> encoder.get_feature_names_out()
    array(['width', 'kind_cat', 'kind_owl'], dtype=object)
    """

    missing: Literal["refuse", "mean", "median"] = "median"
    categories: Sequence[str] = ()
    units: Mapping[str, str] | None = None
    signs: Mapping[str, str] | None = None

    def fit(self, X: pd.DataFrame, y: Any = None) -> TableEncoder:
        """Find the values for imputation and the categories.

        Raises
        ------
        InputError
            Naming the columns that hold no numbers, too many categories, or no values.
        """
        frame = without_units(plain(X), self.units or {}, self.signs or {})
        require(frame, self.categories, "set dataset.categories")
        if empty := [name for name in frame if frame[name].isna().all()]:
            raise InputError(f"dataset.features: {', '.join(empty)} has no value in the training part; leave it out")
        self.feature_names_in_, self.n_features_in_ = frame.columns.to_numpy(object), frame.shape[1]
        self.categories_ = {name: _known(frame[name]) for name in self.categories}
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

    def count_missing(self, X: pd.DataFrame) -> dict[str, str]:
        """In how many rows each column has no value, such as ``3 rows``; without those that have all."""
        return _rows_without(self._columns(plain(X)))

    def _encoder(self) -> ColumnTransformer:
        """One step for each run of columns of one kind, so that the columns keep their order."""
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OneHotEncoder

        steps: list[tuple[str, Any, list[str]]] = []
        for is_category, run in groupby(self.feature_names_in_, self.categories_.__contains__):
            names, step = list(run), "passthrough" if self.missing == "refuse" else SimpleImputer(strategy=self.missing)
            if is_category:
                known = [self.categories_[name] for name in names]
                step = OneHotEncoder(categories=known, handle_unknown="ignore", sparse_output=False)
            steps.append((str(len(steps)), step, names))
        return ColumnTransformer(steps, verbose_feature_names_out=False)

    def _values(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns: numbers as float64, categories as strings."""
        frame = self._columns(frame)
        if self.missing == "refuse":
            refuse_missing(frame, REMOVE)
        texts = {name: as_texts(frame[name]) for name in self.categories_}
        self._warn_of_others(texts)
        plain_numbers = frame.drop(columns=list(texts))
        return pd.DataFrame(numbers(plain_numbers), frame.index, plain_numbers.columns).assign(**texts)

    def _columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns that were fitted, in numbers without words unless missing values are refused."""
        require(frame, self.feature_names_in_, "the model was fitted to it")
        frame = without_units(frame[list(self.feature_names_in_)], self.units or {}, self.signs or {})
        if self.missing == "refuse":
            return frame
        return frame.assign(
            **{
                name: _without_words(frame[name])
                for name in frame
                if name not in self.categories_ and is_text(frame[name])
            }
        )

    def _warn_of_others(self, texts: dict[str, pd.Series]) -> None:
        found = []
        for name, values in texts.items():
            others = values[values.notna() & ~values.isin(self.categories_[name])]
            if count := len(others):
                example = shortened(repr(others.iloc[0]))
                found.append(f"{name} ({_rows(count)}, e.g. {example})")
        if found:
            warnings.warn(
                f"values that the training part does not have: {', '.join(found)}; they are encoded as zeros",
                stacklevel=2,
            )


def _rows_without(frame: pd.DataFrame) -> dict[str, str]:
    """In how many rows each column has no value, of those that lack some."""
    return {str(name): _rows(int(count)) for name, count in frame.isna().sum().items() if count}


def _rows(count: int) -> str:
    return f"{count} row{'s' if count > 1 else ''}"


def is_text(values: pd.Series) -> bool:
    return infer_dtype(values) in ("string", "categorical")


def _known(values: pd.Series) -> list[str]:
    known = sorted(as_texts(values).dropna().unique())
    if len(known) > _MOST_CATEGORIES:
        raise InputError(
            f"column {values.name} has {len(known):,} different values, expected at most {_MOST_CATEGORIES:,} "
            "categories; leave it out with dataset.exclude"
        )
    return known


def _without_words(values: pd.Series) -> pd.Series:
    """Numbers, in which texts without digits are missing; as they are if there are others."""
    texts = values.where(values.isna() | values.astype(str).str.contains(_DIGITS))
    found = pd.to_numeric(texts, errors="coerce")
    return values if (found.isna() & texts.notna()).any() else found.astype(float)


def _share_of_numbers(texts: pd.Series) -> float:
    """The share of texts that are numbers, with a decimal point or comma."""
    return float(pd.to_numeric(texts.dropna().str.replace(",", "."), errors="coerce").notna().mean())


def _as_numbers(texts: pd.Series) -> str | None:
    return "numbers as texts" if _share_of_numbers(texts) == 1 else None


def many_texts(texts: pd.Series) -> str | None:
    """What texts are, if they are rather dates or names than categories.

    Such are more than 20 different ones in which there are digits, or that are more than half as many as the rows.
    """
    known = texts.dropna().drop_duplicates()
    if len(known) > min(max(_FEW_CATEGORIES, len(texts) / 2), _MOST_CATEGORIES):
        return f"{len(known):,} different texts"
    is_many = len(known) > _FEW_CATEGORIES and known.str.contains(r"\d").all()
    return f"{len(known):,} different texts with digits" if is_many else None


def _no_number(values: pd.Series) -> tuple[Any, Any]:
    """A row of a column and its value: the first that is no number, if there is one."""
    values = values.astype(object).dropna()
    others = values[pd.to_numeric(values, errors="coerce").isna()]
    return next((others if len(others) else values).items())


def _asked(example: str) -> str:
    """An example, and the setting that may make it a number."""
    advice = _decimals(example).partition(" if ")[0].removeprefix("set ")
    return shortened(repr(example)) + (advice and f": {advice}?")


def _decimals(example: Any) -> str:
    """The advice to set ``decimal``, if an example is a number with the other decimal sign."""
    if not isinstance(example, str) or np.isnan(pd.to_numeric(example.replace(",", "."), errors="coerce")):
        return ""
    sign = "comma" if "," in example else "point"
    return f"set dataset.decimal={sign} if decimals begin with a {sign}, or "
