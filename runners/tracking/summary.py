"""The summary of a sweep: tables and a figure of all its jobs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

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
        folder.write_metrics(search["metrics"] if search else _best_metrics(jobs, metric))
        folder.write_view(_view(jobs, metric))
        folder.draw("summary", _figure, jobs, metric)


def summary(jobs: Jobs) -> str:
    """The best job, means over seeds, tests of pairs of jobs, and a Markdown table with a row for each job."""
    metric = _main_metric(jobs)
    parts = []
    if metric is not None:
        parts += [_best_line(own, metric, name) for name, own in _by_data(jobs, metric).items()]
        if _SEED in _varied(jobs):
            parts += [_over_seeds(jobs), _paired(jobs, metric)]
    return "\n\n".join([*filter(None, parts), _jobs_table(jobs)])


def _jobs_table(jobs: Jobs) -> str:
    """The overrides that differ between jobs, and the metrics."""
    varied = _varied(jobs)
    metrics = [key for key in _SHOWN_METRICS if any(key in m for _, m in jobs)]
    header = ["job", "run", *varied, *metrics, "status"]
    rows = []
    for record, found in jobs:
        settings = [_value(record, key) for key in varied]
        values = [number(found[key]) if key in found else "" for key in metrics]
        rows.append([str(record.job), record.name, *settings, *values, record.status])
    return markdown_table(header, rows)


def _over_seeds(jobs: Jobs) -> str:
    """A Markdown table with a row for each configuration: means and standard deviations over its seeds."""
    varied = _settings(jobs)
    groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for record, metrics in jobs:
        if metrics:
            groups.setdefault(tuple(_value(record, key) for key in varied), []).append(metrics)
    shown = [key for key in _SHOWN_METRICS if any(key in m for found in groups.values() for m in found)]
    rows = [
        [*values, str(len(found)), *(mean_and_spread([m[key] for m in found if key in m]) for key in shown)]
        for values, found in groups.items()
    ]
    return markdown_table([*varied, "seeds", *shown], rows)


def _paired(jobs: Jobs, metric: str) -> str:
    """A Markdown table of paired tests of every setting with two values, on the means of each seed."""
    rows = [row for key in _settings(jobs) if (row := _test(jobs, metric, key)) is not None]
    header = ["setting", "first", "second", "seeds", f"mean of second - first, {metric}", "p (t)", "p (Wilcoxon)"]
    return markdown_table(header, rows) if rows else ""


def _test(jobs: Jobs, metric: str, key: str) -> list[str] | None:
    """A row for a setting with two values and at least two pairs; None for others."""
    values = list(dict.fromkeys(_value(record, key) for record, _ in jobs))
    if len(values) != 2:
        return None
    cases: dict[tuple[str, ...], dict[str, float]] = {}
    others = [other for other in _varied(jobs) if other != key]
    for record, metrics in jobs:
        if metric in metrics:
            case = tuple(_value(record, other) for other in others)
            cases.setdefault(case, {})[_value(record, key)] = metrics[metric]
    # cases of one seed have data and draws in common: they are one pair, that of their means
    by_seed: dict[str, list[list[float]]] = {}
    for case, found in cases.items():
        if len(found) == 2:
            by_seed.setdefault(case[others.index(_SEED)], []).append([found[value] for value in values])
    pairs = np.array([np.mean(of_seed, axis=0) for of_seed in by_seed.values()])
    if len(pairs) < 2:
        return None
    tested = paired_values_test(*pairs.T)
    difference = float(np.mean(pairs[:, 1] - pairs[:, 0]))
    return [key, *values, str(len(pairs)), f"{difference:+.4g}", *(f"{p:.3g}" for p in tested.values())]


def _main_metric(jobs: Jobs) -> str | None:
    return next((key for key in MAIN_METRICS if _with_finite(jobs, key)), None)


def _with_finite(jobs: Jobs, metric: str) -> Jobs:
    """The jobs that have a metric, as a finite number."""
    return [job for job in jobs if math.isfinite(job[1].get(metric, math.nan))]


def _best(jobs: Jobs, metric: str) -> tuple[Record, dict[str, float]]:
    return (max if MAIN_METRICS[metric] else min)(_with_finite(jobs, metric), key=lambda job: job[1][metric])


def _by_data(jobs: Jobs, metric: str) -> dict[str, Jobs]:
    """The jobs with a metric, by their data set if there are several; otherwise all jobs, under an empty name."""
    names = {_data(record) for record, _ in jobs}
    if len(names) == 1:
        return {"": jobs}
    found: dict[str, Jobs] = {}
    for job in _with_finite(jobs, metric):
        found.setdefault(_data(job[0]), []).append(job)
    return found


def _data(record: Record) -> str:
    """The name of the data that a job differs in; empty if it differs in none."""
    values = _overrides(record)
    return next((_value(record, key) for key in _DATA_KEYS if key in values), "")


def _best_metrics(jobs: Jobs, metric: str) -> dict[str, float]:
    """The best value, of each data set: ``best/test/accuracy`` or ``best/gunpoint/test/accuracy``."""
    names = {"/".join(filter(None, ["best", name, metric])): own for name, own in _by_data(jobs, metric).items()}
    return {name: _best(own, metric)[1][metric] for name, own in names.items()}


def _best_line(jobs: Jobs, metric: str, name: str) -> str:
    record, metrics = _best(jobs, metric)
    settings = ", ".join(f"{key}={_value(record, key)}" for key in _varied(jobs))
    chosen = ", chosen by the test part" if metric.startswith("test/") else ""
    best = f"Best {metric} of {len(jobs)} jobs{f' on {name}' if name else ''}{chosen}: {metrics[metric]:.4g}"
    equal = sum(other.get(metric) == metrics[metric] for _, other in jobs) - 1
    others = f", equalled by {equal} other{'s' if equal > 1 else ''}" if equal else ""
    return f"{best}, job {record.job}" + (settings and f" ({settings})") + others


def _figure(jobs: Jobs, metric: str) -> Figure | None:
    """The main metric against each setting; None if only seeds differ."""
    if not _settings(jobs):
        return None
    known, varied = _with_finite(jobs, metric), _varied(jobs)
    has_rows = not set(_settings(jobs)) <= set(_DATA_KEYS)  # one for each data set
    shown = [key for key in varied if key not in _DATA_KEYS] if has_rows else varied
    settings = [{key: _value(record, key) for key in shown} for record, _ in known]
    data = [_data(record) for record, _ in known] if shown != varied else None
    return figures.setting_effects(settings, [metrics[metric] for _, metrics in known], metric, data=data)


def _overrides(record: Record) -> dict[str, str]:
    return dict(map(split_override, record.overrides))


def _value(record: Record, key: str) -> str:
    """The value that an override gives a key, of a path its own name; empty if there is none."""
    value = _overrides(record).get(key, "")
    return data_name({"name": value, "path": value}) if key == "dataset.path" and value else value


def _varied(jobs: Jobs) -> list[str]:
    """The overridden keys whose values differ between jobs, in the order they were given."""
    names = dict.fromkeys(key for record, _ in jobs for key in _overrides(record))
    return [key for key in names if len({_overrides(record).get(key) for record, _ in jobs}) > 1]


def _settings(jobs: Jobs) -> list[str]:
    return [key for key in _varied(jobs) if key != _SEED]


def _view(jobs: Jobs, metric: str) -> dict[str, Any]:
    """The main metric and the varied keys, as they are logged: ``group.name`` for ``group``, ``data`` for a path."""
    logged = {key for record, _ in jobs for key in record.params}
    names = {key: f"{key}.name" if f"{key}.name" in logged else key for key in _varied(jobs)}
    if "dataset.path" in names:
        names["dataset.path"] = "data"
    numeric = [name for key, name in names.items() if _is_numeric(jobs, key)]
    better = MAIN_METRICS[metric]
    return {"metric": metric, "larger_is_better": better, "keys": list(names.values()), "numeric": numeric}


def _is_numeric(jobs: Jobs, key: str) -> bool:
    try:
        return all(math.isfinite(float(_value(record, key))) for record, _ in jobs)
    except ValueError:
        return False


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
