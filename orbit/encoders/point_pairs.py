"""Pairs of points of a cloud, by what no turn and no shift changes."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from orbit.core.linalg import standardization
from orbit.core.params import PositiveFloat, PositiveInt, Range
from orbit.core.random import RandomState, generator
from orbit.encoders.base import Encoder
from orbit.kernels import Gaussian
from orbit.registry import register

# Numbers of a pair: distance, two angles between its line and the normals, angle between the normals.
_INVARIANTS = 4

# Clouds whose pairs give means and standard deviations of these numbers.
_SAMPLE_CLOUDS = 100

# Points whose distances to all others are computed at once.
_BLOCK_POINTS = 256


@register("encoder", "point_pairs")
@dataclass(eq=False, repr=False)
class PointPairs(Encoder):
    """The distribution of pairs of points of a cloud: the same for any order of the points, any turn, mirror and shift.

    Each point x is paired with ``n_ranks`` others x', from the nearest to the farthest in even steps of rank. With
    normals n, n' and the unit vector u from x to x', the numbers of a pair are

        t = (|x - x'|, max(|<n, u>|, |<n', u>|), min(|<n, u>|, |<n', u>|), |<n, n'>|),

    each with mean zero and variance one over the sample. A normal is the direction of least variance of the nearest
    points. E(x) is the mean over the pairs of random Fourier features of a Gaussian kernel k of t, so that

        <E(x), E(z)> = mean over pairs s of x and t of z of k(s, t), approximately.

    Points are clouds (n_points, d) with d >= 2, of surfaces or, in the plane, of curves. The defaults were chosen on
    generated shapes of 256 points.

    Parameters
    ----------
    n_components : int >= 1
        Number of frequencies; the vectors have two numbers for each.
    n_ranks : int >= 1
        Partners of each point.
    n_neighbors : int >= 2
        Nearest points, with the point itself, of which a normal is computed.
    lengthscale : float > 0
        That of k, in standard deviations of t.
    any_size : bool
        Whether clouds are first scaled to a root mean square radius of one about their centre.

    Attributes
    ----------
    frequencies_ : array, shape (4, n_components)
    mean_, scale_ : arrays, shape (4,)
        Mean and inverse standard deviation of t.

    References
    ----------
    Wahl, Hillenbrand and Hirzinger, "Surflet-Pair-Relation Histograms", 2003, for pairs of points with normals.
    Muandet, Fukumizu, Dinuzzo and Schölkopf, "Learning from Distributions via Support Measure Machines", 2012, for
    kernels on mean features.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).standard_normal((5, 40, 3))
    >>> encoder = PointPairs(n_components=8).fit(X, random_state=0)
    >>> moved = X[:, ::-1] @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + 2
    >>> torch.allclose(encoder.encode(torch.from_numpy(X)), encoder.encode(torch.from_numpy(moved)))
    True
    """

    n_components: PositiveInt = 256
    n_ranks: PositiveInt = 8
    n_neighbors: Annotated[int, Range(low=2)] = 12
    lengthscale: PositiveFloat = 1.0
    any_size: bool = False

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Encoder]:
        return [cls()] if shape[-1] in (2, 3) else []

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or not 2 <= shape[1] < shape[0]:
            raise self._refuse(shape, "clouds (points, coordinates) of two or more coordinates and more points")

    def bytes_per_point(self, itemsize: int) -> int:
        """Of one cloud: clouds are encoded one after the other."""
        n = self.shape_in_[0]
        block = min(n, _BLOCK_POINTS) * n * (2 * itemsize + 8)
        return block + itemsize * (n * self.n_ranks * (2 * _INVARIANTS + 3 * self.n_components) + self.n_outputs_)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        rng = generator(random_state)
        sample = X[rng.choice(len(X), min(len(X), _SAMPLE_CLOUDS), replace=False)]
        pairs = torch.cat([self._pairs(cloud) for cloud in torch.from_numpy(sample)])
        self.mean_, self.scale_ = standardization(pairs.numpy())
        kernel = Gaussian(self.lengthscale).fit(pairs[:1].numpy())
        self.frequencies_ = kernel.sample_spectrum(self.n_components, _INVARIANTS, rng).T
        self.n_outputs_ = 2 * self.n_components

    def _encode(self, points: Tensor) -> Tensor:
        mean, scale, frequencies = (
            torch.as_tensor(each).to(points) for each in (self.mean_, self.scale_, self.frequencies_)
        )
        vectors = points.new_empty(len(points), self.n_outputs_)
        for cloud, (cosines, sines) in zip(points, vectors.view(len(points), 2, -1), strict=True):
            waves = self._pairs(cloud).sub_(mean).mul_(scale) @ frequencies
            torch.mean(waves.sin(), 0, out=sines)
            torch.mean(waves.cos_(), 0, out=cosines)
        return vectors.div_(math.sqrt(self.n_components))

    def _pairs(self, cloud: Tensor) -> Tensor:
        """The numbers t of all pairs of a cloud (n, d), shape (n * n_ranks, 4)."""
        if self.any_size:
            radius = cloud.var(0, correction=0).sum().sqrt()
            cloud = cloud / torch.where(radius > 0, radius, 1)
        near, partners, distances = self._by_distance(cloud)
        centred = cloud[near] - cloud[near].mean(1, keepdim=True)
        normals = torch.linalg.eigh(centred.mT @ centred)[1][..., 0]
        others = normals[partners]  # (n, n_ranks, d), as is the unit vector to each partner
        units = (cloud[partners] - cloud[:, None]).div_(distances.clamp(min=torch.finfo(cloud.dtype).tiny)[..., None])
        one, two = (units @ normals[..., None])[..., 0].abs_(), (units * others).sum(-1).abs_()
        between = (others @ normals[..., None])[..., 0].abs_()
        return torch.stack([distances, torch.maximum(one, two), torch.minimum(one, two), between], -1).flatten(0, 1)

    def _by_distance(self, cloud: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For each point, the indices of its nearest points, the indices of its partners, and their distances."""
        ranks = torch.linspace(1, len(cloud) - 1, self.n_ranks, device=cloud.device).round().long()
        blocks = []
        for block in cloud.split(_BLOCK_POINTS):
            # not by inner products, whose rounding errors would mix up the nearest points
            distances, order = torch.cdist(block, cloud, compute_mode="donot_use_mm_for_euclid_dist").sort(1)
            blocks.append((order[:, : self.n_neighbors], order[:, ranks], distances[:, ranks]))
        near, partners, distances = map(torch.cat, zip(*blocks, strict=True))
        return near, partners, distances
