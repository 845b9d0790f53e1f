"""The summary of a sweep: tables and a figure of all its jobs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from runners.config.names import data_name, split_override
from runners.measure import figures
from runners.measure.metrics import MAIN_METRICS, paired_values_test
from runners.measure.tables import markdown_table, mean_and_spread, number
from runners.tracking.record import RECORD, Record, RunFolder, SweepFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Metrics in the table of a sweep, where the jobs have them.
_SHOWN_METRICS = (*MAIN_METRICS, "features/dim", "time/total_s")

_SEED = "seed"
_DATA_KEYS = "dataset.path", "dataset", "experiment"

Jobs = list[tuple[Record, dict[str, float]]]  # each job's record and metrics


def write_summary(folder: SweepFolder, jobs: Jobs) -> None:
    """Write the summary, a figure and the best value of all jobs, if there are any, into the folder of a sweep."""
    if not jobs:
        return
    folder.write_description(summary(jobs) + "\n")
    metric = _main_metric(jobs)
    if metric is not None:
        search = folder.search()
        folder.write_metrics(search["metrics"] if search else _best_metrics(jobs))
        folder.write_view(_view(jobs, metric))
        folder.draw("summary", _figure, jobs)


def summary(jobs: Jobs) -> str:
    """The best job, means over seeds, tests of pairs of jobs, and a Markdown table with a row for each job."""
    metric = _main_metric(jobs)
    parts = []
    if metric is not None:
        parts += [_best_line(own, name) for name, own in _by_data(jobs).items()]
        if _SEED in _varied(jobs):
            parts += [_over_seeds(jobs), _paired(jobs, metric)]
    return "\n\n".join([*filter(None, parts), _jobs_table(jobs)])


def _varied(jobs: Jobs) -> pd.DataFrame:
    """A row for each job, and a column for each override whose values differ, in the order they were given.

    Values are texts, of a path its own name, and empty where there is none.
    """
    given = pd.DataFrame([dict(map(split_override, record.overrides)) for record, _ in jobs])
    varied = given.loc[:, given.nunique(dropna=False) > 1].fillna("")
    if "dataset.path" in varied:
        varied["dataset.path"] = [path and data_name({"name": path, "path": path}) for path in varied["dataset.path"]]
    return varied


def _settings(jobs: Jobs) -> pd.DataFrame:
    return _varied(jobs).drop(columns=_SEED, errors="ignore")


def _shown(jobs: Jobs) -> list[str]:
    return [key for key in _SHOWN_METRICS if any(key in metrics for _, metrics in jobs)]


def _jobs_table(jobs: Jobs) -> str:
    """The overrides that differ between jobs, and the metrics."""
    varied, shown = _varied(jobs), _shown(jobs)
    rows = []
    for (record, found), settings in zip(jobs, varied.to_numpy(), strict=True):
        values = [number(found[key]) if key in found else "" for key in shown]
        rows.append([str(record.job), record.name, *settings, *values, record.status])
    return markdown_table(["job", "run", *varied, *shown, "status"], rows)


def _over_seeds(jobs: Jobs) -> str:
    """A Markdown table with a row for each configuration: means and standard deviations over its seeds."""
    settings, shown = _settings(jobs), _shown(jobs)
    groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for (_, metrics), values in zip(jobs, settings.to_numpy(), strict=True):
        if metrics:
            groups.setdefault(tuple(values), []).append(metrics)
    rows = [
        [*values, str(len(found)), *(mean_and_spread([m[key] for m in found if key in m]) for key in shown)]
        for values, found in groups.items()
    ]
    return markdown_table([*settings, "seeds", *shown], rows)


def _paired(jobs: Jobs, metric: str) -> str:
    """A Markdown table of paired tests of every setting with two values, on the means of each seed."""
    rows = [row for key in _settings(jobs) if (row := _test(jobs, metric, key)) is not None]
    header = ["setting", "first", "second", "seeds", f"mean of second - first, {metric}", "p (t)", "p (Wilcoxon)"]
    return markdown_table(header, rows) if rows else ""


def _test(jobs: Jobs, metric: str, key: str) -> list[str] | None:
    """A row for a setting with two values and at least two pairs; None for others."""
    varied = _varied(jobs)
    values = list(varied[key].unique())
    if len(values) != 2:
        return None
    found = varied.assign(**{metric: [metrics.get(metric, math.nan) for _, metrics in jobs]})
    cases = found.pivot_table(metric, [*varied.columns.drop(key)], key).reindex(columns=values).dropna()
    pairs = cases.groupby(level=_SEED).mean()  # cases of one seed have data and draws in common
    if len(pairs) < 2:
        return None
    first, second = pairs.to_numpy().T
    tested = paired_values_test(first, second).values()
    return [key, *values, str(len(pairs)), f"{np.mean(second - first):+.4g}", *(f"{p:.3g}" for p in tested)]


def _main_metric(jobs: Jobs) -> str | None:
    return next((key for key in MAIN_METRICS if _with_finite(jobs, key)), None)


def _with_finite(jobs: Jobs, metric: str) -> list[int]:
    """The places of the jobs that have a metric, as a finite number."""
    return [i for i, (_, metrics) in enumerate(jobs) if math.isfinite(metrics.get(metric, math.nan))]


def _best(jobs: Jobs, metric: str) -> int:
    """The place of the best job."""
    return (max if MAIN_METRICS[metric] else min)(_with_finite(jobs, metric), key=lambda i: jobs[i][1][metric])


def _data(jobs: Jobs) -> list[str]:
    """The name of the data of each job; empty if the data do not differ."""
    varied = _varied(jobs)
    return next((varied[key].tolist() for key in _DATA_KEYS if key in varied), [""] * len(jobs))


def _by_data(jobs: Jobs) -> dict[str, Jobs]:
    """The jobs by their data set, if any of its jobs has a metric; under an empty name if the data do not differ."""
    found: dict[str, Jobs] = {}
    for name, job in zip(_data(jobs), jobs, strict=True):
        found.setdefault(name, []).append(job)
    return {name: own for name, own in found.items() if _main_metric(own)}


def _best_metrics(jobs: Jobs) -> dict[str, float]:
    """The best value, of each data set: ``best/test/accuracy`` or ``best/gunpoint/test/accuracy``."""
    found = {}
    for name, own in _by_data(jobs).items():
        metric = _main_metric(own) or ""
        found["/".join(filter(None, ["best", name, metric]))] = own[_best(own, metric)][1][metric]
    return found


def _best_line(jobs: Jobs, name: str) -> str:
    metric = _main_metric(jobs) or ""
    place = _best(jobs, metric)
    record, metrics = jobs[place]
    settings = ", ".join(f"{key}={value}" for key, value in _varied(jobs).iloc[place].items())
    chosen = ", chosen by the test part" if metric.startswith("test/") else ""
    best = f"Best {metric} of {len(jobs)} jobs{f' on {name}' if name else ''}{chosen}: {metrics[metric]:.4g}"
    equal = sum(other.get(metric) == metrics[metric] for _, other in jobs) - 1
    others = f", equalled by {equal} other{'s' if equal > 1 else ''}" if equal else ""
    return f"{best}, job {record.job}" + (settings and f" ({settings})") + others


def _figure(jobs: Jobs) -> Figure | None:
    """The main metric against each setting, in a row of panels for each data set; None if only seeds differ."""
    varied, settings = _varied(jobs), _settings(jobs)
    if settings.empty:
        return None
    of_data = [key for key in _DATA_KEYS if key in varied]
    by_data = _by_data(jobs) if len(of_data) < len(settings.columns) else {"": jobs}
    shown = varied.drop(columns=of_data) if len(by_data) > 1 else varied
    rows = {}
    for name, own in by_data.items():
        metric = _main_metric(own) or ""
        places = [jobs.index(own[i]) for i in _with_finite(own, metric)]
        values = [jobs[place][1][metric] for place in places]
        rows[f"{name}: {metric}" if name else metric] = shown.iloc[places].to_dict("records"), values
    return figures.setting_effects(rows)


def _view(jobs: Jobs, metric: str) -> dict[str, Any]:
    """The main metric and the varied keys, as they are logged: ``group.name`` for ``group``, ``data`` for a path."""
    logged, varied = {key for record, _ in jobs for key in record.params}, _varied(jobs)
    names = {key: f"{key}.name" if f"{key}.name" in logged else key for key in varied} | {"dataset.path": "data"}
    numbers = varied.apply(pd.to_numeric, errors="coerce")
    return {
        "metric": metric,
        "larger_is_better": MAIN_METRICS[metric],
        "keys": [names[key] for key in varied],
        "numeric": [names[key] for key in varied if np.isfinite(numbers[key]).all()],
    }


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
