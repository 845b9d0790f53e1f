"""Warnings about combinations of components that can be fitted, but not with the property that they are chosen for."""

from __future__ import annotations

import warnings

from runners.app.plan import Plan

_FIELDS = ("curl_free", "divergence_free", "helmholtz")


def warn_about_combinations(plan: Plan, point_axes: int) -> None:
    """Issue a warning for each such combination in a plan whose points have that many axes."""
    names = {kind: plan.config[kind]["name"] for kind in ("representation", "group", "kernel", "approx", "learner")}
    if names["representation"] == "standardize" and point_axes == 1:
        if names["kernel"] in _FIELDS and names["approx"] in ("orff", "ovk"):
            _warn(
                f"kernel={names['kernel']} has its property in the coordinates that it is given, and "
                "representation=standardize scales each of them by a number of its own; choose representation=raw"
            )
        if names["group"] != "identity":
            _warn(
                f"group={names['group']} moves columns, and representation=standardize scales each of them by a number "
                "of its own, so that moved points are scaled differently; choose representation=raw"
            )
    if names["learner"] == "gp" and names["approx"] == "nystrom":
        _warn(
            "approx=nystrom: the standard deviations of learner=gp vanish far from the landmarks; choose approx=exact "
            "for those of the kernel"
        )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)
