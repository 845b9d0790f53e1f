"""The spectral strategy: all elements of a cyclic orbit at once, from products of Fourier coefficients."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from orbit.engine.buffers import Reused
from orbit.engine.embedding import ProjectedEmbedding, Scratch, nbytes
from orbit.engine.fourier import Analysis, Block, CyclicAxes, OmittedShare, band, synthesis
from orbit.engine.memory import Workspace, even_step, slices
from orbit.engine.strategy import Cost, Route, Strategy
from orbit.orbits import Orbit

# Units of a tile; numbers that all its buffers hold together, 32 MiB in float32.
_TILE_UNITS = 256
_TILE_NUMBERS = 2**23


class SpectralPlan:
    """The Fourier coefficients and matrices by which all points of an orbit are projected.

    Parameters
    ----------
    axes : CyclicAxes
        The axes that the orbit's group shifts.
    orbit : fitted Orbit
    kept : bool array, shape (M, R)
        The coefficients that are kept.
    """

    def __init__(self, axes: CyclicAxes, orbit: Orbit, kept: np.ndarray) -> None:
        self.axes, self.kept = axes, kept
        self.response = axes.response(orbit.group_, orbit.elements_)
        self.synthesis = synthesis(self.response, orbit.weights_, kept)

    @classmethod
    def for_points(cls, workspace: Workspace, orbit: Orbit, X: np.ndarray) -> SpectralPlan | None:
        """The plan with the coefficients that hold the energy of points ``X`` (n, *shape), whatever their lengths.

        None if no axis is cyclic.
        """
        shape = tuple(X.shape[1:])
        cyclic = orbit.group_.cyclic_axes(shape)
        if not cyclic or orbit.distribution_.data_dependent:
            return None
        axes = CyclicAxes(shape, cyclic)
        return cls(axes, orbit, _mask(workspace, axes, X))

    @property
    def n_modes(self) -> int:
        """The modes of which coefficients are kept."""
        return int(np.count_nonzero(self.kept.any(1)))

    @property
    def n_held(self) -> int:
        """Projections held at once for each point and unit: m."""
        return len(self.synthesis.even)

    @property
    def high(self) -> int:
        """Products, or sums of projections, for each point and unit."""
        return max(self.synthesis.n_columns, self.n_held)

    @property
    def numbers(self) -> int:
        """Numbers in all buffers for each point and unit of a tile."""
        return self.high + 3 * self.n_held

    @property
    def cost(self) -> float:
        """Operations for one projection, averaged over the orbit."""
        made = self.synthesis
        inverse = made.even.size + (0 if made.odd is None else made.odd.size)
        products = sum(4 * block.parts * block.modes.size for block in made.blocks)
        return (products + 2 * inverse) / len(self.response)

    def gains(self) -> list[np.ndarray]:
        """Matrices from the energies of all modes to squared norms of orbit points, and of their mirrors."""
        gains = np.square(np.abs(self.response)) * self.axes.multiplicity
        chosen = [self.synthesis.elements, self.synthesis.mirrored_elements]
        return [gains[elements] for elements in chosen if elements is not None]


def _mask(workspace: Workspace, axes: CyclicAxes, X: np.ndarray) -> np.ndarray:
    """Which coefficients are kept, shape (M, R)."""
    tolerance = workspace.tolerance(X.dtype)
    if tolerance == 0 or not len(X):
        return np.ones((axes.n_modes, axes.n_rest), dtype=bool)
    shares: list[np.ndarray] = []

    def work(rows: slice) -> None:
        shares.append(axes.energy_shares(workspace.shared(X[rows])).cpu().numpy())

    rows = workspace.rows(len(X), 8 * math.prod(axes.shape) * X.dtype.itemsize)
    workspace.run(work, list(slices(len(X), rows)), "spectrum")
    return band(np.max(shares, axis=0), tolerance)


@dataclass(frozen=True)
class Spectrum:
    """A tile of n points in Fourier space.

    Attributes
    ----------
    coefficients : tensors of shape (G, 2 E, n) for each block, one for each part of the products
    lost : float
        The largest share of a point's norm in the omitted coefficients.
    squares : tensors of shape (m, n), or None
        ``|g x|^2`` for the elements and their mirrors.
    """

    coefficients: tuple[list[Tensor], ...]
    lost: float
    squares: tuple[Tensor, ...] | None


class Buffers:
    """Working memory of one thread, for tiles of at most ``rows`` rows and ``units`` units.

    Attributes
    ----------
    products : Scratch
        Products of coefficients, and later sums of projections.
    values : Scratch
        Projections, ``even`` and ``odd``.
    scratch : Scratch
        Working memory of the embedding.
    """

    def __init__(self, plan: SpectralPlan, rows: int, units: int, like: Tensor) -> None:
        self.rows = rows
        self.products = Scratch(1, rows * plan.high, units, like)
        self.values = Scratch(2, rows * plan.n_held, units, like)
        self.scratch = Scratch(1, rows * plan.n_held, units, like)


class SpectralProjection:
    """Computes the features of all orbit points of a tile by a plan, for one embedding.

    Parameters
    ----------
    plan : SpectralPlan
    embedding : ProjectedEmbedding
    tensor : array -> tensor of the precision and on the device of the points

    Attributes
    ----------
    buffers : Reused
        Working memory of the threads.
    """

    def __init__(
        self, plan: SpectralPlan, embedding: ProjectedEmbedding, tensor: Callable[[np.ndarray], Tensor]
    ) -> None:
        made = plan.synthesis
        self.plan, self.embedding = plan, embedding
        self.even, self.weights = tensor(made.even), tensor(made.weights)
        self.odd = None if made.odd is None else tensor(made.odd)
        self.pair_weights = [self.weights]
        if made.mirrored_weights is not None:
            self.pair_weights.append(tensor(made.mirrored_weights))
            self.mirrored = embedding.mirrored and torch.equal(*self.pair_weights)
        self._analysis = Analysis(plan.axes, made.conjugate, self.even)
        self._omitted = OmittedShare(self._analysis, plan.kept)
        self._blocks = [_PlacedBlock(block, self._analysis, tensor) for block in made.blocks]
        self._gains = [tensor(gain) for gain in plan.gains()] if embedding.needs_squares else None
        self._tiles: dict[int, list[Tensor]] = {}
        self.buffers = Reused[Buffers]()

    @property
    def nbytes(self) -> int:
        """Bytes of the templates and of their Fourier coefficients."""
        return nbytes(self.embedding) + sum(part.nbytes for tile in self._tiles.values() for part in tile)

    def add_templates(self, units: slice) -> None:
        """Compute the coefficients of some templates, for each block."""
        coefficients = self._analysis(self.embedding.templates(units).reshape(-1, *self.plan.axes.shape))
        self._tiles[units.start] = [block.of_templates(coefficients) for block in self._blocks]

    def tiles(self) -> Iterable[tuple[slice, list[Tensor]]]:
        """The tiles of templates as computed: a tile that did not fit in memory was computed in halves."""
        return ((slice(i, i + tile[0].shape[2]), tile) for i, tile in sorted(self._tiles.items()))

    def spectrum(self, points: Tensor) -> Spectrum:
        """Coefficients of points (n, *shape) that the plan keeps, and the share of the norm that it omits."""
        squares = None
        if self._gains:
            energies = self.plan.axes.energies(points)
            squares = tuple(gain @ energies.T for gain in self._gains)
        coefficients = self._analysis(points)
        lost = self._omitted.share(points, coefficients)
        return Spectrum(tuple(block.of_points(coefficients) for block in self._blocks), lost, squares)

    def add(self, spectrum: Spectrum, total: Tensor, buffers: Buffers) -> None:
        """Add the features of a tile of points to ``total`` (n, width)."""
        products, values, scratch = buffers.products, buffers.values, buffers.scratch
        squares, n = spectrum.squares, len(total)
        for units, templates in self.tiles():
            u = units.stop - units.start
            columns = products.matrix(0, self.plan.synthesis.n_columns, n * u)
            _multiply(spectrum.coefficients, templates, columns)
            split = self.even.shape[1]
            even = _synthesised(self.even, columns[:split], n, values, 0)
            if self.odd is None:
                even_squares = None if squares is None else squares[0]
                self.embedding.add_projected(even, even_squares, self.weights, units, total, scratch)
                continue
            odd = _synthesised(self.odd, columns[split:], n, values, 1)
            if self.mirrored:
                self.embedding.add_mirrored(even, odd, self.weights, units, total, scratch)
                continue
            m = len(even)
            plus = torch.add(even, odd, out=products.matrix(0, m * n, u).view(m, n, u))
            pair = plus, torch.sub(even, odd, out=even)
            for i, (projections, weights) in enumerate(zip(pair, self.pair_weights, strict=True)):
                pair_squares = None if squares is None else squares[i]
                self.embedding.add_projected(projections, pair_squares, weights, units, total, scratch)


class _PlacedBlock:
    """A block of coefficients: their rows among all coefficients, and the factors of templates.

    Parameters
    ----------
    block : Block
    analysis : Analysis
    tensor : array -> tensor of the precision and on the device of the points
    """

    def __init__(self, block: Block, analysis: Analysis, tensor: Callable[[np.ndarray], Tensor]) -> None:
        self.parts = block.parts
        real, imaginary = (rows.view(block.modes.shape) for rows in analysis.rows(block.modes, block.rests))
        self._rows, self._swapped = torch.stack([real, imaginary], 1), torch.stack([imaginary, real], 1)
        self._factors = tensor(block.factors.real[..., None]), tensor(block.factors.imag[..., None])

    def of_templates(self, coefficients: Tensor) -> Tensor:
        """Coefficients of u templates times the conjugate factors, shape (G, 2 E, u)."""
        real, imaginary = _placed(coefficients, self._rows).unbind(1)
        by_real, by_imaginary = self._factors
        return torch.cat([by_real * real + by_imaginary * imaginary, by_real * imaginary - by_imaginary * real], 1)

    def of_points(self, coefficients: Tensor) -> list[Tensor]:
        """Coefficients of n points, shape (G, 2 E, n): one tensor for each part of the products with templates."""
        made = [_placed(coefficients, self._rows)]
        if self.parts == 2:
            made.append(_placed(coefficients, self._swapped))
            made[1][:, 1].neg_()
        return [part.flatten(1, 2) for part in made]


def _placed(coefficients: Tensor, rows: Tensor) -> Tensor:
    """Rows (G, 2, E) of coefficients of n points or templates, shape (G, 2, E, n)."""
    return coefficients.index_select(0, rows.flatten()).view(*rows.shape, -1)


def _multiply(points: Iterable[list[Tensor]], templates: Iterable[Tensor], columns: Tensor) -> None:
    """Inner products of all classes, block by block and part by part, written to ``columns`` (J, n u)."""
    start = 0
    for parts, t in zip(points, templates, strict=True):
        classes, _, units = t.shape
        for x in parts:
            products = columns[start : start + classes].view(classes, x.shape[2], units)
            torch.bmm(x.transpose(1, 2), t, out=products)
            start += classes


def _synthesised(matrix: Tensor, columns: Tensor, n: int, buffers: Scratch, which: int) -> Tensor:
    m, size = len(matrix), columns.shape[1]
    values = buffers.matrix(which, m * n, size // n)
    torch.mm(matrix, columns, out=values.view(m, size))
    return values.view(m, n, size // n)


class _TooMuchLostError(Exception):
    """Some points have more energy in the omitted coefficients than the tolerance."""


class Spectral(Strategy):
    """Projections of all orbit points from a few Fourier coefficients, where the group shifts an axis cyclically."""

    path = "spectral"
    group_trait = "shifts an axis cyclically"

    def supports(self) -> bool:
        orbit = self.task.orbit
        cyclic = not orbit.distribution_.data_dependent and bool(orbit.group_.cyclic_axes(self.task.shape))
        return self.task.is_projected and cyclic

    def cost(self) -> Cost:
        if len(self.task.orbit.weights_) == 1:
            return Cost(math.inf, 0)
        return Cost(self.plan.cost, len(self.task.X))

    @cached_property
    def plan(self) -> SpectralPlan:
        """The plan of the task, or else one for its points."""
        return self.task.plan or self._plan_for_points()

    def average(self) -> tuple[Tensor, Route]:
        task, plan = self.task, self.plan
        tolerance = math.inf if task.plan is None else self.workspace.tolerance(task.X.dtype)
        out, lost = self.result(), math.inf
        with contextlib.suppress(_TooMuchLostError):
            lost = self._average(plan, out, tolerance)
        if lost > tolerance:  # only here, where the exception no longer references the buffers
            plan = self._plan_for_points()
            lost = self._average(plan, out, math.inf)
        used = plan.n_modes, plan.axes.n_modes, int(np.count_nonzero(plan.kept)), plan.kept.size
        return out, Route("spectral", *used, lost, plan.cost)

    def _plan_for_points(self) -> SpectralPlan:
        plan = SpectralPlan.for_points(self.workspace, self.task.orbit, self.task.X)
        assert plan is not None
        return plan

    def _average(self, plan: SpectralPlan, out: Tensor, tolerance: float) -> float:
        """The largest omitted share of a point's norm; stops at the first tile where it exceeds ``tolerance``."""
        X, embedding, in_result = self.task.X, self.task.embedding, self.sums_in_result()
        rows, units = self._tile(plan)
        projection, like = self._projection(plan, units), self.workspace.tensor(X[:0], X.dtype)
        make = partial(Buffers, plan, rows, units, like)
        at_most = self.workspace.cached_bytes // max(1, rows * units * plan.numbers * X.dtype.itemsize)
        lost: list[float] = []

        def work(tile: slice) -> None:
            spectrum = projection.spectrum(self.workspace.shared(self.task.points(tile)))
            lost.append(spectrum.lost)
            if spectrum.lost > tolerance:
                raise _TooMuchLostError
            n = tile.stop - tile.start
            total = out[tile].zero_() if in_result else like.new_zeros(n, embedding.width)
            projection.add(spectrum, total, buffers())
            if not in_result:
                self.workspace.copy(embedding.finish(total), out[tile])

        with projection.buffers.per_thread(make, lambda kept: kept.rows >= rows, at_most) as buffers:
            self.workspace.run(work, list(slices(len(X), rows)), self.task.description)
        return max(lost, default=0.0)

    def _tile(self, plan: SpectralPlan) -> tuple[int, int]:
        """Rows and units of a tile."""
        workspace, embedding, n = self.workspace, self.task.embedding, len(self.task.X)
        itemsize = self.task.X.dtype.itemsize
        numbers = min(_TILE_NUMBERS * workspace.tile_factor, workspace.affordable(2 * itemsize)) // plan.numbers
        units = max(1, min(embedding.units, _TILE_UNITS, numbers))
        per_row = (12 * math.prod(plan.axes.shape) + 2 * embedding.width + embedding.n_outputs) * itemsize
        largest = max(1, min(workspace.rows(n, 2 * per_row), numbers // units))
        return even_step(n, largest, workspace.workers), units

    def _projection(self, plan: SpectralPlan, units: int) -> SpectralProjection:
        """The templates in Fourier space, cached for the next call if the plan is the map's own."""
        embedding, dtype = self.task.embedding, self.task.X.dtype
        assert isinstance(embedding, ProjectedEmbedding)

        def make() -> SpectralProjection:
            with torch.inference_mode():
                made = SpectralProjection(plan, embedding, lambda array: self.workspace.tensor(array, dtype))
            self.workspace.run(made.add_templates, list(slices(embedding.units, units)), "templates")
            return made

        if plan is not self.task.plan:
            return make()
        embedding.fourier.limit_bytes = self.workspace.cached_bytes
        return embedding.fourier.get((plan, units), make)
