"""Deterministic rules on the line and the circle, and their tensor products with a limited number of nodes."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh_tridiagonal

Rule = tuple[np.ndarray, np.ndarray]


def trapezoid(size: int, phase: float, period: float = 2 * math.pi) -> np.ndarray:
    """``size`` equispaced points of a circle, shifted by ``phase`` steps; 0 is one of them at phase 0.

    The trapezoid rule on a full circle converges faster than any power of
    ``size`` for smooth periodic integrands: a few dozen angles are as accurate as
    thousands of random ones.

    Returns
    -------
    array, shape (size,), in ``[-period / 2, period / 2)``
    """
    points = (np.arange(size) + phase) * (period / size)
    return (points + period / 2) % period - period / 2


def share(size: int, dims: Sequence[int]) -> list[int]:
    """Number of nodes per axis for each of several rules, so that their tensor product has at most ``size`` nodes.

    Rule i spans ``dims[i]`` axes with the same number of nodes on each. The rule
    with the fewest nodes gets one more per axis, as long as the product fits.

    Examples
    --------
    >>> share(32, [1, 2])
    [3, 3]
    >>> share(20, [1, 1])
    [5, 4]
    """
    counts = [1] * len(dims)

    def fits(i: int) -> bool:
        return math.prod((c + (j == i)) ** d for j, (c, d) in enumerate(zip(counts, dims, strict=True))) <= size

    while open_ := [i for i in range(len(dims)) if dims[i] and fits(i)]:
        counts[min(open_, key=lambda i: counts[i])] += 1
    return counts


def grid(axes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The tensor grid of several lists of nodes, as one array of nodes for each list; the first varies slowest.

    ``axes[i]``: array, shape ``(n_i, ...)``; the results have shape ``(prod n, ...)``.
    """
    index = np.indices([len(axis) for axis in axes]).reshape(len(axes), -1)
    return [np.asarray(axis)[i] for axis, i in zip(axes, index, strict=True)]


def tensor(rules: Sequence[Rule]) -> tuple[list[np.ndarray], np.ndarray]:
    """The tensor product of rules: the nodes of each as by :func:`grid`, and the products of their weights."""
    nodes = grid([nodes for nodes, _ in rules])
    return nodes, np.prod(grid([weights for _, weights in rules]), axis=0)


def gauss(points: np.ndarray, masses: np.ndarray, size: int) -> Rule:
    """The Gauss rule of a discrete measure: nodes ``(size,)`` and weights, exact to degree ``2 size - 1``.

    If the measure is a fine quadrature rule of a density, it is the Gauss rule of
    that density. Stieltjes' procedure gives the three-term recurrence, and the
    eigenvalues of its matrix are the nodes (Golub and Welsch, 1969; Gautschi, 2004).
    """
    masses = masses / masses.sum()
    before, now = np.zeros(len(points)), np.ones(len(points))
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    for k in range(size):
        diagonal.append(float(masses @ (points * now**2)))
        after = (points - diagonal[-1]) * now - (off_diagonal[-1] if k else 0.0) * before
        off_diagonal.append(float(np.sqrt(masses @ after**2)))
        before, now = now, after / off_diagonal[-1]
    nodes, vectors = eigh_tridiagonal(diagonal, off_diagonal[:-1])
    return nodes, vectors[0] ** 2
