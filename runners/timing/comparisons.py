"""The named comparisons of runner=timing: what is timed against what, on the plan's own components."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import ndimage
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler

import orbit
from orbit.core.errors import InputError
from orbit.core.threads import in_threads
from orbit.engine import Engine
from orbit.kernels.structure import structure_of
from orbit.orbits import Orbit
from orbit.representations import UnitNorm
from runners.app.plan import Plan

_SIDE = 28
_TURNS, _FINE_TURNS = 32, 128
_FINE_POINTS = 60
_PATH = 20
_PART_OF_COPY = 2**20
_SECOND_LAYER_FEATURES = 14_000
_CAPPED, _CONVERGED = 100, 15_000  # iterations

# The tiles of the direct path, which its own products are measured at.
_ROWS, _UNITS = 256, 512


@dataclass(frozen=True)
class Comparison:
    """What is timed.

    Attributes
    ----------
    cases : name -> what to time
    ratios : label -> (numerator, denominator), names of cases
    metrics : what else was measured, by flat names
    """

    cases: Mapping[str, Callable[[], object]]
    ratios: Mapping[str, tuple[str, str]]
    metrics: dict[str, float] = field(default_factory=dict)


def images(plan: Plan, n_points: int) -> np.ndarray:
    """``n_points`` images of 28 x 28 from the plan's data set, smaller ones enlarged and few ones repeated."""
    X = plan.load().X_train[:n_points]
    factor = _SIDE / X.shape[1]
    if factor != 1:
        X = np.clip(ndimage.zoom(X, (1, factor, factor), order=3), 0, None)
    return X[np.arange(n_points) % len(X)].astype(np.float32)


