"""Frequencies as signs and fast Walsh-Hadamard transforms: products with them need no matrix."""

from functools import cached_property

import numpy as np
import torch
from scipy.linalg import hadamard
from torch import Tensor

from orbit.core.compiled import loops

# By torch the Hadamard matrix is a product of factors of at most this side: on a processor with wide
# vectors twice as fast as two factors of side sqrt(d), and four times as fast as passes of additions by torch.
_SIDE_BITS = 5

# Costs in operations of a large matrix product: of each block and point, and of each number in each pass of the
# compiled loops. A pass transforms three bits of the index; multiplying by a diagonal counts as one pass. Without the
# loops products take two to three times as long.
_BLOCK_COST, _PASS_COST = 7.5e4, 16.0

# Columns of the dense matrix that are computed at once.
_DENSE_COLUMNS = 256


class HadamardBlocks:
    """Rows of ``diag(lengths) H D1 H D2 H D3``, block by block, as signs and lengths.

    H is the normalised Hadamard matrix of side 2^k >= ``n_features``, points are padded
    with zeros. Takes 3 bytes for each row of a block and 8 for each length, where the
    matrix takes 8 ``n_features`` for each row.

    Parameters
    ----------
    signs : int8 array of -1 and 1, shape (blocks, 3, 2^k)
        The diagonals of D3, D2 and D1, in the order in which they are applied.
    lengths : float64 array, shape (size,)
    n_features : int
    """

    def __init__(self, signs: np.ndarray, lengths: np.ndarray, n_features: int) -> None:
        self.signs, self.lengths, self.n_features = signs, lengths, n_features

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def block(self) -> int:
        """Rows of each block; the last one may have fewer."""
        return self.signs.shape[2]

    @property
    def cost(self) -> float:
        """Cost of the products with one point, as the number of operations of a dense product of equal time."""
        passes = -(-(self.block.bit_length() - 1) // 3) + 1
        return len(self.signs) * (_BLOCK_COST + 3 * self.block * passes * _PASS_COST)

    def dense(self) -> np.ndarray:
        """The dense matrix, float64, shape ``(size, n_features)``."""
        product = FastProjection(self, torch.zeros(1, dtype=torch.float64))
        matrix = np.empty((len(self), self.n_features))
        for start in range(0, self.n_features, _DENSE_COLUMNS):
            columns = slice(start, min(start + _DENSE_COLUMNS, self.n_features))
            units = torch.zeros(columns.stop - start, self.n_features, dtype=torch.float64)
            units[:, columns] = torch.eye(len(units), dtype=torch.float64)
            matrix[:, columns] = product(units, slice(0, len(self)), units.new_empty(len(units), len(self))).T
        return matrix


class FastProjection:
    """Products of points with :class:`HadamardBlocks`, on one device in one precision.

    Parameters
    ----------
    blocks : HadamardBlocks
    like : tensor
        Has the device and precision.
    """

    def __init__(self, blocks: HadamardBlocks, like: Tensor) -> None:
        tensor = lambda array: torch.from_numpy(np.array(array)).to(like)  # noqa: E731
        self.blocks, self.block = blocks, blocks.block
        self.diagonals = tensor(blocks.signs * self.block**-0.5)  # with what normalises H
        self.lengths = tensor(blocks.lengths)
        self.factors = [tensor(hadamard(side)) for side in _sides(self.block)]

    def __len__(self) -> int:
        return len(self.blocks)

    @cached_property
    def dense(self) -> Tensor:
        """The dense matrix, shape ``(size, n_features)``."""
        return torch.from_numpy(self.blocks.dense()).to(self.lengths)

    def __call__(self, points: Tensor, units: slice, out: Tensor) -> Tensor:
        """Write ``points`` (n, d) times the rows ``units``, which are whole blocks, to ``out``, shape (n, units)."""
        points, types = points.contiguous(), (torch.float32, torch.float64)
        compiled = loops("orbit.approx.hadamard_loops", points, self.lengths, types=types)
        for start in range(units.start, units.stop, self.block):
            stop = min(start + self.block, units.stop)
            block = self.diagonals[start // self.block], self.lengths[start:stop]
            columns = out[:, start - units.start : stop - units.start]
            if compiled:
                compiled.project(*(array.numpy() for array in (points, *block, columns)))
            else:
                self._project(points, *block, columns)
        return out

    def _project(self, points: Tensor, diagonals: Tensor, lengths: Tensor, out: Tensor) -> None:
        """Write the products with the rows of one block, by small matrix products, to ``out``, shape (n, rows)."""
        (n, d), kept = points.shape, self._kept(len(lengths))
        buffers = [points.new_empty(n * self.block) for _ in range(2)]
        padded = buffers[0].view(n, self.block)
        padded[:, d:] = 0
        torch.mul(points, diagonals[0, :d], out=padded[:, :d])
        for diagonal in diagonals[1:]:
            buffers = self._transformed(buffers, n, self.block)
            buffers[0].view(n, self.block).mul_(diagonal)
        buffers = self._transformed(buffers, n, len(lengths))
        torch.mul(buffers[0][: n * kept].view(n, kept)[:, : len(lengths)], lengths, out=out)

    def _kept(self, rows: int) -> int:
        """Rows that a transform computes if ``rows`` are needed: a multiple of the block size over its first side."""
        rest = self.block // len(self.factors[0])
        return -(-rows // rest) * rest

    def _transformed(self, buffers: list[Tensor], n: int, rows: int) -> list[Tensor]:
        """The buffers, with the Hadamard transform of the first, at least its first ``rows``, as the new first."""
        source, target = buffers
        outer, rest = n, self.block
        for factor in self.factors:
            # a factor acts on the first axis of (side, rest); later factors take only the rows kept by earlier ones
            side = len(factor)
            rest //= side
            kept = factor[: self._kept(rows) // rest] if outer == n else factor
            values = source[: outer * side * rest].view(outer, side, rest)
            result = target[: outer * len(kept) * rest]
            if rest == 1:
                torch.mm(values[:, :, 0], kept.T, out=result.view(outer, len(kept)))
            else:
                torch.bmm(kept.expand(outer, *kept.shape), values, out=result.view(outer, len(kept), rest))
            outer *= len(kept)
            source, target = target, source
        return [source, target]


def _sides(length: int) -> list[int]:
    """About equal powers of two up to 32 whose product is ``length``, in descending order."""
    bits = length.bit_length() - 1
    count = max(1, -(-bits // _SIDE_BITS))
    return [1 << (bits // count + (i < bits % count)) for i in range(count)]
