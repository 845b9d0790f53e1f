"""Second moments of features and targets, sufficient for least squares: in memory, streamed or distributed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from orbit.core.device_matrix import DeviceMatrix, as_tensor, zeros
from orbit.core.distributed import all_reduce, broadcast
from orbit.core.errors import InputError
from orbit.core.linalg import add_outers, add_second_moments, mirror_upper, rows_with_covariance
from orbit.core.threads import in_threads

# Number of rows centred, and converted to float64, at once.
BLOCK_ROWS = 4096

EPS = float(np.finfo(np.float64).eps)
# Products of float32 rows have errors of this share of the mean square norm of the rows.
FLOAT32_ERROR = 1e-8

# Rows that a thread centres at once.
_FILLED_ROWS = 128

# "both": features and targets, for a fitted intercept; "targets": the intercept is their mean; "none": no intercept.
Centering = Literal["both", "targets", "none"]


@dataclass(frozen=True)
class System:
    """Moments of n weighted rows about their centre; predictions are ``y_offset + (x - x_offset) W``.

    Attributes
    ----------
    n : number of rows
    A, cross, power : X^T X / n, shape (F, F), where X is, X^T Y / n, shape (F, p), and Y^T Y / n, shape (p, p)
    x_offset, y_offset : the centre, shapes (F,) and (p,)
    fit_intercept : whether the intercept is a free parameter
    rounding : rounding error of the moments, as a share of the mean squares
    """

    n: int
    A: Any
    cross: np.ndarray
    power: np.ndarray
    x_offset: np.ndarray
    y_offset: np.ndarray
    fit_intercept: bool
    rounding: float

    @classmethod
    def from_rows(
        cls, X: Any, Y: np.ndarray, weights: np.ndarray | None, centering: Centering, precise: bool
    ) -> System:
        """The moments of features, shape (n, F), float64 targets, shape (n, p), and weights, shape (n,)."""
        moments = Moments(precise)
        for start in range(0, len(X), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            moments.add(X[rows], Y[rows], None if weights is None else weights[rows])
        return moments.system(centering)


class CentredRows:
    """Centred rows times the square roots of their weights, computed on demand.

    Parameters
    ----------
    X, Y : features, shape (n, F), an array or on a device, and float64 targets, shape (n, p)
    weights : array with a mean of one, shape (n,), or None
    centering : see :data:`Centering`
    precise : bool
        Whether rows are in float64 also if X is in float32.

    Attributes
    ----------
    x_offset, y_offset : the centre, shapes (F,) and (p,)
    Y : centred targets times the square roots of the weights
    root : the square roots of the weights, shape (n, 1)
    is_centred : whether features are centred too
    """

    def __init__(
        self, X: Any, Y: np.ndarray, weights: np.ndarray | None, centering: Centering, precise: bool = True
    ) -> None:
        n, self.X = len(X), X
        w = np.ones(n) if weights is None else weights
        self.is_centred = centering == "both"
        self.x_offset = _mean(X, weights) if self.is_centred else np.zeros(X.shape[1])
        self.y_offset = w @ Y / n if centering != "none" else np.zeros(Y.shape[1])
        self.dtype = np.dtype(np.float64) if precise else X.dtype
        self.root = np.sqrt(w)[:, None]
        self.Y = (Y - self.y_offset) * self.root

    def scaled(self, columns: slice = slice(None), out: np.ndarray | None = None) -> Any:
        """Centred and weighted features in the given columns, shape (n, columns); ``out`` is an array for them."""
        part, offset, root = self.X[:, columns], self.x_offset[columns].astype(self.dtype), self.root.astype(self.dtype)
        if isinstance(part, DeviceMatrix):
            return (part.astype(self.dtype, copy=False) - offset) * root
        scaled, weighted = np.empty(part.shape, self.dtype) if out is None else out, bool((root != 1).any())

        def fill(start: int) -> None:
            rows = slice(start, start + _FILLED_ROWS)
            np.subtract(part[rows], offset, out=scaled[rows])
            if weighted:
                scaled[rows] *= root[rows]

        in_threads(fill, range(0, len(part), _FILLED_ROWS))
        return scaled

    def centred_products(self, products: Any) -> Any:
        """Inner products of the centred and weighted rows, in place, from those of the rows, shape (n, n).

        If features are centred, the products may be those of the rows less any one vector.
        """
        if self.is_centred:
            weights = np.square(self.root[:, 0]) / len(products)
            with_mean = products @ weights
            products -= with_mean[:, None]
            products += weights @ with_mean - with_mean
        products *= self.root
        products *= self.root.T
        return products

    def tiles(self) -> Iterator[tuple[slice, Any]]:
        """Slices that cover all columns, each with its centred and weighted features, which the next ones overwrite."""
        d = self.X.shape[1]
        if isinstance(self.X, DeviceMatrix):
            for start in range(0, d, BLOCK_ROWS):
                yield (columns := slice(start, start + BLOCK_ROWS)), self.scaled(columns)
            return
        buffer = np.empty(len(self.X) * min(d, BLOCK_ROWS), self.dtype)  # for all tiles, so that pages are mapped once
        for start in range(0, d, BLOCK_ROWS):
            columns = slice(start, min(start + BLOCK_ROWS, d))
            shape = len(self.X), columns.stop - columns.start
            yield columns, self.scaled(columns, buffer[: math.prod(shape)].reshape(shape))


class Moments:
    """Sums over a stream of batches, in d (d + k) float64 numbers for a stream of any length.

    Products of a batch are taken in its own precision unless ``precise`` (float32 is
    twice as fast) and accumulated in float64. All sums are about the mean of the first
    batch, because invariant features vary little about their mean.

    Parameters
    ----------
    precise : bool
        Whether the products are taken in float64 too.
    shared : bool
        Whether all processes of a job add to the sums. They then use the shift of the first.

    Attributes
    ----------
    n : int
        Rows so far whose weight is not zero.
    weight : float
        Sum of their weights.
    rounding : float
        Rounding error of the sums, as a share of the mean squares.
    """

    rounding: float

    def __init__(self, precise: bool = False, shared: bool = False) -> None:
        self.precise, self.shared = precise, shared
        self.n = 0
        self.weight = 0.0
        self._sums: tuple[Any, ...] | None = None

    def add(self, X: Any, Y: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        """Add a batch: ``X``, shape (m, d); ``Y``, shape (m, k), float64; weights, shape (m,)."""
        if self._sums is None:
            self._begin(X, Y)
        xx, xy, yy, sum_x, sum_y = self._sums  # type: ignore[misc]
        w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        root = np.sqrt(w)[:, None]
        centred = X - (self.x_shift if self.precise else self.x_shift.astype(X.dtype))
        if sample_weight is not None:
            centred *= root.astype(centred.dtype)
        targets = (Y - self.y_shift) * root
        add_second_moments(xx, centred)
        xy += centred.T @ targets.astype(centred.dtype)
        yy += targets.T @ targets
        sum_x += (centred.T @ root.astype(centred.dtype))[:, 0]
        sum_y += (targets * root).sum(0)
        self.n += int(np.count_nonzero(w))
        self.weight += float(w.sum())

    def all_reduce(self) -> None:
        """Sum the moments of all processes of a job."""
        assert self._sums is not None
        counts = np.array([self.n, self.weight])
        all_reduce(counts, *(as_tensor(each) for each in self._sums))
        self.n, self.weight = int(counts[0]), float(counts[1])

    def system(self, centering: Centering = "both") -> System:
        """The moments about their centre. Ends the stream: its memory is reused.

        Raises
        ------
        InputError
            If all weights are 0.
        """
        if self.weight == 0 or self._sums is None:
            raise InputError("sample weights: expected some above 0, all of the stream's are 0")
        A, cross, power, sum_x, sum_y = self._sums
        self._sums = None
        x, y = sum_x / self.weight, sum_y / self.weight  # means about the shifts
        x_mean, y_mean = self.x_shift + x, self.y_shift + y
        A /= self.weight
        if centering == "both":
            add_outers(A, x[:, None], [-1.0])
        else:
            add_outers(A, np.stack([x, x_mean], axis=1), [-1.0, 1.0])
        cross, power = cross / self.weight - x[:, None] * y, power / self.weight - np.outer(y, y)
        if centering == "none":
            cross, power = cross + x_mean[:, None] * y_mean, power + np.outer(y_mean, y_mean)
        mirror_upper(A)
        x_offset = x_mean if centering == "both" else np.zeros_like(x_mean)
        y_offset = y_mean if centering != "none" else np.zeros_like(y_mean)
        return System(self.n, A, cross, power, x_offset, y_offset, centering == "both", self.rounding)

    def like_targets(self) -> np.ndarray:
        """Rows whose covariance is that of the targets so far, shape (2 k, k), up to a factor."""
        assert self._sums is not None
        mean = self._sums[4] / self.weight
        return rows_with_covariance(self._sums[2] / self.weight - np.outer(mean, mean))

    def _begin(self, X: Any, Y: np.ndarray) -> None:
        d, k = X.shape[1], Y.shape[1]
        # rounded to the precision of the products
        self.x_shift, self.y_shift = X.mean(0, dtype=np.float64).astype(X.dtype).astype(np.float64), Y.mean(0)
        if self.shared:
            self.x_shift, self.y_shift = broadcast(self.x_shift), broadcast(self.y_shift)
        self.rounding = EPS if self.precise or X.dtype == np.float64 else FLOAT32_ERROR
        self._sums = zeros((d, d), X), np.zeros((d, k)), np.zeros((k, k)), np.zeros(d), np.zeros(k)


def _mean(X: Any, weights: np.ndarray | None) -> np.ndarray:
    if weights is None:
        return X.mean(0, dtype=np.float64)
    starts = range(0, len(X), BLOCK_ROWS)
    return np.sum([weights[s : s + BLOCK_ROWS] @ X[s : s + BLOCK_ROWS] for s in starts], axis=0) / len(X)
