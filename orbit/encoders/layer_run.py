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
        self._pooled = like.new_empty(len(several(layer.statistics)) * c * self.m * places)
        self._features = like.new_empty(layer.channels_ * places)
        self.levels = None if layer.levels_ is None else torch.as_tensor(layer.levels_).to(like)

    def fits(self, points: int, like: Tensor) -> bool:
        """Whether it was made for this number of points, precision and device."""
        return self.points == points and self._patches.dtype == like.dtype and self._patches.device == like.device

    def __call__(self, maps: Tensor) -> Tensor:
        """Maps (channels, *sides, n) to maps of features, overwritten by the next call."""
        layer, positions, n = self.layer, self.layer.positions_, maps.shape[-1]
        maps = positions.padded(maps[layer.part_])
        patches = positions.patches(maps)
        norms = positions.sums(maps.square()).sqrt_() if layer.normalization_ is None else None
        windows, statistics = layer.shape_out_[1:], several(layer.statistics)
        shape = (len(statistics), layer.features_.columns, self.m, *windows, n)
        pooled = self._pooled[: math.prod(shape)].view(shape)
        self.pool.start(pooled)
        for rows in self.strips:
            view = patches.narrow(len(windows) + 1, rows.start, rows.stop - rows.start)
            strip, norms_ = self._strip(view, None if norms is None else norms[rows])
            for block, templates in self.blocks:
                values = self._values_of(templates, strip, norms_).unflatten(-1, view.shape[len(windows) + 1 :])
                for column, part in enumerate(values):
                    levels = None if self.levels is None else tuple(self.levels[:, column, block])
                    self.pool.add(part, rows.start, pooled[:, column, block], levels)
        if self.linear is None:
            return pooled.flatten(0, 2)
        pairs = zip(pooled.flatten(1, 2), statistics, strict=True)
        found = [self._linear(self.linear, each) if statistic == "mean" else each for each, statistic in pairs]
        return torch.cat(found) if len(found) > 1 else found[0]

    def _strip(self, view: Tensor, norms: Tensor | None) -> tuple[Tensor, Tensor]:
        """Unit patches as columns, shape (d, count) or (d + 1, count), and their norms."""
        patches = self._patches[: self.k * view[0].numel() // self.layer.size ** len(self.layer.windows_)]
        patches = patches.view(self.k, -1)
        return patches, self._unit_patches(view, norms, patches)

    def _values_of(self, templates: Tensor, patches: Tensor, norms: Tensor) -> Tensor:
        """Similarities, shape (columns, m, count)."""
        c, count = self.layer.features_.columns, patches.shape[1]
        values = self._values[: c * len(templates) * count].view(c, -1, count)
        return self.layer.similarities(templates, patches, norms, values)

    def _linear(self, matrix: Tensor, maps: Tensor) -> Tensor:
        """A matrix times the values in the first axis."""
        out = self._features[: len(matrix) * maps[0].numel()].view(len(matrix), *maps.shape[1:])
        torch.mm(matrix, maps.flatten(1), out=out.flatten(1))
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
