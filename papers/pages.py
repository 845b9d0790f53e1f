"""The pages of the papers: an index with a row for each table and figure, and a page for each paper."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers import markdown
from papers.overview import PICTURE
from papers.published import Experiment, Item, Paper
from papers.records import FOLDER, Gathered, PublishedRun
from runners.measure.results import TABLE, Result
from runners.tracking.record import FIGURES

_SIZES = ("paper", "middle", "small")  # the first of which there is a result stands in the index

_ROUNDING = 1e-12  # share of a mean that is no deviation

_ABOUT = (
    "Every table and figure of four papers, with the published value, ours, and their ratio. size=paper has the "
    "numbers of points, components and repetitions of the paper, size=middle takes hours, and size=small minutes, so "
    "its values say no more than the order. Of a row with values at several sizes, ratio, repeats, settings and "
    "seconds are those of the first value; curves are of the largest size. A deviation is the standard deviation over "
    "seeds or folds, with divisor n; a value without one is of a single seed. Times are wall clock, of machines that "
    "had other work too; of rows that have features in common, the first has the time of computing them. The records "
    "have the command, commit, machine, time and memory of each run."
)

_PICTURE = markdown.Markdown(
    "Each disc is a row of a table at size=paper, with the published value of the same row where there is one. Named "
    "are those whose error is a tenth below that of all faster ones; [Encoders](encoders.md) describes the rows of "
    "patches."
)


def pages(
    papers: Sequence[Paper], kept: Mapping[str, Gathered], experiments: Mapping[str, Experiment], folder: Path
) -> dict[str, str]:
    """The index and a page for each paper, as Markdown, by name.

    Parameters
    ----------
    papers : sequence of Paper
    kept : mapping
        ``EXPERIMENT-SIZE`` -> the result at that size.
    experiments : mapping
        Name -> experiment, for its commands.
    folder : Path
        The folder of the pages: a picture is shown if its file is in ``figures/EXPERIMENT-SIZE`` there.
    """
    return {"index": _index(papers, kept)} | {paper.name: _page(paper, kept, experiments, folder) for paper in papers}


def _index(papers: Sequence[Paper], kept: Mapping[str, Gathered]) -> str:
    items = [item for paper in papers for item in paper.items if item.experiment]
    whole = [[run.size for run in _runs(item, kept) if not run.missing(item.parts)] for item in items]
    largest = [sizes[0] for sizes in whole if sizes]
    smaller = [f", {largest.count(size)} at size={size}" for size in ("middle", "small") if size in largest]
    total = (
        f"Of {len(items)} tables and figures with an experiment, {largest.count('paper')} have a complete result at "
        f"size=paper{''.join(smaller)}."
    )
    blocks = [
        _ABOUT,
        total,
        markdown.picture("Error against seconds and memory, ours and published", PICTURE),
        _PICTURE,
    ]
    for paper in papers:
        blocks += [markdown.heading(f"{paper.authors}: {paper.title}"), _summary(paper, kept)]
    return markdown.page("Results beside the papers'", blocks)


def _summary(paper: Paper, kept: Mapping[str, Gathered]) -> str:
    """A row for each table and figure: its main figure."""
    rows = []
    for item in paper.items:
        run = next(iter(_runs(item, kept)), None)
        main = item.headline.find(run.results) if item.headline and run else None
        status = "not repeated" if item.reason else f"size={run.size}" if run else "not run"
        status += ", in part" if run and run.missing(item.parts) else ""
        rows.append([markdown.link(item.name, paper.name), item.about, status, *_compared(item, main)])
    return markdown.table(["", "what", "status", "published", "ours", "ratio"], rows)


def _compared(item: Item, main: Result | None) -> list[str]:
    """Published value, ours, and their ratio."""
    published = item.published if item.published != "" else (main.published if main else None)
    if main is None:
        return [_published(published, ""), "", ""]
    where = f" ({main.label}{f', {_last(main.key)}={main.x}' if main.x is not None else ''})"
    ratio = main.mean / published if isinstance(published, float | int) and published else None
    return [_published(published, main.metric), _ours(main) + where, _ratio(ratio)]


def _page(paper: Paper, kept: Mapping[str, Gathered], experiments: Mapping[str, Experiment], folder: Path) -> str:
    about = markdown.text(f"{paper.authors}: {paper.title}.")
    blocks: list[str] = [markdown.Markdown(f"{about} The [index](index.md) says what the columns mean.")]
    for item in paper.items:
        published = "" if item.published == "" else f" Published: {item.published}."
        blocks += [markdown.heading(item.name), f"{item.about[:1].upper()}{item.about[1:]}.{published}"]
        if item.reason:
            blocks.append(f"Not repeated: {item.reason}.")
            continue
        runs = _runs(item, kept)
        blocks += _tables(item, runs)
        blocks += next((found for run in runs if (found := _pictures(item, run, folder))), [])
        blocks += [_choices(item)] if runs and item.chosen_on else []
        blocks += [_provenance(item, run) for run in runs]
        if item.quoted:
            blocks.append(f"The paper quotes from others, not repeated here: {item.quoted}.")
        if item.experiment in experiments:
            blocks += _not_run(experiments[item.experiment], [run.size for run in runs])
    return markdown.page(paper.authors, blocks)


def _tables(item: Item, runs: Sequence[Gathered]) -> list[str]:
    """A table for each part of an item."""
    found: dict[str, dict[str, list[Result]]] = {}
    for run in runs:
        for part, results in item.shown(run.results).items():
            found.setdefault(part, {})[run.size] = results
    return [part_table(part, by_size) for part, by_size in found.items()]


def _choices(item: Item) -> str:
    """On which data settings were chosen, and of which rows on others."""
    rows: dict[str, list[str]] = {}
    for name, data in item.chosen_on.items():
        rows.setdefault(data, []).append(name)
    others = [f"of {', '.join(map(repr, names))} on {data}" for data, names in rows.items() if names != [""]]
    return f"Settings that the paper does not give were chosen on {'; '.join([item.chosen_on[''], *others])}."


def _provenance(item: Item, run: Gathered) -> markdown.Markdown:
    """How the results at one size were made, and how they depart from the paper."""
    used = run.used(item.shown(run.results)) or run.runs  # all for an item that is a picture
    facts = [
        f"{len(used)} runs" if len(used) > 1 else "",
        _named("seed", [one.seed for one in used]) if len(used) > 1 else "",
        _named("commit", [one.commit for one in used]),
        " and ".join(dict.fromkeys(one.machine for one in used)),
        " to ".join(sorted({used[0].started[:10], used[-1].started[:10]})),
        _duration(sum(one.seconds or 0.0 for one in used) or None),
    ]
    made = "; ".join([markdown.code(_common(used)), *(markdown.text(fact) for fact in facts if fact)])
    notes = [f"Departs from the paper: {item.departures[run.size]}."] if run.size in item.departures else []
    notes += _not_run_yet(item, run) + [f"{one.note}." for one in used if one.note]
    records = markdown.code(f"{FOLDER}/{run.name}*.json")
    return markdown.Markdown(" ".join([f"size={run.size}: {made}; {records}.", *map(markdown.text, notes)]))


def _common(runs: Sequence[PublishedRun]) -> str:
    """The words that the commands have in common."""
    first, *others = (shlex.split(run.command) for run in runs)
    return shlex.join(word for word in first if all(word in other for other in others))


def _named(name: str, values: Sequence[str]) -> str:
    different = list(dict.fromkeys(filter(None, values)))
    return f"{name}{'s' if len(different) > 1 else ''} {', '.join(different)}" if different else ""


def _not_run_yet(item: Item, run: Gathered) -> list[str]:
    missing = run.missing(item.parts)
    rows = f"{len(missing)} rows or curves" if len(missing) > 1 else "".join(missing)
    return [f"Not run yet: {rows}."] if missing else []


def _pictures(item: Item, run: Gathered, folder: Path) -> list[str]:
    paths = {stem: f"{FIGURES}/{run.name}/{stem}.png" for stem in item.pictures}
    return [
        markdown.picture(f"{run.name}: {stem.replace('_', ' ')}", path)
        for stem, path in paths.items()
        if (folder / path).is_file()
    ]


def _not_run(experiment: Experiment, sizes: Sequence[str]) -> list[str]:
    missing = [size for size in experiment.sizes if size not in sizes]
    if not missing:
        return []
    named = " and ".join(f"size={size}" for size in missing)
    return [f"No result yet at {named}:", markdown.commands([experiment.command(size) for size in missing])]


def _runs(item: Item, kept: Mapping[str, Gathered]) -> list[Gathered]:
    """What there is of an item at each size, at the paper's size first."""
    found = [kept[name] for size in _SIZES if (name := f"{item.experiment}-{size}") in kept]
    return [run for run in found if item.shown(run.results) or item.parts == []]


