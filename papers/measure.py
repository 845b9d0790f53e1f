"""``runner=measure``: one quantity, such as the error of a kernel, for every setting, size and seed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from orbit.core.params import PositiveInt, parameters
from orbit.core.random import spawn
from orbit.registry import check_parameters, register
from papers.measures import MEASURES, Quantity
from papers.measures.base import Lines
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, entries
from runners.job.job import Job
from runners.job.runner import Runner, these

Name = Literal["kernel_error", "orbit_error", "orff_error", "skeleton_error", "skeleton_locality"]


@register("runner", "measure")
@dataclass(eq=False, repr=False)
class Measure(Runner):
    """One quantity for several settings, a range of sizes and several seeds: a curve for each setting.

    Parameters
    ----------
    measure : one of the names below
        ``kernel_error``: relative errors of <psi(x), psi(z)> as an estimate of the exact kernel, against
        ``approx.n_components`` (Raj et al. 2017, Figure 1). ``orbit_error``: the error of the orbit average against
        ``orbit.size``, by default for each rule. ``orff_error``: the largest error of operator-valued features, or
        their variance (Brault et al. 2016, Figures 1 and 6). ``skeleton_error``: four measures of error on random
        points (Daniely et al. 2017, Figure 3). ``skeleton_locality``: which pixels occur together in a feature (Daniely
        et al. 2017, Figure 4).
    options : dict or None
        Parameters of the measure. ``kernel_error`` and ``skeleton_error``: ``reference``, the orbit size of the exact
        kernel. ``orbit_error``: ``reference``, the orbit size of the reference, and ``shape``, that of random points
        instead of the data set. ``orff_error``: ``dim`` and ``variance``. ``skeleton_locality``: ``shape``, ``pixels``.
    series : dict of dict, or None
        Label -> changes to the configuration; one curve each.
    panels : dict of dict, or None
        Label -> changes to the configuration, made to all series; one row of panels each.
    sizes : list of int >= 1
        The sizes at which curves have points.
    n_points : int >= 1
        Number of points, or of pairs of points, that the quantity is measured on.
    repeats : int >= 1
        Number of seeds.
    """

    measure: Name = "kernel_error"
    options: dict[str, Any] | None = None
    series: dict[str, Any] | None = None
    panels: dict[str, Any] | None = None
    sizes: list[PositiveInt] = these(16, 32, 64, 128, 256)
    n_points: PositiveInt = 200
    repeats: PositiveInt = 5

    def check(self) -> None:
        super().check()
        check_changes("runner.series", self.series)
        check_changes("runner.panels", self.panels)
        self._quantity().check()

    def plans(self, base: Plan) -> list[Plan]:
        """The plan of every series in every panel."""
        quantity, plans = self._quantity(), self._plans(base)
        for (_, label), plan in plans.items():
            quantity.check_plan(plan, label)
        return [*plans.values()]

    def run(self, job: Job) -> None:
        quantity, plans = self._quantity(), self._plans(job.plan)
        found: dict[tuple[str, str], dict[str, list[Any]]] = {key: {} for key in plans}
        seeds = spawn(job.plan.seed("runner"), self.repeats)
        quantity.start(job, self.n_points)
        with job.plan.progress(len(seeds) * len(plans), self.measure) as progress:
            for seed in seeds:
                quantity.start_repeat(job, self.n_points, seed)
                for (panel, label), plan in plans.items():
                    values = quantity.values(job, plan, panel or label, self.sizes, seed)
                    for part, of_sizes in values.items():
                        found[panel, label].setdefault(part, []).append(of_sizes)
                    progress.step()
        self._record(job, quantity, plans, found)

    def _quantity(self) -> Quantity:
        measure, options = MEASURES[self.measure], self.options or {}
        check_parameters("runner.measure", self.measure, options, parameters(measure))
        return measure(**options)

    def _plans(self, base: Plan) -> dict[tuple[str, str], Plan]:
        series = entries(self.series) or self._quantity().series(base)
        pairs = itertools.product((entries(self.panels) or {"": {}}).items(), series.items())
        return {(panel, label): base.variant(one | two) for (panel, one), (label, two) in pairs}

    def _record(
        self, job: Job, quantity: Quantity, plans: dict[tuple[str, str], Plan], found: dict[tuple[str, str], Any]
    ) -> None:
        sizes, drawn = np.array(self.sizes), dict[str, dict[str, Lines]]()
        curves: dict[str, Lines] = {}
        for (panel, label), parts in found.items():
            for part, values in parts.items():
                lines = quantity.lines(plans[panel, label], label, sizes, np.array(values))
                drawn.setdefault(panel, {}).setdefault(part, {}).update(lines)
                named = {f"{panel}, {name}" if panel else name: line for name, line in lines.items()}
                curves.setdefault(part, {}).update(named)
        for part, lines in curves.items():
            means = {label: values.mean(0) for label, (_, values) in lines.items()}
            job.log_result(*quantity.results(part, lines))
            for label, ys in means.items():
                job.log_metrics({f"{part}/{label}/{x}": y for x, y in zip(sizes, ys, strict=True)})
            rows = [[label, *(f"{y:.3g}" for y in ys)] for label, ys in means.items()]
            job.log_table(part, [part, *map(str, self.sizes)], rows)
        quantity.draw(job, drawn)
