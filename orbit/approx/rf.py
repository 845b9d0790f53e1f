"""Random Fourier features, averaged over the orbit (Raj et al. 2017, section 2.2.1)."""

import copy
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

from orbit.approx.base import AveragedMap
from orbit.approx.frequencies import Automatic, Frequencies
from orbit.approx.hadamard import FastProjection, HadamardBlocks
from orbit.approx.waves import add_damped_waves, add_waves
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState
from orbit.encoders import Encoder
from orbit.engine import Engine
from orbit.engine.embedding import Embedding, ProjectedEmbedding, Scratch, add_weighted
from orbit.kernels import Kernel
from orbit.orbits import Orbit
from orbit.registry import register


@register("approx", "rf")
@dataclass(eq=False, repr=False)
class RandomFourier(AveragedMap):
    """Orbit-averaged random Fourier features of a shift-invariant kernel.

    With frequencies w_j from the kernel's spectral distribution and orbit
    elements g_i of weight v_i, the default ``pairs`` are the real and imaginary
    parts of Raj et al. 2017, eq. 7,

        psi(x) = s^(-1/2) [ sum_i v_i cos<w_j, g_i x> ; sum_i v_i sin<w_j, g_i x> ]_j,

    whose inner product averages cos<w_j, g x - g' x'>: a function of the
    difference alone, exact for x = x' and of lower variance than ``offset``,

        psi(x) = (2/s)^(1/2) [ sum_i v_i cos(<w_j, g_i x> + b_j) ]_j,   b_j ~ U[0, 2 pi],

    wherever the kernel value is not small. ``offset`` has half as many columns.

    Parameters
    ----------
    kernel : Kernel or None
        A kernel with a spectrum; None is Gaussian.
    orbit : Orbit or None
        The orbit to average over; None is no averaging.
    n_components : int >= 1
        s, the number of frequencies.
    variant : {"pairs", "offset"}
        ``pairs``: cosine and sine of each frequency, 2 s columns. ``offset``: one cosine with a random phase.
    frequencies : Frequencies or None
        How the frequencies are drawn. None is ``auto``: a Sobol sequence for few
        features, orthogonal directions for many; both are more accurate than
        independent draws at the same cost (docs/choose/frequencies.md).
    encoder : Encoder or None
        Maps a moved point to the vector that the kernel takes; None takes the point itself.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    frequencies_ : float64 array, shape (n_components, d)
    offsets_ : float64 array, shape (n_components,), or None
    orbit_, kernel_ : the fitted parts

    References
    ----------
    Raj et al., "Local Group Invariant Representations via Orbit Embeddings",
    2017, eqs. 6 and 7. Rahimi and Recht, 2007.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> X = np.random.default_rng(0).random((20, 8, 8))
    >>> orb = orbit.Orbit(orbit.build("group", "rotation"), size=16)
    >>> orbit.build("approx", "rf", orbit=orb, n_components=50, random_state=0).fit_transform(X).shape
    (20, 100)
    """

    kernel: Kernel | None = None
    orbit: Orbit | None = None
    n_components: PositiveInt = 512
    variant: Literal["pairs", "offset"] = "pairs"
    frequencies: Frequencies | None = None
    encoder: Encoder | None = None
    engine: Engine | None = None
    random_state: RandomState = None

    def check(self) -> None:
        super().check()
        _, kernel, _ = self._parts()
        rule = self.frequencies or Automatic()
        rule.check_kernel(self._scalar_kernel(kernel))

    def n_columns(self, n: int, d: int) -> int:
        return self.n_components * (2 if self.variant == "pairs" else 1)

    def fit_bytes(self, n: int, d: int) -> int:
        return (self.frequencies or Automatic()).bytes_drawn(self.n_components, d)

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        rng, rule, d = np.random.default_rng(random_state), self.frequencies or Automatic(), self.encoder_.n_outputs_
        self._drawn = rule.draw_factored(self._scalar_kernel(self.kernel_), self.n_components, d, rng)
        self.offsets_ = rng.uniform(0, 2 * math.pi, self.n_components) if self.variant == "offset" else None
        self._n_features_out = self.n_columns(len(X), d)

    @property
    def frequencies_(self) -> np.ndarray:
        return self._drawn.dense() if isinstance(self._drawn, HadamardBlocks) else self._drawn

    def _scalar_kernel(self, kernel: Kernel) -> Kernel:
        """The kernel whose spectrum the frequencies are drawn from."""
        return kernel

    def _embedding(self, dtype: np.dtype) -> Embedding:
        frequencies = self._projection(dtype)
        if self.offsets_ is None:
            return _Pairs(frequencies)
        return _Offset(frequencies, self.engine_.tensor(self.offsets_, dtype))

    def _projection(self, dtype: np.dtype) -> Tensor | FastProjection:
        """The frequencies, as fast factors if their products are cheaper than those with the matrix."""
        drawn = self._drawn
        if isinstance(drawn, HadamardBlocks) and drawn.cost < 2 * drawn.n_features * len(drawn):
            return FastProjection(drawn, self.engine_.tensor(np.zeros(1), dtype))
        return self.engine_.tensor(self.frequencies_, dtype)


