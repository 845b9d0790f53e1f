"""The template strategy: move the templates by the exact adjoint, once for all points of a batch.

``<t, g x> = <g* t, x>`` for the adjoint g* of a linear action.
"""

import numpy as np
import torch
from torch import Tensor

from orbit.engine.direct import SINGLE
from orbit.engine.embedding import ProjectedEmbedding, Scratch, flatten
from orbit.engine.memory import slices
from orbit.engine.strategy import Cost, Route, Strategy

# Moving a template costs about as much as moving this many points.
_TEMPLATE_COST = 4


class Template(Strategy):
    """Moves the templates instead of the points: for many points and few templates."""

    path = "template"
    group_trait = "acts linearly, the same for all points"

    def supports(self) -> bool:
        orbit = self.task.orbit
        return self.task.is_projected and not orbit.distribution_.data_dependent and orbit.group_.linear

    def cost(self) -> Cost:
        task = self.task
        moves_points = task.embedding.needs_squares and not task.orbit.group_.is_unitary(task.shape)
        moved = _TEMPLATE_COST * task.embedding.units + (len(task.X) if moves_points else 0)
        return Cost(2.0 * task.n_features, moved)

    def average(self) -> tuple[Tensor, Route]:
        task, workspace, embedding = self.task, self.workspace, self.task.embedding
        X, d, itemsize = task.X, task.n_features, task.X.dtype.itemsize
        out = self.result()
        units = max(1, min(SINGLE.units, -(-embedding.units // workspace.workers)))
        sums = 2 * embedding.width + embedding.n_outputs
        tile = (d * (3 * min(len(task.orbit.weights_), SINGLE.elements) + 4) + sums + 3 * units) * itemsize
        rows = workspace.rows(len(X), tile)
        tile_bytes = workspace.workers * itemsize * (5 * d * units + 3 * rows * units)
        per_row = itemsize * (sums + len(task.orbit.weights_) + 4 * d)
        left = max(0.0, workspace.budget - tile_bytes)
        for batch in slices(len(X), max(1, min(len(X), int(left // per_row)))):
            self.workspace.copy(self._batch_in_halves(task.points(batch), units, rows), out[batch])
        return out, Route("template", operations=self.cost().projection)

    def _batch_in_halves(self, X: np.ndarray, units: int, tile_rows: int) -> Tensor:
        """Features of a batch, repeated with half the units per tile if memory runs out: tiles add to shared sums."""
        while True:
            try:
                return self._batch(X, units, tile_rows)
            except torch.OutOfMemoryError:
                if units == 1:
                    raise
            torch.cuda.empty_cache()
            units = -(-units // 2)

    def _batch(self, X: np.ndarray, units: int, tile_rows: int) -> Tensor:
        embedding, orbit = self.task.embedding, self.task.orbit
        assert isinstance(embedding, ProjectedEmbedding)
        points, weights = self.workspace.tensor(X, X.dtype), self.workspace.tensor(orbit.weights_, X.dtype)
        squares = self._squares(points) if embedding.needs_squares else None
        points = flatten(points)
        total = points.new_zeros(len(points), embedding.width)

        def add(columns: slice) -> None:
            templates = embedding.templates(columns).reshape(-1, *X.shape[1:])
            scratch, tiles = (Scratch(1, tile_rows, len(templates), points) for _ in range(2))
            for i in range(len(weights)):
                moved = flatten(orbit.group_.adjoint(orbit.elements_[i : i + 1], templates)[0])
                for rows in slices(len(points), tile_rows):
                    tile = tiles.matrix(0, rows.stop - rows.start, len(templates))
                    torch.mm(points[rows], moved.T, out=tile)
                    row_squares = None if squares is None else squares[i : i + 1, rows]
                    embedding.add_projected(tile[None], row_squares, weights[i : i + 1], columns, total[rows], scratch)

        parts = embedding.parts(units)

        def work(tile: slice) -> None:
            for columns in parts[tile.start]:
                add(columns)

        self.workspace.run(work, list(slices(len(parts), 1)), self.task.description, halve=False)
        with torch.inference_mode():
            return embedding.finish(total)

    def _squares(self, points: Tensor) -> Tensor:
        """``|g_i x|^2`` for all orbit points, shape (r, n)."""
        orbit = self.task.orbit
        return torch.stack(
            [flatten(orbit.points(points, slice(i, i + 1))[0]).square().sum(1) for i in range(len(orbit.weights_))]
        )
