"""Comparisons of maps without an orbit: skeleton features, Hadamard transforms, kernel values of the L1 distance."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from scipy.spatial.distance import cdist
from sklearn.base import clone

from benchmarks.comparisons.base import Comparison, engine, relative_error, slices
from orbit.approx import Exact
from orbit.core.threads import in_threads
from orbit.registry import build
from runners.config.plan import Plan

_COPY_TILE = 2**20  # numbers
LAYER_FEATURES = 14_000
_COORDINATES = 23 * 23


def skeleton(plan: Plan, n_points: int, threads: int) -> Comparison:
    """Skeleton features against copies in memory, and what they cannot do without, by the same number of threads.

    ``copy`` copies the number of bytes of the features, ``new_copy`` the same into new
    memory, as features are. ``streaming`` copies half the bytes that evaluation must
    move (the angles that each feature sums, and its columns), since a copy both reads
    and writes. ``waves`` are features of no angles: cosines and sines, written to new memory.
    """
    X = plan.component("representation").fit_transform(plan.load().X_train)
    X = X[np.arange(n_points) % len(X)].astype(np.float32)
    features = plan.approx().fit(X)
    result = features.transform(X)
    exponents = features.features_.exponents
    without_angles = copy(features)
    without_angles.features_ = replace(features.features_, exponents=type(exponents)(exponents.shape, dtype=np.float32))
    summed = exponents.nnz * n_points
    sizes = {"copy": result.size, "streaming": (summed + result.size) // 2}
    # ones, because zeros that nothing has written take no memory to read
    buffers = {name: (np.ones(size, np.float32), np.ones(size, np.float32)) for name, size in sizes.items()}

    def copy_to(target: np.ndarray, source: np.ndarray) -> None:
        in_threads(lambda tile: np.copyto(target[tile], source[tile]), slices(len(source), _COPY_TILE), threads)

    cases: dict[str, Callable[[], object]] = {"features": lambda: features.transform(X)}
    cases |= {name: partial(copy_to, *buffers[name]) for name in sizes}
    cases["new_copy"] = lambda: copy_to(np.empty(result.size, np.float32), result.ravel())
    cases["waves"] = lambda: without_angles.transform(X)
    metrics = {
        "features/dim": float(result.shape[1]),
        "features/entries": summed / n_points / features.n_components_,
        "bytes/features": 4.0 * result.size,
        "bytes/moved": 4.0 * (summed + result.size),
    }
    return Comparison(cases, {f"{name}/features": (name, "features") for name in cases if name != "features"}, metrics)


def hadamard(plan: Plan, n_points: int, threads: int) -> Comparison:
    """A second layer by fast Hadamard transforms against one by a matrix, 14,000 features to 17,000 frequencies.

    The points are random; their values do not affect the time. Metric
    ``error/product``: relative error of features by transforms against features by
    the matrix, on a layer of one sixteenth the size.
    """
    layer = plan.hyper()
    rng = np.random.default_rng(plan.seed("runner"))
    psi = rng.standard_normal((n_points, LAYER_FEATURES), dtype=np.float32)
    rules = {"hadamard": build("frequencies", "structured"), "matrix": build("frequencies", "monte_carlo")}
    layers = {name: clone(layer).set_params(frequencies=rule).fit(psi) for name, rule in rules.items()}
    small = clone(layer).set_params(frequencies=rules["hadamard"], n_components=max(1, layer.n_components // 16))
    few = psi[:, : max(1, LAYER_FEATURES // 16)]
    fitted = small.fit(few).map_
    angles = few.astype(float) @ fitted.frequencies_.T
    expected = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(small.n_components)
    cases = {name: (lambda fitted=fitted: fitted.transform(psi)) for name, fitted in layers.items()}
    metrics = {"error/product": relative_error(fitted.transform(few), expected)}
    return Comparison(cases, {"matrix/hadamard": ("matrix", "hadamard")}, metrics)


def laplacian(plan: Plan, n_points: int, threads: int) -> Comparison:
    """Values of the Laplacian kernel against distances by torch.cdist and scipy's cdist, with as many threads.

    Random points with as many coordinates as the Coulomb matrices of QM7. Metric
    ``entries``: the number of differences of coordinates.
    """
    rng = np.random.default_rng(plan.seed("runner"))
    X = rng.random((n_points, _COORDINATES), dtype=np.float32)
    Z = X.copy()  # of X itself half of the values would be computed
    exact = Exact(plan.approx().kernel, engine=engine(plan)).fit(X[:100])
    blocks = slices(n_points, -(-n_points // threads))
    points, result = torch.from_numpy(X), np.empty((n_points, n_points))

    def by_torch(rows: slice) -> None:
        torch.cdist(points[rows], points, p=1)

    def by_scipy(rows: slice) -> None:
        cdist(X[rows], X, "cityblock", out=result[rows])

    cases: dict[str, Callable[[], object]] = {
        "orbit": lambda: exact.gram(X, Z),
        "torch": lambda: in_threads(by_torch, blocks, threads),
        "scipy": lambda: in_threads(by_scipy, blocks, threads),
    }
    expected = np.exp(-cdist(X[:100], X, "cityblock") / exact.kernel_.lengthscale_)
    metrics = {
        "entries": float(n_points**2 * _COORDINATES),
        "error/scipy": relative_error(exact.gram(X[:100], Z), expected),
    }
    return Comparison(cases, {f"{name}/orbit": (name, "orbit") for name in ("torch", "scipy")}, metrics)
