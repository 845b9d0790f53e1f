"""Output matrices of decomposable kernels: learned with the fit, or from a covariance of targets."""

import warnings

import numpy as np
from scipy.linalg import solve_continuous_lyapunov
from sklearn.exceptions import ConvergenceWarning

from orbit.core.linalg import eigh
from orbit.solvers.structure import Constant

# Relative change below which a learned matrix has converged: after tens of rounds, or thousands if lambda is small.
_TOLERANCE = 1e-6
_MAX_ROUNDS = 200


def learn_output(second: np.ndarray, cross: np.ndarray, regularization: float) -> Constant:
    """Learn the output matrix A of a decomposable kernel together with the fit by block coordinate descent.

    Minimises |Y - K C A|^2 / (2 n lambda) + tr(A C^T K C) / 2 + |A|_F^2 / 2 alternately over C
    and positive semi-definite A, with K = psi psi^T the kernel matrix: C by a Stein
    equation, A by a Lyapunov equation and a projection. Both depend on the data by
    second moments only.

    Parameters
    ----------
    second, cross : psi^T psi / n, shape (F, F), and psi^T Y / n, shape (F, p)
    regularization : lambda

    References
    ----------
    Dinuzzo, Ong, Gehler and Pillonetto, "Learning Output Kernels with Block Coordinate
    Descent", 2011, algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> A = learn_output(np.eye(2), np.array([[1.0, 1.0], [2.0, 2.0]]), 0.1)
    >>> (A.scales > 1e-3 * A.scales.max()).tolist()  # both outputs are one
    [False, True]
    """
    p = cross.shape[1]
    values, U = eigh(second)
    rotated, A = U.T @ cross, np.eye(p)
    for _ in range(_MAX_ROUNDS):
        scales, V = eigh(A)
        # Omega = psi^T C solves G Omega A + lambda Omega = psi^T Y
        omega = (rotated @ V) / (np.maximum(values, 0)[:, None] * scales + regularization) @ V.T
        S, Q = omega.T @ (values[:, None] * omega), omega.T @ omega
        right = S @ A + regularization / 2 * Q
        new = solve_continuous_lyapunov(S + regularization * np.eye(p), right + right.T)
        kept, V = eigh((new + new.T) / 2)
        new = (V * np.maximum(kept, 0)) @ V.T
        change, A = np.linalg.norm(new - A), new
        if change <= _TOLERANCE * np.linalg.norm(A):
            break
    else:
        warnings.warn(
            f"kernel.output=learned: the output matrix has not converged in {_MAX_ROUNDS} rounds; "
            "predictions depend on it little, but its entries are not final: choose a larger regularization",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Constant.of(A)
