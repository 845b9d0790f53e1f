"""Least squares on a kernel matrix that is not held: conjugate gradients, of which each step computes it again."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from orbit.core.random_pivots import random_pivots
from orbit.core.tiled_matrix import TiledMatrix
from orbit.solvers.conjugate_gradients import CholeskyPreconditioner, solve_path
from orbit.solvers.moments import Centering
from orbit.solvers.passes import PROBES, SMALLEST_IN_PASSES
from orbit.solvers.selection import Solution, best_of_path, gcv

# Columns of the preconditioner at most, and the share of the memory that they may take.
_RANK, _RANK_SHARE = 1000, 1 / 4
# The share of the memory for the arrays of conjugate gradients, and their number, each of the size of all solutions.
_ARRAYS_SHARE, _ARRAYS = 1 / 4, 8
# Products with the kernel matrix at most, and the residual at which to stop, as a share of the targets: by that much
# the fit to the training points may be off.
_MAX_PRODUCTS, _TOLERANCE = 200, 1e-6


class TiledSystem:
    """Least squares on a :class:`TiledMatrix`; all values of lambda and all outputs share its products.

    With weights W of mean one and A = W^1/2 K W^1/2 / n, the coefficients of the columns of K are W^1/2 z / n for
    (A + lambda I) z = W^1/2 (Y - b), so that the weighted residuals are lambda z. The intercept b is that for which
    the coefficients sum to zero (:mod:`~orbit.solvers.kernel_matrix`).

    Parameters
    ----------
    K : TiledMatrix
    Y : float64 array, shape (n, p)
    weights : array >= 0, shape (n,), or None
    centering : see :data:`~orbit.solvers.moments.Centering`

    Attributes
    ----------
    products : number of products with K so far
    """

    def __init__(self, K: TiledMatrix, Y: np.ndarray, weights: np.ndarray | None, centering: Centering) -> None:
        w = np.ones(len(K)) if weights is None else weights
        self.n, self._K, self.products = int(np.count_nonzero(w)), K, 0
        w = w * (self.n / w.sum())
        self._root, self._is_free = np.sqrt(w)[:, None], centering == "both"
        self.y_offset = w @ Y / self.n if centering != "none" else np.zeros(Y.shape[1])
        self._targets = self._root * (Y - self.y_offset)
        rank = max(1, min(_RANK, int(K.memory * _RANK_SHARE // (8 * len(K)))))
        _, F = random_pivots(K.diagonal, K.values, rank, np.random.default_rng(0))
        F *= self._root / np.sqrt(self.n)
        self._preconditioner = CholeskyPreconditioner(F)

    def fit(self, path: np.ndarray, trim: bool) -> Solution:
        """Choose lambda by generalised cross-validation, and solve.

        The degrees of freedom are estimated by targets of random signs (Girard 1989, "A fast Monte-Carlo
        cross-validation procedure"). ``trim``: leave out values for which iterations do not converge.
        """
        if trim:
            path = path[path >= SMALLEST_IN_PASSES[self._K.precision]]
        found = {one.value: one for one in self.solutions(path, scored=len(path) > 1)}
        value, scores = best_of_path(path, lambda one: float(found[one].scores[0]))
        return replace(found[value], path=path, scores=scores, n_iter=self.products)

    def solutions(self, path: np.ndarray, scored: bool = False) -> Iterator[Solution]:
        """The solution for each lambda of a path, as a path of one, with the score of generalised cross-validation.

        Warns of values of lambda whose solution has not converged after the maximum number of products.
        """
        n, p = self._targets.shape
        signs = np.random.default_rng(1).integers(0, 2, (n, PROBES if scored else 0)) * 2.0 - 1.0
        right = np.hstack([self._targets, signs * (self._root > 0), self._root[:, : self._is_free]])
        together = max(1, int(self._K.memory * _ARRAYS_SHARE // (_ARRAYS * right.nbytes)))
        settings = _TOLERANCE, _MAX_PRODUCTS, together, "products with the kernel matrix"
        for shifts, solved in solve_path(self._product, right, path, self._preconditioner, *settings):
            residuals = self._residuals(right[:, :p], solved[:, :, :p], shifts)
            for shift, z, residual in zip(shifts, solved, residuals, strict=True):
                dual, b = self._without_intercept(z)
                score = gcv(self.n, *self._errors_and_freedom(shift, dual, right)) if scored else np.nan
                W, b = self._root * dual[:, :p] / self.n, self.y_offset + b[:p]
                yield Solution(W, b, float(shift), np.array([shift]), np.array([score]), residual=float(residual))

    def _product(self, V: np.ndarray) -> np.ndarray:
        self.products += 1
        return self._root * (self._K @ (self._root * V)) / self.n

    def _residuals(self, right: np.ndarray, solved: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """The largest norm of what solutions (l, n, p) leave of a right-hand side, as a share of it, shape (l,)."""
        side_by_side = solved.transpose(1, 0, 2).reshape(len(right), -1)
        images = self._product(side_by_side).reshape(len(right), len(shifts), -1).swapaxes(0, 1)
        left = np.linalg.norm(right - images - shifts[:, None, None] * solved, axis=1)
        sizes = np.linalg.norm(right, axis=0)
        return (left / np.where(sizes > 0, sizes, 1.0)).max(1)

    def _without_intercept(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solutions for right-hand sides less their intercepts, and these, shape (columns,)."""
        if not self._is_free:
            return z, np.zeros(z.shape[1])
        ones, of_ones = self._root[:, 0], z[:, -1]
        b = ones @ z[:, :-1] / (ones @ of_ones)
        return z[:, :-1] - np.outer(of_ones, b), b

    def _errors_and_freedom(self, shift: float, dual: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean squared residuals of the targets, shape (p,), and the degrees of freedom, shape (1,)."""
        p = self._targets.shape[1]
        left = shift * (right[:, p : p + PROBES] * dual[:, p:]).sum(0)
        return np.square(shift * dual[:, :p]).sum(0) / self.n, self.n - left.mean(keepdims=True)
