"""Lengthscales chosen by marginal likelihood: one, or one for each column of the points."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbit.kernels import OperatorKernel
from orbit.kernels.column_scales import ScaledColumns
from orbit.kernels.operator_valued import FieldKernel
from orbit.solvers.evidence import FIRST_NOISE, Maximum, maximise
from orbit.solvers.left_out import encoded_targets

#: The largest number of columns that get a lengthscale each unless they are asked for: a run of L-BFGS takes seconds.
MOST_COLUMNS = 40

#: Rows of the largest kernel matrix of a search, which takes some tenths of a second a step.
MOST_ROWS = 1000

# Rows of the kernel matrix of the searches for a common lengthscale, and of those for each column; the best is improved
# with all rows.
_FEWEST_ROWS, _FEW_ROWS = 100, 300

# Multiples of the median lengthscale: the starts, and the range, whose upper end switches a column off.
_STARTS = 0.25, 1.0, 4.0
_SMALLEST, _LARGEST = 1 / 64, 2.0**16

# The largest multiple from which the search with all rows starts: a column that few rows have switched off has no
# gradient.
_STILL_ON = 8.0

# Gains of log p at which the searches with few rows and the last one stop.
_ROUGH, _PRECISE = 1e-5, 1e-8

# The share of the largest 1 / lengthscale from which on a column counts as used.
_USED = 0.01


@dataclass(frozen=True)
class EvidenceChoice:
    """Lengthscales that maximise the marginal likelihood.

    Attributes
    ----------
    name : the parameter
    value : float, or float64 array, shape (d,)
    log_evidence : float
        Of the points of the search.
    n_points : their number
    n_starts : from which searches began
    """

    name: str
    value: float | np.ndarray
    log_evidence: float
    n_points: int
    n_starts: int

    def __str__(self) -> str:
        by = f"by marginal likelihood of {self.n_points} points, the best of {self.n_starts} starts"
        if isinstance(self.value, float):
            return f"{self.value:.3g}, {by}"
        used = int((self.value.min() / self.value > _USED).sum())
        return (
            f"{self.value.min():.3g} to {self.value.max():.3g}, one for each of {len(self.value)} columns, of which "
            f"{used} matter, {by}"
        )


def choose_by_evidence(kernel: Any, points: np.ndarray, y: np.ndarray, each: bool) -> tuple[Any, EvidenceChoice | None]:
    """The kernel with the lengthscale, or lengthscales, that maximise the marginal likelihood of some points.

    Amplitude and noise are chosen with them. The searches for a common lengthscale begin with some of the points, at
    multiples of the median; that for a lengthscale of each column at the median, and if its end is poorer than the
    common lengthscale, once more there. The best of them goes on with all points.

    Parameters
    ----------
    kernel : fitted, with the median lengthscale and a profile
    points : array, shape (n, d)
        At most ``MOST_ROWS``, over the outputs of a kernel of vector fields.
    y : their targets, as for ``FeatureMap.fit``
    each : whether each column gets a lengthscale

    Returns
    -------
    kernel, choice : the kernel as it was and None if all targets are equal
    """
    Y = _centred(kernel, y)
    if len(points) < 2 or not Y.any():
        return kernel, None
    n_rows = Y.size if isinstance(kernel, FieldKernel) else len(Y)
    X, few = torch.from_numpy(points.astype(np.float64)), slice(None, None, max(1, n_rows // _FEW_ROWS))
    X = X - X.mean(0)
    median = float(kernel.lengthscale_)

    def search(rows: slice, starts: list[np.ndarray], noise: float, precision: float = _ROUGH) -> Maximum:
        outputs = Y[rows].reshape(-1, 1) if isinstance(kernel, FieldKernel) else Y[rows]
        limits = [(math.log(_SMALLEST), math.log(_LARGEST))] * len(starts[0])
        return maximise(_gram(kernel, X[rows] / median), outputs, starts, limits, noise, precision)

    fewest = slice(None, None, max(1, n_rows // _FEWEST_ROWS))
    best = search(fewest, [np.array([math.log(multiple)]) for multiple in _STARTS], FIRST_NOISE)
    best, n_starts = search(few, [best.parameters], best.noise), len(_STARTS)
    if each:
        common, n_starts = best, n_starts + 1
        best = search(few, [np.zeros(X.shape[1])], common.noise)
        if best.log_evidence < common.log_evidence:
            best, n_starts = search(few, [np.repeat(common.parameters, X.shape[1])], common.noise), n_starts + 1
    start = best.parameters if few.step == 1 else np.minimum(best.parameters, math.log(_STILL_ON))
    best = search(slice(None), [start], best.noise, _PRECISE)
    multiples = np.exp(best.parameters)
    value = median * multiples if each else float(median * multiples[0])
    return _with(kernel, multiples), EvidenceChoice("lengthscale", value, best.log_evidence, len(points), n_starts)


def _centred(kernel: Any, y: np.ndarray) -> np.ndarray:
    """Targets of mean zero, as a Gaussian process scales them."""
    Y, _ = encoded_targets(y, together=isinstance(kernel, FieldKernel))
    return Y - Y.mean(0)


def _gram(kernel: Any, X: Tensor) -> Callable[[Tensor], Tensor]:
    """From logarithms of multiples of the lengthscale to the kernel matrix of points in units of the lengthscale."""
    scalar = kernel.base_ if isinstance(kernel, OperatorKernel) else kernel

    def of_distances(logs: Tensor) -> Tensor:
        return scalar.profile(_powers(X * (-logs).exp(), scalar.distance_order))

    def of_fields(logs: Tensor) -> Tensor:
        n, d = X.shape
        blocks = kernel.blocks((X[:, None] - X).reshape(-1, d) * (-logs).exp())
        return blocks.reshape(n, n, d, d).transpose(1, 2).reshape(n * d, n * d)

    return of_fields if isinstance(kernel, FieldKernel) else of_distances


def _powers(X: Tensor, order: float) -> Tensor:
    """|x - z|_p^p of all pairs, differentiable."""
    if order != 2:
        return torch.cdist(X, X, p=order) ** order
    squares = X.square().sum(1)
    return (squares[:, None] + squares - 2 * X @ X.T).clamp(min=0)


def _with(kernel: Any, multiples: np.ndarray) -> Any:
    """The kernel with multiples of its lengthscale, one or one for each column."""
    if len(multiples) == 1:
        return kernel.rescaled(float(multiples[0]))
    smallest = float(multiples.min())
    if isinstance(kernel, OperatorKernel):
        return kernel.with_base(ScaledColumns(kernel.base_.rescaled(smallest), smallest / multiples))
    return ScaledColumns(kernel.rescaled(smallest), smallest / multiples)
