"""The error of operator-valued random features, and their variance with its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from orbit.approx.frequencies import Frequencies
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.kernels import OperatorKernel
from papers.bounds import operator_variance_bound
from papers.measures.base import Lines, Quantity
from runners.config.plan import Plan
from runners.job.job import Job
from runners.measure.results import Result

# Frequencies in a block.
_BLOCK = 4096


class OperatorError(Quantity):
    """The largest spectral norm of K~ - K over pairs in [-1, 1]^d, or the variance of K~ at one pair, and its bound.

    Parameters
    ----------
    dim : int >= 1
        The dimension d of inputs and outputs.
    variance : bool
        Measure the spectral norm of E[(K~ - K)^2], over the repeats, at one pair.

    References
    ----------
    Brault et al. 2016, Figures 1 and 6
    """

    parts: ClassVar[Mapping[str, str]] = {"error": "largest error", "variance": "variance"}
    axis: ClassVar[str] = "frequencies D"
    figure: ClassVar[str] = "orff_error"

    def __init__(self, dim: PositiveInt = 4, variance: bool = False) -> None:
        self.dim = dim
        self.variance = variance

    def check_plan(self, plan: Plan, label: str) -> None:
        if not isinstance(kernel := plan.component("kernel"), OperatorKernel):
            raise InputError(f"runner.series.{label}: {kernel.label()} is not operator-valued")

    def start(self, job: Job, n_points: int) -> None:
        count = 1 if self.variance else n_points
        pairs = np.random.default_rng(job.plan.seed("runner")).uniform(-1, 1, (2, count, self.dim))
        self.points_ = pairs[0] - pairs[1]

    def values(self, job: Job, plan: Plan, label: str, sizes: Sequence[int], seed: int) -> dict[str, Any]:
        kernel, rule = plan.component("kernel").fit(self.points_), plan.component("frequencies")
        exact = kernel.signatures(self.points_)
        errors = np.array([_estimate(kernel, rule, self.points_, D, seed) - exact for D in sizes])
        if self.variance:
            return {"variance": errors[:, 0] @ errors[:, 0]}  # (sizes, d, d)
        return {"error": np.linalg.norm(errors, 2, axis=(2, 3)).max(1)}

    def lines(self, plan: Plan, label: str, sizes: np.ndarray, values: np.ndarray) -> Lines:
        if not self.variance:
            return {label: (sizes, values)}
        kernel = plan.component("kernel").fit(self.points_)
        measured = np.linalg.norm(values.mean(0), ord=2, axis=(1, 2))
        bounds = np.array([operator_variance_bound(kernel, self.points_[0], D) for D in sizes])
        return {f"{label}, measured": (sizes, measured[None]), f"{label}, bound": (sizes, bounds[None])}

    def results(self, part: str, lines: Lines) -> list[Result]:
        slopes = [
            Result("slope", label, "slope", [float(np.polyfit(np.log(sizes), np.log(values.mean(0)), 1)[0])])
            for label, (sizes, values) in lines.items()
            if len(sizes) > 1
        ]
        return super().results(part, lines) + slopes

    def title(self, plan: Plan) -> str:
        return f"pairs in [-1, 1]^{self.dim}"


def _estimate(kernel: OperatorKernel, rule: Frequencies, delta: np.ndarray, size: int, seed: int) -> np.ndarray:
    W = rule.draw(kernel.base_, size, delta.shape[1], np.random.default_rng(seed))
    parts = [kernel.estimate(delta, W[i : i + _BLOCK]) * len(W[i : i + _BLOCK]) for i in range(0, size, _BLOCK)]
    return np.sum(parts, axis=0) / size
