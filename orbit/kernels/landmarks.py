"""Rules that choose the landmarks of Nyström features."""

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
import torch
from scipy.linalg import cholesky, solve_triangular

from orbit.core.component import Component
from orbit.core.random_pivots import random_pivots
from orbit.core.threads import threads_for
from orbit.kernels.base import Kernel
from orbit.registry import register

_KMEANS_ITERATIONS = 10
_SPHERICAL_ITERATIONS, _SPHERICAL_ROWS = 12, 4096

# Points drawn for each dimension: 4 had a smaller error than 2 and 8 on clustered data; in theory the number grows
# logarithmically.
_POINTS_PER_DIMENSION = 4

# Shares below this are rounding errors of float64 sums.
_ROUNDING = 1e-12


class Landmarks(Component):
    """A rule that selects landmarks, from the data or from its orbits.

    Attributes
    ----------
    source : {"data", "orbit"}
        ``data``: landmarks are data points. ``orbit``: each is a data point moved
        by a random orbit element (Raj et al. 2017, section 2.2.2 allows both).
    points_each : int
        Number of points that a sample of the data should have for each landmark.
    uses_vectors : bool
        Whether the choice depends on the vectors of the points; otherwise only those of the landmarks are computed.
    uses_kernel : bool
        Whether the choice depends on the kernel.
    """

    points_each: ClassVar[int] = 4
    uses_vectors: ClassVar[bool] = True
    uses_kernel: ClassVar[bool] = False

    def __init__(self, source: Literal["data", "orbit"] = "data") -> None:
        self.source = source

    def at_most(self, size: int, n: int, orbit_size: int) -> int:
        """The number of landmarks among ``n`` points if ``size`` are asked for."""
        return min(size, n if self.source == "data" else n * orbit_size)

    @abstractmethod
    def choose(self, candidates: np.ndarray, kernel: Kernel, size: int, rng: np.random.Generator) -> np.ndarray:
        """At most ``min(size, m)`` landmarks from ``candidates``, shape ``(m, d)``, for the fitted kernel."""


@register("landmarks", "uniform")
class Uniform(Landmarks):
    """Landmarks drawn uniformly without replacement.

    Parameters
    ----------
    source : {"data", "orbit"}
        Data points, or data points moved by random orbit elements.

    Examples
    --------
    >>> from orbit.kernels.landmarks import Uniform
    >>> Uniform(source="orbit")
    Uniform(source='orbit')
    """

    points_each = 1
    uses_vectors = False

    def choose(self, candidates: np.ndarray, kernel: Kernel, size: int, rng: np.random.Generator) -> np.ndarray:
        return candidates[rng.choice(len(candidates), min(size, len(candidates)), replace=False)]


@register("landmarks", "kmeans")
class KMeans(Landmarks):
    """The centres of k-means clusters: not data points, but close to many of them.

    Nyström's error is bounded by the quantisation error of the landmarks, which
    k-means makes small. O(n m d log m) operations for m landmarks: a few iterations
    after k-means++ are enough.

    Parameters
    ----------
    source : {"data", "orbit"}
        Data points, or data points moved by random orbit elements.

    References
    ----------
    Zhang, Tsang and Kwok, "Improved Nyström Low-Rank Approximation and Error
    Analysis", 2008.

    Examples
    --------
    >>> from orbit.kernels.landmarks import KMeans
    >>> KMeans()
    KMeans()
    """

    def choose(self, candidates: np.ndarray, kernel: Kernel, size: int, rng: np.random.Generator) -> np.ndarray:
        from sklearn import cluster

        points = np.unique(candidates, axis=0)  # with more clusters than distinct points centres would repeat
        if size >= len(points):
            return points
        seed = int(rng.integers(2**31))
        kmeans = cluster.KMeans(size, n_init=1, max_iter=_KMEANS_ITERATIONS, random_state=seed)
        return kmeans.fit(candidates).cluster_centers_


class SphericalKMeans(Landmarks):
    """Centres of unit vectors by spherical k-means: unit vectors themselves.

    On 50,000 patches it takes a quarter of the time of :class:`KMeans` and finds centres as near.

    References
    ----------
    Dhillon and Modha, "Concept Decompositions for Large Sparse Text Data Using Clustering", 2001.
    """

    def choose(self, candidates: np.ndarray, kernel: Kernel, size: int, rng: np.random.Generator) -> np.ndarray:
        if len(candidates) <= 4 * size:  # only then: finding distinct vectors takes a sort
            distinct = np.unique(candidates, axis=0)
            if len(distinct) <= size:
                return distinct
        units = torch.from_numpy(candidates)
        centres = units[torch.from_numpy(rng.choice(len(units), size, replace=False))].clone()
        for _ in range(_SPHERICAL_ITERATIONS):
            with threads_for(float(_SPHERICAL_ROWS) * centres.numel()):
                # NumPy's argmax takes a fifth of the time of torch's
                nearest = [(block @ centres.T).numpy().argmax(1) for block in units.split(_SPHERICAL_ROWS)]
                sums = torch.zeros_like(centres).index_add_(0, torch.from_numpy(np.concatenate(nearest)), units)
            lengths = sums.norm(dim=1)
            empty = lengths <= 0
            sums[empty] = units[torch.from_numpy(rng.choice(len(units), int(empty.sum())))]
            lengths[empty] = 1
            centres = sums / lengths[:, None]
        return centres.numpy()


