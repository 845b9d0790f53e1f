"""runner=table: the tables and curves of a paper, with the published values beside the results."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt, check_value
from orbit.registry import register
from orbit.solvers.products import sharing_products
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, check_labels, entries
from runners.experiments.columns import compare_columns
from runners.experiments.curves import CurveLine, TableCurve
from runners.experiments.estimate import estimated
from runners.experiments.selection import is_number
from runners.experiments.trials import Trials, settings
from runners.job.estimate import Estimate
from runners.job.features import shared_in_job, storing
from runners.job.job import Job
from runners.job.runner import Runner, check_only
from runners.measure import figures
from runners.measure.results import TABLE, Result, curve_results, settings_of
from runners.measure.tables import latex_table, markdown_table, mean_and_spread

Results = dict[str, list[dict[str, float]]]  # label of a row -> the metrics of each repeat
Fit = Callable[..., dict[str, float]]  # the metrics of a fit, from changes of the configuration and a label


@register("runner", "table")
@dataclass(eq=False, repr=False)
class ResultTable(Runner):
    """Fits every row of a table and every point of its curves, over folds or seeds, and shows published values too.

    Parameters
    ----------
    rows : dict of dict, or None
        Label -> changes to the configuration: components (``approx: rf``), with parameters
        (``approx: {name: rf, n_components: 64}``), or single keys (``kernel.lengthscale: 4000``).
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

    rows: dict[str, Any] | None = None
    columns: dict[str, Any] | None = None
    curves: dict[str, Any] | None = None
    repeats: dict[str, Any] | None = None
    few_repeats: dict[str, Any] | None = None
    metric: str = "test/accuracy"
    published: dict[str, Any] | None = None
    source: str = ""
    only: list[str] | None = None

    reuses_features: ClassVar[bool] = True

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
        cells = self._all_cells()
        check_labels("runner.rows", cells)
        check_only(self.only, "row or curve", [*(self.rows or {}), *(self.curves or {})], cells)
        for key, section in (("published", self.published), ("few_repeats", self.few_repeats)):
            if unknown := set(section or {}) - set(cells):
                raise InputError(f"runner.{key}: no such rows in the table: {', '.join(sorted(unknown))}")
        for label, value in (self.published or {}).items():
            if not is_number(value):
                raise InputError(f"runner.published.{label}: expected a number, found {value!r}")
        for label, count in (self.few_repeats or {}).items():
            check_value(f"runner.few_repeats.{label}", count, PositiveInt)

    def plans(self, base: Plan) -> list[Plan]:
        """The plans of the first repeat, and of the first row in all other repeats."""
        first, *others = self._lines().values()
        repeated = [base.variant(first.points[0] | repeat) for repeat in self._repeats()[1:]]
        return [plan for line in (first, *others) for plan in line.plans(base)] + repeated

    def tags(self) -> dict[str, str]:
        """What the whole experiment has, for a run that has only some of it."""
        if not self.only:
            return {}
        return {"rows": json.dumps([*self._all_cells()]), "curves": json.dumps([*(self.curves or {})])}

    def estimates(self, plan: Plan) -> list[Estimate]:
        """A row for each cell of the table, and for each line of its figures."""
        return estimated(
            {name: [(one, len(line.repeats)) for one in line.plans(plan)] for name, line in self._lines().items()}
        )

    def run(self, job: Job) -> None:
        trials = Trials(job, self.metric)
        n_fits = sum(len(line.points) * len(line.repeats) for line in self._lines().values())
        with job.plan.progress(n_fits, "table") as progress, _sharing(job.plan, self.metric):

            def fit(changes: dict[str, Any], label: str = "") -> dict[str, float]:
                metrics = trials.fit(job.plan.variant(changes), label)
                progress.step(trials.is_earlier)
                return metrics

            results = self._fit_rows(job, fit)
            for curve in self._curves():
                _fit_curve(job, curve, fit)
        if results:
            self._show(job, results)
        if any(len(scores) > 1 for scores in job.history.values()):
            job.log_figure("epochs", plots.epochs, job.history)
        trials.end(all_fits=not self.only)

    def _is_chosen(self, *names: str) -> bool:
        return not self.only or not set(names).isdisjoint(self.only)

    def _all_cells(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Label -> row and changes, for every row in every column."""
        cells = itertools.product(entries(self.rows).items(), (entries(self.columns) or {"": {}}).items())
        return {f"{row} {column}".strip(): (row, changes | more) for (row, changes), (column, more) in cells}

    def _rows(self) -> list[CurveLine]:
        """The cells that are chosen, by the label of the row or their own."""
        cells = [(label, changes) for label, (row, changes) in self._all_cells().items() if self._is_chosen(row, label)]
        return [CurveLine(label, [changes], self._repeats(label)) for label, changes in cells]

    def _curves(self) -> list[TableCurve]:
        """The curves that are chosen."""
        return [self._curve(name) for name in self.curves or {} if self._is_chosen(name)]

    def _curve(self, name: str) -> TableCurve:
        return TableCurve.read(name, (self.curves or {})[name], self.metric, self.repeats)

    def _lines(self) -> dict[str, CurveLine]:
        """All rows, and the lines and levels of all curves, that are chosen."""
        rows = {row.label: row for row in self._rows()}
        of_curves = [(curve, line) for curve in self._curves() for line in (*curve.lines, *curve.levels)]
        return rows | {f"{curve.figure}, {line.label}": line for curve, line in of_curves}

    def _repeats(self, label: str = "") -> list[dict[str, Any]]:
        """The repeats of a row, or of the table."""
        return settings(self.repeats, "runner.repeats")[: (self.few_repeats or {}).get(label)]

    def _fit_rows(self, job: Job, fit: Fit) -> Results:
        results: Results = {}
        for row in self._rows():
            for repeat in row.repeats:
                results.setdefault(row.label, []).append(fit(row.points[0] | repeat, row.label))
                self._record(job, row, results)
        return results

    def _record(self, job: Job, row: CurveLine, results: Results) -> None:
        """Record a row as far as it is fitted, as metrics, in the table, and as the pages of the papers show it."""
        found, name = results[row.label], f"{row.label}/{self.metric}"
        values, seconds = ([metrics[key] for metrics in found] for key in (self.metric, "time/total_s"))
        job.log_metrics({name: float(np.mean(values))})
        if len(values) > 1:
            job.log_metrics({f"{name}_std": float(np.std(values))})
        job.log_text("table.md", self._markdown(results))
        of_row = Result(TABLE, row.label, self.metric, values, published=self._published().get(row.label))
        made_with = settings_of(row.plans(job.plan)[0].config)
        job.log_result(replace(of_row, seconds=round(float(np.mean(seconds)), 2), settings=made_with))

    def _published(self) -> dict[str, float]:
        return {label: float(value) for label, value in (self.published or {}).items()}

    def _show(self, job: Job, results: Results) -> None:
        """Draw the table and say it, and compare its columns."""
        values = {label: [metrics[self.metric] for metrics in found] for label, found in results.items()}
        job.log_figure("table", figures.compared, values, self.metric, self.published)
        job.say(self._markdown(results))
        job.log_text("table.tex", latex_table(*self._cells(results)))
        means = {label: float(np.mean(found)) for label, found in values.items()}
        names = [*(self.rows or {})], [*(self.columns or {})]
        compare_columns(job, self.metric, names, means, self._published(), with_ranks=not self.only)

    def _markdown(self, results: Results) -> str:
        source = f"\n\nPublished: {self.source}.\n" if self.source else "\n"
        return markdown_table(*self._cells(results)) + source

    def _cells(self, results: Results) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table."""
        header, rows = ["", self.metric, "published", "columns", "seconds", "selected"], []
        for label, found in results.items():
            columns, seconds = (
                np.mean([metrics[key] for metrics in found]) for key in ("features/dim", "time/total_s")
            )
            value = mean_and_spread([metrics[self.metric] for metrics in found])
            published = str((self.published or {}).get(label, ""))
            rows.append([label, value, published, f"{columns:.0f}", f"{seconds:.1f}", _chosen(found)])
        filled = [i for i, column in enumerate(zip(*rows, strict=True)) if any(column)]
        return [header[i] for i in filled], [[row[i] for i in filled] for row in rows]


def _fit_curve(job: Job, curve: TableCurve, fit: Fit) -> None:
    """Fit all points of a curve, and record and draw it."""
    metric, places, levels = str(curve.metric), curve.places, {level.label: list[float]() for level in curve.levels}
    found = {line.label: [list[float]() for _ in places] for line in curve.lines}
    for repeat in curve.all_repeats:
        for level in curve.levels:
            levels[level.label].append(curve.value(fit(level.points[0] | repeat)))
        with _sharing(job.plan, metric):
            for i in range(len(places)):
                for line in curve.lines:
                    found[line.label][i].append(curve.value(fit(line.points[i] | repeat)))
    lines = {label: (np.array(places), np.array(values).T) for label, values in found.items()}
    names = {f"{curve.figure}/{label}": values for label, values in levels.items()}
    for label, of_line in found.items():
        names |= {f"{curve.figure}/{label} {curve.key}={x}": values for x, values in zip(places, of_line, strict=True)}
    job.log_metrics({name: float(np.mean(values)) for name, values in names.items()})
    job.log_metrics({f"{name} std": float(np.std(values)) for name, values in names.items() if len(values) > 1})
    job.log_result(*curve_results(curve.figure, metric, curve.key, lines))
    job.log_result(*(Result(curve.figure, label, metric, values) for label, values in levels.items()))
    table = curve.markdown(lines, levels)
    job.log_text(f"{curve.figure}.md", table)
    axes = curve.x_label or curve.key, curve.y_label or metric
    log_y, published = metric.startswith("time/"), curve.published or {}
    job.log_figure(curve.figure, plots.curves, lines, levels, *axes, log_y=log_y, published=published)
    job.say(f"{metric}, {curve.figure}:\n{table}")


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
