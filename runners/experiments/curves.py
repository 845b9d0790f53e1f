"""The curves of runner=table: figures over the values of one key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.core.params import parameters
from orbit.registry import check_parameters
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, check_labels, entries
from runners.experiments.selection import is_number
from runners.experiments.trials import settings
from runners.measure.tables import markdown_table, mean_and_spread

_SECTION = "runner.curves."

#: Label -> values of the key, and values of the metric, shape (repeats, places).
Lines = dict[str, tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class CurveLine:
    """The fits of a label: a row of the table, a line of a curve, or one of its levels.

    Attributes
    ----------
    label : str
    points : list of dict
        Changes of the configuration; a row and a level have one.
    repeats : list of dict
        Changes too, such as seeds: each point is fitted with each.
    """

    label: str
    points: list[dict[str, Any]]
    repeats: list[dict[str, Any]]

    def plans(self, base: Plan) -> list[Plan]:
        """The plans of all points in the first repeat."""
        return [base.variant(point | self.repeats[0]) for point in self.points]


@dataclass(eq=False, repr=False)
class TableCurve(Component):
    """A figure: lines over the values of one key, and horizontal lines, its levels.

    The parameters are those of an entry of ``runner.curves``.
    """

    along: dict[str, Any] | None = None
    series: dict[str, Any] | None = None
    references: dict[str, Any] | None = None
    metric: str | None = None  # that of the table once it is read
    repeats: dict[str, Any] | None = None
    published: dict[str, Any] | None = None
    x_label: str | None = None
    y_label: str | None = None

    @classmethod
    def read(cls, name: str, section: Any, metric: str, repeats: dict[str, Any] | None) -> TableCurve:
        """The curve of a section, by default with the table's metric and repeats; ``InputError`` for wrong entries."""
        known = parameters(cls)
        if not isinstance(section, Mapping):
            raise InputError(f"{_SECTION}{name}: expected a section with {', '.join(known)}, found {section!r}")
        check_parameters("runner.curves", name, section, known)
        curve = cls(**section)
        curve.section = f"{_SECTION}{name}"
        curve.check()
        curve.metric, curve.repeats = curve.metric or metric, curve.repeats or repeats
        return curve

    def check(self) -> None:
        super().check()
        if not self.along or not self.series:
            raise InputError(
                f"{self.section}: expected one key with its values in `along`, and at least one of `series`"
            )
        for part, labels in (("series", self.series), ("references", self.references)):
            check_changes(f"{self.section}.{part}", labels)
            check_labels(f"{self.section}.{part}", labels or {})
        settings(self.repeats, f"{self.section}.repeats")
        for value in self.places:
            if not isinstance(value, str | int | float | None):
                raise InputError(f"{self.section}.along: expected numbers or names, found {value!r}")
        for item in (item for pair in (self.published or {}).items() for item in pair):
            if not is_number(item):
                raise InputError(f"{self.section}.published: expected numbers for values of the key, found {item!r}")

    @property
    def figure(self) -> str:
        """The name of the curve."""
        return self.section.removeprefix(_SECTION)

    @property
    def key(self) -> str:
        return next(iter(self.along or {}))

    @property
    def places(self) -> list[Any]:
        """The values of the key."""
        return [point[self.key] for point in settings(self.along, f"{self.section}.along")]

    @property
    def all_repeats(self) -> list[dict[str, Any]]:
        return settings(self.repeats, f"{self.section}.repeats")

    @property
    def lines(self) -> list[CurveLine]:
        points = {
            label: [changes | {self.key: x} for x in self.places] for label, changes in entries(self.series).items()
        }
        return [CurveLine(label, of_line, self.all_repeats) for label, of_line in points.items()]

    @property
    def levels(self) -> list[CurveLine]:
        return [CurveLine(label, [changes], self.all_repeats) for label, changes in entries(self.references).items()]

    def value(self, metrics: Mapping[str, float]) -> float:
        metric = self.metric or ""
        if metric not in metrics:
            raise InputError(f"{self.section}.metric: no such metric {metric!r}; choose from {', '.join(metrics)}")
        return metrics[metric]

    def markdown(self, lines: Lines, levels: Mapping[str, list[float]]) -> str:
        """A row for each value of the key, and one for each level."""
        columns = [[mean_and_spread(list(values)) for values in found.T] for _, found in lines.values()]
        rows = [[str(x), *cells] for x, *cells in zip(self.places, *columns, strict=True)]
        rows += [[label, mean_and_spread(values), *[""] * (len(lines) - 1)] for label, values in levels.items()]
        return markdown_table([self.key, *lines], rows) + "\n"