@register("landmarks", "rpcholesky")
class RPCholesky(Landmarks):
    """Randomly pivoted Cholesky: each landmark is drawn with probability proportional to its residual.

    The residual at point x is k(x, x) minus its Nyström approximation by the
    landmarks so far. Takes ``m`` rows of the kernel matrix of n points, O(n m^2)
    operations and O(n m) memory, in float64.

    Parameters
    ----------
    source : {"data", "orbit"}
        Data points, or data points moved by random orbit elements.

    References
    ----------
    Chen, Epperly, Tropp and Webber, "Randomly Pivoted Cholesky", 2023, algorithm 2.1.
    Epperly, Tropp and Webber, "Embrace Rejection: Kernel Matrix Approximation by
    Accelerated Randomly Pivoted Cholesky", 2024, for the blocks.

    Examples
    --------
    >>> from orbit.kernels.landmarks import RPCholesky
    >>> RPCholesky(source="orbit")
    RPCholesky(source='orbit')
    """

    uses_kernel = True

    def choose(self, candidates: np.ndarray, kernel: Kernel, size: int, rng: np.random.Generator) -> np.ndarray:
        size = min(size, len(candidates))
        points = torch.from_numpy(candidates.astype(np.float64))
        against_all, everything = kernel.against(points), slice(0, len(points))

        def values(rows: np.ndarray | slice, columns: np.ndarray) -> np.ndarray:
            chosen = points[columns]
            if isinstance(rows, slice):
                return against_all(chosen, everything, chosen.new_empty(len(chosen), len(points))).numpy().T
            return kernel.gram(points[rows].numpy(), chosen.numpy())

        pivots, _ = random_pivots(kernel.diagonal(candidates), values, size, rng)
        # a kernel matrix of lower rank has fewer pivots; the other landmarks are drawn uniformly
        others = rng.permutation(np.setdiff1d(np.arange(len(candidates)), pivots))
        return candidates[np.concatenate([pivots, others[: size - len(pivots)]])]


@register("landmarks", "leverage")
class Leverage(Landmarks):
    """Landmarks drawn by approximate ridge leverage scores.

    The score of point i is [K (K + ridge I)^-1]_ii. It is estimated through a
    dictionary of ``m`` points; the dictionary comes from the scores of a random
    half of the points, those from a dictionary of a quarter, and so on: O(n m^2)
    operations and O(n m) memory, in float64. The ridge is chosen so that the
    scores sum to about a quarter of the number of landmarks.

    Parameters
    ----------
    source : {"data", "orbit"}
        Data points, or data points moved by random orbit elements.

    References
    ----------
    Musco and Musco, "Recursive Sampling for the Nyström Method", 2017, algorithm 2.

    Examples
    --------
    >>> from orbit.kernels.landmarks import Leverage
    >>> Leverage()
    Leverage()
    """

    uses_kernel = True

    def choose(self, candidates: np.ndarray, kernel: Kernel, size: int, rng: np.random.Generator) -> np.ndarray:
        n = len(candidates)
        if size >= n:
            return candidates[rng.permutation(n)]
        order = rng.permutation(n)
        points = candidates[order].astype(np.float64)
        diagonal, chosen, chance = kernel.diagonal(points), np.arange(size), np.ones(size)
        for level in reversed(range(int(np.log2(n / size)) + 1)):
            m = max(size, n >> level)
            inner, cross = kernel.gram(points[chosen]), kernel.gram(points[chosen], points[:m])
            shares = _shares(_leverage_scores(inner, cross, diagonal[:m], chance))
            chosen = rng.choice(m, size, replace=False, p=shares)
            chance = np.minimum(1, size * shares[chosen])
        return candidates[order[chosen]]


def _leverage_scores(inner: np.ndarray, cross: np.ndarray, diagonal: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Approximate ridge leverage scores of points from a dictionary of points S, drawn with probabilities ``chance``.

    (diag(K) - diag(K_S^T (K_SS + ridge C)^-1 K_S)) / ridge for K_SS ``inner``, K_S ``cross`` and the diagonal matrix C
    of probabilities, Musco and Musco eq. 7, clipped to [0, 1].
    """
    spectrum = np.linalg.eigvalsh(inner / np.sqrt(np.outer(chance, chance)))[::-1]
    dimension = max(1, len(inner) // _POINTS_PER_DIMENSION)
    ridge = max(spectrum[dimension:].sum() / dimension, _ROUNDING * spectrum[0])
    if ridge <= 0:
        return np.zeros(len(diagonal))
    lower = cholesky(inner + np.diag(ridge * chance + _ROUNDING * inner.trace()), lower=True)
    explained = np.square(solve_triangular(lower, cross, lower=True)).sum(0)
    return np.clip((diagonal - explained) / ridge, 0, 1)


def _shares(scores: np.ndarray) -> np.ndarray:
    """Scores as probabilities, with one percent of a uniform distribution in case scores are underestimated."""
    if not scores.any():
        return np.full(len(scores), 1 / len(scores))
    return 0.99 * scores / scores.sum() + 0.01 / len(scores)
