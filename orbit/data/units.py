"""Numbers that a table has as texts: with one unit for a whole column, 47.6%, $1,234.50, 3 mg/l, or as limits, <0.5."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_numeric_dtype

#: Blanks and apostrophes that separate thousands.
BLANKS = " \u00a0\u202f'\u2019"

_MINUS = "\u2212"  # of typesetting
_LIMIT = "[<>\u2264\u2265]=?"  # of what an instrument detects
_NUMBER = rf"[.,]?\d(?:[\d.,{BLANKS}]*\d)?\.?(?:[eE][+-]?\d+)?"
_BEFORE, _AFTER = r"[A-Z]{0,3}[$€£¥₹]", r"(?![dDeE][+-]?\d)(?:/[^\W\d]|[^\d\s.,;:/+\-'\u2019\u2212()]).*?"
_SIGN = rf"(?:{_LIMIT})?\s*(?P<sign>[+\-{_MINUS}]?)"
_WRITTEN = rf"\s*{_SIGN}\s*(?P<before>{_BEFORE})?\s*(?P<number>{_NUMBER})\s*(?P<after>{_AFTER})?\s*"

# A column is tried on its first texts, and is one of numbers from this share of them on.
_FIRST, _MOSTLY = 50, 0.5

# Numbers that often stand for missing values: below numbers that are not negative, or far above all others.
_LOW, _HIGH, _FAR = (-9, -99, -999, -9999, -99999), (999, 9999, 99999), 3


def units_of(frame: pd.DataFrame, signs: Mapping[str, str]) -> dict[str, str]:
    """The unit of each column of texts that are numbers with one and the same unit, but for texts without digits.

    A unit is a sign of a currency before the number, or what follows it; 0 may lack it. It is empty where a minus sign
    of typesetting, or the sign of a limit such as ``<0.5`` in at most half of the texts, is all there is to remove.
    ``signs`` are ``decimal`` and ``thousands`` as pandas takes them.

    >>> units_of(pd.DataFrame({"price": ["$1,200.50", "$7"], "dose": ["3 mg", "2 g"]}), {"thousands": ","})
    {'price': '$'}
    """
    found = {str(name): _unit(values, signs) for name, values in frame.items() if infer_dtype(values) == "string"}
    return {name: unit for name, unit in found.items() if unit is not None}


def without_units(frame: pd.DataFrame, units: Mapping[str, str], signs: Mapping[str, str]) -> pd.DataFrame:
    """The columns as numbers, or as texts where there are others; texts with another unit stay as they are."""
    changed = {}
    for name in [name for name in units if name in frame and infer_dtype(frame[name]) in ("string", "mixed")]:
        values = frame[name]
        numbers, found = _split(values.astype("string"), signs)
        known = numbers.notna() & (found.isin([units[name], ""]))
        texts = values.where(~known, numbers.astype(object))
        changed[name] = texts.astype(float) if (known | values.isna()).all() else texts.where(~known, texts.map(str))
    return frame.assign(**changed)


def limits_of(frame: pd.DataFrame, names: Iterable[str]) -> dict[str, str]:
    """In how many rows columns of texts have a limit in place of a number, and one of them."""
    found = {}
    for name in names:
        texts = frame[name].dropna().astype(str)
        limits = texts[texts.str.contains(rf"^\s*{_LIMIT}")]
        if len(limits):
            found[name] = f"{limits.iloc[0]!r} and the like in {len(limits)} row{'s' if len(limits) > 1 else ''}"
    return found


def several_units(texts: pd.Series) -> str | None:
    """The two most frequent units, with a number of each, if all texts are numbers with units."""
    numbers, units = _split(texts.dropna(), {})
    counts = units[numbers.notna()].value_counts()
    if not (len(counts) > 1 and len(counts) <= len(numbers) / 4 and numbers.notna().all()):
        return None
    return " and ".join(repr(texts[units.index[units == unit][0]]) for unit in counts.index[:2])


def numeric_columns(frame: pd.DataFrame, signs: Mapping[str, str]) -> int:
    """How many columns are numbers, with units or without."""
    return sum(map(is_numeric_dtype, frame.dtypes)) + len(units_of(frame, signs))


def bare(texts: pd.Series) -> pd.Series:
    """The numbers in texts, as they are written but for their units; missing where there are none."""
    return texts.str.extract(f"^{_WRITTEN}$")["number"].dropna()


def signs_of_missing(frame: pd.DataFrame, names: Iterable[str]) -> dict[str, str]:
    """Numbers such as -999 that a column has several times and apart from its other numbers, and how often."""
    return {name: found for name in names if is_numeric_dtype(frame[name]) and (found := _apart(frame[name]))}


def _apart(values: pd.Series) -> str:
    known = values.dropna().to_numpy(np.float64)
    for sign in (*_LOW, *_HIGH):
        others, count = known[known != sign], int((known == sign).sum())
        is_apart = len(others) and (others.min() >= 0 if sign < 0 else np.abs(others).max() * _FAR < sign)
        if count > 1 and is_apart:
            return f"{sign} in {count} rows"
    return ""


def _unit(values: pd.Series, signs: Mapping[str, str]) -> str | None:
    counts = values.value_counts()
    counts.index = counts.index.astype(str)
    counts = counts[counts.index.str.contains(r"\d")]
    of_limits = counts.index.str.contains(rf"^\s*{_LIMIT}")
    if counts.sum() < _MOSTLY * values.notna().sum() or counts[of_limits].sum() > _MOSTLY * counts.sum():
        return None
    known, unit = pd.Series(counts.index), None
    for part in (known[:_FIRST], known):
        numbers, units = _split(part, signs)
        unit = units.mode().iloc[0] if len(units) else ""
        if not (numbers.notna() & ((units == unit) | ((units == "") & (numbers == 0)))).all():
            return None
    return unit if unit or of_limits.any() or known.str.contains(_MINUS).any() else None


def well_grouped(texts: pd.Series, signs: Mapping[str, Any]) -> pd.Series:
    """Whether the sign of thousands, where a text has it, is followed by three digits, unlike in 31.12.2026."""
    if not (sign := signs.get("thousands")):
        return pd.Series(True, texts.index)
    decimal = re.escape(signs.get("decimal") or ".")
    groups = rf"\s*[+-]?\d{{1,3}}({re.escape(sign)}\d{{3}})+({decimal}\d*)?\s*"
    return ~texts.str.contains(sign, regex=False) | texts.str.fullmatch(groups)


def _split(texts: pd.Series, signs: Mapping[str, str]) -> tuple[pd.Series, pd.Series]:
    """The number in each text, NaN if there is none, and its unit."""
    parts = texts.str.extract(f"^{_WRITTEN}$").fillna("")
    grouped = well_grouped(parts["number"], signs)
    digits = parts["number"].str.replace(signs.get("thousands") or " ", "", regex=False)
    written = parts["sign"].str.replace(_MINUS, "-") + digits.str.replace(signs.get("decimal") or ".", ".", regex=False)
    numbers = pd.to_numeric(written, errors="coerce").astype(float)
    return numbers.where(grouped), parts["before"] + parts["after"].str.strip()
