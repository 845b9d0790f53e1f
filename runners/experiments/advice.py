"""Warnings about combinations of components that can be fitted, but not with the property that they are chosen for."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.stats import binomtest

from orbit.core.grid import in_any_order
from orbit.core.params import parameters
from orbit.groups import Orthogonal
from orbit.groups.resampled import Resampled
from orbit.learners.base import Learner
from runners.config.plan import Plan

# Points of which centres are computed.
_EXAMINED = 1000
# The origin is outside of clouds whose centres are this many times their radius from it; that of a unit cube with one
# corner at the origin is 1.73.
_OUTSIDE = 1.5

# Probability by chance below which intervals are taken to be too short.
_UNLIKELY = 0.001

# Share of the points above which a class is so frequent that the others are rare.
_FREQUENT = 0.7

#: Kernels whose fields have a property in the coordinates of points.
FIELDS = ("curl_free", "divergence_free", "helmholtz")


def warn_about_combinations(plan: Plan, point_axes: int) -> None:
    """Issue a warning for each such combination in a plan whose points have that many axes."""
    kinds = ("representation", "group", "encoder", "kernel", "approx", "learner")
    names = {kind: plan.config[kind]["name"] for kind in kinds}
    is_of_fields = names["kernel"] in FIELDS and names["approx"] in ("orff", "ovk")
    if is_of_fields and plan.config["dataset"].get("scale") == "feature":
        _warn(
            f"kernel={names['kernel']} has its property in the coordinates that it is given, and dataset.scale=feature "
            "scales each of them by a number of its own; choose dataset.scale=none, and coordinates of one unit, such "
            "as km (a degree of longitude is shorter than one of latitude)"
        )
    if names["representation"] == "standardize" and point_axes == 1:
        if is_of_fields:
            _warn(
                f"kernel={names['kernel']} has its property in the coordinates that it is given, and "
                "representation=standardize scales each of them by a number of its own; choose representation=raw"
            )
        if names["group"] != "identity":
            _warn(
                f"group={names['group']} moves columns, and representation=standardize scales each of them by a number "
                "of its own, so that moved points are scaled differently; choose representation=raw"
            )
    group, is_polar = plan.component("group"), names["representation"] == "polar"
    if is_polar and isinstance(group, Resampled) and getattr(group, "sampling", None) != "polar":
        _warn(
            f"group={names['group']} moves pixels, and representation={names['representation']} replaces them by other "
            "samples; choose representation=raw"
        )
    if names["encoder"] == "point_pairs" and isinstance(group, Orthogonal):
        _warn(
            f"group={names['group']} does not change the vectors of encoder=point_pairs, and takes time; choose "
            "group=identity"
        )
    if names["learner"] == "gp" and names["approx"] == "nystrom":
        _warn(
            "approx=nystrom: the standard deviations of learner=gp vanish far from the landmarks; choose approx=exact "
            "for those of the kernel"
        )


def warn_about_points(plan: Plan, X: np.ndarray) -> None:
    """Issue a warning for clouds that the plan's group cannot handle: far from the origin, or in arbitrary order.

    Parameters
    ----------
    X : represented points, shape (n, *shape)
    """
    group = plan.component("group")
    if not group.clouds or X.ndim != 3:
        return
    clouds, name = X[:_EXAMINED].astype(np.float64), plan.config["group"]["name"]
    centres = clouds.mean(1, keepdims=True)
    spread = np.sqrt(np.square(clouds - centres).sum(2).mean())
    distance = np.sqrt(np.square(centres).sum(2).mean())
    if 0 < _OUTSIDE * spread < distance:
        _warn(
            f"group={name} rotates about the origin, and the clouds of points have centres at {distance:.3g} from it, "
            f"with a radius of {spread:.3g}; unless the origin means something, choose representation=centre"
        )
    if isinstance(group, Orthogonal) and plan.config["encoder"]["name"] == "none" and in_any_order(clouds):
        _warn(
            f"group={name} does not change the order of the points of a cloud, which seems to be arbitrary, and the "
            "kernel compares points of the same number; choose encoder=point_pairs group=identity"
        )


def setting_for_rare_classes(learner: Learner, y: np.ndarray) -> str | None:
    """The setting that makes all classes of training labels count the same, if most points are of one class."""
    if learner.class_weight is not None or np.unique(y, return_counts=True)[1].max() < _FREQUENT * len(y):
        return None
    of_learner = "" if "class_weight" in parameters(type(learner)) else "learner=logistic "
    return f"{of_learner}learner.class_weight=balanced"


def warning_about_intervals(plan: Plan, metrics: dict[str, float], n_test: int) -> str | None:
    """A line if intervals of 95 % have far fewer of the test points than chance explains; None otherwise."""
    coverage = metrics.get("test/coverage")
    if coverage is None or binomtest(round(coverage * n_test), n_test, 0.95, "less").pvalue > _UNLIKELY:
        return None
    setting = "kernel.lengthscale=median" if plan.config["approx"]["name"] == "exact" else "approx=exact"
    return f"intervals of 95 % have only {coverage:.0%} of {n_test} test points; try {setting}"


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)
