"""Compositional kernels: skeletons of activations over base spaces (Daniely et al. 2017, section 5)."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from orbit.core.errors import InputError, of_section
from orbit.core.params import PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.groups import Group, Identity
from orbit.kernels.base import Kernel, KernelValues
from orbit.kernels.skeletons import Skeleton, Space, from_nodes, make_activation, make_space, stack
from orbit.kernels.skeletons.builders import read_layers
from orbit.kernels.skeletons.spaces import SpaceName
from orbit.registry import register

# Number of kernel values of all nodes for a block of pairs of points: small enough for a core's cache, large enough
# for few steps of the recursion.
MAX_VALUES = 1_000_000


@register("kernel", "skeleton")
@dataclass(eq=False, repr=False)
class SkeletonKernel(Kernel):
    """The kernel of a skeleton, by its recursion (Daniely et al. 2017, section 5):

        k_v = base kernel at inputs,   k_v = sigma_v( mean of k_u over u in in(v) ) at internal nodes.

    Exact values; ``RandomSkeleton`` draws random features of it. Every such kernel has k(x, x) = 1.

    Parameters
    ----------
    layers : list of mappings or None
        Convolutions, then ``{kind: full}``: see :func:`orbit.kernels.skeletons.stack`.
        None without ``nodes``: one fully connected node.
    nodes : list of mappings or None
        Any directed acyclic graph instead: see :func:`orbit.kernels.skeletons.from_nodes`.
    activation : str, mapping or list
        The activation of layers and nodes without one: ``relu``, ``exp`` (``{name: exp, c: 0.25}``
        is exp(c (rho - 1))), ``identity``, ``polynomial`` (``{name: polynomial, degree: 2}``
        is ((1 + rho) / 2)^degree), or a list of coefficients.
    base : {"circle", "binary", "gaussian", "categorical", "sphere"}
        The space of an input: a number x as exp(i scale x) on the circle; its sign; a
        block of numbers with a Gaussian kernel of lengthscale 1 / scale; a class; a
        block of numbers scaled to the unit sphere.
    scale : float > 0
        Radians (circle) or inverse lengthscales (gaussian) per unit of the represented data.
    block : int >= 1 or None
        Numbers in one input, for ``base="gaussian"`` and ``"sphere"``. None: the last axis
        of points with three axes (the channels of a pixel), else the whole point.
    categories : int >= 1 or None
        Number of classes, for ``base="categorical"``. None: from the training data.

    Attributes
    ----------
    shape_ : the shape of points
    skeleton_ : Skeleton
    space_ : Space

    References
    ----------
    Daniely et al., "Random Features for Compositional Kernels", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import SkeletonKernel
    >>> SkeletonKernel(activation="identity").gram(np.array([[0.0, 0.0], [0.0, np.pi / 2]])).round(3)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    layers: list[dict] | None = None
    nodes: list[dict] | None = None
    activation: str | dict | list[float] = "relu"
    base: SpaceName = "circle"
    scale: PositiveFloat = 1.0
    block: PositiveInt | None = None
    categories: PositiveInt | None = None

    def check(self) -> None:
        super().check()
        if self.layers is not None and self.nodes is not None:
            raise InputError("kernel.nodes: a skeleton is given by layers or by nodes, found both")
        with of_section(self.section):
            make_activation(self.activation)
            if self.layers is not None:
                read_layers(self.layers, self.activation)
            if self.nodes is not None:
                from_nodes(self.nodes, 1 + _largest_input(self.nodes), self.activation)

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> Self:
        """Build the skeleton for points of the shape of ``X``'s rows."""
        self.check()
        self.shape_ = X.shape[1:]
        with of_section(self.section):
            self.space_ = make_space(self.base, self.shape_, self.block, float(self.scale), self.categories, X)
            self.skeleton_: Skeleton = self._build(self.space_.n_inputs)
        return self

    def against(self, B: Tensor) -> KernelValues:
        return _SkeletonColumns(self.skeleton_, self.space_, B)

    def is_invariant_under(self, group: Group, shape: tuple[int, ...]) -> bool:
        """Whether the kernel is invariant: for permutations, if it is one fully connected node over single numbers."""
        exchangeable = self.layers is None and self.nodes is None and self.base not in ("gaussian", "sphere")
        return isinstance(group, Identity) or (exchangeable and group.permutes(shape))

    def describe_inputs(self) -> str:
        """The inputs of the fitted skeleton as text, for figures."""
        of = "numbers" if self.space_.block == 1 else f"blocks of {self.space_.block} numbers"
        scale = f", scale {self.scale:g}" if self.base in ("circle", "gaussian") else ""
        return f"{of}, {self.base}{scale}"

    def _build(self, n_inputs: int) -> Skeleton:
        if self.nodes is not None:
            return from_nodes(self.nodes, n_inputs, self.activation)
        if self.layers is None:
            return stack([{"kind": "full"}], (n_inputs, 1, 1), self.activation)
        convolves = any(isinstance(layer, dict) and layer.get("kind") == "conv" for layer in self.layers)
        if convolves and not (2 <= len(self.shape_) <= 3):
            found = f"vectors of length {self.shape_[0]}" if len(self.shape_) == 1 else f"shape {self.shape_}"
            raise InputError(
                f"layers: convolutions take images of shape (height, width) or (height, width, channels), found {found}"
            )
        grid = self.shape_[:2] if convolves else (1, 1)
        if n_inputs % math.prod(grid):
            raise InputError(
                f"block: inputs of {self.space_.block} numbers do not divide pixels of points of shape {self.shape_}"
            )
        return stack(self.layers, (grid[0], grid[1], n_inputs // math.prod(grid)), self.activation)


def _largest_input(nodes: list[dict]) -> int:
    inputs = [node["inputs"] for node in nodes if isinstance(node, dict) and isinstance(node.get("inputs"), list)]
    return max((u for given in inputs for u in given if isinstance(u, int)), default=0)


class _SkeletonColumns:
    """k(., b_j) by recursion over the levels, all nodes of a level at once, for a block of columns at a time."""

    def __init__(self, skeleton: Skeleton, space: Space, B: Tensor) -> None:
        self.skeleton, self.space = skeleton, space
        self.B = space.coordinates(B)
        self.steps = [_Step(level, skeleton.n_inputs, B) for level in skeleton.levels]

    def __call__(self, A: Tensor, columns: slice, out: Tensor) -> Tensor:
        coordinates = self.space.coordinates(A)
        n_values = self.skeleton.n_nodes - self.skeleton.n_inputs
        rows = max(1, min(len(A), int((MAX_VALUES / n_values) ** 0.5)))
        width = max(1, MAX_VALUES // (n_values * rows))
        for top in range(0, len(A), rows):
            for left in range(columns.start, columns.stop, width):
                a = coordinates[top : top + rows]
                b = self.B[left : min(left + width, columns.stop)]
                block = out[top : top + rows, left - columns.start : left - columns.start + len(b)]
                block.copy_(self._values(a, b))
        return out

    def _values(self, a: Tensor, b: Tensor) -> Tensor:
        n_internal = self.skeleton.n_nodes - self.skeleton.n_inputs
        values = a.new_empty(n_internal, len(a), len(b))
        for step in self.steps:
            step.fill(values, self.space, a, b)
        return values[-1]


class _Step:
    """Mean over parents for every node of a level: of base kernels node by node, of internal nodes by one product."""

    def __init__(self, level: Any, n_inputs: int, like: Tensor) -> None:
        self.activation = level.activation
        self.nodes = slice(level.start - n_inputs, level.stop - n_inputs)
        self.inputs: list[tuple[int, float, Tensor]] = []
        size = self.nodes.stop - self.nodes.start
        averaging = np.zeros((size, self.nodes.start))
        for i in range(size):
            parents = level.parents_of(level.start + i)
            base = parents[parents < n_inputs]
            np.add.at(averaging[i], parents[parents >= n_inputs] - n_inputs, 1 / len(parents))
            if len(base):
                share = len(base) / len(parents)
                self.inputs.append((self.nodes.start + i, share, torch.from_numpy(base).to(like.device)))
        used = np.flatnonzero(averaging.any(0))
        self.used = slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)
        self.averaging = torch.from_numpy(averaging[:, self.used]).to(like)

    def fill(self, values: Tensor, space: Space, a: Tensor, b: Tensor) -> None:
        own = values[self.nodes]
        if self.averaging.shape[1]:
            torch.mm(self.averaging, values[self.used].flatten(1), out=own.view(len(own), -1))
        else:
            own.zero_()
        for node, share, inputs in self.inputs:
            values[node].add_(space.mean_kernel(a, b, inputs), alpha=share)
        self.activation.apply_(own)
