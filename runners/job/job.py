"""The job through which a runner measures, draws and records."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from orbit import plots
from orbit.core import interruption
from orbit.data import Dataset
from orbit.data.base import ShownAs
from orbit.learners.saved import with_encoder
from orbit.orbits import Orbit
from runners.config.names import data_name
from runners.config.plan import Plan, seconds_of_reading
from runners.measure.results import Result
from runners.measure.tables import latex_table, markdown_table
from runners.tracking.record import Record, RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

# Points whose orbits are drawn.
EXAMPLES = 3


class Stopwatch:
    """Times named stages, as metrics ``time/NAME_s`` in seconds."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the body of a ``with`` statement. A request to end the work is obeyed before and after it."""
        interruption.check()
        start = time.perf_counter()
        yield
        interruption.check()
        self.metrics[f"time/{name}_s"] = time.perf_counter() - start


class Job(Stopwatch):
    """One run in progress.

    Attributes
    ----------
    plan : Plan
    folder : RunFolder
    metrics : dict of str to float
        Flat names, ``test/accuracy`` and so on.
    history : dict of str to list of float
        Metrics that have a value for each step.
    finding : (str, str) or None
        ``group`` or ``encoder``, which the training points have decided, and a sentence; None if both were given.
    """

    def __init__(self, plan: Plan, folder: RunFolder, record: Record, finding: tuple[str, str] | None = None) -> None:
        super().__init__()
        self.plan, self.folder, self.record, self.finding = plan, folder, record, finding
        self.history: dict[str, list[float]] = {}
        self._drawn: set[tuple[str, ...]] = set()
        self._table = [] if finding is None else [finding]
        self._texts: list[str] = []
        self._results: dict[tuple[Any, ...], Result] = {}

    @property
    def group_is_given(self) -> bool:
        """Whether no groups were compared, because one was given."""
        return self.finding is None or self.finding[0] != "group"

    def load(self, plan: Plan | None = None) -> Dataset:
        """Load the data set of the job's plan or of another one, and record it; the first is logged."""
        if plan is None:
            with self.stage("load"):
                data = self.plan.load()
            self.metrics["time/load_s"] = max(
                self.metrics["time/load_s"], seconds_of_reading()
            )  # a default may read it
        else:
            data = plan.load()
        section = (plan or self.plan).config["dataset"]
        name = data_name(section)
        log.log(logging.DEBUG if self.record.dataset else logging.INFO, "%s (%s)", data.describe(), data.source)
        about = {"name": name, "source": data.source, "description": data.describe()}
        for note in data.notes:
            if ("note", note) not in self._table:
                self.row("note", note)
        self.record.dataset = {**about, "form": data.form, "loader": section}
        return data

    def log_metrics(self, metrics: dict[str, float]) -> None:
        """Record metrics. They are written to the run folder immediately, so a later failure does not lose them."""
        self.metrics.update({key: float(value) for key, value in metrics.items()})
        self.folder.write_metrics(self.metrics)

    def add_earlier(self, seconds: float, processor_s: float) -> None:
        """Count the time of a part of the work that an earlier run, which was stopped, has done."""
        for key, value in {"time/earlier_s": seconds, "time/earlier_processor_s": processor_s}.items():
            self.log_metrics({key: self.metrics.get(key, 0.0) + value})

    def log_step(self, name: str, value: float) -> None:
        """Record the next step of a metric with several steps, such as epochs."""
        self.history.setdefault(name, []).append(float(value))
        self.folder.write_history(self.history)

    def log_result(self, *results: Result) -> None:
        """Record figures of the experiment by their place in it; the same place again replaces what it had."""
        for result in results:
            self._results[result.part, result.label, result.metric, result.x] = result
        self.folder.write_results([result.packed() for result in self._results.values()])

    def log_figure(self, name: str, figure: Callable[..., Figure | None], *args: Any, **kwargs: Any) -> None:
        """Write the figure that a function returns for the other arguments, or None; a failure is a warning."""
        self.folder.draw(name, figure, *args, **kwargs)

    @property
    def shown_as(self) -> ShownAs:
        """How figures draw represented points."""
        of_clouds = self.plan.component("encoder").of_clouds
        return "cloud" if of_clouds else self.plan.component("dataset").shown_as

    def log_orbit(self, orbit: Orbit, X: np.ndarray, label: str = "") -> None:
        """Draw the first few represented points on a fitted orbit; nothing for vectors under the identity."""
        if X.ndim > 2 or orbit.group_.name != "identity":
            how = {"ink": self.plan.component("dataset").ink, "shown_as": self.shown_as if X.ndim < 4 else "image"}
            self.log_figure(f"orbit{suffix(label)}", plots.orbit_examples, orbit, X[:EXAMPLES], **how)

    def log_skeleton(self, kernel: Any, label: str = "") -> None:
        """Draw the skeleton of a fitted kernel, if it has one, once; ``label`` is part of the file name."""
        skeleton = None if kernel is None else kernel.skeleton_
        if skeleton is None:
            return
        drawing = str(skeleton.n_inputs), kernel.describe_inputs(), *skeleton.labels
        if drawing in self._drawn:
            return
        self._drawn.add(drawing)
        self.log_figure(f"skeleton{suffix(label)}", plots.skeleton, skeleton, kernel.describe_inputs())

    def log_text(self, name: str, text: str) -> None:
        self.folder.write_text(name, text)

    def log_model(self, model: Pipeline, data: Dataset) -> None:
        """Write a fitted pipeline in the form in which others use it, with two test points as examples."""
        X = data.X_test[:2]
        self.folder.write_model(with_encoder(model, data.encoder), X, np.asarray(model.predict(X)))

    def log_table(self, name: str, header: list[str], rows: list[list[str]]) -> None:
        """Write a table to the files ``NAME.md`` and ``NAME.tex``, and add it above the summary table."""
        table = markdown_table(header, rows)
        self.log_text(f"{name}.md", table + "\n")
        self.log_text(f"{name}.tex", latex_table(header, rows))
        self.say(table)

    def row(self, label: str, value: str) -> None:
        """Add a row to the summary table, which is printed at the end of the run."""
        self._table.append((label, value))

    def say(self, text: str) -> None:
        """Add text above the summary table."""
        self._texts.append(text)

    def summary(self) -> str:
        """The text printed at the end of the run: the texts, then the table."""
        width = max((len(label) for label, _ in self._table), default=0)
        rows = [f"  {label:<{width}}  {value}" for label, value in self._table]
        return "\n".join([*self._texts, *rows])


def suffix(label: str) -> str:
    """A label as the end of a file name, for runs with several files of one kind.

    >>> suffix("two convolutions"), suffix("")
    ('-two_convolutions', '')
    """
    return f"-{slug(label)}" if label else ""


#: Characters of a label in the name of a file.
LONGEST_SLUG = 80


def slug(label: str) -> str:
    """A label with the characters that file names should not have replaced.

    >>> slug("two convolutions/../")
    'two_convolutions_.._'
    """
    return re.sub(r"[^A-Za-z0-9.-]+", "_", label)[:LONGEST_SLUG]
