"""Whole runs on one device: seconds of each stage, beside the device's own peak.

    python -m benchmarks.device FOLDER [--device cuda] [--only NAME ...] [--out device.json] [KEY=VALUE ...]

FOLDER is ``dataset.root``; further settings are added to every run. Every run is done twice in one process, and the
second is measured, so that imports and the first calls of libraries are not in it. The JSON file has, for each run, its
seconds from configuration to results, its metrics, with seconds by stage for those of one fit, and the peak memory of
the GPU; and, as measured, the operations a second of a large float32 product, the bytes a second of a copy, and the
seconds of features and a fit of ridge to them, for features that stay on the device and that are copied.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from orbit.approx import Exact, RandomFourier
from orbit.engine import Engine
from orbit.kernels import Gaussian
from orbit.learners import RidgeClassifier
from runners.app.cli import main as command_line
from runners.measure.machine import hardware
from runners.tracking.record import METRICS

#: Name -> settings of a run.
RUNS = {
    "rotated_mnist_patches": ["experiment=rotated_mnist_patches", "size=paper"],
    "cifar10_patches": ["experiment=cifar10_patches", "size=paper"],
    "mnist_exact": [
        *("dataset=mnist", "dataset.n_train=60000", "dataset.n_test=10000", "representation=unit_norm"),
        *(
            "group=identity",
            "approx=exact",
            "kernel.lengthscale=0.5",
            "learner.regularization=1e-6",
            "runner.save_model=false",
        ),
    ],
    "qm7_many_body": ["experiment=qm7", "size=paper", 'runner.only=["Gaussian, many-body"]'],
    "rotated_mnist_table": ["experiment=rotated_mnist", "size=paper"],
}
_SIDE, _ROUNDS = 8192, 5
_POINTS, _COLUMNS = 20_000, 2_000
_PATH = [1e-6, 1e-4, 1e-2, 1.0]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device", description=__doc__.splitlines()[0])
    parser.add_argument("root", help="folder of the data sets")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("device.json"))
    parser.add_argument("--side", type=int, default=_SIDE, help="rows of the matrices of the peak")
    parser.add_argument("--points", type=int, default=_POINTS, help="points of the fits of ridge")
    parser.add_argument("settings", nargs="*", help="KEY=VALUE for every run")
    options = parser.parse_intermixed_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device: expected a device of this machine, found cuda and no GPU")
    shared = [f"dataset.root={options.root}", f"engine.device={options.device}", *options.settings]
    found: dict[str, Any] = {"hardware": hardware(), "peak": peak(torch.device(options.device), options.side)}
    found["ridge"] = fits(options.device, options.points)
    for name in options.only:
        found[name] = measured([*RUNS[name], *shared], options.device)
        print(name, json.dumps(found[name]), flush=True)
        options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")  # what is measured stays
    return 0


def measured(settings: list[str], device: str) -> dict[str, Any]:
    """Metrics of the second of two runs, with its seconds from the first setting to the last result."""
    _run(settings)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    metrics = _run(settings)
    found: dict[str, Any] = {"seconds": time.perf_counter() - started, "metrics": metrics}
    if device == "cuda":
        found["gpu_memory_mb"] = torch.cuda.max_memory_allocated() / 2**20
    return found


def _run(settings: list[str]) -> dict[str, float]:
    """The metrics of a run, which leaves nothing behind."""
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["run.py", *settings, f"outputs={folder}", "tracking.enabled=false"]
        if code := command_line():
            raise SystemExit(f"{' '.join(sys.argv)}: exit code {code}")
        [path] = Path(folder).rglob(METRICS)
        return dict(json.loads(path.read_text(encoding="utf-8")))


def peak(device: torch.device, side: int) -> dict[str, float]:
    """Operations a second of a product of two float32 matrices, and bytes a second that a copy reads and writes."""
    A, B = torch.rand(2, side, side, device=device)
    C = torch.empty_like(A)
    product = _seconds(lambda: torch.mm(A, B, out=C), device)
    copy = _seconds(lambda: C.copy_(A), device)
    return {"flop_per_s": 2 * side**3 / product, "bytes_per_s": 2 * A.nbytes / copy}


def fits(device: Literal["cpu", "cuda"], n: int) -> dict[str, float]:
    """Seconds of features and a fit to them, by where they are and how many values of lambda there are."""
    rng, engine = np.random.default_rng(0), Engine(device=device)
    X = rng.standard_normal((n, 64)).astype(np.float32)
    y = X[:, :10].argmax(1)
    columns = RandomFourier(Gaussian(8.0), n_components=_COLUMNS // 2, engine=engine, random_state=0).fit(X)
    kernel = Exact(Gaussian(8.0), precomputed=True, engine=engine).fit(X)
    features = {
        "columns, on the device": columns.transform_on_device,
        "columns, copied": columns.transform,
        "kernel matrix, on the device": kernel.transform_on_device,
    }
    found: dict[str, float] = {}
    for name, transform in features.items():
        for path, values in (("one value", 1e-5), ("path", _PATH)):
            fit = partial(_fit, transform, X, y, values)
            found[f"{name}, {path}"] = _seconds(fit, torch.device(device), rounds=2)
    return found


def _fit(transform: Callable[[np.ndarray], Any], X: np.ndarray, y: np.ndarray, values: Any) -> None:
    RidgeClassifier(values).fit(transform(X), y)


def _seconds(call: Any, device: torch.device, rounds: int = _ROUNDS) -> float:
    """The shortest of some calls."""
    shortest = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        shortest = min(shortest, time.perf_counter() - started)
    return shortest


if __name__ == "__main__":
    sys.exit(main())
