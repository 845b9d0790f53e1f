"""The arithmetic of one layer of patch features, with the working memory of a thread."""

import math

import torch
from torch import Tensor

from orbit.encoders.layer import Layer, several
from orbit.encoders.normalization import reciprocal
from orbit.encoders.pooling import Pool


class LayerRun:
    """A layer with its matrices and its working memory, for one thread.

    Patches and their features are computed in strips of positions along the first axis, which fit the cache.

    Parameters
    ----------
    layer : Layer
    like : tensor of the precision and on the device of the points
    points : points of a tile, at most
    """

    def __init__(self, layer: Layer, like: Tensor, points: int) -> None:
        self.layer, self.points = layer, points
        templates, tile = torch.as_tensor(layer.templates_).to(like), layer.tile(like.device)
        self.order, self.m, self.k = templates.shape
        blocks = [slice(start, min(start + tile.templates, self.m)) for start in range(0, self.m, tile.templates)]
        self.blocks = [(block, templates[:, block].flatten(0, 1).contiguous()) for block in blocks]
        self.linear = None if layer.linear_ is None else torch.as_tensor(layer.linear_).to(like)
        self.pool = Pool(layer.windows_, several(layer.statistics), like)
        rows = layer.positions_.counts[0]
        self.strips = [slice(start, min(start + tile.positions, rows)) for start in range(0, rows, tile.positions)]
        count = tile.positions * math.prod(layer.positions_.counts[1:]) * points
        c, places = layer.features_.columns, math.prod(map(len, layer.windows_)) * points
        self._patches = like.new_empty(self.k * count)
        self._values = like.new_empty(c * self.order * tile.templates * count)
        before = c * self.m if layer.is_linear_ else layer.channels_
        self._pooled = like.new_empty(len(several(layer.statistics)) * before * places)
        self._features = like.new_empty(layer.channels_ * (places if layer.is_linear_ else count))

    def fits(self, points: int, like: Tensor) -> bool:
        """Whether it was made for this number of points, precision and device."""
        return self.points == points and self._patches.dtype == like.dtype and self._patches.device == like.device

    def __call__(self, maps: Tensor) -> Tensor:
        """Maps (channels, *sides, n) to maps of features, overwritten by the next call."""
        layer, positions, n = self.layer, self.layer.positions_, maps.shape[-1]
        maps = positions.padded(maps[layer.part_])
        patches = positions.patches(maps)
        norms = positions.sums(maps.square()).sqrt_() if layer.normalization_ is None else None
        windows, statistics = layer.shape_out_[1:], len(several(layer.statistics))
        columns, channels = (layer.features_.columns, self.m) if layer.is_linear_ else (1, layer.channels_)
        shape = (statistics, columns, channels, *windows, n)
        pooled = self._pooled[: math.prod(shape)].view(shape)
        self.pool.start(pooled)
        for rows in self.strips:
            view = patches.narrow(len(windows) + 1, rows.start, rows.stop - rows.start)
            strip, factor = self._strip(view, None if norms is None else norms[rows])
            for block, templates in self.blocks:
                values = self._values_of(templates, strip, factor).unflatten(-1, view.shape[len(windows) + 1 :])
                if layer.is_linear_:
                    for column, part in enumerate(values):
                        self.pool.add(part, rows.start, pooled[:, column, block])
                else:
                    self.pool.add(self._linear(values.flatten(0, 1)), rows.start, pooled[:, 0])
        pooled = pooled.flatten(0, 2)
        return self._linear(pooled) if layer.is_linear_ else pooled

    def _strip(self, view: Tensor, norms: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Patches as columns, shape (d, count), and the factor of their features."""
        layer = self.layer
        patches = self._patches[: self.k * view[0].numel() // layer.size ** len(layer.windows_)].view(self.k, -1)
        norms = self._unit_patches(view, norms, patches)
        factor = norms if layer.homogeneous else None
        if layer.features_.norm_in_product:
            layer.features_.coordinate(factor, patches[-1])
            factor = None
        return patches, factor

    def _values_of(self, templates: Tensor, patches: Tensor, factor: Tensor | None) -> Tensor:
        """kappa of patches and landmarks, or random features, shape (columns, m, count)."""
        layer, count = self.layer, patches.shape[1]
        c = layer.features_.columns
        values = self._values[: c * len(templates) * count].view(c, -1, count)
        torch.mm(templates, patches, out=values[0])
        layer.features_.activate(values)
        if self.order > 1:
            values = values.view(c, self.order, -1, count).mean(1)
        if layer.scale_ != 1:
            values.mul_(layer.scale_)
        if factor is not None:
            values.mul_(factor)
        return values

    def _linear(self, maps: Tensor) -> Tensor:
        """K_ZZ^(-1/2) times the values in the first axis."""
        if self.linear is None:
            return maps
        out = self._features[: len(self.linear) * maps[0].numel()].view(len(self.linear), *maps.shape[1:])
        torch.mm(self.linear, maps.flatten(1), out=out.flatten(1))
        return out

    def _unit_patches(self, view: Tensor, norms: Tensor | None, out: Tensor) -> Tensor:
        """Write the directions of the patches to the first rows of ``out``; returns the norms, shape (count,)."""
        layer = self.layer
        patches = out[: layer.d_]
        if norms is None:
            patches.view(view.shape).copy_(view)
            norms = layer.normalize(patches)
            patches.mul_(reciprocal(norms, layer.floor_))
            return norms
        torch.mul(view, reciprocal(norms, layer.floor_), out=patches.view(view.shape))
        return norms.flatten()
