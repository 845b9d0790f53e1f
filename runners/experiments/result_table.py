"""runner=table: the tables and curves of a paper, with the published values beside the results."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from orbit import plots
from orbit.core import store
from orbit.core.errors import InputError, suggestion
from orbit.core.progress import Progress
from orbit.registry import register
from orbit.solvers.products import sharing_products
from runners.app.features import shared_in_job
from runners.app.plan import Plan
from runners.base import LONGEST_SLUG, Job, Runner
from runners.experiments.changes import check_changes
from runners.experiments.estimate import Estimate, Fits, estimated
from runners.experiments.trials import Trials, settings
from runners.markdown import markdown_table, mean_and_spread
from runners.metrics import metric_name
from runners.results import GAP, TABLE, Result, curve_results, settings_of

_CURVE_KEYS = ("along", "series", "references", "metric", "repeats", "published", "x_label", "y_label")

Results = dict[str, list[dict[str, float]]]
Pairs = dict[str, tuple[float, float]]


@register("runner", "table")
class Table(Runner):
    """Fits every row of a table and every point of its curves, over folds or seeds, and shows published values too.

    Parameters
    ----------
    rows : dict of dict, or None
        Label -> changes to the configuration: whole sections (``approx: {name: rf}``)
        or single keys (``kernel.lengthscale: 4000``).
    columns : dict of dict, or None
        Label -> changes to every row. Each row is then fitted once for each column, with
        label ``row column``, and every pair of columns is compared by the rank
        correlation (Spearman) of their rows.
    curves : dict of dict, or None
        Name of a figure -> ``along``, one key with its values
        (``{dataset.n_train: [100, 1000]}``); ``series``, label -> changes, one line
        each; ``references``, label -> changes that do not depend on the key: each is
        fitted once and drawn as a horizontal line; ``metric`` and ``repeats``, if they
        differ from the table's; ``published``, value of the key -> published value; and
        ``x_label`` and ``y_label``, the names of the axes. Metrics are those of a run, such as
        ``time/total_s``, seconds of a fit and its predictions, and
        ``test/error_percent``.
    repeats : dict or None
        One key with its values, e.g. ``{dataset.fold: [0, 1, 2, 3, 4]}``. The table
        shows the mean and standard deviation over them.
    few_repeats : dict of int or None
        Label -> the number of repeats, the first ones, of a row that costs more than the
        others together.
    metric : str
        The metric of the table, e.g. ``test/rmse``.
    published : dict or None
        Label -> published value, in the same unit, for rows that have one.
    source : str
        Source of the published values.
    only : list of str, or None
        Labels of rows and names of curves that are fitted; None is all. Reports put together runs of one experiment
        that differ in nothing else, or in the seed.
    """

    reuses_features: ClassVar[bool] = True

    def __init__(
        self,
        rows: dict[str, Any] | None = None,
        columns: dict[str, Any] | None = None,
        curves: dict[str, Any] | None = None,
        repeats: dict[str, Any] | None = None,
        few_repeats: dict[str, Any] | None = None,
        metric: str = "test/accuracy",
        published: dict[str, Any] | None = None,
        source: str = "",
        only: list[str] | None = None,
    ) -> None:
        self.rows = rows
        self.columns = columns
        self.curves = curves
        self.repeats = repeats
        self.few_repeats = few_repeats
        self.metric = metric
        self.published = published
        self.source = source
        self.only = only

    def check(self) -> None:
        super().check()
        if not self.rows and not self.curves:
            raise InputError("runner.rows: expected at least one row; choose an experiment, e.g. experiment=qm7")
        settings(self.repeats, "runner.repeats")
        check_changes("runner.rows", self.rows)
        check_changes("runner.columns", self.columns)
        _check_labels("runner.curves", self.curves or {})
        for name, section in (self.curves or {}).items():
            _Curve.read(name, section)
        _check_labels("runner.rows", self._all_cells())
        names = [*(self.rows or {}), *(self.curves or {})]
        for name in self.only or []:
            if name not in names:
                raise InputError(
                    f"runner.only: no such row or curve {name!r}{suggestion(str(name), names)} "
                    f"Choose from {', '.join(names)}."
                )
        for key, section in (("published", self.published), ("few_repeats", self.few_repeats)):
            if unknown := set(section or {}) - set(self._all_cells()):
                raise InputError(f"runner.{key}: no such rows in the table: {', '.join(sorted(unknown))}")
        for label, value in (self.published or {}).items():
            if not _is_number(value):
                raise InputError(f"runner.published.{label}: expected a number, found {value!r}")
        for label, count in (self.few_repeats or {}).items():
            if not isinstance(count, int) or count < 1:
                raise InputError(f"runner.few_repeats.{label}: expected an integer >= 1, found {count!r}")

    def plans(self, base: Plan) -> list[Plan]:
        """The plans of the first repeat, and of the first row in all other repeats."""
        changes, (first, *others) = self._changes(), self._repeats()
        return [base.variant(c | first) for c in changes] + [base.variant(changes[0] | repeat) for repeat in others]

    def tags(self) -> dict[str, str]:
        """What the whole experiment has, for a run that has only some of it."""
        if not self.only:
            return {}
        return {"rows": json.dumps([*self._all_cells()]), "curves": json.dumps([*(self.curves or {})])}

    def estimates(self, plan: Plan) -> list[Estimate]:
        """A row for each cell of the table, and for each line of its figures."""
        repeats, rows = self._repeats(), list[Fits]()
        for label, changes in self._cells().items():
            times = sum(self._takes(label, i) for i in range(len(repeats)))
            rows.append(Fits(label, [(plan.variant(changes | repeats[0]), times)]))
        for curve in self._curves():
            first, *others = self._repeats(curve)
            lines = {label: [changes | point for point in curve.points] for label, changes in curve.series.items()}
            for label, points in (lines | {label: [changes] for label, changes in curve.references.items()}).items():
                fits = [(plan.variant(point | first), 1 + len(others)) for point in points]
                rows.append(Fits(f"{curve.name}, {label}", fits))
        return estimated(rows)

    def run(self, job: Job) -> None:
        trials = Trials(job, self.metric)
        curves = self._curves()
        n_fits = sum(self._takes(label, i) for label in self._cells() for i in range(len(self._repeats())))
        n_fits += sum(len(curve.changes()) * len(self._repeats(curve)) for curve in curves)
        progress = Progress(n_fits, "table", job.plan.config["engine"]["progress"])
        with progress, _sharing(job.plan, self.metric):
            results = self._fit_rows(job, trials, progress)
            for curve in curves:
                self._fit_curve(job, curve, trials, progress)
        if results:
            values = {label: [metrics[self.metric] for metrics in found] for label, found in results.items()}
            job.log_figure("table", plots.compared(values, self.metric, self.published))
            job.say(self._markdown(results))
            self._compare_columns(job, {label: float(np.mean(found)) for label, found in values.items()})
        if any(len(scores) > 1 for scores in job.history.values()):
            job.log_figure("epochs", plots.epochs(job.history))
        trials.end(all_fits=not self.only)

    def _is_chosen(self, name: str) -> bool:
        return not self.only or name in self.only

    def _rows(self) -> dict[str, dict[str, Any]]:
        return {label: changes or {} for label, changes in (self.rows or {}).items() if self._is_chosen(label)}

    def _cells(self) -> dict[str, dict[str, Any]]:
        """Label -> changes, for every chosen row in every column."""
        return _in_columns(self._rows(), self.columns)

    def _all_cells(self) -> dict[str, dict[str, Any]]:
        return _in_columns(self.rows or {}, self.columns)

    def _compare_columns(self, job: Job, values: dict[str, float]) -> None:
        published = {label: float(value) for label, value in (self.published or {}).items()}
        for one, two in itertools.combinations(self.columns or {}, 2):
            pairs = {row: (values[f"{row} {one}"], values[f"{row} {two}"]) for row in self._rows()}
            theirs = {
                row: (published[f"{row} {one}"], published[f"{row} {two}"])
                for row in pairs
                if {f"{row} {one}", f"{row} {two}"} <= published.keys()
            }
            job.log_result(*_gaps(self.metric, pairs, theirs, f"{two} - {one}"))
            if self.only:
                continue  # ranks are those among all rows
            job.log_result(*_ranks(pairs, theirs, two))
            if len(pairs) < 3:
                continue
            ours = rank_correlation(pairs)
            job.log_metrics({f"rank_correlation/{one}/{two}": ours})
            title = f"rank correlation {ours:.2f}"
            if len(theirs) > 2:
                title += f", published {rank_correlation(theirs):.2f}"
            job.row(f"{one}, {two}", title)
            axes = f"{self.metric}, {one}", f"{self.metric}, {two}"
            job.log_figure(f"{one}_{two}", plots.agreement(pairs, theirs, axes, title))

    def _repeats(self, curve: _Curve | None = None) -> list[dict[str, Any]]:
        """The repeats of a curve, or of the table."""
        own = curve is not None and curve.repeats is not None
        return curve.repeats if own else settings(self.repeats, "runner.repeats")  # type: ignore[union-attr,return-value]

    def _takes(self, label: str, repeat: int) -> bool:
        """Whether a row takes the repeat of this number."""
        return repeat < (self.few_repeats or {}).get(label, math.inf)

    def _changes(self) -> list[dict[str, Any]]:
        return [*self._cells().values(), *(point for curve in self._curves() for point in curve.changes())]

    def _curves(self) -> list[_Curve]:
        chosen = {name: section for name, section in (self.curves or {}).items() if self._is_chosen(name)}
        return [_Curve.read(name, section) for name, section in chosen.items()]

    def _fit_rows(self, job: Job, trials: Trials, progress: Progress) -> Results:
        results: Results = {label: [] for label in self._cells()}
        # all folds of a row before the next row: they share features, and an interrupted table has complete rows
        for label, changes in self._cells().items():
            for i, repeat in enumerate(self._repeats()):
                if not self._takes(label, i):
                    continue
                plan = job.plan.variant(changes | repeat)
                results[label].append(trials.fit(plan, label))
                self._record(job, results)
                job.log_result(self._result(label, results[label], settings_of(plan.config)))
                progress.step(trials.is_earlier)
        return results

    def _fit_curve(self, job: Job, curve: _Curve, trials: Trials, progress: Progress) -> None:
        metric = curve.metric or self.metric
        for repeat in self._repeats(curve):
            for label, changes in curve.references.items():
                metrics = trials.fit(job.plan.variant(changes | repeat))
                curve.levels.setdefault(label, []).append(curve.value(metrics, metric))
                progress.step(trials.is_earlier)
            with _sharing(job.plan, metric):
                self._fit_lines(job, curve, repeat, trials, progress)
        names = {f"{curve.name}/{label} {curve.key}={x}": found for (label, x), found in curve.found.items()}
        names |= {f"{curve.name}/{label}": found for label, found in curve.levels.items()}
        job.log_metrics({name: float(np.mean(found)) for name, found in names.items()})
        job.log_metrics({f"{name} std": float(np.std(found)) for name, found in names.items() if len(found) > 1})
        job.log_result(*curve_results(curve.name, metric, curve.key, curve.lines()))
        job.log_result(*(Result(curve.name, label, metric, found) for label, found in curve.levels.items()))
        job.log_text(f"{curve.name}.md", curve.markdown())
        axes = curve.x_label or curve.key, curve.y_label or metric
        log_y = metric.startswith("time/")
        figure = plots.curves(curve.lines(), curve.levels, *axes, log_y=log_y, published=curve.published)
        job.log_figure(curve.name, figure)
        job.say(f"{metric}, {curve.name}:\n{curve.markdown()}")

    def _fit_lines(self, job: Job, curve: _Curve, repeat: dict[str, Any], trials: Trials, progress: Progress) -> None:
        metric = curve.metric or self.metric
        for point in curve.points:
            for label, changes in curve.series.items():
                metrics = trials.fit(job.plan.variant(changes | point | repeat))
                curve.found.setdefault((label, *point.values()), []).append(curve.value(metrics, metric))
                progress.step(trials.is_earlier)

    def _record(self, job: Job, results: Results) -> None:
        for label, found in results.items():
            values = [metrics[self.metric] for metrics in found]
            if values:
                job.log_metrics({f"{label}/{self.metric}": float(np.mean(values))})
            if len(values) > 1:
                job.log_metrics({f"{label}/{self.metric}_std": float(np.std(values))})
        job.log_text("table.md", self._markdown(results))

    def _markdown(self, results: Results) -> str:
        header = ["", self.metric, "published", "columns", "seconds"]
        rows = [[label, *self._figures(label, found)] for label, found in results.items() if found]
        chosen = [_chosen(found) for found in results.values() if found]
        if any(chosen):
            header.append("selected")
            rows = [[*row, cell] for row, cell in zip(rows, chosen, strict=True)]
        return markdown_table(header, rows) + (f"\n\nPublished: {self.source}.\n" if self.source else "\n")

    def _result(self, label: str, found: list[dict[str, float]], settings: dict[str, Any]) -> Result:
        """The row as the pages of the papers show it."""
        published = (self.published or {}).get(label)
        return Result(
            TABLE,
            label,
            self.metric,
            [metrics[self.metric] for metrics in found],
            published=None if published is None else float(published),
            seconds=round(float(np.mean([metrics["time/total_s"] for metrics in found])), 2),
            settings=settings,
        )

    def _figures(self, label: str, found: list[dict[str, float]]) -> list[str]:
        columns, seconds = (np.mean([m[key] for m in found]) for key in ("features/dim", "time/total_s"))
        published = str((self.published or {}).get(label, ""))
        return [
            mean_and_spread([metrics[self.metric] for metrics in found]),
            published,
            f"{columns:.0f}",
            f"{seconds:.1f}",
        ]


def _in_columns(rows: dict[str, dict[str, Any]], columns: dict[str, dict[str, Any]] | None) -> dict[str, Any]:
    """Label -> changes, for every row in every column."""
    if not columns:
        return rows
    cells = itertools.product(rows.items(), columns.items())
    return {f"{row} {column}": (changes or {}) | (more or {}) for (row, changes), (column, more) in cells}


def _check_labels(key: str, labels: Collection[str]) -> None:
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@contextlib.contextmanager
def _sharing(plan: Plan, metric: str) -> Iterator[None]:
    """Context manager in which fits share features and their inner products, unless they are timed."""
    if metric.startswith("time/"):
        with store.storing(None):
            yield
        return
    with shared_in_job(plan), sharing_products(plan.config["engine"]["memory"] * 2**30):
        yield


def _gaps(metric: str, pairs: Pairs, published: Pairs, part: str) -> list[Result]:
    """How much larger the second number of each row is."""
    gap = {row: two - one for row, (one, two) in published.items()}
    name = f"{GAP} of {metric}"
    return [Result(part, row, name, [two - one], published=gap.get(row)) for row, (one, two) in pairs.items()]


def _ranks(pairs: Pairs, published: Pairs, column: str) -> list[Result]:
    """The place of each row in the second column, 1 for the largest, of the rows in the order of the first."""
    found, known = (
        {row: 1 + sum(b > two for _, b in some.values()) for row, (_, two) in some.items()}
        for some in (pairs, published)
    )
    ordered = sorted(pairs, key=lambda row: -pairs[row][0])
    return [Result(f"rank of {column}", row, "rank", [found[row]], published=known.get(row)) for row in ordered]


def rank_correlation(pairs: Mapping[str, tuple[float, float]]) -> float:
    """Spearman's rank correlation between the first and the second numbers of the pairs.

    >>> round(rank_correlation({"a": (1, 10), "b": (2, 30), "c": (3, 20)}), 3)
    0.5
    """
    one, two = np.array(list(pairs.values())).T
    return float(stats.spearmanr(one, two).statistic)


def _chosen(found: list[dict[str, float]]) -> str:
    """The selected settings, with the distinct values over all repeats."""
    keys = [key for key in found[0] if key.startswith("selection/") and "." in key]
    values = {
        key.removeprefix("selection/"): [f"{metrics[key]:g}" for metrics in found if key in metrics] for key in keys
    }
    return "; ".join(f"{key} {', '.join(dict.fromkeys(v))}" for key, v in values.items())


@dataclass
class _Curve:
    """A figure: lines over the values of one key, and horizontal reference lines."""

    name: str
    points: list[dict[str, Any]]
    series: dict[str, dict[str, Any]]
    references: dict[str, dict[str, Any]]
    metric: str | None = None
    repeats: list[dict[str, Any]] | None = None
    published: dict[float, float] = field(default_factory=dict)
    x_label: str = ""
    y_label: str = ""
    found: dict[tuple[str, Any], list[float]] = field(default_factory=dict)
    levels: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, section: Mapping[str, Any]) -> _Curve:
        where = f"runner.curves.{name}"
        if not isinstance(section, Mapping):
            raise InputError(f"{where}: expected a section with {', '.join(_CURVE_KEYS)}, found {section!r}")
        for key in section:
            if key not in _CURVE_KEYS:
                raise InputError(f"{where}.{key}: no such key{suggestion(key, _CURVE_KEYS)} It has {_CURVE_KEYS}.")
        if not section.get("along") or not section.get("series"):
            raise InputError(f"{where}: expected one key with its values in `along`, and at least one of `series`")
        for part in ("series", "references", "published"):
            if not isinstance(section.get(part), Mapping | None):
                raise InputError(f"{where}.{part}: expected labels with their values, found {section[part]!r}")
        for part in ("series", "references"):
            check_changes(f"{where}.{part}", section.get(part))
            _check_labels(f"{where}.{part}", section.get(part) or {})
        if not isinstance(section.get("metric"), str | None):
            raise InputError(f"{where}.metric: expected the name of a metric, found {section['metric']!r}")
        points = settings(section["along"], f"{where}.along")
        for value in itertools.chain.from_iterable(point.values() for point in points):
            if not isinstance(value, str | int | float | None):
                raise InputError(f"{where}.along: expected numbers or names, found {value!r}")
        series, references = ({k: v or {} for k, v in (section.get(part) or {}).items()} for part in _CURVE_KEYS[1:3])
        repeats = settings(section["repeats"], f"{where}.repeats") if section.get("repeats") else None
        published = section.get("published") or {}
        for item in itertools.chain.from_iterable(published.items()):
            if not isinstance(item, int | float):
                raise InputError(f"{where}.published: expected numbers for values of the key, found {item!r}")
        axes = section.get("x_label") or "", section.get("y_label") or ""
        return cls(name, points, series, references, section.get("metric"), repeats, published, *axes)

    @property
    def key(self) -> str:
        return next(iter(self.points[0]))

    def value(self, metrics: Mapping[str, float], metric: str) -> float:
        if metric not in metrics:
            raise InputError(
                f"runner.curves.{self.name}.metric: no such metric {metric!r}; choose from {', '.join(metrics)}"
            )
        return metrics[metric]

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
