"""Permutations: of entries, of blocks (as in Mroueh et al. 2015), of rows and columns together (Coulomb matrices)."""

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from orbit.core.distinct import as_bytes
from orbit.core.params import PositiveInt
from orbit.groups.base import Group
from orbit.groups.domains import Permutations
from orbit.groups.reordering import Reordering
from orbit.registry import register


@register("group", "permutation")
@dataclass(eq=False, repr=False)
class Permutation(Reordering):
    """The symmetric group; an element lists the new order: ``(p x)[i] = x[p[i]]``.

    By default all permutations are listed, exactly, if they are at most as many as the size
    of the orbit (four items at the default size), and otherwise drawn at random. The orbit rule
    ``quadrature`` lists those of up to seven items.

    Parameters
    ----------
    mode : {"entries", "blocks", "rows_columns"}
        ``entries``: of a vector. ``blocks``: of the rows of an array ``(n,
        ...)``, such as a code of five one-hot letters ``(5, 8)``, or of n equal
        pieces of a vector. ``rows_columns``: rows and columns of a square matrix
        by the same permutation.
    n : int >= 1 or None
        Number of items that are permuted; None: taken from the data. Required
        for vectors in ``blocks``.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Permutation
    >>> Permutation().act([[2, 0, 1]], np.array([[10.0, 20.0, 30.0]]))[0]
    array([[30., 10., 20.]])
    >>> Permutation(mode="blocks", n=2).act([[1, 0]], np.arange(4.0)[None])[0]
    array([[2., 3., 0., 1.]])
    """

    ROWS_COLUMNS = "rows and columns"

    default_rule = "monte_carlo"
    compared_on = (0, 1, 2, 3)

    mode: Literal["entries", "blocks", "rows_columns"] = "entries"
    n: PositiveInt | None = None

    @classmethod
    def variants(cls, shape: tuple[int, ...]) -> list[Group]:
        return [cls("entries"), cls("rows_columns"), *([cls("blocks")] if len(shape) > 1 else [])]

    @property
    def domain(self) -> Permutations:
        return Permutations(self.n, self.ROWS_COLUMNS if self.mode == "rows_columns" else self.mode)

    def for_shape(self, shape: tuple[int, ...]) -> Self:
        self.check_shape(shape)
        return self._with(n=self._count(shape))

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        left, right = np.broadcast_arrays(self._rows(left).astype(float), self._rows(right).astype(float))
        return np.take_along_axis(right, left.astype(np.int64), axis=-1)

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return np.argsort(self._rows(elements), axis=-1).astype(float)

    def _rows(self, elements: np.ndarray) -> np.ndarray:
        elements = np.asarray(elements)
        is_any_length = self.n is None and elements.ndim == 2  # before the number of items is known
        return elements if is_any_length else super()._rows(elements)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self.mode == "entries" and len(shape) != 1:
            other = "rows_columns" if len(shape) == 2 and shape[0] == shape[1] else "blocks"
            raise self._refuse(
                shape, f"vectors ({self.section}.mode=entries; {self.section}.mode={other} takes such arrays)"
            )
        if self.mode == "rows_columns" and (len(shape) != 2 or shape[0] != shape[1]):
            raise self._refuse(shape, f"square matrices ({self.section}.mode=rows_columns)")
        if self.mode == "blocks" and len(shape) == 1:
            if self.n is None:
                raise self.wrong("n", f"the number of blocks of a vector, for {self.section}.mode=blocks")
            if shape[0] % self.n:
                raise self._refuse(shape, f"vectors of {self.n} equal blocks ({self.section}.n)")
        elif self.n not in (None, shape[0]):
            raise self._refuse(shape, f"arrays with {self.n} {self.domain.of} ({self.section}.n)")

    def canonical(self, X: np.ndarray) -> np.ndarray | None:
        """The points with their items sorted, by their bytes; None for rows and columns, which have no fast sort."""
        if self.mode == "rows_columns":
            return None
        items = X.reshape(len(X), self._count(X.shape[1:]), -1)
        order = np.argsort(as_bytes(items), axis=1)
        return np.take_along_axis(items, order[..., None], axis=1).reshape(X.shape)

    def describe(self, element: np.ndarray) -> str:
        order = [str(int(i)) for i in element]
        return " ".join(order if len(order) <= 8 else [*order[:6], "…"])

    def act_each(self, orders: Tensor, X: Tensor) -> Tensor:
        """Every point moved by its own permutations.

        Parameters
        ----------
        orders : integer tensor, shape (r, n, k)
            The new order of the k items of each point.
        X : tensor, shape (n, *shape)

        Returns
        -------
        tensor, shape (r, n, *shape)
        """
        r, k = len(orders), orders.shape[-1]
        rows = X.reshape(1, len(X), k, -1).expand(r, -1, -1, -1)
        index = orders[..., None].expand(rows.shape)
        moved = rows.gather(2, index)
        if self.mode == "rows_columns":
            moved = moved.gather(3, orders[:, :, None, :].expand(moved.shape))
        return moved.reshape(r, *X.shape)

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        orders = torch.from_numpy(elements.astype(np.int64)).to(X.device)
        return self.act_each(orders[:, None, :].expand(-1, len(X), -1), X)

    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        return self._act(np.asarray(element)[None], X)[0]

    def _count(self, shape: tuple[int, ...]) -> int:
        return self.n if self.n is not None else math.prod(shape[:1])
