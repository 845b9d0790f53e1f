"""Comparisons of learners: a regularisation path against one value, closed forms against L-BFGS."""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import clone

import orbit
from benchmarks.comparisons.base import Comparison, represented_images
from orbit.core.errors import InputError
from orbit.solvers.structure import structure_of
from runners.config.plan import Plan

_PATH = 20
_CAPPED, _CONVERGED = 100, 15_000  # iterations


def path(plan: Plan, n_points: int, threads: int) -> Comparison:
    """A ridge fit that selects one of 20 regularisations against a fit with one."""
    psi = plan.approx().fit_transform(represented_images(plan, n_points))
    y = np.random.default_rng(plan.seed("runner")).integers(10, size=n_points)
    grids = {"one": [1e-4], f"path of {_PATH}": np.logspace(-8, 0, _PATH).tolist()}
    learners = {name: orbit.build("classifier", "ridge", regularization=grid) for name, grid in grids.items()}
    cases = {name: (lambda learner=learner: learner.fit(psi, y)) for name, learner in learners.items()}
    return Comparison(cases, {"path/one": (f"path of {_PATH}", "one")}, {"features/dim": float(psi.shape[1])})


def lbfgs(plan: Plan, n_points: int, threads: int) -> Comparison:
    """Closed forms of operator-valued least squares against scipy's L-BFGS on the same objective.

    L-BFGS computes the gradient by the same matrix-free operators, without dense
    features: once to its own tolerance, once for at most 100 iterations. The cases
    ``... from points`` compute features and solution; the others start from the
    features. Metrics ``objective/...``: the final values of
    (1/n) |P theta - Y|^2 + lambda |theta|^2 (Brault et al. 2016, equation 10).
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
        residual = rows @ operator.coefficients(theta) - Y
        gradient = operator.adjoint(rows.T @ residual) / len(Y) + strength * theta
        return float(np.vdot(residual, residual) / len(Y) + strength * np.vdot(theta, theta)), 2 * gradient.ravel()

    def descend(max_iter: int) -> OptimizeResult:
        options = {"maxiter": max_iter, "maxfun": 2 * max_iter}
        return minimize(objective, np.zeros(int(np.prod(shape))), jac=True, method="L-BFGS-B", options=options)

    path = clone(one).set_params(regularization=None)
    capped, converged = f"lbfgs {_CAPPED}", "lbfgs"
    solutions = {capped: descend(_CAPPED), converged: descend(_CONVERGED)}
    theta = operator.parameters(one.fit(psi, Y).coef_.T.astype(np.float64))
    metrics = {f"objective/{name}": float(solution.fun) for name, solution in solutions.items()}
    metrics["objective/closed form"] = objective(theta.ravel())[0]
    metrics[f"iterations/{converged}"] = float(solutions[converged].nit)
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
