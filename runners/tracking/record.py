"""The run folder: all results of a run, written before any tracking server is called."""

from __future__ import annotations

import contextlib
import json
import logging
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from omegaconf import OmegaConf

from orbit.core.errors import InputError, shortened
from orbit.core.files import replacing, write_whole
from orbit.core.fingerprint import Fingerprint, digest
from orbit.core.models import RECORD as RECORD, write_model
from runners.tracking.storage import writing

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

#: How errors of a model on disk name its folder and what trusts it: as ``runner=predict`` does.
MODEL_KEYS = "runner.model", "runner.trust=true"

RUNNING = "RUNNING"  # the status of a record until the run ends

SWEEP_RECORD = "sweep.json"
METRICS = "metrics.json"
HISTORY = "history.json"
RESULTS = "results.json"
EXAMPLE = "input_example.npz"
TRACEBACK = "traceback.txt"
CONFIG = "config.yaml"
LOG = "run.log"
MULTIRUN = "multirun.yaml"
DESCRIPTION = "summary.md"
VIEW = "summary.json"
SEARCH = "search.json"
FIGURES = "figures"
WRITTEN = ".files.json"  # the names of the files of the run


@dataclass
class Record:
    """Identity and outcome of a run: the content of ``run.json``.

    ``status`` is one of RUNNING, FINISHED, FAILED, KILLED, SKIPPED; times are in
    seconds since the epoch; ``run_id`` and ``parent_id`` are MLflow's. ``key`` is unique, and a tag
    of the run in MLflow: if the process ends before it has written ``run_id``, the run is found by it.
    ``files`` are the fingerprints of what the run reads, ``data_hash`` their digest; ``skipped`` says
    which finished run made this one unnecessary, and what the two have in common. ``command`` is the
    command line that repeats the run. ``refused`` says that a run has failed because of its input.
    """

    name: str
    config_hash: str = ""
    status: str = RUNNING
    start: float = field(default_factory=time.time)
    end: float | None = None
    job: int | None = None
    overrides: list[str] = field(default_factory=list)
    command: str = ""
    run_id: str | None = None
    parent_id: str | None = None
    error: str | None = None
    refused: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    dataset: dict[str, Any] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    data_hash: str = ""
    skipped: str | None = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


def add_fingerprints(record: Record, files: Iterable[Fingerprint]) -> None:
    """Record the fingerprints of the files that a run reads."""
    found = list(files)
    record.files, record.data_hash = [asdict(file) for file in found], digest(found)


def identity(record: Record) -> str:
    """Equal for two runs that compute the same from the same data."""
    return f"{record.config_hash}-{record.data_hash}"


