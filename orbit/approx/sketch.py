"""A random sketch with fewer columns that preserves inner products in expectation."""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


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
        """The sketch of every row: (n, n_columns) to (n, size)."""
        order, starts = self._by_bucket
        index, offsets = (torch.from_numpy(array).to(columns.device) for array in (order, starts))
        signs = torch.from_numpy(self.signs[order]).to(columns)
        # a sum of rows of the transpose for each bucket: on a GPU, scattered additions have no fixed order
        return embedding_bag(index, columns.T.contiguous(), offsets, mode="sum", per_sample_weights=signs).T

    def __getstate__(self) -> dict[str, object]:
        """Without what follows from the rest, so that a map that was used is equal to one that was not."""
        return {name: value for name, value in vars(self).items() if name != "_by_bucket"}

    @cached_property
    def _by_bucket(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns in the order of their buckets, and where each bucket starts in it."""
        order = np.argsort(self.buckets, kind="stable")
        return order, np.searchsorted(self.buckets[order], np.arange(self.size))
