"""Sections of a runner whose entries are changes of the configuration: label -> {key: value}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbit.core.errors import InputError


def check_changes(key: str, section: Any, example: str | None = None) -> None:
    """Raise ``InputError`` unless a section has labels with changes, or with nothing.

    Parameters
    ----------
    key : str
        The section's key in the configuration, for the message.
    section : mapping or None
    example : str or None
        An experiment that has such a section; if given, the section must have at least one entry.

    >>> check_changes("runner.rows", {"wide": 3})
    Traceback (most recent call last):
    ...
    orbit.core.errors.InputError: runner.rows.wide: expected settings, found 3; write {key: value}
    """
    if not isinstance(section, Mapping | None):
        raise InputError(f"{key}: expected labels with keys and values, found {section!r}")
    if example is not None and not section:
        raise InputError(f"{key}: expected at least one entry; choose experiment={example}")
    for label, changes in (section or {}).items():
        if not isinstance(label, str):
            raise InputError(f"{key}: expected texts as labels, found {label!r}; write it in quotes")
        if not isinstance(changes, Mapping | None):
            raise InputError(f"{key}.{label}: expected settings, found {changes!r}; write {{key: value}}")
