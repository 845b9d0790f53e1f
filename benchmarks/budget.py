"""``runner=budget``: accuracy against seconds of training, of fits of several sizes and of a network."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.machine import describe_machine
from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveFloat, PositiveInt
from orbit.core.random import hold_out
from orbit.data import Dataset
from orbit.learners import NetworkClassifier
from orbit.orbits import Orbit, random_orbit_points
from orbit.registry import register
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, entries
from runners.experiments.pipeline import pipeline, represented
from runners.experiments.trials import Trials
from runners.job.job import Job
from runners.job.runner import Runner, these
from runners.measure.tables import markdown_table

# Points that are moved at once.
_MOVED_TOGETHER = 1024

Points = list[tuple[str, float, float]]  # label, seconds, accuracy


@register("runner", "budget")
@dataclass(eq=False, repr=False)
class Budget(Runner):
    """Accuracy against seconds of training: fits of several sizes, beside a network trained on moved points.

    Each fit is a point of its curve. The network is trained once, and predicts the test
    points whenever a budget is spent; in every pass over the training points each is
    moved by a random element of the plan's orbit. Seconds are wall-clock, without
    loading, predictions and the choice of settings.

    Parameters
    ----------
    n_train : list of int >= 1
        Numbers of training points, one panel each.
    fits : dict of dict
        Label -> changes to the configuration, the points of one curve.
    network : dict
        Changes that make the plan of the network: its ``learner``. Group, encoder and
        features are replaced, so that it takes the points themselves, in their
        representation.
    grid : dict of lists, or None
        Configuration key -> values to try for the network, e.g. ``learner.learning_rate``.
    tuning_seconds : float > 0
        Training of each point of the grid on 80 % of the training points; the best on
        the others is chosen.
    seconds : list of float > 0
        Budgets of the network.
    """

    n_train: list[PositiveInt] = these(100, 1000, 12000)
    fits: dict[str, Any] | None = None
    network: dict[str, Any] | None = None
    grid: dict[str, Any] | None = None
    tuning_seconds: PositiveFloat = 20.0
    seconds: list[PositiveFloat] = these(30.0, 60.0, 120.0, 300.0, 600.0)

    def check(self) -> None:
        super().check()
        if not self.fits or not self.network:
            raise InputError("runner=budget: expected runner.fits and runner.network; choose experiment=bench_network")
        check_changes("runner.fits", self.fits)
        for key, values in (self.grid or {}).items():
            if not isinstance(values, list | tuple) or not values:
                raise InputError(f"runner.grid.{key}: expected a list of at least one value, found {values!r}")

    def plans(self, base: Plan) -> list[Plan]:
        """The plans of all fits and networks."""
        sizes = [base.variant({"dataset.n_train": n}) for n in self.n_train]
        fits = [size.variant(changes) for size in sizes for changes in entries(self.fits).values()]
        networks = [plan for size in sizes for _, plan in self._networks(size)]
        if (name := networks[0].config["learner"]["name"]) != "network":
            raise InputError(f"runner.network: expected learner: {{name: network}}, found {name}")
        return fits + networks

    def run(self, job: Job) -> None:
        job.say(describe_machine(torch.get_num_threads()))
        trials, found = Trials(job, "test/accuracy"), list[tuple[Any, ...]]()
        for n in self.n_train:
            base, labels = job.plan.variant({"dataset.n_train": n}), f"{n:,} labels"
            data = trials.data(base)  # before the fits, so that none is timed with the loading
            found += [(labels, "fits", *point) for point in self._fit_all(base, trials)]
            found += [(labels, "network", *point) for point in self._train(job, base, data)]
            table = self._record(job, pd.DataFrame(found, columns=["labels", "kind", "model", "seconds", "accuracy"]))
        job.say(table)
        trials.end()

    def _fit_all(self, base: Plan, trials: Trials) -> Points:
        points = []
        for label, changes in entries(self.fits).items():
            metrics = trials.fit(base.variant(changes))
            seconds = metrics["time/total_s"] - metrics["time/predict_s"]
            points.append((label, seconds, metrics["test/accuracy"]))
        return points

    def _networks(self, base: Plan) -> list[tuple[str, Plan]]:
        """The plan of the network for each point of the grid, with its settings as text."""
        points = {"group": {"name": "identity"}, "distribution": {"name": "auto"}, "encoder": {"name": "none"}}
        points |= {"approx": {"name": "points"}, "hyper": {"name": "linear"}}
        plan, grid = base.variant(points | dict(self.network or {})), self.grid or {}
        changes = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        return [(", ".join(f"{k}={v}" for k, v in each.items()), plan.variant(each)) for each in changes]

    def _train(self, job: Job, base: Plan, data: Dataset) -> Points:
        """Choose the settings of the network on training points, and train it on all of them."""
        seed = base.seed("runner")
        labels = data.y_train if data.task == "classification" else None
        fit, validation = hold_out(len(data.X_train), 0.2, labels, seed)
        part = data.split(fit, validation)
        networks = self._networks(base)
        scores = [self._curve(base, plan, part, [self.tuning_seconds])[0][2] for _, plan in networks]
        settings, best = networks[int(np.argmax(scores))]
        job.row(f"network, {len(data.X_train)} labels", f"{settings} (validation accuracy {max(scores):.2%})")
        return self._curve(base, best, data, self.seconds)

    def _curve(self, base: Plan, plan: Plan, data: Dataset, budgets: list[float]) -> Points:
        """Accuracy on the test part each time a budget is spent."""
        model = pipeline(plan, data.task)
        X, network = represented(model, data.X_train, plan.engine()), model["learner"]
        X_test = model["representation"].transform(data.X_test).astype(X.dtype).reshape(len(data.X_test), -1)
        batches = _moved_batches(X, data.y_train, base.orbit().fit(X), network, base.seed("runner"))
        points, spent = [], 0.0
        for budget in sorted(budgets):
            while spent < budget:
                start = time.perf_counter()
                x, y = next(batches)
                network.partial_fit(x.reshape(len(x), -1), y, classes=np.unique(data.y_train))
                spent += time.perf_counter() - start
            accuracy = float((network.predict(X_test) == data.y_test).mean())
            points.append((f"network, {budget:g} s", spent, accuracy))
        return points

    def _record(self, job: Job, found: pd.DataFrame) -> str:
        """Record what is measured so far, and return it as a table."""
        rows = []
        for labels, _, model, seconds, accuracy in found.itertuples(index=False):
            job.log_metrics({f"{labels}/{model}/accuracy": accuracy, f"{labels}/{model}/seconds": seconds})
            rows.append([labels, model, f"{seconds:.1f}", f"{accuracy:.4f}"])
        table = markdown_table(["labels", "model", "seconds", "test accuracy"], rows)
        job.log_text("budget.md", table + "\n")
        chosen = [f"{key}={job.plan.config[key]['name']}" for key in ("group", "encoder", "approx")]
        names = {"fits": f"fits with {', '.join(chosen)}", "network": "network, trained on moved points"}
        drawn: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        for (labels, kind), line in found.sort_values("seconds").groupby(["labels", "kind"], sort=False):
            drawn.setdefault(labels, {})[names[kind]] = line["seconds"].to_numpy(), line["accuracy"].to_numpy()[None]
        job.log_figure("budget", plots.panels, drawn, "seconds of training", "test accuracy", linear=[*drawn])
        return table


def _moved_batches(
    X: np.ndarray, y: np.ndarray, orbit: Orbit, network: NetworkClassifier, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of points, in a new order in every pass, each point moved by a random element."""
    rng, n = np.random.default_rng(seed), len(X)
    passes = max(1, _MOVED_TOGETHER // n)  # at once: moving a few points takes as long as moving many
    while True:
        order = np.concatenate([rng.permutation(n) for _ in range(passes)])
        for start in range(0, len(order), _MOVED_TOGETHER):
            rows = order[start : start + _MOVED_TOGETHER]
            moved = random_orbit_points(orbit, X[rows], len(rows), int(rng.integers(2**31)))
            for batch in range(0, len(rows), network.batch_size):
                part = slice(batch, batch + network.batch_size)
                yield moved[part], y[rows[part]]
        network.end_epoch()
