"""The named comparisons of ``runner=timing``, each between cases made from the components of the plan."""

from collections.abc import Callable

from benchmarks.comparisons.base import Comparison
from benchmarks.comparisons.encoders import encoder
from benchmarks.comparisons.learners import lbfgs, path
from benchmarks.comparisons.maps import hadamard, laplacian, skeleton
from benchmarks.comparisons.orbit_average import against_scipy, direct, spectral
from benchmarks.comparisons.peers import peers
from runners.config.plan import Plan

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
    "encoder": encoder,
    "peers": peers,
}

#: ``runner.compare`` -> the components that a comparison is about, by their kinds.
NEEDS: dict[str, dict[str, str]] = {
    "scipy": {"group": "rotation", "encoder": "none", "approx": "rf", "kernel": "gaussian"},
    "direct": {"encoder": "none", "approx": "rf"},
    "skeleton": {"approx": "skeleton"},
    "hadamard": {"hyper": "gaussian"},
    "laplacian": {"kernel": "laplacian"},
    "peers": {"approx": "nystrom", "kernel": "gaussian"},
}
