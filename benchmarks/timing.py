"""``runner=timing``: time against sizes, or ratios of times in a named comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from benchmarks import sizes
from benchmarks.comparisons import COMPARISONS, NEEDS
from benchmarks.machine import describe_machine
from benchmarks.rounds import interleaved, pinned_threads
from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt, allows
from orbit.registry import register
from runners.config.plan import Plan
from runners.job.job import Job
from runners.job.runner import Runner
from runners.measure import figures

Compared = Literal[
    "scipy", "direct", "spectral", "path", "hadamard", "skeleton", "laplacian", "lbfgs", "encoder", "peers"
]


@register("runner", "timing")
@dataclass(eq=False, repr=False)
class Timing(Runner):
    """Time against sizes, or one named comparison; all values are medians over interleaved rounds.

    Parameters
    ----------
    compare : one of the names below, or None
        ``scipy``: against scipy.ndimage.rotate and scikit-learn's RBFSampler.
        ``direct``: the direct path against its own matrix products and
        trigonometry. ``spectral``: the spectral path against the direct one.
        ``path``: a ridge path of 20 regularisations against one. ``hadamard``: a
        second layer by fast transforms against one by a matrix. ``skeleton``:
        skeleton features against plain copies in memory. ``laplacian``: kernel
        values of the L1 distance against torch and scipy. ``lbfgs``: closed forms
        of operator-valued least squares against scipy's L-BFGS. ``encoder``: patch
        features against their own matrix products and exponentials. ``peers``: fits to
        vectors and predictions against scikit-learn, and GPyTorch if it is installed.
        None: the sweep.
    sweep : dict or None
        Lists of values of N (points), s (components), r (orbit size), side (pixels of
        a side of an image) and D (columns of a ridge fit). Each is varied alone, with
        the others as configured. The seconds that the operations alone take, at rates
        measured in the same rounds, are given beside.
    paths : list of {"auto", "direct", "template", "spectral"}, or None
        Paths of the engine whose features a sweep computes; None is ``auto``.
    n_points : int >= 1
        Points of a comparison, and of a sweep over s, r or D.
    rounds : int >= 1
        Measured rounds, with one run of every case in each, and one before the first.
    """

    compare: Compared | None = None
    sweep: dict | None = None
    paths: list[Literal["auto", "direct", "template", "spectral"]] | None = None
    n_points: PositiveInt = 1000
    rounds: PositiveInt = 7

    def check(self) -> None:
        super().check()
        if not self.compare and not self.sweep:
            raise InputError(
                "runner=timing: expected a comparison or a sweep, found neither runner.compare nor runner.sweep; "
                "set one of them, or choose an experiment=bench_..."
            )
        for key, values in (self.sweep or {}).items():
            whole = isinstance(values, (list, tuple)) and all(allows(v, PositiveInt) for v in values)
            if key not in sizes.SIZES or not whole or not values:
                raise InputError(
                    f"runner.sweep: expected lists of integers >= 1 for any of {', '.join(sizes.SIZES)}, "
                    f"found {key}: {values!r}"
                )

    def plans(self, base: Plan) -> list[Plan]:
        for kind, name in NEEDS.get(self.compare or "", {}).items():
            if (found := base.config[kind]["name"]) != name:
                raise InputError(
                    f"runner.compare={self.compare} needs {kind}={name}, found {kind}={found}: choose it, or "
                    f"experiment=bench_{self.compare}"
                )
        return [base]

    def run(self, job: Job) -> None:
        threads = job.plan.config["engine"]["workers"] or torch.get_num_threads()
        machine = describe_machine(threads)
        job.log_text("machine.txt", machine + "\n")
        job.say(machine)
        with pinned_threads(threads):
            self._compare(job, threads) if self.compare else self._sweep(job)

    def _compare(self, job: Job, threads: int) -> None:
        assert self.compare is not None
        comparison = COMPARISONS[self.compare](job.plan, self.n_points, threads)
        seconds = interleaved(comparison.cases, self.rounds, job.plan.config["engine"]["progress"])
        # ratios are within a round, where both have the same load
        ratios = {label: seconds[above] / seconds[below] for label, (above, below) in comparison.ratios.items()}
        for name, value in comparison.metrics.items():
            job.row(name, f"{value:.3g}")
        job.log_metrics(comparison.metrics)
        job.log_metrics(_medians(seconds, "time/{}_s", "cpu/{}_s") | _medians(ratios, "ratio/{}", "cpu_ratio/{}"))
        job.log_table("table", ["case", "median s", "min", "max", "processor s"], _rows(seconds, 4))
        job.log_table("ratios", ["ratio", "median", "min", "max", "processor time"], _rows(ratios, 3))
        clocks = {name: values[:, 0].tolist() for name, values in seconds.items()}
        label = f"seconds: median and range of {self.rounds} rounds" if self.rounds > 1 else "seconds, one round"
        job.log_figure("timing", figures.compared, clocks, label, median=True)

    def _sweep(self, job: Job) -> None:
        rows, panels = [], {}
        for key, values in (self.sweep or {}).items():
            lines = sizes.measure(job.plan, key, list(values), list(self.paths or ["auto"]), self.n_points, self.rounds)
            for name, line in lines.items():
                medians = np.median(line.seconds, axis=0)
                for value, x, seconds, floor in zip(values, line.x, medians, line.floor, strict=True):
                    case = f"{key}{value}/{name}"
                    job.log_metrics({f"time/{case}_s": seconds, f"floor/{case}_s": floor})
                    rows.append([name, f"{sizes.SIZES[key]} = {x:g}", *(f"{v:.3g}" for v in (seconds, floor))])
            panels[sizes.SIZES[key]] = {name: (line.x, line.seconds) for name, line in lines.items()} | {
                f"{name}, operations alone": (line.x, line.floor[None]) for name, line in lines.items()
            }
        job.log_table("table", ["", "size", "median s", "operations alone, s"], rows)
        job.log_figure("timing", plots.panels, panels, "size", "seconds")


def _medians(found: dict[str, np.ndarray], clock: str, processor: str) -> dict[str, float]:
    """The medians of wall-clock and processor values, shape (rounds, 2), by the names of their metrics."""
    names = (name.format(case) for case in found for name in (clock, processor))
    return dict(zip(names, np.concatenate([np.median(values, axis=0) for values in found.values()]), strict=True))


def _rows(found: dict[str, np.ndarray], digits: int) -> list[list[str]]:
    """Rows of a table: median, smallest and largest wall-clock value, and the median of processor values."""
    rows = []
    for name, (clock, processor) in ((name, both.T) for name, both in found.items()):
        values = np.median(clock), clock.min(), clock.max(), np.median(processor)
        rows.append([name, *(f"{value:.{digits}g}" for value in values)])
    return rows
