"""Weighted sums of kernel values over the orbit: the embedding of Nyström features."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from orbit.engine.embedding import Embedding, ProjectedEmbedding, Scratch, add_weighted
from orbit.engine.memory import slices
from orbit.kernels.base import KernelValues, ProjectedKernelValues, RestrictedKernelValues

# Rows of a block of the linear map.
_LINEAR_ROWS = 256


class KernelSums(Embedding):
    """sum_i w_i k(g_i x, z_j) for kernels k and points z_j, ordered by kernel; then a lower triangular map L.

    Parameters
    ----------
    columns : the kernels against the z_j
    n_points : number of the z_j
    linear : tensor L, shape (m, m), or None for the sums themselves
    """

    def __init__(self, columns: Sequence[KernelValues], n_points: int, linear: Tensor | None = None) -> None:
        self.columns: list[Any] = list(columns)
        self.units, self.linear = n_points, linear
        self.n_outputs = self.width = len(columns) * n_points
        self.sums_are_features = linear is None

    def add(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        for i, columns in enumerate(self.columns):
            values = columns(points, units, scratch.matrix(0, len(points), units.stop - units.start))
            self._sums(i, units, total).add_(values, alpha=weight)

    def put(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        for i, columns in enumerate(self.columns):
            values = columns(points, units, self._sums(i, units, total))
            if weight != 1:
                values.mul_(weight)

    def _sums(self, kernel: int, units: slice, total: Tensor) -> Tensor:
        """The columns of some units of a kernel."""
        first = kernel * self.units
        return total[:, first + units.start : first + units.stop]

    @property
    def restricts(self) -> bool:
        return all(isinstance(each, RestrictedKernelValues) for each in self.columns)

    def restricted(self, columns: Tensor) -> Embedding:
        narrow = copy.copy(self)
        narrow.columns = [each.restricted(columns) for each in self.columns]
        return narrow

    def finish(self, total: Tensor) -> Tensor:
        if self.linear is None:
            return total
        out = torch.empty_like(total)
        for rows in slices(self.n_outputs, _LINEAR_ROWS):  # only columns up to the last row of a block are not zero
            torch.mm(total[:, : rows.stop], self.linear[rows, : rows.stop].T, out=out[:, rows])
        return out


class ProjectedKernelSums(KernelSums, ProjectedEmbedding):
    """:class:`KernelSums` of kernels whose values follow from the same projections on the z_j."""

    needs_squares = True

    def templates(self, units: slice) -> Tensor:
        return self.columns[0].points[units]

    def add_projected(
        self, projections: Tensor, squares: Tensor, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        last = len(self.columns) - 1
        for i, columns in enumerate(self.columns):
            given = projections if i == last else scratch.like(0, projections).copy_(projections)
            add_weighted(self._sums(i, units, total), columns.from_projections(given, squares, units), weights)


def kernel_sums(columns: Sequence[KernelValues], n_points: int, linear: Tensor | None = None) -> KernelSums:
    """The :class:`KernelSums`, projected if all kernels are."""
    are_projected = all(isinstance(each, ProjectedKernelValues) for each in columns)
    return (ProjectedKernelSums if are_projected else KernelSums)(columns, n_points, linear)
