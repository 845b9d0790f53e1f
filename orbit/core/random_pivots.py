"""A partial Cholesky factorisation of a kernel matrix with random pivots: landmarks, and a preconditioner."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

# (indices of rows or all, indices of columns) -> these values of a symmetric matrix
Values = Callable[[np.ndarray | slice, np.ndarray], np.ndarray]

# Pivots that are proposed at once: columns side by side take less time than one by one.
_PROPOSED = 64
# The share of the trace that counts as rounding error: where no more is left, a factorisation ends.
_ROUNDING = 1e-10


def random_pivots(
    diagonal: np.ndarray, values: Values, rank: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """At most ``rank`` pivots of a positive semi-definite matrix, and F, shape (n, pivots), with F F^T close to it.

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
    >>> pivots, F = random_pivots(K.diagonal(), lambda i, j: K[i][:, j], 10, np.random.default_rng(1))
    >>> len(pivots), bool(np.allclose(F @ F.T, K))
    (3, True)
    """
    n, pivots = len(diagonal), np.empty(0, dtype=np.int64)
    F, left = np.zeros((n, min(rank, n))), np.maximum(diagonal.astype(np.float64), 0.0)
    least = _ROUNDING * left.sum()
    while (found := len(pivots)) < F.shape[1] and left.sum() > least:
        known = F[:, :found]
        proposed = rng.choice(n, _PROPOSED, p=left / left.sum())
        core = values(proposed, proposed).astype(np.float64) - known[proposed] @ known[proposed].T
        accepted, L = _accept(core, F.shape[1] - found, least / n, rng)
        if not len(accepted):  # what is left are rounding errors
            break
        new = proposed[accepted]
        rest = values(slice(None), new).astype(np.float64) - known @ known[new].T
        F[:, found : found + len(new)] = columns = solve_triangular(L, rest.T, lower=True).T
        left = np.maximum(left - np.square(columns).sum(1), 0.0)
        left[new] = 0.0
        pivots = np.concatenate([pivots, new])
    return pivots, F[:, : len(pivots)]


def _accept(core: np.ndarray, most: int, least: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the proposed pivots that are accepted, from what is left of their values; and their factor L."""
    goals, factor, accepted = rng.random(len(core)) * core.diagonal(), np.zeros((len(core), 0)), list[int]()
    for i in range(len(core)):
        column = core[:, i] - factor @ factor[i]
        if column[i] > max(goals[i], least) and len(accepted) < most:
            accepted.append(i)
            factor = np.column_stack([factor, column / np.sqrt(column[i])])
    return np.array(accepted, dtype=int), factor[accepted]
