"""The direct strategy: move the points, a tile at a time."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from orbit.engine.buffers import Reused
from orbit.engine.embedding import Embedding, ProjectedEmbedding, Scratch
from orbit.engine.memory import TILE_ROWS, Tiling, Workspace, slices
from orbit.engine.nonzero_columns import NonzeroColumns, by_nonzero_columns, has_zeros
from orbit.engine.strategy import Cost, Route, Strategy, Task

# Tiles where one orbit element is processed at a time.
SINGLE = Tiling(rows=TILE_ROWS, elements=4, units=512)

# Tiles where one product gives the projections of several orbit points and one pass their features: call overhead then
# costs more than cache misses, so each tile holds six times as much.
BATCHED = Tiling(rows=768, elements=8, units=1024)

# Copies of the templates' columns for each thread; orbit elements whose moved points are searched for zeros.
_COPIES, _MOVED = 3, 16


class Direct(Strategy):
    """Computes and projects every orbit point. Always applies; the only strategy that supports encoders."""

    path = "direct"

    def supports(self) -> bool:
        return True

    def cost(self) -> Cost:
        task = self.task
        return Cost(task.embedding.projection_cost(task.n_features), len(task.X) if self._moves() else 0)

    def _moves(self) -> bool:
        """Whether moved points are new numbers."""
        orbit = self.task.orbit
        return len(orbit.weights_) > 1 and not orbit.group_.permutes(self.task.shape)

    def average(self) -> tuple[Tensor, Route]:
        task, embedding, workspace = self.task, self.task.embedding, self.workspace
        weights = task.orbit.weights_ if task.weights is None else task.weights
        order = self._order(len(weights))
        in_result = self.sums_in_result() and order is None
        tiling, batched = self._tiling(weights, order is not None), self._is_batched(weights)
        out = self.result()
        like = workspace.tensor(task.X[:0], task.X.dtype)
        tile_rows = tiling.rows * (tiling.elements if batched else 1)

        def work(rows: slice) -> None:
            index = rows if order is None else order[rows]
            points = workspace.tensor(task.points(index), task.X.dtype)
            total = out[rows] if in_result else points.new_zeros(len(points), embedding.width)
            if in_result and workspace.halves_tiles:
                total.zero_()  # it may have some sums of a tile that found no memory
            nonzero = None if order is None else NonzeroColumns(embedding)
            tile = _TileSum(task, workspace, total, tiling.units, scratch(), nonzero)
            add_moved = tile.add_batch if batched else tile.add_each
            for elements in slices(len(weights), tiling.elements):
                add_moved(task.orbit.points(points, elements), weights[elements])
            if order is not None:
                out[torch.from_numpy(index)] = embedding.finish(total)
            elif not in_result:
                workspace.copy(embedding.finish(total), out[rows])

        with Reused[Scratch]().per_thread(lambda: Scratch(2, tile_rows, tiling.units, like)) as scratch:
            workspace.run(work, list(slices(len(task.X), tiling.rows)), task.description)
        return out, Route("direct", operations=self.cost().projection)

    def _order(self, n_elements: int) -> np.ndarray | None:
        """Indices of the points, shape (n,), sorted by non-zero entries; None if no columns of zeros are left out."""
        task, embedding, workspace = self.task, self.task.embedding, self.workspace
        if workspace.device.type != "cpu" or not embedding.restricts:
            return None
        # each thread copies the columns that are not zero
        if _COPIES * workspace.workers * embedding.units * task.n_features * task.X.itemsize > workspace.cached_bytes:
            return None
        order = by_nonzero_columns(task.X, TILE_ROWS, n_elements)
        if order is None:
            return None
        # a group may spread zeros over all columns
        rows = min(TILE_ROWS, workspace.cached_bytes // (_MOVED * task.X[:1].nbytes))
        first = workspace.tensor(task.points(order[:rows]), task.X.dtype)
        moved = task.encode(task.orbit.points(first, slice(0, _MOVED)).flatten(0, 1))
        return order if has_zeros((moved.numpy() != 0).any(0)) else None

    def _is_batched(self, weights: np.ndarray) -> bool:
        """Whether features depend on projections alone, so that several orbit points can be processed at once."""
        embedding = self.task.embedding
        projected = isinstance(embedding, ProjectedEmbedding) and not embedding.needs_squares
        return projected and embedding.unit_tile is None and weights.ndim == 1

    def _tiling(self, weights: np.ndarray, reordered: bool) -> Tiling:
        """The size of a tile. A batch holds the projections of all elements of a tile, so it has fewer rows."""
        task, embedding, workspace = self.task, self.task.embedding, self.workspace
        n, d, batched = len(task.X), task.n_features, self._is_batched(weights)
        base = BATCHED if batched else SINGLE
        units = min(embedding.units, embedding.unit_tile or base.units)
        elements = min(len(weights), base.elements)
        together = elements if batched else 1
        fair = -(-n // workspace.workers)  # smaller tiles rather than idle workers
        tall = max(1, workspace.tile_factor * base.rows * base.units // max(units, base.units) // together)
        # a block of orbit points, the next one being computed, and some copies of the points
        moved = d * (3 * elements + 4)
        # sums of reordered points are copied to their places when they are complete
        sums = 0 if self.sums_in_result() and not reordered else 2 * embedding.width + embedding.n_outputs
        per_row = (moved + sums + 3 * units * together) * task.X.dtype.itemsize + task.encoded_bytes * together
        return Tiling(max(1, min(tall, workspace.affordable(per_row), fair)), elements, units)


@dataclass
class _TileSum:
    """The sum over the orbit for the points of a tile.

    Attributes
    ----------
    task : Task
    workspace : Workspace
    total : tensor, shape (n, width)
    units : units that are computed at once
    scratch : Scratch
    nonzero : NonzeroColumns or None
        Leaves out the columns of the points that are zero, if it is given.
    is_zero : whether ``total`` is still zero
    """

    task: Task
    workspace: Workspace
    total: Tensor
    units: int
    scratch: Scratch
    nonzero: NonzeroColumns | None
    is_zero: bool = True

    def add_batch(self, moved: Tensor, weights: np.ndarray) -> None:
        """Add the features of orbit points (r, n, *shape) of several elements, by one product and one addition."""
        r, n = moved.shape[:2]
        embedding, points = self._narrowed(moved.flatten(0, 1))
        assert isinstance(embedding, ProjectedEmbedding)
        element_weights = self.workspace.tensor(weights, self.task.X.dtype)
        for units in slices(embedding.units, self.units):
            projections = embedding.project(points, units, self.scratch.matrix(1, r * n, units.stop - units.start))
            embedding.add_projected(projections.view(r, n, -1), None, element_weights, units, self.total, self.scratch)

    def add_each(self, moved: Tensor, weights: np.ndarray) -> None:
        """Add the features of orbit points (r, n, *shape), one element at a time."""
        for one, weight in zip(moved, weights, strict=True):
            if not np.any(weight):
                continue
            embedding, points = self._narrowed(one)
            points, add = embedding.prepare(points), embedding.put if self.is_zero else embedding.add
            for units in slices(embedding.units, self.units):
                add(points, weight if np.ndim(weight) else float(weight), units, self.total, self.scratch)
            self.is_zero = False

    def _narrowed(self, moved: Tensor) -> tuple[Embedding, Tensor]:
        """The embedding and encoded points, without the columns that are zero if ``nonzero`` is given."""
        points = self.task.encode(moved)
        return (self.task.embedding, points) if self.nonzero is None else self.nonzero.narrowed(points)
