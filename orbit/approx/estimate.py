"""What a feature map takes, before it is fitted: columns, orbit elements and operations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orbit.core.work import Work
from orbit.kernels import Kernel
from orbit.orbits import Orbit

# Multiplications for an m x m matrix, as multiples of m^3: a symmetric eigendecomposition, and a Cholesky factorisation
# with the inverse of the factor at full rank (Golub and Van Loan, 8.3 and 4.2).
_EIGEN, _CHOLESKY_AND_INVERSE = 4.5, 5 / 12


def root_work(m: int, tolerance: float | None = None) -> Work:
    """The operations of :func:`orbit.core.linalg.pivoted_root` at full rank.

    >>> root_work(3).double, root_work(2, tolerance=0.0).double
    (11.25, 36.0)
    """
    return Work(double=(_CHOLESKY_AND_INVERSE if tolerance is None else _EIGEN) * m**3)


@dataclass(frozen=True)
class Setting:
    """What an estimate is made from: sizes, some points, and the orbit and the kernel fitted to them.

    Attributes
    ----------
    n : training points
    sample : some points, shape (m, *shape), in the precision of the features
    vectors : some points as the kernel takes them, shape (m, d); zeros for those of an encoder
    kernel : fitted Kernel
    orbit : fitted Orbit
    encoding : the operations of encoding a moved point; none without an encoder
    """

    n: int
    sample: np.ndarray
    vectors: np.ndarray
    kernel: Kernel
    orbit: Orbit
    encoding: Work

    @property
    def d(self) -> int:
        """Numbers of a point as the kernel takes it."""
        return self.vectors.shape[1]


@dataclass(frozen=True)
class MapEstimate:
    """What a feature map takes for n points.

    Attributes
    ----------
    columns : int
        Columns of the features, at most.
    fit : Work
        Operations of the fit to all n points.
    of_point : Work
        Operations for the features of one of the n points.
    orbit_size : int
        Elements of the orbit.
    orbit_bytes : int
        Bytes of the elements and their weights.
    gram : bool
        Whether the features are kernel values with the training points.
    """

    columns: int
    fit: Work
    of_point: Work
    orbit_size: int = 1
    orbit_bytes: int = 0
    gram: bool = False
