"""The error of the orbit average against the number of elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from orbit import plots
from orbit.approx import orbit_errors, orbit_rules, reference_map
from orbit.core.params import PositiveInt
from papers.measures.base import Lines, Quantity
from papers.points import represented_points
from runners.config.plan import Plan
from runners.job.job import Job

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class OrbitError(Quantity):
    """Mean square feature error |psi_r(x) - psi(x)|^2 / |psi(x)|^2 against the orbit size r, by default for each rule.

    psi is the average over a fine rule. Frequencies and landmarks are the
    same for every r and rule, so the error is that of the orbit average alone
    (for random elements, Raj et al.'s proposition on r bounds it by 1/sqrt(r)).
    Deterministic rules get a random phase in each repeat where they have one.

    Parameters
    ----------
    reference : int >= 1
        Orbit size of the reference: by quadrature in one dimension where there is
        such a rule, otherwise by qmc with eight times this size.
    shape : list of int >= 1 or None
        Shape of random points that are used instead of the data set.
    """

    key: ClassVar[str] = "orbit.size"
    axis: ClassVar[str] = "elements of the orbit"
    figure: ClassVar[str] = "orbit_error"
    parts: ClassVar[Mapping[str, str]] = {"error": "mean square feature error"}

    def __init__(self, reference: PositiveInt = 512, shape: list[PositiveInt] | None = None) -> None:
        self.reference = reference
        self.shape = shape

    def series(self, plan: Plan) -> dict[str, dict[str, Any]]:
        return {rule: {"orbit.rule": rule} for rule in orbit_rules(plan.orbit())}

    def start(self, job: Job, n_points: int) -> None:
        self.points_ = represented_points(job.plan, n_points, self.shape)
        seed = job.plan.seed("runner")
        self.reference_ = reference_map(job.plan.approx(), self.reference, seed).fit(self.points_)
        job.log_skeleton(self.reference_.kernel_)
        if self.shape is None:  # orbits of random points are not worth drawing
            job.log_orbit(job.plan.orbit().fit(self.points_), self.points_)

    def values(self, job: Job, plan: Plan, label: str, sizes: Sequence[int], seed: int) -> dict[str, Any]:
        feature_map = plan.approx()
        rule = feature_map.orbit.rule
        errors = orbit_errors(feature_map, self.points_, sizes, [rule], self.reference_, repeats=1, random_state=seed)
        return {"error": errors[rule][0]}

    def plot(self, plan: Plan, part: str, lines: Lines) -> Figure:
        sizes = next(iter(lines.values()))[0].tolist()
        title = f"{plan.orbit().label().rsplit(',', 1)[0]}; {plan.config['approx']['name']}"
        return plots.orbit_error({label: values for label, (_, values) in lines.items()}, sizes, title)
