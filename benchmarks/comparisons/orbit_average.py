"""Comparisons of orbit-averaged features: against scipy and scikit-learn, and between paths of the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy import ndimage
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler

import orbit
from benchmarks.comparisons.base import Comparison, engine, images, relative_error, represented_images, slices
from orbit.core.errors import InputError
from orbit.core.threads import in_threads
from orbit.orbits import Orbit
from orbit.representations import UnitNorm
from runners.config.plan import Plan

_TURNS = 32
REFERENCE_TURNS = 128  # for the kernel that errors are measured against
_REFERENCE_POINTS = 60

# Tile sizes of the direct path (points, templates), also used for its products alone.
_ROWS, _UNITS = 256, 512


def against_scipy(plan: Plan, n_points: int, threads: int) -> Comparison:
    """scipy.ndimage.rotate and scikit-learn's RBFSampler at 32 turns against features on polar samples.

    Both estimate the Gaussian kernel averaged over turns, from the same number of
    columns; scipy from 32 turns, orbit from ``orbit.size``. Images are float64, the
    type of bytes divided by 255; orbit's time includes the conversion to float32. The
    case ``scipy float32`` starts from float32 images. Fitting is not timed.

    Metrics: ``error/kernel``, relative Frobenius error of the Gram matrix of 60
    images against that kernel by cubic splines at 128 turns; ``error/orbit``,
    relative error of the features against the same features at 128 turns;
    ``first/orbit_s``, seconds of orbit's first call in the process.
    """
    X, features = images(plan, n_points), plan.approx()
    if not isinstance(features.kernel.lengthscale, (int, float)):
        raise InputError("runner.compare=scipy needs a number as kernel.lengthscale, such as 0.5")
    X64 = X.astype(np.float64)
    represent = plan.component("representation").fit(X)
    features.fit(represent.transform(X))

    def by_orbit() -> np.ndarray:
        return features.transform(represent.transform(X64.astype(np.float32)))

    start = time.perf_counter()
    by_orbit()
    first_s = time.perf_counter() - start
    scipy_features = _ScipyFeatures(plan, X, len(features.get_feature_names_out()), features.kernel.lengthscale)
    turns = plan.orbit(size=_TURNS).fit(represent.transform(X[:1]))

    few = X[:: max(1, n_points // _REFERENCE_POINTS)][:_REFERENCE_POINTS]
    reference = plan.orbit(size=REFERENCE_TURNS).fit(represent.transform(few))
    finer = clone(features).set_params(orbit=plan.orbit(size=REFERENCE_TURNS)).fit(represent.transform(X))
    kernel = _spline_kernel(scipy_features.unit_norm.transform(few), reference, features.kernel.lengthscale)
    estimates = {
        "scipy": (scipy_features(few, turns), scipy_features(few, reference)),
        "orbit": (features.transform(represent.transform(few)), finer.transform(represent.transform(few))),
    }
    metrics = {"features/dim": float(scipy_features.columns), "orbit/size": float(len(features.orbit_.weights_))}
    metrics |= features.route_.metrics() | {"first/orbit_s": first_s}
    for name, (psi, fine) in estimates.items():
        metrics[f"error/kernel/{name}"] = relative_error(psi.astype(float) @ psi.T.astype(float), kernel)
        metrics[f"error/orbit/{name}"] = relative_error(psi, fine)
    cases: dict[str, Callable[[], object]] = {
        "scipy": lambda: scipy_features(X64, turns),
        "scipy float32": lambda: scipy_features(X, turns),
        "orbit": by_orbit,
    }
    return Comparison(cases, {f"{name}/orbit": (name, "orbit") for name in ("scipy", "scipy float32")}, metrics)


class _ScipyFeatures:
    """Orbit-averaged random features of turned images, by scipy and scikit-learn alone."""

    def __init__(self, plan: Plan, X: np.ndarray, columns: int, lengthscale: float) -> None:
        self.columns = columns
        self.unit_norm = UnitNorm().fit(X)
        sampler = RBFSampler(gamma=0.5 / lengthscale**2, n_components=columns, random_state=plan.seed("approx"))
        self._samplers = {  # RBFSampler keeps its frequencies in the precision of the data it was fitted to
            dtype: clone(sampler).fit(self.unit_norm.transform(X.astype(dtype)).reshape(len(X), -1))
            for dtype in (np.dtype(np.float32), np.dtype(np.float64))
        }

    def __call__(self, X: np.ndarray, turns: Orbit) -> np.ndarray:
        total = np.zeros((len(X), self.columns))
        turned = _turned(self.unit_norm.transform(X), turns.elements_, order=1)
        for points, weight in zip(turned, turns.weights_, strict=True):
            total += weight * self._samplers[X.dtype].transform(points)
        return total


def _turned(X: np.ndarray, angles: np.ndarray, order: int) -> Iterator[np.ndarray]:
    """Yield, for each angle, the images turned counter-clockwise by splines of ``order``, shape (n, height * width)."""
    for angle in np.degrees(angles):
        yield ndimage.rotate(X, angle, axes=(2, 1), reshape=False, order=order).reshape(len(X), -1)


def _spline_kernel(X: np.ndarray, turns: Orbit, lengthscale: float) -> np.ndarray:
    """sum_ij w_i w_j k(g_i x, g_j z) for images turned by cubic splines, in float64, shape (n, n)."""
    turned, weights = list(_turned(X.astype(np.float64), turns.elements_, order=3)), turns.weights_
    base = orbit.build("kernel", "gaussian", lengthscale=lengthscale)
    every = np.concatenate(turned)
    averaged = sum(w * base.gram(points, every) for w, points in zip(weights, turned, strict=True))
    return np.einsum("nrm,r->nm", averaged.reshape(len(X), len(weights), len(X)), weights)


def direct(plan: Plan, n_points: int, threads: int) -> Comparison:
    """The direct path against its own matrix products and trigonometry, at the same shapes, threads and device."""
    X, options = represented_images(plan, n_points), engine(plan, path="direct")
    features = plan.approx(engine=options).fit(X)
    W = options.tensor(features.frequencies_, np.dtype(np.float32))
    points = options.tensor(X, np.dtype(np.float32)).flatten(1)
    tall, workers = (n_points, 1) if W.is_cuda else (_ROWS, threads)
    rows, units = slices(n_points, tall), slices(len(W), _UNITS)
    r = len(features.orbit_.weights_)

    def on_tiles(step: Callable[[torch.Tensor, torch.Tensor], None]) -> None:
        def work(tile: slice) -> None:
            with torch.inference_mode():
                angles, cosines = W.new_empty(tall * _UNITS), W.new_empty(tall * _UNITS)
                for _ in range(r):
                    for part in units:
                        shape = len(points[tile]), len(W[part])
                        out, cosine = (buffer[: shape[0] * shape[1]].view(shape) for buffer in (angles, cosines))
                        torch.mm(points[tile], W[part].T, out=out)
                        step(out, cosine)

        in_threads(work, rows, workers)
        if W.is_cuda:
            torch.cuda.synchronize()

    def waves(angles: torch.Tensor, cosines: torch.Tensor) -> None:
        torch.cos(angles, out=cosines)
        angles.sin_()

    cases = {
        "direct": lambda: features.transform(X),
        "products and waves": lambda: on_tiles(waves),
        "products": lambda: on_tiles(lambda *_: None),
    }
    operations = 2.0 * n_points * r * len(W) * points.shape[1]
    ratios = {"direct/products and waves": ("direct", "products and waves"), "products/direct": ("products", "direct")}
    return Comparison(cases, ratios, {"operations": operations})


def spectral(plan: Plan, n_points: int, threads: int) -> Comparison:
    """The spectral path against the direct one, on the same points and frequencies."""
    X = represented_images(plan, n_points)
    maps = {path: plan.approx(engine=engine(plan, path=path)).fit(X) for path in ("direct", "spectral")}
    psi = {path: features.transform(X) for path, features in maps.items()}
    metrics = maps["spectral"].route_.metrics() | {"error/spectral": relative_error(psi["spectral"], psi["direct"])}
    cases = {path: (lambda features=features: features.transform(X)) for path, features in maps.items()}
    return Comparison(cases, {"direct/spectral": ("direct", "spectral")}, metrics)
