"""Results as they are kept beside the pages that show them: one JSON file for each experiment and size."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from orbit.core.errors import InputError
from runners.program import program
from runners.report.results import Results, Run
from runners.results import Result

#: The folder of the files, in that of the pages.
FOLDER = "records"

# Settings of a machine, or of how a run goes on, and not of a result.
_OF_THE_MACHINE = (
    "tracking.",
    "outputs=",
    "resume=",
    "retry_failed=",
    "hydra.",
    "engine.workers=",
    "engine.memory=",
    "engine.progress=",
    "run_name=",
)


@dataclass(frozen=True)
class Kept:
    """A finished run of an experiment, as the pages show it.

    Attributes
    ----------
    experiment, size, seed : str
    command : str
        The command that repeats it; the data folder is ``FOLDER``.
    started : str
        Date, UTC.
    seconds, processor_s, memory_mb : float or None
        Wall clock, processor time, and peak memory; times with those of earlier runs that were stopped.
    machine : str
    commit : str
        The version of the code; ends with `` with changes`` for one that was not committed.
    results : list of Result
    unfinished : str
        How the run ended, or ``RUNNING``, if it has not finished: some rows may be missing.
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
    unfinished: str = ""
    note: str = ""

    @classmethod
    def of(cls, run: Run, packed: list[dict[str, Any]]) -> Kept:
        """What is kept of a run with these results."""
        record, tags, metrics = run.record, run.record.tags, run.metrics
        ended = record.end if record.end is not None else record.start
        earlier, earlier_processor = (metrics.get(f"time/earlier_{key}", 0.0) for key in ("s", "processor_s"))
        processor = metrics.get("time/processor_s")
        changed = " with changes" if tags.get("git.dirty") == "true" else ""
        commit = tags.get("git.commit", "")[:10] or f"version {tags.get('version.orbit', 'unknown')}"
        return cls(
            experiment=run.experiment,
            size=run.size,
            command=_command(record.overrides, bool(record.files)),
            started=time.strftime("%Y-%m-%d", time.gmtime(record.start)),
            seed=tags.get("seed", ""),
            seconds=round(metrics.get("time/total_s", ended - record.start) + earlier, 1),
            processor_s=None if processor is None else round(processor + earlier_processor, 1),
            memory_mb=None if earlier else _rounded(metrics.get("memory/peak_mb")),  # that of other processes is lost
            machine=tags.get("machine", ""),
            commit=commit + changed,
            results=[Result.unpacked(values) for values in packed],
            unfinished="" if run.finished else record.status,
        )

    @classmethod
    def read(cls, path: Path) -> Kept:
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
        head = {key: value for key, value in asdict(self).items() if key != "results" and value not in (None, "")}
        lines = ",\n".join(f"  {json.dumps(result.packed(), ensure_ascii=False)}" for result in self.results)
        text = json.dumps(head, indent=1, ensure_ascii=False)[:-2] + f',\n "results": [\n{lines}\n ]\n}}\n'
        (folder / f"{self.name}.json").write_text(text, encoding="utf-8")

    @property
    def name(self) -> str:
        return f"{self.experiment}-{self.size}"


def kept_runs(
    results: Results, experiments: Iterable[str], also_unfinished: bool = False
) -> dict[str, tuple[Kept, Run]]:
    """Experiment and size -> the newest finished run whose figures were recorded, with the run.

    ``also_unfinished``: where there is none, the newest of the others, with the rows that it has.
    """
    found: dict[str, tuple[Kept, Run]] = {}
    wanted = set(experiments)
    for run in sorted(results.runs, key=lambda run: not run.finished):
        key = f"{run.experiment}-{run.size}"
        if run.sweep or run.experiment not in wanted or key in found or not (run.finished or also_unfinished):
            continue
        packed = results.packed(run)
        if packed:
            found[key] = Kept.of(run, packed), run
    return found


def read_kept(folder: Path) -> dict[str, Kept]:
    """Experiment and size -> what is kept in the files of a folder."""
    return {path.stem: Kept.read(path) for path in sorted((folder / FOLDER).glob("*.json"))}


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
