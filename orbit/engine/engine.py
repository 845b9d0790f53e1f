"""The engine's options, and the average over an orbit that computes every feature map.

    psi(x) = finish( sum_i w_i embed(g_i x) )                 (Raj et al. 2017, eqs. 7 and 8)

An approximation defines an :class:`~orbit.engine.embedding.Embedding`, which adds the
features of a tile of points to a sum; the map and its points are a
:class:`~orbit.engine.strategy.Task`. There are four strategies, which compute the
same sum. *Direct*: move the points, a tile at a time. *Template*: move the
templates instead, by the exact adjoint. *Spectral*: where the group shifts an axis
cyclically, all elements at once from products of Fourier coefficients. *By orbit*:
where many points share an orbit, one of them by any of these.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.core.params import NonNegativeFloat, PositiveInt, Range
from orbit.engine.by_orbit import BY_POINT, ByOrbit
from orbit.engine.embedding import Encode, flatten
from orbit.engine.memory import TILE_ROWS, Workspace, default_workers, even_step, slices
from orbit.engine.spectral import SpectralPlan
from orbit.engine.strategy import Route, Strategy, Task, choose
from orbit.orbits import Orbit

# Limits of the largest entry of the points, and of its inverse.
_LARGEST_ENTRY = {np.dtype(np.float32): 1e32, np.dtype(np.float64): 1e150}

Gibibytes = Annotated[float, Range(low=0.0, high=1e6, open_low=True)]

# Numbers of moved points that exist at once before they are encoded.
_MOVED_NUMBERS = 2**25

_STRATEGIES = ByOrbit, *BY_POINT


@dataclass(eq=False, repr=False)
class Engine(Component):
    """How, where and in which precision features are computed.

    Parameters
    ----------
    memory : float in (0, 1e6]
        Budget in GiB for everything above input and output of :meth:`average`, over all workers. What ``fit`` keeps
        (frequencies, landmarks) and a learner's matrices are not in it.
    workers : int >= 1 or None
        Threads; None is the number of threads torch would use.
    device : {"auto", "cpu", "cuda"}
        ``auto`` is a GPU if there is one.
    dtype : {"auto", "float32", "float64"}
        ``auto`` keeps the precision of the data: float32 for float32 and
        integers, float64 for float64. On the command line it is float64 for
        targets that are numbers, without an encoder and a stream, and for
        ``representation=many_body``; otherwise float32.
    stream : bool
        Learn from batches of rows, without ever holding all features; memory does
        not grow with n. For learners that support it, such as ridge and adagrad.
    progress : bool
        Show a progress bar (on a terminal) or a line a minute (elsewhere).
    path : {"auto", "direct", "template", "spectral"}
        How orbit points are projected; ``auto`` is the cheapest that applies. All
        give the same features up to rounding and ``spectral_tolerance``.
    spectral_tolerance : float >= 0 or None
        The spectral path omits Fourier coefficients that together contain at most
        this share of any point's norm. None is about the rounding error: 1e-5 in
        float32, 1e-12 in float64.
    tf32 : bool
        Let a GPU round the factors of float32 products to 10 bits: faster, but below
        float32 precision.
    """

    memory: Gibibytes = 1.0
    workers: PositiveInt | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "float32", "float64"] = "auto"
    stream: bool = False
    progress: bool = False
    path: Literal["auto", "direct", "template", "spectral"] = "auto"
    spectral_tolerance: NonNegativeFloat | None = None
    tf32: bool = False

    kind = name = section = "engine"

    def check(self) -> None:
        super().check()
        if self.device == "cuda" and not torch.cuda.is_available():
            raise self.wrong("device", "'cpu' or 'auto' on a machine without a CUDA GPU")

    @property
    def budget(self) -> float:
        """``memory`` in bytes."""
        return self.memory * 2**30

    def result_dtype(self, X: np.ndarray) -> np.dtype:
        """The dtype in which features of ``X`` are computed and returned."""
        if self.dtype != "auto":
            return np.dtype(self.dtype)
        return np.dtype(np.float64) if X.dtype == np.float64 else np.dtype(np.float32)

    def cast(self, X: np.ndarray) -> np.ndarray:
        """Points in :meth:`result_dtype`.

        Raises
        ------
        InputError
            If the largest entry is too large or too small to compute with in that type.
        """
        dtype = self.result_dtype(X)
        largest, limit = max(float(X.max()), -float(X.min())), _LARGEST_ENTRY[dtype]
        if largest > limit or 0 < largest < 1 / limit:
            point = np.unravel_index(np.abs(X).argmax(), X.shape)[0]
            wider = "" if dtype == np.float64 else ", or compute with engine.dtype=float64"
            raise InputError(
                f"the largest entry of the points is {largest:g}, of point {point}, but {dtype.name} needs one from "
                f"{1 / limit:g} to {limit:g}: remove outliers, or scale the points with a representation such as "
                f"UnitNorm or Standardize{wider}"
            )
        return X.astype(dtype, copy=False)

    def torch_device(self) -> torch.device:
        """The device in use."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def free_bytes(self) -> int:
        """Bytes that are free on the GPU in use, those that torch keeps for later among them; 0 on a processor."""
        device = self.torch_device()
        if device.type == "cpu":
            return 0
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept

    def device_name(self) -> str:
        """The device in use, for display: ``cpu``, or the name of the GPU."""
        return torch.cuda.get_device_name() if self.torch_device().type == "cuda" else "cpu"

    def workspace(self) -> Workspace:
        """The device, number of threads and memory budget."""
        device = self.torch_device()
        workers = self.workers if self.workers and device.type == "cpu" else default_workers(device)
        return Workspace(device, workers, self.budget, self.progress, self.spectral_tolerance)

    def tensor(self, array: np.ndarray, dtype: np.dtype) -> Tensor:
        """``array`` on this engine's device; a copy, so that read-only input is safe."""
        return self.workspace().tensor(array, dtype)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, on_device: bool) -> Any:
        """Memory for results: a tensor on this engine's device, or an array."""
        if not on_device:
            return np.empty(shape, dtype)
        like = torch.from_numpy(np.empty(0, dtype))
        return torch.empty(shape, dtype=like.dtype, device=self.torch_device())

    def row_batches(self, n: int, bytes_per_row: int, at_most: int | None = None) -> Iterator[slice]:
        """Slices of ``n`` rows for work in batches, each within the memory budget and of at most ``at_most`` rows."""
        affordable = max(1, int(self.budget // max(1, bytes_per_row)))
        return slices(n, min(affordable, at_most or n))

    @contextlib.contextmanager
    def precision(self) -> Iterator[None]:
        """Context manager in which products on a GPU round their factors only if ``tf32`` is set."""
        switches: tuple[Any, ...] = torch.backends.cuda.matmul, torch.backends.cudnn
        before = [switch.allow_tf32 for switch in switches]  # torch's default is True for convolutions
        for switch in switches:
            switch.allow_tf32 = self.tf32
        try:
            yield
        finally:
            for switch, value in zip(switches, before, strict=True):
                switch.allow_tf32 = value

    def orbit_points(self, orbit: Orbit, X: np.ndarray, encode: Encode = flatten) -> np.ndarray:
        """All orbit points, encoded: shape (r, n, d). For small sets such as landmarks only."""
        r, found = len(orbit.weights_), list[np.ndarray]()
        for rows in slices(len(X), max(1, _MOVED_NUMBERS // (r * X[0].size))):
            moved = orbit.points(self.tensor(X[rows], X.dtype), slice(None)).cpu().numpy()
            found.append(self.encoded(moved.reshape(-1, *X.shape[1:]), encode).reshape(r, moved.shape[1], -1))
        return np.concatenate(found, axis=1) if len(found) > 1 else found[0]

    def encoded(self, X: np.ndarray, encode: Encode) -> np.ndarray:
        """Encoded points (n, *shape), shape (n, d). For small sets such as landmarks only."""
        if encode is flatten:
            return X.reshape(len(X), -1)
        workspace = self.workspace()
        tiles = list(slices(len(X), even_step(len(X), TILE_ROWS, workspace.workers)))
        found: dict[int, np.ndarray] = {}

        def work(rows: slice) -> None:
            found[rows.start] = encode(workspace.tensor(X[rows], X.dtype)).cpu().numpy()

        workspace.run(work, tiles, "encode points", halve=False)
        return np.concatenate([found[rows.start] for rows in tiles])

    def spectral_plan(self, orbit: Orbit, X: np.ndarray) -> SpectralPlan | None:
        """The Fourier coefficients that hold the energy of points ``X`` (n, *shape), for :meth:`average`.

        None if the group shifts no axis cyclically, or ``path`` excludes the spectral path.
        """
        wanted = self.path == "spectral" or (self.path == "auto" and len(orbit.weights_) > 1)
        return SpectralPlan.for_points(self.workspace(), orbit, X) if wanted else None

    def average(self, task: Task) -> tuple[Any, Route]:
        """The embedding of a task averaged over its orbit, for every row of its points, and how it was computed.

        No array of size n x r x d or n x r x units is ever held: memory beyond
        the result is bounded by ``memory`` for every n and r.

        Returns
        -------
        array, or tensor with ``task.on_device``, shape (n, n_outputs)
        Route

        Raises
        ------
        InputError
            If the requested ``path`` does not apply to the embedding or the orbit.
        """
        with self.precision():
            features, route = self._strategy(task).average()
        return features if task.on_device else features.numpy(), route

    def _strategy(self, task: Task) -> Strategy:
        """The strategy for ``path``, or the cheapest."""
        workspace = self.workspace()
        strategies = [strategy(workspace, task) for strategy in _STRATEGIES]
        return choose(strategies, self.path if task.weights is None else "direct")
