"""runner=skeleton_error: the error of random features against their number (Daniely et al. 2017, Figure 3)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.core.random import spawn
from orbit.registry import register
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, entries
from runners.job.job import Job
from runners.job.runner import Runner
from runners.measure.metrics import kernel_errors
from runners.measure.results import curve_results

_MEASURES = {
    "mean_error": "mean absolute difference",
    "rms_error": "root mean square difference",
    "max_error": "largest difference",
    "correlation": "correlation",
}

# Independent features drawn at once: Fourier features of whole images have thousands of entries each.
_PART = 2000


@register("runner", "skeleton_error")
class SkeletonError(Runner):
    """Four measures of error for several kernels, several kinds of features, and a range of numbers of features.

    Parameters
    ----------
    kernels : dict of dict, at least one
        Label -> changes to the configuration; one row of panels each.
    series : dict of dict, at least one
        Label -> changes to the configuration; one curve in every panel.
    sizes : list of int >= 1
        Values of ``approx.n_components``.
    n_points : int >= 2
        Number of random training points in the kernel matrix, drawn again in every repeat.
    repeats : int >= 1
        Number of draws of the points and of the features.
    """

    def __init__(
        self,
        kernels: dict[str, Any] | None = None,
        series: dict[str, Any] | None = None,
        sizes: list[PositiveInt] = [100, 1000, 10000],  # noqa: B006  never changed: the schema reads it
        n_points: PositiveInt = 128,
        repeats: PositiveInt = 10,
    ) -> None:
        self.kernels = kernels
        self.series = series
        self.sizes = sizes
        self.n_points = n_points
        self.repeats = repeats

    def check(self) -> None:
        super().check()
        check_changes("runner.kernels", self.kernels, "skeleton_error")
        check_changes("runner.series", self.series, "skeleton_error")

    def plans(self, base: Plan) -> list[Plan]:
        """The plan of every kernel in every series."""
        return [*self._plans(base).values()]

    def _plans(self, base: Plan) -> dict[tuple[str, str], Plan]:
        pairs = itertools.product(entries(self.kernels).items(), entries(self.series).items())
        return {(kernel, name): base.variant(one | two) for (kernel, one), (name, two) in pairs}

    def run(self, job: Job) -> None:
        kernels, series, plans = self.kernels or {}, self.series or {}, self._plans(job.plan)
        data = job.load()
        X = job.plan.component("representation").fit_transform(data.X_train)
        X = job.plan.engine().cast(X)
        if len(X) < self.n_points:
            raise InputError(f"runner.n_points: expected at most {len(X)}, the training points, found {self.n_points}")
        found: dict[tuple[str, str], list[list[dict[str, float]]]] = {key: [] for key in plans}
        seeds = spawn(job.plan.seed("runner"), self.repeats)
        with job.plan.progress(len(seeds) * len(plans), "errors") as progress:
            for seed, kernel in itertools.product(seeds, kernels):
                points = X[np.random.default_rng(seed).choice(len(X), self.n_points, replace=False)]
                exact = (
                    plans[kernel, next(iter(series))].variant({"approx": {"name": "exact"}}).approx(random_state=seed)
                )
                truth = exact.fit_gram(points)
                job.log_skeleton(exact.kernel_, kernel)
                for name in series:
                    grams = (self._gram(plans[kernel, name], points, size, seed) for size in self.sizes)
                    found[kernel, name].append([kernel_errors(truth, gram) for gram in grams])
                    progress.step()
        self._record(job, found)

    def _gram(self, plan: Plan, X: np.ndarray, size: int, seed: int) -> np.ndarray:
        """Gram matrix of ``size`` features; independent features are drawn in parts, to save memory."""
        merged = plan.config["approx"].get("deduplicate", False)
        parts = [size] if merged else [min(_PART, size - done) for done in range(0, size, _PART)]
        total = np.zeros((len(X), len(X)))
        for part, part_seed in zip(parts, spawn(seed, len(parts)), strict=True):
            psi = plan.approx(n_components=part, random_state=part_seed).fit_transform(X)
            total += (psi @ psi.T) * (part / size)
        return total

    def _record(self, job: Job, found: dict[tuple[str, str], list[list[dict[str, float]]]]) -> None:
        panels: dict[str, dict[str, Any]] = {}
        for measure, label in _MEASURES.items():
            rows = []
            for (kernel, name), repeats in found.items():
                values = np.array([[errors[measure] for errors in row] for row in repeats])
                panels.setdefault(f"{kernel}: {label}", {})[name] = np.array(self.sizes), values
                job.log_metrics(
                    {f"{measure}/{kernel}/{name}/s{s}": v for s, v in zip(self.sizes, values.mean(0), strict=True)}
                )
                line = {f"{kernel}, {name}": (self.sizes, values)}
                job.log_result(*curve_results(measure, label, "approx.n_components", line))
                rows.append([kernel, name, *(f"{v:.3g}" for v in values.mean(0))])
            job.log_table(f"{measure}.md", ["kernel", label, *map(str, self.sizes)], rows)
        n_kernels = len(self.kernels or {})
        titles = [title for i in range(n_kernels) for title in list(panels)[i::n_kernels]]
        job.log_figure("skeleton_error", plots.panels, {t: panels[t] for t in titles}, "features", len(_MEASURES))
