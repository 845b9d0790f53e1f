"""What the report says: results arranged in tables and sections, in no format yet."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from runners.base import MAIN_METRICS, slug
from runners.report.results import Experiment, Results, Run

_MAIN = "table"  # what experiments call their main table, and its picture
_MACHINE = "machine.txt"
_LONGEST_CELL = 60
_LONGEST_ERROR = 300


class Code(str):
    """Text to be shown letter by letter, such as a command."""


class Link(str):
    """An address on the web."""


@dataclass(frozen=True)
class Table:
    """Rows of cells, all as long as the header."""

    header: list[str]
    rows: list[list[str]]

    def without_empty(self) -> Table:
        """The table without the columns that say nothing."""
        kept = [i for i in range(len(self.header)) if any(row[i] for row in self.rows)]
        return Table([self.header[i] for i in kept], [[row[i] for i in kept] for row in self.rows])


@dataclass(frozen=True)
class Picture:
    """A PNG of the report; ``path`` is relative to it."""

    run: str
    title: str
    path: str


@dataclass
class Section:
    """One experiment at one size, by its newest finished run."""

    name: str
    size: str
    anchor: str
    about: str
    command: Code
    facts: list[tuple[str, str]]
    parts: list[tuple[str, Table | str]] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    older: Table | None = None
    failed: Table | None = None
    lost: bool = False


@dataclass
class Content:
    """All of the report."""

    sources: list[str]
    overview: Table | None
    sections: list[Section]
    runs: Table | None
    hidden: int
    failed: Table | None
    sweeps: list[tuple[str, Code]]
    pictures: list[Picture]
    missing: dict[str, Table]


def arrange(results: Results, known: list[Experiment], sources: list[str], latest: int, folder: Path) -> Content:
    """Arrange results, and copy the pictures that are shown into ``folder``.

    Parameters
    ----------
    results : Results
    known : list of Experiment
        Those to show, and to miss where they have not run.
    sources : list of str
        Where the results are from.
    latest : int >= 0
        Runs and sweeps without an experiment that are shown.
    folder : Path
        The folder of the report.
    """
    by_key: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in results.runs:
        if run.experiment:
            by_key[run.experiment, run.size].append(run)
    shown = {e.name: e for e in known}
    done = {key: runs for key, runs in sorted(by_key.items()) if key[0] in shown and any(r.finished for r in runs)}
    sections = [_section(results, shown[key[0]], runs, folder) for key, runs in done.items()]
    entries = _entries(results.runs)
    runs = [entry for entry in entries if entry[0].sweep or not entry[0].experiment]
    shown_runs = [run for entry in runs[:latest] for run in entry]
    sweeps = [run for run in shown_runs if run.opens_sweep]
    return Content(
        sources=sources,
        overview=_overview(sections, done),
        sections=sections,
        runs=_runs_table(runs[:latest]),
        hidden=max(0, len(runs) - latest),
        failed=_failed([run for run in shown_runs if not run.opens_sweep and not run.finished]),
        sweeps=[(run.record.name, _command(run)) for run in sweeps],
        pictures=[picture for run in sweeps for picture in _pictures(results, run, folder)],
        missing=_missing(known, by_key),
    )


def command_line(overrides: list[str], *options: str) -> Code:
    """The command that was given, without the passwords of addresses in it.

    >>> command_line(["approx=rf", "tracking.uri=http://me:secret@host", "kernel={a: 1}"])
    "python run.py approx=rf tracking.uri=http://***@host 'kernel={a: 1}'"
    """
    return Code(without_password(shlex.join(["python", "run.py", *options, *overrides])))


def without_password(text: str) -> str:
    """Addresses without user names and passwords.

    >>> without_password("postgresql://me:secret@host/runs")
    'postgresql://***@host/runs'
    """
    return re.sub(r"//[^/@\s]+@", "//***@", text)


def read_parts(text: str) -> list[Table | str]:
    """The tables that a run wrote as Markdown, and the text around them as it is.

    >>> read_parts("| run | error |\\n| --- | ----- |\\n| a   | 0.1   |\\n\\nPublished: 1999.\\n")
    [Table(header=['run', 'error'], rows=[['a', '0.1']]), 'Published: 1999.']
    """
    blocks = [block for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip()]
    return [_read_table(block) or block for block in blocks]


def _read_table(block: str) -> Table | None:
    lines = [line.strip() for line in block.splitlines()]
    if len(lines) < 2 or not all(line.startswith("|") and line.endswith("|") for line in lines):
        return None
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    if len({len(row) for row in rows}) > 1 or not all(re.fullmatch(":?-+:?", cell) for cell in rows[1]):
        return None
    return Table(rows[0], rows[2:])


def _section(results: Results, experiment: Experiment, runs: list[Run], folder: Path) -> Section:
    newest = next(run for run in runs if run.finished)
    anchor = slug(f"{experiment.name}-{newest.size}")
    section = Section(
        name=experiment.name,
        size=newest.size if experiment.sizes else "",
        anchor=anchor,
        about=experiment.about,
        command=command_line(newest.record.overrides),
        facts=_facts(results, newest),
        older=_older(newest, runs),
        failed=_failed([run for run in runs if run.age > newest.age]),
    )
    files = results.files(newest)
    if files is None:
        section.lost = True
        return section
    if (files / _MACHINE).is_file():
        section.facts.append(("measured on", _text(files / _MACHINE).strip()))
    for path in sorted(files.glob("*.md"), key=_main_first):
        title = "" if path.stem == _MAIN else path.stem.replace("_", " ")
        for i, part in enumerate(read_parts(_text(path))):
            section.parts.append((title if i == 0 else "", part))
    if not section.parts:
        metrics = sorted(newest.metrics.items(), key=lambda item: _numbers_by_size(item[0]))
        figures = [[name, f"{value:.4g}"] for name, value in metrics]
        section.parts.append(("", Table(["figure", "value"], figures)))
    section.pictures = _pictures(results, newest, folder)
    return section


def _facts(results: Results, run: Run) -> list[tuple[str, str]]:
    record, tags = run.record, run.record.tags
    commit = tags.get("git.commit", "")[:10]
    versions = [f"{key.removeprefix('version.')} {tags[key]}" for key in sorted(tags) if key.startswith("version.")]
    facts = [
        ("run", record.name),
        ("made", _date(record.start)),
        ("took", _duration(run)),
        ("machine", tags.get("machine", "")),
        ("device", tags.get("device", "")),
        ("code", commit + (" with changes not committed" if tags.get("git.dirty") == "true" else "")),
        ("versions", ", ".join(versions)),
        ("seed", tags.get("seed", "")),
        ("configuration", Code(record.config_hash)),
        ("MLflow run", Code(record.run_id or "")),
        ("run folder", Code(str(run.folder.path)) if run.folder is not None else ""),
    ]
    if results.pages is not None and record.run_id:
        facts.append(("page", Link(without_password(results.pages) + record.run_id)))
    return [(label, value) for label, value in facts if value]


def _older(newest: Run, runs: list[Run]) -> Table | None:
    """The newest finished run of every other configuration."""
    others: dict[str, Run] = {}
    for run in runs:
        if run.finished and run.record.config_hash != newest.record.config_hash:
            others.setdefault(run.record.config_hash, run)
    rows = [[_date(run.record.start), *_main_figure(run), _command(run), _identity(run)] for run in others.values()]
    return Table(["made", *MAIN_METRICS, "command", "id"], rows).without_empty() if rows else None


def _failed(runs: list[Run]) -> Table | None:
    rows = [
        [run.record.name, _date(run.record.start), run.record.status, _error(run), _command(run), _identity(run)]
        for run in runs
    ]
    return Table(["run", "started", "status", "error", "command", "id"], rows) if rows else None


def _overview(sections: list[Section], done: dict[tuple[str, str], list[Run]]) -> Table | None:
    rows = []
    for section, runs in zip(sections, done.values(), strict=True):
        newest = next(run for run in runs if run.finished)
        when = _date(newest.record.start)
        finished = str(sum(run.finished for run in runs))
        rows.append([section.name, section.size, when, _duration(newest), finished, str(len(runs) - int(finished))])
    return Table(["experiment", "size", "newest", "took", "finished", "not finished"], rows) if rows else None


def _entries(runs: list[Run]) -> list[list[Run]]:
    """Each run that is no part of a sweep by itself; each sweep as what opens it, if that is known, and its runs."""
    entries: dict[str, list[Run]] = {}
    for i, run in enumerate(runs):
        entries.setdefault(f"sweep {run.sweep}" if run.sweep else str(i), []).append(run)
    ordered = [sorted(entry, key=lambda run: (not run.opens_sweep, run.rank)) for entry in entries.values()]
    return sorted(ordered, key=lambda entry: max(run.age for run in entry), reverse=True)


def _runs_table(entries: list[list[Run]]) -> Table | None:
    """A row a run, those of a sweep under a row of its own, the best first."""
    fitted = [run for entry in entries for run in entry if not run.opens_sweep]
    keys = _varied(fitted)
    metrics = [name for name in MAIN_METRICS if any(name in run.metrics for run in fitted)]
    rows = []
    for entry in entries:
        if entry[0].sweep:
            rows.append(_sweep_row(entry, len(keys), len(metrics)))
        for run in entry:
            if not run.opens_sweep:
                name = f"↳ {run.record.name}" if run.sweep else run.record.name
                values = [_short(run.setting(key) or "") for key in keys]
                figures = [_figure(run, metric) for metric in metrics]
                about = _duration(run), run.record.status, _identity(run)
                rows.append([name, _date(run.record.start), *values, *figures, *about])
    header = ["run", "started", *keys, *metrics, "took", "status", "id"]
    return Table(header, rows) if rows else None


def _sweep_row(entry: list[Run], keys: int, metrics: int) -> list[str]:
    jobs = [run for run in entry if not run.opens_sweep]
    name = entry[0].record.name if entry[0].opens_sweep else f"sweep {entry[0].sweep}"
    finished = sum(run.finished for run in jobs)
    start = min(run.record.start for run in entry)
    took = _duration(entry[0]) if entry[0].opens_sweep else ""
    identity = _identity(entry[0]) if entry[0].opens_sweep else ""
    status = f"{finished} of {len(jobs)} jobs finished"
    return [name, _date(start), *[""] * (keys + metrics), took, status, identity]


def _varied(runs: list[Run]) -> list[str]:
    """The keys that someone set and whose values differ between runs, in the order that the oldest run gave them."""
    given = dict.fromkeys(
        override.lstrip("+~").partition("=")[0] for run in reversed(runs) for override in run.record.overrides
    )
    return [key for key in given if len({run.setting(key) for run in runs} - {None}) > 1]


def _missing(known: list[Experiment], by_key: dict[tuple[str, str], list[Run]]) -> dict[str, Table]:
    """What has no finished run, with its command; the papers' experiments, which have several sizes, and others."""
    rows: dict[str, list[list[str]]] = {"Of the papers": [], "Of this project's own": []}
    for experiment in known:
        tried = {size: runs for (name, size), runs in by_key.items() if name == experiment.name}
        finished = {size for size, runs in tried.items() if any(run.finished for run in runs)}
        # without sizes of its own an experiment is the same at each
        for size in experiment.sizes or ([] if finished else [""]):
            if size in finished:
                continue
            runs = tried.get(size, []) if size else [run for found in tried.values() for run in found]
            last = f"{_date(runs[0].record.start)}, {runs[0].record.status}: {_error(runs[0])}" if runs else ""
            part = "Of the papers" if experiment.sizes else "Of this project's own"
            command = experiment.command(size) if size else experiment.commands[0]
            rows[part].append([experiment.name, size, Code(command), last])
    tables = {part: Table(["experiment", "size", "command", "last try"], found) for part, found in rows.items()}
    return {part: table.without_empty() for part, table in tables.items() if table.rows}


