"""The only place that tiles, threads, picks a device and bounds memory.

Every approximation hands in an :class:`Embedding`, which knows how to add the
features of a tile of points to an accumulator. The engine alone decides how
large a tile is, in which order orbit points are visited and on which thread, so
orbit averaging is written once for all of them:

    psi(x) = finish( sum_i w_i embed(g_i x) )                 (LGIKA eqs. 7 and 8)

Worker threads each run one tile of rows with single-threaded BLAS inside. On
shared cores that is far steadier than many BLAS threads meeting at a barrier
for every small product, and it keeps the tile in its core's cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from orbit.component import Component
from orbit.errors import ParameterError
from orbit.orbits import Orbit
from orbit.params import PositiveFloat, PositiveInt
from orbit.progress import Progress

# A tile of 256 x 512 float32 projections is half a megabyte: it stays in a core's
# second-level cache while cosine, sine and both sums pass over it.
_TILE_ROWS = 256
_TILE_UNITS = 512
_TILE_ELEMENTS = 8


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


class Scratch:
    """Working memory of one tile of rows, given out as contiguous matrices for every orbit point in turn."""

    def __init__(self, count: int, rows: int, columns: int, like: Tensor) -> None:
        self._buffers = [like.new_empty(rows * columns) for _ in range(count)]

    def matrix(self, which: int, rows: int, columns: int) -> Tensor:
        return self._buffers[which][: rows * columns].view(rows, columns)


@dataclass(frozen=True)
class Tiling:
    """Rows, orbit elements and units that are worked on at once."""

    rows: int
    elements: int
    units: int


class Engine(Component):
    """How, where and in which precision features are computed.

    Parameters
    ----------
    memory : float > 0
        Budget in GiB for everything above input and output, over all workers.
    workers : int >= 1 or None
        Threads; None is the number of threads torch would use.
    device : {"auto", "cpu", "cuda"}
        ``auto`` is a GPU where there is one.
    dtype : {"auto", "float32", "float64"}
        ``auto`` keeps the precision of the data: float32 for float32 and
        integers, float64 for float64.
    stream : bool
        Learn from a batch of rows of features at a time, and never hold them all.
        For learners that can (ridge, adagrad); memory does not grow with n.
    progress : bool
        Show a progress bar (on a terminal) or a line a minute (elsewhere).
    """

    kind, name = "engine", "engine"

    def __init__(
        self,
        memory: PositiveFloat = 1.0,
        workers: PositiveInt | None = None,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        dtype: Literal["auto", "float32", "float64"] = "auto",
        stream: bool = False,
        progress: bool = False,
    ) -> None:
        self.memory = memory
        self.workers = workers
        self.device = device
        self.dtype = dtype
        self.stream = stream
        self.progress = progress

    def check(self) -> None:
        super().check()
        if self.device == "cuda" and not torch.cuda.is_available():
            raise ParameterError("device", "'cpu' or 'auto' on a machine without a CUDA GPU", self.device)

    def result_dtype(self, X: np.ndarray) -> np.dtype:
        """The floating-point type that features of ``X`` are computed and returned in."""
        if self.dtype != "auto":
            return np.dtype(self.dtype)
        return np.dtype(np.float64) if X.dtype == np.float64 else np.dtype(np.float32)

    def tensor(self, array: np.ndarray, dtype: np.dtype) -> Tensor:
        """``array`` on this engine's device; a copy, so that read-only input is safe."""
        return torch.from_numpy(np.array(array, dtype=dtype)).to(self._torch_device())

    def average(
        self,
        embedding: Embedding,
        orbit: Orbit,
        X: np.ndarray,
        what: str = "features",
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """psi(x) for every row of ``X``: the embedding averaged over the fitted orbit.

        Nothing of size n x r x d or n x r x units is ever held: memory beyond
        the result is ``engine.memory``, whatever n and r are.

        Parameters
        ----------
        X : array, shape (n, *shape), of the dtype the result shall have
        weights : array, shape (r, ...), or None for the orbit's own
            One number or matrix for each element, handed to the embedding as it is.

        Returns
        -------
        array, shape (n, embedding.n_outputs)
        """
        weights = orbit.weights_ if weights is None else weights
        # zeros of the operating system, so that nothing is written before the features are
        out = np.zeros((len(X), embedding.n_outputs), dtype=X.dtype)
        in_place = self._in_place(embedding)
        tiling = self._tiling(embedding, orbit, X)
        starts = range(0, len(X), tiling.rows)

        def work(start: int) -> None:
            rows = slice(start, start + tiling.rows)
            points = self.tensor(X[rows], X.dtype)
            scratch = Scratch(2, len(points), tiling.units, points)
            shape = len(points), embedding.width
            total = torch.from_numpy(out[rows]) if in_place else points.new_zeros(shape)
            for moved, weight in self._orbit_points(orbit, points, tiling.elements, weights):
                if isinstance(embedding, Prepared):
                    moved = embedding.prepare(moved)
                for units in _slices(embedding.units, tiling.units):
                    embedding.add(moved, weight, units, total, scratch)
            if not in_place:
                out[rows] = embedding.finish(total).cpu().numpy()

        with Progress(len(starts), what, self.progress) as progress:
            self._run(work, starts, progress)
        return out

    def orbit_points(self, orbit: Orbit, X: np.ndarray) -> np.ndarray:
        """All orbit points, flattened: shape (r, n, d). For small sets such as landmarks only."""
        points = self.tensor(X, X.dtype)
        return orbit.points(points, slice(None)).reshape(len(orbit.weights_), len(X), -1).cpu().numpy()

    def row_batches(self, n: int, bytes_per_row: int, at_most: int | None = None) -> Iterator[slice]:
        """Slices of at most the memory budget, and ``at_most`` rows, for work done a batch of rows at a time."""
        affordable = max(1, int(self.memory * 2**30 // max(1, bytes_per_row)))
        return _slices(n, min(affordable, at_most or n))

    def _orbit_points(
        self, orbit: Orbit, points: Tensor, block: int, weights: np.ndarray
    ) -> Iterator[tuple[Tensor, Any]]:
        for elements in _slices(len(weights), block):
            moved = orbit.points(points, elements)
            for i, weight in enumerate(weights[elements]):
                if np.any(weight):
                    yield moved[i].reshape(len(points), -1), weight if np.ndim(weight) else float(weight)

    def _tiling(self, embedding: Embedding, orbit: Orbit, X: np.ndarray) -> Tiling:
        n, d = len(X), int(np.prod(X.shape[1:]))
        units = min(embedding.units, _TILE_UNITS)
        elements = min(len(orbit.weights_), _TILE_ELEMENTS)
        # a block of orbit points while the next one is made from its parts, and some copies of the points
        moved = d * (3 * elements + 4)
        sums = 0 if self._in_place(embedding) else 2 * embedding.width + embedding.n_outputs
        per_row = (moved + sums + 3 * units) * X.dtype.itemsize
        affordable = int(self.memory * 2**30 / self._n_workers() // per_row)
        fair = -(-n // self._n_workers())  # rather two small tiles than one worker idle
        return Tiling(max(1, min(_TILE_ROWS, affordable, fair)), elements, units)

    def _in_place(self, embedding: Embedding) -> bool:
        """Whether sums are made in the result itself: on a GPU they cannot be."""
        return getattr(embedding, "sums_are_features", False) and self._torch_device().type == "cpu"

    def _n_workers(self) -> int:
        return 1 if self._torch_device().type == "cuda" else self.workers or torch.get_num_threads()

    def _torch_device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def _run(self, work: Callable[[int], None], starts: Sequence[int], progress: Progress) -> None:
        def guarded(start: int) -> None:
            with torch.inference_mode():
                work(start)

        workers = min(self._n_workers(), len(starts))
        if workers <= 1:
            for start in starts:
                guarded(start)
                progress.step()
            return
        with _single_threaded_blas(), ThreadPoolExecutor(workers) as pool:
            pending = {pool.submit(guarded, start) for start in starts}
            try:
                _drain(pending, progress)
            except BaseException:  # an error in one tile, or Ctrl-C: do not start the others
                pool.shutdown(cancel_futures=True)
                raise


def _drain(pending: set, progress: Progress) -> None:
    while pending:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
            progress.step()


def _slices(length: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


@contextlib.contextmanager
def _single_threaded_blas() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
