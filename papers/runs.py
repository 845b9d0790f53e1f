"""The results to report: runs from MLflow and from run folders, and the experiments of the configuration."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orbit
from orbit.core.errors import InputError
from runners.config.messages import LITERALS
from runners.config.names import split_override
from runners.config.program import leading_comment, program
from runners.config.schema import Root
from runners.job.runner import Runner
from runners.measure.metrics import MAIN_METRICS
from runners.tracking.mlflow import Tracker
from runners.tracking.record import FIGURES, RECORD, RESULTS, Record, RunFolder

log = logging.getLogger(__name__)

# The files of a run that a report reads; models and logs are not downloaded.
_ENDINGS = (".md", ".png", ".txt", RECORD, RESULTS)


@dataclass(frozen=True)
class Run:
    """A run in MLflow or in a run folder.

    Attributes
    ----------
    record : Record
    metrics : dict of str to float
    folder : RunFolder or None
        Set for a run that is not in MLflow, or only in part.
    """

    record: Record
    metrics: dict[str, float]
    folder: RunFolder | None = None

    @property
    def finished(self) -> bool:
        return self.record.status == "FINISHED"

    @property
    def sweep(self) -> str:
        """The id of the sweep whose parent or job the run is; empty for a single run."""
        return self.record.tags.get("sweep", "")

    @property
    def opens_sweep(self) -> bool:
        """Whether the run is the parent of a sweep."""
        return bool(self.sweep) and self.record.job is None

    @property
    def experiment(self) -> str:
        """The name of the experiment that was run; empty without one."""
        return self.record.tags.get("experiment", "")

    @property
    def size(self) -> str:
        return str(self.record.params.get("size", Root.size))

    @property
    def order(self) -> tuple[float, str]:
        """Sort key: the start time."""
        return self.record.start, self.record.run_id or self.record.tags.get("folder", "")

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key for the jobs of a sweep: the best first, jobs without a metric last."""
        for place, (name, larger_is_better) in enumerate(MAIN_METRICS.items()):
            if name in self.metrics:
                return place, -self.metrics[name] if larger_is_better else self.metrics[name], self.order
        return len(MAIN_METRICS), 0.0, self.order

    def setting(self, key: str) -> str | None:
        """The value of a command-line key in the run, as on it; None for a key that does not affect results."""
        if key == "experiment":
            return self.experiment
        params = self.record.params
        if not params:  # rejected before its configuration was complete
            params = dict(map(split_override, self.record.overrides))
        found = next((str(params[name]) for name in (key, f"{key}.name") if name in params), None)
        return None if found is None else LITERALS.get(found, found)


@dataclass(frozen=True)
class Experiment:
    """The description of an experiment, read from its file in ``conf/experiment``.

    Attributes
    ----------
    name : str
    about : str
        The leading comment of the file.
    commands : list of str
        The commands in that comment, or ``orbit experiment=NAME``.
    sizes : list of str
        Values of ``size``, the default first; empty for an experiment without sizes.
    """

    name: str
    about: str
    commands: list[str]
    sizes: list[str]

    @classmethod
    def read(cls, path: Path) -> Experiment:
        about, commands = leading_comment(path)
        sizes = {file.stem for file in path.with_suffix("").glob("*.yaml")}
        return cls(
            path.stem,
            re.sub(":$", ".", about),
            commands or [f"{program()} experiment={path.stem}"],
            sorted(sizes, key=lambda size: (size != Root.size, size)),
        )

    def command(self, size: str) -> str:
        """The command that runs the experiment at a size."""
        if size == Root.size:
            return self.commands[0]
        named = f"size={size}"
        return next((c for c in self.commands if named in c.split()), f"{self.commands[0]} {named}")


def experiments(*config_dirs: Path) -> list[Experiment]:
    """The experiments of configuration folders, sorted by name."""
    files = {path.stem: path for folder in reversed(config_dirs) for path in (folder / "experiment").glob("*.yaml")}
    return [Experiment.read(files[name]) for name in sorted(files)]


