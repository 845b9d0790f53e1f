"""Binning of projections, and distribution functions as cumulative sums of the counts."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from orbit.approx.sketch import CountSketch
from orbit.engine.embedding import ProjectedEmbedding, Scratch


def uniform_thresholds(s: float, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """tau_k = s k / n for k = -n..n, and their widths s / n (Mroueh et al. 2015, section 2).

    >>> uniform_thresholds(1.0, 2)[0]
    array([-1. , -0.5,  0. ,  0.5,  1. ])
    """
    thresholds = s * np.arange(-n_bins, n_bins + 1) / n_bins
    return thresholds, np.full(len(thresholds), s / n_bins)


def trapezoid_widths(thresholds: np.ndarray) -> np.ndarray:
    """Widths for an integral of products of distribution functions known at ``thresholds``, shape ``(m, count)``.

    The last threshold of a row is s, the end of the range, where every distribution
    function is one; the one before it is the largest projection expected, above
    which they are one already. Between the others it is the trapezoidal rule.

    >>> trapezoid_widths(np.array([[-0.5, 0.0, 0.5, 2.0]]))
    array([[0.25, 0.5 , 0.25, 1.5 ]])
    """
    gaps = np.diff(thresholds, axis=1)
    widths = np.zeros_like(thresholds)
    widths[:, :-2] += gaps[:, :-1] / 2
    widths[:, 1:-1] += gaps[:, :-1] / 2
    widths[:, -1] = gaps[:, -1]
    return widths


class UniformBins:
    """Sorts projections into bins: bin k holds those above threshold k - 1 and not above threshold k.

    Here bins are uniform, found by arithmetic: <t, x> <= s k / n if and only if k >= n <t, x> / s.

    Attributes
    ----------
    count : number of thresholds; projections above all of them are in bin ``count``
    """

    def __init__(self, n_bins: int, s: float) -> None:
        self.n_bins, self.s = n_bins, s
        self.count = 2 * n_bins + 1

    def __call__(self, projections: Tensor, units: slice) -> Tensor:
        """Bins of ``projections`` (n, units), which may be overwritten: int64, same shape."""
        steps = projections.mul_(self.n_bins / self.s).ceil_()
        return steps.clamp_(-self.n_bins, self.n_bins + 1).add_(self.n_bins).long()


class QuantileBins:
    """:class:`UniformBins` of any widths, by bisection among each template's own thresholds, shape (units, count)."""

    def __init__(self, thresholds: Tensor) -> None:
        self.thresholds = thresholds
        self.count = thresholds.shape[1]

    def __call__(self, projections: Tensor, units: slice) -> Tensor:
        return torch.searchsorted(self.thresholds[units], projections.T.contiguous()).T


Bins = UniformBins | QuantileBins


class BinCounts(ProjectedEmbedding):
    """Weights counted by template and bin; cumulative sums of the counts are distribution functions.

    Parameters
    ----------
    templates : tensor, shape (m, d)
    bins : UniformBins or QuantileBins
    scale : tensor, shape (count,), (m, count) or (1,)
        Factors of the distribution functions.
    sketch, centre
        A sketch of the features minus ``centre``; both or neither are None.
    """

    def __init__(
        self,
        templates: Tensor,
        bins: UniformBins | QuantileBins,
        scale: Tensor,
        sketch: CountSketch | None,
        centre: Tensor | None,
    ) -> None:
        self._templates, self.bins, self.scale = templates, bins, scale
        self.sketch, self.centre = sketch, centre
        self.units, self.bins_a_unit = len(templates), bins.count + 1
        self.width = self.units * self.bins_a_unit
        self.n_outputs = self.units * bins.count if sketch is None else sketch.size

    def templates(self, units: slice) -> Tensor:
        return self._templates[units]

    def add_projected(
        self, projections: Tensor, squares: None, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        """Count projections (r, n, units) of r orbit points with ``weights`` (r,)."""
        counts = total[:, units.start * self.bins_a_unit : units.stop * self.bins_a_unit]
        first = torch.arange(units.stop - units.start, device=total.device).mul_(self.bins_a_unit)
        for one, weight in zip(projections, weights, strict=True):
            index = self.bins(one, units) + first
            counts.scatter_add_(1, index, weight.expand(index.shape))

    def finish(self, total: Tensor) -> Tensor:
        # in place; the last bin, above all thresholds, contributes to no distribution function
        cumulated = total.view(len(total), self.units, self.bins_a_unit).cumsum_(-1)[..., :-1]
        features = (cumulated * self.scale).view(len(total), -1)
        if self.sketch is None:
            return features
        if self.centre is not None:
            features.sub_(self.centre)
        # the sketch takes columns as rows: in the memory of the counts, which are not needed any more
        rows = total.view(-1)[: features.numel()].view(features.shape[1], -1)
        return self.sketch(rows.copy_(features.T).T)


@dataclass(frozen=True)
class CompactFeatures:
    """Features stored as integers or half-precision floats with one scale per column; rows are read in full precision.

    Attributes
    ----------
    codes : uint8 or float16 array, shape (n, D)
    scale : float array, shape (D,)

    Examples
    --------
    >>> held = CompactFeatures(np.array([[0, 4], [2, 4]], dtype=np.uint8), np.array([0.25, 0.5]))
    >>> held[:1]
    array([[0., 2.]])
    """

    codes: np.ndarray
    scale: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows) -> np.ndarray:
        return self.codes[rows] * self.scale

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.scale.nbytes
