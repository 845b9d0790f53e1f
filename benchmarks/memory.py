"""``runner=memory``: peak memory and seconds of streamed fits, each in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.machine import describe_machine
from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt, allows
from orbit.learners.streaming import FeatureStream, fit_stream
from orbit.plots.curves import Lines
from orbit.registry import register
from runners.config.plan import Plan, make_plan
from runners.config.program import python_path
from runners.job.job import Job
from runners.job.runner import Runner, check_only
from runners.measure.machine import peak_memory_mb
from runners.measure.tables import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SAMPLE = 2048  # points for fitting the feature map, and for the accuracy
_PEAK = "peak resident MiB"
_WAVES = 16
_SIDE = 28
_CHILD = "import runners.components; from benchmarks.memory import child; child()"


@register("runner", "memory")
class Memory(Runner):
    """Peak resident memory and time of streamed fits, including the solve, against the number of points.

    Parameters
    ----------
    cases : dict of dict, or None
        Label -> settings of the case. ``points`` is the number of generated images
        (28 x 28, computed when rows are read, never stored), or ``data`` for all
        points of the data set. All other keys change the configuration, as in the
        rows of ``runner=table``.
    only : list of labels, or None
        The cases to measure. None: all.
    """

    def __init__(self, cases: dict[str, Any] | None = None, only: list[str] | None = None) -> None:
        self.cases = cases
        self.only = only

    def check(self) -> None:
        super().check()
        if not self.cases:
            raise InputError("runner.cases: expected at least one case; choose experiment=bench_memory")
        for label, case in self.cases.items():
            points = case.get("points") if isinstance(case, dict) else None
            if points != "data" and not allows(points, PositiveInt):
                raise InputError(
                    f"runner.cases: expected points, an integer >= 1 or data, in every case, found {label}: {case!r}"
                )
        check_only(self.only, "case", self.cases)

    def run(self, job: Job) -> None:
        job.say(describe_machine(job.plan.config["engine"]["workers"] or torch.get_num_threads()))
        plans = self._plans(job.plan)
        rows, curve = [], []
        with job.plan.progress(len(plans), "memory") as progress:
            for label, (plan, points) in plans.items():
                found = _in_child(plan, points)
                counts = [f"{found[key]:,.0f}" for key in ("points", "columns")]
                rows.append([label, *counts, *(f"{found[key]:.4g}" for key in ("s", "cpu_s", "peak_mb"))])
                if points != "data":
                    curve.append([found[key] for key in ("points", "s", "cpu_s", "peak_mb")])
                job.log_metrics({f"{key}/{label}": value for key, value in found.items() if key != "points"})
                job.log_text("table.md", _table(rows))
                progress.step()
        job.say(_table(rows))
        if len(curve) > 1:
            n, seconds, cpu, peaks = np.array(curve).T
            of_time = {"clock": (n, seconds[None]), "processor": (n, cpu[None])}
            job.log_figure("memory", _growth, {"seconds": of_time, _PEAK: {"peak": (n, peaks[None])}})

    def _plans(self, base: Plan) -> dict[str, tuple[Plan, Any]]:
        """Label -> the plan of a case, and its points."""
        every = self.cases or {}
        cases = {label: dict(case) for label, case in every.items() if label in (self.only or every)}
        points = {label: case.pop("points") for label, case in cases.items()}
        return {label: (base.variant(changes), points[label]) for label, changes in cases.items()}


class Waves:
    """An array of generated images, shape (n, 28, 28), float32, whose rows are computed when they are indexed.

    An image is the tanh of a weighted sum of 16 fixed images, sums of cosines; the weights are a function of its index.
    There are two classes, the signs of the first weight.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.shape = n, (n, _SIDE, _SIDE)
        self.rates = rng.uniform(1, 2, _WAVES)
        across = rng.standard_normal((_WAVES, 3, 2))
        grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, _SIDE)] * 2), axis=-1)
        self.waves = np.cos(3 * np.einsum("xyk,wck->wcxy", grid, across)).sum(1).astype(np.float32)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        weights = self._weights(rows).astype(np.float32)
        return np.tanh(weights @ self.waves.reshape(_WAVES, -1)).reshape(-1, _SIDE, _SIDE)

    def labels(self) -> np.ndarray:
        """The class of every image, shape (n,)."""
        return (self._weights(slice(None), 1)[:, 0] > 0).astype(np.int8)

    def _weights(self, rows: np.ndarray | slice, count: int = _WAVES) -> np.ndarray:
        indices = np.arange(self.n)[rows] if isinstance(rows, slice) else rows
        return np.cos(1e3 * indices[:, None] * self.rates[:count])


def measure(plan: Plan, points: int | str) -> dict[str, float]:
    """Fit the plan's model to a stream in this process.

    Parameters
    ----------
    plan : Plan
    points : int or "data"
        Number of generated images, or all points of the plan's data set.

    Returns
    -------
    dict of str to float
        ``points``, ``columns``, ``s`` and ``cpu_s`` (wall-clock and processor seconds), ``accuracy`` on a sample of
        the training points, and ``peak_mb`` (largest resident memory so far, MiB).
    """
    X: Any
    if points == "data":
        data = plan.load()
        X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
        del data
    else:
        X = Waves(int(points), plan.seed("runner"))
        y = X.labels()
    clock, processor = time.perf_counter(), time.process_time()
    represent, features, learner = plan.component("representation"), plan.approx(), plan.learner("classification")
    sample = X[np.arange(min(len(X), _SAMPLE))]
    features.fit(represent.fit_transform(sample))
    columns = len(features.get_feature_names_out())

    def psi(images: np.ndarray) -> np.ndarray:
        return features.transform(represent.transform(images))

    fit_stream(learner, FeatureStream(psi, X, columns, plan.engine(), plan.seed("learner")), y, "classification")
    seconds, cpu = time.perf_counter() - clock, time.process_time() - processor
    accuracy = float((learner.predict(psi(sample)) == y[: len(sample)]).mean())
    found = {"points": len(X), "columns": columns, "s": seconds, "cpu_s": cpu, "accuracy": accuracy}
    return found | {"peak_mb": peak_memory_mb()}


def child() -> None:
    """Read a configuration and the points as JSON from standard input, and print the result of :func:`measure`."""
    case = json.load(sys.stdin)
    print(json.dumps(measure(make_plan(case["config"]), case["points"])))


def _in_child(plan: Plan, points: int | str) -> dict[str, float]:
    case = json.dumps({"config": plan.composed, "points": points})
    command = [sys.executable, "-P", "-c", _CHILD]  # -P: modules are not looked for in the working directory
    environment = os.environ | {"PYTHONPATH": python_path()}
    done = subprocess.run(command, input=case, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the process of a case failed with exit code {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _table(rows: list[list[str]]) -> str:
    return markdown_table(["case", "points", "columns", "s", "processor s", _PEAK], rows) + "\n"


def _growth(curves: dict[str, Lines]) -> Figure:
    """Time, and memory, which should stay constant, from zero on."""
    figure = plots.panels(curves, "points", linear=[_PEAK], slopes=True)
    for ax in figure.axes:
        if ax.get_title() == _PEAK:
            ax.set_ylim(0, 1.3 * ax.get_ylim()[1])
    return figure
