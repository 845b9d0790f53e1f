"""The curves of runner=table: figures over the values of one key."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orbit.core.errors import InputError, suggestion
from runners.experiments.changes import check_changes, check_labels, entries
from runners.experiments.selection import is_number
from runners.experiments.trials import settings
from runners.measure.tables import markdown_table, mean_and_spread

_KEYS = ("along", "series", "references", "metric", "repeats", "published", "x_label", "y_label")


@dataclass
class TableCurve:
    """A figure: lines over the values of one key, and horizontal reference lines."""

    name: str
    points: list[dict[str, Any]]
    series: dict[str, dict[str, Any]]
    references: dict[str, dict[str, Any]]
    metric: str
    repeats: list[dict[str, Any]]
    published: dict[float, float] = field(default_factory=dict)
    x_label: str = ""
    y_label: str = ""
    found: dict[tuple[str, Any], list[float]] = field(default_factory=dict)
    levels: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, section: Mapping[str, Any], metric: str, repeats: list[dict[str, Any]]) -> TableCurve:
        """The curve of a section, by default with the table's metric and repeats; ``InputError`` for wrong entries."""
        where = f"runner.curves.{name}"
        _check(where, section)
        own = section.get("repeats")
        return cls(
            name,
            settings(section["along"], f"{where}.along"),
            entries(section["series"]),
            entries(section.get("references")),
            section.get("metric") or metric,
            settings(own, f"{where}.repeats") if own else repeats,
            section.get("published") or {},
            section.get("x_label") or "",
            section.get("y_label") or "",
        )

    @property
    def key(self) -> str:
        return next(iter(self.points[0]))

    def value(self, metrics: Mapping[str, float]) -> float:
        if self.metric not in metrics:
            raise InputError(
                f"runner.curves.{self.name}.metric: no such metric {self.metric!r}; choose from {', '.join(metrics)}"
            )
        return metrics[self.metric]

    def changes(self) -> list[dict[str, Any]]:
        moving = [changes | point for point in self.points for changes in self.series.values()]
        return [*self.references.values(), *moving]

    def lines(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Label -> (values of the key, metrics of shape (repeats, values))."""
        x = [point[self.key] for point in self.points]
        return {label: (np.array(x), np.array([self.found[label, value] for value in x]).T) for label in self.series}

    def markdown(self) -> str:
        rows = [
            [str(point[self.key]), *(mean_and_spread(self.found[label, point[self.key]]) for label in self.series)]
            for point in self.points
        ]
        rows += [
            [label, mean_and_spread(values), *[""] * (len(self.series) - 1)] for label, values in self.levels.items()
        ]
        return markdown_table([self.key, *self.series], rows) + "\n"


def _check(where: str, section: Any) -> None:
    if not isinstance(section, Mapping):
        raise InputError(f"{where}: expected a section with {', '.join(_KEYS)}, found {section!r}")
    for key in section:
        if key not in _KEYS:
            raise InputError(f"{where}.{key}: no such key{suggestion(key, _KEYS)} It has {', '.join(_KEYS)}.")
    if not section.get("along") or not section.get("series"):
        raise InputError(f"{where}: expected one key with its values in `along`, and at least one of `series`")
    for part in ("series", "references", "published"):
        if not isinstance(section.get(part), Mapping | None):
            raise InputError(f"{where}.{part}: expected labels with their values, found {section[part]!r}")
    for part in ("series", "references"):
        check_changes(f"{where}.{part}", section.get(part))
        check_labels(f"{where}.{part}", section.get(part) or {})
    if not isinstance(section.get("metric"), str | None):
        raise InputError(f"{where}.metric: expected the name of a metric, found {section['metric']!r}")
    along = settings(section["along"], f"{where}.along")
    for value in (value for point in along for value in point.values()):
        if not isinstance(value, str | int | float | None):
            raise InputError(f"{where}.along: expected numbers or names, found {value!r}")
    for item in itertools.chain.from_iterable((section.get("published") or {}).items()):
        if not is_number(item):
            raise InputError(f"{where}.published: expected numbers for values of the key, found {item!r}")
