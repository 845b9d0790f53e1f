"""The figures of an experiment, by the place that they have in it: rows of a table, points of a curve.

A runner records them through :meth:`runners.job.Job.log_result`; they are ``results.json`` in the run folder, from
which ``runner=report`` makes the pages of the papers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

# Digits that are kept: more than the deviation between seeds or machines leaves meaning for.
_DIGITS = 6

#: The first word of the metric of a difference between two columns of a row.
GAP = "gap"

# Metrics of which a ratio means nothing.
_WITHOUT_RATIO = ("rank", GAP)

#: The part of an experiment that is its table.
TABLE = "table"


@dataclass(frozen=True)
class Result:
    """A cell of a table, or a point of a curve.

    Attributes
    ----------
    part : str
        ``table``, or the name of the curve.
    label : str
        The row, or the line of the curve.
    metric : str
        What the values are, such as ``test/accuracy``.
    values : list of float
        One for each seed or fold.
    x : float, str or None
        The place on a curve; None in a table, and for a line that does not depend on ``key``.
    key : str
        What ``x`` is, such as ``dataset.n_train``.
    published : float or None
        The published value, in the same unit.
    seconds : float or None
        Mean time of a fit and its predictions.
    settings : dict
        What the fit was made with: ``s`` components, ``r`` elements of the group, and so on.
    spread, count : float and int, or None
        Standard deviation and number of seeds or folds, where only their mean was kept.
    """

    part: str
    label: str
    metric: str
    values: list[float]
    x: float | str | None = None
    key: str = ""
    published: float | None = None
    seconds: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    spread: float | None = None
    count: int | None = None

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds or folds."""
        return float(np.std(self.values)) if self.spread is None else self.spread

    @property
    def repeats(self) -> int:
        """Number of seeds or folds."""
        return len(self.values) if self.count is None else self.count

    @property
    def ratio(self) -> float | None:
        """Ours divided by the published value; None for differences and ranks, whose ratios mean nothing."""
        if not self.published or self.metric.startswith(_WITHOUT_RATIO):
            return None
        return self.mean / self.published

    def packed(self) -> dict[str, Any]:
        """The attributes that differ from their defaults, as JSON has them."""
        short = asdict(self) | {"values": [_rounded(value) for value in self.values]}
        bare = asdict(Result(self.part, self.label, self.metric, []))
        always = ("part", "label", "metric", "values")
        return {key: value for key, value in short.items() if key in always or value != bare[key]}

    @classmethod
    def unpacked(cls, values: Mapping[str, Any]) -> Result:
        """The result from the content of a file; keys of other versions are left out."""
        return cls(**{key.name: values[key.name] for key in fields(cls) if key.name in values})


def curve_results(
    part: str, metric: str, key: str, lines: Mapping[Any, tuple[Sequence[Any] | np.ndarray, np.ndarray]]
) -> list[Result]:
    """The points of lines, each (x, values) with values of shape (repeats, len(x)).

    >>> [(point.x, point.values) for point in curve_results("error", "mse", "D", {"rf": ([8, 16], np.eye(2))})]
    [(8, [1.0, 0.0]), (16, [0.0, 1.0])]
    """
    return [
        Result(part, label, metric, [float(value) for value in column], x=_plain(place), key=key)
        for label, (x, values) in lines.items()
        for place, column in zip(x, np.asarray(values).T, strict=True)
    ]


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes that papers give for a fit, from a complete configuration.

    Returns
    -------
    dict
        ``s`` components, ``second layer`` components of it, ``r`` elements of the group; only those that apply.
    """
    found = {"s": config["approx"].get("n_components")}
    if config["hyper"]["name"] != "linear":
        found["second layer"] = config["hyper"].get("n_components")
    if config["group"]["name"] != "identity":
        found["r"] = config["orbit"]["size"]
    return {key: value for key, value in found.items() if value is not None}


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else value
