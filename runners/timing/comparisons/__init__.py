"""The named comparisons of ``runner=timing``, each between cases made from the components of the plan."""

from collections.abc import Callable

from runners.config.plan import Plan
from runners.timing.comparisons.base import Comparison
from runners.timing.comparisons.encoders import encoder
from runners.timing.comparisons.kept_state import state
from runners.timing.comparisons.learners import lbfgs, path
from runners.timing.comparisons.maps import hadamard, laplacian, skeleton
from runners.timing.comparisons.orbit_average import against_scipy, direct, spectral
from runners.timing.comparisons.processes import start

#: ``runner.compare`` -> function of the plan, the number of points and of threads.
COMPARISONS: dict[str, Callable[[Plan, int, int], Comparison]] = {
    "scipy": against_scipy,
    "direct": direct,
    "spectral": spectral,
    "path": path,
    "skeleton": skeleton,
    "hadamard": hadamard,
    "laplacian": laplacian,
    "lbfgs": lbfgs,
    "state": state,
    "encoder": encoder,
    "start": start,
}

#: ``runner.compare`` -> the components that a comparison is about, by their kinds.
NEEDS: dict[str, dict[str, str]] = {
    "scipy": {"group": "rotation", "encoder": "none", "approx": "rf", "kernel": "gaussian"},
    "direct": {"encoder": "none", "approx": "rf"},
    "skeleton": {"approx": "skeleton"},
    "hadamard": {"hyper": "gaussian"},
    "laplacian": {"kernel": "laplacian"},
}
