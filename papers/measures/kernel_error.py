"""runner=kernel_error: the error of any approximation of the exact orbit-averaged kernel."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from orbit import plots
from orbit.approx import Exact
from orbit.core.params import PositiveInt
from orbit.core.random import spawn
from orbit.orbits import Orbit
from orbit.registry import register
from runners.config.plan import Plan
from runners.job.job import Job
from runners.job.runner import Runner
from runners.measure.metrics import kernel_errors
from runners.measure.results import curve_results

_DRAWN = {"rel_fro_error": "relative Frobenius error", "rel_spectral_error": "relative spectral error"}


@register("runner", "kernel_error")
class KernelError(Runner):
    """Errors of <psi(x), psi(z)> as an estimate of k_{q,G}(x, z), against the number of components (LGIKA Figure 1).

    Parameters
    ----------
    sizes : list of int >= 1
        Values of ``approx.n_components``.
    orbit_sizes : list of int >= 1 or None
        Orbit sizes r, one curve each; None is the orbit size of the configuration.
    rules : list of str or None
        Orbit rules, one curve each; None is the rule of the configuration.
    reference : int >= 1 or None
        Orbit size of the exact kernel. None uses the orbit of each curve, so that
        the error is that of the approximation alone.
    n_points : int >= 1
        Number of points in the kernel matrix.
    repeats : int >= 1
        Number of seeds.
    """

    def __init__(
        self,
        sizes: list[PositiveInt] = [64, 128, 256, 512, 1024],  # noqa: B006  never changed: the schema reads it
        orbit_sizes: list[PositiveInt] | None = None,
        rules: list[str] | None = None,
        reference: PositiveInt | None = None,
        n_points: PositiveInt = 300,
        repeats: PositiveInt = 3,
    ) -> None:
        self.sizes = sizes
        self.orbit_sizes = orbit_sizes
        self.rules = rules
        self.reference = reference
        self.n_points = n_points
        self.repeats = repeats

    def run(self, job: Job) -> None:
        for changes in self._curves():
            job.plan.orbit(**changes)  # an unknown rule fails before any work
        data = job.load()
        X = job.plan.component("representation").fit_transform(data.X_train[: self.n_points])
        lines: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {key: {} for key in _DRAWN}
        truths: dict[str, np.ndarray] = {}
        for changes in self._curves():
            name = _curve_name(changes)
            seeds = spawn(job.plan.seed("runner"), self.repeats)
            found = [self._errors_of_seed(job, X, changes, seed, truths) for seed in seeds]
            self._record(job, name, found)
            for key in _DRAWN:
                errors = np.array([[errors[key] for errors in row] for row in found])
                lines[key][name] = np.array(self.sizes), errors
        config = job.plan.config
        title = f"{config['group']['name']}, {config['approx']['name']}, {config['kernel']['name']}, {data.name}"
        for key, label in _DRAWN.items():
            job.log_result(*curve_results(key, label, "approx.n_components", lines[key]))
            job.log_figure(key, plots.convergence, lines[key], "components", label, title, slopes=True)

    def _curves(self) -> list[dict[str, Any]]:
        """The size and rule of the orbit of each curve, without those that are as configured."""
        sizes: Sequence[int | None] = self.orbit_sizes or [None]
        rules: Sequence[str | None] = self.rules or [None]
        pairs = [{"size": size, "rule": rule} for size, rule in itertools.product(sizes, rules)]
        return [{key: value for key, value in pair.items() if value is not None} for pair in pairs]

    def _of_reference(self, changes: dict[str, Any]) -> dict[str, Any]:
        return changes if self.reference is None else changes | {"size": self.reference}

    def _errors_of_seed(
        self, job: Job, X: np.ndarray, changes: dict[str, Any], seed: int, truths: dict[str, np.ndarray]
    ) -> list[dict[str, float]]:
        """The errors of every number of components; ``truths`` has the exact kernels of earlier curves."""
        orbit, reference = job.plan.orbit(random_state=seed, **changes), self._of_reference(changes)
        key = f"{seed} {reference}"
        if key not in truths:
            own = self.reference is None
            exact = _exact_map(job.plan, job.plan.orbit(random_state=seed if own else seed + 1, **reference), seed)
            truths[key] = exact.fit_gram(X)
            job.log_skeleton(exact.kernel_)
        found = []
        for n_components in self.sizes:
            psi = job.plan.approx(orbit=orbit, n_components=n_components, random_state=seed).fit_transform(X)
            found.append(kernel_errors(truths[key], psi.astype(np.float64) @ psi.T.astype(np.float64)))
        return found

    def _record(self, job: Job, name: str, found: list[list[dict[str, float]]]) -> None:
        for i, n_components in enumerate(self.sizes):
            means = {key: float(np.mean([row[i][key] for row in found])) for key in found[0][i]}
            job.log_metrics({f"kernel/{key}/{name}/s{n_components}": value for key, value in means.items()})
        errors = [np.mean([row[i]["rel_fro_error"] for row in found]) for i in range(len(self.sizes))]
        listed = "  ".join(f"s={s}: {e:.2e}" for s, e in zip(self.sizes, errors, strict=True))
        job.row(f"Frobenius, {name}", listed)


def _exact_map(plan: Plan, orbit: Orbit, seed: int | None) -> Exact:
    parts = {kind: plan.component(kind) for kind in ("kernel", "encoder")}
    return Exact(**parts, orbit=orbit, engine=plan.engine(), random_state=seed)


def _curve_name(changes: dict[str, Any]) -> str:
    return " ".join(f"r={value}" if key == "size" else value for key, value in changes.items()) or "error"
