"""Pairs of points of a cloud, by what no turn and no shift changes."""

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from orbit.core.errors import InputError
from orbit.core.grid import PLACE, n_points
from orbit.core.linalg import standardization
from orbit.core.params import PositiveFloat, PositiveInt, Range
from orbit.core.random import RandomState, generator
from orbit.encoders.base import Encoder
from orbit.kernels import Gaussian
from orbit.registry import register

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

        t = (|x - x'|, max(|<n, u>|, |<n', u>|), min(|<n, u>|, |<n', u>|), |<n, n'>|).

    A normal is the direction of least variance of the nearest points. Filled or sparse clouds have none: without
    normals, with the distances r, r' from the centre and those s, s' of each point to its ``n_neighbors``-th nearest,

        t = (|x - x'|, max(r, r'), min(r, r'), max(s, s'), min(s, s')).

    Columns of a cloud after its coordinates are features of its points, such as intensities: t also has the larger and
    the smaller one of x and x'. Each number has mean zero and variance one over the sample. E(x) is the mean over the
    pairs of random Fourier features of a Gaussian kernel k of t, so that

        <E(x), E(z)> = mean over pairs s of x and t of z of k(s, t), approximately.

    With features of points, k is the mean of two such kernels, of t without them and of all of t.

    Points are clouds (n_points, columns) with two or more columns. Rows of zeros at the end of a cloud are no points: E
    is the mean over the pairs of the others, times their share of the rows, so that their number counts. The defaults
    of clouds with normals were chosen on generated shapes of 256 points, those without on generated trees and showers
    of particles.

    Parameters
    ----------
    n_components : int >= 1
        Number of frequencies; the vectors have two numbers for each.
    n_ranks : int >= 1
        Partners of each point.
    n_neighbors : int >= 2
        Nearest points, with the point itself, of which a normal is computed; the last of them is s away.
    lengthscale : float > 0
        That of k, in standard deviations of t.
    normals : bool or None
        Which of the two t there is. None is with normals; a run compares the two by leave-one-out
        errors, and takes those without where they are lower by more than 5 % and chance.
    coordinates : int >= 2
        Columns that are coordinates, if there are so many; 2 for points of a plane with features.
    any_size : bool
        Whether clouds are first scaled to a root mean square radius of one about their centre.

    Attributes
    ----------
    frequencies_ : array, shape (numbers of t, n_components)
    mean_, scale_ : arrays, shape (numbers of t,)
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

    of_clouds = True

    n_components: PositiveInt = 256
    n_ranks: PositiveInt = 8
    n_neighbors: Annotated[int, Range(low=2)] = 12
    lengthscale: PositiveFloat = 1.0
    any_size: bool = False
    normals: bool | None = None
    coordinates: Annotated[int, Range(low=2)] = PLACE

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Encoder]:
        return cls().compared(shape) if len(shape) == 2 else []

    def compared(self, shape: tuple[int, ...]) -> list[Encoder]:
        return [replace(self, normals=each) for each in (True, False)] if self.normals is None else [self]

    @property
    def complexity(self) -> int:  # type: ignore[override]
        return int(self.normals is False)

    def is_global(self, shape: tuple[int, ...]) -> bool:
        return True

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or not 2 <= shape[1] < shape[0]:
            raise self._refuse(shape, "clouds (points, coordinates) of two or more coordinates and more points")

    def bytes_per_point(self, itemsize: int) -> int:
        """Of one cloud: clouds are encoded one after the other."""
        n = self.shape_in_[0]
        block = min(n, _BLOCK_POINTS) * n * (2 * itemsize + 8)
        return block + itemsize * (n * self.n_ranks * (2 * len(self.mean_) + 3 * self.n_components) + self.n_outputs_)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        rng = generator(random_state)
        sample = X[rng.choice(len(X), min(len(X), _SAMPLE_CLOUDS), replace=False)]
        some = [self._pairs(cloud) for cloud in torch.from_numpy(sample) if n_points(cloud) > 1]
        if not some:
            raise InputError(f"{self.label()} takes clouds of two or more points, found none that are not 0")
        pairs = torch.cat(some)
        self.mean_, self.scale_ = standardization(pairs.numpy())
        kernel = Gaussian(self.lengthscale).fit(pairs[:1].numpy())
        self.frequencies_ = kernel.sample_spectrum(self.n_components, pairs.shape[1], rng).T
        n_of_features = 2 * max(0, X.shape[2] - self.coordinates)
        self.frequencies_[pairs.shape[1] - n_of_features :, ::2] = 0
        self.n_outputs_ = 2 * self.n_components

    def _encode(self, points: Tensor) -> Tensor:
        mean, scale, frequencies = (
            torch.as_tensor(each).to(points) for each in (self.mean_, self.scale_, self.frequencies_)
        )
        vectors = points.new_empty(len(points), self.n_outputs_)
        for cloud, vector in zip(points, vectors.view(len(points), 2, -1), strict=True):
            if (n := n_points(cloud)) < 2:
                vector.zero_()
                continue
            cosines, sines = vector
            waves = self._pairs(cloud).sub_(mean).mul_(scale) @ frequencies
            torch.mean(waves.sin(), 0, out=sines)
            torch.mean(waves.cos_(), 0, out=cosines)
            if n < len(cloud):
                vector.mul_(n / len(cloud))
        return vectors.div_(math.sqrt(self.n_components))

    def _pairs(self, cloud: Tensor) -> Tensor:
        """The numbers t of all pairs of n points of a cloud (rows, columns), shape (n * n_ranks, numbers)."""
        places, features = cloud[: n_points(cloud)].tensor_split([self.coordinates], 1)
        if self.any_size:
            radius = places.var(0, correction=0).sum().sqrt()
            places = places / torch.where(radius > 0, radius, 1)
        near, partners, distances = self._by_distance(places)
        numbers, of_points = [distances], list(features.unbind(1))
        if self.normals is False:
            radii = (places - places.mean(0)).norm(dim=1)
            of_points = [radii, (places[near[:, -1]] - places).norm(dim=1), *of_points]
        else:
            numbers += self._angles(places, near, partners, distances)
        for each in of_points:
            one, two = each[:, None], each[partners]
            numbers += [torch.maximum(one, two), torch.minimum(one, two)]
        return torch.stack(numbers, -1).flatten(0, 1)

    def _angles(self, places: Tensor, near: Tensor, partners: Tensor, distances: Tensor) -> list[Tensor]:
        """Cosines of the angles between normals and pairs, and between both normals, shape (n, n_ranks) each."""
        centred = places[near] - places[near].mean(1, keepdim=True)
        normals = torch.linalg.eigh(centred.mT @ centred)[1][..., 0]
        others = normals[partners]  # (n, n_ranks, d), as is the unit vector to each partner
        least = torch.finfo(places.dtype).tiny
        units = (places[partners] - places[:, None]).div_(distances.clamp(min=least)[..., None])
        one, two = (units @ normals[..., None])[..., 0].abs_(), (units * others).sum(-1).abs_()
        return [torch.maximum(one, two), torch.minimum(one, two), (others @ normals[..., None])[..., 0].abs_()]

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
