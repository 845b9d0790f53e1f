"""Patches, and the distribution of values, with settings that follow from the shape of the points."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from torch import Tensor

from orbit.core.grid import grid_axes
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState
from orbit.encoders.base import Encoder, NoEncoder
from orbit.encoders.layer import Channels, Layer, several
from orbit.encoders.normalization import ContrastNormalization, MeanRemoval
from orbit.encoders.patches import Patches
from orbit.encoders.pooling import GaussianPooling, GridPooling
from orbit.encoders.quantiles import Quantiles
from orbit.encoders.slopes import Slopes
from orbit.encoders.union import UnionEncoder
from orbit.groups import Dihedral, Octahedral
from orbit.registry import register

# Series, images and volumes of fewer entries along an axis are compared as they are; series from a smaller number of
# samples on may have patches, too.
_SHORTEST = {1: 64, 2: 24, 3: 8}
_MAYBE_PATCHES = 16

# Images from this side on may be textures, seen in one window; smaller ones are objects, whose parts have places.
_MAYBE_TEXTURES = 48

# Images of objects are seen at this side or more, below twice of it.
_OBJECT_SIDE = 40

# Windows along an axis of objects, about.
_WINDOWS = 6

# Distances between entries of patches of textures: powers of two up to the largest, and to the shorter side over 12.
_FURTHEST, _OF_SIDE = 32, 12

# Positions of patches of textures along the shorter side, of images that have as many at a stride of 2 or more.
_POSITIONS = 72

# What is compared of the channels of textures.
_CHANNELS: tuple[Channels, ...] = "together", "apart", "both"

# Patches that landmarks are fitted to, by axes: of series, with 32 landmarks, a third of the time of 50,000.
_N_PATCHES = {1: 10_000, 2: 50_000, 3: 50_000}

Values = Literal["none", "alone", "beside"]
Series = Literal["patches", "samples", "slopes"]

_EVERYWHERE = GridPooling(1)
_SERIES = [
    Layer(
        size,
        normalization=ContrastNormalization(),
        n_components=32,
        pooling=_EVERYWHERE,
        statistics=["mean", "positive", "share", "maximum"],
        dilation=[1, 2, 4, 8, 16, 32],
        padding="zero",
    )
    for size in (9, 25)
]
_OBJECTS = Layer(3, normalization=MeanRemoval()), Layer(5, normalization=ContrastNormalization())
_TEXTURES = {
    axes: Layer(
        3,
        2,
        ContrastNormalization(),
        n_components=64,
        group=group,
        pooling=_EVERYWHERE,
        dilation=[1, 2, 4],
        blur=0.5,
    )
    for axes, group in ((2, Dihedral()), (3, Octahedral()))
}


@register("encoder", "by_size")
@dataclass(eq=False, repr=False)
class BySize(Encoder):
    """:class:`~orbit.encoders.patches.Patches` with settings by the shape of the points; small points as they are.

    Series of at least 64 samples: patches of 9 and of 25 samples, 1, 2, 4 and so on up to 32 apart, 32 landmarks each,
    of the series and of its differences; all statistics of a :class:`~orbit.encoders.layer.Layer` over the whole
    series, standardised. All four count the same. In place of patches, which may be anywhere, the samples or
    :class:`~orbit.encoders.slopes.Slopes` at their places: of spectra, or of series that begin together.
    Images of 24 to 47 pixels are objects: patches of 3 x 3, which keep their contrast, and of 5 x 5 without it, 32
    landmarks each, about six windows along each axis. Larger ones may be textures: patches of 3 x 3 with entries 1, 2,
    4 and so on up to a twelfth of the shorter side apart, in pictures blurred by half of what is between the entries,
    averaged over their turns and mirror images, 64 landmarks each, means over the whole image, standardised; or
    objects, of which means over blocks leave 40 to 79 pixels along the shorter side. Volumes: as textures, with patches
    of 3 x 3 x 3 up to 4 entries apart, and turns of a cube. Patches are vectors over all channels, or of one channel
    each, or there are both kinds.

    Patches of textures have no mean and no contrast, so that light does not matter, but noise between faint cells
    counts as much as the cells. Where contrast tells classes apart, as of a lesion in tissue, patches keep it. Where
    level or brightness do, :class:`~orbit.encoders.quantiles.Quantiles` of the values are beside patches, or alone.

    What is None below is compared by a run on its training points, by leave-one-out errors: first all but contrast and
    quantiles, then the best with these. Of those whose error is not higher than the lowest by more than 5 % and more
    than chance, the first is taken of: patches without contrast (of series below 64 samples the samples, then patches);
    quantiles alone; patches with contrast, or samples or slopes of series; quantiles beside patches without contrast;
    and beside the others.

    Settings of series were chosen by leave-one-out errors on the training parts of sets that aeon bundles, of
    objects by validation on training images of CIFAR-10 and MNIST, drawings and letters, of textures by leave-one-out
    errors on the training part of pictures of ten materials, of volumes by those of generated shapes.

    Parameters
    ----------
    axes : int >= 1 or None
        As for :class:`~orbit.encoders.patches.Patches`.
    textures : bool or None
        Whether images of at least 48 pixels are textures. None is True; where a run compares groups, it also compares
        the two.
    channels : {"together", "apart", "both"} or None
        As for :class:`~orbit.encoders.layer.Layer`. None is ``together``; of images as textures a run compares the
        three.
    values : {"none", "alone", "beside"} or None
        Quantiles of values: none, in place of all else, or beside it, where both count the same. None is ``none``; of
        series, textures and volumes a run compares the three.
    contrast : bool or None
        Whether patches of textures and volumes keep their contrast. None is False; a run compares the two.
    differences : bool or None
        Whether patches of series are also those of the differences of successive samples. None is True; a run compares
        the two.
    series : {"patches", "samples", "slopes"} or None
        What is compared of series of at least 16 samples. None is ``samples`` below 64, and ``patches``; a run compares
        the three.

    Attributes
    ----------
    encoder_ : Encoder
        The fitted encoder of the points, ``for_shape`` of their shape.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((8, 100))
    >>> [[layer.dilation for layer in part.layers_] for part in BySize().fit(X).encoder_.encoders_]
    [[1, 2, 4, 8], [1, 2, 4], [1, 2, 4, 8], [1, 2, 4]]
    """

    axes: PositiveInt | None = None
    textures: bool | None = None
    channels: Channels | None = None
    values: Values | None = None
    contrast: bool | None = None
    differences: bool | None = None
    series: Series | None = None

    def for_shape(self, shape: tuple[int, ...]) -> Encoder:
        axes = self._axes_of(shape)
        if min(shape[:axes]) < (_MAYBE_PATCHES if axes == 1 else _SHORTEST[axes]):
            return NoEncoder()
        if self.values == "alone":
            return Quantiles(axes=axes)
        found = self._places(shape, axes)
        return UnionEncoder([found, Quantiles(axes=axes)]) if self.values == "beside" else found

    def compared(self, shape: tuple[int, ...]) -> list[Encoder]:
        axes = self._axes_of(shape)
        if axes == 1:
            return self._compared_series(shape[0])
        is_image = axes == 2
        is_open = min(shape[:axes]) >= (_MAYBE_TEXTURES if is_image else _SHORTEST[axes])
        if not is_open or self.values == "alone" or (is_image and self.textures is False):
            return [self]
        compares_channels = is_image and self.channels is None and math.prod(shape[2:]) > 1
        if compares_channels or (is_image and self.textures is None):
            objects = [replace(self, textures=False)] if self.textures is None else []
            channels = _CHANNELS if compares_channels else (self.channels,)
            return [*objects, *(replace(self, textures=True, channels=each) for each in channels)]
        kept = (False, True) if self.contrast is None else (self.contrast,)
        if self.values is not None:
            return [replace(self, contrast=each) for each in kept]
        beside: tuple[Values, ...] = "none", "beside"
        first, *others = [replace(self, contrast=each, values=values) for each in kept for values in beside]
        return [first, BySize(self.axes, values="alone"), *others]

    @property
    def is_linear(self) -> bool:  # type: ignore[override]
        return self.series in ("samples", "slopes") and self.values in (None, "none")

    @property
    def complexity(self) -> int:  # type: ignore[override]
        if self.values == "alone":
            return 2
        is_other = bool(self.contrast) or self.series in ("samples", "slopes")
        if self.values == "beside":
            return 4 + is_other
        return 3 if is_other else int(self.series == "patches")

    def is_global(self, shape: tuple[int, ...]) -> bool:
        return self.for_shape(shape).is_global(shape)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        self.for_shape(shape).check_shape(shape)

    def bytes_per_point(self, itemsize: int) -> int:
        return self.encoder_.bytes_per_point(itemsize)

    def mean_square(self, sample: Tensor) -> float:
        return self.encoder_.mean_square(sample)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        self.encoder_ = self.for_shape(self.shape_in_).fit(X, random_state)
        self.n_outputs_ = self.encoder_.n_outputs_

    def _encode(self, points: Tensor) -> Tensor:
        return self.encoder_.encode(points)

    def _kind(self, length: int) -> Series:
        """What is compared of series, unless a run decides it."""
        return self.series or ("samples" if length < _SHORTEST[1] else "patches")

    def _compared_series(self, length: int) -> list[Encoder]:
        if length < _MAYBE_PATCHES or self.values == "alone":
            return [self]
        both = (True, False) if self.differences is None else (self.differences,)
        if self.series is None and self.values is None:
            patches = [replace(self, series="patches", differences=each) for each in both]
            samples, slopes = (replace(self, series=each) for each in ("samples", "slopes"))
            return [samples, *patches, slopes] if self._kind(length) == "samples" else [*patches, samples, slopes]
        if self._kind(length) == "patches" and len(both) > 1:
            return [replace(self, differences=each) for each in both]
        if self.values is not None:
            return [self]
        plain, beside = (replace(self, values=each) for each in ("none", "beside"))
        return [plain, BySize(self.axes, values="alone"), beside]

    def _places(self, shape: tuple[int, ...], axes: int) -> Encoder:
        """What there is beside quantiles."""
        if axes == 1 and (kind := self._kind(shape[0])) != "patches":
            return Slopes() if kind == "slopes" else NoEncoder()
        parts = self._patches(shape, axes)
        return UnionEncoder([*parts]) if len(parts) > 1 else parts[0]

    def _patches(self, shape: tuple[int, ...], axes: int) -> list[Encoder]:
        shortest = min(shape[:axes])
        if axes == 1:
            both = (False,) if self.differences is False else (False, True)
            fitting = [layer for layer in _SERIES if layer.size < shortest]
            return [self._of(layer, axes, shortest - each, differences=each) for each in both for layer in fitting]
        if axes == 2 and (shortest < _MAYBE_TEXTURES or self.textures is False):
            downsample = max(1, shortest // _OBJECT_SIDE)
            side = shortest // downsample
            placed = [replace(layer, pooling=GaussianPooling(side // _WINDOWS)) for layer in _OBJECTS]
            return [self._of(layer, axes, side, standardize=False, downsample=downsample) for layer in placed]
        layer = _TEXTURES[axes]
        if axes == 2:
            dilation = [2**i for i in range(_FURTHEST.bit_length()) if 2**i <= shortest / _OF_SIDE]
            layer = replace(layer, dilation=dilation, stride=max(2, shortest // _POSITIONS))
        return [self._of(replace(layer, normalization=MeanRemoval()) if self.contrast else layer, axes, shortest)]

    def _of(
        self,
        layer: Layer,
        axes: int,
        length: int,
        standardize: bool = True,
        **others: Any,
    ) -> Patches:
        """Patches with a layer, and those of its dilations whose patches fit into an axis of some length."""
        dilation = [each for each in several(layer.dilation) if each * (layer.size - 1) < length]
        made = replace(layer, dilation=dilation, channels=self.channels or "together")
        return Patches(
            [made],
            unit_norm=not standardize,
            n_patches=_N_PATCHES[axes],
            axes=axes,
            standardize=standardize,
            **others,
        )

    def _axes_of(self, shape: tuple[int, ...]) -> int:
        return min(self.axes or grid_axes(shape), len(shape), max(_SHORTEST))
