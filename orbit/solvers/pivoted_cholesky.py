"""A partial Cholesky factorisation of a kernel matrix with random pivots, and the preconditioner that it makes."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from orbit.core.linalg import eigh

# (indices of rows or all, indices of columns) -> these values of a symmetric matrix
Values = Callable[[np.ndarray | slice, np.ndarray], np.ndarray]

# Pivots that are proposed at once: columns side by side take less time than one by one.
_PROPOSED = 64
# The share of the trace that counts as rounding error: where no more is left, a factorisation ends.
_ROUNDING = 1e-10
# Rows that are multiplied at once.
_ROWS = 4096


def pivoted_cholesky(diagonal: np.ndarray, values: Values, rank: int, rng: np.random.Generator) -> np.ndarray:
    """F, shape (n, at most ``rank``), with F F^T close to a positive semi-definite matrix, from its columns at pivots.

    A pivot is drawn with a probability in proportion to what is left of the diagonal. Pivots are proposed in blocks.
    Each is accepted with the probability that is the share which those before it in its block have left of its
    diagonal, so that they are distributed as if drawn one by one.

    Parameters
    ----------
    diagonal : array, shape (n,)
    values : callable, see :data:`Values`
    rank : int
    rng : Generator

    References
    ----------
    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky", 2023, algorithm 2.1; Epperly, Tropp and Webber,
    "Embrace rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky", 2024, algorithm 2.2.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((50, 3))
    >>> K = rows @ rows.T  # of rank 3
    >>> F = pivoted_cholesky(K.diagonal(), lambda i, j: K[i][:, j], 10, np.random.default_rng(1))
    >>> F.shape, bool(np.allclose(F @ F.T, K))
    ((50, 3), True)
    """
    n, found = len(diagonal), 0
    F, left = np.zeros((n, min(rank, n))), np.maximum(diagonal.astype(np.float64), 0.0)
    least = _ROUNDING * left.sum()
    while found < F.shape[1] and left.sum() > least:
        known = F[:, :found]
        proposed = rng.choice(n, _PROPOSED, p=left / left.sum())
        core = values(proposed, proposed).astype(np.float64) - known[proposed] @ known[proposed].T
        accepted, L = _accept(core, F.shape[1] - found, least / n, rng)
        if not len(accepted):  # what is left are rounding errors
            break
        pivots = proposed[accepted]
        rest = values(slice(None), pivots).astype(np.float64) - known @ known[pivots].T
        F[:, found : found + len(pivots)] = new = solve_triangular(L, rest.T, lower=True).T
        found += len(pivots)
        left = np.maximum(left - np.square(new).sum(1), 0.0)
        left[pivots] = 0.0
    return F[:, :found]


def _accept(core: np.ndarray, most: int, least: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the proposed pivots that are accepted, from what is left of their values; and their factor L."""
    goals, factor, accepted = rng.random(len(core)) * core.diagonal(), np.zeros((len(core), 0)), list[int]()
    for i in range(len(core)):
        column = core[:, i] - factor @ factor[i]
        if column[i] > max(goals[i], least) and len(accepted) < most:
            accepted.append(i)
            factor = np.column_stack([factor, column / np.sqrt(column[i])])
    return np.array(accepted, dtype=int), factor[accepted]


class CholeskyPreconditioner:
    """The inverse of F F^T + lambda I for every lambda, by the eigenvectors of F^T F (Woodbury).

    Parameters
    ----------
    F : array, shape (m, rank), overwritten

    References
    ----------
    Díaz, Epperly, Frangella, Tropp and Webber, "Robust, randomized preconditioning for kernel ridge regression", 2023,
    section 2.1.
    """

    def __init__(self, F: np.ndarray) -> None:
        values, vectors = eigh(F.T @ F)
        for start in range(0, len(F), _ROWS):
            F[start : start + _ROWS] = F[start : start + _ROWS] @ vectors
        self._root, self._values = F, np.maximum(values, 0.0)[:, None]

    def apply(self, R: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """lambda times the inverse, times residuals R, shape (l, m, k), for lambda of shape (l, 1, 1)."""
        return R - self._root @ ((self._root.T @ R) / (self._values + shifts))
