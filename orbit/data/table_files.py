"""CSV and Parquet files as tables, and how CSV files are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from orbit.core.errors import InputError
from orbit.data.files import readable
from orbit.data.frames import check_names, is_text, plain
from orbit.data.units import BLANKS, bare, numeric_columns, well_grouped

_PARQUET = (".parquet", ".pq")

# Suffixes of tables that are not read, and what they are.
_OTHERS = dict.fromkeys((".xls", ".xlsx", ".ods"), "a spreadsheet") | {
    ".json": "a JSON file",
    ".jsonl": "a JSON file",
    ".feather": "a Feather file",
    ".arrow": "an Arrow file",
    ".pkl": "a pickle",
    ".mat": "a MATLAB file",
    ".sav": "an SPSS file",
    ".dta": "a Stata file",
    ".rds": "an R file",
    ".star": "a STAR file (starfile.read reads it)",
}
_ARCHIVES = ".zip", ".gz", ".bz2", ".xz", ".zst", ".tar"

# What separates columns, in the order that it is tried, and rows that are read to find what decimals begin with.
_SEPARATORS, _SAMPLE = (",", ";", "\t", "|", r"\s+"), 1000

# Numbers with commas as thousands, with commas that decimals begin with, and with points or blanks between thousands.
_GROUPS = r"[1-9]\d{0,2}(\.\d{3})+"
_THOUSANDS, _COMMA = r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?", rf"({_GROUPS}|\d*),\d+([eE][+-]?\d+)?"
_POINTS, _BLANKS = r"[1-9]\d{0,2}(\.\d{3}){2,}", rf"[1-9]\d{{0,2}}([{BLANKS}]\d{{3}})+([.,]\d*)?"


def read_table(file: Path, texts: Iterable[str], labels: Sequence[str], options: dict[str, Any]) -> pd.DataFrame:
    """The table in a CSV or Parquet file, as :func:`~orbit.data.frames.plain` returns it.

    Parameters
    ----------
    file : Path
    texts : iterable of str
        Columns of a CSV file that are read as strings, also if all values are digits.
    labels : sequence of str
        Columns of a CSV file that are read as strings if a value has a leading zero, such as 007.
    options : dict
        Arguments of ``pandas.read_csv``, such as those of :func:`csv_options`.

    Raises
    ------
    DataFileError, InputError
        If it cannot be read, or has no rows or several columns of one name.
    """
    is_parquet = file.suffix.lower() in _PARQUET
    what, advice = "Parquet" if is_parquet else "CSV", ""
    if options.keys() >= {"sep", "encoding"} and not is_parquet:
        read = f"separator {options['sep']!r} and encoding {options['encoding']!r}"
        advice = f"; read with {read}: set dataset.separator, or dataset.encoding such as latin-1"
    with readable("expected", f"a readable {what} file", advice):
        if file.suffix.lower() in _OTHERS:
            raise ValueError(f"it is {_OTHERS[file.suffix.lower()]}; save it as CSV or Parquet")
        frame = plain(pd.read_parquet(file) if is_parquet else _csv(file, texts, labels, options))
    if not len(frame):
        raise InputError("the table has no rows, expected at least one")
    return frame


def _csv(file: Path, texts: Iterable[str], labels: Sequence[str], options: dict[str, Any]) -> pd.DataFrame:
    # by the fast parser a column would have one type for each chunk; it knows separators of one character only,
    # and of thousands of one byte
    is_known = options.get("sep", ",") in _SEPARATORS or len(options["sep"]) == 1
    is_known &= (options.get("thousands") or "").isascii()
    options = {"skipinitialspace": True} | options | ({"low_memory": False} if is_known else {"engine": "python"})
    frame = pd.read_csv(file, dtype=dict.fromkeys(texts, str), **options)
    names = pd.read_csv(file, header=None, nrows=1, dtype=str, **options).iloc[0].dropna()
    check_names(names[names != ""])  # pandas renames the second of two
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes the first column for names of rows
        raise ValueError("its rows have more entries than the line of column names")
    for column in labels:
        if column in frame and frame[column].dtype.kind == "i":
            written = pd.read_csv(file, usecols=[column], dtype=str, **options)[column]
            if written.str.match(r"\s*[+-]?0\d").any():
                frame[column] = written
    if "thousands" in options:
        written = pd.read_csv(file, dtype=str, **options)
        numeric = [name for name in frame if is_numeric_dtype(frame[name])]
        dates = [name for name in numeric if not well_grouped(written[name].dropna().astype(str), options).all()]
        frame = frame.assign(**{name: written[name] for name in dates})
    unnamed = [name for name in frame if name.startswith("Unnamed: ")]  # as of a separator at the end of each line
    return frame.drop(columns=[name for name in unnamed if (frame[name].isna() | (frame[name] == "")).all()])


def csv_options(
    file: Path, names: Iterable[str], texts: Iterable[str], given: Mapping[str, Any], fitted: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments of ``pandas.read_csv`` for a CSV file: those given, or as of the file ``fitted``, or found.

    The encoding is UTF-16 with its mark, else UTF-8, or Windows-1252 for what is no UTF-8. The separator is the first
    with which the line of names has all ``names``, or else that with which it has most. Numbers have decimal commas, or
    commas as thousands, if more columns (other than ``texts``) are numbers so.
    """
    signs = {key: fitted[key] for key in ("decimal", "thousands") if key in fitted}
    options = signs | {key: value for key, value in given.items() if value is not None}
    if file.suffix.lower() in (*_PARQUET, *_OTHERS):
        return options
    options.setdefault("encoding", _encoding(file))
    try:
        if "sep" not in options:
            tried = [*filter(None, [fitted.get("sep")]), *_SEPARATORS]
            options["sep"] = _separator(file, {*names}, tried, {"nrows": 0, "skipinitialspace": True} | options)
        if "decimal" not in options:
            options |= _signs(file, texts, options)
    except (ValueError, LookupError, OSError):  # which reading the whole file gives again
        pass
    return {"sep": ",", "decimal": "."} | options


