"""The same model without its group: what averaging over the orbit changes."""

from __future__ import annotations

import warnings

import numpy as np

from orbit.core.random import hold_out
from orbit.data import Dataset
from orbit.encoders import Encoder, FittedEncoder
from runners.config.plan import Plan
from runners.experiments.pipeline import pipeline
from runners.experiments.selection import predictions
from runners.measure.metrics import evaluate, paired_test

# The check uses this share of the training points, so that it takes a small part of the time of a large fit, but not
# fewer or more than these numbers. One half is fitted and the other validated.
_FEWEST, _MOST, _SHARE = 400, 1000, 0.1

_SIGNIFICANT = 0.05

# The model of the check, for every approximation and learner: it is to be cheap, not good.
_CHEAP = {
    "approx": {"name": "nystrom", "n_components": 256},
    "landmarks": {"name": "uniform"},
    "hyper": {"name": "linear"},
    "learner": {"name": "ridge"},
}

_ORBIT_SECTIONS = ("group", "distribution", "orbit")


def without_group(plan: Plan) -> Plan:
    """The plan with ``group=identity``. A selection does not choose the group, its distribution or the orbit."""
    changes = {"group": {"name": "identity"}, "distribution": {"name": "auto"}, "orbit": {"size": None, "rule": None}}
    selection = plan.config["selection"]
    if grid := selection.get("grid"):
        kept = {key: values for key, values in grid.items() if key.partition(".")[0] not in _ORBIT_SECTIONS}
        changes["selection"] = selection | {"grid": kept} if kept else {"name": "none"}
    return plan.variant(changes)


def warning_about_group(plan: Plan, data: Dataset, encoder: Encoder) -> str | None:
    """A line if validation accuracy is lower with the group than without; None otherwise, and where it is not checked.

    Ridge on 256 Nyström features is fitted with and without the group to at most 500 training points and compared on
    as many others, by McNemar's test. Both take the fitted ``encoder`` of the run, which knows no labels, because
    fitting one takes longer than the rest. Checked are classifications in memory whose points do not belong together.
    """
    if not _is_checked(plan, data):
        return None
    cheap, n = plan.without_selection(_CHEAP), len(data.X_train)
    size = min(n, _MOST, max(_FEWEST, round(_SHARE * n)))
    seed = cheap.seed("selection")
    points = np.random.default_rng(seed).permutation(n)[:size]
    labels = data.y_train[points] if data.task == "classification" else None
    fit, validation = hold_out(size, 0.5, labels, seed)
    part = data.split(points[fit], points[validation])
    with warnings.catch_warnings(action="ignore"):  # they would be about the model of the check, not the user's
        ours, plain = (_predictions(each, part, encoder) for each in (cheap, without_group(cheap)))
    found, base = (evaluate(data.task, part.y_test, each)["accuracy"] for each in (ours, plain))
    if found >= base or paired_test(data.task, part.y_test, ours, plain)["p_mcnemar"] > _SIGNIFICANT:
        return None
    return (
        f"group={cheap.config['group']['name']} lowers validation accuracy: {found:.1%}, {base:.1%} with "
        f"group=identity ({len(fit)} training and {len(validation)} validation points); limit its moves, "
        "e.g. group=small_moves, and see runner=compare"
    )


def _predictions(plan: Plan, part: Dataset, encoder: Encoder) -> np.ndarray:
    model = pipeline(plan, part.task)
    if not encoder.is_identity:
        model["features"].set_params(encoder=FittedEncoder(encoder))
    (predicted,) = predictions([plan], part, model)
    return predicted


def _is_checked(plan: Plan, data: Dataset) -> bool:
    config = plan.config
    in_memory = data.task == "classification" and data.clusters is None and not config["engine"]["stream"]
    changes_nothing = config["group"]["name"] == "identity" or config["distribution"]["name"] == "delta"
    return in_memory and not changes_nothing and len(data.X_train) >= 4 and not plan.component("approx").operator_valued
