"""The structure of operator-valued features: a linear map from parameters to coefficients of scalar features.

With Phi(x)^T theta = sum_j phi_j(x) B_j theta_j (Brault et al. 2016, section 4.1), a model is the
scalar features psi(x) times coefficients C whose rows are B_j theta_j. So P, P^T and
P^T P of the paper's Table 1 need the scalar features and these maps only, and nothing
of size n x D x p is ever formed:

    P theta = psi C(theta),    P^T Y = C*(psi^T Y),    P^T P theta = C*((psi^T psi) C(theta)).

Independent outputs are the special case of B_j = I.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from orbit.core.errors import InputError
from orbit.core.linalg import eigh, is_symmetric, rows_with_covariance
from orbit.kernels.operator_valued import Decomposable, OperatorKernel

Moments = Callable[[np.ndarray], np.ndarray]  # columns V, shape (F, c), to psi^T psi V


@dataclass(frozen=True)
class Constant:
    """The map C from parameters theta, shape ``(F, q)``, to coefficients, shape ``(F, p)``, of F scalar features.

    Here it is one B for all features, as of decomposable kernels: V s^(1/2) for A = V s V^T, which decouples the
    outputs. Solvers take parameters as the columns of systems (s_k A + lambda I) z_k = r_k: one column for each output
    fitted independently, or a single column of all parameters.

    Attributes
    ----------
    scales : eigenvalues s of A, shape (p,)
    basis : eigenvectors V, shape (p, p)
    factors : B_j, shape (F, p, q), or (1, p, q) where all are the same
    n_coupled : outputs that share a column
    """

    scales: np.ndarray
    basis: np.ndarray
    n_coupled = 1

    @classmethod
    def of(cls, A: np.ndarray) -> Constant:
        values, vectors = eigh(A)
        return cls(np.maximum(values, 0.0), vectors)

    @classmethod
    def identity(cls, p: int) -> Constant:
        """Independent outputs."""
        return cls(np.ones(p), np.eye(p))

    @property
    def factors(self) -> np.ndarray:
        return (self.basis * np.sqrt(self.scales))[None]

    @property
    def output_matrix(self) -> np.ndarray:
        """A."""
        return (self.basis * self.scales) @ self.basis.T

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        """C(theta): rows ``B_j theta_j``."""
        return (theta * np.sqrt(self.scales)) @ self.basis.T

    def adjoint(self, V: np.ndarray) -> np.ndarray:
        """C*(V): rows ``B_j^T v_j``, shape ``(F, q)``."""
        return (V @ self.basis) * np.sqrt(self.scales)

    def parameters(self, coefficients: np.ndarray) -> np.ndarray:
        """The parameters of least norm with these coefficients: rows ``B_j^+ c_j``, shape ``(F, q)``."""
        kept = self.scales > np.finfo(float).eps * len(self.scales) * self.scales.max()
        return (coefficients @ self.basis) * np.where(kept, 1 / np.sqrt(np.where(kept, self.scales, 1.0)), 0.0)

    def n_parameters(self, n_features: int) -> int:
        """Rows of the system in the parameters, for ``n_features`` features."""
        return n_features

    def n_rows(self, n: int) -> int:
        """Rows of the system in ``n`` points, whose matrix is a Gram matrix."""
        return n

    def normal_matrix(self, G: np.ndarray) -> np.ndarray:
        """A of the system in the parameters, for second moments G = psi^T psi."""
        return G

    def normal_product(self, moments: Moments, V: np.ndarray) -> np.ndarray:
        """A V without A, for columns V, shape (m, c)."""
        return moments(V)

    def columns(self, cross: np.ndarray) -> np.ndarray:
        """Right-hand sides of the system in the parameters, for psi^T Y, shape (F, p)."""
        return self.adjoint(cross)

    def from_columns(self, z: np.ndarray) -> np.ndarray:
        """Coefficients, shape (F, p), of a solution of the system in the parameters."""
        return self.coefficients(z)

    def powers(self, power: np.ndarray) -> np.ndarray:
        """|Y|^2 of the targets that each column fits, from Y^T Y, shape (p, p)."""
        return (self.basis * (power @ self.basis)).sum(0)

    def row_columns(self, Y: np.ndarray) -> np.ndarray:
        """Right-hand sides of the system in the points, for targets, shape (n, p)."""
        return Y @ self.basis

    def rows_to_outputs(self, z: np.ndarray) -> np.ndarray:
        """A solution of the system in the points by output, shape (n, p)."""
        return z @ self.basis.T


@dataclass(frozen=True)
class Blocks:
    """The map with a B_j for each feature, as of curl-free and divergence-free kernels: its methods are Constant's.

    All outputs share a column.

    Attributes
    ----------
    factors : B_j, shape (F, p, q)
    """

    factors: np.ndarray

    @property
    def scales(self) -> np.ndarray:
        return np.ones(1)

    @property
    def n_coupled(self) -> int:
        return self.factors.shape[1]

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        return np.einsum("jab,jb->ja", self.factors, theta)

    def adjoint(self, V: np.ndarray) -> np.ndarray:
        return np.einsum("jab,ja->jb", self.factors, V)

    def parameters(self, coefficients: np.ndarray) -> np.ndarray:
        return np.einsum("jba,ja->jb", np.linalg.pinv(self.factors), coefficients)

    def n_parameters(self, n_features: int) -> int:
        return n_features * self.factors.shape[2]

    def n_rows(self, n: int) -> int:
        return n * self.factors.shape[1]

    def dense(self, psi: np.ndarray) -> np.ndarray:
        """P as a matrix, shape ``(n p, F q)``: for few points only."""
        return np.einsum("nj,jab->najb", psi, self.factors).reshape(self.n_rows(len(psi)), -1)

    def part(self, columns: slice) -> Blocks:
        """The operator of some features."""
        return Blocks(self.factors[columns])

    def normal_matrix(self, G: np.ndarray) -> np.ndarray:
        """P^T P, shape ``(F q, F q)``: blocks G_ij B_i^T B_j, so psi^T psi is all that is needed."""
        n, _, q = self.factors.shape
        if q == 1:
            return G * (self.factors[:, :, 0] @ self.factors[:, :, 0].T)
        rows = self.factors.swapaxes(1, 2).reshape(n * q, -1)
        return (rows @ rows.T).reshape(n, q, n, q).__imul__(G[:, None, :, None]).reshape(n * q, n * q)

    def normal_product(self, moments: Moments, V: np.ndarray) -> np.ndarray:
        n, p, q = self.factors.shape
        coefficients = self.factors @ V.reshape(n, q, -1)  # (F, p, c)
        images = moments(coefficients.reshape(n, -1)).reshape(n, p, -1)
        return (self.factors.swapaxes(1, 2) @ images).reshape(n * q, -1)

    def columns(self, cross: np.ndarray) -> np.ndarray:
        return self.adjoint(cross).reshape(-1, 1)

    def from_columns(self, z: np.ndarray) -> np.ndarray:
        return self.coefficients(z.reshape(len(self.factors), -1))

    def powers(self, power: np.ndarray) -> np.ndarray:
        return np.array([np.trace(power)])

    def row_columns(self, Y: np.ndarray) -> np.ndarray:
        return Y.reshape(-1, 1)

    def rows_to_outputs(self, z: np.ndarray) -> np.ndarray:
        return z.reshape(-1, self.factors.shape[1])


#: The map C of a least-squares problem.
Operator = Constant | Blocks


class Independent:
    """Outputs that are fitted one by one to plain features; base class of the other structures.

    Attributes
    ----------
    rows_per_point : int
        Rows of the least-squares problem for each point.
    is_coupled : bool
        Whether outputs depend on one another, so that they cannot be fitted one by one.
    learns_output : bool
        Whether the output matrix is learned with the fit.
    has_intercept : bool
        Whether a model may have an intercept.
    """

    rows_per_point: int = 1
    is_coupled: bool = False
    learns_output: bool = False
    has_intercept: bool = True

    def rows(self, X: Any, Y: np.ndarray, kept: slice | np.ndarray = slice(None)) -> tuple[Any, np.ndarray]:
        """Features and targets, shapes (n, F) and (n, p), of the least-squares problem of the points ``kept``."""
        return X[kept], Y[kept]

    def operator(self, Y: np.ndarray, weights: np.ndarray | None = None) -> Operator:
        """The operator for training targets ``Y``, shape (n, p), from :meth:`rows`, with weights, shape (n,)."""
        return Constant.identity(Y.shape[1])

    def for_features(
        self, W: np.ndarray, b: np.ndarray, kept: slice | np.ndarray = slice(None)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercept for the features of the map, from those of the rows of the points ``kept``."""
        return W, b


