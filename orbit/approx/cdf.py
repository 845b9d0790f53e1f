"""Cumulative distribution features: the distribution of projections over the orbit (Mroueh et al. 2015, section 2)."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from orbit import kernels
from orbit.approx.base import AveragedMap
from orbit.approx.bins import (
    BinCounts,
    Bins,
    CompactFeatures,
    QuantileBins,
    UniformBins,
    trapezoid_widths,
    uniform_thresholds,
)
from orbit.approx.frequencies import Automatic, Frequencies
from orbit.approx.landmarks import select
from orbit.approx.sketch import CountSketch
from orbit.core.errors import InputError
from orbit.core.linalg import polar
from orbit.core.lru import Lru
from orbit.core.params import Fraction, PositiveInt
from orbit.core.random import RandomState
from orbit.encoders import Encoder
from orbit.engine import Engine
from orbit.engine.embedding import Embedding, Encode
from orbit.engine.strategy import Task
from orbit.kernels import Gaussian, cdf_theory
from orbit.kernels.landmarks import Uniform
from orbit.orbits import Orbit
from orbit.registry import register
from orbit.representations import scale

# Number of orbit points from which quantiles are estimated: every threshold lies within a few percent of its level.
_QUANTILE_POINTS = 1000

# Number of points whose mean features are the centre of a sketch: its error is a tenth of the spread of the features.
_CENTRE_POINTS = 128

# Distance of a quantile threshold above its projection, as a share of s, so that rounding cannot raise the projection
# above it.
_ABOVE = 1e-6

# Redraws after which drawing templates is given up.
_MAX_DRAWS = 10_000

_MAX_BYTE = 255


@register("approx", "cdf")
@dataclass(eq=False, repr=False)
class CumulativeDistribution(AveragedMap):
    """The distribution function of projections over the orbit, sampled at thresholds, for random templates.

    For templates t_j, orbit elements g_i of weight v_i and thresholds tau_k,

        psi(x) = [ (c_jk / m)^(1/2) sum_i v_i 1[<t_j, g_i x> <= tau_k] ]_{j, k},   2n + 1 columns a template.

    The c_jk are the shares of the thresholds in an integral over tau, so that inner
    products approximate E_t (s - max(<g x, t>, <g' z, t>)) averaged over the orbits:
    ``kernel_``, a falling function of the mean distance of orbit points (Mroueh et al. 2015, Theorem
    1). Projections are sorted into bins by arithmetic or bisection and counted; one
    cumulative sum at the end gives all thresholds.

    The papers move the templates. Here g acts on x, which is the same to rounding for
    every linear action, because ``<g* t, x> = <t, g x>`` for the adjoint g*.

    Parameters
    ----------
    orbit : Orbit or None
        The orbit to average over; None is no averaging.
    n_components : int >= 1
        m, the number of templates.
    n_bins : int >= 1
        n, for 2n + 1 thresholds.
    templates : {"gaussian", "sphere"}
        N(0, I/d) given that |t|^2 < 1 + epsilon, or uniform on the sphere.
    thresholds : {"uniform", "quantile"}
        ``uniform``: tau_k = s k / n for k = -n..n with c = s / n, the paper's; s is
        (1 + epsilon) times the norm of points, and most bins are empty in many
        dimensions, where projections are of size d^(-1/2). ``quantile``: each
        template's own 2n quantiles, the extremes included, of projections of training
        orbit points, and s. With the widths of the trapezoidal rule for c, inner
        products approximate the same integral, with thresholds where projections
        are: their mean over points differs between templates.
    norm : {"each", "radius"}
        ``each`` scales every point to norm one, before the group acts; with an
        encoder, the vector of every moved point. ``radius`` keeps points, or vectors,
        unchanged and scales s by the largest norm of the training points (Mroueh et al. 2015
        Remark 3); projections of longer points may exceed s and all thresholds.
    epsilon : float in (0, 1)
        s is (1 + epsilon) times the norm of the points.
    sketch : int >= 1 or None
        Columns after a :class:`~orbit.approx.sketch.CountSketch`. The (2n + 1) m columns
        then exist for one tile of rows at a time. The mean of the features over some
        training points is subtracted first: it would dominate the error of the sketch,
        and does not change a learner with an intercept.
    drawn : int >= n_components, or None
        The number of templates drawn, of which the first m are used; None is m. Maps of
        one ``random_state`` and ``drawn`` then have nested features, which a curve along
        ``approx.n_components`` computes once.
    frequencies : Frequencies or None
        How templates are drawn; None is ``auto``. ``monte_carlo`` is the paper's.
    encoder : Encoder or None
        Maps a moved point to the vector that the kernel takes; None takes the point itself.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    templates_ : float64 array, shape (n_components, d)
    thresholds_ : float64 array, shape (2n + 1,), or (n_components, 2n + 1) for quantiles
    scale_ : float64 array of the shape of ``thresholds_``
        (c / m)^(1/2).
    sketch_ : CountSketch or None
    centre_ : float64 array, shape ((2n + 1) m,), or None
    orbit_, kernel_ : the fitted parts

    References
    ----------
    Mroueh, Voinea and Poggio, "Learning with Group Invariant Features: A Kernel
    Perspective", 2015, section 2.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> X = np.random.default_rng(0).random((20, 8, 8))
    >>> orb = orbit.Orbit(orbit.build("group", "rotation"), size=16)
    >>> orbit.build("approx", "cdf", orbit=orb, n_components=50, n_bins=10, random_state=0).fit_transform(X).shape
    (20, 1050)
    """

    orbit: Orbit | None = None
    n_components: PositiveInt = 512
    n_bins: PositiveInt = 25
    templates: cdf_theory.Templates = "gaussian"
    thresholds: Literal["uniform", "quantile"] = "uniform"
    norm: Literal["each", "radius"] = "each"
    epsilon: Fraction = 0.1
    sketch: PositiveInt | None = None
    drawn: PositiveInt | None = None
    frequencies: Frequencies | None = None
    encoder: Encoder | None = None
    engine: Engine | None = None
    random_state: RandomState = None

    kernel = None  # fixed: see implied_kernel

    def check(self) -> None:
        super().check()
        if self.drawn is None:
            return
        if self.drawn < self.n_components:
            raise self.wrong("drawn", f"at least approx.n_components={self.n_components}")
        if self.sketch is not None:
            raise InputError(
                "approx.drawn: a sketch is of all columns, so features are not nested; choose approx.drawn=null"
            )

    def compact(self, X, dtype: Literal["auto", "uint8", "float16"] = "auto") -> CompactFeatures:
        """psi(x) stored in one or two bytes per number, and read in batches of full precision.

        With equal orbit weights every entry is a count of at most r, which one byte
        stores exactly up to r = 255: a quarter of the memory of ``transform``. Two bytes
        store any weights with a relative error of 2^-11.

        Parameters
        ----------
        X : array, shape (n, *shape)
        dtype : {"auto", "uint8", "float16"}
            ``auto`` is uint8 where it is exact.

        Raises
        ------
        InputError
            If uint8 would not be exact, or the features are sketched.
        """
        if self.sketch is not None:
            raise InputError("approx.sketch: sketched features are not counts; use transform")
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        weights = self.orbit_.weights_
        exact = len(weights) <= _MAX_BYTE and np.allclose(weights, 1 / len(weights), rtol=1e-12, atol=0)
        if dtype == "uint8" and not exact:
            raise InputError(
                f"uint8 counts need at most {_MAX_BYTE} orbit elements of equal weights, found {len(weights)} of "
                f"weights {weights.min():.3g} to {weights.max():.3g}: change the orbit's size and rule, or use "
                "dtype='float16'"
            )
        use_counts = exact and dtype != "float16"
        unit = len(weights) if use_counts else 1
        codes = np.empty((len(X), self._n_columns), dtype=np.uint8 if use_counts else np.float16)
        # half the budget for a batch in full precision; the engine's tiles have a separate budget
        for rows in self.engine_.row_batches(len(X), 2 * self._n_columns * X.itemsize):
            values = self._averaged(X[rows], np.ones(1)) * unit
            codes[rows] = np.rint(values) if use_counts else values
        return CompactFeatures(codes, (self._column_scale() / unit).astype(X.dtype))

    def implied_kernel(self) -> kernels.CDF:
        """The kernel that inner products of the features approximate."""
        return kernels.CDF(1.0 if self.norm == "each" else "max", self.epsilon, self.templates)

    def n_columns(self, n: int, d: int) -> int:
        return self.sketch or self.n_components * (2 * self.n_bins + 1)

    def fit_bytes(self, n: int, d: int) -> int:
        return (self.frequencies or Automatic()).bytes_drawn(self.drawn or self.n_components, d)

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        self._n_columns = self.n_components * (2 * self.n_bins + 1)
        self._n_features_out = self.sketch or self._n_columns
        if self.drawn is None:
            self._fit_templates(X, random_state)
            return
        whole = copy.copy(self)
        self._cached_whole: CumulativeDistribution | None = whole  # the map of all templates drawn
        whole._cached_embeddings, whole.drawn, whole.n_components = Lru(most=1), None, self.drawn
        whole._fit_map(X, random_state)
        self.sketch_: CountSketch | None = None
        self.centre_: np.ndarray | None = None
        self.thresholds_: np.ndarray = whole.thresholds_
        self.templates_: np.ndarray = whole.templates_[: self.n_components]
        self.scale_: np.ndarray = whole.scale_ * math.sqrt(self.drawn / self.n_components)
        if self.thresholds == "quantile":
            self.thresholds_, self.scale_ = self.thresholds_[: self.n_components], self.scale_[: self.n_components]

    def _fit_templates(self, X: np.ndarray, random_state: int) -> None:
        rng = np.random.default_rng(random_state)
        rule, d = self.frequencies or Automatic(), self.encoder_.n_outputs_
        self._cached_whole = None
        self.templates_ = draw_templates(self.templates, self.n_components, d, self.epsilon, rule, rng)
        if self.thresholds == "uniform":
            self.thresholds_, widths = uniform_thresholds(self.kernel_.range_, self.n_bins)
        else:
            self.thresholds_, widths = self._quantile_thresholds(X, rng)
        self.scale_ = np.sqrt(widths / self.n_components)
        self.sketch_ = self.centre_ = None
        if self.sketch is not None:
            self.centre_ = self._mean_features(X, rng)
            self.sketch_ = CountSketch(self._n_columns, self.sketch, rng)

    def part_of(self) -> tuple[CumulativeDistribution, float] | None:
        whole = self._cached_whole
        return None if whole is None else (whole, math.sqrt(whole.n_components / self.n_components))

    def _embedding(self, dtype: np.dtype) -> Embedding:
        return self._counts(dtype, self.scale_, self.sketch_, self.centre_)

    def _counts(
        self,
        dtype: np.dtype,
        column_scale: np.ndarray,
        sketch: CountSketch | None = None,
        centre: np.ndarray | None = None,
    ) -> BinCounts:
        tensor = self.engine_.tensor
        bins: Bins
        if self.thresholds == "uniform":
            bins = UniformBins(self.n_bins, self.kernel_.range_)
        else:
            bins = QuantileBins(tensor(self.thresholds_, dtype))
        offset = None if centre is None else tensor(centre, dtype)
        return BinCounts(tensor(self.templates_, dtype), bins, tensor(column_scale, dtype), sketch, offset)

    def _averaged(self, X: np.ndarray, column_scale: np.ndarray) -> np.ndarray:
        """Counts averaged over the orbit, without centre or sketch."""
        features, self.route_ = self.engine_.average(self._task(self._counts(X.dtype, column_scale), X))
        return features

    def _task(self, embedding: Embedding, X: np.ndarray, **options: Any) -> Task:
        return super()._task(embedding, X, scaled=_to_norm_one if self._scales_points else None, **options)

    @property
    def _scales_points(self) -> bool:
        """Whether points are scaled, before the group acts."""
        return self.norm == "each" and self.encoder_.is_identity

    @property
    def encode(self) -> Encode:
        """As for every feature map; with an encoder, its vectors are scaled instead of the points."""
        if self.encoder_.is_identity or self.norm == "radius":
            return super().encode
        return lambda points: polar(self.encoder_.encode(points))[1]

    def _column_scale(self) -> np.ndarray:
        shape = self.n_components, 2 * self.n_bins + 1
        return np.broadcast_to(self.scale_, shape).ravel()

    def _quantile_thresholds(self, X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X = X[rng.choice(len(X), min(len(X), _QUANTILE_POINTS), replace=False)]
        X = _to_norm_one(X) if self._scales_points else X
        points = select(
            Uniform("orbit"), X, self.kernel_, self.orbit_, self.engine_, _QUANTILE_POINTS, rng, self.encode
        )
        thresholds = np.empty((self.n_components, 2 * self.n_bins + 1))
        levels, s = np.linspace(0, 1, 2 * self.n_bins), self.kernel_.range_
        for units in self.engine_.row_batches(self.n_components, 4 * len(points) * points.itemsize):
            projections = points @ self.templates_[units].T.astype(points.dtype)
            thresholds[units, :-1] = np.quantile(projections, levels, axis=0).T + _ABOVE * s
        thresholds[:, -1] = s
        return np.minimum(thresholds, s, out=thresholds), trapezoid_widths(thresholds)

    def _mean_features(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        X = X[rng.choice(len(X), min(len(X), _CENTRE_POINTS), replace=False)]
        total = np.zeros(self._n_columns)
        for rows in self.engine_.row_batches(len(X), 2 * self._n_columns * X.itemsize):
            total += self._averaged(X[rows], self.scale_).sum(0, dtype=np.float64)
        return total / len(X)


def _to_norm_one(X: np.ndarray) -> np.ndarray:
    return scale(X, "each", 1.0)


def draw_templates(
    kind: cdf_theory.Templates, size: int, n_features: int, epsilon: float, rule: Frequencies, rng: np.random.Generator
) -> np.ndarray:
    """Templates from N(0, I/d) given |t|^2 < 1 + epsilon, or uniform on the sphere; float64, shape ``(size, d)``.

    >>> T = draw_templates("gaussian", 100, 5, 0.1, Automatic(), np.random.default_rng(0))
    >>> bool(np.square(T).sum(1).max() < 1.1)
    True
    """
    # N(0, I/d) is the spectrum of a Gaussian kernel of lengthscale d^(1/2)
    spectrum = Gaussian(math.sqrt(n_features)).fit(np.zeros((1, n_features)))
    if kind == "sphere":
        drawn = rule.draw(spectrum, size, n_features, rng)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    accepted = np.empty((0, n_features))
    for _ in range(_MAX_DRAWS):
        drawn = rule.draw(spectrum, size - len(accepted), n_features, rng)
        accepted = np.concatenate([accepted, drawn[np.square(drawn).sum(1) < 1 + epsilon]])
        if len(accepted) == size:
            return accepted
    raise InputError(f"{rule.label()} draws no template of norm below {math.sqrt(1 + epsilon):.2f}: choose another")
