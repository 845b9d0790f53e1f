"""What is special about operator-valued features: a linear map from parameters to coefficients of scalar features.

With Phi(x)^T theta = sum_j phi_j(x) B_j theta_j (ORFF section 4.1), a model is the
scalar features psi(x) times coefficients C whose rows are B_j theta_j. So P, P^T and
P^T P of the paper's Table 1 need the scalar features and these maps only, and nothing
of size n x D x p is ever formed:

    P theta = psi C(theta),    P^T Y = C*(psi^T Y),    P^T P theta = C*((psi^T psi) C(theta)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from orbit.core.errors import InputError
from orbit.core.linalg import eigh
from orbit.kernels.operator_valued import Decomposable, OperatorKernel


class Operator(Protocol):
    """The map from parameters theta, shape ``(F, q)``, to coefficients, shape ``(F, p)``, of F scalar features."""

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        """C(theta): rows ``B_j theta_j``."""

    def adjoint(self, V: np.ndarray) -> np.ndarray:
        """C*(V): rows ``B_j^T v_j``, shape ``(F, q)``."""

    def parameters(self, coefficients: np.ndarray) -> np.ndarray:
        """The parameters of least norm with these coefficients: rows ``B_j^+ c_j``, shape ``(F, q)``."""


@dataclass(frozen=True)
class Constant:
    """One B for all features: the decomposable kernels. B is V s^(1/2) of A = V s V^T.

    Attributes
    ----------
    scales : eigenvalues s of A, shape (p,)
    basis : eigenvectors V, shape (p, p)
    """

    scales: np.ndarray
    basis: np.ndarray

    @classmethod
    def of(cls, A: np.ndarray) -> Constant:
        values, vectors = eigh(A)
        return cls(np.maximum(values, 0.0), vectors)

    @property
    def factors(self) -> np.ndarray:
        """B, shape (1, p, p)."""
        return (self.basis * np.sqrt(self.scales))[None]

    @property
    def output_matrix(self) -> np.ndarray:
        """A."""
        return (self.basis * self.scales) @ self.basis.T

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        return (theta * np.sqrt(self.scales)) @ self.basis.T

    def adjoint(self, V: np.ndarray) -> np.ndarray:
        return (V @ self.basis) * np.sqrt(self.scales)

    def parameters(self, coefficients: np.ndarray) -> np.ndarray:
        kept = self.scales > np.finfo(float).eps * len(self.scales) * self.scales.max()
        return (coefficients @ self.basis) * np.where(kept, 1 / np.sqrt(np.where(kept, self.scales, 1.0)), 0.0)

    def n_parameters(self, n_features: int) -> int:
        """Size of the eigendecomposition that a closed form takes: outputs come apart in the rotated basis."""
        return n_features

    def n_rows(self, n: int) -> int:
        """Its size for ``n`` points, if it is taken of a Gram matrix instead."""
        return n


@dataclass(frozen=True)
class Blocks:
    """A B_j for each feature: curl-free and divergence-free kernels. ``factors``: shape (F, p, q)."""

    factors: np.ndarray

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

    def normal_matrix(self, G: np.ndarray) -> np.ndarray:
        """P^T P as a matrix, shape ``(F q, F q)``: blocks G_ij B_i^T B_j, so psi^T psi is all that is needed."""
        n, _, q = self.factors.shape
        if q == 1:
            return G * (self.factors[:, :, 0] @ self.factors[:, :, 0].T)
        rows = self.factors.swapaxes(1, 2).reshape(n * q, -1)
        return (rows @ rows.T).reshape(n, q, n, q).__imul__(G[:, None, :, None]).reshape(n * q, n * q)


@dataclass(frozen=True)
class Structure:
    """How outputs hang together for a set of features; settled by the learner, which sees the targets.

    Attributes
    ----------
    kernel : OperatorKernel or None
        None is independent outputs.
    frequencies : array, shape (D, d), or None where no operator depends on them
    n_features : columns of the features this belongs to
    stacked : int or None
        p, if the features have an output axis of their own: columns ``(p, F)``,
        so that the prediction of output a is row a times theta.
    n_outputs : int or None
        p where the kernel fixes it.
    """

    kernel: OperatorKernel | None
    frequencies: np.ndarray | None
    n_features: int
    stacked: int | None = None
    n_outputs: int | None = None

    def check_targets(self, p: int) -> None:
        """Raise ``InputError`` if the kernel is not for ``p`` outputs."""
        if self.n_outputs is not None and p != self.n_outputs:
            name = "approx=orff" if self.kernel is None else self.kernel.label()
            raise InputError(
                f"{name}: targets must have one number for each coordinate of a point, {self.n_outputs}, "
                f"found {p}: change dataset, or choose kernel=decomposable"
            )

    def rows(self, psi: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features and targets as the learner solves for them: one row an output where features are stacked."""
        if self.stacked is None:
            return psi, Y
        # the mean over rows is then the mean over points of the squared norm, which lambda is weighed against
        scale = np.sqrt(self.stacked).astype(psi.dtype)
        return scale * psi.reshape(len(psi) * self.stacked, -1), scale * Y.reshape(-1, 1)

    def operator(self, Y: np.ndarray) -> Constant | Blocks:
        """The operator for training targets ``Y``, shape ``(n, p)``, as :meth:`rows` gave them."""
        if self.stacked is not None or self.kernel is None:
            return Constant.of(np.eye(Y.shape[1]))
        if isinstance(self.kernel, Decomposable):
            return Constant.of(self.kernel.output_matrix(Y))
        assert self.frequencies is not None
        factors = self.kernel.factors(self.frequencies)
        copies = self.n_features // len(factors)  # a cosine and a sine for each frequency
        return Blocks(np.tile(factors, (copies, 1, 1)))

    def unstacked(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients C with predictions ``psi C`` for features as the map gives them."""
        return coefficients if self.stacked is None else np.kron(np.eye(self.stacked), coefficients)

    @property
    def learns_output(self) -> bool:
        return isinstance(self.kernel, Decomposable) and self.kernel.output == "learned"


class OperatorFeatures(np.ndarray):
    """An array of features that says how outputs hang together, so that it reaches the learner through any pipeline.

    Attributes
    ----------
    structure : Structure or None
    """

    structure: Structure | None

    @classmethod
    def of(cls, psi: np.ndarray, structure: Structure) -> OperatorFeatures:
        features = np.asarray(psi).view(cls)
        features.structure = structure
        return features

    def __array_finalize__(self, source: object) -> None:
        self.structure = getattr(source, "structure", None)

    def __reduce__(self):  # an array's own pickle drops attributes
        return OperatorFeatures.of, (np.asarray(self), self.structure)


def structure_of(psi: object) -> Structure | None:
    """The structure that features carry; None for plain arrays, whose outputs are independent."""
    return getattr(psi, "structure", None)


def with_structure_of(source: object, psi: np.ndarray) -> np.ndarray:
    """``psi`` with the structure that ``source`` carries, if any: validation by scikit-learn drops it."""
    structure = structure_of(source)
    return psi if structure is None else OperatorFeatures.of(psi, structure)
