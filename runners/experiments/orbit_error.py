"""runner=orbit_error: the error of the orbit average against the number of elements, for each rule."""

from __future__ import annotations

from typing import get_args

import numpy as np

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.core.random import spawn
from orbit.orbits import Orbit, Rule
from orbit.registry import register
from runners.base import Job, Runner
from runners.experiments.pipeline import represented_points

# Dimensions up to which a tensor rule of a few hundred nodes is a more accurate reference than qmc: in two, functions
# of interpolated pixels are not smooth enough for it.
_QUADRATURE_DIMS = 1


@register("runner", "orbit_error")
class OrbitError(Runner):
    """Mean square feature error |psi_r(x) - psi(x)|^2 / |psi(x)|^2 against the orbit size r, one curve for each rule.

    psi is the average over a fine rule. Frequencies and landmarks are the
    same for every r and rule, so the error is that of the orbit average alone
    (for random elements, LGIKA's proposition on r bounds it by 1/sqrt(r)).

    Parameters
    ----------
    sizes : list of int >= 1
        Orbit sizes r.
    rules : list of str
        Orbit rules compared; None is all rules that the group and its q have.
    reference : int >= 1
        Orbit size of the reference: by quadrature in one dimension where there is
        such a rule, otherwise by qmc with eight times this size.
    n_points : int >= 1
        Number of points whose features are compared.
    shape : list of int >= 1 or None
        Shape of random points that are used instead of the data set.
    repeats : int >= 1
        Number of seeds; deterministic rules get a random phase where they have one.
    """

    def __init__(
        self,
        sizes: list[PositiveInt] = [4, 8, 16, 32, 64],  # noqa: B006  never changed: the schema reads it
        rules: list[str] | None = None,
        reference: PositiveInt = 512,
        n_points: PositiveInt = 200,
        repeats: PositiveInt = 5,
        shape: list[PositiveInt] | None = None,
    ) -> None:
        self.sizes = sizes
        self.rules = rules
        self.reference = reference
        self.n_points = n_points
        self.repeats = repeats
        self.shape = shape

    def run(self, job: Job) -> None:
        rules = self._rules(job)
        X = represented_points(job.plan, self.n_points, self.shape)
        reference = job.plan.approx(orbit=self._reference(job)).fit(X)
        truth = reference.transform(X)
        job.log_skeleton(reference.kernel_)
        if self.shape is None:  # orbits of random points are not worth drawing
            job.log_orbit(job.plan.orbit().fit(X), X)
        seeds = spawn(job.plan.seed("runner"), self.repeats)
        curves = {}
        for rule in rules:
            errors = [[self._error(job, X, truth, size, rule, seed) for size in self.sizes] for seed in seeds]
            curves[rule] = np.array(self.sizes), np.array(errors)
            means = curves[rule][1].mean(0)
            job.log_metrics({f"error/{rule}/r{size}": e for size, e in zip(self.sizes, means, strict=True)})
            job.row(f"error, {rule}", "  ".join(f"r={s}: {e:.2e}" for s, e in zip(self.sizes, means, strict=True)))
        title = f"{job.plan.approx().orbit.label().rsplit(',', 1)[0]}; {job.plan.config['approx']['name']}"
        figure = plots.convergence(curves, "orbit size r", "mean square feature error", title)
        job.log_figure("orbit_error", figure)

    def _rules(self, job: Job) -> list[str]:
        """The rules compared: those of ``rules``, each checked before any work, or all that exist."""
        if self.rules is not None:
            for rule in self.rules:
                job.plan.orbit(rule=rule)
            return list(self.rules)
        return [rule for rule in get_args(Rule) if _exists(job, rule)]

    def _reference(self, job: Job) -> Orbit:
        if _exists(job, "quadrature") and job.plan.component("group").domain.dim <= _QUADRATURE_DIMS:
            return job.plan.orbit(size=self.reference, rule="quadrature", random_phase=False)
        seed = spawn(job.plan.seed("runner"), self.repeats + 1)[-1]  # no repeat of a rule is its own reference
        return job.plan.orbit(size=8 * self.reference, rule="qmc", random_state=seed)

    def _error(self, job: Job, X: np.ndarray, truth: np.ndarray, size: int, rule: str, seed: int) -> float:
        orbit = job.plan.orbit(size=size, rule=rule, random_phase=True, random_state=seed)
        difference = job.plan.approx(orbit=orbit).fit(X).transform(X) - truth
        return float(np.square(difference).sum() / np.square(truth).sum())


def _exists(job: Job, rule: str) -> bool:
    try:
        job.plan.orbit(rule=rule)
    except InputError:
        return False
    return True
