"""Dense linear algebra shared by feature maps and learners, always in float64."""

from __future__ import annotations

import numpy as np
import torch

from orbit.errors import InputError


def eigh(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix, shape ``(n, n)``, in float64."""
    values, vectors = torch.linalg.eigh(torch.from_numpy(np.array(A, dtype=np.float64)))
    return values.numpy(), vectors.numpy()


def inverse_root(K: np.ndarray, tolerance: float) -> np.ndarray:
    """L with ``L^T L = K^+``: the normalisation of Nyström features (SPEC section 3).

    Parameters
    ----------
    K : array, shape (m, m), positive semi-definite
    tolerance : float
        Eigenvalues up to this share of the largest one count as zero.

    Returns
    -------
    float64 array, shape (rank, m)
        Rows in the order of falling eigenvalues.

    Raises
    ------
    InputError
        If K has no positive eigenvalue at all.
    """
    values, vectors = eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    keep = values > max(tolerance * values[0], 0.0)
    if not keep.any():
        raise InputError(
            "the kernel matrix of the landmarks is zero: all kernel values vanish; change kernel.lengthscale"
        )
    return (vectors[:, keep] / np.sqrt(values[keep])).T
