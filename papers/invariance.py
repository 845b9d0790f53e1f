"""runner=invariance: the change of features when points are moved, for each group and approximation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from orbit.core.errors import InputError
from orbit.core.params import PositiveInt, allows
from orbit.orbits import Orbit
from orbit.registry import register
from papers.points import represented_points
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, entries
from runners.job.job import Job
from runners.job.runner import Runner, these

_OWN = ("shape", "moves")  # keys of a case that are not keys of the configuration


@register("runner", "invariance")
@dataclass(eq=False, repr=False)
class Invariance(Runner):
    """The invariance error mean |psi(g x) - psi(x)| / |psi(x)| over points and random group elements.

    It is zero up to rounding where the orbit average is exact: for a whole finite
    group, and for rotations of polar images on their grid.

    Parameters
    ----------
    cases : dict of dict, at least one
        Label -> settings, as in a row of ``runner=table``, and two more keys:
        ``shape`` uses random points of that shape instead of the data set, and
        ``moves`` has settings of the orbit that the moves are drawn from (by
        default random elements drawn from the q of the case).
    approximations : list of str
        Values of ``approx``, one column each.
    n_points : int >= 1
        Number of points that are moved.
    n_moves : int >= 1
        Number of random elements that each point is moved by.
    """

    cases: dict[str, Any] | None = None
    approximations: list[str] = these("rf", "nystrom", "exact")
    n_points: PositiveInt = 40
    n_moves: PositiveInt = 16

    def check(self) -> None:
        super().check()
        check_changes("runner.cases", self.cases, "invariance")
        for label, case in entries(self.cases).items():
            shape, moves = case.get("shape"), case.get("moves")
            sizes = shape if isinstance(shape, list | tuple) else [0]
            if "shape" in case and not (sizes and all(allows(size, PositiveInt) for size in sizes)):
                raise InputError(f"runner.cases.{label}.shape: expected a list of integers >= 1, found {shape!r}")
            if not isinstance(moves, Mapping | None):
                raise InputError(f"runner.cases.{label}.moves: expected settings of orbit, found {moves!r}")

    def plans(self, base: Plan) -> list[Plan]:
        """The plan of every case with every approximation."""
        plans = self._plans(base)
        for (label, _), plan in plans.items():
            self._moves(plan, entries(self.cases)[label])  # refuses settings that are wrong
        return [*plans.values()]

    def _moves(self, plan: Plan, case: dict[str, Any]) -> Orbit:
        """The orbit from which the moves of a case are drawn."""
        drawn = {"rule": "monte_carlo", "size": self.n_moves} | (case.get("moves") or {})
        return plan.orbit(**drawn, random_state=1)

    def _plans(self, base: Plan) -> dict[tuple[str, str], Plan]:
        plans = {}
        for label, case in entries(self.cases).items():
            settings = {key: value for key, value in case.items() if key not in _OWN}
            for name in self.approximations:
                plans[label, name] = base.variant(settings | {"approx": {"name": name}})
        return plans

    def run(self, job: Job) -> None:
        plans, cases, rows = self._plans(job.plan), entries(self.cases), dict[str, dict[str, str]]()
        with job.plan.progress(len(plans), "cases") as progress:
            for (label, name), plan in plans.items():
                X = represented_points(plan, self.n_points, cases[label].get("shape"))
                features = plan.approx().fit(X)
                error = self._error(plan, cases[label], features, X)
                job.log_metrics({f"invariance/{label}/{name}": error})
                job.log_skeleton(features.kernel_, label)
                if name == self.approximations[0] and "shape" not in cases[label]:
                    job.log_orbit(features.orbit_, X, label)
                row = rows.setdefault(label, {"group": label})
                row |= {"averaged over": _averaged_over(features.orbit_), name: f"{error:.1e}"}
                progress.step()
        table = list(rows.values())
        job.log_table("invariance", list(table[0]), [list(row.values()) for row in table])

    def _error(self, plan: Plan, case: dict[str, Any], features: Any, X: np.ndarray) -> float:
        moves = self._moves(plan, case).fit(X)
        psi = features.transform(X)
        errors = []
        for i in range(len(moves.weights_)):
            moved = moves.points(torch.from_numpy(X), slice(i, i + 1))[0].numpy()
            errors.append(np.linalg.norm(features.transform(moved) - psi, axis=1) / np.linalg.norm(psi, axis=1))
        return float(np.mean(errors))


def _averaged_over(fitted: Orbit) -> str:
    return f"{fitted.distribution_.name}, {fitted.rule_}, r={len(fitted.weights_)}"
