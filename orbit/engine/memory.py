"""Tiling, memory budget, device and threads.

Worker threads each run one tile of rows with single-threaded BLAS inside. On shared
cores that is far steadier than many BLAS threads that wait for each other after
every small product, and it keeps the tile in its core's cache.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from orbit.core.progress import Progress
from orbit.core.threads import default_threads, in_threads

# Rows of a tile: 256 x 512 float32 projections are half a megabyte, which stays in a core's second-level cache
# while cosine, sine and both sums pass over it.
TILE_ROWS = 256

# Share of the memory that a map's templates, and likewise its buffers, may take between calls.
_CACHED_SHARE = 1 / 16

# Bytes that a GPU writes to page-locked memory at a time.
_STAGED_BYTES = 2**26

# The default share of a point's norm in omitted coefficients: about the rounding error.
_SPECTRAL_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}

# How many times larger tiles are on a GPU: there is no cache to fit, and each call should keep all of it busy.
_GPU_FACTOR = 64


@dataclass(frozen=True)
class Tiling:
    """Rows, orbit elements and units of a tile."""

    rows: int
    elements: int
    units: int


@dataclass(frozen=True)
class Workspace:
    """The device, threads and memory of an engine.

    Attributes
    ----------
    device : torch.device
    workers : int
        Threads; 1 on a GPU.
    budget : float
        Bytes above input and output, over all workers.
    progress : bool
    spectral_tolerance : float or None
        See :class:`~orbit.engine.Engine`.
    """

    device: torch.device
    workers: int
    budget: float
    progress: bool = False
    spectral_tolerance: float | None = None

    @property
    def tile_factor(self) -> int:
        """How many times larger tiles are than on a processor."""
        return _GPU_FACTOR if self.device.type == "cuda" else 1

    @property
    def cached_bytes(self) -> int:
        """Limit in bytes for the templates, and likewise for the buffers, that are cached between calls."""
        return int(_CACHED_SHARE * self.budget)

    def tensor(self, array: np.ndarray, dtype: np.dtype) -> Tensor:
        """``array`` on the device; a copy, so that read-only input is safe."""
        if self.device.type == "cpu":
            return torch.from_numpy(np.array(array, dtype=dtype))
        return _tensor(np.require(array, dtype, ["C", "W"])).pin_memory().to(self.device, non_blocking=True)

    def copy(self, source: Tensor, target: Tensor) -> None:
        """Write ``source``, a tensor (n, m) on the device, to ``target``, which may be on the processor."""
        if source.device == target.device:
            target.copy_(source)
            return
        # by way of page-locked memory, which torch keeps for the next copy: without it a copy takes three times as long
        # (docs/performance_notes.md)
        for rows in slices(len(source), max(1, _STAGED_BYTES // max(1, source[:1].nbytes))):
            staged = torch.empty(source[rows].shape, dtype=source.dtype, pin_memory=True)
            target[rows].copy_(staged.copy_(source[rows]))

    def shared(self, array: np.ndarray) -> Tensor:
        """``array`` on the device, without a copy if possible: the tensor must not be written to."""
        if self.device.type == "cpu" and array.flags.c_contiguous and array.flags.writeable:
            return _tensor(array)
        return self.tensor(array, array.dtype)

    def affordable(self, bytes_per_row: float) -> int:
        """Number of rows that fit in one worker's share of the budget."""
        return int(self.budget / self.workers // bytes_per_row)

    def rows(self, n: int, bytes_per_row: float) -> int:
        """Rows of a tile: within the budget, and few enough that no worker is idle."""
        return max(1, min(TILE_ROWS * self.tile_factor, self.affordable(bytes_per_row), -(-n // self.workers)))

    @property
    def halves_tiles(self) -> bool:
        """Whether a tile for which memory runs out is repeated as two halves: on a GPU, which others may use too."""
        return self.device.type == "cuda"

    def tolerance(self, dtype: np.dtype) -> float:
        """The share of a point's norm that the spectral strategy may omit."""
        return _SPECTRAL_TOLERANCE[dtype] if self.spectral_tolerance is None else self.spectral_tolerance

    def run(self, work: Callable[[slice], None], tiles: Sequence[slice], description: str, halve: bool = True) -> None:
        """Call ``work`` on every tile, by all workers.

        With ``halve``, a tile for which a GPU's memory runs out is repeated as two halves, which ``work`` must allow.
        """
        work = torch.inference_mode()(partial(_in_halves, work) if halve and self.halves_tiles else work)
        with Progress(len(tiles), description, self.progress) as progress:
            if self.device.type == "cpu" and (len(tiles) > 1 or self.workers == 1):
                in_threads(work, tiles, self.workers, progress.step)
                return
            # a single tile, whose linear algebra may use all threads, or tiles of a GPU, whose results they may copy
            for tile in tiles:
                work(tile)
                progress.step()


def default_workers(device: torch.device) -> int:
    """The number of threads torch would use; 1 on a GPU."""
    return 1 if device.type == "cuda" else default_threads()


def slices(length: int, step: int) -> Iterator[slice]:
    """Consecutive slices of at most ``step`` that cover ``range(length)``."""
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def even_step(length: int, largest: int, workers: int) -> int:
    """The length of a tile, at most ``largest``, that divides the work about evenly among the workers."""
    tiles = -(-length // largest)
    return -(-length // (-(-tiles // workers) * workers)) if tiles > 1 else largest


def _tensor(array: np.ndarray) -> Tensor:
    """A tensor of the same memory as an array that is contiguous and may be written to."""
    # flat first: an axis of length one may have any stride in NumPy, even a negative one
    return torch.from_numpy(array.reshape(-1)).view(array.shape)


def _in_halves(work: Callable[[slice], None], tile: slice) -> None:
    """Call ``work`` on a tile, or on its halves one after the other if memory runs out."""
    try:
        work(tile)
        return
    except torch.OutOfMemoryError:
        if tile.stop - tile.start <= 1:
            raise
    torch.cuda.empty_cache()
    middle = (tile.start + tile.stop) // 2
    _in_halves(work, slice(tile.start, middle))
    _in_halves(work, slice(middle, tile.stop))
