"""runner=table: the tables and curves of a paper, with the published values beside the results."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt, check_value
from orbit.core.progress import Progress
from orbit.registry import register
from orbit.solvers.products import sharing_products
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, check_labels, entries
from runners.experiments.columns import compare_columns
from runners.experiments.curves import TableCurve
from runners.experiments.estimate import Fits, estimated
from runners.experiments.selection import is_number
from runners.experiments.trials import Trials, settings
from runners.job.estimate import Estimate
from runners.job.features import shared_in_job, storing
from runners.job.job import Job
from runners.job.runner import Runner, check_only
from runners.measure import figures
from runners.measure.results import TABLE, Result, curve_results, settings_of
from runners.measure.tables import markdown_table, mean_and_spread

Results = dict[str, list[dict[str, float]]]


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
        Labels of rows, or of rows in one column, and names of curves that are fitted; None is all. Reports put
        together runs of one experiment that differ in nothing else, or in the seed.
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
        self._repeats()
        check_changes("runner.rows", self.rows)
        check_changes("runner.columns", self.columns)
        check_labels("runner.curves", self.curves or {})
        for name in self.curves or {}:
            self._curve(name)
        check_labels("runner.rows", self._all_cells())
        names = [*(self.rows or {}), *(self.curves or {})]
        check_only(self.only, "row or curve", names, self._all_cells())
        for key, section in (("published", self.published), ("few_repeats", self.few_repeats)):
            if unknown := set(section or {}) - set(self._all_cells()):
                raise InputError(f"runner.{key}: no such rows in the table: {', '.join(sorted(unknown))}")
        for label, value in (self.published or {}).items():
            if not is_number(value):
                raise InputError(f"runner.published.{label}: expected a number, found {value!r}")
        for label, count in (self.few_repeats or {}).items():
            check_value(f"runner.few_repeats.{label}", count, PositiveInt)

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
        rows = list[Fits]()
        for label, changes in self._cells().items():
            first, *others = self._repeats(label)
            rows.append(Fits(label, [(plan.variant(changes | first), 1 + len(others))]))
        for curve in self._curves():
            first, *others = curve.repeats
            lines = {label: [changes | point for point in curve.points] for label, changes in curve.series.items()}
            for label, points in (lines | {label: [changes] for label, changes in curve.references.items()}).items():
                fits = [(plan.variant(point | first), 1 + len(others)) for point in points]
                rows.append(Fits(f"{curve.name}, {label}", fits))
        return estimated(rows)

    def run(self, job: Job) -> None:
        trials = Trials(job, self.metric)
        curves = self._curves()
        n_fits = sum(len(self._repeats(label)) for label in self._cells())
        n_fits += sum(len(curve.changes()) * len(curve.repeats) for curve in curves)
        progress = job.plan.progress(n_fits, "table")
        with progress, _sharing(job.plan, self.metric):
            results = self._fit_rows(job, trials, progress)
            for curve in curves:
                self._fit_curve(job, curve, trials, progress)
        if results:
            values = {label: [metrics[self.metric] for metrics in found] for label, found in results.items()}
            job.log_figure("table", figures.compared, values, self.metric, self.published)
            job.say(self._markdown(results))
            means = {label: float(np.mean(found)) for label, found in values.items()}
            published = {label: float(value) for label, value in (self.published or {}).items()}
            names = [*(self.rows or {})], [*(self.columns or {})]
            compare_columns(job, self.metric, names, means, published, with_ranks=not self.only)
        if any(len(scores) > 1 for scores in job.history.values()):
            job.log_figure("epochs", plots.epochs, job.history)
        trials.end(all_fits=not self.only)

    def _is_chosen(self, *names: str) -> bool:
        return not self.only or not set(names).isdisjoint(self.only)

    def _cells(self) -> dict[str, dict[str, Any]]:
        """Label -> changes, for every row in every column that is chosen, by the label of the row or its own."""
        return {
            label: changes
            for row, of_row in entries(self.rows).items()
            for label, changes in _in_columns({row: of_row}, self.columns).items()
            if self._is_chosen(row, label)
        }

    def _all_cells(self) -> dict[str, dict[str, Any]]:
        return _in_columns(self.rows or {}, self.columns)

    def _repeats(self, label: str = "") -> list[dict[str, Any]]:
        """The repeats of a row, or of the table."""
        return settings(self.repeats, "runner.repeats")[: (self.few_repeats or {}).get(label)]

    def _changes(self) -> list[dict[str, Any]]:
        return [*self._cells().values(), *(point for curve in self._curves() for point in curve.changes())]

    def _curves(self) -> list[TableCurve]:
        """The curves that are chosen."""
        return [self._curve(name) for name in self.curves or {} if self._is_chosen(name)]

    def _curve(self, name: str) -> TableCurve:
        return TableCurve.read(name, (self.curves or {})[name], self.metric, self._repeats())

    def _fit_rows(self, job: Job, trials: Trials, progress: Progress) -> Results:
        cells = self._cells()
        results: Results = {label: [] for label in cells}
        for label, changes in cells.items():
            for repeat in self._repeats(label):
                plan = job.plan.variant(changes | repeat)
                results[label].append(trials.fit(plan, label))
                self._record(job, results)
                job.log_result(self._result(label, results[label], settings_of(plan.config)))
                progress.step(trials.is_earlier)
        return results

    def _fit_curve(self, job: Job, curve: TableCurve, trials: Trials, progress: Progress) -> None:
        metric = curve.metric
        for repeat in curve.repeats:
            for label, changes in curve.references.items():
                metrics = trials.fit(job.plan.variant(changes | repeat))
                curve.levels.setdefault(label, []).append(curve.value(metrics))
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
        lines, published = curve.lines(), curve.published
        job.log_figure(curve.name, plots.curves, lines, curve.levels, *axes, log_y=log_y, published=published)
        job.say(f"{metric}, {curve.name}:\n{curve.markdown()}")

    def _fit_lines(
        self, job: Job, curve: TableCurve, repeat: dict[str, Any], trials: Trials, progress: Progress
    ) -> None:
        for point in curve.points:
            for label, changes in curve.series.items():
                metrics = trials.fit(job.plan.variant(changes | point | repeat))
                curve.found.setdefault((label, *point.values()), []).append(curve.value(metrics))
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
        header = ["", self.metric, "published", "columns", "seconds", "selected"]
        rows = [[label, *self._figures(label, found), _chosen(found)] for label, found in results.items() if found]
        if not any(row[-1] for row in rows):
            header, rows = header[:-1], [row[:-1] for row in rows]
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


@contextlib.contextmanager
def _sharing(plan: Plan, metric: str) -> Iterator[None]:
    """Context manager in which fits share features and their inner products, unless they are timed."""
    if metric.startswith("time/"):
        with storing(None):
            yield
        return
    with shared_in_job(plan), sharing_products(plan.engine().budget):
        yield


def _chosen(found: list[dict[str, float]]) -> str:
    """The selected settings, with the distinct values over all repeats."""
    keys = [key for key in found[0] if key.startswith("selection/") and "." in key]
    values = {
        key.removeprefix("selection/"): [f"{metrics[key]:g}" for metrics in found if key in metrics] for key in keys
    }
    return "; ".join(f"{key} {', '.join(dict.fromkeys(v))}" for key, v in values.items())
