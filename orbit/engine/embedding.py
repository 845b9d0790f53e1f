"""What the engine averages over an orbit, and the working memory it hands out for that.

An approximation describes its non-linear part by an :class:`Embedding`; how points
are moved, tiled and put on threads is the engine's.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

# Bytes of working memory that are kept for the next call.
_SPARE_BYTES = 2**26


class Embedding(Protocol):
    """The non-linear part of a base feature map, ready to run on one device in one precision.

    A *unit* is one frequency, landmark or template: whatever the map can be
    computed by pieces of. One whose ``finish`` changes nothing may say so by
    ``sums_are_features = True``: then no sums are held beside the result.
    """

    units: int
    width: int  # columns of the accumulator
    n_outputs: int  # columns after ``finish``

    def add(self, points: Tensor, weight: Any, units: slice, total: Tensor, scratch: Scratch) -> None:
        """Add ``weight`` times the features of ``points`` (n, d) for ``units`` into ``total`` (n, width).

        ``weight`` is a number, or an entry of the ``weights`` given to :meth:`Engine.average`.
        """

    def finish(self, total: Tensor) -> Tensor:
        """The linear step after averaging: (n, width) to (n, n_outputs)."""


@runtime_checkable
class Prepared(Protocol):
    """What an :class:`Embedding` may add: a form of the points that all its units share."""

    def prepare(self, points: Tensor) -> Tensor:
        """What ``add`` is handed instead of ``points`` (n, d): computed once for all units, of at most some n x d."""


class Projected(Embedding, Protocol):
    """An embedding that sees a point x only through its projections ``<t_j, x>`` on templates, and through ``|x|^2``.

    That is all the template and the spectral path ask for. An embedding of which
    only some instances can give it has ``templates`` None in the others.

    Attributes
    ----------
    templates : tensor, shape (units, d), or None
    needs_squares : bool
        Whether ``squares`` is used.
    """

    templates: Tensor | None
    needs_squares: bool

    def add_projected(
        self,
        projections: Tensor,
        squares: Tensor | None,
        weights: Tensor,
        units: slice,
        total: Tensor,
        scratch: Scratch,
    ) -> None:
        """Add the weighted features of several orbit points into ``total`` (n, width).

        Parameters
        ----------
        projections : tensor, shape (r, n, units)
            ``<t_j, g_i x>``; may be overwritten.
        squares : tensor, shape (r, n), or None
            ``|g_i x|^2``; given if ``needs_squares``.
        weights : tensor, shape (r,)
        """


class Mirrored(Projected, Protocol):
    """An embedding that makes something of projections that come in pairs ``even + odd`` and ``even - odd``."""

    def add_mirrored(
        self, even: Tensor, odd: Tensor, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        """Add the features of ``even + odd`` and of ``even - odd``, both with the same ``weights``, shape (m,).

        ``even`` and ``odd``: shape (m, n, units); may be overwritten.
        """


class Scratch:
    """Working memory of one tile of rows, given out as contiguous matrices for every orbit point in turn.

    No matrix may be used after its ``Scratch`` is gone: the memory is handed on.
    """

    def __init__(self, count: int, rows: int, columns: int, like: Tensor) -> None:
        self._buffers = [_SPARE.take(rows * columns, like) for _ in range(count)]

    def __del__(self) -> None:
        _SPARE.give(getattr(self, "_buffers", ()))

    def matrix(self, which: int, rows: int, columns: int) -> Tensor:
        return self._buffers[which][: rows * columns].view(rows, columns)

    def like(self, which: int, other: Tensor) -> Tensor:
        """A matrix, or stack of matrices, of the shape of ``other``."""
        return self._buffers[which][: other.numel()].view(other.shape)


class _Spare:
    """Memory that stays mapped from one call to the next.

    What is freed goes back to the operating system, and a page that is touched for the first time costs as much as
    trigonometry on all of it. On a GPU torch does this by itself.
    """

    def __init__(self) -> None:
        self._lock, self._buffers, self._given = threading.Lock(), list[Tensor](), deque[Tensor]()

    def take(self, numbers: int, like: Tensor) -> Tensor:
        if like.device.type == "cpu":
            with self._lock:
                self._put_in_line()
                for i, buffer in enumerate(self._buffers):
                    if buffer.dtype == like.dtype and numbers <= len(buffer) <= 2 * numbers:
                        return self._buffers.pop(i)
        return like.new_empty(numbers)

    def give(self, buffers: Iterable[Tensor]) -> None:
        """Never waits: the garbage collector may come here from anywhere, such as the middle of :meth:`take`."""
        for buffer in buffers:
            if buffer.device.type == "cpu":
                self._given.append(buffer)
        if self._lock.acquire(blocking=False):
            try:
                self._put_in_line()
            finally:
                self._lock.release()

    def _put_in_line(self) -> None:
        """The latest first, and the oldest let go when all of them are too much."""
        while self._given:
            self._buffers.insert(0, self._given.popleft())
        while sum(buffer.nbytes for buffer in self._buffers) > _SPARE_BYTES:
            self._buffers.pop()


_SPARE = _Spare()


def _start_anew() -> None:
    global _SPARE
    _SPARE = _Spare()


if hasattr(os, "register_at_fork"):  # a thread that is not in the child may have had the lock
    os.register_at_fork(after_in_child=_start_anew)


def nbytes(part: object) -> int:
    """Of all tensors that an object, such as an embedding, or one of its parts holds."""
    return sum({id(tensor): tensor.nbytes for tensor in _tensors(part)}.values())


def _tensors(part: object) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    elif hasattr(part, "__dict__") and not isinstance(part, type):
        for each in vars(part).values():
            yield from _tensors(each)


def add_weighted(total: Tensor, values: Tensor, weights: Tensor) -> None:
    """``total += sum_i weights[i] values[i]`` for ``values`` (r, n, m), contiguous, and ``total`` (n, m)."""
    total.add_(torch.mv(values.flatten(1).T, weights).view(total.shape))
