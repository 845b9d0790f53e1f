"""Arranges results as the content of a report, and copies its figures."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from papers import cells
from papers.content import Code, Content, Link, Picture, Section, Table, read_parts
from papers.runs import Experiment, Results, Run
from papers.tables import failed_table, group_sweeps, runs_table
from runners.job.job import slug
from runners.measure.metrics import MAIN_METRICS
from runners.tracking.record import FIGURES

_MAIN = "table"  # the stem of an experiment's main table and figure
_MACHINE = "machine.txt"

_UNFINISHED, _OWN = "Started and not finished", "Not of the papers"


@dataclass(frozen=True)
class Paged:
    """The experiments of the papers' pages, and those pairs (experiment, size) of which they show a result."""

    experiments: set[str] = field(default_factory=set)
    shown: set[tuple[str, str]] = field(default_factory=set)


#: (experiment, size) -> its runs, newest first.
Runs = dict[tuple[str, str], list[Run]]


def arrange(
    results: Results, shown: list[Experiment], sources: list[str], latest: int, folder: Path, paged: Paged
) -> Content:
    """Arrange results, and copy the figures that are shown into ``folder``.

    Parameters
    ----------
    results : Results
    shown : list of Experiment
        The experiments of the report; those without a finished run are listed as missing.
    sources : list of str
        Where the results were read from.
    latest : int >= 0
        Number of runs and sweeps without an experiment that are shown, newest first.
    folder : Path
        The folder of the report.
    paged : Paged
        What the pages of the papers show, and is left out here.
    """
    by_key: Runs = defaultdict(list)
    for run in results.runs:
        if run.experiment:
            by_key[run.experiment, run.size].append(run)
    experiments = {experiment.name: experiment for experiment in shown}
    done = {
        key: runs
        for key, runs in sorted(by_key.items())
        if key[0] in experiments and key not in paged.shown and any(run.finished for run in runs)
    }
    sections = [_section(results, experiments[name], runs, folder) for (name, _), runs in done.items()]
    others = [entry for entry in group_sweeps(results.runs) if entry[0].sweep or not entry[0].experiment]
    newest = [run for entry in others[:latest] for run in entry]
    sweeps = [run for run in newest if run.opens_sweep]
    return Content(
        sources=sources,
        overview=_overview(sections, done),
        sections=sections,
        runs=runs_table(others[:latest]),
        hidden=max(0, len(others) - latest),
        failed=failed_table([run for run in newest if not run.opens_sweep and not run.finished]),
        sweeps=[(run.record.name, cells.command(run)) for run in sweeps],
        pictures=[picture for run in sweeps for picture in _pictures(results, run, folder)],
        missing=_missing(shown, by_key, paged),
    )


def _section(results: Results, experiment: Experiment, runs: list[Run], folder: Path) -> Section:
    newest = _newest_finished(runs)
    section = Section(
        name=experiment.name,
        size=newest.size if experiment.sizes else "",
        anchor=slug(f"{experiment.name}-{newest.size}"),
        about=experiment.about,
        command=cells.command(newest),
        facts=_facts(results, newest),
        older=_older(newest, runs),
        failed=failed_table([run for run in runs if run.order > newest.order]),
    )
    files = results.files(newest)
    if files is None:
        section.lost = True
        return section
    if (files / _MACHINE).is_file():
        section.facts.append(("measured on", _read(files / _MACHINE).strip()))
    section.parts = _parts(files) or [("", _metrics_table(newest))]
    section.pictures = _pictures(results, newest, folder)
    return section


def _newest_finished(runs: list[Run]) -> Run:
    return next(run for run in runs if run.finished)


def _parts(files: Path) -> list[tuple[str, Table | str]]:
    """The tables and texts in the Markdown files of a run; the first part of a file has the title of the file."""
    parts = []
    for path in sorted(files.glob("*.md"), key=_main_first):
        title = "" if path.stem == _MAIN else path.stem.replace("_", " ")
        parts += [("" if i else title, part) for i, part in enumerate(read_parts(_read(path)))]
    return parts


def _metrics_table(run: Run) -> Table:
    metrics = sorted(run.metrics.items(), key=lambda item: _numbers_by_size(item[0]))
    return Table(["metric", "value"], [[name, f"{value:.4g}"] for name, value in metrics])


