"""Skeletons (Daniely et al. 2017, section 5): acyclic graphs, base spaces as inputs and activations as nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np

from orbit.core.errors import InputError, located, suggestion
from orbit.kernels.skeletons.activations import Activation, make_activation


@dataclass(frozen=True)
class Level:
    """Internal nodes that have one activation and do not depend on one another.

    Attributes
    ----------
    start, stop : range of their node numbers in the skeleton
    indptr, parents : int64 arrays; ``parents[indptr[i]:indptr[i + 1]]`` are the nodes with an edge into ``start + i``
    activation : Activation
    """

    start: int
    stop: int
    indptr: np.ndarray
    parents: np.ndarray
    activation: Activation

    def parents_of(self, node: int) -> np.ndarray:
        return self.parents[self.indptr[node - self.start] : self.indptr[node - self.start + 1]]


@dataclass(frozen=True)
class Skeleton:
    """A skeleton: inputs are nodes ``0 .. n_inputs - 1``, internal nodes follow level by level, the output is last.

    Attributes
    ----------
    n_inputs : int
    levels : list of Level, each after those it depends on
    labels : one line of text per level, for figures
    """

    n_inputs: int
    levels: list[Level]
    labels: list[str]

    @property
    def n_nodes(self) -> int:
        return self.levels[-1].stop

    @property
    def output(self) -> int:
        return self.n_nodes - 1

    def complexity(self) -> float:
        """C(S), the expected number of base factors of a random feature (Daniely et al. 2017, eq. 11).

        >>> from orbit.kernels.skeletons.builders import full
        >>> full(7, "relu").complexity()
        1.0
        """
        expected = np.ones(self.n_nodes)
        for level in self.levels:
            sums = np.add.reduceat(expected[level.parents], level.indptr[:-1])
            expected[level.start : level.stop] = level.activation.mean_degree * sums / np.diff(level.indptr)
        return float(expected[self.output])


def from_nodes(nodes: Sequence[Any], n_inputs: int, default_activation: Any) -> Skeleton:
    """A skeleton from a list of its internal nodes, in any order.

    Parameters
    ----------
    nodes : list of mappings
        Each has a ``name`` and ``inputs``: a list of names of other nodes and of
        numbers of base inputs (0 to ``n_inputs - 1``), or ``all`` for every base
        input. ``activation`` is optional. An input named twice counts twice.
    n_inputs : int
    default_activation : the activation of nodes without one

    Raises
    ------
    InputError
        For an unknown name, a cycle, a node without inputs, several outputs, or a wrong activation.

    >>> diamond = [{"name": "a", "inputs": [0, 1]}, {"name": "b", "inputs": [1, 2]}]
    >>> diamond += [{"name": "top", "inputs": ["a", "b"]}]
    >>> from_nodes(diamond, 3, "relu").n_nodes
    6
    """
    read = _read(nodes, n_inputs, default_activation)
    depths = _depths(read)
    used = {u for node in read.values() for u in node.parents if isinstance(u, str)}
    outputs = [name for name in read if name not in used]
    if len(outputs) != 1:
        raise InputError(
            f"nodes: expected one output, a node that no other takes as input, found {', '.join(outputs)}: "
            "lead them all to one node"
        )
    groups: dict[tuple[int, str], list[str]] = {}
    for name, node in read.items():
        groups.setdefault((depths[name], repr(node.activation)), []).append(name)
    numbers: dict[Any, int] = {i: i for i in range(n_inputs)}
    levels: list[Level] = []
    labels: list[str] = []
    for key in sorted(groups):  # by depth; nodes at one depth are independent
        names = groups[key]
        start = n_inputs + sum(level.stop - level.start for level in levels)
        numbers |= {name: start + i for i, name in enumerate(names)}
        parents = [np.array([numbers[u] for u in read[name].parents]) for name in names]
        activation = read[names[0]].activation
        levels.append(make_level(start, parents, activation))
        labels.append(f"{', '.join(names)}: {activation}")
    return Skeleton(n_inputs, levels, labels)


def make_level(start: int, parents: list[np.ndarray], activation: Activation) -> Level:
    """A level from the parents of each of its nodes."""
    indptr = np.concatenate([[0], np.cumsum([len(p) for p in parents])])
    return Level(start, start + len(parents), indptr, np.concatenate(parents).astype(np.int64), activation)


class _Node(NamedTuple):
    parents: list[Any]  # numbers of inputs, and names of nodes
    activation: Activation


def _read(nodes: Sequence[Any], n_inputs: int, default_activation: Any) -> dict[str, _Node]:
    if not nodes:
        raise InputError("nodes: expected a list with at least one node, found an empty one")
    names = [node.get("name") if isinstance(node, Mapping) else None for node in nodes]
    read: dict[str, _Node] = {}
    for i, (name, node) in enumerate(zip(names, nodes, strict=True)):
        if not isinstance(name, str):
            raise InputError(
                f"nodes[{i}]: expected a mapping with a name, {{name: ..., inputs: [...]}}, found {node!r}"
            )
        if name in read:
            raise InputError(f"nodes[{i}]: the name {name!r} is already that of another node")
        unknown = set(node) - {"name", "inputs", "activation"}
        if unknown:
            raise InputError(f"nodes[{i}]: no such key {min(map(str, unknown))!r}; it has name, inputs, activation")
        with located(f"nodes[{i}] ({name})"):
            activation = make_activation(node.get("activation", default_activation))
            read[name] = _Node(_parents(node.get("inputs"), names, n_inputs), activation)
    return read


def _parents(given: Any, names: Sequence[Any], n_inputs: int) -> list[Any]:
    if given == "all":
        return list(range(n_inputs))
    if not isinstance(given, (list, tuple)) or not given:
        raise InputError(f"inputs: expected 'all' or a list with at least one input, found {given!r}")
    for u in given:
        if isinstance(u, str) and u not in names:
            raise InputError(f"no node is named {u!r}{suggestion(u, [str(n) for n in names])}")
        if not isinstance(u, str) and not (isinstance(u, int) and not isinstance(u, bool) and 0 <= u < n_inputs):
            raise InputError(f"expected names of nodes and numbers of inputs, 0 to {n_inputs - 1}, found {u!r}")
    return list(given)


def _depths(read: dict[str, _Node]) -> dict[str, int]:
    """The longest path from an input to each node."""
    order = TopologicalSorter[str]()
    for name, node in read.items():
        order.add(name, *(u for u in node.parents if isinstance(u, str)))
    try:
        order.prepare()
    except CycleError as error:
        cycle = ", ".join(error.args[1][:0:-1])  # each takes the next one as input
        raise InputError(f"nodes: a cycle runs through {cycle}; a skeleton must have none") from None
    depths: dict[str, int] = {}
    depth = 0
    while order.is_active():
        ready = order.get_ready()
        depths |= dict.fromkeys(ready, depth)
        order.done(*ready)
        depth += 1
    return depths