class Results:
    """All runs, from MLflow and from run folders.

    Parameters
    ----------
    outputs : Path
    tracker : Tracker or None
        None reads run folders only.
    known : list of Experiment
        The experiments of the configuration.
    scratch : Path
        An empty folder for downloaded files.
    """

    def __init__(self, outputs: Path, tracker: Tracker | None, known: list[Experiment], scratch: Path) -> None:
        self._outputs, self._tracker, self._known, self._scratch = outputs, tracker, known, scratch

    @cached_property
    def runs(self) -> list[Run]:
        """All runs, newest first."""
        tracked = [] if self._tracker is None else [Run(record, metrics) for record, metrics in self._tracker.runs()]
        local = self._local()
        replaced = {run.record.run_id for run in local}
        found = [self._completed(run) for run in tracked if run.record.run_id not in replaced] + local
        return sorted((self._named(run) for run in found), key=lambda run: run.order, reverse=True)

    @cached_property
    def pages(self) -> str | None:
        """The web address of a run's page without the run id at its end; None without a server."""
        return None if self._tracker is None else self._tracker.pages()

    def files(self, run: Run) -> Path | None:
        """A folder with the files that a run wrote; None if they no longer exist."""
        if run.folder is not None:
            return run.folder.path
        assert self._tracker is not None
        assert run.record.run_id is not None
        target = self._scratch / run.record.run_id
        if not target.is_dir():
            target.mkdir()
            try:
                self._tracker.download(run.record.run_id, target, _ENDINGS, [FIGURES])
            except InputError as error:
                log.debug("the files of %s cannot be read: %s", run.record.run_id, error)
        return target if any(target.iterdir()) else None

    def packed(self, run: Run) -> list[dict[str, Any]]:
        """The figures that a run recorded by their place in its experiment; empty if it recorded none."""
        files = self.files(run)
        return [] if files is None else RunFolder(files).read_results()

    def _local(self) -> list[Run]:
        """Runs that are not in MLflow, or only in part."""
        pending = set() if self._tracker is None else {folder.path for folder in self._tracker.pending()}
        found = []
        for path in sorted(p for depth in ("*/*", "*/*/*") for p in self._outputs.glob(f"{depth}/{RECORD}")):
            folder = RunFolder(path.parent.absolute())
            record = _readable(folder)
            if record is None or not _is_run(record):
                continue
            if record.job is not None:  # a job rejected before it started has no tags
                record.tags.setdefault("sweep", "/".join(folder.path.parent.parts[-2:]))
            if self._tracker is None or record.run_id is None or folder.path in pending:
                found.append(Run(record, folder.read_metrics(), folder))
        return found

    def _completed(self, run: Run) -> Run:
        """The run, with overrides and error from its ``run.json`` where MLflow does not have them."""
        record = run.record
        if run.opens_sweep or ("experiment" in record.tags and record.status in ("FINISHED", "RUNNING")):
            return run
        folder = self.files(run)
        kept = _readable(RunFolder(folder)) if folder is not None else None
        if kept is None:
            return run
        return replace(run, record=replace(record, overrides=kept.overrides, error=kept.error))

    def _named(self, run: Run) -> Run:
        """The run with its experiment, also if its version did not record the experiment."""
        record = run.record
        if "experiment" in record.tags or run.opens_sweep:
            return run
        names = [value for key, value in map(split_override, record.overrides) if key == "experiment"]
        if not record.overrides:
            likely = [e.name for e in self._known if f"{record.name}-".startswith(f"{e.name}-")]
            names = sorted(likely, key=len)
        name = names[-1] if names else ""
        return replace(run, record=replace(record, tags=record.tags | {"experiment": name}))


def _readable(folder: RunFolder) -> Record | None:
    try:
        return folder.read_record()
    except InputError as error:  # truncated, or written by another program
        log.warning("%s is left out: its %s cannot be read (%s)", folder.path, RECORD, error)
        return None


def _is_run(record: Record) -> bool:
    """Whether MLflow would have the run if tracking was enabled."""
    runner = record.params.get("runner.name")
    rejected = not record.config_hash and record.job is None  # rejected jobs of a sweep are shown
    if rejected or record.status == "SKIPPED":
        return False
    if runner not in orbit.available("runner"):
        return True
    runner_class: type[Runner] = orbit.get("runner", runner)
    return runner_class.tracked
