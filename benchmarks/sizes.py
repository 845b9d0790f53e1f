"""Seconds against sizes: features on each path of the engine, and ridge fits, beside what their operations take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.comparisons.base import engine, represented_images
from benchmarks.rounds import interleaved
from orbit.approx.base import FeatureMap
from orbit.approx.waves import add_waves
from orbit.core.threads import in_threads
from orbit.registry import build
from runners.config.plan import Plan

#: Sizes that can be varied, with the label of their axis.
SIZES = {
    "N": "points, n",
    "s": "frequencies or landmarks, s",
    "r": "elements of the orbit, r",
    "side": "numbers of a point, d",
    "D": "columns of a ridge fit, D",
}

# A tile of points and frequencies, of which products and waves are timed; its angles fit in a core's cache.
_ROWS, _FEATURES, _UNITS = 256, 512, 512
# Tiles that each thread computes in one run: so many that its start does not count.
_TILES = 32


@dataclass(frozen=True)
class Sized:
    """A case of one size.

    Attributes
    ----------
    x : the size on the axis
    run : the function that is timed
    operations : callable
        After a run, the number of operations of each kind that it takes, by the names in :func:`operations`.
    """

    x: float
    run: Callable[[], object]
    operations: Callable[[], dict[str, float]]


@dataclass(frozen=True)
class SizeTimes:
    """Seconds of one way to compute something, against a size.

    Attributes
    ----------
    x : array, shape (m,)
    seconds : array, shape (rounds, m)
    floor : array, shape (m,)
        Seconds that its operations alone take at the rates measured in the same rounds.
    """

    x: np.ndarray
    seconds: np.ndarray
    floor: np.ndarray


def measure(
    plan: Plan, key: str, values: list[int], paths: list[str], n_points: int, rounds: int
) -> dict[str, SizeTimes]:
    """A line for each path, for the values of one size; ``D`` has the line ``ridge``.

    Parameters
    ----------
    plan : Plan
        Its settings hold for all sizes that are not varied.
    key : one of :data:`SIZES`
    paths : values of ``engine.path``
    n_points : number of points where it is not varied
    rounds : number of measured rounds
    """
    names = ["ridge"] if key == "D" else paths
    cases = {(name, value): _case(plan, key, value, name, n_points) for name in names for value in values}
    timed = {f"{name} {value}": case.run for (name, value), case in cases.items()}
    kinds = operations(plan.config["engine"]["workers"] or torch.get_num_threads())
    timed |= {kind: run for kind, (run, _) in kinds.items()}
    seconds = interleaved(timed, rounds, plan.config["engine"]["progress"])
    each = {kind: np.median(seconds[kind][:, 0]) / count for kind, (_, count) in kinds.items()}
    lines = {}
    for name in names:
        mine = [cases[name, value] for value in values]
        floor = [sum(count * each[kind] for kind, count in case.operations().items()) for case in mine]
        times = np.stack([seconds[f"{name} {value}"][:, 0] for value in values], axis=1)
        lines[name] = SizeTimes(np.array([case.x for case in mine]), times, np.array(floor))
    return lines


def operations(threads: int) -> dict[str, tuple[Callable[[], object], float]]:
    """What floors are made of: functions that all threads run together, and the number of operations in them.

    ``products`` are multiplications and additions of float32 matrix products, ``products64`` of float64 ones, and
    ``waves`` pairs of a cosine and a sine of float32 angles, added to sums.
    """
    flops, waves = 2.0 * _ROWS * _FEATURES * _UNITS * _TILES * threads, float(_ROWS * _UNITS * _TILES * threads)

    def product(dtype: torch.dtype) -> Callable[[], object]:
        points, units = torch.ones(_ROWS, _FEATURES, dtype=dtype), torch.ones(_UNITS, _FEATURES, dtype=dtype)
        out = torch.empty(_ROWS, _UNITS, dtype=dtype)
        return lambda: torch.mm(points, units.T, out=out)

    def wave() -> Callable[[], object]:
        angles, weights = torch.linspace(-9, 9, _ROWS * _UNITS).view(1, _ROWS, _UNITS), torch.ones(1)
        cosines, sines = torch.zeros(2, _ROWS, _UNITS)
        spare = torch.empty_like(angles)
        return lambda: add_waves(angles, weights, cosines, sines, spare)

    def in_each(tile: Callable[[], Callable[[], object]]) -> Callable[[], object]:
        tiles = [tile() for _ in range(threads)]
        return lambda: in_threads(lambda one: [one() for _ in range(_TILES)], tiles, threads)

    return {
        "products": (in_each(lambda: product(torch.float32)), flops),
        "products64": (in_each(lambda: product(torch.float64)), flops),
        "waves": (in_each(wave), waves),
    }


def _case(plan: Plan, key: str, value: int, name: str, n_points: int) -> Sized:
    if key == "D":
        return _ridge(plan, n_points, value)
    n, side = (value if key == "N" else n_points), {"side": value} if key == "side" else {}
    X = represented_images(plan, n, **side)
    changes = {"n_components": value} if key == "s" else {}
    orbit = plan.orbit(size=value) if key == "r" else plan.orbit()
    features = plan.approx(orbit=orbit, engine=engine(plan, path=name), **changes).fit(X)
    d = math.prod(X.shape[1:])
    return Sized(d if key == "side" else value, lambda: features.transform(X), lambda: _of_features(features, X))


def _of_features(features: FeatureMap, X: np.ndarray) -> dict[str, float]:
    """Projections by the path taken, and for random features a cosine and a sine of each."""
    assert features.route_ is not None
    projections = float(len(X)) * len(features.orbit_.weights_) * features.n_components
    waves = projections if features.name == "rf" else 0.0
    return {"products": features.route_.operations * projections, "waves": waves}


def _ridge(plan: Plan, n: int, columns: int) -> Sized:
    """A path of regularisations: second moments or a Gram matrix, and a reduction."""
    rng = np.random.default_rng(plan.seed("runner"))
    psi = rng.standard_normal((n, columns)).astype(np.float32)
    y = psi[:, 0] + 0.5 * rng.standard_normal(n) > 0
    less, more = sorted((n, columns))
    products = more * less**2 + 4 / 3 * less**3
    return Sized(columns, lambda: build("classifier", "ridge").fit(psi, y), lambda: {"products64": products})
