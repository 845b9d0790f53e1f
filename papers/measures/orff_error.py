"""runner=orff_error: the error of operator-valued random features, and their variance with its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from orbit import plots
from orbit.approx.frequencies import Frequencies
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.core.random import spawn
from orbit.kernels import OperatorKernel
from orbit.kernels.operator_bounds import operator_variance_bound
from orbit.registry import register
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, entries
from runners.job.job import Job
from runners.job.runner import Runner
from runners.measure.results import Result, curve_results

# Frequencies in a block.
_BLOCK = 4096


@register("runner", "orff_error")
class OrffError(Runner):
    """The largest error over pairs in [-1, 1]^d (ORFF Figure 1), or the variance at one pair (Figure 6).

    Parameters
    ----------
    kernels : dict of dict, at least one
        Label -> a ``kernel`` section of an operator-valued kernel, one curve each.
    sizes : list of int >= 1
        Numbers of frequencies D.
    dim : int >= 1
        The dimension d of inputs and outputs.
    n_points : int >= 1
        Number of random pairs; not used for the variance, which is measured at one pair.
    variance : bool
        Measure the spectral norm of E[(K~ - K)^2] and its bound instead of the error.
    repeats : int >= 1
        Number of draws of the frequencies.
    """

    def __init__(
        self,
        kernels: dict[str, Any] | None = None,
        sizes: list[PositiveInt] = [10, 100, 1000, 10_000],  # noqa: B006  never changed: the schema reads it
        dim: PositiveInt = 4,
        n_points: PositiveInt = 500,
        variance: bool = False,
        repeats: PositiveInt = 10,
    ) -> None:
        self.kernels = kernels
        self.sizes = sizes
        self.dim = dim
        self.n_points = n_points
        self.variance = variance
        self.repeats = repeats

    def check(self) -> None:
        super().check()
        check_changes("runner.kernels", self.kernels, "orff_error")

    def plans(self, base: Plan) -> list[Plan]:
        """The plan of every kernel."""
        plans = {label: base.variant({"kernel": section}) for label, section in entries(self.kernels).items()}
        for label, plan in plans.items():
            if not isinstance(kernel := plan.component("kernel"), OperatorKernel):
                raise InputError(f"runner.kernels.{label}: {kernel.label()} is not operator-valued")
        return [*plans.values()]

    def run(self, job: Job) -> None:
        kernels = [plan.component("kernel") for plan in self.plans(job.plan)]
        curves: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        measure = self._variance if self.variance else self._errors
        for label, kernel in zip(self.kernels or {}, kernels, strict=True):
            for name, values in measure(job, kernel).items():
                curves[f"{label}{name}"] = np.array(self.sizes), values
                self._record(job, f"{label}{name}", values.mean(0))
        quantity = "variance" if self.variance else "largest error"
        title = f"pairs in [-1, 1]^{self.dim}"
        part = "variance" if self.variance else "error"
        job.log_result(*curve_results(part, quantity, "approx.n_components", curves))
        job.log_figure("orff_error", plots.convergence, curves, "frequencies D", quantity, title, slopes=True)

    def _errors(self, job: Job, kernel: OperatorKernel) -> dict[str, np.ndarray]:
        """The largest spectral norm of K~ - K over the pairs, shape (repeats, sizes)."""
        delta = self._differences(job, self.n_points)
        return {"": self._over_draws(job, kernel, delta, lambda error: np.linalg.norm(error, 2, axis=(1, 2)).max())}

    def _variance(self, job: Job, kernel: OperatorKernel) -> dict[str, np.ndarray]:
        """The spectral norm of the mean square error at one pair, and its bound, shape (1, sizes)."""
        delta = self._differences(job, 1)
        errors = self._over_draws(job, kernel, delta, lambda error: error[0])
        empirical = np.linalg.norm((errors @ errors).mean(0), ord=2, axis=(1, 2))
        bounds = np.array([operator_variance_bound(kernel.fit(delta), delta[0], D) for D in self.sizes])
        return {", measured": empirical[None], ", bound": bounds[None]}

    def _over_draws(
        self, job: Job, kernel: OperatorKernel, delta: np.ndarray, figure: Callable[[np.ndarray], Any]
    ) -> np.ndarray:
        kernel, rule = kernel.fit(delta), job.plan.component("frequencies")
        exact = kernel.signatures(delta)
        seeds = spawn(job.plan.seed("runner"), self.repeats)
        return np.array(
            [[figure(_estimate(kernel, rule, delta, D, seed) - exact) for D in self.sizes] for seed in seeds]
        )

    def _differences(self, job: Job, count: int) -> np.ndarray:
        pairs = np.random.default_rng(job.plan.seed("runner")).uniform(-1, 1, (2, count, self.dim))
        return pairs[0] - pairs[1]

    def _record(self, job: Job, name: str, values: np.ndarray) -> None:
        job.log_metrics({f"orff/{name}/D{D}": value for D, value in zip(self.sizes, values, strict=True)})
        listed = "  ".join(f"D={D}: {value:.2e}" for D, value in zip(self.sizes, values, strict=True))
        if len(self.sizes) > 1:
            slope = float(np.polyfit(np.log(self.sizes), np.log(values), 1)[0])
            job.log_metrics({f"orff/{name}/slope": slope})
            job.log_result(Result("slope", name, "slope", [slope]))
            listed += f"  slope {slope:.3f}"
        job.row(name, listed)


def _estimate(kernel: OperatorKernel, rule: Frequencies, delta: np.ndarray, size: int, seed: int) -> np.ndarray:
    W = rule.draw(kernel.base_, size, delta.shape[1], np.random.default_rng(seed))
    parts = [kernel.estimate(delta, W[i : i + _BLOCK]) * len(W[i : i + _BLOCK]) for i in range(0, size, _BLOCK)]
    return np.sum(parts, axis=0) / size
