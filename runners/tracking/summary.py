"""The summary of a sweep: a table and a figure of all its jobs."""

from __future__ import annotations

from matplotlib.figure import Figure

from orbit import plots
from runners.base import MAIN_METRICS
from runners.markdown import markdown_table, mean_and_spread
from runners.tracking.record import Record, RunFolder, SweepFolder

#: Metrics in the table of a sweep, where the jobs have them.
_SHOWN_METRICS = (*MAIN_METRICS, "features/dim", "time/total_s")

Jobs = list[tuple[Record, dict[str, float]]]  # each job's record and metrics


def write_summary(folder: SweepFolder) -> Jobs:
    """Write ``summary.md`` and a figure into the folder of a sweep, and return its jobs, if it has any."""
    jobs = job_records(folder)
    if jobs:
        folder.write_text("summary.md", summary(jobs) + "\n")
        if (figure := _figure(jobs)) is not None:
            folder.write_figure("summary", figure)
    return jobs


def summary(records: Jobs) -> str:
    """A Markdown table with a row for each job: the overrides that differ between jobs, and the metrics."""
    varied = _varied(records)
    metrics = [key for key in _SHOWN_METRICS if any(key in m for _, m in records)]
    header = ["job", "run", *varied, *metrics, "status"]
    rows = [
        [
            str(r.job),
            r.name,
            *(_overrides(r).get(key, "") for key in varied),
            *(_number(m.get(key)) for key in metrics),
            r.status,
        ]
        for r, m in records
    ]
    table = markdown_table(header, rows)
    return f"{table}\n\n{_over_seeds(records)}" if "seed" in varied else table


def _over_seeds(records: Jobs) -> str:
    """A Markdown table with a row for each configuration: means and standard deviations over its seeds."""
    varied = [key for key in _varied(records) if key != "seed"]
    groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for record, metrics in records:
        if metrics:
            groups.setdefault(tuple(_overrides(record).get(key, "") for key in varied), []).append(metrics)
    shown = [key for key in _SHOWN_METRICS if any(key in m for found in groups.values() for m in found)]
    rows = [
        [*values, str(len(found)), *(mean_and_spread([m[key] for m in found if key in m]) for key in shown)]
        for values, found in groups.items()
    ]
    return markdown_table([*varied, "seeds", *shown], rows)


def _figure(records: Jobs) -> Figure | None:
    """A figure of the main metric of every configuration, over its seeds; None if only seeds differ."""
    metric = next((key for key in MAIN_METRICS if any(key in m for _, m in records)), None)
    varied = [key for key in _varied(records) if key != "seed"]
    if metric is None or not varied:
        return None
    results: dict[str, list[float]] = {}
    for record, metrics in records:
        if metric in metrics:
            name = ", ".join(f"{key}={_overrides(record).get(key, '')}" for key in varied)
            results.setdefault(name, []).append(metrics[metric])
    return plots.compared(results, metric)


def _overrides(record: Record) -> dict[str, str]:
    return dict(override.lstrip("+~").partition("=")[::2] for override in record.overrides)


def _varied(records: Jobs) -> list[str]:
    """The overridden keys whose values differ between jobs, in the order they were given."""
    names = dict.fromkeys(key for record, _ in records for key in _overrides(record))
    return [key for key in names if len({_overrides(record).get(key) for record, _ in records}) > 1]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def job_records(folder: SweepFolder) -> Jobs:
    """The records and metrics of the jobs of a sweep, by number."""
    folders = [RunFolder(path) for path in folder.path.iterdir() if path.is_dir()]
    found = [(record, run.read_metrics()) for run in folders if (record := run.read_record()) is not None]
    return sorted(found, key=lambda pair: pair[0].job or 0)
