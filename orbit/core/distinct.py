"""Rows that occur more than once."""

import hashlib
import math

import numpy as np

from orbit.core.threads import in_threads

# Rows whose digests a thread computes at a time.
_HASHED_ROWS = 256


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


def row_digests(X: np.ndarray) -> list[bytes]:
    """A digest of the bytes of each row of an array, shape (n, ...).

    >>> first, second, third = row_digests(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> first == third, first == second
    (True, False)
    """
    rows, digests = bytes_of_rows(X), [b""] * len(X)

    def fill(tile: slice) -> None:
        digests[tile] = [hashlib.blake2b(row, digest_size=16).digest() for row in rows[tile]]

    in_threads(fill, [slice(start, start + _HASHED_ROWS) for start in range(0, len(X), _HASHED_ROWS)])
    return digests


def bytes_of_rows(X: np.ndarray) -> np.ndarray:
    """The bytes of each row, shape (n, bytes)."""
    return np.ascontiguousarray(X).reshape(len(X), math.prod(X.shape[1:])).view(np.uint8)
