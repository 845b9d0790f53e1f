"""Results as they are kept beside the pages that show them: a JSON file for each experiment and size, or part of it."""

from __future__ import annotations

import hashlib
import itertools
import json
import shlex
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from orbit.core.errors import InputError
from runners.config.program import program
from runners.job.job import LONGEST_SLUG, slug
from runners.measure.results import GAP, TABLE, Result
from runners.tracking.record import Record, RunFolder

#: The folder of the files, in that of the pages.
FOLDER = "records"

# Relative differences of values up to which runs of two seeds are taken for the same repeats, computed twice.
_SAME = 1e-3

# Settings of a machine, or of how a run goes on, and not of a result.
_OF_THE_MACHINE = (
    *("tracking.", "hydra.", "outputs=", "resume=", "retry_failed=", "run_name=", "feature_cache="),
    *("engine.workers=", "engine.memory=", "engine.progress="),
)

# Words of a command in which runs of one experiment that are put together may differ.
_NO_SETTINGS = ("runner.only=", "size=", "seed=", "engine.device=")


@dataclass(frozen=True)
class PublishedRun:
    """A finished run of an experiment, as the pages show it.

    Attributes
    ----------
    experiment, size, seed : str
    command : str
        The command that repeats it; the data folder is ``FOLDER``.
    started : str
        Date and time, UTC.
    seconds, processor_s, memory_mb : float or None
        Wall clock, processor time, and peak memory; times with those of earlier runs that were stopped.
    machine : str
    commit : str
        The version of the code; ends with `` with changes`` for one that was not committed.
    results : list of Result
    rows, curves : list of str
        What the whole experiment has, in its order, for a run of some of it (``runner.only``); else empty.
    note : str
        What is not known of it, such as for figures taken from an older page.
    """

    experiment: str
    size: str
    command: str
    started: str = ""
    seed: str = ""
    seconds: float | None = None
    processor_s: float | None = None
    memory_mb: float | None = None
    machine: str = ""
    commit: str = ""
    results: list[Result] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    curves: list[str] = field(default_factory=list)
    note: str = ""

    @classmethod
    def of(cls, record: Record, folder: RunFolder) -> PublishedRun:
        """What is kept of a run."""
        tags, metrics = record.tags, folder.read_metrics()
        ended = record.end if record.end is not None else record.start
        earlier, earlier_processor = (metrics.get(f"time/earlier_{key}", 0.0) for key in ("s", "processor_s"))
        processor = metrics.get("time/processor_s")
        changed = " with changes" if tags.get("git.dirty") == "true" else ""
        rows, curves = (json.loads(tags.get(key, "[]")) for key in ("rows", "curves"))
        commit = tags.get("git.commit", "")[:10] or f"version {tags.get('version.orbit', 'unknown')}"
        return cls(
            experiment=tags["experiment"],
            size=str(record.params.get("size", "small")),
            command=_command(record.overrides, bool(record.files)),
            started=time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(record.start)),
            seed=tags.get("seed", ""),
            seconds=round(metrics.get("time/total_s", ended - record.start) + earlier, 1),
            processor_s=None if processor is None else round(processor + earlier_processor, 1),
            memory_mb=None if earlier else _rounded(metrics.get("memory/peak_mb")),  # that of other processes is lost
            machine=tags.get("machine", ""),
            commit=commit + changed,
            results=[Result.unpacked(values) for values in folder.read_results()],
            rows=rows,
            curves=curves,
        )

    @classmethod
    def read(cls, path: Path) -> PublishedRun:
        """From a file.

        Raises
        ------
        InputError
            For a file of another program, or a damaged one.
        """
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            results = [Result.unpacked(result) for result in values.pop("results")]
            return cls(**values, results=results)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            expected = ", ".join(key.name for key in fields(cls))
            raise InputError(f"{path}: expected a result with {expected}, found another content ({error})") from error

    def write(self, folder: Path) -> None:
        """Write to a folder, one line for each result, so that a change of one figure is a change of one line."""
        head = {key: value for key, value in asdict(self).items() if key != "results" and value not in (None, "", [])}
        lines = ",\n".join(f"  {json.dumps(result.packed(), ensure_ascii=False)}" for result in self.results)
        text = json.dumps(head, indent=1, ensure_ascii=False)[:-2] + f',\n "results": [\n{lines}\n ]\n}}\n'
        (folder / f"{self.stem}.json").write_text(text, encoding="utf-8")

    @property
    def name(self) -> str:
        return f"{self.experiment}-{self.size}"

    @property
    def is_whole(self) -> bool:
        return not self.rows and not self.curves

    @property
    def stem(self) -> str:
        """The name of its file."""
        seed = "" if self.seed in ("", "0") else f"-s{self.seed}"
        named = sorted({_name(result) for result in self.results if not result.metric.startswith(GAP)})
        return f"{self.name}{'' if self.is_whole else '-' + _short(' '.join(named))}{seed}"

    def replaces(self, other: PublishedRun) -> bool:
        """Whether it has all that an earlier run of the experiment at this size has, or other settings."""
        return self.is_whole and (self.seed == other.seed or self.settings != other.settings)

    @property
    def settings(self) -> frozenset[str]:
        """The words of its command, but for those that say which part of the experiment is run, and the seed."""
        return frozenset(word for word in shlex.split(self.command) if not word.startswith(_NO_SETTINGS))

    @property
    def names(self) -> set[str]:
        """The rows and curves that it has."""
        return {_name(result) for result in self.results}

    def results_of(self, name: str) -> list[Result]:
        """The results of a row or curve."""
        return [result for result in self.results if _name(result) == name]

    def sizes(self, name: str) -> list[Any]:
        """Of each result of a row or curve, its place, the number of its values, and the sizes of its fits."""
        return [(result.label, result.x, result.repeats, result.settings) for result in self.results_of(name)]

    def values(self, name: str) -> list[float]:
        """The values of all results of a row or curve."""
        return [value for result in self.results_of(name) for value in result.values]


