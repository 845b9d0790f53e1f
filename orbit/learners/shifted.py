"""(A + lambda I) W = B for many lambda, by whichever factorisation is cheaper at that size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg import lapack

from orbit.core.linalg import eigh

# One eigendecomposition costs about as much as 25 Cholesky factorisations, and three times the memory.
# Up to this size it takes seconds, and gives every degree of freedom exactly.
_EIGEN_UP_TO = 3000
# Random signs for the trace: its relative error is about sqrt(2 / (probes x size)), 0.6 % at 3,000.
_PROBES = 16
# Columns of a factor that are made at once.
_PANEL = 512
_COARSE_STEP = 4  # a power of two


def is_large(size: int) -> bool:
    """Whether some Cholesky factorisations are cheaper than one eigendecomposition that serves all of a path."""
    return size > _EIGEN_UP_TO


class ShiftedSystem(ABC):
    """Solutions of (A + lambda I) W = B for symmetric positive semi-definite A.

    Parameters
    ----------
    A : float64 array, shape (d, d), which is overwritten
    B : float64 array, shape (d, k)
    """

    @staticmethod
    def of(A: np.ndarray, B: np.ndarray, n_shifts: int) -> ShiftedSystem:
        """The cheaper one for so many values of lambda."""
        if n_shifts == 1 or is_large(len(A)):
            return Cholesky(A, B)
        return Eigen(A, B)

    @abstractmethod
    def solve(self, shift: float) -> tuple[np.ndarray, float]:
        """W, shape (d, k), and the degrees of freedom tr A (A + lambda I)^-1."""

    @abstractmethod
    def search(self, path: np.ndarray, score: Callable[[float], float]) -> tuple[float, np.ndarray]:
        """The value of a rising path with the highest score, the larger of equals; all scores, NaN where not tried."""


class Eigen(ShiftedSystem):
    """One symmetric eigendecomposition serves every lambda."""

    def __init__(self, A: np.ndarray, B: np.ndarray) -> None:
        values, self.vectors = eigh(A)
        self.values = np.maximum(values, 0.0)
        self.rotated = self.vectors.T @ B

    def solve(self, shift: float) -> tuple[np.ndarray, float]:
        filtered = self.values / (self.values + shift)
        return self.vectors @ (self.rotated / (self.values + shift)[:, None]), float(filtered.sum())

    def search(self, path: np.ndarray, score: Callable[[float], float]) -> tuple[float, np.ndarray]:
        return _best(path, np.array([score(float(value)) for value in path]))


class Cholesky(ShiftedSystem):
    """A factorisation for each lambda, in place: one triangle keeps A while the other holds the factor.

    Degrees of freedom are Hutchinson's estimate (1989) from the same 16 random
    signs for every lambda.
    """

    def __init__(self, A: np.ndarray, B: np.ndarray) -> None:
        self.diagonal = A.diagonal().copy()
        self.A = np.ascontiguousarray(A)
        signs = np.random.default_rng(0).integers(0, 2, (len(A), _PROBES)) * 2.0 - 1.0
        self.k = B.shape[1]
        self.right = np.concatenate([B, signs], axis=1)

    def solve(self, shift: float) -> tuple[np.ndarray, float]:
        self._factorise(shift)
        solved, _ = lapack.dpotrs(self.A.T, self.right, lower=0)
        signs = self.right[:, self.k :]
        inverse_trace = float((signs * solved[:, self.k :]).sum()) / _PROBES
        return solved[:, : self.k], len(self.A) - shift * inverse_trace

    def search(self, path: np.ndarray, score: Callable[[float], float]) -> tuple[float, np.ndarray]:
        """Every fourth value first, then those halfway around the best, twice: less than half of the factorisations."""
        scores = np.full(len(path), np.nan)

        def evaluate(indices: range) -> None:
            for i in indices:
                if np.isnan(scores[i]):
                    scores[i] = score(float(path[i]))

        evaluate(range(0, len(path), _COARSE_STEP))
        step = _COARSE_STEP
        while step := step // 2:
            best = int(np.nanargmax(scores))
            evaluate(range(max(best % step, best - step), min(len(path), best + step + 1), step))
        return _best(path, scores)

    def _factorise(self, shift: float) -> None:
        """The factor into the lower triangle, some columns at a time from A in the upper one.

        Nearly all of the work is in matrix products, which keep their rate on cores that
        other work shares; LAPACK's own routine waits at a barrier for every panel.
        """
        A = torch.from_numpy(self.A)
        for start in range(0, len(A), _PANEL):
            columns = slice(start, min(start + _PANEL, len(A)))
            panel = A[columns, start:].T.clone(memory_format=torch.contiguous_format)
            block, below = panel[: columns.stop - start], panel[columns.stop - start :]
            block.diagonal().copy_(torch.from_numpy(self.diagonal[columns] + shift))
            panel.addmm_(A[start:, :start], A[columns, :start].T, alpha=-1)
            factor, info = torch.linalg.cholesky_ex(block)
            if info.item() != 0:
                raise np.linalg.LinAlgError(
                    f"the second moments plus {shift:g} are not positive definite in floating point: "
                    "raise the smallest learner.regularization"
                )
            A[columns.stop :, columns] = torch.linalg.solve_triangular(factor.T, below, upper=True, left=False)
            corner, lower = self.A[columns, columns], np.tril_indices(len(block))
            corner[lower] = factor.numpy()[lower]


def _best(path: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    tried = np.where(np.isnan(scores), -np.inf, scores)
    return float(path[len(path) - 1 - np.argmax(tried[::-1])]), scores