def _separator(file: Path, names: set[str], tried: list[str], options: dict[str, Any]) -> str:
    """The first separator with which the header has all names; if none has, that with which it has most columns."""
    most, found = 0, tried[0]
    for sep in tried:
        header = {*pd.read_csv(file, sep=sep, **options).columns}
        if names and names <= header:
            return sep
        if len(header) > most:
            most, found = len(header), sep
    return found


def _encoding(file: Path) -> str:
    content = file.read_bytes()
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        content.decode()
    except UnicodeDecodeError:
        return "utf-8" if file.suffix.lower() in _ARCHIVES else "cp1252"
    return "utf-8"


def _signs(file: Path, texts: Iterable[str], options: dict[str, Any]) -> dict[str, str]:
    """What decimals begin with, and what separates thousands, if these are no points and nothing."""

    def sample(signs: dict[str, str], kept: Iterable[str] = texts) -> pd.DataFrame:
        how = {"skipinitialspace": True, "engine": "python"} | options | signs
        return pd.read_csv(file, nrows=_SAMPLE, dtype=dict.fromkeys(kept, str), **how)

    frame = sample({})
    words = pd.concat([values.dropna().astype(str) for _, values in frame.items() if is_text(values)] or [pd.Series()])
    written = bare(words.astype(str))
    with_commas = written[written.str.fullmatch(f"{_THOUSANDS}|{_COMMA}|{_POINTS}")]
    blanks = written[written.str.fullmatch(_BLANKS)].str.extract(rf"([{BLANKS}])")[0].unique()
    tried: list[dict[str, str]] = [{"decimal": sign, "thousands": blank} for blank in blanks for sign in (".", ",")]
    with_points = with_commas.str.contains(".", regex=False).any()
    if (with_points or options["sep"] == ",") and with_commas.str.fullmatch(_THOUSANDS).all():
        tried += [{"thousands": ","}]
    elif len(with_commas):
        points = "." if _separates_thousands(sample({}, frame)) else None
        tried += [{"decimal": ","}, *([{"decimal": ",", "thousands": points}] if points else [])]
    numeric = [numeric_columns(sample(signs), signs) for signs in ([{}, *tried] if tried else [])]
    return [{}, *tried][numeric.index(max(numeric))] if tried else {}


def _separates_thousands(texts: pd.DataFrame) -> bool:
    """Whether no number in texts has a point elsewhere than between thousands."""
    known = texts.stack().astype(str)
    with_point = known[known.str.contains(".", regex=False) & pd.to_numeric(known, errors="coerce").notna()]
    return bool(with_point.str.fullmatch(rf"[+-]?{_GROUPS}").all())