@dataclass(frozen=True)
class Gathered:
    """The results of an experiment at one size, of one run or of several: each of a part of it, or of another seed.

    Attributes
    ----------
    runs : list of PublishedRun
        One or more, in the order of their start. What a later one has replaces that of earlier ones of the same seed;
        values of different seeds are put together.
    """

    runs: list[PublishedRun]

    @property
    def name(self) -> str:
        return self.runs[0].name

    @property
    def size(self) -> str:
        return self.runs[0].size

    @cached_property
    def sources(self) -> dict[str, list[PublishedRun]]:
        """Each row and curve -> the runs that it is taken from, in the order of the experiment."""
        found = {name: self._sources(name) for run in self.runs for name in run.names}
        whole = [*self.runs[-1].rows, *self.runs[-1].curves]
        order = {name: place for place, name in enumerate(whole)}
        return dict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))

    def _sources(self, name: str) -> list[PublishedRun]:
        """The newest run of each seed with a row or curve, of the same sizes as the newest of all."""
        newest = {run.seed: run for run in self.runs if name in run.names}
        *_, last = (run for run in self.runs if name in run.names)
        found = [run for run in newest.values() if run.sizes(name) == last.sizes(name)]
        if all(result.repeats == 1 for result in last.results_of(name)):
            return found
        # repeats over seeds have the same values, up to rounding, whatever the seed of the run
        return [run for run in found if run is last or not _are_same(run.values(name), last.values(name))]

    @cached_property
    def results(self) -> list[Result]:
        """Those of all runs."""
        if len(self.runs) == 1:
            return self.runs[0].results
        return [
            result
            for name, runs in self.sources.items()
            for result in _over_seeds([run.results_of(name) for run in runs])
        ]

    def used(self, parts: Iterable[str]) -> list[PublishedRun]:
        """The runs that have results of some parts."""
        wanted = {_name(result) for result in self.results if result.part in parts}
        return [run for run in self.runs if any(run is one for name in wanted for one in self.sources[name])]

    def missing(self, parts: Sequence[str] | None) -> list[str]:
        """The rows and curves, of some parts or of all, that no run has."""
        if any(run.is_whole for run in self.runs):
            return []
        last = self.runs[-1]
        wanted = [*(last.rows if parts is None or TABLE in parts else [])]
        wanted += [curve for curve in last.curves if parts is None or curve in parts]
        return [name for name in wanted if name not in self.sources]


