"""Least squares on a stream whose second moments do not fit in memory: conjugate gradients, one pass per product."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from orbit.core import distributed
from orbit.core.distributed import all_reduce
from orbit.solvers.conjugate_gradients import NystromPreconditioner, conjugate_gradients
from orbit.solvers.moments import Centering

Batches = Callable[[], Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]]

# Columns of the sketch of the preconditioner.
_RANK = 500
# Random sign vectors for the trace, solved for as additional right-hand sides.
PROBES = 8
MAX_PASSES = 200
# Relative residuals at which to stop: further steps change predictions by less than the precision of the features.
_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# Number of arrays of the size of all solutions that conjugate gradients hold.
_ARRAYS = 6


def sketch_rank(d: int, memory: float) -> int:
    """Columns of the preconditioner's sketch, for ``d`` columns of features and a budget in bytes."""
    return max(1, min(_RANK, int(memory / 2 // (3 * 8 * d))))


def values_side_by_side(d: int, k: int, memory: float) -> int:
    """Values of lambda that share the passes, for ``k`` outputs."""
    return max(1, int(memory / 2 // (_ARRAYS * 8 * d * (k + PROBES))))


class StreamedSystem:
    """Least squares on a stream that can be read repeatedly, in memory for some hundred columns of features.

    All values of lambda and all outputs share the passes.

    Parameters
    ----------
    batches : callable
        Returns an iterator over ``(X, Y, weights)``, shapes (m, d), (m, k) and (m,); the
        same batches at every call. ``X`` may be overwritten.
    memory : float
        Budget in bytes for everything held between passes.
    rank : int or None
        Columns of the sketch; None is 500, or as many as fit in half of the memory.
    centering : see :data:`~orbit.solvers.moments.Centering`

    Attributes
    ----------
    x_offset, y_offset : predictions are ``y_offset + (x - x_offset) W``
    cross, power : X^T Y / n, shape (d, k), and the squares of Y over n, shape (k,), about the offsets
    n, weight : points, and the sum of their weights
    passes : number of passes over the stream so far
    """

    def __init__(self, batches: Batches, memory: float, rank: int | None = None, centering: Centering = "both") -> None:
        self.batches, self.memory, self.passes = batches, memory, 0
        self.fit_intercept = centering == "both"
        self._means(centering)
        d, k = self.cross.shape
        rank = rank or sketch_rank(d, memory)
        rng, precision = np.random.default_rng(0), float(np.finfo(self.dtype).eps)
        self._preconditioner = NystromPreconditioner(self.product, d, rank, rng, np.ones(k + PROBES), precision)

    def solve(self, path: np.ndarray) -> dict[float, tuple[np.ndarray, float]]:
        """W, shape (d, k), and an estimate of the degrees of freedom tr A (A + lambda I)^-1, by lambda.

        Warns of values of lambda whose W has not converged after the maximum number of passes.
        """
        d, k = self.cross.shape
        signs = np.random.default_rng(1).integers(0, 2, (d, PROBES)) * 2.0 - 1.0
        right = np.concatenate([self.cross, signs], axis=1)
        side_by_side = values_side_by_side(d, k, self.memory)
        solutions: dict[float, tuple[np.ndarray, float]] = {}
        unconverged: list[float] = []
        for start in range(0, len(path), side_by_side):
            shifts = path[start : start + side_by_side]
            solved, converged, _ = conjugate_gradients(
                lambda V, _: self.product(V), right, shifts, self._preconditioner, _TOLERANCE[self.dtype], MAX_PASSES
            )
            unconverged += shifts[~converged].tolist()
            for shift, W in zip(shifts, solved, strict=True):
                inverse_trace = float((signs * W[:, k:]).sum()) / PROBES
                solutions[float(shift)] = W[:, :k], d - float(shift) * inverse_trace
        if unconverged and distributed.rank() == 0:
            warnings.warn(
                f"conjugate gradients stopped after {MAX_PASSES} passes over the stream before they converged for "
                f"regularization={', '.join(f'{value:.3g}' for value in unconverged)}: "
                "choose larger values, or give the engine more memory",
                ConvergenceWarning,
                stacklevel=2,
            )
        return solutions

    def errors_and_freedom(self, W: np.ndarray, freedom: float, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """The mean squared residual and the degrees of freedom of each output, shape (k,), of a solution."""
        # |Y - X W|^2 / n, with A W = cross - lambda W
        errors = self.power - (W * (self.cross + regularization * W)).sum(0)
        return np.maximum(errors, self.power * np.finfo(float).eps), np.full(len(errors), freedom + self.fit_intercept)

    def product(self, V: np.ndarray) -> np.ndarray:
        """A V, shape (d, m), in one pass."""
        total = np.zeros(V.shape)
        V = V.astype(self.dtype)
        for X, _, root in self._centred():
            total += X.T @ ((X @ V) * root**2)
        all_reduce(total)
        return total / self.weight

    def _means(self, centering: Centering) -> None:
        """Compute the means in a first pass, and moments of the targets about them in a second."""
        sums: list[np.ndarray] = []
        for X, Y, w in self.batches():
            if not sums:
                self.dtype = X.dtype
                sums = [np.zeros(X.shape[1]), np.zeros(Y.shape[1]), np.zeros(2)]
            sums[0] += w @ X
            sums[1] += w @ Y
            sums[2] += np.count_nonzero(w), w.sum()
        all_reduce(*sums)
        self.n, self.weight = int(sums[2][0]), float(sums[2][1])
        self.x_offset = sums[0] / self.weight * (centering == "both")
        self.y_offset = sums[1] / self.weight * (centering != "none")
        self.passes += 1
        cross, power = np.zeros((len(self.x_offset), len(self.y_offset))), np.zeros(len(self.y_offset))
        for X, Y, root in self._centred():
            targets = Y * root**2
            cross += X.T @ targets.astype(X.dtype)
            power += (targets * Y).sum(0)
        all_reduce(cross, power)
        self.cross, self.power = cross / self.weight, power / self.weight

    def _centred(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Centred points and targets, and the square roots of the weights, shape (m, 1), by batch."""
        self.passes += 1
        offset = self.x_offset.astype(self.dtype)
        for X, Y, w in self.batches():
            X -= offset
            yield X, Y - self.y_offset, np.sqrt(w)[:, None].astype(self.dtype)
