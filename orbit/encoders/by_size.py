"""Patches with settings that follow from the shape of the points."""

import math

import numpy as np
import torch
from torch import Tensor

from orbit.core.grid import grid_axes
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, spawn
from orbit.encoders.base import Encoder, NoEncoder
from orbit.encoders.layer import Channels, Layer
from orbit.encoders.normalization import ContrastNormalization, MeanRemoval
from orbit.encoders.patches import Patches
from orbit.encoders.pooling import GaussianPooling, GridPooling
from orbit.groups import Dihedral, Octahedral
from orbit.registry import register

# Series, images and volumes of fewer entries along an axis are compared as they are.
_SHORTEST = {1: 64, 2: 24, 3: 8}

# Images from this side on may be textures, seen in one window; smaller ones are objects, whose parts have places.
_MAYBE_TEXTURES = 48

# Positions of patches along an axis of objects, about; of larger images every second position is taken, or fewer.
_POSITIONS = 24

# Entries of a patch along an axis, landmarks, and the distances between entries that are tried.
_OF_SERIES, _DISTANCES = {9: 64, 25: 32}, (1, 2, 4, 8, 16, 32)
_OF_TEXTURES = 3, (1, 2, 4)

# What is compared of the channels of textures.
_CHANNELS: list[Channels | None] = ["together", "apart", "both"]


