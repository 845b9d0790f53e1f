"""runner=memory: peak memory and seconds of streamed fits, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.progress import Progress
from orbit.learners.streaming import FeatureStream, fit_stream
from orbit.registry import register
from runners.app.plan import Plan, make_plan
from runners.base import Job, Runner, peak_memory_mb
from runners.report.markdown import markdown_table
from runners.timing.machine import describe_machine

# Points that the feature map is fitted to, and that predictions are made for.
_SEEN = 2048
_PEAK = "peak resident MiB"
_WAVES = 16
_SIDE = 28
_CHILD = "from runners.timing.memory import child; child()"


@register("runner", "memory")
class Memory(Runner):
    """Peak resident memory and seconds of fits from a stream, the solve included, against the number of points.

    Parameters
    ----------
    cases : dict of dict, or None
        Label -> ``points``, the number of generated images of 28 x 28 (an image is
        computed when it is asked for, so that none are held), or ``data`` for all
        points of the data set; and what the case changes in the configuration, as
        in rows of ``runner=table``.
    """

    def __init__(self, cases: dict[str, Any] | None = None) -> None:
        self.cases = cases

    def check(self) -> None:
        super().check()
        if not self.cases:
            raise InputError("runner.cases: expected at least one case; choose experiment=bench_memory")
        for label, case in self.cases.items():
            points = case.get("points") if isinstance(case, dict) else None
            if points != "data" and not (isinstance(points, int) and points >= 1):
                raise InputError(
                    f"runner.cases: expected points: data or an integer >= 1 in every case, found {label}: {case!r}"
                )

    def run(self, job: Job) -> None:
        job.say(describe_machine(job.plan.config["engine"]["workers"] or torch.get_num_threads()))
        plans = {label: (plan, points) for label, plan, points in self._plans(job.plan)}
        rows, curve = [], []
        with Progress(len(plans), "memory", job.plan.config["engine"]["progress"]) as progress:
            for label, (plan, points) in plans.items():
                found = _in_child(plan, points)
                rows.append([label, *(f"{found[key]:.4g}" for key in ("points", "columns", "seconds", "cpu", "peak"))])
                if points != "data":
                    curve.append([found[key] for key in ("points", "seconds", "cpu", "peak")])
                units = {
                    "seconds": "s",
                    "cpu": "cpu_s",
                    "peak": "peak_mb",
                    "accuracy": "accuracy",
                    "columns": "columns",
                }
                job.log_metrics({f"{unit}/{label}": found[key] for key, unit in units.items()})
                job.log_text("table.md", _table(rows))
                progress.step()
        job.say(_table(rows))
        if len(curve) > 1:
            n, seconds, cpu, peaks = np.array(curve).T
            panels = {"s": {"clock": seconds, "processor": cpu}, _PEAK: {"peak": peaks}}
            job.log_figure("memory", plots.growth(n, panels, "streamed fit, the solve included", level=_PEAK))

    def _plans(self, base: Plan) -> Iterator[tuple[str, Plan, Any]]:
        for label, case in (self.cases or {}).items():
            yield label, base.variant({k: v for k, v in case.items() if k != "points"}), case["points"]


class Waves:
    """Images of 28 x 28 that exist only while they are looked at: any rows of them, computed from their numbers.

    Two classes, by the sign of one of the sixteen sums of waves that an image is made of.
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
        numbers = np.arange(self.n)[rows] if isinstance(rows, slice) else rows
        return np.cos(1e3 * numbers[:, None] * self.rates[:count])


def measure(plan: Plan, points: int | str) -> dict[str, float]:
    """Fit to a stream in this process; what it took, and the accuracy on some of the points."""
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
    seen = X[np.arange(min(len(X), _SEEN))]
    features.fit(represent.fit_transform(seen))
    columns = len(features.get_feature_names_out())

    def psi(images: np.ndarray) -> np.ndarray:
        return features.transform(represent.transform(images))

    fit_stream(learner, FeatureStream(psi, X, columns, plan.engine(), plan.seed("learner")), y, "classification")
    seconds, cpu = time.perf_counter() - clock, time.process_time() - processor
    accuracy = float((learner.predict(psi(seen)) == y[: len(seen)]).mean())
    found = {"points": len(X), "columns": columns, "seconds": seconds, "cpu": cpu, "accuracy": accuracy}
    return found | {"peak": peak_memory_mb()}


def child() -> None:
    """Read a configuration and the points from standard input, and write what :func:`measure` found."""
    case = json.load(sys.stdin)
    print(json.dumps(measure(make_plan(case["config"]), case["points"])))


def _in_child(plan: Plan, points: int | str) -> dict[str, float]:
    case = json.dumps({"config": plan.composed, "points": points})
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", _CHILD], input=case, capture_output=True, text=True, cwd=root)
    if done.returncode != 0:
        raise RuntimeError(f"a case ended with exit code {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _table(rows: list[list[str]]) -> str:
    return markdown_table(["case", "points", "columns", "s", "processor s", _PEAK], rows) + "\n"
