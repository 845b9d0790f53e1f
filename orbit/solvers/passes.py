"""Least squares on a stream whose second moments do not fit in memory: conjugate gradients, one pass per product."""

from collections.abc import Callable, Iterator

import numpy as np

from orbit.core import distributed
from orbit.core.distributed import all_reduce
from orbit.solvers.conjugate_gradients import NystromPreconditioner, solve_path
from orbit.solvers.moments import Centering

Batches = Callable[[], Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]]

# Values whose iterations converge within the passes that are allowed, with features of norm one.
SMALLEST_IN_PASSES = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-10}
# Columns of the sketch of the preconditioner.
_RANK = 500
# Targets of random signs, whose residuals estimate the degrees of freedom that a fit leaves over.
PROBES = 8
MAX_PASSES = 200
# Relative residuals at which to stop: further steps change predictions by less than the precision of the features.
_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# Number of arrays of the size of all solutions that conjugate gradients hold.
_ARRAYS = 6


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
    cross : X^T T / n about the offsets for T = (Y, signs), shape (d, k + PROBES)
    n, weight : points, and the sum of their weights
    passes : number of passes over the stream so far
    """

    def __init__(self, batches: Batches, memory: float, rank: int | None = None, centering: Centering = "both") -> None:
        self.batches, self.memory, self.passes = batches, memory, 0
        self._means(centering)
        d, columns = self.cross.shape
        rank = rank or max(1, min(_RANK, int(memory / 2 // (3 * 8 * d))))
        rng, precision = np.random.default_rng(0), float(np.finfo(self.dtype).eps)
        self._preconditioner = NystromPreconditioner(self.product, d, rank, rng, np.ones(columns), precision)

    def solve(self, path: np.ndarray) -> dict[float, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """By lambda: W, shape (d, k), the mean squared residuals, shape (k,), and the degrees of freedom, estimated.

        The degrees of freedom, shape (1,), with that of the intercept, are those that targets of random signs do not
        leave over (Girard 1989, "A fast Monte-Carlo cross-validation procedure"). All residuals are computed in one
        more pass, because as differences of moments those of an interpolation would be rounding errors.

        Warns of values of lambda whose W has not converged after the maximum number of passes.
        """
        d, k = len(self.cross), len(self.y_offset)
        side_by_side = max(1, int(self.memory / 2 // (_ARRAYS * 8 * d * (k + PROBES))))
        solutions: dict[float, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        settings = _TOLERANCE[self.dtype], MAX_PASSES, side_by_side, "passes over the stream"
        for shifts, solved in solve_path(self.product, self.cross, path, self._preconditioner, *settings):
            for shift, W, left in zip(shifts, solved, self._left_over(solved), strict=True):
                solutions[float(shift)] = W[:, :k], left[:k] / self.weight, self.n - left[k:].mean(keepdims=True)
        return solutions

    def product(self, V: np.ndarray) -> np.ndarray:
        """A V, shape (d, m), in one pass."""
        total = np.zeros(V.shape)
        V = V.astype(self.dtype)
        for X, _ in self._rows():
            total += X.T @ (X @ V)
        all_reduce(total)
        return total / self.weight

    def _left_over(self, solved: np.ndarray) -> np.ndarray:
        """For solutions (l, d, k + PROBES), the sums over rows of what remains, shape (l, k + PROBES), in one pass.

        Squared residuals of the targets, and products of the signs with their residuals.
        """
        k, left = len(self.y_offset), np.zeros((len(solved), solved.shape[2]))
        solved = solved.astype(self.dtype)
        for X, T in self._rows():
            for sums, W in zip(left, solved, strict=True):
                residuals = T - X @ W
                sums[:k] += np.square(residuals[:, :k]).sum(0)
                sums[k:] += (T[:, k:] * residuals[:, k:]).sum(0)
        all_reduce(left)
        return left

    def _means(self, centering: Centering) -> None:
        """Compute the means in a first pass, and moments of the targets about them in a second."""
        sums: list[np.ndarray] = []
        for X, Y, w, signs in self._with_signs():
            if not sums:
                self.dtype = X.dtype
                sums = [np.zeros(X.shape[1]), np.zeros(Y.shape[1]), np.zeros(PROBES), np.zeros(2)]
            sums[0] += w @ X
            sums[1] += w @ Y
            sums[2] += np.sqrt(w) @ signs
            sums[3] += np.count_nonzero(w), w.sum()
        all_reduce(*sums)
        self.n, self.weight = int(sums[3][0]), float(sums[3][1])
        self.x_offset, self._sign_offset = (part / self.weight * (centering == "both") for part in (sums[0], sums[2]))
        self.y_offset = sums[1] / self.weight * (centering != "none")
        self.cross = np.zeros((len(self.x_offset), len(self.y_offset) + PROBES))
        for X, T in self._rows():
            self.cross += X.T @ T.astype(X.dtype)
        all_reduce(self.cross)
        self.cross /= self.weight

    def _rows(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Points, and targets beside random signs, float64, centred and times the roots of the weights, by batch."""
        offset = self.x_offset.astype(self.dtype)
        for X, Y, w, signs in self._with_signs():
            root = np.sqrt(w)[:, None]
            X -= offset
            X *= root.astype(self.dtype)
            yield X, np.hstack([(Y - self.y_offset) * root, signs - self._sign_offset * root])

    def _with_signs(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """The batches, each with random signs, shape (m, PROBES): the same in every pass, 0 in rows of weight 0."""
        self.passes += 1
        rng = np.random.default_rng([1, distributed.rank()])
        for X, Y, w in self.batches():
            yield X, Y, w, (rng.integers(0, 2, (len(X), PROBES)) * 2.0 - 1.0) * (w > 0)[:, None]
