"""Pooling of maps over positions by two small matrices, one for each axis."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

Pooling = Literal["gaussian", "mean", "grid", "none"]


class Pool:
    """Weighted means over windows of positions: ``rows`` times the map times ``columns`` transposed.

    Parameters
    ----------
    kind : {"gaussian", "mean", "grid", "none"}
        ``gaussian``: windows exp(-(u - c)^2 / (2 width^2)) about centres c that are
        ``stride`` apart. ``mean``: ``stride`` x ``stride`` positions each; the
        remainder at the end is a smaller window. ``grid``: ``cells`` x ``cells``
        windows of nearly equal size. ``none``: every position separately.
    side : (height, width) of the input map
    stride, width, cells : int, float, int

    Examples
    --------
    >>> Pool("mean", (4, 4), stride=2, width=1.0, cells=1).rows
    array([[0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5]])
    """

    def __init__(self, kind: Pooling, side: tuple[int, int], stride: int, width: float, cells: int) -> None:
        self.identity = kind == "none"
        self.rows, self.columns = (_windows(kind, length, stride, width, cells) for length in side)
        self.side = len(self.rows), len(self.columns)

    def prepare(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Both matrices in the precision and on the device of ``like``."""
        return torch.as_tensor(self.rows).to(like), torch.as_tensor(self.columns).to(like)


def pool(matrices: tuple[Tensor, Tensor], values: Tensor, half: Tensor, out: Tensor) -> None:
    """Pool maps with the points in the last axis, so that both products have long rows.

    Parameters
    ----------
    matrices : tensors, shapes (height', height) and (width', width)
    values : tensor, shape (m, height, width, n), contiguous
    half : tensor, shape (m, height', width, n), working memory for the first product
    out : tensor, shape (m, height', width', n)
    """
    rows, columns = matrices
    m, height, width, n = values.shape
    torch.bmm(rows.expand(m, *rows.shape), values.view(m, height, width * n), out=half.view(m, len(rows), width * n))
    count = m * len(rows)
    torch.bmm(columns.expand(count, *columns.shape), half.view(count, width, n), out=out.view(count, len(columns), n))


def _windows(kind: Pooling, length: int, stride: int, width: float, cells: int) -> np.ndarray:
    """Weights of the positions in each window, shape (windows, length), each row summing to one."""
    positions = np.arange(length)
    if kind == "none":
        return np.eye(length)
    if kind == "gaussian":
        count = (length - 1) // stride + 1
        centres = (length - 1 - stride * (count - 1)) / 2 + stride * np.arange(count)
        weights = np.exp(-0.5 * ((positions - centres[:, None]) / width) ** 2)
    else:
        window = positions // stride if kind == "mean" else positions * min(cells, length) // length
        weights = (window == np.arange(window[-1] + 1)[:, None]).astype(float)
    return weights / weights.sum(1, keepdims=True)
