"""Tables of runs: single runs, sweeps with their jobs, and runs that did not finish."""

from __future__ import annotations

from papers import cells
from papers.content import Table
from papers.runs import Run
from runners.config.names import key_of
from runners.measure.metrics import MAIN_METRICS


def group_sweeps(runs: list[Run]) -> list[list[Run]]:
    """Group runs into entries, newest first: a single run, or a sweep's parent (if recorded) and its jobs, best first.

    Parameters
    ----------
    runs : list of Run, newest first
    """
    entries: dict[str, list[Run]] = {}
    for i, run in enumerate(runs):
        entries.setdefault(f"sweep {run.sweep}" if run.sweep else str(i), []).append(run)
    ordered = [sorted(entry, key=lambda run: (not run.opens_sweep, run.rank)) for entry in entries.values()]
    return sorted(ordered, key=lambda entry: max(run.order for run in entry), reverse=True)


def runs_table(entries: list[list[Run]]) -> Table | None:
    """A row for each run, with the settings that differ between runs; the jobs of a sweep follow its own row."""
    jobs = [run for entry in entries for run in entry if not run.opens_sweep]
    keys = _varied(jobs)
    metrics = [name for name in MAIN_METRICS if any(name in run.metrics for run in jobs)]
    rows = []
    for entry in entries:
        if entry[0].sweep:
            rows.append(_sweep_row(entry, len(keys) + len(metrics)))
        rows += [_run_row(run, keys, metrics) for run in entry if not run.opens_sweep]
    header = ["run", "started", *keys, *metrics, "duration", "status", "id"]
    return Table(header, rows) if rows else None


def failed_table(runs: list[Run]) -> Table | None:
    """Runs that did not finish, with their errors."""
    rows = [
        [
            run.record.name,
            cells.started(run),
            run.record.status,
            cells.error(run),
            cells.command(run),
            cells.identity(run),
        ]
        for run in runs
    ]
    return Table(["run", "started", "status", "error", "command", "id"], rows) if rows else None


def _run_row(run: Run, keys: list[str], metrics: list[str]) -> list[str]:
    name = f"↳ {run.record.name}" if run.sweep else run.record.name
    settings = [cells.shortened(run.setting(key) or "") for key in keys]
    values = [cells.metric(run, metric) for metric in metrics]
    return [name, cells.started(run), *settings, *values, cells.duration(run), run.record.status, cells.identity(run)]


def _sweep_row(entry: list[Run], n_empty: int) -> list[str]:
    jobs = [run for run in entry if not run.opens_sweep]
    status = f"{sum(run.finished for run in jobs)} of {len(jobs)} jobs finished"
    first = min(entry, key=lambda run: run.record.start)
    if entry[0].opens_sweep:
        name, duration, identity = entry[0].record.name, cells.duration(entry[0]), str(cells.identity(entry[0]))
    else:
        name, duration, identity = f"sweep {entry[0].sweep}", "", ""
    return [name, cells.started(first), *[""] * n_empty, duration, status, identity]


def _varied(runs: list[Run]) -> list[str]:
    """Keys on any command line whose values differ between runs, in the order in which they first appear."""
    given = dict.fromkeys(key_of(override) for run in reversed(runs) for override in run.record.overrides)
    return [key for key in given if len({run.setting(key) for run in runs} - {None}) > 1]
