"""The exact orbit-averaged kernel: the reference for every approximation."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbit.approx.base import FeatureMap
from orbit.core.linalg import pivoted_root
from orbit.core.lru import Lru
from orbit.core.random import RandomState
from orbit.core.ranks import rank, world_size
from orbit.core.tiled_matrix import Tile, TiledMatrix
from orbit.encoders import Encoder
from orbit.engine import Engine
from orbit.engine.embedding import Embedding, ProjectedEmbedding, Scratch, flatten
from orbit.engine.memory import slices
from orbit.engine.strategy import Task
from orbit.kernels import Kernel
from orbit.kernels.base import KernelValues, ProjectedKernelValues
from orbit.orbits import Orbit
from orbit.registry import register
from orbit.solvers.base import is_large
from orbit.solvers.structure import GramStructure

log = logging.getLogger(__name__)

# A symmetric matrix in b blocks of columns takes a share (1 + 1/b) / 2 of its entries, but every block moves the
# points along the orbit again, and blocks narrower than a tile cost more than they save. Wide ones take memory.
_SYMMETRIC_BLOCKS = 4
NARROWEST_BLOCK, _WIDEST_BLOCK = 512, 4096

# What the encoded orbits of all points may take: this share of the memory of the engine, or of the kernel matrix of the
# training points. Otherwise every block of columns encodes them again.
_ENCODED_SHARE, _OF_MATRIX = 1 / 2, 1 / 4

# A tile takes one over this number of the memory; a solver has the rest.
_OF_SOLVER = 2

# Rounding error of |psi(x)|^2 for a training point, as a share of its kernel value with itself.
_RESIDUAL_ROUNDING = 1e-9


@register("approx", "exact")
@dataclass(eq=False, repr=False)
class Exact(FeatureMap):
    """k_{q,G}(x, z) = sum_ij v_i v_j k(g_i x, g_j z), with no approximation (Raj et al. 2017, eq. 3).

    :meth:`gram` gives the kernel matrix, for kernel machines and for measuring
    errors. :meth:`transform` gives coordinates in the span of the training
    points' embeddings, psi(x) = L k_{q,G}(Z, x) with L as in Nyström, for training
    points Z whose embeddings span those of all others up to rounding: their inner
    products are the exact kernel whenever one of the points is a training point, so a
    linear learner on them is the kernel machine on k_{q,G}. Costs (n r)^2 kernel values,
    down to five eighths of them for the matrix of one large set of points with itself; n^2 for each
    different g_j^-1 g_i, which are as many as elements if these are a finite group or equispaced
    angles, if the kernel is invariant under the group. And,
    unless ``precomputed``, one n x n Cholesky factorisation and n^2 operations for each point.

    Parameters
    ----------
    kernel : Kernel or None
        None is Gaussian.
    orbit : Orbit or None
        The orbit to average over; None is no averaging.
    residual : bool or None
        Whether to add a column with the square root of k_{q,G}(x, x) - |psi(x)|^2. It
        is zero for training points, so inner products with them do not change, and
        the squared norm of the features becomes the prior variance, which a Gaussian
        process needs. None is False; a run chooses it by the learner. Costs r^2 kernel
        values per point.
    encoder : Encoder or None
        Maps a moved point to the vector that the kernel takes; None takes the point itself.
    precomputed : bool or None
        Whether :meth:`transform` gives the kernel values with the training points, and
        with ``residual`` k_{q,G}(x, x), instead of coordinates. They are in float64; in the engine's precision
        without ``residual`` above 3,000 training points, where they fill the memory. For
        ``RidgeRegressor``, ``RidgeClassifier``, ``KernelRidgeRegressor`` and
        ``GaussianProcess``, which then factorise the kernel matrix itself. With a stream (``Engine.stream``), the
        kernel matrix of training points that exceeds ``Engine.memory`` is not held: it is a
        :class:`~orbit.core.tiled_matrix.TiledMatrix`, for which the first three take conjugate gradients. None is
        False; a run chooses it by the learner.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    X_fit_ : array, shape (n, *shape)
        The training points.
    pivots_ : int array
        Indices of Z in ``X_fit_``, shape (rank,).
    normalization_ : float64 array L, shape (rank, rank), lower triangular
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

    kernel: Kernel | None = None
    orbit: Orbit | None = None
    residual: bool | None = None
    encoder: Encoder | None = None
    precomputed: bool | None = None
    engine: Engine | None = None
    random_state: RandomState = None

    def fit_gram(self, X, y=None, clusters=None) -> np.ndarray:
        """Fit, and return the kernel matrix of the training points, without the factorisation of :meth:`fit`.

        For kernel machines, which need :meth:`gram` and never :meth:`transform`.

        Parameters
        ----------
        X : array, shape (n, *shape)
        y, clusters : as for :meth:`fit`

        Returns
        -------
        array, shape (n, n), symmetric

        Raises
        ------
        InputError
            For values that are NaN or infinite in the engine's precision, also by :meth:`gram`.
        """
        X, _ = self._fit_parts(X, y, clusters)
        self._set_points(X)
        K = self._gram(X, X, "kernel matrix")
        self.kernel_.check_finite(K, "kernel matrix")
        return K

    @property
    def gives_gram(self) -> bool:
        return bool(self.precomputed)

    def gives_tiles(self, n: int, dtype: np.dtype) -> bool:
        engine = self.engine or Engine()
        nbytes = self.features_dtype(n, dtype).itemsize * n**2
        return engine.stream and self.gives_gram and not self.residual and nbytes > engine.budget

    def n_columns(self, n: int, d: int) -> int:
        return n if self.precomputed else 0

    def fit_bytes(self, n: int, d: int) -> int:
        return 0 if self.precomputed else 2 * 8 * n**2  # the kernel matrix, and its factor

    def features_dtype(self, n: int, dtype: np.dtype) -> np.dtype:
        if not self.precomputed:
            return dtype
        return dtype if is_large(n) and not self.residual else np.dtype(np.float64)

    def _working_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(np.float64)

    def min_fit_points(self, n: int) -> int:
        return n

    def _set_points(self, X: np.ndarray) -> None:
        """Keep the training points, and drop the coordinates of an earlier fit, to others."""
        self.X_fit_, self.structure_ = X, GramStructure(len(X), bool(self.residual)) if self.precomputed else None
        self._encoded = Lru[np.dtype, np.ndarray](most=1)
        orbit = self.orbit_.simplified()
        is_invariant = self.encode is flatten and self.kernel_.is_invariant_under(orbit.group_, self.shape_in_)
        self._single = orbit.differences() if is_invariant else None
        for name in {"pivots_", "normalization_"} & set(vars(self)):
            delattr(self, name)

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        self._set_points(X)
        if self.precomputed:
            self._n_features_out = len(X) + bool(self.residual)
            return
        points = X.astype(np.float64)
        K = self._gram(points, points, "kernel matrix")
        self.pivots_, self.normalization_ = pivoted_root(K)
        self._n_features_out = len(self.normalization_) + bool(self.residual)

    def _average_on_device(self, X: np.ndarray) -> Tensor:
        if not self.precomputed or self.residual:
            return super()._average_on_device(X)
        return self._with_training_points(self._points(X), on_device=True)

    def _points(self, X: np.ndarray) -> np.ndarray:
        """Points in the precision of kernel values."""
        return X.astype(self.features_dtype(len(self.X_fit_), X.dtype), copy=False)

    def _average(self, X: np.ndarray) -> np.ndarray:
        if self.precomputed:
            K = self._with_training_points(points := self._points(X))
            return np.column_stack([K, self._diagonal(points)]) if self.residual else K
        # small pivots magnify rounding, so this product is taken in float64
        points = X.astype(np.float64)
        check_is_fitted(self, "pivots_", msg="%(name)s has no coordinates after fit_gram or precomputed=True: call fit")
        psi = self._gram(points, self.X_fit_[self.pivots_].astype(np.float64), "features") @ self.normalization_.T
        if self.residual:
            prior = self._diagonal(points)
            missing = prior - np.square(psi).sum(1)
            rounding = missing <= _RESIDUAL_ROUNDING * prior
            psi = np.column_stack([psi, np.sqrt(np.where(rounding, 0.0, missing))])
        return psi.astype(X.dtype)

    def _with_training_points(self, X: np.ndarray, on_device: bool = False) -> Any:
        Z = self.X_fit_.astype(X.dtype, copy=False)
        if np.array_equal(X, Z):
            if self.gives_tiles(len(Z), Z.dtype):
                return self._tiled(Z)
            return self._gram(Z, Z, "kernel matrix", on_device)
        return self._gram(X, Z, "features", on_device)

    def diagonal(self, X) -> np.ndarray:
        """k_{q,G}(x, x), shape ``(n,)``, in the engine's precision, for points of shape ``(n, *shape)``."""
        check_is_fitted(self)
        return self._diagonal(self._validate(X, reset=False))

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        if (found := self.orbit_.representatives(X)) is not None:
            points, index = found
            return self._diagonal(points)[index]
        orbit, kernel = self._single or self.orbit_, self.kernel_
        v = orbit.weights_
        out = np.empty(len(X), dtype=X.dtype)
        bytes_per_row = 8 * len(v) * (self.encoder_.n_outputs_ + (1 if self._single else len(v)))
        for rows in self.engine_.row_batches(len(X), bytes_per_row):
            moved = self.engine_.orbit_points(orbit, X[rows], self.encode)  # (r, rows, d)
            if len(v) == 1:
                out[rows] = kernel.diagonal(moved[0])
            elif self._single:
                points = X[rows].reshape(moved.shape[1], 1, -1)
                out[rows] = [v @ kernel.gram(moved[:, i], point)[:, 0] for i, point in enumerate(points)]
            else:
                out[rows] = [v @ kernel.gram(moved[:, i]) @ v for i in range(moved.shape[1])]
        return out

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
        K = self._gram(X, Z.astype(X.dtype, copy=False), "kernel matrix")
        self.kernel_.check_finite(K, "kernel matrix")
        return K

    def _gram(self, X: np.ndarray, Z: np.ndarray, description: str, on_device: bool = False) -> Any:
        shape, out = (len(X), len(Z)), None
        for rows, columns, values in self._tiles(X, Z, description, on_device):
            if values.shape == shape:
                return values
            out = self.engine_.empty(shape, X.dtype, on_device) if out is None else out
            out[rows, columns] = values
            if Z is X:
                out[columns, : columns.start] = out[: columns.start, columns].T
        return out

    def _tiles(
        self,
        X: np.ndarray,
        Z: np.ndarray,
        description: str,
        on_device: bool,
        every: slice = slice(None),
        share: int = 1,
    ) -> Iterator[Tile]:
        """The kernel matrix by blocks of columns; for ``X is Z`` with rows up to the diagonal, symmetric there.

        ``every``: which of the blocks; ``share``: the share of the memory for them is 1 over this number.
        """
        symmetric = Z is X
        encoded_Z = self._encoded_orbit(Z)
        encoded_X = encoded_Z if symmetric else self._encoded_orbit(X)
        # orbit points, centred copies, Fourier coefficients, and the same amount for the tiles; and a block of columns
        bytes_per_row = (10 * len(self.orbit_.weights_) * self.encoder_.n_outputs_ + len(X)) * Z.itemsize * share
        width = max(NARROWEST_BLOCK, min(-(-len(Z) // _SYMMETRIC_BLOCKS), _WIDEST_BLOCK)) if symmetric else len(Z)
        for batch in list(self.engine_.row_batches(len(Z), bytes_per_row, at_most=width))[every]:
            rows = slice(0, batch.stop if symmetric else len(X))
            columns = self._orbit_columns(Z[batch], None if encoded_Z is None else encoded_Z[:, batch])
            values = self._orbit_sums(columns, X[rows], encoded_X, description, on_device)
            if symmetric:
                values[batch] = (values[batch] + values[batch].T) / 2
            yield rows, batch, values

    def _tiled(self, Z: np.ndarray) -> TiledMatrix:
        """The kernel matrix of the training points in tiles, shared by the processes of a job."""
        engine = self.engine_
        log.info(
            "the kernel matrix of %d points does not fit in the memory of the engine, %g GiB: taking tiles of it",
            len(Z),
            engine.memory,
        )
        every, on_device = slice(rank(), None, world_size()), engine.torch_device().type == "cuda"

        def values(rows: np.ndarray | slice, columns: np.ndarray) -> np.ndarray:
            return self._gram(Z if isinstance(rows, slice) else Z[rows], Z[columns], "kernel values")

        def tiles() -> Iterator[Tile]:
            return self._tiles(Z, Z, "kernel matrix", on_device, every, _OF_SOLVER)

        return TiledMatrix(self._diagonal(Z), values, tiles, Z.dtype, engine.budget)

    def _encoded_orbit(self, X: np.ndarray) -> np.ndarray | None:
        """The encoded orbit of all points, shape (r, n, d); None without encoder, or if it takes too much memory.

        Encodings of the training points are kept for predictions.
        """
        nbytes = len(self.orbit_.weights_) * len(X) * self.encoder_.n_outputs_ * X.itemsize
        matrix = 0 if self.gives_tiles(len(self.X_fit_), X.dtype) else len(self.X_fit_) ** 2 * X.itemsize
        if self.encoder_.is_identity or nbytes > max(self.engine_.budget * _ENCODED_SHARE, matrix * _OF_MATRIX):
            return None
        if X is not self.X_fit_:
            return self.engine_.orbit_points(self.orbit_, X, self.encode)
        return self._encoded.get(X.dtype, lambda: self.engine_.orbit_points(self.orbit_, *self._encoded_points(X)))

    def _orbit_sums(
        self, columns: OrbitColumns, X: np.ndarray, encoded: np.ndarray | None, description: str, on_device: bool
    ) -> Any:
        """sum_i v_i columns(g_i x) for points x, of which ``encoded`` begins with the encoded orbits."""
        if encoded is None:
            task = self._task(columns, X, description=description, on_device=on_device)
            sums, self.route_ = self.engine_.average(
                task if self._single is None else replace(task, orbit=self._single)
            )
            return sums
        total = self.engine_.empty((len(X), columns.width), X.dtype, on_device)
        total[:] = 0.0
        for weight, points in zip(self.orbit_.weights_, encoded[:, : len(X)], strict=True):
            orbit, label = Orbit().fit(points), self.label()
            task = Task(columns, orbit, points, label=label, description=description, on_device=on_device)
            sums, self.route_ = self.engine_.average(task)
            sums *= weight
            total += sums
        return total

    def _orbit_columns(self, Z: np.ndarray, encoded: np.ndarray | None) -> OrbitColumns:
        if self._single is not None:
            moved, weights = Z.reshape(1, len(Z), -1), np.ones(1)
        else:
            weights = self.orbit_.weights_
            moved = self.engine_.orbit_points(self.orbit_, Z, self.encode) if encoded is None else encoded
        columns = self.kernel_.against(self.engine_.tensor(moved.reshape(-1, moved.shape[2]), Z.dtype))
        if isinstance(columns, ProjectedKernelValues):
            return ProjectedOrbitColumns(columns, weights, len(Z))
        return OrbitColumns(columns, weights, len(Z))


class OrbitColumns(Embedding):
    """sum_j v_j k(x, g_j z) for fixed points z: one side of the double sum over the orbit.

    Units are all orbit points g_j z, ordered by element.
    """

    sums_are_features = True

    def __init__(self, columns: KernelValues, weights: np.ndarray, n_points: int) -> None:
        self.columns, self.weights = columns, weights
        self.width = self.n_outputs = n_points
        self.units = n_points * len(weights)

    def parts(self, units: int) -> list[list[slice]]:
        # the orbit points of one z add to the same column
        starts, points = range(0, self.units, self.width), max(1, units // len(self.weights))
        return [[slice(i + z.start, i + z.stop) for i in starts] for z in slices(self.width, points)]

    def add(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        values = self.columns(points, units, scratch.matrix(0, len(points), units.stop - units.start))
        self._add_to_points(values, weight, units, total)

    def put(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        if len(self.weights) > 1:
            self.add(points, weight, units, total, scratch)
        else:
            values = self.columns(points, units, total[:, units])
            if (factor := weight * float(self.weights[0])) != 1:
                values.mul_(factor)

    def _add_to_points(self, values: Tensor, weight: float, units: slice, total: Tensor) -> None:
        start = units.start
        while start < units.stop:
            element, first = divmod(start, self.width)
            stop = min(units.stop, start - first + self.width)
            block = values[:, start - units.start : stop - units.start]
            total[:, first : first + stop - start].add_(block, alpha=weight * float(self.weights[element]))
            start = stop


class ProjectedOrbitColumns(OrbitColumns, ProjectedEmbedding):
    """:class:`OrbitColumns` of a kernel whose values follow from projections on the g_j z."""

    needs_squares = True
    columns: ProjectedKernelValues

    def templates(self, units: slice) -> Tensor:
        return self.columns.points[units]

    def add_projected(
        self, projections: Tensor, squares: Tensor, weights: Tensor, units: slice, total: Tensor, scratch: Scratch
    ) -> None:
        values = self.columns.from_projections(projections, squares, units)
        self._add_to_points(torch.mv(values.flatten(1).T, weights).view(values.shape[1:]), 1.0, units, total)
