"""Points to measure features on: the data of a plan, or random ones of a given shape."""

from __future__ import annotations

import numpy as np

from runners.app.plan import Plan


def represented_points(plan: Plan, n_points: int, shape: list[int] | None) -> np.ndarray:
    """The first training points of the plan's data, represented; or standard normal points of ``shape``.

    Returns
    -------
    array, shape (at most n_points, *shape), in the engine's precision
    """
    if shape is None:
        X = plan.component("representation").fit_transform(plan.load().X_train[:n_points])
    else:
        X = np.random.default_rng(plan.seed("runner")).standard_normal((n_points, *shape))
    return X.astype(plan.engine().result_dtype(X), copy=False)
