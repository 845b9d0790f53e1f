"""One layer of patch features: patches, their normalisation, features on the sphere, pooling."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import ParameterError, of_part
from orbit.core.linalg import inverse_root
from orbit.core.params import NonNegativeFloat, PositiveFloat, PositiveInt, check_params
from orbit.encoders.normalization import ContrastNormalization, MeanRemoval, Whitening, reciprocal
from orbit.encoders.pooling import (
    GaussianPooling,
    GridPooling,
    MeanPooling,
    NoPooling,
    Pooling,
    Statistic,
    blurred,
)
from orbit.encoders.positions import Padding, Positions
from orbit.encoders.sphere import Rectified, SphereMap, has_random_map, landmark_map, random_map
from orbit.groups import Group
from orbit.kernels import ArcCos, Gaussian, Kernel
from orbit.kernels.landmarks import Landmarks, SphericalKMeans, Uniform
from orbit.registry import build

# Numbers in the larger of the arrays of a tile, patches or features.
_TILE_NUMBERS = 2**19
_GPU_BREADTH = 256

# Points of a tile, the last axis of maps, at most.
_MOST_POINTS = 64

# Quantiles of similarities over patches, between which a share rises from 0 to 1, and the number of these patches.
_LEVELS, _LEVEL_PATCHES = (0.7, 0.9), 5000

# Patches with a norm below this share of the root mean square have no direction, only rounding errors.
_NO_DIRECTION = 1e-5


Channels = Literal["together", "apart", "both"]


class Tile(NamedTuple):
    """Points, positions along the first axis, and templates that a thread takes at once."""

    points: int
    positions: int
    templates: int


@dataclass(eq=False, repr=False)
class Layer(Component):
    """Kernel features of patches, pooled over positions: a layer of :class:`~orbit.encoders.patches.Patches`.

    It maps maps of shape (channels, *sides, n), with one, two or three sides and n points in the last axis, to maps of
    features.

    Parameters
    ----------
    size : int >= 1
        Entries of a patch along each axis.
    stride : int >= 1
        Positions from one patch to the next.
    normalization : MeanRemoval, ContrastNormalization, Whitening or None
        What is done to a patch before the division by its norm; None is nothing.
    kernel : Kernel, Rectified or None
        kappa, a kernel of unit vectors that depends on their angle only; None is ``Gaussian(0.5)``, exp(4 (t - 1)).
        With :class:`~orbit.encoders.sphere.Rectified`, features of unit vectors z without K_ZZ, two for each.
    approx : {"nystrom", "rf"}
        ``rf``: random features of kappa instead; two for each component, but one of an arc-cosine kernel. For
        ``Rectified``: random directions z.
    landmarks : Landmarks or None
        How Z is chosen from patches; None is spherical k-means.
    n_components : int >= 1
        Number of landmarks or of random vectors.
    homogeneous : bool
        Whether features are multiplied by the norm |p_u| of the normalised patch.
    group : Group or None
        A finite group that reorders the entries of a patch, such as ``Dihedral()``: f_u is averaged over its action
        on the patch.
    pooling : Pooling or list of Pooling, one for each axis, or None
        The windows a_c; None is ``GaussianPooling()``.
    statistics : {"mean", "positive", "share", "maximum"} or list of them
        What is taken in a window, several side by side. ``mean``: the weighted mean of the features. The others are of
        the similarities |p_u| kappa to landmarks, without K_ZZ^(-1/2). ``positive``: the weighted mean of what exceeds
        the 0.7-quantile of a similarity over patches. ``share``: the weight of positions above this quantile, rising
        linearly from 0 there to 1 at the 0.9-quantile. ``maximum``: the largest similarity with a weight above zero.
    dilation : int >= 1 or list of int
        Distance between the entries of a patch. With several, each has landmarks of its own, and their features are
        side by side.
    blur : float >= 0
        Entries of a patch are Gaussian means of the map around them, with standard deviation blur times (dilation - 1)
        entries, so that noise between them does not count.
    padding : {"none", "zero", "edge", "reflect", "wrap"}, or list of them, one for each axis
        Entries outside the map; with ``none`` there are patches inside the map only.
    channels : {"together", "apart", "both"}
        ``together``: a patch is a vector over all channels. ``apart``: patches are of one channel each, with landmarks
        of its own, and the features of all channels are side by side, for channels that have little to do with each
        other, such as stains of a microscope. ``both``: both kinds of patches, side by side.

    Attributes
    ----------
    part_ : slice
        The channels that patches are taken from.
    templates_ : array, shape (order of the group, landmarks or random vectors, d)
    linear_ : array K_ZZ^(-1/2), shape (rank, landmarks), or None
    levels_ : array, shape (2, columns, landmarks or random vectors), or None
        The two quantiles of similarities, for the statistics that need them.
    shape_in_, shape_out_ : tuple of int
        (channels, *sides) of the maps.
    """

    size: PositiveInt = 5
    stride: PositiveInt = 1
    normalization: MeanRemoval | None = None
    kernel: Kernel | Rectified | None = None
    approx: Literal["nystrom", "rf"] = "nystrom"
    landmarks: Landmarks | None = None
    n_components: PositiveInt = 32
    homogeneous: bool = True
    group: Group | None = None
    pooling: Pooling | list[Pooling] | None = None
    statistics: Statistic | list[Statistic] = "mean"
    dilation: PositiveInt | list[PositiveInt] = 1
    blur: NonNegativeFloat = 0.0
    padding: Padding | list[Padding] = "none"
    channels: Channels = "together"

    @classmethod
    def from_config(
        cls,
        normalization: Literal["norm", "mean", "contrast", "whitening"] = "norm",
        contrast: NonNegativeFloat = 0.1,
        channel_means: bool = True,
        whitening: PositiveFloat = 0.1,
        kernel: Literal["exponential", "arccos0", "arccos1", "rectified"] = "exponential",
        beta: PositiveFloat = 4.0,
        threshold: NonNegativeFloat = 0.1,
        landmarks: Literal["kmeans", "uniform"] = "kmeans",
        group: str | dict[str, Any] | None = None,
        pooling: Literal["gaussian", "mean", "grid", "none"] = "gaussian",
        pool_stride: PositiveInt = 3,
        pool_width: PositiveFloat | None = None,
        cells: PositiveInt | list[PositiveInt] = 3,
        **others: Any,
    ) -> Self:
        """The layer of the keys that ``Patches.from_config`` has."""
        normalizations = {
            "norm": None,
            "mean": MeanRemoval(channel_means),
            "contrast": ContrastNormalization(contrast, channel_means),
            "whitening": Whitening(whitening, contrast, channel_means),
        }
        kernels = {
            "exponential": Gaussian(beta**-0.5),
            "arccos0": ArcCos(0),
            "arccos1": ArcCos(1),
            "rectified": Rectified(threshold),
        }
        poolings: dict[str, Any] = {
            "gaussian": GaussianPooling(pool_stride, pool_width),
            "mean": MeanPooling(pool_stride),
            "grid": [GridPooling(each) for each in cells] if isinstance(cells, list) else GridPooling(cells),
            "none": NoPooling(),
        }
        named = {"name": group} if isinstance(group, str) else group
        return cls(
            normalization=normalizations[normalization],
            kernel=kernels[kernel],
            landmarks={"kmeans": SphericalKMeans(), "uniform": Uniform()}[landmarks],
            group=None if named is None else build("group", **named),
            pooling=poolings[pooling],
            **others,
        )

    def check(self) -> None:
        check_params(self)
        for name, part in self.get_params(deep=False).items():
            for each in several(part):
                if isinstance(each, Component):
                    with of_part(self.section, name):
                        each.check()
        for name in ("pooling", "statistics", "dilation", "padding"):
            if getattr(self, name) == []:
                raise self.wrong(name, "at least one in a list")
        kernel = self.kernel
        if isinstance(kernel, Kernel) and not kernel.is_zonal:
            raise self.wrong("kernel", "a kernel of the angle of unit vectors, such as Gaussian or ArcCos")
        if self.approx == "rf" and not (kernel is None or has_random_map(kernel)):
            raise self.wrong("approx", "'nystrom', because the kernel has no random features")
        self._check_landmarks()
        group = self.group
        if group is not None and (group.order is None or not group.permutes((self.size, self.size, 1))):
            expected = "a finite group that reorders the entries of a patch, or None"
            raise ParameterError("group", expected, group.name, self.section)

    def _check_landmarks(self) -> None:
        rule = self.landmarks
        if rule is None:
            return
        if rule.source != "data":
            raise self.wrong("landmarks", "a rule with source='data', for patches")
        if isinstance(self.kernel, Rectified) and rule.uses_kernel:
            raise self.wrong("landmarks", "a rule that needs no kernel, such as Uniform, for Rectified")

    def by_dilation(self) -> list[Self]:
        """A layer for each dilation, whose features are side by side."""
        return [clone(self).set_params(dilation=each) for each in several(self.dilation)]

    def parts(self, channels: int) -> list[slice]:
        """Of so many channels those of a patch, for each kind of patches."""
        each = [slice(i, i + 1) for i in range(channels)] if self.channels != "together" and channels > 1 else []
        return each if each and self.channels == "apart" else [slice(0, channels), *each]

    def check_sides(self, sides: tuple[int, ...]) -> None:
        """Raise ``InputError`` if maps of these sides have no patches, or other windows for each dilation."""
        for name, part in (("pooling", self.pooling), ("padding", self.padding)):
            if isinstance(part, list) and len(part) != len(sides):
                raise self.wrong(name, f"one, or one for each of {len(sides)} axes")
        if self.group is not None:
            with of_part(self.section, "group"):
                self.group.check_shape((*(self.size,) * len(sides), 1))  # with channels, as patches have them
        for each in self.by_dilation():
            positions = each.positions(sides)
            if min(positions.counts) < 1:
                name, largest = (
                    ("size", min(sides))
                    if positions.dilation == 1
                    else ("dilation", (min(sides) - 1) // max(1, self.size - 1))
                )
                raise self.wrong(name, f"at most {largest}, for patches of maps with sides {sides}")
        windows = [each.sides_out(sides) for each in self.by_dilation()]
        if any(each != windows[0] for each in windows):
            raise self.wrong("dilation", "one, or a padding or pooling='grid' with equal windows for all")

    def positions(self, sides: Sequence[int]) -> Positions:
        """The patches of maps of these sides, for the only dilation."""
        (dilation,) = several(self.dilation)
        return Positions(tuple(sides), self.size, self.stride, dilation, self._for_axes(self.padding, len(sides)))

    def sides_out(self, sides: Sequence[int]) -> tuple[int, ...]:
        """Sides of the map of features of a map of these sides."""
        return tuple(map(len, self.by_dilation()[0].windows(sides)))

    def windows(self, sides: Sequence[int]) -> list[np.ndarray]:
        """Weights of the positions along each axis in each window, shapes (windows, positions)."""
        poolings = self._for_axes(self.pooling or GaussianPooling(), len(sides))
        return [each.windows(count) for each, count in zip(poolings, self.positions(sides).counts, strict=True)]

    @staticmethod
    def _for_axes(value: Any, axes: int) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, (list, tuple)) else (value,) * axes

    def means(self, sides: Sequence[int], like: Tensor) -> list[Tensor]:
        """Weights of the Gaussian means along each axis, shapes (side, side), for the only dilation; none without."""
        (dilation,) = several(self.dilation)
        width = self.blur * (dilation - 1)
        return [torch.as_tensor(GaussianPooling(1, width).windows(side)).to(like) for side in sides] if width else []

    def fit(self, maps: Tensor, n_patches: int, rng: np.random.Generator, part: slice = slice(None)) -> Self:
        """Fit to at most ``n_patches`` random patches of a part of the channels of maps; for a single dilation."""
        self.part_, maps = part, blurred(maps[part], self.means(maps.shape[1:-1], maps))
        self.shape_in_ = tuple(maps.shape[:-1])
        self.positions_ = self.positions(self.shape_in_[1:])
        self.windows_ = self.windows(self.shape_in_[1:])
        self.d_ = self.shape_in_[0] * self.size ** len(self.windows_)
        total = self.positions_.total(maps.shape[-1])
        patches = self.positions_.take(maps, rng.choice(total, min(n_patches, total), replace=False))
        self.normalization_ = None
        if self.normalization is not None:
            self.normalization_ = clone(self.normalization).fit(patches, self._moved, self.shape_in_[0])
        norms = self.normalize(patches)
        self.floor_ = _NO_DIRECTION * float(norms.double().square().mean().sqrt())
        has_direction = norms > self.floor_
        units = (patches[:, has_direction] / norms[has_direction]).T.contiguous()
        self._fit_features(units if len(units) else torch.eye(1, self.d_, dtype=patches.dtype), rng)
        self.levels_ = self._levels(patches[:, :_LEVEL_PATCHES], norms[:_LEVEL_PATCHES]) if self._has_levels else None
        return self

    @property
    def _has_levels(self) -> bool:
        return not {"positive", "share"}.isdisjoint(several(self.statistics))

    def _levels(self, patches: Tensor, norms: Tensor) -> np.ndarray:
        """Quantiles of similarities over patches (d, count), not divided by their norms."""
        units = patches.new_empty(self.templates_.shape[2], len(norms))
        torch.mul(patches, reciprocal(norms, self.floor_), out=units[: self.d_])
        templates = torch.as_tensor(self.templates_).to(units).flatten(0, 1)
        values = units.new_empty(self.features_.columns, len(templates), len(norms))
        low, high = np.quantile(self.similarities(templates, units, norms, values).double().numpy(), _LEVELS, axis=2)
        return np.stack([low, np.maximum(high, low + np.finfo(units.numpy().dtype).eps * (1 + np.abs(low)))])

    def similarities(self, templates: Tensor, patches: Tensor, norms: Tensor, values: Tensor) -> Tensor:
        """|p| kappa of unit patches (d, count), or (d + 1, count), and templates, shape (columns, m, count).

        ``values`` is working memory, (columns, order * m, count); the last row of d + 1 is written.
        """
        factor = norms if self.homogeneous else None
        if self.features_.norm_in_product:
            self.features_.coordinate(factor, patches[-1])
            factor = None
        torch.mm(templates, patches, out=values[0])
        self.features_.activate(values)
        if len(self.templates_) > 1:
            values = values.unflatten(1, (len(self.templates_), -1)).mean(1)
        if self.scale_ != 1:
            values.mul_(self.scale_)
        return values if factor is None else values.mul_(factor)

    def _fit_features(self, units: Tensor, rng: np.random.Generator) -> None:
        kernel, d = self._fitted_kernel(units), units.shape[1]
        self.features_ = self._features(kernel)
        self.linear_: np.ndarray | None = None
        self.scale_ = 1.0
        if self.approx == "rf":
            random = random_map(kernel)
            templates, self.scale_ = random.draw(self.n_components, d, rng), random.scale(self.n_components)
        else:
            chosen = (self.landmarks or SphericalKMeans()).choose(units.numpy(), kernel, self.n_components, rng)
            lengths = np.linalg.norm(chosen.astype(np.float64), axis=1, keepdims=True)
            templates = chosen / np.maximum(lengths, np.finfo(float).tiny)
            if isinstance(kernel, Kernel):
                self.linear_ = inverse_root(kernel.gram(templates), torch.finfo(units.dtype).eps)
        self.templates_ = np.stack([self.features_.augmented(moved) for moved in self._moved(templates)])

    def _fitted_kernel(self, units: Tensor) -> Any:
        kernel = clone(self.kernel) if self.kernel is not None else Gaussian(0.5)
        return kernel.fit(units.numpy(), 0) if isinstance(kernel, Kernel) else kernel

    def _features(self, kernel: Any) -> SphereMap:
        return random_map(kernel) if self.approx == "rf" else landmark_map(kernel)

    def _moved(self, vectors: np.ndarray) -> np.ndarray:
        """Patches (m, d) moved by all elements of the group, shape (order, m, d)."""
        if self.group is None:
            return vectors[None]
        sides = (self.size,) * len(self.windows_)
        patches = np.moveaxis(vectors.reshape(-1, self.shape_in_[0], *sides), 1, -1)
        moved = self.group.act(self.group.elements(), np.ascontiguousarray(patches))
        return np.moveaxis(moved, -1, 2).reshape(len(moved), len(vectors), -1)

    @property
    def shape_out_(self) -> tuple[int, ...]:
        similarities = self.features_.columns * self.n_templates_
        lengths = [self.channels_ if each == "mean" else similarities for each in several(self.statistics)]
        return (sum(lengths), *map(len, self.windows_))

    @property
    def channels_(self) -> int:
        """Features of a patch."""
        return self.features_.columns * self.n_templates_ if self.linear_ is None else len(self.linear_)

    @property
    def n_templates_(self) -> int:
        return self.templates_.shape[1]

    def tile(self, device: torch.device) -> Tile:
        """How much of the work is done at once, so that it fits the cache."""
        breadth = _GPU_BREADTH if device.type == "cuda" else 1
        numbers, m = breadth * _TILE_NUMBERS, self.n_templates_
        per_template = len(self.templates_) * self.features_.columns
        places, first = math.prod(self.positions_.counts[1:]), self.positions_.counts[0]
        width = max(self.d_ + 1, per_template)
        points = int(min(breadth * _MOST_POINTS, max(1, numbers // (width * places))))
        blocks = -(-m // max(1, numbers // (per_template * places * points)))
        templates = -(-m // blocks)
        width = max(self.d_ + 1, per_template * templates)
        return Tile(points, min(first, max(1, numbers // (width * places * points))), templates)

    def normalize(self, patches: Tensor) -> Tensor:
        """Normalise patches (d, count) in place, except for the division by the norm; returns the norms."""
        return patches.square().sum(0).sqrt_() if self.normalization_ is None else self.normalization_.apply(patches)


def several(value: Any) -> list[Any]:
    """A value, or several, as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