class RunFolder:
    """A run's folder on disk.

    Attributes
    ----------
    record_file : str
        Name of the file with the record.
    file_of_hydra : str
        Name of the file that Hydra writes to the folder.
    """

    record_file: ClassVar[str] = RECORD
    file_of_hydra: ClassVar[str] = LOG

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def contents(self) -> list[Path]:
        """The files that are uploaded as they are, relative to the folder: those of the run only."""
        names = sorted([*self._written(), self.file_of_hydra])
        return [Path(name) for name in names if (self.path / name).is_file()]

    def write_record(self, record: Record) -> None:
        self._write(self.record_file, json.dumps(asdict(record), indent=2, default=str))

    def read_record(self) -> Record | None:
        """The record; None if there is none. Raises ``InputError`` if it is damaged."""
        path = self.path / self.record_file
        values = _read_json(path)
        if values is None:
            return None
        known = [part.name for part in fields(Record)]
        if not isinstance(values, dict) or "name" not in values or not set(values).issubset(known):
            raise InputError(f"{path} is not the record of a run: expected a name and others of {', '.join(known)}")
        return Record(**values)

    def has_ended(self) -> bool:
        """Whether the record on disk says how the run ended."""
        record = self.read_record()
        return record is not None and record.status != RUNNING

    def is_refused(self) -> bool:
        """Whether it is of a run, no job of a sweep, that has ended because of its input before it had a result."""
        record = self.read_record()
        has_results = any((self.path / name).exists() for name in (METRICS, HISTORY, RESULTS))
        return record is not None and record.refused and record.job is None and not has_results

    def discard(self) -> None:
        """Remove the files of the run, and the folder if there are no others."""
        with contextlib.suppress(OSError):  # what others have written meanwhile stays
            for name in [*self.contents(), Path(WRITTEN)]:
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def write_metrics(self, metrics: dict[str, float]) -> None:
        self._write(METRICS, json.dumps(metrics, indent=2))

    def read_metrics(self) -> dict[str, float]:
        return _read_json(self.path / METRICS) or {}

    def write_history(self, history: dict[str, list[float]]) -> None:
        """Metrics with a value for each step."""
        self._write(HISTORY, json.dumps(history, indent=2))

    def read_history(self) -> dict[str, list[float]]:
        return _read_json(self.path / HISTORY) or {}

    def write_results(self, results: list[dict[str, Any]]) -> None:
        """The figures of an experiment, packed; see :class:`runners.measure.results.Result`."""
        self._write(RESULTS, json.dumps(results, indent=1))

    def read_results(self) -> list[dict[str, Any]]:
        return _read_json(self.path / RESULTS) or []

    def write_config(self, config: dict[str, Any], defaults: list[str]) -> None:
        header = "# The configuration of this run, with all defaults filled in.\n"
        header += "".join(
            f"# {key} was not given, or has no effect here: its value follows from other settings.\n"
            for key in defaults
        )
        self._write(CONFIG, header + OmegaConf.to_yaml(OmegaConf.create(config)))

    def read_config(self) -> dict[str, Any]:
        """The configuration. Raises ``InputError`` if it is missing or damaged."""
        path = self.path / CONFIG
        try:
            config: Any = OmegaConf.to_container(OmegaConf.load(path))
        except Exception as error:
            raise InputError(f"{path} cannot be read ({' '.join(str(error).split())})") from error
        if not isinstance(config, dict):
            raise InputError(
                f"{path} is not the configuration of a run: expected sections, found {shortened(str(config))}"
            )
        return config

    def write_text(self, name: str, text: str) -> Path:
        with writing(self.path):
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        self._write(name, text)
        return self.path / name

    def draw(self, name: str, figure: Callable[..., Figure | None], *args: Any, **kwargs: Any) -> None:
        """Write the figure that a function returns for the other arguments, unless it is None.

        One that fails, for whatever cause, is a warning: the results do not depend on figures.
        """
        try:
            drawn = figure(*args, **kwargs)
            if drawn is None:
                return
            with writing(self.path):
                self._list(f"{FIGURES}/{name}.png")
                (self.path / FIGURES).mkdir(exist_ok=True)
                with replacing(self.path / FIGURES / f"{name}.png") as file:
                    drawn.savefig(file, dpi=150, bbox_inches="tight", format="png")
        except Exception as error:
            log.debug("drawing failed", exc_info=True)
            log.warning("the figure %s is missing: %s", name, shortened(f"{type(error).__name__}: {error}"))

    def write_model(self, model: Any, X: np.ndarray, y: np.ndarray) -> None:
        """Write the fitted pipeline, with a few inputs and their predictions as an example."""
        import numpy as np  # here, because a refused configuration needs no numbers

        with writing(self.path):
            with replacing(self.path / EXAMPLE) as file:
                np.savez(file, X=X, y=y)
            write_model(self.path, model)  # last: a folder with a model has all that its upload needs

    def description(self) -> str:
        """Markdown for the page of the run in MLflow: the result of a search and the summary of a sweep; or empty."""
        path, search = self.path / DESCRIPTION, self.search()
        summary = path.read_text(encoding="utf-8") if path.is_file() else ""
        return f"{search['text']}\n{summary}" if search else summary

    def write_search(self, text: str, metrics: dict[str, float]) -> None:
        """The result of a search, of which the jobs of this sweep may be a part."""
        self._write(SEARCH, json.dumps({"text": text, "metrics": metrics}, indent=2))

    def search(self) -> dict[str, Any] | None:
        """The text and metrics of a search; None if the run is not one."""
        return _read_json(self.path / SEARCH)

    def view(self) -> dict[str, Any] | None:
        """What to show first of several runs; None if there is nothing to compare."""
        return _read_json(self.path / VIEW)

    def write_view(self, view: dict[str, Any]) -> None:
        """What to show first: arguments of :func:`runners.tracking.views.jobs_of_a_sweep`."""
        self._write(VIEW, json.dumps(view, indent=2))

    def _write(self, name: str, text: str) -> None:
        with writing(self.path):
            self._list(name)
            write_whole(self.path / name, text)

    def _list(self, name: str) -> None:
        """Add a file to the list of those of the run: the folder may be one with other files."""
        if name not in (written := self._written()):
            write_whole(self.path / WRITTEN, json.dumps([*written, name]))

    def _written(self) -> list[str]:
        return _read_json(self.path / WRITTEN) or []


class SweepFolder(RunFolder):
    """The folder of a sweep's parent run. The folders in it, except for figures, belong to its jobs."""

    record_file: ClassVar[str] = SWEEP_RECORD
    file_of_hydra: ClassVar[str] = MULTIRUN


def run_folder(path: Path) -> RunFolder:
    """The folder of a run or of a sweep."""
    return SweepFolder(path) if (path / SWEEP_RECORD).is_file() else RunFolder(path)


def _read_json(path: Path) -> Any:
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # the last for a text of many brackets
        raise InputError(f"{path} is damaged ({error})") from error
