"""The interface of the non-linear part of a feature map, which the engine averages over an orbit.

An approximation describes it by an :class:`Embedding`; the engine moves and encodes
the points, divides the work into tiles and runs them on threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from orbit.core.lru import Lru
from orbit.engine.memory import slices

# A function from points (n, *shape) to vectors (n, d).
Encode = Callable[[Tensor], Tensor]


def flatten(points: Tensor) -> Tensor:
    """Points (n, *shape) as rows (n, d): the default encoding."""
    return points.reshape(len(points), -1)


class Scratch:
    """Preallocated buffers of one thread, handed out as contiguous matrices.

    Parameters
    ----------
    count : int
        Number of buffers.
    rows, columns : int
        The size of the largest matrix in each.
    like : tensor of the precision and on the device of the buffers
    """

    def __init__(self, count: int, rows: int, columns: int, like: Tensor) -> None:
        self._buffers = [like.new_empty(rows * columns) for _ in range(count)]

    def matrix(self, which: int, rows: int, columns: int) -> Tensor:
        return self._buffers[which][: rows * columns].view(rows, columns)

    def like(self, which: int, other: Tensor) -> Tensor:
        """A matrix, or stack of matrices, of the shape of ``other``."""
        return self._buffers[which][: other.numel()].view(other.shape)


class Embedding(ABC):
    """The non-linear part of a feature map, on one device and in one precision.

    A *unit* is one frequency, landmark or template: the map can be computed for
    any range of them.

    Attributes
    ----------
    units : int
    width : int
        Columns of the weighted sum over the orbit.
    n_outputs : int
        Columns after :meth:`finish`.
    unit_tile : int or None
        Units of a tile; None lets the engine choose.
    sums_are_features : bool
        Whether :meth:`finish` is the identity, so that sums can be accumulated in the result.
    needs_squares : bool
        Whether a projected embedding uses ``|g_i x|^2``.
    """

    units: int
    width: int
    n_outputs: int
    unit_tile: int | None = None
    sums_are_features: bool = False
    needs_squares: bool = False

    def parts(self, units: int) -> list[list[slice]]:
        """All units, in slices of at most ``units``; those in different lists add to different columns of the sum."""
        return [[tile] for tile in slices(self.units, units)]

    def prepare(self, points: Tensor) -> Tensor:
        """The argument of :meth:`add` for points (n, d), computed once for all units; by default the points."""
        return points

    @abstractmethod
    def add(self, points: Tensor, weight: Any, units: slice, total: Tensor, scratch: Scratch) -> None:
        """Add ``weight`` times the features of ``points`` (n, d) for ``units`` to ``total`` (n, width).

        ``weight`` is a number, or an entry of the ``weights`` given to the engine.
        ``scratch`` has two buffers for n x units numbers.
        """

    def put(self, points: Tensor, weight: Any, units: slice, total: Tensor, scratch: Scratch) -> None:
        """:meth:`add` to columns that are zero, which an embedding may write without reading them; by default ``add``.

        The first access to new memory is then a write: a read would map it twice.
        """
        self.add(points, weight, units, total, scratch)

    def finish(self, total: Tensor) -> Tensor:
        """Apply the linear step after averaging: (n, width) to (n, n_outputs)."""
        return total

    @property
    def restricts(self) -> bool:
        """Whether :meth:`restricted` is implemented."""
        return False

    def restricted(self, columns: Tensor) -> Embedding:
        """This embedding for points that are zero outside some ``columns``, given by these columns, (n, len(columns)).

        Called only if :attr:`restricts` is true.
        """
        raise NotImplementedError

    def projection_cost(self, n_features: int) -> float:
        """Cost of projecting a point of ``n_features`` numbers on one unit, in operations of a dense matrix product."""
        return 2.0 * n_features


class ProjectedEmbedding(Embedding):
    """An embedding that depends on a point x only by projections ``<t_j, x>`` on templates, and by ``|x|^2``.

    The template and spectral strategies apply to these.

    Attributes
    ----------
    mirrored : bool
        Whether :meth:`add_mirrored` is implemented.
    fourier : Lru
        The templates in Fourier space, cached by the spectral strategy.
    """

    mirrored: ClassVar[bool] = False

    @cached_property
    def fourier(self) -> Lru[Any, Any]:
        return Lru(most=1)

    @abstractmethod
    def templates(self, units: slice) -> Tensor:
        """The templates t_j of some units, shape (units, d)."""

    def project(self, points: Tensor, units: slice, out: Tensor) -> Tensor:
        """``<t_j, x_i>`` for points (n, d) and ``units``, written to ``out`` (n, units) and returned."""
        return torch.mm(points, self.templates(units).T, out=out)

    def add(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        projections = self.project(points, units, scratch.matrix(1, len(points), units.stop - units.start))
        squares = points.square().sum(1)[None] if self.needs_squares else None
        self.add_projected(projections[None], squares, points.new_tensor([weight]), units, total, scratch)

    @abstractmethod
    def add_projected(
        self, projections: Tensor, squares: Any, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        """Add the weighted features of several orbit points to ``total`` (n, width).

        Parameters
        ----------
        projections : tensor, shape (r, n, units)
            ``<t_j, g_i x>``; may be overwritten.
        squares : tensor, shape (r, n), or None
            ``|g_i x|^2``; given if ``needs_squares``.
        weights : tensor, shape (r,)
        scratch : one buffer for r x n x units numbers
        """

    def add_mirrored(
        self, even: Tensor, odd: Tensor, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        """Add the features of ``even + odd`` and of ``even - odd``, both with the same ``weights``, shape (m,).

        ``even`` and ``odd``: shape (m, n, units); may be overwritten.
        """
        raise NotImplementedError


def nbytes(part: object) -> int:
    """Bytes of all tensors held by an object, such as an embedding, and by its parts."""
    return sum({id(tensor): tensor.nbytes for tensor in _tensors(part)}.values())


def _tensors(part: object) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, list) or (hasattr(part, "__dict__") and not isinstance(part, type)):
        for each in part if isinstance(part, list) else vars(part).values():
            yield from _tensors(each)


def add_weighted(total: Tensor, values: Tensor, weights: Tensor) -> None:
    """``total += sum_i weights[i] values[i]`` for ``values`` (r, n, m), contiguous, and ``total`` (n, m)."""
    total.add_(torch.mv(values.flatten(1).T, weights).view(total.shape))
