"""Ready-made skeletons: one fully connected node, and stacks of convolutions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from orbit.core.errors import InputError, located
from orbit.kernels.skeletons.activations import Activation, make_activation
from orbit.kernels.skeletons.graph import Level, Skeleton, make_level

_KEYS = {"conv": {"kind", "size", "stride", "padding", "activation"}, "full": {"kind", "activation"}}


def full(n_inputs: int, activation: Any = "relu") -> Skeleton:
    """One node that takes every input.

    >>> full(5).n_nodes
    6
    """
    return stack([{"kind": "full"}], (n_inputs, 1, 1), activation)


def stack(layers: Sequence[Any], shape: tuple[int, int, int], default_activation: Any = "relu") -> Skeleton:
    """Convolutions one after the other, and a fully connected layer at the end (Daniely et al. 2017, section 6).

    Parameters
    ----------
    layers : list of mappings
        ``{kind: conv, size: 5, stride: 2, padding: 0, activation: exp}`` or
        ``{kind: full, activation: relu}``; size, stride and padding are numbers, or
        pairs for height and width. A ``full`` layer is one node, so it is the last.
        Padding adds positions whose patches cross the border; these average
        over the part inside.
    shape : (height, width, inputs at each position)
    default_activation : the activation of layers without one

    Raises
    ------
    InputError
        For unknown keys, wrong numbers, patches larger than their input, and a last
        layer with more than one node.

    >>> deep = [{"kind": "conv", "size": 5, "stride": 2}, {"kind": "conv", "size": 4, "stride": 2}, {"kind": "full"}]
    >>> [level.stop - level.start for level in stack(deep, (24, 24, 3)).levels]
    [100, 16, 1]
    """
    read = read_layers(layers, default_activation)
    below = np.arange(math.prod(shape)).reshape(shape)
    n_inputs, start = below.size, below.size
    levels: list[Level] = []
    labels: list[str] = []
    for i, layer in enumerate(read):
        if layer.size is None:
            parents, grid, label = [below.ravel()], (1, 1), "full"
        else:
            with located(f"layers[{i}]"):
                parents, grid = _patches(below, layer.size, layer.stride, layer.padding)
            label = f"conv {layer.size[0]}×{layer.size[1]}, stride {layer.stride[0]}"
        levels.append(make_level(start, parents, layer.activation))
        labels.append(f"{label}: {layer.activation}, {grid[0]}×{grid[1]}")
        below = np.arange(start, start + len(parents)).reshape(*grid, 1)
        start += len(parents)
    if below.size > 1:
        raise InputError(f"layers: the last layer has {below.size} nodes, expected one: add {{kind: full}}")
    return Skeleton(n_inputs, levels, labels)


class StackLayer(NamedTuple):
    """One layer of a stack; ``size`` is None for a fully connected one."""

    activation: Activation
    size: tuple[int, int] | None = None
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)


def read_layers(layers: Sequence[Any], default_activation: Any) -> list[StackLayer]:
    """The layers, with all checks that need no data. See :func:`stack`."""
    if not layers:
        raise InputError("layers: expected a list with at least one layer, found an empty one")
    read = []
    for i, layer in enumerate(layers):
        with located(f"layers[{i}]"):
            read.append(_read_layer(layer, default_activation))
    return read


def _read_layer(layer: Any, default_activation: Any) -> StackLayer:
    kind = layer.get("kind") if isinstance(layer, Mapping) else None
    if kind not in _KEYS:
        raise InputError(f"expected {{kind: conv, size: ...}} or {{kind: full}}, found {layer!r}")
    if unknown := set(layer) - _KEYS[kind]:
        raise InputError(f"no such key {min(map(str, unknown))!r}; a {kind} has {', '.join(sorted(_KEYS[kind]))}")
    activation = make_activation(layer.get("activation", default_activation))
    if kind == "full":
        return StackLayer(activation)
    size, stride, padding = (_pair(layer, key) for key in ("size", "stride", "padding"))
    if any(p >= s for p, s in zip(padding, size, strict=True)):
        raise InputError(f"padding: expected less than the size {size}, found {padding}")
    return StackLayer(activation, size, stride, padding)


def _pair(layer: Mapping[str, Any], key: str) -> tuple[int, int]:
    lowest = 0 if key == "padding" else 1
    given = layer.get(key, lowest if key != "size" else None)
    pair = given if isinstance(given, (list, tuple)) else (given, given)
    if len(pair) != 2 or not all(isinstance(v, int) and not isinstance(v, bool) and v >= lowest for v in pair):
        raise InputError(f"{key}: expected an integer >= {lowest}, or two of them, found {given!r}")
    return pair[0], pair[1]


def _patches(
    below: np.ndarray, size: tuple[int, int], stride: tuple[int, int], padding: tuple[int, int]
) -> tuple[list[np.ndarray], tuple[int, int]]:
    height, width = below.shape[:2]
    tops, lefts = (
        range(-p, extent + p - s + 1, step)
        for extent, s, step, p in zip((height, width), size, stride, padding, strict=True)
    )
    if not tops or not lefts:
        raise InputError(f"a patch of {size[0]}×{size[1]} does not fit into {height}×{width} positions")
    parents = [
        below[max(top, 0) : top + size[0], max(left, 0) : left + size[1]].ravel() for top in tops for left in lefts
    ]
    return parents, (len(tops), len(lefts))
