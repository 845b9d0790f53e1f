"""The arithmetic of one layer of patch features, with the working memory of a thread."""

import math

import torch
from torch import Tensor

from orbit.encoders.layer import Layer, several
from orbit.encoders.normalization import reciprocal
from orbit.encoders.pooling import Pool, blurred


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
        templates, tile = torch.as_tensor(layer.templates_), layer.tile(like.device)
        self.has_sums = _has_sums(layer, like.dtype)
        if self.has_sums and layer.normalization_ is not None:  # templates without means remove those of patches
            means = templates[..., : layer.d_].mean(-1, keepdim=True)
            templates = torch.cat([templates[..., : layer.d_] - means, templates[..., layer.d_ :]], -1)
        templates = templates.to(like)
        self.order, self.m, self.k = templates.shape
        blocks = [slice(start, min(start + tile.templates, self.m)) for start in range(0, self.m, tile.templates)]
        self.blocks = [(block, templates[:, block].flatten(0, 1).contiguous()) for block in blocks]
        self.linear = None if layer.linear_ is None else torch.as_tensor(layer.linear_).to(like)
        self.means = layer.means(layer.shape_in_[1:], like)
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
        maps = positions.padded(blurred(maps[layer.part_], self.means))
        norms = factors = None
        if self.has_sums:
            maps, norms, factors = self._of_sums(maps)
        patches = positions.patches(maps)
        windows, statistics = layer.shape_out_[1:], several(layer.statistics)
        shape = (len(statistics), layer.features_.columns, self.m, *windows, n)
        pooled = self._pooled[: math.prod(shape)].view(shape)
        self.pool.start(pooled)
        for rows in self.strips:
            view = patches.narrow(len(windows) + 1, rows.start, rows.stop - rows.start)
            strip, norms_ = self._strip(view, *(None if each is None else each[rows] for each in (norms, factors)))
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

    def _of_sums(self, maps: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Maps up to an offset of each point, the norms of their normalised patches, and the factors of directions."""
        layer, sums_of = self.layer, self.layer.positions_.sums
        if layer.normalization_ is None:
            norms = sums_of(maps.square()).sqrt_()
            return maps, norms, reciprocal(norms, layer.floor_)
        offset = maps.flatten(0, -2).mean(0)
        maps = maps - offset
        wide = maps.double()  # float32 sums of squares would lose the contrast of bright patches
        sums, squares = sums_of(wide), sums_of(wide.square_())
        norms, scale = layer.normalization_.of_sums(sums, squares, layer.d_, offset)
        return maps, norms, scale.mul_(reciprocal(norms, layer.floor_))

    def _strip(self, view: Tensor, norms: Tensor | None, factors: Tensor | None) -> tuple[Tensor, Tensor]:
        """Directions of patches as columns, shape (d, count) or (d + 1, count), and the norms, shape (count,).

        With ``factors`` the directions have a mean, which templates do not have.
        """
        strip = self._patches[: self.k * view[0].numel() // self.layer.size ** len(self.layer.windows_)]
        strip = strip.view(self.k, -1)
        patches = strip[: self.layer.d_]
        if norms is not None and factors is not None:
            torch.mul(view, factors, out=patches.view(view.shape))
            return strip, norms.flatten()
        patches.view(view.shape).copy_(view)
        norms = self.layer.normalize(patches)
        patches.mul_(reciprocal(norms, self.layer.floor_))
        return strip, norms

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


def _has_sums(layer: Layer, dtype: torch.dtype) -> bool:
    """Whether norms of patches are those of sums over maps, which take a pass over a map instead of over patches."""
    normalization = layer.normalization_
    return normalization is None or (dtype == torch.float32 and normalization.needs_sums_only)
