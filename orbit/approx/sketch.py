"""A random sketch with fewer columns that preserves inner products in expectation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class CountSketch:
    """Adds every column, with a random sign, to one of ``size`` random buckets.

    For fixed vectors E<Sx, Sy> = <x, y>, and the variance is

        (|x|^2 |y|^2 + <x, y>^2 - 2 sum_i x_i^2 y_i^2) / size  <=  2 |x|^2 |y|^2 / size.

    Parameters
    ----------
    n_columns, size : int >= 1
    rng : numpy Generator

    Attributes
    ----------
    buckets : int64 array, shape (n_columns,)
    signs : int8 array of -1 and 1, shape (n_columns,)

    References
    ----------
    Charikar, Chen and Farach-Colton, "Finding Frequent Items in Data Streams", 2002.
    Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", 2009, Lemma 2.

    Examples
    --------
    >>> sketch = CountSketch(1000, 8, np.random.default_rng(0))
    >>> sketch(torch.ones(2, 1000)).shape
    torch.Size([2, 8])
    """

    def __init__(self, n_columns: int, size: int, rng: np.random.Generator) -> None:
        self.size = size
        self.buckets = rng.integers(size, size=n_columns)
        self.signs = rng.choice(np.array([-1, 1], dtype=np.int8), n_columns)

    def __call__(self, columns: Tensor) -> Tensor:
        """The sketch of every row: (n, n_columns) to (n, size). ``columns`` is overwritten."""
        columns.mul_(torch.tensor(self.signs, device=columns.device))
        index = torch.tensor(self.buckets, device=columns.device).expand(columns.shape)
        return columns.new_zeros(len(columns), self.size).scatter_add_(1, index, columns)
