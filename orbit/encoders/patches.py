"""Layers of patch features, which approximate a compositional kernel with pooling layer by layer."""

import contextlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from orbit.core.errors import InputError, check_each, of_part, of_section, suggestion
from orbit.core.grid import grid_axes
from orbit.core.linalg import eigh, standardization
from orbit.core.params import Parameter, PositiveInt, Range, checked_values
from orbit.core.random import RandomState, generator
from orbit.core.threads import in_threads, threads_for
from orbit.encoders.base import Encoder
from orbit.encoders.layer import Layer
from orbit.encoders.layer_run import LayerRun
from orbit.encoders.pooling import block_means
from orbit.registry import register

# Number of points from which patches are drawn: more only take more time.
_SAMPLE_POINTS = 2000

# Iterations and additional directions of the subspace iteration for principal directions, which need not be exact.
_POWER_ITERATIONS, _MORE_DIRECTIONS = 2, 16

# Limits on the entries of the maps to which a layer, and of the vectors to which principal directions are fitted.
_SAMPLE_NUMBERS, _VECTOR_NUMBERS = 2**25, 2**28

# Points that a thread encodes at once during the fit.
_FIT_ROWS = 64

# Points whose vectors give means and standard deviations: these are of one coordinate each, and need no more.
_STANDARD_POINTS = 500

# Points for each principal direction, at least: with fewer, the last directions are those of the sample only.
_POINTS_PER_DIRECTION = 4