@dataclass(frozen=True)
class Structure(Independent):
    """The coupling of the outputs of a set of features, from which a learner makes the operator for its targets.

    Attributes
    ----------
    kernel : OperatorKernel or None
        None is independent outputs.
    frequencies : array, shape (D, d), or None if the operator does not depend on them
    n_features : columns of the features
    stacked : int or None
        p, if the features have an output axis: columns ``(p, F)``,
        so that the prediction of output a is row a times theta.
    n_outputs : int or None
        p if the kernel fixes it, else None.
    prior : array, shape (p, p), or (1, 1) for independent outputs, or None
        The covariance K(x, x) of the outputs at any point, where the features only span the training points.
    """

    kernel: OperatorKernel | None
    frequencies: np.ndarray | None
    n_features: int
    stacked: int | None = None
    n_outputs: int | None = None
    prior: np.ndarray | None = None

    @property
    def is_equivariant(self) -> bool:
        """Whether the group acts on outputs as on points, so that no field is constant."""
        return self.stacked is not None and self.frequencies is not None

    def check_targets(self, p: int) -> None:
        """Raise ``InputError`` if the kernel does not allow ``p`` outputs."""
        if self.n_outputs is not None and p != self.n_outputs:
            name = "equivariant features" if self.kernel is None else self.kernel.label()
            raise InputError(
                f"{name}: targets must have one number for each coordinate of a point, {self.n_outputs}, "
                f"found {p}: choose other targets, or the kernel 'decomposable'"
            )

    def rows(self, X, Y, kept=slice(None)):
        """One row per output if features are stacked.

        Raises
        ------
        ValueError
            For features of another map, and for targets that the kernel does not allow.
        """
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"the features belong to a map with {self.n_features} columns, found {X.shape[1]}: "
                "pass the features unchanged from the map"
            )
        self.check_targets(Y.shape[1])
        X, Y = X[kept], Y[kept]
        if self.stacked is None:
            return X, Y
        # scaled so that the mean over rows is the mean over points of the squared norm, to which lambda is relative
        scale = np.sqrt(self.stacked).astype(X.dtype)
        return scale * X.reshape(len(X) * self.stacked, -1), scale * Y.reshape(-1, 1)

    def operator(self, Y: np.ndarray, weights: np.ndarray | None = None) -> Operator:
        if self.stacked is not None or self.kernel is None:
            return Constant.identity(Y.shape[1])
        if isinstance(self.kernel, Decomposable):
            if weights is not None:
                covariance = np.cov(Y, rowvar=False, aweights=weights, ddof=0).reshape(Y.shape[1], -1)
                Y = rows_with_covariance(covariance)
            return Constant.of(self.kernel.output_matrix(Y))
        assert self.frequencies is not None
        factors = self.kernel.factors(self.frequencies)
        copies = self.n_features // len(factors)  # a cosine and a sine for each frequency
        return Blocks(np.tile(factors, (copies, 1, 1)))

    def for_features(self, W, b, kept=slice(None)):
        if self.stacked is None:
            return W, b
        return np.kron(np.eye(self.stacked), W), np.zeros(self.stacked)

    @property
    def rows_per_point(self) -> int:  # type: ignore[override]
        return self.stacked or 1

    @property
    def is_coupled(self) -> bool:  # type: ignore[override]
        independent = isinstance(self.kernel, Decomposable) and self.kernel.output == "identity"
        return self.stacked is not None or (self.kernel is not None and not independent)

    @property
    def learns_output(self) -> bool:  # type: ignore[override]
        return isinstance(self.kernel, Decomposable) and self.kernel.output == "learned"

    @property
    def has_intercept(self) -> bool:  # type: ignore[override]
        return self.stacked is None  # a constant field is not equivariant


