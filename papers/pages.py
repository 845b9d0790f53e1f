"""The pages of the papers: an index with a row for each table and figure, and a page for each paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers import markdown
from papers.published import Experiment, Item, Paper
from papers.records import Gathered, PublishedRun
from runners.measure.results import TABLE, Result
from runners.tracking.record import FIGURES

_SIZES = ("paper", "middle", "small")  # the first of which there is a result stands in the index

_ROUNDING = 1e-12  # share of a mean that is no deviation

_ABOUT = (
    "Every table and figure of four papers, with the published value, ours, and their ratio. A status of size=paper "
    "means the numbers of points, components and repetitions of the paper; size=middle is for experiments that take "
    "days at that size, and takes hours; size=small takes minutes, so its values are not to be compared with the "
    "published ones beyond their order. A deviation is the standard deviation over seeds or folds, with divisor n; "
    "a value without one is of a single seed. Times are wall clock, of machines that had other work too; processor "
    "time is the sum over cores. Of rows that have features in common, the first has the time of computing them."
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
    blocks = [_ABOUT, total]
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
    blocks = [f"{paper.authors}: {paper.title}.", _summary(paper, kept)]
    for item in paper.items:
        blocks += [markdown.heading(item.name), f"{item.about[:1].upper()}{item.about[1:]}."]
        if item.reason:
            blocks.append(f"Not repeated: {item.reason}.")
            continue
        runs = _runs(item, kept)
        pictured = next((run for run in runs if _pictures(item, run, folder)), None)
        for run in runs:
            blocks += _at_size(item, run, _pictures(item, run, folder) if run is pictured else [])
        if item.quoted:
            blocks.append(f"The paper quotes from others, not repeated here: {item.quoted}.")
        if item.experiment in experiments:
            blocks += _not_run(experiments[item.experiment], [run.size for run in runs])
    return markdown.page(paper.authors, blocks)


def _at_size(item: Item, run: Gathered, pictures: list[str]) -> list[str]:
    """The figures of an item at one size, and how they were made."""
    shown = item.shown(run.results)
    blocks: list[str] = [markdown.heading(f"{item.name} at size={run.size}", 3)]
    blocks += [part_table(part, results) for part, results in shown.items()] + pictures
    if run.size in item.departures:
        blocks.append(f"Departs from the paper: {item.departures[run.size]}.")
    missing = run.missing(item.parts)
    if run.unfinished:
        rows = "only the rows that it has are shown" if missing else "it ended after these results"
        blocks.append(f"The run has not finished ({run.unfinished}): {rows}.")
    elif missing:
        blocks.append(f"Not run yet: {'; '.join(missing)}.")
    used = run.used(shown) or run.runs  # all for an item that is a picture
    return [*blocks, *(f"{one.note}." for one in used if one.note), _facts(used)]


def _pictures(item: Item, run: Gathered, folder: Path) -> list[str]:
    paths = {stem: f"{FIGURES}/{run.name}/{stem}.png" for stem in item.pictures}
    return [
        markdown.picture(f"{run.name}: {stem.replace('_', ' ')}", path)
        for stem, path in paths.items()
        if (folder / path).is_file()
    ]


def _facts(runs: Sequence[PublishedRun]) -> str:
    """How results were made: a row for each run."""
    header = ["command", "commit", "seed", "machine", "date", "time", "processor time", "memory"]
    rows = [
        [
            markdown.code(run.command),
            run.commit,
            run.seed,
            run.machine,
            run.started[:10],
            _duration(run.seconds),
            _duration(run.processor_s),
            "" if run.memory_mb is None else f"{run.memory_mb:.0f} MB",
        ]
        for run in runs
    ]
    return markdown.table(header, rows)


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


def part_table(part: str, results: list[Result]) -> str:
    """The results of one part: a row each, or, of a curve, a row for each point and a column for each line."""
    if any(result.x is not None for result in results):
        return _curve(results)
    settings = list(dict.fromkeys(key for result in results for key in result.settings))
    name = results[0].metric if part in (TABLE, results[0].metric) else f"{part}: {results[0].metric}"
    header = [name, "published", "ours", "ratio", "repeats", *settings, "seconds"]
    rows = [
        [
            result.label,
            _published(result.published, result.metric),
            _ours(result),
            _ratio(result.ratio),
            str(result.repeats),
            *(str(result.settings.get(key, "")) for key in settings),
            "" if result.seconds is None else f"{result.seconds:.1f}",
        ]
        for result in results
    ]
    return markdown.table(header, rows)


def _curve(results: list[Result]) -> str:
    moving = [result for result in results if result.x is not None]
    lines = list(dict.fromkeys(result.label for result in moving))
    places = list(dict.fromkeys(result.x for result in moving))
    cells = {(result.label, result.x): _ours(result) for result in moving}
    rows = [[str(x), *(cells.get((label, x), "") for label in lines)] for x in places]
    levels = [result for result in results if result.x is None]
    rows += [[level.label, _ours(level), *[""] * (len(lines) - 1)] for level in levels]
    return markdown.table([f"{moving[0].metric} by {_last(moving[0].key)}", *lines], rows)


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
