"""Lengthscales chosen by marginal likelihood: one, or one for each column of the points."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbit.kernels import OperatorKernel
from orbit.kernels.column_scales import ScaledColumns
from orbit.kernels.operator_valued import FieldKernel
from orbit.solvers.evidence import FIRST_NOISE, Covariance, Maximum, differentiated, maximise
from orbit.solvers.left_out import encoded_targets

#: The largest number of columns that get a lengthscale each unless they are asked for: a search takes seconds.
MOST_COLUMNS = 40

#: Rows of the largest kernel matrix of a search, which takes some tenths of a second a step.
MOST_ROWS = 1000

# Rows of the kernel matrix of the first searches, and of the second; the best is then improved with all rows. A common
# lengthscale from which those of the columns start needs fewer.
_START_ROWS, _FEWEST_ROWS, _FEW_ROWS = 33, 100, 200

# The parameters of a search are u_j with the distance sum_j u_j^2 |x_j - z_j|^p, in units of the median lengthscale. A
# column that does not matter has u = 0, where log p is smooth and symmetric; the logarithm of its lengthscale would be
# infinite, and the search take many steps. Starts, the largest, and the smallest that is not taken for zero.
_STARTS = 4.0, 1.0, 0.25
_LARGEST, _OFF = 64.0, 2.0**-16

# The noise of one more search, from the smallest of these, and the gain of log p that it needs. Where columns agree, as
# in spectra, all others may end where everything is noise: of 30 fits to 37 to 105 generated spectra five did, and one
# still did from 1e-3. Not where each column has a lengthscale: the few rows of its first search would be interpolated.
_LITTLE_NOISE, _CLEAR = 1e-4, 1.0

# The smallest u from which a search with more rows starts: at 0 there is no gradient.
_STILL_ON = 1 / 64

# Gains of log p in a step at which the first searches, the second and the last one stop. They, and the smallest u, were
# chosen on Friedman's functions (seeds 0 and 1; 300 to 1,000 points, 4 to 30 columns) and diabetes, the number of rows
# of the second searches, and of those for a start, on tables of benchmarks.gaussian_processes with seeds 100 to 109.
_ROUGH, _FINER, _PRECISE = 0.1, 1e-2, 3e-4

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

    Amplitude and noise are chosen with them. The searches begin with some of the points: for a common lengthscale at
    multiples of the median, and for one of each column at the median and at the common lengthscale. The best of them
    goes on with more points, and then with all, with what is known of the second derivatives.

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
    X = torch.from_numpy(points.astype(np.float64))
    X = X - X.mean(0)
    median = float(kernel.lengthscale_)

    def search(
        step: int, starts: list[np.ndarray], noise: float, precision: float = _ROUGH, metric: np.ndarray | None = None
    ) -> Maximum:
        outputs = Y[::step].reshape(-1, 1) if isinstance(kernel, FieldKernel) else Y[::step]
        return maximise(
            _covariance(kernel, X[::step] / median), outputs, starts, (-_LARGEST, _LARGEST), noise, precision, metric
        )

    first, step, few = (max(1, n_rows // rows) for rows in (_START_ROWS, _FEWEST_ROWS, _FEW_ROWS))
    starts = [np.array([factor]) for factor in _STARTS]
    best, n_starts = search(first if each else step, starts, FIRST_NOISE), len(starts)
    if each:
        best = search(step, [np.ones(X.shape[1]), np.repeat(best.parameters, X.shape[1])], best.noise)
        n_starts += 2
    else:
        other = search(step, starts[-1:], _LITTLE_NOISE)
        best = other if other.log_evidence > best.log_evidence + _CLEAR else best
        n_starts += 1
    for finer in dict.fromkeys((few, 1)):
        start, metric = np.maximum(np.abs(best.parameters), _STILL_ON), best.inverse_hessian * finer / step
        best, step = search(finer, [start], best.noise, _PRECISE if finer == 1 else _FINER, metric), finer
    multiples = np.maximum(np.abs(best.parameters), _OFF) ** (-2 / _scalar(kernel).distance_order)
    value = median * multiples if each else float(median * multiples[0])
    return _with(kernel, multiples), EvidenceChoice("lengthscale", value, best.log_evidence, len(points), n_starts)


def _centred(kernel: Any, y: np.ndarray) -> np.ndarray:
    """Targets of mean zero, as a Gaussian process scales them."""
    Y, _ = encoded_targets(y, together=isinstance(kernel, FieldKernel))
    return Y - Y.mean(0)


def _scalar(kernel: Any) -> Any:
    """The kernel itself, or the scalar kernel that an operator-valued one is made of."""
    return kernel.base_ if isinstance(kernel, OperatorKernel) else kernel


def _covariance(kernel: Any, X: Tensor) -> Covariance:
    """From the parameters u of a search to the kernel matrix of points in units of the lengthscale."""
    scalar = _scalar(kernel)
    points, squares = np.column_stack([X.numpy(), np.ones(len(X))]), np.square(X.numpy())

    def of_squares(u: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        K, slope = scalar.profile_slope(torch.from_numpy(_squares(points[:, :-1] * u)))

        def by_parameters(G: np.ndarray) -> np.ndarray:
            # of sum_ab W_ab u_j^2 (x_aj - x_bj)^2: one product for all columns j and the sums of rows
            W = G * slope.numpy()
            np.fill_diagonal(W, 0)  # of differences 0, where the slopes of some profiles are huge
            by_row = W @ points
            by_column = (W.sum(0) + by_row[:, -1]) @ squares - 2 * (points * by_row).sum(0)[:-1]
            return 2 * u * (by_column if len(u) > 1 else by_column.sum())

        return K.numpy(), by_parameters

    def of_distances(u: Tensor) -> Tensor:
        p = scalar.distance_order
        scaled = X * u.abs() ** (2 / p)
        return scalar.profile(torch.cdist(scaled, scaled, p=p) ** p)

    def of_fields(u: Tensor) -> Tensor:
        n, d = X.shape
        blocks = kernel.blocks((X[:, None] - X).reshape(-1, d), u.abs())
        return blocks.reshape(n, n, d, d).transpose(1, 2).reshape(n * d, n * d)

    if isinstance(kernel, FieldKernel):
        return differentiated(of_fields)
    return of_squares if scalar.distance_order == 2 else differentiated(of_distances)


def _squares(X: np.ndarray) -> np.ndarray:
    """|x - z|^2 of all pairs."""
    squares, ones = np.square(X).sum(1), np.ones(len(X))
    out = np.column_stack([-2 * X, squares, ones]) @ np.column_stack([X, ones, squares]).T
    return np.maximum(out, 0, out=out)


def _with(kernel: Any, multiples: np.ndarray) -> Any:
    """The kernel with multiples of its lengthscale, one or one for each column."""
    if len(multiples) == 1:
        return kernel.rescaled(float(multiples[0]))
    smallest = float(multiples.min())
    if isinstance(kernel, OperatorKernel):
        return kernel.with_base(ScaledColumns(kernel.base_.rescaled(smallest), smallest / multiples))
    return ScaledColumns(kernel.rescaled(smallest), smallest / multiples)
