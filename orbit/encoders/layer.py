"""One layer of patch features: patches, their normalisation, features on the sphere, pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from orbit.core.linalg import eigh, inverse_root, is_constant
from orbit.core.work import Work
from orbit.encoders.pooling import Pool, Pooling, pool
from orbit.encoders.sphere import ArcCos, Exponential, PatchKernel, SphereMap, TwoSided
from orbit.groups import Group

Normalization = Literal["norm", "mean", "contrast", "whitening"]
KernelName = Literal["exponential", "arccos0", "arccos1", "rectified"]

# Numbers in each of the two large arrays of a tile, patches and features. Long rows matter more than fitting in the
# second-level cache: pooling 64 points at once takes a third of the time per point of eight.
_TILE_NUMBERS = 2**20
_GPU_BREADTH = 256

# Limits on the points of a tile, the last axis in the products of pooling.
_FEWEST_POINTS, _MOST_POINTS = 8, 64

# Patches with a norm below this share of the root mean square have no direction, only rounding errors.
_NO_DIRECTION = 1e-5

_KMEANS_ITERATIONS = 12
_KMEANS_ROWS = 4096


@dataclass(frozen=True)
class LayerOptions:
    """Validated parameters of a layer; see :class:`~orbit.encoders.patches.Patches` for their meaning."""

    size: int
    stride: int
    normalization: Normalization
    contrast: float
    whitening: float
    kernel: KernelName
    beta: float
    threshold: float
    approx: Literal["nystrom", "rf"]
    landmarks: Literal["kmeans", "uniform"]
    n_components: int
    homogeneous: bool
    pooling: Pooling
    pool_stride: int
    pool_width: float
    cells: int


class Layer:
    """A layer, from maps of shape (channels, height, width, n) to maps of features, with n points in the last axis.

    Parameters
    ----------
    options : LayerOptions
    group : Group or None
        A finite group whose elements reorder the entries of a patch; features are averaged over it.
    shape : (channels, height, width) of the input maps
    """

    def __init__(self, options: LayerOptions, group: Group | None, shape: tuple[int, int, int]) -> None:
        self.options, self.group, self.shape = options, group, shape
        channels, height, width = shape
        self.d = channels * options.size**2
        self.positions = _positions(height, options), _positions(width, options)
        self.pool = Pool(options.pooling, self.positions, options.pool_stride, options.pool_width, options.cells)

    @property
    def shape_out(self) -> tuple[int, int, int]:
        channels = len(self.linear) if self.linear is not None else self.features.columns * self.n_templates
        return (channels, *self.pool.side)

    def estimate(self, dtype: np.dtype) -> tuple[int, Work]:
        """Channels of the output of a layer that is not fitted, at most, and operations for one point."""
        o, kernel = self.options, self._kernel()
        order = 1 if self.group is None else len(self.group.elements())
        features = self._sphere_map(kernel)
        columns, k = features.columns, self.d + features.norm_in_product
        (height, width), (rows, across) = self.positions, self.pool.side
        positions, maps = height * width, columns * o.n_components
        projections = float(positions) * order * o.n_components
        products = projections * k
        if o.normalization == "whitening":
            products += float(positions) * self.d**2
        if not self.pool.identity:
            products += float(maps) * rows * width * (height + across)
        if kernel is not None and o.approx == "nystrom":
            products += float(maps) * o.n_components * rows * across
        return maps, Work.of(dtype, products, columns * projections + self.d * positions)

    def fit(self, patches: Tensor, rng: np.random.Generator) -> None:
        """Fit to patches of the input maps, shape (d, count), which are overwritten."""
        o, precision = self.options, torch.finfo(patches.dtype).eps
        self.contrast_, self.floor_ = 0.0, 0.0
        self.mean_, self.whitening_ = np.zeros(self.d), np.eye(self.d)
        if o.normalization in ("contrast", "whitening"):
            deviations = patches.double().var(0, unbiased=False)
            self.contrast_ = o.contrast * float(deviations.mean()) ** 0.5
        if o.normalization == "whitening":
            centred = patches.clone()
            self._centre(centred)
            self.mean_, self.whitening_ = self._whitening(centred.double().numpy())
        norms = self._normalize(patches)
        self.floor_ = _NO_DIRECTION * float(norms.double().square().mean().sqrt())
        has_direction = norms > self.floor_
        units = (patches[:, has_direction] / norms[has_direction]).T.contiguous()
        if not len(units):
            units = torch.eye(1, self.d, dtype=patches.dtype)
        self._fit_features(units, rng, precision)

    def _fit_features(self, units: Tensor, rng: np.random.Generator, precision: float) -> None:
        o, kernel = self.options, self._kernel()
        self.linear: np.ndarray | None = None
        self.scale = 1.0
        if kernel is None:
            self.features: SphereMap = TwoSided(o.threshold)
            templates = _directions(rng, o.n_components, self.d) if o.approx == "rf" else self._landmarks(units, rng)
        elif o.approx == "rf":
            self.features, templates, self.scale = kernel.random_map(self.d, o.n_components, rng)
        else:
            self.features, templates = kernel.nystrom_map(), self._landmarks(units, rng)
            self.linear = inverse_root(kernel.gram(templates), None, precision)
        self.n_templates = len(templates)
        self.templates = np.stack([self.features.augmented(moved) for moved in self._orbit(templates)])

    def _kernel(self) -> PatchKernel | None:
        """The kernel of the patches; None for features without a kernel in closed form."""
        o = self.options
        if o.kernel == "rectified":
            return None
        return Exponential(o.beta) if o.kernel == "exponential" else ArcCos(int(o.kernel[-1]))

    def _sphere_map(self, kernel: PatchKernel | None) -> SphereMap:
        """The features of the layer, whose random vectors are drawn in the fit."""
        if kernel is None:
            return TwoSided(self.options.threshold)
        if self.options.approx == "nystrom":
            return kernel.nystrom_map()
        return kernel.random_map(self.d, 1, np.random.default_rng(0))[0]

    def _landmarks(self, units: Tensor, rng: np.random.Generator) -> np.ndarray:
        if self.options.landmarks == "uniform":
            distinct = np.unique(units.double().numpy(), axis=0)
            count = min(self.options.n_components, len(distinct))
            return distinct[rng.choice(len(distinct), count, replace=False)]
        return spherical_kmeans(units, self.options.n_components, rng)

    def _orbit(self, templates: np.ndarray) -> np.ndarray:
        """Templates moved by all elements of the group, shape (order, m, d)."""
        if self.group is None:
            return templates[None]
        channels, size = self.shape[0], self.options.size
        images = templates.reshape(-1, channels, size, size).transpose(0, 2, 3, 1)
        moved = self.group.act(self.group.elements(), np.ascontiguousarray(images))
        return moved.transpose(0, 1, 4, 2, 3).reshape(len(moved), len(templates), -1)

    def _whitening(self, patches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and (C + epsilon I)^(-1/2), the same for a patch and for its images under the group."""
        moved = self._orbit(patches.T).reshape(-1, len(patches))
        mean = moved.mean(0)
        values, vectors = eigh((moved - mean).T @ (moved - mean) / len(moved))
        return mean, (vectors / np.sqrt(np.maximum(values, 0) + self.options.whitening)) @ vectors.T

    def points_at_once(self, device: torch.device) -> int:
        """Points of a tile."""
        breadth = _GPU_BREADTH if device.type == "cuda" else 1
        points = breadth * _TILE_NUMBERS // ((self.d + 1) * self.positions[0] * self.positions[1])
        return int(min(breadth * _MOST_POINTS, max(_FEWEST_POINTS, points)))

    def patches(self, maps: Tensor) -> Tensor:
        """A view of the patches, shape (channels, size, size, rows, columns, n)."""
        channels, _, width, n = maps.shape
        size, stride = self.options.size, self.options.stride
        of_map, of_row = maps.shape[1] * width * n, width * n
        strides = (of_map, of_row, n, stride * of_row, stride * n, 1)
        return maps.as_strided((channels, size, size, *self.positions, n), strides)

    def _centre(self, patches: Tensor) -> Tensor:
        """Subtract the mean, and divide by sqrt(var + c^2) unless the normalisation is ``mean``, in place.

        Patches that are constant but for rounding become zero.

        Returns
        -------
        tensor, shape (count,)
            The means in the unit of the patches returned, whose rounding errors the patches have.
        """
        means = patches.mean(0)
        patches.sub_(means)
        deviations = patches.square().mean(0).sqrt_()
        constant = is_constant(deviations, means, means.dtype)
        scale = torch.ones_like(means)
        if self.options.normalization != "mean":
            scale = _inverse(torch.hypot(deviations, deviations.new_tensor(self.contrast_)), 0.0)
        scale.masked_fill_(constant, 0.0)
        patches.mul_(scale)
        return means.mul_(scale)

    def _whiten(self, patches: Tensor, means: Tensor) -> None:
        """Subtract the mean and multiply by the matrix; patches that are the mean but for rounding become zero."""
        matrix, mean = (torch.as_tensor(part).to(patches) for part in (self.whitening_, self.mean_))
        patches.sub_(mean[:, None])
        sizes = mean.norm() + self.d**0.5 * means.abs_()
        patches.mul_(~is_constant(patches.square().sum(0).sqrt_(), sizes, mean.dtype))
        patches.copy_(matrix @ patches)

    def _normalize(self, patches: Tensor) -> Tensor:
        """Normalise patches (d, count) in place, except for the division by the norm; returns the norms."""
        if self.options.normalization != "norm":
            means = self._centre(patches)
        if self.options.normalization == "whitening":
            self._whiten(patches, means)
        return patches.square().sum(0).sqrt_()