def gathered(kept: Iterable[PublishedRun]) -> dict[str, Gathered]:
    """Experiment and size -> its runs: for each seed the newest of the whole experiment, and newer ones of parts of it.

    Other seeds with other settings than the newest whole run are left out, and so are parts with other settings.
    """
    found: dict[str, list[PublishedRun]] = {}
    for run in sorted(kept, key=lambda run: run.started):
        earlier = found.get(run.name, [])
        if run.is_whole:
            earlier = [other for other in earlier if not run.replaces(other)]
        if all(other.settings == run.settings for other in earlier):
            found[run.name] = [*earlier, run]
    return {name: Gathered(runs) for name, runs in sorted(found.items())}


def published_runs(
    runs: Sequence[tuple[Record, RunFolder]], experiments: Collection[str]
) -> list[tuple[PublishedRun, RunFolder]]:
    """Of each experiment, size and seed, the newest run whose figures were recorded, and newer ones of parts."""
    found: list[tuple[PublishedRun, RunFolder]] = []
    whole = set[tuple[Any, ...]]()
    for record, folder in runs:
        key = record.tags["experiment"], record.params.get("size"), record.tags.get("seed")
        if key[0] not in experiments or key in whole:
            continue
        kept = PublishedRun.of(record, folder)
        if kept.results:
            found.append((kept, folder))
        if kept.results and kept.is_whole:
            whole.add(key)
    used = {id(kept) for each in gathered(kept for kept, _ in found).values() for kept in each.runs}
    return [(kept, folder) for kept, folder in reversed(found) if id(kept) in used]


def read_records(folder: Path) -> dict[str, Gathered]:
    """Experiment and size -> what is kept in the files of a folder."""
    return gathered(PublishedRun.read(path) for path in sorted((folder / FOLDER).glob("*.json")))


def _are_same(values: list[float], others: list[float]) -> bool:
    return np.allclose(values, others, rtol=_SAME, atol=0, equal_nan=True)


def _name(result: Result) -> str:
    """The row or curve that a result belongs to; a difference of two columns has one for each row."""
    if result.metric.startswith(GAP):
        return f"{result.part}, {result.label}"
    return result.label if result.part == TABLE else result.part


def _over_seeds(runs: Sequence[list[Result]]) -> list[Result]:
    """The results of one row or curve in runs of several seeds, with the values of all."""
    places: dict[tuple[Any, ...], list[Result]] = {}
    for result in itertools.chain.from_iterable(runs):
        places.setdefault((result.part, result.label, result.metric, result.x), []).append(result)
    return [_together(found) if len(found) > 1 else found[0] for found in places.values()]


def _together(found: list[Result]) -> Result:
    seconds = [result.seconds for result in found if result.seconds is not None]
    values = [value for result in found for value in result.values]
    return replace(found[-1], values=values, seconds=float(np.mean(seconds)) if seconds else None)


def _command(overrides: list[str], reads_files: bool) -> str:
    """The command line for a shell, without settings of the machine, with a data folder also if a variable named it.

    >>> _command(["experiment=qm7", "dataset.root=/home/me/data", "tracking.enabled=false"], True)
    'orbit experiment=qm7 dataset.root=FOLDER'
    >>> _command(["experiment=qm7"], True)
    'orbit experiment=qm7 dataset.root=FOLDER'
    """
    given = any(text.startswith("dataset.root=") for text in overrides)
    overrides = [*overrides, *(["dataset.root=FOLDER"] if reads_files and not given else [])]
    named = ["dataset.root=FOLDER" if text.startswith("dataset.root=") else text for text in overrides]
    return " ".join([program(), *(shlex.quote(text) for text in named if not text.startswith(_OF_THE_MACHINE))])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _short(names: str) -> str:
    """Names as part of that of a file: of many, the first ones and a digest of all."""
    whole = slug(names)
    if len(whole) < LONGEST_SLUG:
        return whole
    return f"{whole[: LONGEST_SLUG - 9]}-{hashlib.sha256(names.encode()).hexdigest()[:8]}"
