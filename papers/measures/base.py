"""The base class of what ``runner=measure`` measures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from orbit import plots
from orbit.core.component import Component
from runners.config.plan import Plan
from runners.job.job import Job
from runners.measure.results import Result, curve_results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Label -> sizes, shape (m,), and values, shape (repeats, m).
Lines = dict[str, tuple[np.ndarray, np.ndarray]]


class Quantity(Component):
    """A quantity as a function of a plan, a size and a seed; its parameters are ``runner.options``.

    To add one, write :meth:`values`.

    Attributes
    ----------
    parts : mapping of str to str
        What is measured at once: name in results and metrics -> words.
    key : str
        The configuration key that sizes are values of.
    axis : str
        Words for it.
    figure : str
        The name of one figure for all parts; empty if each part has a figure of its name.
    """

    parts: ClassVar[Mapping[str, str]] = {"error": "error"}
    key: ClassVar[str] = "approx.n_components"
    axis: ClassVar[str] = "components"
    figure: ClassVar[str] = ""

    def series(self, plan: Plan) -> dict[str, dict[str, Any]]:
        """Label -> changes of the configuration, unless the runner has series of its own."""
        return {"error": {}}

    def check_plan(self, plan: Plan, label: str) -> None:
        """Raise ``InputError``, before any work, for a plan whose quantity is not defined."""
        plan.orbit()

    def start(self, job: Job, n_points: int) -> None:
        """Load the points."""

    def start_repeat(self, job: Job, n_points: int, seed: int) -> None:
        """Draw what the values of all plans in one repeat have in common."""

    @abstractmethod
    def values(self, job: Job, plan: Plan, label: str, sizes: Sequence[int], seed: int) -> dict[str, Any]:
        """Part -> its value at each size, shape (m,), or (m, ...) if :meth:`lines` makes numbers of it."""

    def lines(self, plan: Plan, label: str, sizes: np.ndarray, values: np.ndarray) -> Lines:
        """The curves that are made of the values of all repeats, shape (repeats, m, ...)."""
        return {label: (sizes, values)}

    def results(self, part: str, lines: Lines) -> list[Result]:
        """The curves as results."""
        return curve_results(part, self.parts[part], self.key, lines)

    def draw(self, job: Job, found: dict[str, dict[str, Lines]]) -> None:
        """Draw the curves: panel -> part -> lines."""
        (parts, *others) = found.values()
        if not others and (len(parts) == 1 or not self.figure):
            for part, lines in parts.items():
                job.log_figure(self.figure or part, self.plot, job.plan, part, lines)
            return
        titled = {
            f"{panel}: {self.parts[part]}" if panel else self.parts[part]: lines
            for panel, parts in found.items()
            for part, lines in parts.items()
        }
        linear = [title for title in titled if title.endswith("correlation")]
        job.log_figure(self.figure or "panels", plots.panels, titled, self.axis, "", len(parts), linear)

    def plot(self, plan: Plan, part: str, lines: Lines) -> Figure:
        """The figure of one part without panels."""
        return plots.convergence(lines, self.axis, self.parts[part], self.title(plan), slopes=True)

    def title(self, plan: Plan) -> str:
        return ", ".join(str(plan.config[kind]["name"]) for kind in ("group", "approx", "kernel", "dataset"))