class LayerRun:
    """A layer with its matrices and its working memory, for one thread.

    Parameters
    ----------
    layer : Layer
    like : tensor of the precision and on the device of the points
    points : points of a tile, at most
    """

    def __init__(self, layer: Layer, like: Tensor, points: int) -> None:
        self.layer, self.points = layer, points
        rows, columns = layer.positions
        n, m = rows * columns * points, layer.n_templates
        templates = torch.as_tensor(layer.templates).to(like)
        self.order, _, self.k = templates.shape
        many = _GPU_BREADTH if like.device.type == "cuda" else 1
        per_template = self.order * layer.features.columns * n
        blocks = -(-m // max(1, many * _TILE_NUMBERS // per_template))
        self.block = -(-m // blocks)  # of equal size, except the last
        self.templates = [
            templates[:, start : start + self.block].flatten(0, 1).contiguous() for start in range(0, m, self.block)
        ]
        self.linear = None if layer.linear is None else torch.as_tensor(layer.linear).to(like)
        self.matrices = layer.pool.prepare(like)
        pooled_rows, pooled_columns = layer.pool.side
        self._patches = like.new_empty(self.k * n)
        self._values = like.new_empty(self.block * per_template)
        self._half = like.new_empty(self.block * layer.features.columns * pooled_rows * columns * points)
        self._features = like.new_empty(
            0 if self.linear is None else len(self.linear) * pooled_rows * pooled_columns * points
        )
        self._pooled = like.new_empty(layer.features.columns * m * pooled_rows * pooled_columns * points)

    def fits(self, points: int, like: Tensor) -> bool:
        """Whether it was made for this number of points, precision and device."""
        return self.points == points and self._patches.dtype == like.dtype and self._patches.device == like.device

    def __call__(self, maps: Tensor) -> Tensor:
        """Maps (channels, height, width, n) to maps of features, overwritten by the next call."""
        layer, n = self.layer, maps.shape[-1]
        per_patch = layer.positions[0] * layer.positions[1] * n
        patches = self._patches[: self.k * per_patch].view(self.k, per_patch)
        norms = self._unit_patches(maps, patches)
        factor = norms if layer.options.homogeneous else None
        if layer.features.norm_in_product:
            layer.features.coordinate(factor, patches[-1])
            factor = None
        c, m = layer.features.columns, layer.n_templates
        pooled = self._pooled[: c * m * layer.pool.side[0] * layer.pool.side[1] * n].view(c, m, *layer.pool.side, n)
        for i, templates in enumerate(self.templates):
            self._add_block(templates, patches, factor, pooled[:, i * self.block : (i + 1) * self.block])
        return self._linear(pooled.flatten(0, 1))

    def _add_block(self, templates: Tensor, patches: Tensor, factor: Tensor | None, out: Tensor) -> None:
        """Write pooled features of some templates to ``out`` (columns, m, rows, columns, n)."""
        layer, (count, n) = self.layer, (len(templates), patches.shape[1])
        c = layer.features.columns
        values = self._values[: c * count * n].view(c, count, n)
        torch.mm(templates, patches, out=values[0])
        layer.features.activate(values)
        if self.order > 1:
            values = values.view(c, self.order, -1, n).mean(1)
        if layer.scale != 1:
            values.mul_(layer.scale)
        if factor is not None:
            values.mul_(factor)
        maps = values.view(c, out.shape[1], *layer.positions, out.shape[-1])
        for of_values, of_out in zip(maps, out, strict=True):
            if layer.pool.identity:
                of_out.copy_(of_values)
            else:
                half = self._half[: len(of_out) * out.shape[2] * layer.positions[1] * out.shape[-1]]
                pool(self.matrices, of_values, half, of_out)

    def _linear(self, maps: Tensor) -> Tensor:
        if self.linear is None:
            return maps
        out = self._features[: len(self.linear) * maps[0].numel()].view(len(self.linear), *maps.shape[1:])
        torch.mm(self.linear, maps.flatten(1), out=out.flatten(1))
        return out

    def _unit_patches(self, maps: Tensor, out: Tensor) -> Tensor:
        """Write the directions of the patches to the first rows of ``out``; returns the norms, shape (count,)."""
        layer = self.layer
        view = layer.patches(maps)
        if layer.options.normalization == "norm":
            norms = self._norms(maps)
            inverse = _inverse(norms, layer.floor_)
            torch.mul(view, inverse.view(view.shape[3:]), out=out[: layer.d].view(view.shape))
            return norms
        patches = out[: layer.d]
        patches.view(view.shape).copy_(view)
        norms = layer._normalize(patches)
        patches.mul_(_inverse(norms, layer.floor_))
        return norms

    def _norms(self, maps: Tensor) -> Tensor:
        """Norms of all patches from cumulative sums of squares: many times faster than from the patches."""
        size, stride = self.layer.options.size, self.layer.options.stride
        rows, columns = self.layer.positions
        squares = maps.square().sum(0) if len(maps) > 1 else maps[0].square()
        width, n = squares.shape[1:]
        sums = squares.as_strided((size, rows, width, n), (width * n, stride * width * n, n, 1)).sum(0)
        sums = sums.as_strided((size, rows, columns, n), (n, width * n, stride * n, 1)).sum(0)
        return sums.sqrt_().flatten()


def _positions(side: int, options: LayerOptions) -> int:
    return (side - options.size) // options.stride + 1


def spherical_kmeans(units: Tensor, size: int, rng: np.random.Generator) -> np.ndarray:
    """Centres of unit vectors (count, d) by spherical k-means (Dhillon and Modha 2001).

    Returns
    -------
    float64 array, shape (size, d), of unit vectors; all distinct vectors if there are at most ``size``
    """
    if len(units) <= 4 * size:  # only then: finding distinct vectors takes a sort
        distinct = torch.from_numpy(np.unique(units.numpy(), axis=0))
        if len(distinct) <= size:
            return distinct.double().numpy()
    centres = units[torch.from_numpy(rng.choice(len(units), size, replace=False))].clone()
    for _ in range(_KMEANS_ITERATIONS):
        nearest = torch.cat([(block @ centres.T).argmax(1) for block in units.split(_KMEANS_ROWS)])
        sums = torch.zeros_like(centres).index_add_(0, nearest, units)
        lengths = sums.norm(dim=1)
        empty = lengths <= 0
        sums[empty] = units[torch.from_numpy(rng.choice(len(units), int(empty.sum())))]
        lengths[empty] = 1
        centres = sums / lengths[:, None]
    return centres.double().numpy()


def _directions(rng: np.random.Generator, size: int, d: int) -> np.ndarray:
    drawn = rng.standard_normal((size, d))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _inverse(norms: Tensor, floor: float) -> Tensor:
    """1 / norm, and 1 / floor for norms below it: what is multiplied with it is zero where the norm is."""
    return norms.clamp(min=max(floor, torch.finfo(norms.dtype).tiny)).reciprocal_()