class _Waves(ProjectedEmbedding):
    """Base class of both variants: projections on the frequencies."""

    sums_are_features = True
    mirrored = True

    def __init__(self, frequencies: Tensor | FastProjection) -> None:
        self.frequencies, self.units = frequencies, len(frequencies)
        if isinstance(frequencies, FastProjection):
            self.unit_tile = frequencies.block

    def templates(self, units: slice) -> Tensor:
        return (self.frequencies if isinstance(self.frequencies, Tensor) else self.frequencies.dense)[units]

    @property
    def restricts(self) -> bool:
        return isinstance(self.frequencies, Tensor)

    def restricted(self, columns: Tensor) -> Embedding:
        assert isinstance(self.frequencies, Tensor)
        narrow = copy.copy(self)
        narrow.frequencies = self.frequencies.index_select(1, columns)
        return narrow

    def projection_cost(self, n_features: int) -> float:
        if isinstance(self.frequencies, FastProjection):
            return self.frequencies.blocks.cost / self.units
        return super().projection_cost(n_features)

    def project(self, points: Tensor, units: slice, out: Tensor) -> Tensor:
        if isinstance(self.frequencies, FastProjection):
            return self.frequencies(points, units, out)
        return super().project(points, units, out)


class _Pairs(_Waves):
    """Cosines in the first half of the columns, sines in the second."""

    def __init__(self, frequencies: Tensor | FastProjection) -> None:
        super().__init__(frequencies)
        self.width = self.n_outputs = 2 * self.units
        self.scale = self.units**-0.5

    def add_projected(
        self, angles: Tensor, squares: None, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        add_waves(angles, weights * self.scale, *self._halves(total, units), scratch.like(0, angles))

    def add_mirrored(
        self, even: Tensor, odd: Tensor, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        """The sums of cosines and sines of ``even +- odd`` are 2 cos(odd) times those of ``even``."""
        weights = 2 * self.scale * weights
        add_damped_waves(even, odd, weights, *self._halves(total, units), scratch.like(0, even))

    def _halves(self, total: Tensor, units: slice) -> tuple[Tensor, Tensor]:
        return total[:, units], total[:, self.units + units.start : self.units + units.stop]


class _Offset(_Waves):
    """One cosine with a random phase for each frequency."""

    def __init__(self, frequencies: Tensor | FastProjection, offsets: Tensor) -> None:
        super().__init__(frequencies)
        self.offsets = offsets
        self.width = self.n_outputs = self.units
        self.scale = (2 / self.units) ** 0.5

    def add_projected(
        self, angles: Tensor, squares: None, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        add_weighted(total[:, units], angles.add_(self.offsets[units]).cos_(), weights * self.scale)

    def add_mirrored(
        self, even: Tensor, odd: Tensor, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        cosines = even.add_(self.offsets[units]).cos_().mul_(odd.cos_())
        add_weighted(total[:, units], cosines, 2 * self.scale * weights)
