"""One layer of patch features: patches, their normalisation, features on the sphere, pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import ParameterError, of_part
from orbit.core.linalg import inverse_root
from orbit.core.params import NonNegativeFloat, PositiveFloat, PositiveInt, check_params
from orbit.encoders.normalization import ContrastNormalization, MeanRemoval, Whitening, reciprocal
from orbit.encoders.pooling import GaussianPooling, GridPooling, MeanPooling, NoPooling, Pooling, pool
from orbit.encoders.sphere import Rectified, SphereMap, has_random_map, landmark_map, random_map
from orbit.groups import Group
from orbit.kernels import ArcCos, Gaussian, Kernel
from orbit.kernels.landmarks import Landmarks, SphericalKMeans, Uniform
from orbit.registry import build

# Numbers in each of the two large arrays of a tile, patches and features. Long rows matter more than fitting in the
# second-level cache: pooling 64 points at once takes a third of the time per point of eight.
_TILE_NUMBERS = 2**20
_GPU_BREADTH = 256

# Limits on the points of a tile, the last axis in the products of pooling.
_FEWEST_POINTS, _MOST_POINTS = 8, 64

# Patches with a norm below this share of the root mean square have no direction, only rounding errors.
_NO_DIRECTION = 1e-5


class Layer(Component):
    """Kernel features of patches, pooled over positions: a layer of :class:`~orbit.encoders.patches.Patches`.

    It maps maps of shape (channels, height, width, n), with n points in the last axis, to maps of features.

    Parameters
    ----------
    size : int >= 1
        Side of the patches.
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
    pooling : Pooling or None
        The windows a_c; None is ``GaussianPooling()``.

    Attributes
    ----------
    templates_ : array, shape (order of the group, landmarks or random vectors, d)
    linear_ : array K_ZZ^(-1/2), shape (rank, landmarks), or None
    shape_in_, shape_out_ : tuple of int
        (channels, height, width) of the maps.
    """

    def __init__(
        self,
        size: PositiveInt = 5,
        stride: PositiveInt = 1,
        normalization: MeanRemoval | None = None,
        kernel: Kernel | Rectified | None = None,
        approx: Literal["nystrom", "rf"] = "nystrom",
        landmarks: Landmarks | None = None,
        n_components: PositiveInt = 32,
        homogeneous: bool = True,
        group: Group | None = None,
        pooling: Pooling | None = None,
    ) -> None:
        self.size = size
        self.stride = stride
        self.normalization = normalization
        self.kernel = kernel
        self.approx = approx
        self.landmarks = landmarks
        self.n_components = n_components
        self.homogeneous = homogeneous
        self.group = group
        self.pooling = pooling

    @classmethod
    def from_config(
        cls,
        normalization: Literal["norm", "mean", "contrast", "whitening"] = "norm",
        contrast: NonNegativeFloat = 0.1,
        whitening: PositiveFloat = 0.1,
        kernel: Literal["exponential", "arccos0", "arccos1", "rectified"] = "exponential",
        beta: PositiveFloat = 4.0,
        threshold: NonNegativeFloat = 0.1,
        landmarks: Literal["kmeans", "uniform"] = "kmeans",
        group: str | None = None,
        pooling: Literal["gaussian", "mean", "grid", "none"] = "gaussian",
        pool_stride: PositiveInt = 3,
        pool_width: PositiveFloat | None = None,
        cells: PositiveInt = 3,
        **others: Any,
    ) -> Self:
        """The layer of the keys that :meth:`Patches.from_config <orbit.encoders.patches.Patches.from_config>` has."""
        normalizations = {
            "norm": None,
            "mean": MeanRemoval(),
            "contrast": ContrastNormalization(contrast),
            "whitening": Whitening(whitening, contrast),
        }
        kernels = {
            "exponential": Gaussian(beta**-0.5),
            "arccos0": ArcCos(0),
            "arccos1": ArcCos(1),
            "rectified": Rectified(threshold),
        }
        poolings = {
            "gaussian": GaussianPooling(pool_stride, pool_width),
            "mean": MeanPooling(pool_stride),
            "grid": GridPooling(cells),
            "none": NoPooling(),
        }
        return cls(
            normalization=normalizations[normalization],
            kernel=kernels[kernel],
            landmarks={"kmeans": SphericalKMeans(), "uniform": Uniform()}[landmarks],
            group=None if group is None else build("group", group),
            pooling=poolings[pooling],
            **others,
        )

    def check(self) -> None:
        check_params(self)
        for name, part in self.get_params(deep=False).items():
            if isinstance(part, Component):
                with of_part(name):
                    part.check()
        kernel = self.kernel
        if isinstance(kernel, Kernel) and not kernel.is_zonal:
            raise ParameterError("kernel", "a kernel of the angle of unit vectors, such as Gaussian or ArcCos", kernel)
        if self.approx == "rf" and not (kernel is None or has_random_map(kernel)):
            raise ParameterError("approx", "'nystrom', because the kernel has no random features", self.approx)
        self._check_landmarks()
        group = self.group
        if group is not None and (group.order is None or not group.permutes((self.size, self.size, 1))):
            expected = "a finite group that reorders the pixels of a patch, or None"
            raise ParameterError("group", expected, group.name)

    def _check_landmarks(self) -> None:
        rule = self.landmarks
        if rule is None:
            return
        if rule.source != "data":
            raise ParameterError("landmarks", "a rule with source='data', for patches", rule)
        if isinstance(self.kernel, Rectified) and rule.uses_kernel:
            raise ParameterError("landmarks", "a rule that needs no kernel, such as Uniform, for Rectified", rule)

    def positions(self, sides: Sequence[int]) -> tuple[int, ...]:
        """Number of patches along each axis of a map."""
        return tuple((side - self.size) // self.stride + 1 for side in sides)

    def sides_out(self, sides: Sequence[int]) -> tuple[int, ...]:
        """Sides of the map of features of a map of these sides."""
        return tuple(map(len, self._windows(sides)))

    def fit(self, maps: Tensor, n_patches: int, rng: np.random.Generator) -> Self:
        """Fit to at most ``n_patches`` random patches of maps."""
        self.shape_in_ = tuple(maps.shape[:-1])
        self.d_ = self.shape_in_[0] * self.size ** len(self.shape_in_[1:])
        self.positions_ = self.positions(self.shape_in_[1:])
        self.windows_ = self._windows(self.shape_in_[1:])
        patches = self._sample(maps, n_patches, rng)
        self.normalization_ = None
        if self.normalization is not None:
            self.normalization_ = clone(self.normalization).fit(patches, self._moved)
        norms = self.normalize(patches)
        self.floor_ = _NO_DIRECTION * float(norms.double().square().mean().sqrt())
        has_direction = norms > self.floor_
        units = (patches[:, has_direction] / norms[has_direction]).T.contiguous()
        self._fit_features(units if len(units) else torch.eye(1, self.d_, dtype=patches.dtype), rng)
        return self

    def _sample(self, maps: Tensor, size: int, rng: np.random.Generator) -> Tensor:
        """Random patches, shape (d, count)."""
        shape = (*self.positions_, maps.shape[-1])
        total = math.prod(shape)
        chosen = rng.choice(total, min(size, total), replace=False)
        places: Any = [torch.from_numpy(each) for each in np.unravel_index(chosen, shape)]
        return self.patches(maps)[..., *places].reshape(self.d_, -1)

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
                self.linear_ = inverse_root(kernel.gram(templates), None, torch.finfo(units.dtype).eps)
        self.templates_ = np.stack([self.features_.augmented(moved) for moved in self._moved(templates)])

    def _fitted_kernel(self, units: Tensor) -> Any:
        kernel = clone(self.kernel) if self.kernel is not None else Gaussian(0.5)
        return kernel.fit(units.numpy(), 0) if isinstance(kernel, Kernel) else kernel

    def _features(self, kernel: Any) -> SphereMap:
        return random_map(kernel) if self.approx == "rf" else landmark_map(kernel)

    @property
    def windowing(self) -> Pooling:
        """:attr:`pooling`, or its default."""
        return self.pooling or GaussianPooling()

    def _windows(self, sides: Sequence[int]) -> list[np.ndarray]:
        return [self.windowing.windows(length) for length in self.positions(sides)]

    def _moved(self, vectors: np.ndarray) -> np.ndarray:
        """Patches (m, d) moved by all elements of the group, shape (order, m, d)."""
        if self.group is None:
            return vectors[None]
        images = vectors.reshape(-1, self.shape_in_[0], self.size, self.size).transpose(0, 2, 3, 1)
        moved = self.group.act(self.group.elements(), np.ascontiguousarray(images))
        return moved.transpose(0, 1, 4, 2, 3).reshape(len(moved), len(vectors), -1)

    @property
    def shape_out_(self) -> tuple[int, ...]:
        channels = len(self.linear_) if self.linear_ is not None else self.features_.columns * self.n_templates_
        return (channels, *map(len, self.windows_))

    @property
    def n_templates_(self) -> int:
        return self.templates_.shape[1]

    def points_at_once(self, device: torch.device) -> int:
        """Points of a tile."""
        breadth = _GPU_BREADTH if device.type == "cuda" else 1
        points = breadth * _TILE_NUMBERS // ((self.d_ + 1) * math.prod(self.positions_))
        return int(min(breadth * _MOST_POINTS, max(_FEWEST_POINTS, points)))

    def patches(self, maps: Tensor) -> Tensor:
        """A view of the patches of maps, shape (channels, size, size, rows, columns, n)."""
        channels, *sides, point = maps.stride()
        shape = (len(maps), *(self.size for _ in sides), *self.positions_, maps.shape[-1])
        return maps.as_strided(shape, (channels, *sides, *(self.stride * side for side in sides), point))

    def normalize(self, patches: Tensor) -> Tensor:
        """Normalise patches (d, count) in place, except for the division by the norm; returns the norms."""
        if self.normalization_ is not None:
            self.normalization_.apply(patches)
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
        rows, columns = layer.positions_
        n, m = rows * columns * points, layer.n_templates_
        templates = torch.as_tensor(layer.templates_).to(like)
        self.order, _, self.k = templates.shape
        many = _GPU_BREADTH if like.device.type == "cuda" else 1
        per_template = self.order * layer.features_.columns * n
        blocks = -(-m // max(1, many * _TILE_NUMBERS // per_template))
        self.block = -(-m // blocks)  # of equal size, except the last
        self.templates = [
            templates[:, start : start + self.block].flatten(0, 1).contiguous() for start in range(0, m, self.block)
        ]
        self.linear = None if layer.linear_ is None else torch.as_tensor(layer.linear_).to(like)
        down, across = (torch.as_tensor(windows).to(like) for windows in layer.windows_)
        self.matrices, self.pooled_sides = (down, across), (len(down), len(across))
        self.pools = not layer.windowing.is_identity
        pooled_rows, pooled_columns = self.pooled_sides
        self._patches = like.new_empty(self.k * n)
        self._values = like.new_empty(self.block * per_template)
        self._half = like.new_empty(self.block * layer.features_.columns * pooled_rows * columns * points)
        self._features = like.new_empty(
            0 if self.linear is None else len(self.linear) * pooled_rows * pooled_columns * points
        )
        self._pooled = like.new_empty(layer.features_.columns * m * pooled_rows * pooled_columns * points)

    def fits(self, points: int, like: Tensor) -> bool:
        """Whether it was made for this number of points, precision and device."""
        return self.points == points and self._patches.dtype == like.dtype and self._patches.device == like.device

    def __call__(self, maps: Tensor) -> Tensor:
        """Maps (channels, height, width, n) to maps of features, overwritten by the next call."""
        layer, n = self.layer, maps.shape[-1]
        per_patch = math.prod(layer.positions_) * n
        patches = self._patches[: self.k * per_patch].view(self.k, per_patch)
        norms = self._unit_patches(maps, patches)
        factor = norms if layer.homogeneous else None
        if layer.features_.norm_in_product:
            layer.features_.coordinate(factor, patches[-1])
            factor = None
        c, m = layer.features_.columns, layer.n_templates_
        pooled = self._pooled[: c * m * math.prod(self.pooled_sides) * n].view(c, m, *self.pooled_sides, n)
        for i, templates in enumerate(self.templates):
            self._add_block(templates, patches, factor, pooled[:, i * self.block : (i + 1) * self.block])
        return self._linear(pooled.flatten(0, 1))

    def _add_block(self, templates: Tensor, patches: Tensor, factor: Tensor | None, out: Tensor) -> None:
        """Write pooled features of some templates to ``out`` (columns, m, rows, columns, n)."""
        layer, (count, n) = self.layer, (len(templates), patches.shape[1])
        c = layer.features_.columns
        values = self._values[: c * count * n].view(c, count, n)
        torch.mm(templates, patches, out=values[0])
        layer.features_.activate(values)
        if self.order > 1:
            values = values.view(c, self.order, -1, n).mean(1)
        if layer.scale_ != 1:
            values.mul_(layer.scale_)
        if factor is not None:
            values.mul_(factor)
        maps = values.view(c, out.shape[1], *layer.positions_, out.shape[-1])
        for of_values, of_out in zip(maps, out, strict=True):
            if not self.pools:
                of_out.copy_(of_values)
            else:
                half = self._half[: len(of_out) * out.shape[2] * layer.positions_[1] * out.shape[-1]]
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
        if layer.normalization_ is None:
            norms = self._norms(maps)
            inverse = reciprocal(norms, layer.floor_)
            torch.mul(view, inverse.view(view.shape[3:]), out=out[: layer.d_].view(view.shape))
            return norms
        patches = out[: layer.d_]
        patches.view(view.shape).copy_(view)
        norms = layer.normalize(patches)
        patches.mul_(reciprocal(norms, layer.floor_))
        return norms

    def _norms(self, maps: Tensor) -> Tensor:
        """Norms of all patches from cumulative sums of squares: many times faster than from the patches."""
        size, stride = self.layer.size, self.layer.stride
        rows, columns = self.layer.positions_
        squares = maps.square().sum(0) if len(maps) > 1 else maps[0].square()
        width, n = squares.shape[1:]
        sums = squares.as_strided((size, rows, width, n), (width * n, stride * width * n, n, 1)).sum(0)
        sums = sums.as_strided((size, rows, columns, n), (n, width * n, stride * n, 1)).sum(0)
        return sums.sqrt_().flatten()
