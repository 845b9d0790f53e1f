"""The interface of the strategies of averaging over an orbit, and the choice among them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from orbit.core.errors import InputError
from orbit.engine.embedding import Embedding, Encode, ProjectedEmbedding, flatten
from orbit.engine.memory import Workspace
from orbit.orbits import Orbit

Path = Literal["direct", "template", "spectral"]


@dataclass(frozen=True)
class Route:
    """How an average was computed.

    Attributes
    ----------
    path : {"direct", "template", "spectral"}
    modes, all_modes : int
        Fourier modes used, at least on some rings or channels, and their total number; 0 except on the spectral path.
    coefficients, all_coefficients : int
        Complex Fourier coefficients of a point that were used, and their total number.
    error : float
        The largest share of a point's norm in the omitted coefficients.
    operations : float
        Average cost of projecting one orbit point on one template, in operations of a dense matrix product.
    orbits : int
        The number of orbits of which one point was averaged for all their points; 0 if each point was.
    """

    path: Path
    modes: int = 0
    all_modes: int = 0
    coefficients: int = 0
    all_coefficients: int = 0
    error: float = 0.0
    operations: float = 0.0
    orbits: int = 0

    def metrics(self) -> dict[str, float]:
        """Modes and error of the spectral path; empty on the others."""
        if self.path != "spectral":
            return {}
        return {
            "engine/modes": float(self.modes),
            "engine/all_modes": float(self.all_modes),
            "engine/coefficients": float(self.coefficients),
            "engine/all_coefficients": float(self.all_coefficients),
            "engine/spectral_error": self.error,
        }

    def __str__(self) -> str:
        return self._describe() + (f", once for each of {self.orbits} orbits" if self.orbits else "")

    def _describe(self) -> str:
        if self.path != "spectral":
            return f"{self.path} path"
        left_out = f", at most {self.error:.1e} of a norm left out" if self.error else ""
        used = f"{self.modes} of {self.all_modes} modes, {self.coefficients} of {self.all_coefficients} coefficients"
        return f"spectral path ({used}{left_out})"


@dataclass(frozen=True)
class Task:
    """One average over an orbit: psi(x) = finish(sum_i w_i embed(g_i x)) for every row of X.

    Attributes
    ----------
    embedding : Embedding
    orbit : fitted Orbit
    X : array, shape (n, *shape), of the dtype of the result
    scaled : callable or None
        Gives some of the points other lengths when a tile of them is read, so that there is never a second copy of
        all; None leaves them as they are.
    weights : array, shape (r, ...), or None for the orbit's own
        One number or matrix for each element, passed to the embedding. Only the direct path takes them.
    plan : SpectralPlan or None
        From :meth:`Engine.spectral_plan`. If it is None, or some points would lose more than the tolerance, the
        coefficients are chosen for ``X``.
    encode : callable
        From moved points (n, *shape) to vectors (n, d). Only the direct path supports encoders.
    encoded_bytes : int
        Working memory of ``encode`` for each point, its result included.
    label : str
        The map's name in errors.
    description : str
        Shown with the progress.
    on_device : bool
        Whether the result is a tensor that stays on the device.
    """

    embedding: Embedding
    orbit: Orbit
    X: np.ndarray
    scaled: Callable[[np.ndarray], np.ndarray] | None = None
    weights: np.ndarray | None = None
    plan: Any = None
    encode: Encode = flatten
    encoded_bytes: int = 0
    label: str = "this map"
    description: str = "features"
    on_device: bool = False

    def points(self, rows: slice | np.ndarray) -> np.ndarray:
        """Some of the points, scaled."""
        return self.X[rows] if self.scaled is None else self.scaled(self.X[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a point."""
        return tuple(self.X.shape[1:])

    @property
    def n_features(self) -> int:
        """The number of entries of a point, before encoding."""
        return math.prod(self.shape)

    @property
    def is_projected(self) -> bool:
        """Whether the embedding needs only projections of the unencoded points, by any method."""
        return isinstance(self.embedding, ProjectedEmbedding) and self.weights is None and self.encode is flatten


class Cost(NamedTuple):
    """The cost by which the cheapest strategy is chosen; compared as a tuple.

    Attributes
    ----------
    projection : float
        Operations for one projection, averaged over the orbit.
    moved : float
        Number of points moved by each orbit element, or the equivalent in time.
    """

    projection: float
    moved: float


class Strategy(ABC):
    """One way to compute ``finish(sum_i w_i embed(g_i x))``, for one task.

    Attributes
    ----------
    path : str
        The value of ``Engine.path`` that selects it; "orbits" is chosen by ``auto`` only.
    group_trait : str
        The property of the group that it needs, for error messages.
    """

    path: ClassVar[Path | Literal["orbits"]]
    group_trait: ClassVar[str] = ""

    def __init__(self, workspace: Workspace, task: Task) -> None:
        self.workspace, self.task = workspace, task

    @abstractmethod
    def supports(self) -> bool:
        """Whether the strategy applies to the embedding, the orbit and the encoding of the task."""

    @abstractmethod
    def cost(self) -> Cost:
        """The cost for the task. Called only if the strategy applies."""

    @abstractmethod
    def average(self) -> tuple[Tensor, Route]:
        """The features, shape (n, n_outputs), on the processor or on the device, and how they were computed."""

    def result(self) -> Tensor:
        """Memory for the features, all zero."""
        shape, dtype = (len(self.task.X), self.task.embedding.n_outputs), self.task.X.dtype
        if self._result_on_processor():
            # np.zeros maps pages lazily, so that memory is written only when the features are
            return torch.from_numpy(np.zeros(shape, dtype))
        return torch.zeros(shape, dtype=torch.from_numpy(np.empty(0, dtype)).dtype, device=self.workspace.device)

    def sums_in_result(self) -> bool:
        """Whether sums over the orbit can be accumulated in the result itself."""
        is_shared = self._result_on_processor() == (self.workspace.device.type == "cpu")
        return self.task.embedding.sums_are_features and is_shared

    def _result_on_processor(self) -> bool:
        return not self.task.on_device or self.workspace.device.type == "cpu"


def choose(strategies: Sequence[Strategy], path: str = "auto") -> Strategy:
    """The strategy for ``path``; for ``auto`` the cheapest that applies.

    Raises
    ------
    InputError
        If the requested strategy does not apply.
    """
    if path == "auto":
        able = [strategy for strategy in strategies if strategy.supports()]
        return able[0] if len(able) == 1 else min(able, key=lambda strategy: strategy.cost())
    chosen = next(strategy for strategy in strategies if strategy.path == path)
    if not chosen.supports():
        raise InputError(f"engine.path={path} needs {_missing(chosen)}: choose engine.path=auto")
    return chosen


def _missing(strategy: Strategy) -> str:
    task = strategy.task
    if task.encode is not flatten:
        return f"points without an encoder, found {task.label}"
    if not task.is_projected:
        return f"features of projections on fixed vectors, found {task.label}"
    orbit = task.orbit
    return f"a group that {strategy.group_trait}, found {orbit.group_.label()} and {orbit.distribution_.label()}"
