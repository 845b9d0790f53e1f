"""runner=orbit_error: the error of the orbit average against the number of elements, for each rule."""

from __future__ import annotations

from orbit import plots
from orbit.approx import orbit_errors, orbit_rules, reference_map
from orbit.core.params import PositiveInt
from orbit.core.random import spawn
from orbit.registry import register
from runners.experiments.pipeline import represented_points
from runners.job.job import Job
from runners.job.runner import Runner


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
        feature_map, seed = job.plan.approx(), job.plan.seed("runner")
        rules = orbit_rules(feature_map.orbit) if self.rules is None else self.rules
        for rule in rules:  # before any work
            job.plan.orbit(rule=rule)
        X = represented_points(job.plan, self.n_points, self.shape)
        reference = reference_map(feature_map, self.reference, spawn(seed, self.repeats + 1)[-1]).fit(X)
        errors = orbit_errors(feature_map, X, self.sizes, rules, reference, self.repeats, seed)
        for rule, values in errors.items():
            means = values.mean(0)
            job.log_metrics({f"error/{rule}/r{size}": e for size, e in zip(self.sizes, means, strict=True)})
            job.row(f"error, {rule}", "  ".join(f"r={s}: {e:.2e}" for s, e in zip(self.sizes, means, strict=True)))
        job.log_skeleton(reference.kernel_)
        if self.shape is None:  # orbits of random points are not worth drawing
            job.log_orbit(job.plan.orbit().fit(X), X)
        title = f"{feature_map.orbit.label().rsplit(',', 1)[0]}; {job.plan.config['approx']['name']}"
        job.log_figure("orbit_error", plots.orbit_error, errors, self.sizes, title)
