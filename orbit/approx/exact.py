"""The orbit-averaged kernel itself: what every approximation is measured against."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbit.approx.base import FeatureMap
from orbit.engine import Engine, Scratch
from orbit.kernels import Kernel
from orbit.kernels.base import Against
from orbit.linalg import inverse_root
from orbit.orbits import Orbit
from orbit.params import NonNegativeFloat
from orbit.random import RandomState
from orbit.registry import register

# Blocks of columns of a symmetric matrix: with b of them a share (1 + 1/b) / 2 of it is computed.
_SYMMETRIC_BATCHES = 4


@register("approx", "exact")
class Exact(FeatureMap):
    """k_{q,G}(x, z) = sum_ij v_i v_j k(g_i x, g_j z), with no approximation (LGIKA eq. 3).

    :meth:`gram` gives the kernel matrix, for kernel machines and for measuring
    errors. :meth:`transform` gives coordinates in the span of the training
    points' embeddings, psi(x) = L k_{q,G}(X_train, x) with L as in Nyström: their
    inner products are the exact kernel whenever one of the points is a training
    point, so a linear learner on them is the kernel machine on k_{q,G}. Costs
    (n r)^2 kernel values and one n x n eigendecomposition.

    Parameters
    ----------
    kernel : Kernel or None
        None is Gaussian with the median lengthscale.
    orbit : Orbit or None
        What to average over; None is no averaging.
    rank_tolerance : float >= 0 or None
        Eigenvalues of the Gram matrix up to this share of the largest are
        dropped. None is float64 rounding times the number of points.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    X_fit_ : array, shape (n, *shape)
        The training points.
    normalization_ : float64 array L, shape (rank, n)
    orbit_, kernel_ : the fitted parts

    Examples
    --------
    >>> import numpy as np, orbit
    >>> X = np.random.default_rng(0).random((5, 8, 8))
    >>> exact = orbit.build("approx", "exact", orbit=orbit.Orbit(orbit.build("group", "rotation"), size=16))
    >>> K = exact.fit(X).gram(X, X)
    >>> bool(np.allclose(exact.transform(X) @ exact.transform(X).T, K))
    True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        orbit: Orbit | None = None,
        rank_tolerance: NonNegativeFloat | None = None,
        engine: Engine | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.orbit = orbit
        self.rank_tolerance = rank_tolerance
        self.engine = engine
        self.random_state = random_state

    def fit_gram(self, X) -> np.ndarray:
        """Fit, and give the kernel matrix of the training points, without the eigendecomposition of :meth:`fit`.

        For kernel machines, which need :meth:`gram` and never :meth:`transform`.

        Parameters
        ----------
        X : array, shape (n, *shape)

        Returns
        -------
        array, shape (n, n), symmetric
        """
        X, _ = self._fit_parts(X)
        self.X_fit_ = X
        return self._training_gram(X)

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        self.X_fit_ = X
        tolerance = self.rank_tolerance
        if tolerance is None:
            tolerance = len(X) * float(np.finfo(np.float64).eps)
        self.normalization_ = inverse_root(self._training_gram(X.astype(np.float64)), tolerance)
        self._n_features_out = len(self.normalization_)

    def _training_gram(self, X: np.ndarray) -> np.ndarray:
        K = self._gram(X, X, "kernel matrix")
        return (K + K.T) / 2

    def _features(self, X: np.ndarray) -> np.ndarray:
        # small eigenvalues magnify rounding, so this product is taken in float64
        K = self._gram(X.astype(np.float64), self.X_fit_.astype(np.float64), "features")
        return (K @ self.normalization_.T).astype(X.dtype)

    def gram(self, X, Z=None) -> np.ndarray:
        """k_{q,G}(x, z) for all pairs.

        Parameters
        ----------
        X : array, shape (n, *shape)
        Z : array, shape (m, *shape), or None for the training points

        Returns
        -------
        array, shape (n, m), in the engine's precision
        """
        check_is_fitted(self)
        given, X = X, self._validate(X, reset=False)
        Z = X if Z is given else self.X_fit_ if Z is None else self._validate(Z, reset=False)
        return self._gram(X, Z.astype(X.dtype, copy=False), "kernel matrix")

    def _gram(self, X: np.ndarray, Z: np.ndarray, what: str) -> np.ndarray:
        out = np.empty((len(X), len(Z)), dtype=X.dtype)
        symmetric = Z is X
        bytes_per_row = 4 * len(self.orbit_.weights_) * Z[0].size * Z.itemsize
        shares = _SYMMETRIC_BATCHES if symmetric else 1
        for batch in self.engine_.row_batches(len(Z), bytes_per_row, at_most=-(-len(Z) // shares)):
            rows = slice(0, batch.stop if symmetric else None)
            out[rows, batch] = self.engine_.average(self._orbit_columns(Z[batch]), self.orbit_, X[rows], what)
            if symmetric:
                out[batch, : batch.start] = out[: batch.start, batch].T
        return out

    def _orbit_columns(self, Z: np.ndarray) -> OrbitColumns:
        moved = self.engine_.orbit_points(self.orbit_, Z)
        against = [self.kernel_.against(self.engine_.tensor(points, Z.dtype)) for points in moved]
        return OrbitColumns(against, self.orbit_.weights_, len(Z))


class OrbitColumns:
    """sum_j v_j k(x, g_j z) for fixed points z: one side of the double sum over the orbit."""

    def __init__(self, against: list[Against], weights: np.ndarray, n_points: int) -> None:
        self.against, self.weights = against, weights
        self.units = self.width = self.n_outputs = n_points

    def add(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        values = scratch.matrix(0, len(points), units.stop - units.start)
        for columns, v in zip(self.against, self.weights, strict=True):
            total[:, units].add_(columns(points, units, values), alpha=weight * float(v))

    def finish(self, total: Tensor) -> Tensor:
        return total