@register("encoder", "by_size")
class BySize(Encoder):
    """:class:`~orbit.encoders.patches.Patches` with settings by the shape of the points; small points as they are.

    Series of at least 64 samples: patches of 9 and of 25 samples, 1, 2, 4 and so on up to 32 apart, 64 and 32 landmarks
    each, of the series and of its differences; mean, mean of the positive part and maximum over the whole series,
    standardised. All four count the same.
    Images of 24 to 47 pixels are objects: patches of 5 x 5, 64 landmarks, windows 4 positions apart. Larger ones may be
    textures: patches of 3 x 3 with entries 1, 2 and 4 pixels apart, averaged over their turns and mirror images, 64
    landmarks each, means over the whole image, standardised; or objects, with patches at every second position or
    fewer. Volumes: as textures, with patches of 3 x 3 x 3 and the turns of a cube. Patches are vectors over all
    channels, or of one channel each, or there are both kinds.

    Settings of series were chosen by leave-one-out errors on the training parts of sets that aeon bundles, of
    small images by validation on MNIST, of large ones by leave-one-out errors on the training part of pictures of ten
    materials, of volumes by those of generated shapes.

    Parameters
    ----------
    axes : int >= 1 or None
        As for :class:`~orbit.encoders.patches.Patches`.
    textures : bool or None
        Whether images of at least 48 pixels are textures. None is True; where a run compares groups, it also compares
        the two, by leave-one-out error.
    channels : {"together", "apart", "both"} or None
        As for :class:`~orbit.encoders.layer.Layer`. None is ``together``; of textures a run compares the three, also by
        leave-one-out error.

    Attributes
    ----------
    encoders_ : list of Encoder
        The encoder of the points; for series, those of the points and then those of their differences, for each length
        of patches. Their vectors are side by side, scaled so that all have the same mean squared norm.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((8, 100))
    >>> [[layer.dilation for layer in encoder.layers_] for encoder in BySize().fit(X).encoders_]
    [[1, 2, 4, 8], [1, 2, 4], [1, 2, 4, 8], [1, 2, 4]]
    """

    def __init__(
        self,
        axes: PositiveInt | None = None,
        textures: bool | None = None,
        channels: Channels | None = None,
    ) -> None:
        self.axes = axes
        self.textures = textures
        self.channels = channels

    def for_shape(self, shape: tuple[int, ...]) -> Encoder:
        chosen = self._choice(shape)[0]
        return chosen if isinstance(chosen, NoEncoder) else self

    def compared(self, shape: tuple[int, ...]) -> list[Encoder]:
        if self._axes_of(shape) != 2 or min(shape[:2]) < _MAYBE_TEXTURES:
            return [self]
        channels = _CHANNELS if self.channels is None and math.prod(shape[2:]) > 1 else [self.channels]
        objects = [BySize(self.axes, False, self.channels)] if self.textures is not True else []
        textures = [BySize(self.axes, True, each) for each in channels] if self.textures is not False else []
        return [*objects, *textures] if len(objects + textures) > 1 else [self]

    def is_global(self, shape: tuple[int, ...]) -> bool:
        return self._choice(shape)[0].is_global(shape)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        for encoder in self._choice(shape):
            encoder.check_shape(shape)

    def bytes_per_point(self, itemsize: int) -> int:
        return sum(encoder.bytes_per_point(itemsize) for encoder in self.encoders_) + super().bytes_per_point(itemsize)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        encoders = self._choice(self.shape_in_)
        seeds = spawn(random_state, len(encoders))
        parts = self._parts(torch.from_numpy(np.array(X)), len(encoders))
        self.encoders_ = [
            encoder.fit(part.numpy(), seed) for encoder, part, seed in zip(encoders, parts, seeds, strict=True)
        ]
        self.n_outputs_ = sum(encoder.n_outputs_ for encoder in self.encoders_)

    def _encode(self, points: Tensor) -> Tensor:
        parts, mean = self._parts(points, len(self.encoders_)), self.n_outputs_ / len(self.encoders_)
        vectors = [encoder.encode(part) for encoder, part in zip(self.encoders_, parts, strict=True)]
        # columns are standardised: the mean squared norm of vectors is their length
        return torch.cat([each * math.sqrt(mean / each.shape[1]) for each in vectors], dim=1)

    @staticmethod
    def _parts(points: Tensor, count: int) -> list[Tensor]:
        """What so many encoders take: the points, and the second half the differences of successive samples."""
        return [points] if count == 1 else [each for each in (points, points.diff(dim=1)) for _ in range(count // 2)]

    def _choice(self, shape: tuple[int, ...]) -> list[Encoder]:
        axes = self._axes_of(shape)
        shortest = min(shape[:axes])
        if shortest < _SHORTEST[axes]:
            return [NoEncoder()]
        channels = self.channels or "together"
        if axes == 1:
            return [_of_series(size, length, channels) for length in (shortest, shortest - 1) for size in _OF_SERIES]
        if axes == 2 and (shortest < _MAYBE_TEXTURES or self.textures is False):
            return [_of_objects(shortest, channels)]
        return [_of_textures(shortest, axes, channels)]

    def _axes_of(self, shape: tuple[int, ...]) -> int:
        return min(self.axes or grid_axes(shape), len(shape), max(_SHORTEST))


def _of_series(size: int, length: int, channels: Channels) -> Patches:
    layer = Layer(
        size,
        normalization=ContrastNormalization(),
        n_components=_OF_SERIES[size],
        pooling=GridPooling(1),
        statistics=["mean", "positive", "maximum"],
        dilation=_dilations(size, _DISTANCES, length),
        padding="zero",
        channels=channels,
    )
    return Patches([layer], unit_norm=False, standardize=True, axes=1)


def _of_objects(shortest: int, channels: Channels) -> Patches:
    stride = shortest // _POSITIONS
    layer = Layer(
        stride=stride,
        normalization=MeanRemoval(),
        n_components=64,
        pooling=GaussianPooling(4),
        channels=channels,
    )
    return Patches([layer], axes=2)


def _of_textures(shortest: int, axes: int, channels: Channels) -> Patches:
    layer = Layer(
        _OF_TEXTURES[0],
        stride=2,
        normalization=ContrastNormalization(),
        n_components=64,
        group=Dihedral() if axes == 2 else Octahedral(),
        pooling=GridPooling(1),
        dilation=_dilations(*_OF_TEXTURES, shortest),
        channels=channels,
    )
    return Patches([layer], unit_norm=False, standardize=True, axes=axes)


def _dilations(size: int, distances: tuple[int, ...], length: int) -> list[int]:
    """The distances at which a patch fits into an axis."""
    return [each for each in distances if each * (size - 1) < length]
