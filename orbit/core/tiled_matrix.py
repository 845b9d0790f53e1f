"""Matrices that are computed by tiles for each product and never held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from orbit.core.distributed import all_reduce
from orbit.core.threads import in_threads

# Numbers of a tile that are converted to float64 at once.
_CONVERTED = 2**19
# Sums that are added in a fixed order.
_SUMS = 8

# Slices of rows and of columns, and the values there, an array or on a device; those of the transpose are not repeated.
Tile = tuple[slice, slice, Any]


@dataclass(frozen=True)
class TiledMatrix:
    """A symmetric matrix of n rows, such as a kernel matrix, computed by tiles for each product and never held.

    Attributes
    ----------
    diagonal : array, shape (n,)
    values : callable
        Indices of rows, or all, and of columns to values, a small part of the matrix.
    tiles : callable
        An iterator over tiles (rows, columns, values) on and above the diagonal: together with the transpose of what is
        above it, they are the matrix. The last rows of a tile that reaches the diagonal are those of its columns. In a
        job of several processes, the tiles of all of them are the matrix.
    precision : of the values
    memory : budget in bytes for what a solver holds

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> parts = slice(0, 1), slice(1, 2)
    >>> tiles = lambda: ((slice(0, part.stop), part, A[: part.stop, part]) for part in parts)
    >>> TiledMatrix(A.diagonal(), lambda i, j: A[i][:, j], tiles, A.dtype, 2**20) @ np.array([1.0, 2.0])
    array([4., 7.])
    """

    diagonal: np.ndarray
    values: Callable[[np.ndarray | slice, np.ndarray], np.ndarray]
    tiles: Callable[[], Iterator[Tile]]
    precision: np.dtype
    memory: float

    ndim: ClassVar[int] = 2
    dtype: ClassVar[np.dtype] = np.dtype(np.float64)  # of products

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.diagonal), len(self.diagonal)

    def __len__(self) -> int:
        return len(self.diagonal)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError("a matrix in tiles is no array: multiply it, or index some of its rows")

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Some of the rows, given by their indices."""
        return self.values(slice(None), rows).T

    def __matmul__(self, columns: np.ndarray) -> np.ndarray:
        """The product with columns, shape (n,) or (n, k), in float64."""
        V = torch.from_numpy(columns.reshape(len(self), -1).astype(np.float64))
        total = torch.zeros_like(V)
        for rows, cols, values in self.tiles():
            tile = torch.as_tensor(values)
            V, total = V.to(tile.device), total.to(tile.device)
            _add(total, tile, V, rows, cols)
        found = total.cpu().numpy()
        all_reduce(found)
        return found.reshape(columns.shape)


def _add(total: torch.Tensor, tile: torch.Tensor, V: torch.Tensor, rows: slice, columns: slice) -> None:
    """Add the product of a tile and, where it is above the diagonal, of its transpose."""
    above, step = min(rows.stop, columns.start) - rows.start, max(1, _CONVERTED // tile.shape[1])
    below = torch.zeros(_SUMS, *V[columns].shape, dtype=V.dtype, device=V.device)

    def add(which: int) -> None:
        for first in range(which * step, len(tile), _SUMS * step):
            part = tile[first : first + step].double()
            here = slice(rows.start + first, rows.start + first + len(part))
            total[here].addmm_(part, V[columns])
            if (kept := above - first) > 0:
                below[which].addmm_(part[:kept].T, V[here][:kept])

    in_threads(add, range(_SUMS))
    total[columns] += below.sum(0)
