"""Rows that occur more than once."""

from __future__ import annotations

import numpy as np


def as_bytes(X: np.ndarray) -> np.ndarray:
    """The last axis of an array of numbers as one item, which NumPy sorts by its bytes: shape ``X.shape[:-1]``.

    Equal numbers have equal bytes.

    >>> bool(as_bytes(np.array([[0.0, 1.0]]))[0] == as_bytes(np.array([[-0.0, 1.0]]))[0])
    True
    """
    rows = np.ascontiguousarray(X + 0.0)  # turns -0 into 0
    return rows.view(np.dtype((np.void, rows.shape[-1] * rows.itemsize)))[..., 0]


def distinct(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the distinct rows of an array (n, d) are, and which of them each row is.

    >>> first, index = distinct(np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]))
    >>> sorted(first.tolist()), bool(index[0] == index[2])
    ([0, 1], True)
    """
    _, first, index = np.unique(as_bytes(X), return_index=True, return_inverse=True)
    return first, index
