"""The only place that tiles, threads, picks a device and bounds memory.

Every approximation hands in an :class:`Embedding`, which knows how to add the
features of a tile of points to an accumulator. The engine alone decides how
large a tile is, in which order orbit points are visited and on which thread, so
orbit averaging is written once for all of them:

    psi(x) = finish( sum_i w_i embed(g_i x) )                 (LGIKA eqs. 7 and 8)

There are three ways to the same sum. *Direct*: move the points, a tile at a time.
*Template*: move the templates instead, by the exact adjoint. *Spectral*: where
the group shifts an axis cyclically, all elements at once from products of Fourier
coefficients (:mod:`orbit.engine.spectral`).

Worker threads each run one tile of rows with single-threaded BLAS inside. On
shared cores that is far steadier than many BLAS threads meeting at a barrier
for every small product, and it keeps the tile in its core's cache.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import InputError, ParameterError
from orbit.core.params import NonNegativeFloat, PositiveFloat, PositiveInt
from orbit.core.progress import Progress
from orbit.core.threads import in_threads, usual_threads
from orbit.engine.embedding import Embedding, Prepared, Scratch
from orbit.engine.latest import Latest
from orbit.engine.spectral import CyclicAxes, SpectralPlan, SpectralProjection, band
from orbit.orbits import Orbit

Made = TypeVar("Made")

# A tile of 256 x 512 float32 projections is half a megabyte: it stays in a core's
# second-level cache while cosine, sine and both sums pass over it.
_TILE_ROWS = 256
_TILE_UNITS = 512
_TILE_ELEMENTS = 4

# Where projections of several orbit points come from one product, and features of them in one pass, calls cost
# more than the cache: six times as much is done in each.
_PROJECTED_ROWS = 768
_PROJECTED_UNITS = 1024
_PROJECTED_ELEMENTS = 8

# Units of a spectral tile, and the numbers all its buffers hold together: a few megabytes.
_SPECTRAL_UNITS = 512
_SPECTRAL_NUMBERS = 2**22
_SPECTRAL_BUFFERS = 3

# Share of the memory that templates in the form of the latest call may take until the next one.
_KEPT_SHARE = 1 / 16

# Tiles on a GPU are so many times as large: there is no cache to fit, and each call should keep all of it busy.
_GPU_BREADTH = 64

# Share of a point's norm in modes that may be left out when no tolerance is given: what rounding loses anyway.
_SPECTRAL_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}

# Moving a template costs about as much as moving this many points.
_TEMPLATE_COST = 4


@dataclass(frozen=True)
class Route:
    """How an average was computed.

    Attributes
    ----------
    path : {"direct", "template", "spectral"}
    modes, all_modes : Fourier modes used, and all there are; 0 but on the spectral path
    error : the largest share of a point's norm that was in the modes left out
    """

    path: Literal["direct", "template", "spectral"]
    modes: int = 0
    all_modes: int = 0
    error: float = 0.0

    def metrics(self) -> dict[str, float]:
        """Modes used and left out, of the spectral path."""
        if self.path != "spectral":
            return {}
        return {
            "engine/modes": float(self.modes),
            "engine/all_modes": float(self.all_modes),
            "engine/spectral_error": self.error,
        }

    def __str__(self) -> str:
        if self.path != "spectral":
            return f"{self.path} path"
        left_out = f", at most {self.error:.1e} of a norm left out" if self.modes < self.all_modes else ""
        return f"spectral path ({self.modes} of {self.all_modes} modes{left_out})"


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
    path : {"auto", "direct", "template", "spectral"}
        How orbit points are projected; ``auto`` is the cheapest that applies. All
        give the same features to rounding, and to ``spectral_tolerance``.
    spectral_tolerance : float >= 0 or None
        The spectral path leaves out Fourier modes that together hold no more than
        this share of any point's norm. None is about the rounding of the
        precision: 1e-5 in float32, 1e-12 in float64.
    tf32 : bool
        Let a GPU round the factors of float32 products to 10 bits: faster, and no
        longer float32.
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
        path: Literal["auto", "direct", "template", "spectral"] = "auto",
        spectral_tolerance: NonNegativeFloat | None = None,
        tf32: bool = False,
    ) -> None:
        self.memory = memory
        self.workers = workers
        self.device = device
        self.dtype = dtype
        self.stream = stream
        self.progress = progress
        self.path = path
        self.spectral_tolerance = spectral_tolerance
        self.tf32 = tf32

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
        tensor, device = torch.from_numpy(np.array(array, dtype=dtype)), self._torch_device()
        return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor

    def _shared(self, array: np.ndarray) -> Tensor:
        """``array`` on this engine's device; without a copy where it can be, so nothing may be written to it."""
        if self._torch_device().type == "cpu" and array.flags.c_contiguous and array.flags.writeable:
            # flat first: an axis of length one may have any stride in NumPy, even a negative one
            return torch.from_numpy(array.reshape(-1)).view(array.shape)
        return self.tensor(array, array.dtype)

    @functools.cached_property
    def _plans(self) -> Latest:
        return Latest()

    @functools.cached_property
    def _projections(self) -> Latest:
        return Latest()

    def may_keep(self, nbytes: int) -> bool:
        """Whether so much may be kept from one call to the next: a small part of the memory."""
        return nbytes <= _KEPT_SHARE * self.memory * 2**30

    def precision(self) -> contextlib.AbstractContextManager[None]:
        """For products on a GPU outside of the engine: inside the ``with`` statement they are as exact as its own."""
        return _tf32(self.tf32)

    def average(
        self,
        embedding: Embedding,
        orbit: Orbit,
        X: np.ndarray,
        what: str = "features",
        weights: np.ndarray | None = None,
        modes: np.ndarray | None = None,
        label: str = "this map",
    ) -> tuple[np.ndarray, Route]:
        """psi(x) for every row of ``X``: the embedding averaged over the fitted orbit.

        Nothing of size n x r x d or n x r x units is ever held: memory beyond
        the result is ``engine.memory``, whatever n and r are.

        Parameters
        ----------
        X : array, shape (n, *shape), of the dtype the result shall have
        weights : array, shape (r, ...), or None for the orbit's own
            One number or matrix for each element, handed to the embedding as it is.
        modes : array of indices, or None
            Fourier modes for the spectral path, from :meth:`modes`. Where some of these points would lose more than
            is tolerated, and for None, they are chosen by the points ``X``.
        label : str
            What an error calls the map.

        Returns
        -------
        array, shape (n, embedding.n_outputs), and how it was computed

        Raises
        ------
        InputError
            If ``path`` names one that the embedding or the orbit has not.
        """
        # weights that are the caller's own may be matrices, which only moved points can be multiplied with
        plan = self._spectral_plan(embedding, orbit, X, modes) if weights is None else None
        path = self._path(embedding, orbit, X, plan, label) if weights is None else "direct"
        route = Route(path)
        # zeros of the operating system, so that nothing is written before the features are
        out = (np.empty if path == "spectral" else np.zeros)((len(X), embedding.n_outputs), dtype=X.dtype)
        with self.precision():
            if path == "spectral":
                assert plan is not None
                route = self._average_in_modes(embedding, orbit, X, out, what, plan, modes)
            elif path == "template":
                self._average_templates(embedding, orbit, X, out, what)
            else:
                self._average_direct(embedding, orbit, X, out, what, orbit.weights_ if weights is None else weights)
        return out, route

    def _average_direct(
        self, embedding: Embedding, orbit: Orbit, X: np.ndarray, out: np.ndarray, what: str, weights: np.ndarray
    ) -> None:
        in_place, at_once = self._in_place(embedding), _takes_projections(embedding, weights)
        tiling = self._tiling(embedding, orbit, X, at_once)
        add = self._add_together if at_once else self._add_one_by_one
        like = self.tensor(X[:0], X.dtype)
        scratches = _per_worker(
            lambda: Scratch(2, tiling.rows * (tiling.elements if at_once else 1), tiling.units, like)
        )

        def work(rows: slice) -> None:
            points = self.tensor(X[rows], X.dtype)
            total = torch.from_numpy(out[rows]) if in_place else points.new_zeros(len(points), embedding.width)
            for elements in _slices(len(weights), tiling.elements):
                moved = orbit.points(points, elements)
                add(embedding, moved, weights[elements], tiling.units, total, scratches())
            if not in_place:
                out[rows] = embedding.finish(total).cpu().numpy()

        self._run(work, list(_slices(len(X), tiling.rows)), what)

    def _add_together(
        self, embedding: Any, moved: Tensor, weights: np.ndarray, width: int, total: Tensor, scratch: Scratch
    ) -> None:
        """Orbit points (r, n, *shape) of several elements by one product, and one addition to the total for all."""
        r, n = moved.shape[:2]
        points, of_elements = moved.reshape(r * n, -1), self.tensor(weights, np.dtype(str(moved.dtype)[6:]))
        for units in _slices(embedding.units, width):
            projections = scratch.matrix(1, r * n, units.stop - units.start)
            torch.mm(points, embedding.templates[units].T, out=projections)
            embedding.add_projected(projections.view(r, n, -1), None, of_elements, units, total, scratch)

    def _add_one_by_one(
        self, embedding: Embedding, moved: Tensor, weights: np.ndarray, width: int, total: Tensor, scratch: Scratch
    ) -> None:
        for of_one, weight in zip(moved, weights, strict=True):
            if not np.any(weight):
                continue
            points = of_one.reshape(len(of_one), -1)
            if isinstance(embedding, Prepared):
                points = embedding.prepare(points)
            for units in _slices(embedding.units, width):
                embedding.add(points, weight if np.ndim(weight) else float(weight), units, total, scratch)

    def orbit_points(self, orbit: Orbit, X: np.ndarray) -> np.ndarray:
        """All orbit points, flattened: shape (r, n, d). For small sets such as landmarks only."""
        points = self.tensor(X, X.dtype)
        return orbit.points(points, slice(None)).reshape(len(orbit.weights_), len(X), -1).cpu().numpy()

    def row_batches(self, n: int, bytes_per_row: int, at_most: int | None = None) -> Iterator[slice]:
        """Slices of at most the memory budget, and ``at_most`` rows, for work done a batch of rows at a time."""
        affordable = max(1, int(self.memory * 2**30 // max(1, bytes_per_row)))
        return _slices(n, min(affordable, at_most or n))

    def _path(
        self, embedding: Embedding, orbit: Orbit, X: np.ndarray, plan: SpectralPlan | None, label: str
    ) -> Literal["direct", "template", "spectral"]:
        """The path asked for, or the cheapest that applies."""
        projected = getattr(embedding, "templates", None) is not None
        moves_templates = projected and not orbit.distribution_.data_dependent and orbit.group_.linear
        if self.path == "auto":
            return self._cheapest(embedding, orbit, X, plan, moves_templates)
        if (self.path == "spectral" and plan is None) or (self.path == "template" and not moves_templates):
            wrong = f"features of projections on fixed vectors, found {label}"
            if projected:
                acts = (
                    "shifts an axis cyclically" if self.path == "spectral" else "acts linearly, the same for all points"
                )
                wrong = f"a group that {acts}, found {orbit.group_.label()} and {orbit.distribution_.label()}"
            raise InputError(f"engine.path={self.path} needs {wrong}: choose engine.path=auto")
        return self.path

    def _cheapest(
        self, embedding: Any, orbit: Orbit, X: np.ndarray, plan: SpectralPlan | None, moves_templates: bool
    ) -> Literal["direct", "template", "spectral"]:
        dense = 2 * math.prod(X.shape[1:])  # operations for one projection
        direct = getattr(embedding, "projection_cost", dense)
        if plan is not None and plan.cost < direct:
            return "spectral"
        squares = getattr(embedding, "needs_squares", False) and not orbit.group_.is_unitary(X.shape[1:])
        moves = len(orbit.weights_) > 1 and not orbit.group_.permutes(X.shape[1:])
        if moves_templates and moves and not squares and direct == dense:
            return "template" if _TEMPLATE_COST * embedding.units < len(X) else "direct"
        return "direct"

    # ---- template path: the templates are moved, once for all points of a batch ----------------------------------

    def _average_templates(self, embedding: Any, orbit: Orbit, X: np.ndarray, out: np.ndarray, what: str) -> None:
        tiling = self._tiling(embedding, orbit, X)
        r, d, workers = len(orbit.weights_), math.prod(X.shape[1:]), self._n_workers()
        units = max(1, min(tiling.units, -(-embedding.units // workers)))
        tile_bytes = workers * X.dtype.itemsize * (5 * d * units + 3 * tiling.rows * units)
        left = max(0.0, self.memory * 2**30 - tile_bytes)
        per_row = X.dtype.itemsize * (2 * embedding.width + embedding.n_outputs + r + 4 * d)
        for batch in _slices(len(X), max(1, min(len(X), int(left // per_row)))):
            while True:
                try:
                    out[batch] = self._template_batch(embedding, orbit, X[batch], units, tiling.rows, what)
                    break
                except torch.OutOfMemoryError:
                    if units == 1:
                        raise
                # tiles add to sums that they share, so none can be done again: the whole batch is, by smaller ones
                torch.cuda.empty_cache()
                units = -(-units // 2)

    def _template_batch(
        self, embedding: Any, orbit: Orbit, X: np.ndarray, units: int, tile_rows: int, what: str
    ) -> np.ndarray:
        points, weights = self.tensor(X, X.dtype), self.tensor(orbit.weights_, X.dtype)
        squares = self._squares(embedding, orbit, points)
        points = points.flatten(1)
        total = points.new_zeros(len(points), embedding.width)

        def work(columns: slice) -> None:
            templates = embedding.templates[columns].reshape(-1, *X.shape[1:])
            scratch, tiles = (Scratch(1, tile_rows, len(templates), points) for _ in range(2))
            for i in range(len(weights)):
                moved = orbit.group_.adjoint(orbit.elements_[i : i + 1], templates).reshape(len(templates), -1)
                for rows in _slices(len(points), tile_rows):
                    tile = tiles.matrix(0, rows.stop - rows.start, len(templates))
                    torch.mm(points[rows], moved.T, out=tile)
                    of_rows = None if squares is None else squares[i : i + 1, rows]
                    embedding.add_projected(tile[None], of_rows, weights[i : i + 1], columns, total[rows], scratch)

        self._run(work, list(_slices(embedding.units, units)), what, halving=False)
        with torch.inference_mode():
            return embedding.finish(total).cpu().numpy()

    def _squares(self, embedding: Any, orbit: Orbit, points: Tensor) -> Tensor | None:
        if not embedding.needs_squares:
            return None
        norms = [moved.square().sum(1) for i in range(len(orbit.weights_)) for moved in self._moved(orbit, points, i)]
        return torch.stack(norms)

    def _moved(self, orbit: Orbit, points: Tensor, i: int) -> Tensor:
        return orbit.points(points, slice(i, i + 1)).reshape(1, len(points), -1)

    # ---- spectral path -------------------------------------------------------------------------------------------

    def modes(self, orbit: Orbit, X: np.ndarray) -> np.ndarray | None:
        """The Fourier modes that hold the energy of points ``X`` (n, *shape): for :meth:`average`.

        None where the group has none, or the spectral path is not wanted.
        """
        axes = self._cyclic_axes(orbit, X)
        return None if axes is None else self._band(axes, X)

    def _cyclic_axes(self, orbit: Orbit, X: np.ndarray) -> CyclicAxes | None:
        shape = tuple(X.shape[1:])
        cyclic = orbit.group_.cyclic_axes(shape)
        wanted = self.path == "spectral" or (self.path == "auto" and len(orbit.weights_) > 1)
        return CyclicAxes(shape, cyclic) if wanted and cyclic and not orbit.distribution_.data_dependent else None

    def _band(self, axes: CyclicAxes, X: np.ndarray) -> np.ndarray:
        tolerance = self._tolerance(X.dtype)
        if tolerance == 0 or not len(X):
            return np.arange(axes.n_modes)
        shares: list[np.ndarray] = []

        def work(rows: slice) -> None:
            shares.append(axes.energy_shares(self._shared(X[rows])).cpu().numpy())

        rows = self._rows(len(X), 8 * math.prod(axes.shape) * X.dtype.itemsize)
        self._run(work, list(_slices(len(X), rows)), "spectrum")
        return band(np.max(shares, axis=0), tolerance)

    def _tolerance(self, dtype: np.dtype) -> float:
        return _SPECTRAL_TOLERANCE[dtype] if self.spectral_tolerance is None else self.spectral_tolerance

    def _spectral_plan(
        self, embedding: Embedding, orbit: Orbit, X: np.ndarray, modes: np.ndarray | None
    ) -> SpectralPlan | None:
        """What the spectral path would do, or None where it does not apply."""
        axes = self._cyclic_axes(orbit, X)
        if axes is None or getattr(embedding, "templates", None) is None:
            return None
        chosen = self._band(axes, X) if modes is None else modes
        return self._plans.get(
            (orbit.elements_, orbit.weights_, orbit.group_),
            (axes.shape, axes.axes, chosen.tobytes()),
            lambda: SpectralPlan(axes, orbit, chosen),
        )

    def _rows(self, n: int, bytes_per_row: int) -> int:
        """Rows of a tile: within the budget, and so that no worker is idle."""
        workers = self._n_workers()
        affordable = int(self.memory * 2**30 / workers // bytes_per_row)
        return max(1, min(_TILE_ROWS * self._breadth(), affordable, -(-n // workers)))

    def _average_in_modes(
        self,
        embedding: Any,
        orbit: Orbit,
        X: np.ndarray,
        out: np.ndarray,
        what: str,
        plan: SpectralPlan,
        modes: np.ndarray | None,
    ) -> Route:
        tolerance = math.inf if modes is None else self._tolerance(X.dtype)
        lost = math.inf
        with contextlib.suppress(_TooMuchLostError):
            lost = self._average_spectral(embedding, X, plan, out, what, tolerance)
        if lost > tolerance:  # only here, when the error has let go of the working memory
            of_these = self._spectral_plan(embedding, orbit, X, None)
            assert of_these is not None
            plan, lost = of_these, self._average_spectral(embedding, X, of_these, out, what, math.inf)
        return Route("spectral", plan.n_modes, plan.axes.n_modes, lost)

    def _average_spectral(
        self, embedding: Any, X: np.ndarray, plan: SpectralPlan, out: np.ndarray, what: str, tolerance: float
    ) -> float:
        """The largest share of a point's norm that was lost; or stops at the first tile that loses too much."""
        workers, itemsize = self._n_workers(), X.dtype.itemsize
        affordable = int(self.memory * 2**30 / workers / 2 // itemsize)
        per_unit = plan.high + _SPECTRAL_BUFFERS * plan.n_held
        numbers = min(_SPECTRAL_NUMBERS * self._breadth(), affordable) // per_unit
        units = max(1, min(embedding.units, _SPECTRAL_UNITS, numbers))
        per_row = (12 * math.prod(plan.axes.shape) + 2 * embedding.width + embedding.n_outputs) * itemsize
        low = _even(len(X), max(1, min(self._rows(len(X), 2 * per_row), numbers // units)), workers)

        spectral = self._projections.get(
            (plan, embedding),
            (X.dtype, units),
            lambda: self._projection(plan, embedding, X.dtype, units),
            worth=lambda made: self.may_keep(made.nbytes),
        )
        in_place, like = self._in_place(embedding), self.tensor(X[:0], X.dtype)
        # products of coefficients, and later sums of projections; projections; what the embedding needs
        sizes = (1, plan.high), (2, plan.n_held), (1, plan.n_held)
        scratches = _per_worker(lambda: [Scratch(count, low * each, units, like) for count, each in sizes])
        lost: list[float] = []

        def work(rows: slice) -> None:
            spectrum = spectral.spectrum(self._shared(X[rows]))
            lost.append(spectrum.lost)
            if spectrum.lost > tolerance:
                raise _TooMuchLostError
            n = rows.stop - rows.start
            total = torch.from_numpy(out[rows]).zero_() if in_place else like.new_zeros(n, embedding.width)
            spectral.add(spectrum, total, *scratches())
            if not in_place:
                out[rows] = embedding.finish(total).cpu().numpy()

        self._run(work, list(_slices(len(X), low)), what)
        return max(lost, default=0.0)

    def _projection(self, plan: SpectralPlan, embedding: Any, dtype: np.dtype, units: int) -> SpectralProjection:
        with torch.inference_mode():
            made = SpectralProjection(plan, embedding, lambda array: self.tensor(array, dtype))
        self._run(made.add_templates, list(_slices(embedding.units, units)), "templates")
        return made

    def _tiling(self, embedding: Embedding, orbit: Orbit, X: np.ndarray, at_once: bool = False) -> Tiling:
        """``at_once``: projections of all elements of a tile are held together, so the rows are those of both."""
        n, d = len(X), int(np.prod(X.shape[1:]))
        fair = -(-n // self._n_workers())  # rather two small tiles than one worker idle
        high, wide, several = _TILE_ROWS, _TILE_UNITS, _TILE_ELEMENTS
        if at_once:
            high, wide, several = _PROJECTED_ROWS, _PROJECTED_UNITS, _PROJECTED_ELEMENTS
        units = min(embedding.units, getattr(embedding, "unit_tile", wide))
        elements = min(len(orbit.weights_), several)
        tall = max(1, self._breadth() * high * wide // max(units, wide) // (elements if at_once else 1))
        # a block of orbit points while the next one is made from its parts, and some copies of the points
        moved = d * (3 * elements + 4)
        sums = 0 if self._in_place(embedding) else 2 * embedding.width + embedding.n_outputs
        per_row = (moved + sums + 3 * units * (elements if at_once else 1)) * X.dtype.itemsize
        affordable = int(self.memory * 2**30 / self._n_workers() // per_row)
        return Tiling(max(1, min(tall, affordable, fair)), elements, units)

    def _in_place(self, embedding: Embedding) -> bool:
        """Whether sums are made in the result itself: on a GPU they cannot be."""
        return getattr(embedding, "sums_are_features", False) and self._torch_device().type == "cpu"

    def _n_workers(self) -> int:
        return 1 if self._torch_device().type == "cuda" else self.workers or usual_threads()

    def _breadth(self) -> int:
        return _GPU_BREADTH if self._torch_device().type == "cuda" else 1

    def device_name(self) -> str:
        """What it computes on: ``cpu``, or the name of the GPU."""
        return torch.cuda.get_device_name() if self._torch_device().type == "cuda" else "cpu"

    def _torch_device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def _run(self, work: Callable[[slice], None], tiles: Sequence[slice], what: str, halving: bool = True) -> None:
        """``halving``: a tile that finds no memory is done again, as two halves; ``work`` must bear that."""

        workers = self._n_workers()
        with Progress(len(tiles), what, self.progress) as progress:

            def guarded(tile: slice) -> None:
                with torch.inference_mode():
                    _halving(work, tile) if halving else work(tile)
                progress.step()

            if len(tiles) > 1 or workers == 1:
                in_threads(guarded, tiles, workers)
                return
            for tile in tiles:  # one, which may have the threads of all workers
                guarded(tile)


class _TooMuchLostError(Exception):
    """Some points have more energy than is tolerated in the modes left out."""


def _takes_projections(embedding: Any, weights: np.ndarray) -> bool:
    """Whether features are made of projections alone, so that those of several orbit points can come at once."""
    return getattr(embedding, "templates", None) is not None and not embedding.needs_squares and weights.ndim == 1


def _per_worker(make: Callable[[], Made]) -> Callable[[], Made]:
    """One object for each thread that asks, made when it first does: memory once touched stays mapped."""
    local = threading.local()

    def mine() -> Made:
        if not hasattr(local, "made"):
            local.made = make()
        return local.made

    return mine


def _halving(work: Callable[[slice], None], tile: slice) -> None:
    """Do a tile; if the device has not enough memory for it, its halves one after the other."""
    try:
        work(tile)
        return
    except torch.OutOfMemoryError:
        if tile.stop - tile.start <= 1:
            raise
    torch.cuda.empty_cache()
    middle = (tile.start + tile.stop) // 2
    _halving(work, slice(tile.start, middle))
    _halving(work, slice(middle, tile.stop))


def _slices(length: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def _even(length: int, at_most: int, workers: int) -> int:
    """The length of a tile, of at most so many, so that all workers have about the same to do."""
    tiles = -(-length // at_most)
    return -(-length // (-(-tiles // workers) * workers)) if tiles > 1 else at_most


@contextlib.contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    switches: tuple[Any, ...] = torch.backends.cuda.matmul, torch.backends.cudnn  # torch has it on for convolutions
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = allowed
    try:
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.allow_tf32 = value
