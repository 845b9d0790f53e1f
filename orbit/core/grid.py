"""Which axes of a point are time or space, and which holds channels; rows in any order; the middle of a point."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

# A last axis shorter than this, beside one this many times as long, holds the channels of a series.
_SHORTEST_SIDE, _LONGER = 8, 4

# The sides of a volume differ by at most this factor; pictures with many channels have a shorter last axis.
_SIDES = 2

#: Columns of a point of a cloud that are its place; those after them are features of it.
PLACE = 3

# The order of points is taken to be arbitrary unless a test rejects it at this level.
_LEVEL = 0.01


def grid_axes(shape: tuple[int, ...]) -> int:
    """The number of leading axes of a point that are time or space; an axis after them holds channels.

    Series are ``(length,)`` or ``(length, channels)``, images ``(height, width)`` or ``(height, width, channels)``,
    volumes ``(depth, height, width)`` or ``(depth, height, width, channels)``. Shapes alone do not always tell them
    apart: two axes are a series if the last is shorter than 8 and a quarter of the first or less, three a volume if
    none is shorter than 8 or than half of the longest. Whoever knows better gives the number.

    >>> grid_axes((500,)), grid_axes((100, 6)), grid_axes((28, 28)), grid_axes((32, 32, 3)), grid_axes((32, 32, 32))
    (1, 1, 2, 2, 3)
    """
    if len(shape) == 2:
        return 1 if shape[1] < _SHORTEST_SIDE and shape[0] >= _LONGER * shape[1] else 2
    if len(shape) == 3:
        return 3 if min(shape) >= max(_SHORTEST_SIDE, math.ceil(max(shape) / _SIDES)) else 2
    return min(len(shape), 3)


def holds_vectors(shape: tuple[int, ...]) -> bool:
    """Whether a point of this shape may be an image of vectors: two channels, to larger columns and to larger rows."""
    return len(shape) == 3 and shape[2] == 2


def in_any_order(clouds: np.ndarray) -> bool:
    """Whether distances of pairs of points, which no turn changes, do not depend on the place of the pair.

    Parameters
    ----------
    clouds : array, shape (n, n_points, coordinates)

    >>> clouds = np.random.default_rng(0).standard_normal((30, 12, 3))
    >>> in_any_order(clouds), in_any_order(clouds * np.linspace(0.1, 1, 12)[:, None])
    (True, False)
    """
    from scipy.stats import friedmanchisquare

    pairs = np.linalg.norm(clouds[:, 1::2] - clouds[:, : clouds.shape[1] // 2 * 2 : 2], axis=2)
    return min(pairs.shape) > 2 and not friedmanchisquare(*pairs.T).pvalue < _LEVEL


def n_points(cloud: Any) -> int:
    """The number of points of a cloud, an array or a tensor (rows, columns), without rows of zeros at its end.

    >>> n_points(np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [0.0, 0.0]]))
    3
    """
    if (cloud[-1] != 0).any():
        return len(cloud)
    (rows,) = np.nonzero(np.asarray((cloud != 0).any(1)))
    return int(rows[-1]) + 1 if len(rows) else 0


def middle(X: np.ndarray, sides: Sequence[int], first: int = 0) -> np.ndarray:
    """An array with the given sides from axis ``first`` on: its middle, or itself in the middle of zeros.

    >>> middle(np.array([1, 2, 3]), [5]), middle(np.array([1, 2, 3]), [1])
    (array([0, 1, 2, 3, 0]), array([2]))
    """
    for axis, side in enumerate(sides, first):
        missing = side - X.shape[axis]
        if missing > 0:
            X = np.pad(X, [(0, 0)] * axis + [(missing // 2, missing - missing // 2)] + [(0, 0)] * (X.ndim - axis - 1))
        else:
            X = X[(slice(None),) * axis + (slice(-missing // 2, -missing // 2 + side),)]
    return X
