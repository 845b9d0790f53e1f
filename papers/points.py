"""The points that a measurement uses."""

from __future__ import annotations

import numpy as np

from runners.config.plan import Plan


def represented_points(plan: Plan, n_points: int, shape: list[int] | None) -> np.ndarray:
    """The first training points of the plan's data, in its representation; or standard normal points of ``shape``.

    Returns
    -------
    array, shape (n, *shape) with n <= n_points, in the engine's precision
    """
    if shape is None:
        X = plan.component("representation").fit_transform(plan.load().X_train[:n_points])
    else:
        X = np.random.default_rng(plan.seed("runner")).standard_normal((n_points, *shape))
    return plan.engine().cast(X)