def against_scipy(plan: Plan, n_points: int, threads: int) -> Comparison:
    """What a user writes today, scipy.ndimage.rotate and sklearn's RBFSampler, against features on polar samples.

    Both estimate the same kernel, the Gaussian averaged over turns, from as many
    columns: the user's from 32 turns, ours from ``orbit.size``. Images are float64, as NumPy
    makes them of bytes divided by 255; ours makes them float32 first. ``scipy float32``: for a
    user who does so too. Both are fitted before, and what they keep is made: frequencies, and ours in
    Fourier space too. ``error/kernel``: relative
    Frobenius error of the inner products against that kernel by cubic splines at 128
    turns, on 60 images. ``error/orbit``: relative error of the features against the same
    features at 128 turns: of the orbit average alone.
    """
    X, features = images(plan, n_points), plan.approx()
    lengthscale = features.kernel.lengthscale
    represent = plan.component("representation").fit(X)
    features.fit(represent.transform(X))
    scaled = UnitNorm().fit(X)
    columns = len(features.get_feature_names_out())
    sampler = RBFSampler(gamma=0.5 / lengthscale**2, n_components=columns, random_state=plan.seed("approx"))
    theirs = plan.orbit(size=_TURNS).fit(represent.transform(X[:1]))
    X64 = X.astype(np.float64)
    samplers = {of.dtype: clone(sampler).fit(scaled.transform(of).reshape(n_points, -1)) for of in (X, X64)}

    def plain(X: np.ndarray, orbit: Orbit = theirs) -> np.ndarray:
        total = np.zeros((len(X), columns))
        turns = _turned(scaled.transform(X), orbit.elements_, order=1)
        for turned, weight in zip(turns, orbit.weights_, strict=True):
            total += weight * samplers[X.dtype].transform(turned)
        return total

    few = X[:: max(1, n_points // _FINE_POINTS)][:_FINE_POINTS]
    fine_orbit = plan.orbit(size=_FINE_TURNS).fit(represent.transform(few))
    fine_features = clone(features).set_params(orbit=plan.orbit(size=_FINE_TURNS)).fit(represent.transform(X))
    kernel = _spline_kernel(scaled.transform(few), fine_orbit.elements_, fine_orbit.weights_, lengthscale)
    found = {"scipy": plain(few), "orbit": features.transform(represent.transform(few))}
    fine = {
        "scipy": plain(few, fine_orbit),
        "orbit": fine_features.transform(represent.transform(few)),
    }
    metrics = {"features/dim": float(columns), "orbit/size": float(len(features.orbit_.weights_))}
    for name, psi in found.items():
        metrics[f"error/kernel/{name}"] = _relative(psi.astype(float) @ psi.T.astype(float), kernel)
        metrics[f"error/orbit/{name}"] = _relative(psi, fine[name])
    cases: dict[str, Callable[[], object]] = {
        "scipy": lambda: plain(X64),
        "scipy float32": lambda: plain(X),
        "orbit": lambda: features.transform(represent.transform(X64.astype(np.float32))),
    }
    return Comparison(cases, {f"{name}/orbit": (name, "orbit") for name in ("scipy", "scipy float32")}, metrics)


def direct(plan: Plan, n_points: int, threads: int) -> Comparison:
    """The direct path against its own matrix products and trigonometry, at the same shapes, threads and device."""
    X, engine = plan.component("representation").fit_transform(images(plan, n_points)), _engine(plan, path="direct")
    features = plan.approx(engine=engine).fit(X)
    W = engine.tensor(features.frequencies_, np.dtype(np.float32))
    points = engine.tensor(X, np.dtype(np.float32)).flatten(1)
    tall, workers = (n_points, 1) if W.is_cuda else (_ROWS, threads)
    rows, units = _slices(n_points, tall), _slices(len(W), _UNITS)
    r = len(features.orbit_.weights_)

    def on_tiles(step: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]) -> None:
        def work(tile: slice) -> None:
            with torch.inference_mode():
                angles, waves = W.new_empty(tall * _UNITS), W.new_empty(tall * _UNITS)
                for _ in range(r):
                    for part in units:
                        shape = len(points[tile]), len(W[part])
                        out, wave = (b[: shape[0] * shape[1]].view(shape) for b in (angles, waves))
                        torch.mm(points[tile], W[part].T, out=out)
                        step(out, wave, out)

        in_threads(work, rows, workers)
        if W.is_cuda:
            torch.cuda.synchronize()

    def waves(angles: torch.Tensor, out: torch.Tensor, in_place: torch.Tensor) -> None:
        torch.cos(angles, out=out)
        in_place.sin_()

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
    X = plan.component("representation").fit_transform(images(plan, n_points))
    maps = {path: plan.approx(engine=_engine(plan, path=path)).fit(X) for path in ("direct", "spectral")}
    psi = {path: features.transform(X) for path, features in maps.items()}
    metrics = maps["spectral"].route_.metrics() | {"error/spectral": _relative(psi["spectral"], psi["direct"])}
    cases = {path: (lambda features=features: features.transform(X)) for path, features in maps.items()}
    return Comparison(cases, {"direct/spectral": ("direct", "spectral")}, metrics)


def path(plan: Plan, n_points: int, threads: int) -> Comparison:
    """A ridge path of 20 regularisations, one of them chosen, against a single one."""
    X = plan.component("representation").fit_transform(images(plan, n_points))
    psi = plan.approx().fit_transform(X)
    rng = np.random.default_rng(plan.seed("runner"))
    y = rng.integers(10, size=n_points)
    grids = {"one": [1e-4], f"path of {_PATH}": list(np.logspace(-8, 0, _PATH))}
    cases = {name: (lambda grid=grid: _ridge(grid).fit(psi, y)) for name, grid in grids.items()}
    return Comparison(cases, {"path/one": (f"path of {_PATH}", "one")}, {"features/dim": float(psi.shape[1])})


def skeleton(plan: Plan, n_points: int, threads: int) -> Comparison:
    """Features of a skeleton against plain copies in memory, by as many threads.

    ``copy``: of as many bytes as the features have. ``streaming``: of half as many
    as evaluation must move, since a copy reads and writes: the angles that each
    feature sums, and its columns.
    """
    X = plan.component("representation").fit_transform(plan.load().X_train)
    X = X[np.arange(n_points) % len(X)].astype(np.float32)
    features = plan.approx().fit(X)
    result = torch.from_numpy(features.transform(X))
    summed = features.features_.exponents.nnz * n_points
    sizes = {"copy": result.numel(), "streaming": (summed + result.numel()) // 2}
    pages = {name: (torch.zeros(size), torch.zeros(size)) for name, size in sizes.items()}

    def copy(name: str) -> None:
        source, target = pages[name]
        parts = _slices(len(source), _PART_OF_COPY)
        in_threads(lambda part: target[part].copy_(source[part]), parts, threads)

    cases: dict[str, Callable[[], object]] = {"features": lambda: features.transform(X)}
    cases |= {name: partial(copy, name) for name in sizes}
    metrics = {
        "features/dim": float(result.shape[1]),
        "features/entries": summed / n_points / features.n_components_,
        "bytes/features": 4.0 * result.numel(),
        "bytes/moved": 4.0 * (summed + result.numel()),
    }
    return Comparison(cases, {f"{name}/features": (name, "features") for name in sizes}, metrics)


def hadamard(plan: Plan, n_points: int, threads: int) -> Comparison:
    """A second layer by fast Hadamard transforms against one by a matrix, 14,000 features to 17,000 frequencies.

    The points are random: what they are does not matter to either. ``error/product``:
    relative error of features by transforms against the same by the matrix, on a
    layer of a sixteenth of the size.
    """
    layer = plan.hyper()
    rng = np.random.default_rng(plan.seed("runner"))
    psi = rng.standard_normal((n_points, _SECOND_LAYER_FEATURES), dtype=np.float32)
    rules = {"hadamard": "structured", "matrix": "monte_carlo"}
    layers = {name: clone(layer).set_params(frequencies=rule).fit(psi) for name, rule in rules.items()}
    part = clone(layer).set_params(frequencies="structured", n_components=max(1, layer.n_components // 16))
    few = psi[:, : max(1, _SECOND_LAYER_FEATURES // 16)]
    first = part.fit(few).map_
    angles = few.astype(float) @ first.frequencies_.T
    expected = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(part.n_components)
    cases = {name: (lambda made=made: made.transform(psi)) for name, made in layers.items()}
    metrics = {"error/product": _relative(first.transform(few), expected)}
    return Comparison(cases, {"matrix/hadamard": ("matrix", "hadamard")}, metrics)


def lbfgs(plan: Plan, n_points: int, threads: int) -> Comparison:
    """Closed forms of operator-valued least squares against scipy's L-BFGS on the same objective.

    L-BFGS takes the gradient by the same matrix-free operators, no dense features:
    once to its own tolerance, once capped at 100 iterations. ``... from points``: features and
    solution, as a fit is run; the others have the features. ``objective/...``: what each reaches,
    (1/n) |P theta - Y|^2 + lambda |theta|^2 (ORFF eq. 10) at lambda = ``learner.regularization``.
    """
    data = plan.load()
    Y = data.y_train[:n_points].astype(np.float64)
    X, features = data.X_train[:n_points], plan.approx()
    psi = features.fit_transform(X)
    one = plan.learner("regression")
    strength = one.regularization
    if not isinstance(strength, float) or one.fit_intercept:
        raise InputError("runner.compare=lbfgs: needs one learner.regularization and learner.fit_intercept=false")
    structure = structure_of(psi)
    if structure is None:
        raise InputError("runner.compare=lbfgs: needs operator-valued features; choose approx=orff")
    operator, rows = structure.operator(Y), np.asarray(psi, dtype=np.float64)
    shape = operator.adjoint(rows.T @ Y).shape

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(shape)
        left = rows @ operator.coefficients(theta) - Y
        gradient = operator.adjoint(rows.T @ left) / len(Y) + strength * theta
        return float(np.vdot(left, left) / len(Y) + strength * np.vdot(theta, theta)), 2 * gradient.ravel()

    def descend(max_iter: int) -> OptimizeResult:
        options = {"maxiter": max_iter, "maxfun": 2 * max_iter}
        return minimize(objective, np.zeros(int(np.prod(shape))), jac=True, method="L-BFGS-B", options=options)

    path = clone(one).set_params(regularization=None)
    capped, converged = f"lbfgs {_CAPPED}", "lbfgs"
    ends = {capped: descend(_CAPPED), converged: descend(_CONVERGED)}
    theta = operator.parameters(one.fit(psi, Y).coef_.T.astype(np.float64))
    metrics = {f"objective/{name}": float(end.fun) for name, end in ends.items()}
    metrics |= {
        "objective/closed form": objective(theta.ravel())[0],
        f"iterations/{converged}": float(ends[converged].nit),
    }
    cases = {
        "one lambda": lambda: one.fit(psi, Y),
        "path": lambda: path.fit(psi, Y),
        capped: lambda: descend(_CAPPED),
        converged: lambda: descend(_CONVERGED),
        "one lambda from points": lambda: one.fit(features.fit_transform(X), Y),
        "path from points": lambda: path.fit(features.fit_transform(X), Y),
    }
    ratios = {f"{name}/one": (name, "one lambda") for name in ("path", capped, converged)}
    ratios["path/one from points"] = "path from points", "one lambda from points"
    return Comparison(cases, ratios, metrics)


COMPARISONS: dict[str, Callable[[Plan, int, int], Comparison]] = {
    "scipy": against_scipy,
    "direct": direct,
    "spectral": spectral,
    "path": path,
    "skeleton": skeleton,
    "hadamard": hadamard,
    "lbfgs": lbfgs,
}


def _ridge(grid: list[float]) -> Any:
    return orbit.build("classifier", "ridge", regularization=[float(value) for value in grid])


def _engine(plan: Plan, **changes: Any) -> Engine:
    return Engine(**(plan.config["engine"] | changes))


def _slices(length: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _turned(X: np.ndarray, angles: np.ndarray, order: int) -> Any:
    """Images turned counter-clockwise, flattened, an angle after the other."""
    for angle in np.degrees(angles):
        yield ndimage.rotate(X, angle, axes=(2, 1), reshape=False, order=order).reshape(len(X), -1)


def _spline_kernel(X: np.ndarray, angles: np.ndarray, weights: np.ndarray, lengthscale: float) -> np.ndarray:
    """sum_ij w_i w_j k(g_i x, g_j z) for images turned by cubic splines, in float64."""
    turned = list(_turned(X.astype(np.float64), angles, order=3))
    base = orbit.build("kernel", "gaussian", lengthscale=lengthscale)
    every = np.concatenate(turned)
    averaged = sum(w * base.gram(one, every) for w, one in zip(weights, turned, strict=True))
    return np.einsum("jnm,j->nm", np.moveaxis(averaged.reshape(len(X), len(weights), len(X)), 1, 0), weights)


def _relative(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
