"""Exact operator-valued kernels: the reference for operator-valued random features."""

from dataclasses import dataclass

import numpy as np

from orbit.approx.base import FeatureMap
from orbit.core.errors import InputError
from orbit.core.linalg import pivoted_root
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState
from orbit.engine import Engine
from orbit.kernels import Decomposable, Kernel, OperatorKernel
from orbit.orbits import Orbit
from orbit.registry import register
from orbit.solvers.structure import Structure


@register("approx", "ovk")
@dataclass(eq=False, repr=False)
class OperatorExact(FeatureMap):
    """Coordinates in the span of the training points' kernel functions: kernel ridge regression with no approximation.

    With the Gram matrix K of the training points and K_pp^-1 = L^T L, for rows p that span
    all others up to rounding, the features of x are L K(X_train, x)_p, so least squares on
    them, by ``SteinRegressor``, is exact regression with the operator-valued kernel. A
    decomposable kernel takes the n x n Gram matrix of its scalar kernel; the others
    take the n p x n p one, and an axis of outputs in the features. Cost grows as
    the cube of that size and memory as its square, so there is a limit.

    Parameters
    ----------
    kernel : OperatorKernel, Kernel or None
        A scalar kernel k is k I; None is decomposable over a Gaussian.
    orbit : Orbit or None
        Only the trivial group; for others use ``OperatorRandomFourier``.
    max_size : int >= 1
        Largest number of rows of the Gram matrix; more raise ``InputError``. The default
        takes some gigabytes and minutes.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    X_fit_ : float64 array, shape (n, d)
    pivots_ : int array p, shape (rank,)
        Rows of the Gram matrix, of which there are n or n p.
    normalization_ : float64 array L, shape (rank, rank)
    structure_ : Structure
    orbit_, kernel_ : the fitted parts

    References
    ----------
    Brault, Heinonen and d'Alché-Buc, 2016, section 1.2. Micchelli and Pontil, 2005.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> from orbit.kernels import CurlFree
    >>> X = np.random.default_rng(0).standard_normal((60, 2))
    >>> orbit.build("approx", "ovk", kernel=CurlFree(lengthscale=0.3)).fit_transform(X).shape
    (60, 240)
    """

    kernel: OperatorKernel | Kernel | None = None
    orbit: Orbit | None = None
    max_size: PositiveInt = 10_000
    engine: Engine | None = None
    random_state: RandomState = None

    operator_valued = True

    def check(self) -> None:
        super().check()
        group = (self.orbit or Orbit()).resolved()[0]
        if group.name != "identity":
            raise InputError(f"approx=ovk does not average over group={group.name}: choose approx=orff")

    def _working_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(np.float64)

    def min_fit_points(self, n: int) -> int:
        return n

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        self.X_fit_ = X.reshape(len(X), -1).astype(np.float64)
        d = self.X_fit_.shape[1]
        operator = self.kernel_ if isinstance(self.kernel_, OperatorKernel) else None
        size = len(X) * _outputs(operator, d)
        if size > self.max_size:
            raise InputError(
                f"approx=ovk: the exact kernel matrix would have {size:,} rows, {8 * size**2 / 2**30:.1f} GiB; "
                f"take fewer points, raise approx.max_size={self.max_size}, or choose approx=orff"
            )
        # a decomposable kernel takes the Gram matrix of its scalar kernel
        self._gram = (operator.base_ if isinstance(operator, Decomposable) else self.kernel_).gram
        self.pivots_, self.normalization_ = pivoted_root(self._gram(self.X_fit_))
        self._n_features_out = _outputs(operator, d) * len(self.normalization_)
        stacked = None if _is_scalar(operator) else d
        prior = self._gram(np.zeros((1, d)))
        self.structure_ = Structure(operator, None, self._n_features_out, stacked, stacked, prior)

    def _average(self, X: np.ndarray) -> np.ndarray:
        # small pivots magnify rounding, so the product is taken in float64
        K = self._gram(X.reshape(len(X), -1).astype(np.float64), self.X_fit_)
        psi = K[:, self.pivots_] @ self.normalization_.T
        return psi.reshape(len(X), -1).astype(X.dtype)


def _is_scalar(kernel: object) -> bool:
    """Whether the Gram matrix is that of a scalar kernel."""
    return not isinstance(kernel, OperatorKernel) or isinstance(kernel, Decomposable)


def _outputs(kernel: object, d: int) -> int:
    """Rows of the Gram matrix for each point of ``d`` numbers."""
    return 1 if _is_scalar(kernel) else d
