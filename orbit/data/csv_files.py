"""CSV files: how one is written, its separator and encoding where they are not given, and the table in it."""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Iterable
from csv import QUOTE_NONE
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from orbit.core.errors import DataFileError, InputError

log = logging.getLogger(__name__)

# Separators of columns that are detected.
_SEPARATORS = {",": ",", ";": ";", "\t": "a tab", "|": "|"}

# Lines by which a separator is chosen if the line of column names has several.
_LINES_TRIED = 21

# A quoted entry, which the last of these lines may leave open.
_QUOTED = re.compile(r'(?<![^,;\t|\n])"(?:[^"]|"")*(?:"(?![^,;\t|\n])|\Z)')

# Byte order mark at the beginning of a file -> encoding.
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

# How a file that is no text begins -> what it is, and what to do.
_NO_TEXT = {
    b"PK\3\4": "an archive, such as .xlsx, .ods or .npz; save a spreadsheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet; save it as CSV",
    b"PAR1\x15": "a Parquet file; let its name end in .parquet",
    b"\x93NUM": "an .npy file; save its array as CSV, with a line of column names",
}

# Two letters in UTF-16, in either byte order.
_UNMARKED = re.compile(rb"(?P<utf_16_le>(?:[^\0]\0){2})|(?P<utf_16_be>(?:\0[^\0]){2})", re.DOTALL)


@dataclass(frozen=True)
class Csv:
    """How a CSV file is written.

    Attributes
    ----------
    separator : str or None
        Between columns; None: the one of comma, semicolon, tab and vertical bar that the line of column names has.
    decimal : {"point", "comma"} or None
        What decimals begin with; None: a point, and columns of numbers with commas are refused.
    encoding : str or None
        One of Python's names; None: UTF-8, or UTF-16 with a byte order mark.
    missing : list of str or None
        Texts that stand for a missing value; None: those of pandas.
    """

    separator: str | None = None
    decimal: Literal["point", "comma"] | None = None
    encoding: str | None = None
    missing: list[str] | None = None

    def options(self, file: Path, where: str) -> dict[str, Any]:
        """Arguments of ``pandas.read_csv`` for a file; ``where`` is its name in error messages.

        Raises
        ------
        DataFileError
            If it is no text.
        InputError
            If its separator may be one of several, or it is UTF-16 without a byte order mark.
        """
        _check_text(file, where)
        encoding = self.encoding or _encoding(file, where)
        separator = _separator(file, where, encoding) if self.separator is None else self.separator
        separator = separator.replace("\\t", "\t")  # a tab, as it is written in a shell
        fast = len(separator) == 1 or separator == r"\s+"  # pandas has another parser for the others
        return {
            "na_values": self.missing,
            "keep_default_na": self.missing is None,
            "decimal": "," if self.decimal == "comma" else ".",
            "encoding": encoding,
            "sep": separator,
            "engine": "c" if fast else "python",
        }


def read_csv(
    file: Path, where: str, options: dict[str, Any], texts: Iterable[str], labels: Iterable[str]
) -> tuple[pd.DataFrame, pd.Series]:
    """The table in a CSV file, and the names of its columns as they are in the file; see :meth:`Frame.read`.

    Columns with neither a name nor a value, as of a separator at the end of each line, are left out.
    """
    whole = {"low_memory": False} if options["engine"] == "c" else {}  # a column has one type, not one for each chunk
    frame = pd.read_csv(file, dtype=dict.fromkeys(texts, str), **options, **whole).rename(columns=str)
    for column in labels:
        if column in frame and pd.api.types.is_integer_dtype(frame[column]):
            written = pd.read_csv(file, usecols=[column], dtype=str, **options)[column]
            if written.str.match(r"\s*[+-]?0\d").any():
                frame[column] = written
    # pandas renames a second "a" to "a.1"
    names = pd.read_csv(file, header=None, nrows=1, dtype=str, **options).iloc[0].fillna("")
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes the first column for row labels
        raise ValueError("its rows have more entries than the line of column names")
    unnamed = frame.loc[:, (names == "").to_numpy()]
    empty = unnamed.columns[(unnamed.isna() | (unnamed == "")).all()]
    if len(empty):
        log.info("%s: left out %s without a name and values", where, "a column" if len(empty) == 1 else "columns")
    return frame.drop(columns=empty), names[names != ""]


def _check_text(file: Path, where: str) -> None:
    """Raise ``DataFileError`` for spreadsheets and other files that are no text; pandas reads a CSV file in a .zip."""
    with open(file, "rb") as opened:
        start = opened.read(max(map(len, _NO_TEXT)))
    found = next((what for beginning, what in _NO_TEXT.items() if start.startswith(beginning)), None)
    if found is not None and file.suffix.lower() != ".zip":
        raise DataFileError(f"{where} is no CSV file but {found}")


def _encoding(file: Path, where: str) -> str:
    """The encoding that the first bytes of a file tell, else UTF-8.

    Raises
    ------
    InputError
        If they are UTF-16 without a byte order mark.
    """
    with open(file, "rb") as opened:
        start = opened.read(4)
    if unmarked := _UNMARKED.match(start):
        name = str(unmarked.lastgroup).replace("_", "-")
        raise InputError(
            f"encoding: expected UTF-8, or UTF-16 with a byte order mark, in {where}, found UTF-16 without it; set "
            f"encoding='{name}'"
        )
    return next((encoding for mark, encoding in _MARKS.items() if start.startswith(mark)), "utf-8")


def _separator(file: Path, where: str, encoding: str) -> str:
    """The separator that the line of column names has; of several, the one that the first rows have as well.

    Raises
    ------
    InputError
        If it may be one of several.
    """
    names, *rows = _unquoted(file, encoding)
    found = [separator for separator in _SEPARATORS if separator in names]
    if len(found) < 2:
        return found[0] if found else ","
    fitting = [
        separator
        for separator in found
        if not rows or max(row.count(separator) for row in rows) == names.count(separator)
    ]
    if len(fitting) == 1:
        return fitting[0]
    listed = " and ".join(_SEPARATORS[separator] for separator in found)
    raise InputError(f"separator: expected one that separates the columns of {where}, found several: {listed}")


def _unquoted(file: Path, encoding: str) -> list[str]:
    """The first lines of a CSV file, that of column names and some rows, without quoted entries."""
    whole = {"sep": "\x1f", "header": None, "usecols": [0], "quoting": QUOTE_NONE, "na_filter": False, "dtype": str}
    lines = pd.read_csv(file, nrows=_LINES_TRIED, encoding=encoding, **whole)
    return _QUOTED.sub("", "\n".join(lines[0])).split("\n")