def part_table(part: str, by_size: Mapping[str, list[Result]]) -> str:
    """The results of one part, by size: a row each; of a curve, those of the first size, a column for each line."""
    size, results = next(iter(by_size.items()))
    if any(result.x is not None for result in results):
        return _curve(size, results)
    rows: dict[str, dict[str, Result]] = {}
    for size, some in by_size.items():
        for result in some:
            rows.setdefault(result.label, {})[size] = result
    settings = list(dict.fromkeys(key for some in by_size.values() for result in some for key in result.settings))
    name = results[0].metric if part in (TABLE, results[0].metric) else f"{part}: {results[0].metric}"
    header = [name, "published", *(f"size={size}" for size in by_size), "ratio", "repeats", *settings, "seconds"]
    return markdown.table(header, [_row(values, list(by_size), settings) for values in rows.values()])


def _row(values: Mapping[str, Result], sizes: Sequence[str], settings: Sequence[str]) -> list[str]:
    """Size -> the result of one row; what is not its value is that of the first."""
    first = next(iter(values.values()))
    return [
        first.label,
        _published(first.published, first.metric),
        *(_ours(values[size]) if size in values else "" for size in sizes),
        _ratio(first.ratio),
        str(first.repeats),
        *(str(first.settings.get(key, "")) for key in settings),
        "" if first.seconds is None else f"{first.seconds:.1f}",
    ]


def _curve(size: str, results: list[Result]) -> str:
    moving = [result for result in results if result.x is not None]
    lines = list(dict.fromkeys(result.label for result in moving))
    places = list(dict.fromkeys(result.x for result in moving))
    cells = {(result.label, result.x): _ours(result) for result in moving}
    rows = [[str(x), *(cells.get((label, x), "") for label in lines)] for x in places]
    levels = [result for result in results if result.x is None]
    rows += [[level.label, _ours(level), *[""] * (len(lines) - 1)] for level in levels]
    return markdown.table([f"{moving[0].metric} by {_last(moving[0].key)}, size={size}", *lines], rows)


def _ours(result: Result) -> str:
    """Mean and deviation, accuracies in per cent."""
    scale, unit = (100, " %") if result.metric.endswith("accuracy") else (1, "")
    is_spread = result.repeats > 1 and result.deviation > _ROUNDING * abs(result.mean)
    spread = f" ± {scale * result.deviation:.2g}" if is_spread else ""
    return f"{scale * result.mean:.4g}{spread}{unit}"


def _published(value: Any, metric: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return _ours(Result("", "", metric, [float(value)]))


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _last(key: str) -> str:
    return key.rpartition(".")[2]
