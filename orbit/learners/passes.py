"""(A + lambda I) W = B for second moments A that memory has no room for: conjugate gradients, a pass for a product."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from orbit.core import distributed
from orbit.core.distributed import add_up, from_first

Batches = Callable[[], Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]]

# Columns of the sketch that the preconditioner is made of: directions beyond so many are left to the iterations.
_RANK = 500
# Random signs for the trace, carried along as right-hand sides.
_PROBES = 8
_MAX_PASSES = 200
# Relative residuals that are small enough: predictions change by less than the precision of the features.
_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# Arrays of the size of all solutions that conjugate gradients hold.
_ARRAYS = 6


class StreamedSystem:
    """Least squares on a stream that can be gone through again, in memory for some hundred columns of features.

    All lambdas and all outputs share the passes. The preconditioner is a randomised
    Nyström approximation of A from one pass (Frangella, Tropp and Udell,
    "Randomized Nyström Preconditioning", 2021, algorithms 2.1 and 5.3).

    Parameters
    ----------
    batches : callable
        An iterator over ``(X, Y, weights)``, shapes (m, d), (m, k) and (m,); the same
        ones at every call. ``X`` may be overwritten.
    memory : float
        Bytes for all that is held between passes.
    rank : int or None
        Columns of the sketch; None is 500, or what half of the memory has room for.

    Attributes
    ----------
    x_mean, y_mean : weighted means
    cross, power : X^T Y / n and |Y|^2 / n about the means
    n, weight : points, and the sum of their weights
    passes : how often the stream has been gone through
    """

    def __init__(self, batches: Batches, memory: float, rank: int | None = None) -> None:
        self.batches, self.memory, self.passes = batches, memory, 0
        self._means()
        d = len(self.x_mean)
        self.rank = min(d, rank or max(1, min(_RANK, int(memory / 2 // (3 * 8 * d)))))
        self._precondition()

    def solve(self, path: np.ndarray) -> dict[float, tuple[np.ndarray, float]]:
        """For every lambda W, shape (d, k), and an estimate of the degrees of freedom tr A (A + lambda I)^-1.

        Warns of every lambda whose W is not settled after as many passes as are made at most.
        """
        d, k = self.cross.shape
        signs = np.random.default_rng(1).integers(0, 2, (d, _PROBES)) * 2.0 - 1.0
        right = np.concatenate([self.cross, signs], axis=1)
        side_by_side = max(1, int(self.memory / 2 // (_ARRAYS * 8 * right.size)))
        solutions: dict[float, tuple[np.ndarray, float]] = {}
        unsettled: list[float] = []
        for start in range(0, len(path), side_by_side):
            shifts = path[start : start + side_by_side]
            solved, settled = self._conjugate_gradients(right, shifts)
            unsettled += shifts[~settled].tolist()
            for shift, W in zip(shifts, solved, strict=True):
                inverse_trace = float((signs * W[:, k:]).sum()) / _PROBES
                solutions[float(shift)] = W[:, :k], d - float(shift) * inverse_trace
        if unsettled and distributed.rank() == 0:
            warnings.warn(
                f"conjugate gradients stopped after {_MAX_PASSES} passes over the stream before they converged for "
                f"learner.regularization={', '.join(f'{value:.3g}' for value in unsettled)}: "
                "choose larger values, or raise engine.memory",
                ConvergenceWarning,
                stacklevel=2,
            )
        return solutions

    def product(self, V: np.ndarray) -> np.ndarray:
        """A V, shape (d, m), in one pass."""
        total = np.zeros(V.shape)
        V = V.astype(self.dtype)
        for X, _, root in self._centred():
            total += X.T @ ((X @ V) * root**2)
        add_up(total)
        return total / self.weight

    def _conjugate_gradients(self, right: np.ndarray, shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solutions, shape (shifts, d, m), and which shifts have settled: each column on its own, in shared passes."""
        right = np.broadcast_to(right, (len(shifts), *right.shape))
        lifted = shifts[:, None, None]
        W, R = np.zeros(right.shape), right.copy()
        Z = self._preconditioned(R, lifted)
        P, rz = Z.copy(), (R * Z).sum(1, keepdims=True)
        goal = _TOLERANCE[self.dtype] * np.linalg.norm(right, axis=1, keepdims=True)
        for done in range(_MAX_PASSES + 1):
            # from the first process, so that all of a job stop at the same pass
            active = from_first(np.linalg.norm(R, axis=1, keepdims=True)) > goal
            which, columns = np.nonzero(active[:, 0])
            if len(which) == 0 or done == _MAX_PASSES:
                break
            AP = np.zeros(P.shape)
            AP[which, :, columns] = self.product(P[which, :, columns].T).T
            AP += lifted * P
            step = np.where(active, rz / np.where(active, (P * AP).sum(1, keepdims=True), 1), 0)
            W += step * P
            R -= step * AP
            Z = self._preconditioned(R, lifted)
            new = (R * Z).sum(1, keepdims=True)
            P = np.where(active, Z + new / np.where(active, rz, 1) * P, P)
            rz = np.where(active, new, rz)
        return W, ~active.any((1, 2))

    def _preconditioned(self, R: np.ndarray, lifted: np.ndarray) -> np.ndarray:
        inside = self.vectors.T @ R
        gains = (self.values[-1] + lifted) / (self.values[:, None] + lifted) - 1
        return R + self.vectors @ (gains * inside)

    def _precondition(self) -> None:
        d = len(self.x_mean)
        sketch, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((d, self.rank)))
        image = self.product(sketch)
        nudge = np.finfo(self.dtype).eps * np.linalg.norm(image) + np.finfo(float).tiny
        image += nudge * sketch
        inner = sketch.T @ image
        factor = np.linalg.cholesky((inner + inner.T) / 2)
        half = scipy.linalg.solve_triangular(factor, image.T, lower=True).T
        self.vectors, singular, _ = np.linalg.svd(half, full_matrices=False)
        self.values = np.maximum(np.square(singular) - nudge, 0.0)

    def _means(self) -> None:
        """Means, by a first pass, and moments about them of the targets, by a second."""
        sums: list[np.ndarray] = []
        for X, Y, w in self.batches():
            if not sums:
                self.dtype = X.dtype
                sums = [np.zeros(X.shape[1]), np.zeros(Y.shape[1]), np.zeros(2)]
            sums[0] += w @ X
            sums[1] += w @ Y
            sums[2] += np.count_nonzero(w), w.sum()
        add_up(*sums)
        self.n, self.weight = int(sums[2][0]), float(sums[2][1])
        self.x_mean, self.y_mean = sums[0] / self.weight, sums[1] / self.weight
        self.passes += 1
        cross, power = np.zeros((len(self.x_mean), len(self.y_mean))), np.zeros(1)
        for X, Y, root in self._centred():
            targets = Y * root**2
            cross += X.T @ targets.astype(X.dtype)
            power += (targets * Y).sum()
        add_up(cross, power)
        self.cross, self.power = cross / self.weight, float(power[0]) / self.weight

    def _centred(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Points and targets about their means, and the roots of the weights, shape (m, 1)."""
        self.passes += 1
        mean = self.x_mean.astype(self.dtype)
        for X, Y, w in self.batches():
            X -= mean
            yield X, Y - self.y_mean, np.sqrt(w)[:, None].astype(self.dtype)
