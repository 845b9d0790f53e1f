"""Sections of a runner whose entries are changes of the configuration: label -> {key: value}."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from orbit.core.errors import InputError
from runners.job.job import LONGEST_SLUG
from runners.measure.metrics import metric_name


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


def entries(section: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The entries of a section that has been checked, with an empty mapping for each that is null."""
    return {label: dict(changes or {}) for label, changes in (section or {}).items()}


def check_labels(key: str, labels: Collection[str]) -> None:
    """Raise ``InputError`` for labels that cannot be names of metrics and files, or would be the same name."""
    known: dict[str, str] = {}
    for label in labels:
        name = metric_name(str(label)).strip(" .")
        if not isinstance(label, str) or not name or set(label) & set("/\\") or len(label) > LONGEST_SLUG:
            raise InputError(
                f"{key}: expected labels with letters or digits, of up to {LONGEST_SLUG} characters, without slashes, "
                f"found {label!r}"
            )
        if name in known:
            raise InputError(f"{key}: {known[name]!r} and {label!r} differ only in characters that metrics do not have")
        known[name] = label