@dataclass(frozen=True)
class GramStructure(Independent):
    """The structure of features that are exact kernel values with the training points.

    Attributes
    ----------
    n : number of training points, and of columns with their kernel values
    has_prior : whether an additional column holds k(x, x)
    """

    n: int
    has_prior: bool

    def gram(self, K: Any) -> Any:
        """The kernel matrix of the training points.

        Raises
        ------
        ValueError
            For the values of other points, or of the same points in another order.
        """
        if K.shape != (self.n, self.n + self.has_prior):
            raise ValueError(
                f"kernel values: expected those of all {self.n} training points with one another, a square matrix, "
                f"found {len(K)} rows and {K.shape[1]} columns: fit to the features of the points that the map was "
                "fitted to"
            )
        K = K[:, : self.n]
        if not is_symmetric(K):
            raise ValueError(
                "kernel values: expected those of the training points with one another, found a matrix that is not "
                "symmetric: do not shuffle or resample the rows of kernel values, but the points before the map"
            )
        return K

    def rows(self, X, Y, kept=slice(None)):
        return self.gram(X)[kept][:, kept], Y[kept]

    def for_features(self, W, b, kept=slice(None)):
        padded = np.zeros((self.n + self.has_prior, W.shape[1]))
        padded[: self.n][kept] = W
        return padded, b


class StructuredFeatures(NDArrayOperatorsMixin):
    """Features together with their structure, which a pipeline passes on to the learner.

    NumPy's functions and operators use the array of features, and return arrays;
    indexing by rows keeps the structure.

    Attributes
    ----------
    values : array or tensor, shape (n, F)
    structure : Structure or GramStructure
    """

    def __init__(self, values: Any, structure: Structure | GramStructure) -> None:
        self.values, self.structure = values, structure

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows) -> StructuredFeatures:
        return StructuredFeatures(self.values[rows], self.structure)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if any(out is self for out in kwargs.get("out", ())):
            raise TypeError("features are not changed in place: copy them with np.array(features)")
        return getattr(ufunc, method)(*(np.asarray(x) if x is self else x for x in inputs), **kwargs)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    @property
    def T(self) -> np.ndarray:  # noqa: N802  as NumPy has it
        return self.values.T

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        return self.values.nbytes


def structure_of(features) -> Structure | None:
    """The structure of the outputs of operator-valued features; None for others."""
    structure = unpacked(features)[0]
    return structure if isinstance(structure, Structure) else None


def unpacked(features) -> tuple[Structure | GramStructure | None, Any]:
    """The structure and the values of features; None for an array or tensor, whose outputs are independent."""
    if isinstance(features, StructuredFeatures):
        return features.structure, features.values
    return None, features