@register("encoder", "patches")
@dataclass(eq=False, repr=False)
class Patches(Encoder):
    """Patches of a series, image or volume as kernel features, pooled over positions, layer by layer.

    Points are series (length,) or (length, channels), images (height, width) or (height, width, channels), or volumes
    (depth, height, width) or (depth, height, width, channels). The patches p_u at positions u are normalised and
    compared by a homogeneous kernel |p| |q| kappa(<p, q> / |p| |q|). With unit vectors Z as landmarks,

        f_u = K_ZZ^(-1/2) |p_u| kappa(Z p_u / |p_u|),      E(x)_c = sum_u a_c(u) f_u,

    where a_c are pooling windows; the map of all E(x)_c is scaled to norm one. With
    all patches as landmarks, before that scaling,

        <E(x), E(z)> = sum_c sum_{u, u'} a_c(u) a_c(u') |p_u| |p_u'| kappa(<p_u, p_u'> / |p_u| |p_u'|),

    a compositional kernel with pooling; with fewer landmarks it is its Nyström
    approximation. The next layer takes patches of the map.

    Parameters
    ----------
    layers : list of Layer or None
        From the point to the last map; None is one ``Layer()``.
    unit_norm : bool
        Whether the last map is scaled to norm one.
    standardize : bool
        Whether every coordinate of the last map first gets mean zero and variance one over the sample; one that is
        constant there becomes zero. Of series and of textures, with one window everywhere, this lowers the error of a
        Gaussian kernel by a tenth.
    reduce : int >= 1 or None
        Length to which the final vectors are reduced, by projection on the leading
        principal directions of the sample (about the origin, which preserves inner
        products best). A few hundred of some thousand directions hold all but a
        thousandth of the squared norm, and kernel values become cheaper in
        proportion. None is no reduction.
    reduce_whitening : float in [0, 1]
        Every coordinate after the reduction is divided by its root mean square, to
        this power, and with ``unit_norm`` vectors are scaled to norm one again: 0
        preserves inner products, 1 gives all directions the same weight.
    n_patches : int >= 1
        Number of patches in the sample to which a layer is fitted.
    axes : int >= 1 or None
        Number of axes of a point before the one that holds channels, if there is one; None is
        :func:`~orbit.core.grid.grid_axes` of its shape.
    differences : bool
        Whether patches are those of the differences of successive entries along the first axis.
    downsample : int >= 1
        Points are replaced by means over blocks of so many entries along each axis first; a remainder at the sides is
        left out. For large pictures of objects, whose parts are larger than a patch.

    Attributes
    ----------
    layers_ : list of Layer
        The fitted layers; of one with several dilations, or channels apart, one for each of them.
    directions_ : array, shape (n_outputs_, length of the maps), or None
    n_outputs_ : int

    References
    ----------
    Mairal, Koniusz, Harchaoui and Schmid, "Convolutional Kernel Networks", 2014.
    Mairal, "End-to-End Kernel Learning with Supervised Convolutional Kernel
    Networks", 2016, section 3. Coates and Ng, "The Importance of Encoding Versus
    Training with Sparse Coding and Vector Quantization", 2011, for ``whitening``
    with ``rectified``.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).random((20, 12, 12))
    >>> encoder = Patches([Layer(n_components=16)]).fit(X, random_state=0)
    >>> encoder.encode(torch.from_numpy(X)).shape  # 3 x 3 windows of 8 x 8 positions
    torch.Size([20, 144])
    """

    layers: list[Layer] | None = None
    unit_norm: bool = True
    reduce: PositiveInt | None = None
    reduce_whitening: Annotated[float, Range(low=0.0, high=1.0)] = 0.0
    n_patches: PositiveInt = 50_000
    axes: PositiveInt | None = None
    standardize: bool = False
    differences: bool = False
    downsample: PositiveInt = 1

    @classmethod
    def from_config(cls, layers: list[dict[str, Any]] | None = None, **values: Any) -> Self:
        """The encoder from keys of its layers and its own.

        Parameters
        ----------
        size : int >= 1
            Entries of a patch along each axis.
        stride : int >= 1
            Positions from one patch to the next.
        normalization : {"norm", "mean", "contrast", "whitening"}
            ``norm``: only the division by the norm, the last step of all four. ``mean``: the mean of the patch is
            subtracted first. ``contrast``: then it is divided by sqrt(var + c^2). ``whitening``: then it is multiplied
            by (C + epsilon I)^(-1/2), where C is the covariance of such patches.
        contrast : float >= 0
            c, as a share of the root mean variance of the patches.
        channel_means : bool
            Whether the mean of each channel is subtracted, or one of all. A layer after the first has one of all unless
            its entry in ``layers`` says otherwise.
        whitening : float > 0
            epsilon.
        kernel : {"exponential", "arccos0", "arccos1", "rectified"}
            kappa(t): exp(beta (t - 1)); the arc-cosine kernel of order 0 or 1. ``rectified`` has the features
            max(+-<u, z> - threshold, 0) of unit vectors z instead of a kernel in closed form: two for each, and no
            K_ZZ.
        beta : float > 0
            Parameter of the exponential kernel, the Gaussian of lengthscale beta^(-1/2) on the sphere.
        threshold : float >= 0
            Threshold of the rectified features.
        approx : {"nystrom", "rf"}
            ``rf``: random features of kappa instead; two for each component with the exponential kernel. For
            ``rectified``: random directions z.
        landmarks : {"kmeans", "uniform"}
            Z: centres of spherical k-means, or patches drawn at random without replacement.
        n_components : int >= 1
            Number of landmarks or of random vectors.
        homogeneous : bool
            Whether features are multiplied by the norm |p_u| of the normalised patch.
        group : str, dict or None
            Name, or name and parameters, of a finite group that reorders the entries of a patch, such as ``dihedral``
            or, for series, ``{name: reflection, axis: 0}``: f_u is averaged over its action on the patch.
        pooling : {"gaussian", "mean", "grid", "none"}
            Windows along each axis. ``gaussian``: exp(-(u - c)^2 / (2 pool_width^2)) with centres ``pool_stride``
            apart. ``mean``: ``pool_stride`` positions. ``grid``: one of ``cells`` parts of the map. The weights of a
            window sum to one.
        pool_stride : int >= 1
            Positions from one window to the next.
        pool_width : float > 0 or None
            In positions; None is pool_stride / sqrt(2).
        cells : int >= 1 or list of int, one for each axis
            Parts of the map along each axis, for ``grid``; 1 is one window everywhere.
        statistics, dilation, blur, padding, channels
            As for :class:`~orbit.encoders.layer.Layer`.
        layers : list of dict, or None
            Several layers: each entry has the values that differ from those above, as in
            ``[{"n_components": 32}, {"size": 3, "n_components": 128}]``. None is one layer.
        """
        keys = Layer.config_parameters()
        shared = checked_values({key: values.pop(key) for key in keys.keys() & values.keys()}, keys, cls.section)
        if layers is None:
            only = Layer.from_config(**shared)
            with of_section(cls.section):
                only.check()
            return cls([only], **values)
        return cls([_layer(i, entry, shared) for i, entry in enumerate(layers)], **values)

    @classmethod
    def config_parameters(cls) -> dict[str, Parameter]:
        return {**Layer.config_parameters(), **super().config_parameters()}

    def check(self) -> None:
        super().check()
        if self.layers is not None and not self.layers:
            raise self.wrong("layers", "at least one layer, or None for a single one")
        check_each(self.section, "layers", self.layers or (), lambda layer: layer.check())

    def check_shape(self, shape: tuple[int, ...]) -> None:
        sides = self._sides(shape)
        if len(shape) - len(sides) > 1:
            raise self._refuse(shape, "series, images or volumes of one to three axes, and one for channels")
        if min(sides) < 1:
            raise self.wrong("downsample", f"at most {min(self._entries(shape))}, for points of shape {shape}")
        for i, layer in enumerate(self._layers()):
            with of_part(self.section, f"layers[{i}]") if len(self._layers()) > 1 else of_section(self.section):
                layer.check_sides(sides)
            sides = layer.sides_out(sides)

    def is_global(self, shape: tuple[int, ...]) -> bool:
        sides = self._sides(shape)
        for layer in self._layers():
            sides = layer.sides_out(sides)
        return math.prod(sides) == 1

    def mean_square(self, sample: Tensor) -> float:
        if self.reduce is not None or not (self.unit_norm or self.standardize):
            return super().mean_square(sample)
        return 1.0 if self.unit_norm else float(np.count_nonzero(self.scale_))

    def _axes(self, shape: tuple[int, ...]) -> int:
        return grid_axes(shape) if self.axes is None else min(self.axes, len(shape))

    def _sides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Sides of the maps that the first layer takes."""
        return tuple(side // self.downsample for side in self._entries(shape))

    def _entries(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Entries of a point along each axis, or of its differences."""
        return (shape[0] - self.differences, *shape[1 : self._axes(shape)])

    def _layers(self) -> list[Layer]:
        return self.layers or [Layer()]

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        rng = generator(random_state)
        points = _some(X, min(_SAMPLE_POINTS, _most(X.shape[1:])), rng)
        self._stages: list[list[Layer]] = []
        self._kept.clear()
        for layer in self._layers():
            points = points[: _most(self._shape_of_maps())]
            maps = self._maps(points)
            parts = itertools.product(layer.parts(len(maps)), layer.by_dilation())
            self._stages.append([clone(each).fit(maps, self.n_patches, rng, part) for part, each in parts])
        self.n_outputs_ = math.prod(self._shape_of_maps())
        if self.standardize:
            vectors = self._maps(points[:_STANDARD_POINTS]).flatten(0, -2).T
            self.mean_, self.scale_ = standardization(vectors.numpy(), float(vectors.abs().max()))
        self.directions_ = None if self.reduce is None else self._principal_directions(X, points, self.reduce, rng)

    @property
    def layers_(self) -> list[Layer]:
        return [layer for stage in self._stages for layer in stage]

    def _shape_of_maps(self) -> tuple[int, ...]:
        """(channels, *sides) after the layers fitted so far."""
        if self._stages:
            shapes = [layer.shape_out_ for layer in self._stages[-1]]
            return (sum(channels for channels, *_ in shapes), *shapes[0][1:])
        sides = self._sides(self.shape_in_)
        return (math.prod(self.shape_in_[len(sides) :]), *sides)

    def _maps(self, points: Tensor) -> Tensor:
        """The maps of the layers fitted so far, shape (channels, *sides, n)."""
        if not self._stages:
            return self._channels_first(points)
        out = points.new_empty(*self._shape_of_maps(), len(points))

        def work(part: tuple[Tensor, Tensor]) -> None:
            with torch.inference_mode():  # of each thread
                for rows, maps in self._tiles(part[0]):
                    part[1][..., rows] = maps

        in_threads(work, zip(points.split(_FIT_ROWS), out.split(_FIT_ROWS, -1), strict=True))
        return out

    def _channels_first(self, points: Tensor) -> Tensor:
        """Points (n, *entries) or (n, *entries, channels), or their differences, as maps (channels, *sides, n)."""
        points = points.diff(dim=1) if self.differences else points
        points = block_means(points, self._axes(self.shape_in_), self.downsample) if self.downsample > 1 else points
        # transposed as a matrix, which torch copies in blocks that fit the cache
        entries = points.flatten(1).T.contiguous().view(*points.shape[1:], len(points))
        has_channels = points.ndim - 1 > self._axes(self.shape_in_)
        return entries.movedim(-2, 0).contiguous() if has_channels else entries[None]

    def _tiles(self, points: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Tiles of points and their maps, which the next tile overwrites."""
        step = min(layer.tile(points.device).points for layer in self.layers_)
        step = min(step, 1 << (len(points) - 1).bit_length())
        stages = self._take_runs(step, points)
        for start in range(0, len(points), step):
            rows = slice(start, min(start + step, len(points)))
            maps = self._channels_first(points[rows])
            for runs in stages:
                found = [run(maps) for run in runs]
                maps = torch.cat(found) if len(found) > 1 else found[0]
            yield rows, maps
        self._kept["runs"].append(stages)

    def _take_runs(self, step: int, like: Tensor) -> list[list[LayerRun]]:
        """The layers with working memory for ``step`` points, which is reused by later calls."""
        kept = self._kept.setdefault("runs", [])
        with contextlib.suppress(IndexError):  # list.pop is atomic: two threads never share working memory
            stages = kept.pop()
            if len(stages) == len(self._stages) and all(run.fits(step, like) for runs in stages for run in runs):
                return stages
        return [[LayerRun(layer, like, step) for layer in stage] for stage in self._stages]

    def _principal_directions(self, X: np.ndarray, points: Tensor, size: int, rng: np.random.Generator) -> np.ndarray:
        """Leading right singular vectors of the vectors of a sample, scaled; sets ``n_outputs_``."""
        wanted = min(size * _POINTS_PER_DIRECTION, _VECTOR_NUMBERS // self.n_outputs_)
        vectors = self._vectors(_some(X, wanted, rng) if wanted > len(points) else points)
        directions = leading_directions(vectors, size, rng)
        self.n_outputs_ = len(directions)
        if self.reduce_whitening:
            scales = (vectors @ directions.T).square().mean(0).sqrt()
            # a direction that the sample hardly has would be noise, enlarged; a sample of zeros has none
            least = 1e-6 * float(scales.max()) or 1.0
            directions /= scales.clamp(min=least)[:, None] ** self.reduce_whitening
        return directions.numpy()

    def _encode(self, points: Tensor) -> Tensor:
        vectors = self._vectors(points)
        if self.directions_ is None:
            return vectors
        reduced = vectors @ torch.as_tensor(self.directions_).to(points).T
        return _unit_rows(reduced) if self.unit_norm and self.reduce_whitening else reduced

    def _vectors(self, points: Tensor) -> Tensor:
        """The maps of all points as rows."""
        out = points.new_empty(len(points), math.prod(self._shape_of_maps()))
        for rows, maps in self._tiles(points):
            out[rows] = self._scaled(maps).T
        return out

    def _scaled(self, maps: Tensor) -> Tensor:
        """Maps as vectors, shape (length, n), in place."""
        vectors = maps.flatten(0, -2)
        if self.standardize:
            mean, scale = (torch.as_tensor(each).to(vectors)[:, None] for each in (self.mean_, self.scale_))
            vectors = vectors.sub_(mean).mul_(scale)
        return _unit_rows(vectors.T).T if self.unit_norm else vectors


def _layer(i: int, entry: dict[str, Any], shared: dict[str, Any]) -> Layer:
    """The layer of entry ``i`` of ``layers`` and of the keys that it does not have."""
    place, known = f"layers[{i}]", Layer.config_parameters()
    if i:  # channels are features of one patch, whose differences matter
        shared = shared | {"channel_means": False, "channels": "together"}
    for key in entry:
        if key not in known:
            hint = suggestion(str(key), known)
            raise InputError(f"encoder.{place}: a layer has no parameter {key!r}{hint} It has {', '.join(known)}.")
    with of_part("encoder", place):
        layer = Layer.from_config(**{**shared, **checked_values(entry, known, "encoder")})
        layer.check()
    return layer


def _most(shape: tuple[int, ...]) -> int:
    """Number of maps of this shape in a sample, at most."""
    return max(1, _SAMPLE_NUMBERS // math.prod(shape))


def _some(X: np.ndarray, size: int, rng: np.random.Generator) -> Tensor:
    """At most ``size`` of the points, at random, as a copy: torch takes no read-only arrays."""
    rows = np.sort(rng.choice(len(X), size, replace=False)) if len(X) > size else slice(None)
    return torch.from_numpy(np.array(X[rows]))


def _unit_rows(vectors: Tensor) -> Tensor:
    """Rows scaled to norm one, in place."""
    norms = vectors.square().sum(1, keepdim=True).sqrt_()
    return vectors.div_(norms.clamp_(min=torch.finfo(norms.dtype).tiny))


def leading_directions(V: Tensor, size: int, rng: np.random.Generator) -> Tensor:
    """Leading right singular vectors of ``V`` (n, d), shape (at most size, d), by subspace iteration from random rows.

    >>> leading_directions(torch.diag(torch.tensor([1.0, 3.0, 2.0])), 1, np.random.default_rng(0)).abs().round()
    tensor([[0., 1., 0.]])
    """
    rows = torch.from_numpy(rng.choice(len(V), min(size + _MORE_DIRECTIONS, *V.shape), replace=False))
    Q = _basis(V[rows].T)
    for _ in range(_POWER_ITERATIONS):
        Q = _basis(V.T @ (V @ Q))
    vectors = eigh(((V @ Q).T @ (V @ Q)).numpy())[1][:, ::-1]
    return (Q @ torch.tensor(vectors[:, :size].copy(), dtype=Q.dtype)).T.contiguous()


def _basis(A: Tensor) -> Tensor:
    """Orthonormal columns that span those of ``A``, shape (d, k)."""
    with threads_for(float(A.numel()) * A.shape[1]):
        return torch.linalg.qr(A)[0]
