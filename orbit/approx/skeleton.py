"""Random features of compositional kernels, averaged over the orbit (Daniely et al. 2017)."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from orbit.approx.base import AveragedMap
from orbit.core.compiled import gpu_loops, loops
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState
from orbit.engine import Engine
from orbit.engine.embedding import Embedding, Scratch
from orbit.kernels import Kernel, SkeletonKernel
from orbit.kernels.skeletons.activations import Exp
from orbit.kernels.skeletons.sampling import Features, Sampler
from orbit.kernels.skeletons.spaces import CircleSpace, PatchFourier, Space
from orbit.orbits import Orbit
from orbit.registry import register


@register("approx", "skeleton")
@dataclass(eq=False, repr=False)
class RandomSkeleton(AveragedMap):
    """Random features of a skeleton's kernel: products of a few base features, drawn along random paths.

    A draw walks down from the output of the skeleton (Daniely et al. 2017, Algorithm 1): at a node
    it takes l factors with the probability of the activation's degree l, and each
    continues at a random parent. Equal draws are one feature of weight
    sqrt(count / total), and drawing continues until there are ``n_components``
    distinct features, so few columns represent many draws. Averaging over the orbit
    of a group makes the features invariant.

    Parameters
    ----------
    kernel : SkeletonKernel or None
        None is one fully connected rectified node over circles.
    orbit : Orbit or None
        The orbit to average over; None is no averaging.
    n_components : int >= 1
        Number of distinct features. A skeleton of finite degree may have fewer; then
        all those found within ``max_draws`` are used.
    variant : {"pairs", "phase"}
        ``pairs`` has two columns a feature, R cos(theta) and R sin(theta). ``phase`` has
        one, 2^(1/2) R cos(theta + b) with b = 0 or pi/2 (Daniely et al. 2017, comment 1). Features of
        ``base="binary"`` are real: one column in both variants.
    deduplicate : bool
        Whether equal draws share columns. False: exactly ``n_components`` draws, each
        with its own columns.
    bottom : {"paths", "fourier"}
        ``fourier`` stops at the nodes above the inputs, which must be ``exp`` on
        circles, and draws random Fourier features of their whole patches: the
        baseline of Daniely et al. 2017, section 6.
    max_draws : int >= 1
        Largest number of draws per distinct feature.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    features_ : orbit.kernels.skeletons.sampling.Features
        Exponents, counts and the number of draws.
    n_components_ : int
    complexity_ : float
        C(S), the expected number of base factors of a draw (Daniely et al. 2017, eq. 11);
        ``features_.mean_factors`` is the mean of the draws.
    orbit_, kernel_ : the fitted parts

    References
    ----------
    Daniely, Frostig, Gupta and Singer, "Random Features for Compositional Kernels", 2017.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> X = np.random.default_rng(0).random((20, 8, 8))
    >>> layers = [{"kind": "conv", "size": 3, "stride": 2}, {"kind": "full"}]
    >>> kernel = orbit.build("kernel", "skeleton", layers=layers)
    >>> orb = orbit.Orbit(orbit.build("group", "rotation"), size=16)
    >>> phi = orbit.build("approx", "skeleton", kernel=kernel, orbit=orb, n_components=50, random_state=0)
    >>> phi.fit_transform(X).shape
    (20, 100)
    """

    kernel: Kernel | None = None
    orbit: Orbit | None = None
    n_components: PositiveInt = 512
    variant: Literal["pairs", "phase"] = "pairs"
    deduplicate: bool = True
    bottom: Literal["paths", "fourier"] = "paths"
    max_draws: PositiveInt = 200
    engine: Engine | None = None
    random_state: RandomState = None

    default_kernel = SkeletonKernel

    def check(self) -> None:
        super().check()
        _, kernel, _ = self._parts()
        if not isinstance(kernel, SkeletonKernel):
            raise InputError(
                f"approx=skeleton draws features of kernel=skeleton, found {kernel.label()}: change kernel or approx"
            )

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        rng = np.random.default_rng(random_state)
        sampler = self._sampler()
        if self.deduplicate:
            self.features_ = sampler.distinct(self.n_components, rng, self.max_draws * self.n_components)
        else:
            self.features_ = sampler.draw(self.n_components, rng)
        self.n_components_ = len(self.features_)
        self.complexity_ = self.kernel_.skeleton_.complexity()
        self._n_features_out = self.n_components_ * (2 if self._columns() == "pairs" else 1)

    def n_columns(self, n: int, d: int) -> int:
        kernel = self._parts()[1]
        is_real = isinstance(kernel, SkeletonKernel) and kernel.base == "binary"
        return self.n_components * (2 if self.variant == "pairs" and not is_real else 1)

    def fit_bytes(self, n: int, d: int) -> int:
        return 8 * self.n_components  # at least one factor each

    def metrics(self) -> dict[str, float]:
        return super().metrics() | {"features/complexity": self.complexity_}

    def _columns(self) -> Literal["pairs", "phase", "real"]:
        return "real" if self.kernel_.space_.is_real else self.variant

    def _sampler(self) -> Sampler:
        skipped = 0 if self.bottom == "paths" else 1
        return Sampler(self.kernel_.skeleton_, self._alphabet(), skipped, with_phase=self._columns() == "phase")

    def _alphabet(self) -> Space:
        """The space of base features, of single inputs or of whole patches."""
        space, bottom = self.kernel_.space_, self.kernel_.skeleton_.levels[0]
        if self.bottom == "paths":
            return space
        above = self.kernel_.skeleton_.levels[1:]
        on_inputs = any((level.parents < space.n_inputs).any() for level in above)
        if not isinstance(space, CircleSpace) or not isinstance(bottom.activation, Exp) or on_inputs:
            raise InputError(
                "approx.bottom=fourier needs a kernel with kernel.base=circle and activation exp at exactly the nodes "
                "above the inputs: change the kernel or choose approx.bottom=paths"
            )
        return PatchFourier(space, bottom, bottom.activation.c)

    def _embedding(self, dtype: np.dtype) -> Embedding:
        return _BaseProducts(self.features_, self._alphabet(), self._columns(), self.engine_, dtype)


# Tiles of few rows and many columns: the angles of few points stay in a core's cache, and columns are written
# contiguously. Tiles of 256 x 512 take 1.5 times as long, apart from the trigonometry (docs/performance_notes.md).
# On a GPU each tile takes a call, so tiles are larger.
_UNITS, _UNITS_ON_GPU = 2048, 16384


class _BaseProducts(Embedding):
    """Products of base features: sums of a few angles each, then cosine and sine.

    In float32 one compiled loop does both. Otherwise the sums are an ``embedding_bag``,
    which is twice as fast as sparse products of scipy and torch (docs/performance_notes.md). Both add rows of a
    matrix, so points are columns until the angles are complete.
    """

    sums_are_features = True

    def __init__(self, features: Features, space: Space, columns: str, engine: Engine, dtype: np.dtype) -> None:
        self.space, self.columns = space, columns
        self.units = len(features)
        self.unit_tile = _UNITS_ON_GPU if engine.torch_device().type == "cuda" else _UNITS
        self.width = self.n_outputs = self.units * (2 if columns == "pairs" else 1)
        self.exponents = _SparseRows(features.exponents, engine, dtype)
        self.radii = None if features.radii is None else _SparseRows(features.radii, engine, dtype)
        scale = math.sqrt(2) if columns == "phase" else 1.0
        self.weights = engine.tensor(features.weights * scale, dtype)
        self.phases = None
        if features.quarters is not None:
            self.phases = engine.tensor(features.quarters * (math.pi / 2), dtype)

    def prepare(self, points: Tensor) -> Tensor:
        """Angles, and logarithms of radii below them: ``(columns, n)``."""
        parts = [self.space.angles(points)]
        if self.radii is not None:
            parts.append(self.space.log_radii(points))
        return torch.cat(parts, dim=1).T.contiguous()

    def add(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        self._add(points, weight, units, total, scratch, is_zero=False)

    def put(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        self._add(points, weight, units, total, scratch, is_zero=True)

    def _add(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch, is_zero: bool) -> None:
        sizes = weight * self.weights[None, units]  # (1, u), or (n, u) with radii
        if self.radii is not None:
            sizes = self.radii.sums(points[self.space.n_columns :], units).T.exp().mul_(sizes)
        phases = self.weights[:0] if self.phases is None else self.phases[units]
        angles = points[: self.space.n_columns]
        sines = self.units + units.start if self.columns == "pairs" else -1
        parts = angles, *self.exponents.entries(units), phases, sizes.contiguous(), total
        if on_gpu := gpu_loops("orbit.approx.skeleton_gpu", points):
            on_gpu.add_products(*parts, units.start, sines, is_zero)
            return
        if compiled := loops("orbit.approx.skeleton_loops", points):
            compiled.add_products(*(part.numpy() for part in parts), units.start, sines, is_zero)
            return
        shape = points.shape[1], units.stop - units.start
        summed, waves = scratch.matrix(0, *shape), scratch.matrix(1, *shape)
        summed.copy_(self.exponents.sums(angles, units).T)
        if len(phases):
            summed.add_(phases)
        torch.cos(summed, out=waves)
        total[:, units].addcmul_(waves, sizes)
        if sines >= 0:
            total[:, sines : sines + shape[1]].addcmul_(summed.sin_(), sizes)


class _SparseRows:
    """A sparse matrix whose product with a dense matrix is computed as weighted sums of a few rows of the latter."""

    def __init__(self, matrix: sparse.csr_matrix, engine: Engine, dtype: np.dtype) -> None:
        self.starts = np.asarray(matrix.indptr, dtype=np.int64)
        self.values = engine.tensor(matrix.data, dtype)
        device = self.values.device
        self.rows = torch.from_numpy(matrix.indices.astype(np.int64)).to(device)
        self.offsets = torch.from_numpy(self.starts).to(device)

    def entries(self, units: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Starts of some rows of this matrix, the last end included; columns and values of all entries."""
        return self.offsets[units.start : units.stop + 1], self.rows, self.values

    def sums(self, table: Tensor, units: slice) -> Tensor:
        first, last = int(self.starts[units.start]), int(self.starts[units.stop])
        return torch.nn.functional.embedding_bag(
            self.rows[first:last],
            table,
            self.offsets[units] - first,
            mode="sum",
            per_sample_weights=self.values[first:last],
        )
