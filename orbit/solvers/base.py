"""What factorisations of (s_k A + lambda I) z_k = r_k for many lambda have in common."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from orbit.solvers.moments import EPS

# Above this size products of float32 rows are taken in float32.
LARGE = 3000
# A number is known if it is larger than this multiple of its rounding error. Below this multiple of float64 rounding
# only eigenvalues resolve lambda.
ABOVE_ROUNDING = 10
# Columns that are factorised or updated at once: about the fastest number from 128 to 512, for sizes of 1,000 to
# 4,000.
PANEL = 192


def is_large(size: float) -> bool:
    """Whether a system is so large that products of float32 rows are worth taking in float32."""
    return size > LARGE


def smallest_resolved(A: Any, scales: np.ndarray) -> float:
    """The smallest lambda that float64 resolves: below it, small eigenvalues of s A + lambda I are rounding errors."""
    return ABOVE_ROUNDING * EPS * float(A.trace() * scales.max())


class Factorisation(ABC):
    """Solutions of (s_k A + lambda I) z_k = r_k, for A symmetric and positive semi-definite, in a basis Q.

    Parameters
    ----------
    A : float64 array or matrix on a device, shape (m, m), which may be overwritten
    right : float64 array, shape (m, k)
    scales : array s >= 0, shape (k,)

    Attributes
    ----------
    right : Q^T r, shape (m, k)
    """

    right: np.ndarray
    scales: np.ndarray

    @abstractmethod
    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        """Q^T z, shape (m, k), and the degrees of freedom tr s_k A (s_k A + lambda I)^-1, shape (k,).

        Raises
        ------
        numpy.linalg.LinAlgError
            If rounding has made s_k A + lambda I indefinite.
        """

    @abstractmethod
    def expand(self, z: np.ndarray) -> np.ndarray:
        """Q z for columns in the basis Q, shape (m, k)."""

    @abstractmethod
    def to_basis(self, columns: Any) -> Any:
        """Q^T c for columns c, shape (m, k): where they are, as an array or on a device."""

    @abstractmethod
    def inverse_form(self, in_basis: Any, regularization: float) -> np.ndarray:
        """c^T (A + lambda I)^-1 c, shape (k,), for columns in the basis Q, Q^T c, shape (m, k).

        Raises
        ------
        numpy.linalg.LinAlgError
            If rounding has made A + lambda I indefinite.
        """

    @abstractmethod
    def half_form(self, in_basis: Any, regularization: float) -> Any:
        """H with H^T H = C^T (A + lambda I)^-1 C for columns C in the basis Q, Q^T C, shape (m, k)."""

    @abstractmethod
    def log_determinant(self, regularization: float) -> float:
        """log det (A + lambda I)."""

    def _by_scale(self) -> list[tuple[float, np.ndarray]]:
        """Each distinct scale with the indices of its columns."""
        return [(float(scale), self.scales == scale) for scale in np.unique(self.scales)]


def indefinite(shift: float) -> np.linalg.LinAlgError:
    return np.linalg.LinAlgError(
        f"the second moments plus {shift:g} are not positive definite in floating point: "
        "raise the smallest regularization"
    )
