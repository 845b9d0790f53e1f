"""runner=fields: learning vector fields with and without their structure (Brault et al. 2016, Figures 4, 5 and 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.core.random import spawn
from orbit.data import VectorField
from orbit.registry import register
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, entries
from runners.experiments.fitting import fit_and_score
from runners.experiments.trials import Trials
from runners.job.job import Job, Stopwatch
from runners.job.runner import Runner, these
from runners.measure.results import Result, curve_results

_GRID = 18
_NEAR = 1.2  # a test MSE below this multiple of the noise variance has reached the noise level
_STAGES = ("time/fit_features_s", "time/features_s", "time/learner_s")

Changes = dict[str, dict[str, Any]]


@register("runner", "fields")
@dataclass(eq=False, repr=False)
class FieldErrors(Runner):
    """Error against the number of frequencies, time against the number of points, and pictures of the fields.

    ``selection`` chooses settings for every error; times are measured with the settings as given.

    Parameters
    ----------
    series : dict of dict, at least one
        Label -> changes, for random features; one curve each.
    exact : dict of dict, or None
        Label -> changes, for exact kernels: a horizontal line in the first figure, a
        curve in the second that ends at ``approx.max_size``.
    components : list of int >= 1
        Values of ``approx.n_components`` in the first figure.
    sizes : list of int >= 1
        Values of ``dataset.size`` in the second.
    timed_components : int >= 1
        ``approx.n_components`` in the second.
    repeats : int >= 1
        Number of seeds in the first figure.
    others : dict of dict, or None
        Name of another figure of errors -> its series.
    """

    series: dict[str, Any] | None = None
    exact: dict[str, Any] | None = None
    components: list[PositiveInt] = these(10, 30, 100, 300)
    sizes: list[PositiveInt] = these(100, 1000, 10_000)
    timed_components: PositiveInt = 200
    repeats: PositiveInt = 1
    others: dict[str, Any] | None = None

    def check(self) -> None:
        super().check()
        check_changes("runner.series", self.series, "orff_curl")
        check_changes("runner.exact", self.exact)
        check_changes("runner.others", self.others)
        for name, series in entries(self.others).items():
            check_changes(f"runner.others.{name}", series, "orff_curl")

    def plans(self, base: Plan) -> list[Plan]:
        """A plan of every series, with the fewest frequencies, and of every exact kernel."""
        if not isinstance(base.component("dataset"), VectorField):
            raise InputError("runner=fields needs dataset=vector_field")
        fewest, plans = {"approx.n_components": min(self.components)}, list[Plan]()
        for series, exact in self._figures().values():
            plans += [base.variant(changes | fewest) for changes in series.values()]
            plans += [base.variant(changes) for changes in exact.values()]
        return plans

    def run(self, job: Job) -> None:
        trials = Trials(job, "test/rmse")
        for name, (series, exact) in self._figures().items():
            self._errors(job, trials, name, series, exact)
        for series, _ in self._figures().values():
            self._pictures(job, series)
        self._times(job, trials)
        trials.end()

    def _figures(self) -> dict[str, tuple[Changes, Changes]]:
        """Name of a figure of errors -> label -> changes, of its series and of its exact kernels."""
        others = {name: (entries(series), Changes()) for name, series in entries(self.others).items()}
        return {"error": (entries(self.series), entries(self.exact))} | others

    def _errors(self, job: Job, trials: Trials, name: str, series: Changes, exact: Changes) -> None:
        seeds = spawn(job.plan.seed("runner"), self.repeats)

        def mse(label: str, repeat: int, changes: dict[str, Any]) -> float:
            plan = job.plan.variant(changes | {"seed": seeds[repeat]})
            return trials.fit(plan, f"{label} repeat {repeat}")["test/rmse"] ** 2

        prefix = "mse" if name == "error" else name  # of the metrics
        lines, levels = {}, {"noise": [job.plan.config["dataset"]["noise"] ** 2]}
        for label, changes in series.items():
            found = [
                [mse(f"{label} D={D}", i, changes | {"approx.n_components": D}) for D in self.components]
                for i in range(self.repeats)
            ]
            lines[label] = np.array(self.components), np.array(found)
            self._record(job, f"{prefix}/{label}", "D", self.components, np.mean(found, 0))
            reached = np.mean(found, 0) <= _NEAR * levels["noise"][0]
            at = f"D{self.components[int(reached.argmax())]}" if reached.any() else "not reached"
            job.row(f"{name}, noise level/{label}", f"{at} (first mean error within {_NEAR} of the noise variance)")
        for label, changes in exact.items():
            levels[label] = [mse(label, i, changes) for i in range(self.repeats)]
            self._record(job, f"{prefix}/{label}", "", [""], [float(np.mean(levels[label]))])
        job.log_result(*curve_results(name, "test/mse", "approx.n_components", lines))
        job.log_result(*(Result(name, label, "test/mse", found) for label, found in levels.items()))
        job.log_figure(name, plots.curves, lines, levels, "frequencies D", "error (MSE)", log_y=True)

    def _times(self, job: Job, trials: Trials) -> None:
        lines, fixed = {}, {"selection": {"name": "none"}}
        settings = [
            (label, c | {"approx.n_components": self.timed_components}) for label, c in entries(self.series).items()
        ]
        for label, changes in [*settings, *entries(self.exact).items()]:
            found: dict[int, float] = {}
            for size in self.sizes:
                try:
                    metrics = trials.fit(job.plan.variant(changes | fixed | {"dataset.size": size}))
                except InputError as error:
                    job.row(f"{label}, N={size}", f"stopped: {error}")
                    break
                found[size] = sum(metrics[stage] for stage in _STAGES)
            lines[label] = np.array(list(found)), np.array([list(found.values())])
            self._record(job, f"seconds/{label}", "N", list(found), list(found.values()))
        job.log_result(*curve_results("time", "seconds", "dataset.size", lines))
        job.log_figure("time", plots.curves, lines, {}, "points N", "time (s)", log_y=True)

    def _pictures(self, job: Job, series: Changes) -> None:
        """Truth, prediction and error of every series with the most frequencies, on a grid."""
        axis = np.linspace(-2, 2, _GRID)
        grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
        for label, changes in series.items():
            plan = job.plan.variant(changes | {"approx.n_components": self.components[-1]})
            truth = plan.component("dataset").values(grid)
            predicted = fit_and_score(plan, plan.load(), Stopwatch()).model.predict(grid)
            job.log_figure(f"field {label}", plots.field, grid, truth, predicted, label)

    def _record(self, job: Job, name: str, key: str, x: list[Any], values: Any) -> None:
        job.log_metrics({f"{name} {key}{at}".strip(): value for at, value in zip(x, values, strict=True)})
        job.row(name, "  ".join(f"{key}{at}: {value:.3g}".lstrip(": ") for at, value in zip(x, values, strict=True)))
