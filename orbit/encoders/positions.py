"""The patches of a map: which entries each of them has, along any number of axes."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

Padding = Literal["none", "zero", "edge", "reflect", "wrap"]


@dataclass(frozen=True)
class Positions:
    """Patches of ``size`` entries along every axis of a map, ``dilation`` apart.

    Attributes
    ----------
    sides : tuple of int
        Of the map, before padding.
    size, stride, dilation : int
    padding : tuple of str, for each axis
        ``none``: patches lie inside the map. Otherwise there is a patch about every ``stride``-th entry, and entries
        outside the map are zero, those of the edge, mirror images, or those of the other end.
    """

    sides: tuple[int, ...]
    size: int
    stride: int
    dilation: int
    padding: tuple[Padding, ...]

    @property
    def reach(self) -> int:
        """Entries from the first to the last of a patch along an axis."""
        return (self.size - 1) * self.dilation + 1

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of patches along each axis; below one where a patch does not fit in."""
        rooms = (
            side - (self.reach if mode == "none" else 1) for side, mode in zip(self.sides, self.padding, strict=True)
        )
        return tuple(room // self.stride + 1 for room in rooms)

    def padded(self, maps: Tensor) -> Tensor:
        """Maps (channels, *sides, n) with the entries outside that patches have."""
        before = (self.reach - 1) // 2
        for axis, (side, mode) in enumerate(zip(self.sides, self.padding, strict=True), start=1):
            if mode == "none" or self.reach == 1:
                continue
            if mode == "zero":
                padded = maps.new_zeros(*maps.shape[:axis], side + self.reach - 1, *maps.shape[axis + 1 :])
                padded.narrow(axis, before, side).copy_(maps)
                maps = padded
                continue
            entries = np.pad(np.arange(side), (before, self.reach - 1 - before), mode)
            maps = maps.index_select(axis, _tensor(entries, maps))
        return maps

    def patches(self, maps: Tensor) -> Tensor:
        """A view of the patches of padded, contiguous maps, shape (channels, size, ..., *counts, n)."""
        channels, *sides, point = maps.stride()
        shape = (len(maps), *(self.size for _ in sides), *self.counts, maps.shape[-1])
        steps = (*(self.dilation * side for side in sides), *(self.stride * side for side in sides))
        return maps.as_strided(shape, (channels, *steps, point))

    def sums(self, maps: Tensor) -> Tensor:
        """Sums over the entries and channels of each patch of padded maps, shape (*counts, n), one axis at a time."""
        sums = maps.sum(0) if len(maps) > 1 else maps[0]
        for axis, count in enumerate(self.counts):
            sums = self._of_runs(sums, axis)
            every = [slice(None)] * axis
            sums = sums[(*every, slice(0, (count - 1) * self.stride + 1, self.stride))]
        return sums

    def _of_runs(self, entries: Tensor, axis: int) -> Tensor:
        """Sums of ``size`` entries from each on, ``dilation`` apart: those of twice as many are two of those before."""
        total, done, doubled, count = None, 0, entries, 1
        while count <= self.size:
            if self.size & count:
                rest = doubled.narrow(axis, done * self.dilation, doubled.shape[axis] - done * self.dilation)
                total = rest if total is None else _added(total, rest, axis)
                done += count
            if 2 * count <= self.size:
                shift = count * self.dilation
                doubled = _added(doubled, doubled.narrow(axis, shift, doubled.shape[axis] - shift), axis)
            count *= 2
        assert total is not None
        return total

    def take(self, maps: Tensor, chosen: np.ndarray) -> Tensor:
        """Patches of maps by their numbers among all, shape (channels * size ** axes, len(chosen))."""
        shape = (*self.counts, maps.shape[-1])
        places: Any = [_tensor(each, maps) for each in np.unravel_index(chosen, shape)]
        return self.patches(self.padded(maps))[..., *places].reshape(-1, len(chosen))

    def total(self, n: int) -> int:
        """Number of patches of ``n`` maps."""
        return n * math.prod(self.counts)


def _added(one: Tensor, other: Tensor, axis: int) -> Tensor:
    """The sum of the entries along an axis that both have."""
    length = min(one.shape[axis], other.shape[axis])
    return one.narrow(axis, 0, length) + other.narrow(axis, 0, length)


def _tensor(index: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(index).to(like.device)
