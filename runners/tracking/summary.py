"""The summary of a sweep: tables and a figure of all its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from runners.config.names import data_name, split_override
from runners.measure import figures
from runners.measure.metrics import MAIN_METRICS, paired_values_test
from runners.measure.tables import latex_table, markdown_table, mean_and_spread, number
from runners.tracking.record import DESCRIPTION, RECORD, Record, RunFolder, SweepFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Metrics in the table of a sweep, where the jobs have them.
_SHOWN_METRICS = (*MAIN_METRICS, "features/dim", "time/total_s")

_SEED = "seed"
_DATA_KEYS = "dataset.path", "dataset", "experiment"

Jobs = list[tuple[Record, dict[str, float]]]  # each job's record and metrics
Cells = tuple[list[str], list[list[str]]]  # the header of a table, and its rows


def write_summary(folder: SweepFolder, jobs: Jobs) -> None:
    """Write the summary, a figure and the best value of all jobs, if there are any, into the folder of a sweep."""
    if not jobs:
        return
    found = Summary(jobs)
    folder.write_text(DESCRIPTION, found.text() + "\n")
    folder.write_text("summary.tex", latex_table(*found.cells()))
    if found.main is not None:
        search = folder.search()
        folder.write_metrics(search["metrics"] if search else found.best_metrics())
        folder.write_view(found.view())
        folder.draw("summary", found.figure)


class Summary:
    """What is said of the jobs of a sweep.

    Attributes
    ----------
    varied : DataFrame
        A row for each job, and a column for each override whose values differ, in the order they were given. Values
        are texts, of a path its own name, and empty where there is none.
    settings : DataFrame
        ``varied`` without the seed.
    metrics : DataFrame
        A row for each job.
    data : Series
        The name of the data of each job; empty if the data do not differ.
    main : Series or None
        The finite values of the main metric, by the place of their job; its name is that of the metric.
    by_data : dict of str to Series
        As ``main``, for the jobs of each data set.
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        given = pd.DataFrame([dict(map(split_override, record.overrides)) for record, _ in jobs])
        self.varied = given.loc[:, given.nunique(dropna=False) > 1].fillna("")
        if "dataset.path" in self.varied:
            paths = self.varied["dataset.path"]
            self.varied["dataset.path"] = [path and data_name({"name": path, "path": path}) for path in paths]
        self.settings = self.varied.drop(columns=_SEED, errors="ignore")
        self.metrics = pd.DataFrame([metrics for _, metrics in jobs], dtype=float)
        self.shown = [key for key in _SHOWN_METRICS if key in self.metrics]
        nothing = pd.Series("", self.metrics.index)
        self.data = next((self.varied[key] for key in _DATA_KEYS if key in self.varied), nothing)
        self.main = _main_values(self.metrics)
        parts = {name: _main_values(own) for name, own in self.metrics.groupby(self.data, sort=False)}
        self.by_data = {str(name): values for name, values in parts.items() if values is not None}

    def text(self) -> str:
        """The best job, means over seeds, tests of pairs of jobs, and a Markdown table with a row for each job."""
        parts = [self._best_line(name) for name in self.by_data]
        if parts and _SEED in self.varied:
            parts += [markdown_table(*self._over_seeds()), self._paired()]
        return "\n\n".join([*filter(None, parts), markdown_table(*self._of_jobs())])

    def cells(self) -> Cells:
        """The table of means over seeds or, if jobs have the same seed or no results, of all jobs."""
        return self._over_seeds() if self.by_data and _SEED in self.varied else self._of_jobs()

    def _of_jobs(self) -> Cells:
        """The overrides that differ between jobs, and the metrics."""
        rows = []
        for (record, found), settings in zip(self.jobs, self.varied.to_numpy(), strict=True):
            values = [number(found[key]) if key in found else "" for key in self.shown]
            rows.append([str(record.job), record.name, *settings, *values, record.status])
        return ["job", "run", *self.varied, *self.shown, "status"], rows

    def _over_seeds(self) -> Cells:
        """A table with a row for each configuration: means and standard deviations over its seeds."""
        groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
        for (_, metrics), values in zip(self.jobs, self.settings.to_numpy(), strict=True):
            if metrics:
                groups.setdefault(tuple(values), []).append(metrics)
        rows = [
            [*values, str(len(found)), *(mean_and_spread([m[key] for m in found if key in m]) for key in self.shown)]
            for values, found in groups.items()
        ]
        return [*self.settings, "seeds", *self.shown], rows

    def _paired(self) -> str:
        """A Markdown table of paired tests of every setting with two values, on the means of each seed."""
        assert self.main is not None
        metric, rows = str(self.main.name), []
        for key in self.settings:
            values = list(self.settings[key].unique())
            if len(values) != 2:
                continue
            cases = self.varied.join(self.metrics[metric]).pivot_table(metric, [*self.varied.columns.drop(key)], key)
            pairs = cases.reindex(columns=values).dropna().groupby(level=_SEED).mean()  # one seed: draws in common
            if len(pairs) < 2:
                continue
            first, second = pairs.to_numpy().T
            tested = [f"{p:.3g}" for p in paired_values_test(first, second).values()]
            rows.append([key, *values, str(len(pairs)), f"{np.mean(second - first):+.4g}", *tested])
        header = ["setting", "first", "second", "seeds", f"mean of second - first, {metric}", "p (t)", "p (Wilcoxon)"]
        return markdown_table(header, rows) if rows else ""

    def best_metrics(self) -> dict[str, float]:
        """The best value, of each data set: ``best/test/accuracy`` or ``best/gunpoint/test/accuracy``."""
        found = {"/".join(filter(None, ["best", name, str(v.name)])): v[_best(v)] for name, v in self.by_data.items()}
        return {key: float(value) for key, value in found.items()}

    def _best_line(self, name: str) -> str:
        values, own = self.by_data[name], self.varied[self.data == name]
        metric, place = str(values.name), _best(values)
        settings = ", ".join(f"{key}={value}" for key, value in own.loc[place, own.nunique() > 1].items())
        chosen = ", chosen by the test part" if metric.startswith("test/") else ""
        best = f"Best {metric} of {len(own)} jobs{f' on {name}' if name else ''}{chosen}: {values[place]:.4g}"
        equal = int((values == values[place]).sum()) - 1
        others = f", equalled by {equal} other{'s' if equal > 1 else ''}" if equal else ""
        return f"{best}, job {self.jobs[place][0].job}" + (settings and f" ({settings})") + others

    def figure(self) -> Figure | None:
        """The main metric against each setting, in a row of panels for each data set; None if only seeds differ."""
        if self.settings.empty:
            return None
        of_data = [key for key in _DATA_KEYS if key in self.varied]
        parts = self.by_data
        if self.main is not None and len(of_data) == len(self.settings.columns):
            parts = {"": self.main}
        shown = self.varied.drop(columns=of_data) if len(parts) > 1 else self.varied
        rows = {
            f"{name}: {values.name}" if name else str(values.name): (
                shown.loc[values.index].to_dict("records"),
                [*values],
            )
            for name, values in parts.items()
        }
        return figures.setting_effects(rows)

    def view(self) -> dict[str, Any]:
        """The main metric and the varied keys, as logged: ``group.name`` for ``group``, ``data`` for a path."""
        assert self.main is not None
        logged, metric = {key for record, _ in self.jobs for key in record.params}, str(self.main.name)
        names = {key: f"{key}.name" if f"{key}.name" in logged else key for key in self.varied}
        names |= {"dataset.path": "data"}
        numbers = self.varied.apply(pd.to_numeric, errors="coerce")
        return {
            "metric": metric,
            "larger_is_better": MAIN_METRICS[metric],
            "keys": [names[key] for key in self.varied],
            "numeric": [names[key] for key in self.varied if np.isfinite(numbers[key]).all()],
        }


def _main_values(metrics: pd.DataFrame) -> pd.Series | None:
    """The finite values of the first main metric that has any."""
    finite = (metrics[key][np.isfinite(metrics[key])] for key in MAIN_METRICS if key in metrics)
    return next((values for values in finite if len(values)), None)


def _best(values: pd.Series) -> Any:
    """The place of the best job."""
    return values.idxmax() if MAIN_METRICS[str(values.name)] else values.idxmin()


def job_records(folder: SweepFolder) -> Jobs:
    """The records and metrics of the jobs of a sweep, by number; a job that could not write its record has failed."""
    numbered = ((path, path.name.partition("-")[0]) for path in folder.path.iterdir() if path.is_dir())
    folders = [RunFolder(path) for path, number in numbered if number.isdigit()]  # others are figures, and submitit's
    found = [(run.read_record() or _without_record(run), run.read_metrics()) for run in folders]
    return sorted(found, key=lambda pair: pair[0].job or 0)


def _without_record(run: RunFolder) -> Record:
    number, _, name = run.path.name.partition("-")
    error = f"it has no {RECORD}: the disk was full, or its process ended"
    return Record(name, status="FAILED", job=int(number), error=error)