def _facts(results: Results, run: Run) -> list[tuple[str, str]]:
    record, tags = run.record, run.record.tags
    commit = tags.get("git.commit", "")[:10]
    versions = [f"{key.removeprefix('version.')} {tags[key]}" for key in sorted(tags) if key.startswith("version.")]
    facts = [
        ("run", record.name),
        ("started", cells.started(run)),
        ("duration", cells.duration(run)),
        ("machine", tags.get("machine", "")),
        ("device", tags.get("device", "")),
        ("code", commit + (" with uncommitted changes" if tags.get("git.dirty") == "true" else "")),
        ("versions", ", ".join(versions)),
        ("seed", tags.get("seed", "")),
        ("configuration", Code(record.config_hash)),
        ("MLflow run", Code(record.run_id or "")),
        ("run folder", Code(run.folder.path if run.folder is not None else "")),
    ]
    if results.pages is not None and record.run_id:
        facts.append(("page", Link(cells.public(results.pages) + record.run_id)))
    return [(label, value) for label, value in facts if value]


def _older(newest: Run, runs: list[Run]) -> Table | None:
    """The newest finished run of each configuration other than that of ``newest``."""
    others: dict[str, Run] = {}
    for run in runs:
        if run.finished and run.record.config_hash != newest.record.config_hash:
            others.setdefault(run.record.config_hash, run)
    rows = [
        [
            cells.started(run),
            *(cells.metric(run, name) for name in MAIN_METRICS),
            cells.command(run),
            cells.identity(run),
        ]
        for run in others.values()
    ]
    return Table(["started", *MAIN_METRICS, "command", "id"], rows).without_empty() if rows else None


def _overview(sections: list[Section], done: Runs) -> Table | None:
    rows = []
    for section, runs in zip(sections, done.values(), strict=True):
        newest = _newest_finished(runs)
        finished = sum(run.finished for run in runs)
        counts = str(finished), str(len(runs) - finished)
        rows.append([section.name, section.size, cells.started(newest), cells.duration(newest), *counts])
    return Table(["experiment", "size", "newest", "duration", "finished", "not finished"], rows) if rows else None


def _missing(shown: list[Experiment], by_key: Runs, paged: Paged) -> dict[str, Table]:
    """Experiments without a finished run, with their commands; of those that pages show only what did not finish."""
    rows: dict[str, list[list[str]]] = {_UNFINISHED: [], _OWN: []}
    for experiment in shown:
        tried = {size: runs for (name, size), runs in by_key.items() if name == experiment.name}
        finished = {size for size, runs in tried.items() if any(run.finished for run in runs)}
        origin = _UNFINISHED if experiment.name in paged.experiments else _OWN
        if not experiment.sizes and not finished:
            every = [run for runs in tried.values() for run in runs]
            rows[origin].append([experiment.name, "", Code(experiment.commands[0]), _last_try(every)])
        for size in experiment.sizes:
            if size not in finished and (origin == _OWN or size in tried):
                command = Code(experiment.command(size))
                rows[origin].append([experiment.name, size, command, _last_try(tried.get(size, []))])
    tables = {origin: Table(["experiment", "size", "command", "last try"], found) for origin, found in rows.items()}
    return {origin: table.without_empty() for origin, table in tables.items() if table.rows}


def _last_try(runs: list[Run]) -> str:
    return f"{cells.started(runs[0])}, {runs[0].record.status}: {cells.error(runs[0])}" if runs else ""


def _pictures(results: Results, run: Run, folder: Path) -> list[Picture]:
    """Copy the figures of a run into a folder of their own within the report."""
    files = results.files(run)
    found = sorted((files / FIGURES).glob("*.png"), key=_main_first) if files is not None else []
    if not found:
        return []
    name = f"{run.experiment}-{run.size}" if run.experiment else run.record.name
    target = _unused(folder / FIGURES, slug(name))
    target.mkdir(parents=True)
    pictures = []
    for path in found:
        copy = _unused(target, slug(path.stem), ".png")
        shutil.copyfile(path, copy)
        pictures.append(Picture(name, path.stem.replace("_", " "), copy.relative_to(folder).as_posix()))
    return pictures


def _unused(folder: Path, stem: str, ending: str = "") -> Path:
    names = (f"{stem}{f'-{i}' if i else ''}{ending}" for i in count())
    return next(folder / name for name in names if not (folder / name).exists())


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _main_first(path: Path) -> tuple[bool, str]:
    return path.stem != _MAIN, path.stem


def _numbers_by_size(name: str) -> list[tuple[int, str]]:
    """Sort key of a name with which r8 comes before r16."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
