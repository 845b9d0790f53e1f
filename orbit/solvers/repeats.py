"""Equal rows of a least-squares problem, which cross-validation has to leave out together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from orbit.core.device_matrix import DeviceMatrix
from orbit.core.threads import in_threads

# Rows and columns that a thread projects at once, in float64: a tile that fits the cache.
_TILE_ROWS, _TILE_COLUMNS = 64, 2048
# Number of random projections by which rows are compared. Different rows agree in few of them, or in none.
_PROJECTIONS = 8
# Features of one orbit differ by rounding, of up to this multiple of the precision of the rows.
_ROUNDING = 64
# Rows that vary little about a large mean differ by as little as rounding; equal ones differ by less than this share of
# the deviation of all rows, unless that is rounding itself: at most this multiple of the precision.
_SHARE, _CONSTANT = 1e-3, 4
# Neighbours in the order of a projection that are compared. In one of the orders no copies of other rows lie between
# equal rows.
_NEIGHBOURS = 3


@dataclass(frozen=True)
class Repeats:
    """The groups of equal rows of a problem, for cross-validation.

    A problem has the same solutions if k equal rows are merged into one of weight k, whose
    target is their mean. Of n rows, m are then left, and the residuals lose the deviations
    of targets within a group, which no solution can fit.

    Attributes
    ----------
    groups : int array, shape (n,)
        The group of each row, numbered from 0 to m - 1.
    weights, means : arrays, shapes (m,) and (m, p)
        The weight of each group and the mean of its targets.
    within : array, shape (p, p)
        The mean product of the deviations of targets from the means of their groups.
    """

    groups: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    within: np.ndarray

    @property
    def distinct(self) -> int:
        """The number m of different rows."""
        return len(self.weights)

    @classmethod
    def find(cls, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> Repeats:
        """The groups for features, shape (n, F), targets, shape (n, p), and weights with a mean of one, shape (n,)."""
        groups = equal_rows(X)
        if groups.max() + 1 == len(X):
            return cls.none(Y, weights)
        w = np.ones(len(X)) if weights is None else weights
        of_groups = np.bincount(groups, w)
        means = np.zeros((len(of_groups), Y.shape[1]))
        np.add.at(means, groups, w[:, None] * Y)
        means /= of_groups[:, None]
        deviations = Y - means[groups]
        return cls(groups, of_groups, means, (w[:, None] * deviations).T @ deviations / len(X))

    @classmethod
    def none(cls, Y: np.ndarray, weights: np.ndarray | None) -> Repeats:
        """All rows are different."""
        w = np.ones(len(Y)) if weights is None else weights
        return cls(np.arange(len(Y)), w, Y, np.zeros((Y.shape[1],) * 2))


def equal_rows(X: Any) -> np.ndarray:
    """The group of each row, shape (n,), numbered from 0: rows are in one group if they are equal but for rounding.

    Parameters
    ----------
    X : array or matrix on a device, shape (n, d)

    Examples
    --------
    >>> equal_rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0 + 1e-15]])).tolist()
    [0, 1, 0]
    """
    seen = _projections(X)
    # projections are as large as the rows they come from
    sizes, deviation = np.sqrt(np.square(seen).mean(1)), np.sqrt(seen.var(0).mean())
    allowed, of_projections = (_ROUNDING * np.finfo(dtype).eps * sizes for dtype in (X.dtype, seen.dtype))
    if deviation > _CONSTANT * np.finfo(X.dtype).eps * sizes.max(initial=0):
        allowed = np.minimum(allowed, np.maximum(of_projections, _SHARE * deviation))
    rows = _close_rows(seen[:, 0], allowed)
    seen, allowed = seen[rows], allowed[rows]
    pairs = []
    for order in np.argsort(seen, axis=0).T:
        for step in range(1, min(_NEIGHBOURS, len(rows) - 1) + 1):
            one, two = order[:-step], order[step:]
            equal = (np.abs(seen[one] - seen[two]) <= allowed[one, None]).all(1)
            pairs.append(np.stack([one[equal], two[equal]]))
    linked = rows[np.concatenate([np.zeros((2, 0), dtype=np.intp), *pairs], axis=1)]
    graph = coo_array((np.ones(linked.shape[1]), tuple(linked)), shape=(len(X), len(X)))
    return connected_components(graph, directed=False)[1]


def _projections(X: Any) -> np.ndarray:
    """The rows' products with random directions, shape (n, _PROJECTIONS), in float64."""
    directions = torch.from_numpy(np.random.default_rng(0).standard_normal((X.shape[1], _PROJECTIONS)))
    if isinstance(X, DeviceMatrix):
        starts = range(0, len(X), _TILE_COLUMNS)
        return np.concatenate([X[start : start + _TILE_COLUMNS] @ directions.numpy() for start in starts])
    seen = np.zeros((len(X), _PROJECTIONS))

    def project(start: int) -> None:
        rows = slice(start, start + _TILE_ROWS)
        for first in range(0, X.shape[1], _TILE_COLUMNS):
            columns = slice(first, first + _TILE_COLUMNS)
            # by torch: NumPy's products in several threads wait for each other
            seen[rows] += torch.mm(torch.from_numpy(X[rows, columns].astype(np.float64)), directions[columns]).numpy()

    in_threads(project, range(0, len(X), _TILE_ROWS))
    return seen


def _close_rows(seen: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Rows with a neighbour within ``allowed`` in the order of a projection: all that equal another, and few more."""
    order = np.argsort(seen)
    close = np.diff(seen[order]) <= allowed[order[1:]] + allowed[order[:-1]]
    return np.sort(order[np.append(close, False) | np.append(False, close)])
