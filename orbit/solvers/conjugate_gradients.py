"""(s_k A + lambda I) z_k = r_k by conjugate gradients, from products with A alone."""

import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from orbit.core.distributed import broadcast
from orbit.core.linalg import eigh
from orbit.core.ranks import rank

# Rows that are multiplied at once.
_ROWS = 4096

# (columns (m, c), their indices among the right-hand sides (c,)) -> (m, c)
Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Preconditioner(Protocol):
    """An approximate inverse."""

    def apply(self, R: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Residuals R, shape (l, m, k), times it, for shifts of shape (l, 1, 1)."""


def conjugate_gradients(
    product: Product,
    right: np.ndarray,
    shifts: np.ndarray,
    preconditioner: Preconditioner,
    tolerance: float,
    max_iter: int,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Solve for every shift and every right-hand side, each with its own steps, in shared products.

    Parameters
    ----------
    product : the columns ``s_k A z_k``
    right : array, shape (m, k)
    shifts : array of lambda, shape (l,)
    preconditioner : Preconditioner
    tolerance : largest norm of a residual, as a share of that of its right-hand side
    max_iter : largest number of products
    start : array, shape (l, m, k), or None for zero

    Returns
    -------
    solutions, shape (l, m, k); whether each shift converged, shape (l,); and the number of products
    """
    right = np.broadcast_to(right, (len(shifts), *right.shape))
    lifted = shifts[:, None, None]
    Z = np.zeros(right.shape) if start is None else start.copy()
    R = right.copy() if start is None else right - _images(product, Z, lifted)
    D = preconditioner.apply(R, lifted)
    P, energy = D.copy(), (R * D).sum(1, keepdims=True)
    goal = tolerance * np.linalg.norm(right, axis=1, keepdims=True)
    for done in range(max_iter + 1):
        # broadcast, so that all processes of a job stop at the same product
        active = broadcast(np.linalg.norm(R, axis=1, keepdims=True)) > goal
        if done == max_iter or not active.any():
            break
        AP = _images(product, P, lifted, active)
        step = np.where(active, energy / np.where(active, (P * AP).sum(1, keepdims=True), 1), 0)
        Z += step * P
        R -= step * AP
        D = preconditioner.apply(R, lifted)
        new = (R * D).sum(1, keepdims=True)
        P = np.where(active, D + new / np.where(active, energy, 1) * P, P)
        energy = np.where(active, new, energy)
    return Z, ~active.any((1, 2)), done


def solve_path(
    product: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    path: np.ndarray,
    preconditioner: Preconditioner,
    tolerance: float,
    max_iter: int,
    together: int,
    steps: str,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Values of a path, ``together`` at a time, shape (l,), and their solutions, shape (l, m, k).

    Warns of values whose solutions have not converged after ``max_iter`` steps, named as in "passes over the stream".
    Arguments as of :func:`conjugate_gradients`, for columns that have the same product.
    """
    unconverged = list[float]()
    for start in range(0, len(path), together):
        shifts = path[start : start + together]
        solved, converged, _ = conjugate_gradients(
            lambda V, _: product(V), right, shifts, preconditioner, tolerance, max_iter
        )
        unconverged += shifts[~converged].tolist()
        yield shifts, solved
    if rank() == 0:
        warn_unconverged(unconverged, f"{max_iter} {steps}", "values, or give the engine more memory")


def warn_unconverged(values: Collection[float], after: str, advice: str) -> None:
    """Issue a ``ConvergenceWarning`` for the values of lambda at which iterations ended too early, if there are any."""
    if values:
        warnings.warn(
            f"conjugate gradients stopped after {after} before they converged for "
            f"learner.regularization={', '.join(f'{value:.3g}' for value in values)}: choose larger {advice}",
            ConvergenceWarning,
            stacklevel=2,
        )


def _images(product: Product, Z: np.ndarray, lifted: np.ndarray, active: np.ndarray | None = None) -> np.ndarray:
    """(s_k A + lambda I) z_k for the active columns, lambda z_k for the others."""
    which, columns = np.nonzero(np.ones(Z.shape[::2], dtype=bool) if active is None else active[:, 0])
    images = lifted * Z
    images[which, :, columns] += product(Z[which, :, columns].T, columns).T
    return images


class NystromPreconditioner:
    """A randomised Nyström approximation of A, from products with ``rank`` random columns.

    It inverts the leading eigendirections, of which features of a smooth kernel have few;
    one sketch serves every lambda and every scale.

    Parameters
    ----------
    product : columns V, shape (m, c), to A V
    size : m
    rank : int
    rng : Generator
    scales : array s, shape (k,)
    precision : relative rounding error of the products

    References
    ----------
    Frangella, Tropp and Udell, "Randomized Nyström Preconditioning", 2023, algorithms 2.1 and 5.3.
    """

    def __init__(
        self,
        product: Callable[[np.ndarray], np.ndarray],
        size: int,
        rank: int,
        rng: np.random.Generator,
        scales: np.ndarray,
        precision: float = np.finfo(np.float64).eps,
    ) -> None:
        self.scales = scales
        test, _ = np.linalg.qr(rng.standard_normal((size, min(rank, size))))
        image = product(test)
        nudge = precision * max(np.linalg.norm(image), np.finfo(float).tiny)  # keeps the core positive definite
        image = image + nudge * test
        core = test.T @ image
        values, vectors = eigh((core + core.T) / 2)
        root = image @ (vectors / np.sqrt(np.maximum(values, nudge)))
        self.vectors, singular, _ = np.linalg.svd(root, full_matrices=False)
        self.values = np.maximum(np.square(singular) - nudge, 0.0)

    def apply(self, R: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """The approximate inverse of ``s_k A + lambda I`` times residuals, shape (l, m, k), up to a factor."""
        values = self.values[:, None] * self.scales  # (rank, k)
        gains = (values[-1] + shifts) / (values + shifts) - 1
        return R + self.vectors @ (gains * (self.vectors.T @ R))


class CholeskyPreconditioner:
    """The inverse of F F^T + lambda I for every lambda, by the eigenvectors of F^T F (Woodbury).

    Parameters
    ----------
    F : array, shape (m, rank), overwritten

    References
    ----------
    Díaz, Epperly, Frangella, Tropp and Webber, "Robust, randomized preconditioning for kernel ridge regression", 2023,
    section 2.1.
    """

    def __init__(self, F: np.ndarray) -> None:
        values, vectors = eigh(F.T @ F)
        for start in range(0, len(F), _ROWS):
            F[start : start + _ROWS] = F[start : start + _ROWS] @ vectors
        self._root, self._values = F, np.maximum(values, 0.0)[:, None]

    def apply(self, R: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """lambda times the inverse, times residuals R, shape (l, m, k), for lambda of shape (l, 1, 1)."""
        return R - self._root @ ((self._root.T @ R) / (self._values + shifts))