def _pictures(results: Results, run: Run, folder: Path) -> list[Picture]:
    """The pictures of a run, copied into the report; a folder of their own for each run."""
    files = results.files(run)
    found = sorted((files / "figures").glob("*.png"), key=_main_first) if files is not None else []
    if not found:
        return []
    what = f"{run.experiment}-{run.size}" if run.experiment else run.record.name
    target = _unused(folder / "figures", slug(what))
    target.mkdir(parents=True)
    pictures = []
    for path in found:
        copy = _unused(target, slug(path.stem), ".png")
        shutil.copyfile(path, copy)
        pictures.append(Picture(what, path.stem.replace("_", " "), copy.relative_to(folder).as_posix()))
    return pictures


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _main_first(path: Path) -> tuple[bool, str]:
    return path.stem != _MAIN, path.stem


def _numbers_by_size(name: str) -> list[tuple[int, str]]:
    """Sorts names so that r8 comes before r16."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _unused(folder: Path, stem: str, ending: str = "") -> Path:
    names = (f"{stem}{f'-{i}' if i else ''}{ending}" for i in count())
    return next(folder / name for name in names if not (folder / name).exists())


def _main_figure(run: Run) -> list[str]:
    return [_figure(run, name) for name in MAIN_METRICS]


def _figure(run: Run, metric: str) -> str:
    return f"{run.metrics[metric]:.4g}" if metric in run.metrics else ""


def _command(run: Run) -> Code:
    return command_line(run.record.overrides, *(["-m"] if run.opens_sweep else []))


def _identity(run: Run) -> Code:
    return Code(run.record.run_id or (run.folder.path if run.folder is not None else ""))


def _error(run: Run) -> str:
    return _short(without_password(run.record.error or ""), _LONGEST_ERROR)


def _short(text: str, longest: int = _LONGEST_CELL) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _duration(run: Run) -> str:
    if run.record.end is None:
        return ""
    seconds = run.record.end - run.record.start
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {seconds} s"
