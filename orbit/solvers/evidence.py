"""The log marginal likelihood of a Gaussian process, and its maximum over the parameters of a kernel.

The covariance of the n targets of one output is a (K + rho I). The amplitude a has a closed form, so that with
A = K + rho I, alpha = A^-1 Y and k outputs (Rasmussen and Williams 2006, eqs. 2.30 and 5.9)

    a = tr(Y^T alpha) / (n k),    log p = -1/2 (k log det A + n k (log a + 1 + log 2 pi)),
    d log p = 1/2 tr((alpha alpha^T / a - k A^-1) dA).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import lapack
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor

from orbit.core.threads import threads_for
from orbit.solvers.factorisations import Cholesky, Eigen
from orbit.solvers.least_squares import Dual, LeastSquares
from orbit.solvers.selection import best_of_path
from orbit.solvers.structure import Independent
from orbit.solvers.weighted_rows import WeightedRows

#: The range of rho, of kernel values of about one.
NOISE_BOUNDS = 1e-8, 10.0

#: rho from which searches start.
FIRST_NOISE = 0.1

# Steps of a search.
_MOST_STEPS = 100

# In place of -log p where rounding has made A indefinite: a line search goes back.
_INDEFINITE = 1e25


@dataclass(frozen=True)
class Maximum:
    """The largest log marginal likelihood of searches from several starts.

    Attributes
    ----------
    parameters : array, shape (m,)
    noise : rho
    log_evidence : float
    found : what each start has led to, shape (starts,)
    """

    parameters: np.ndarray
    noise: float
    log_evidence: float
    found: np.ndarray


def log_evidence(K: np.ndarray, noise: float, Y: np.ndarray) -> tuple[float, np.ndarray, float]:
    """log p, its gradient G with d log p = tr(G^T dK) for symmetric dK, and its derivative by log rho.

    Parameters
    ----------
    K : float64 array, shape (n, n), symmetric
    noise : rho > 0
    Y : float64 array, shape (n, k), not zero

    Raises
    ------
    numpy.linalg.LinAlgError
        If rounding has made K + rho I indefinite.

    Examples
    --------
    >>> value, gradient, by_noise = log_evidence(np.eye(2), 1.0, np.ones((2, 1)))
    >>> round(value, 4), round(by_noise, 4)  # y ~ N(0, 2 a I) with a = 1/2
    (-2.8379, 0.0)
    """
    n, k = Y.shape
    A = np.array(K, order="F")
    A[np.diag_indices(n)] += noise
    with threads_for(float(n) ** 3):
        lower, failed = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("K + rho I is indefinite")
        alpha = lapack.dpotrs(lower, Y, lower=1)[0]
        log_determinant = 2 * float(np.log(lower.diagonal()).sum())
        inverse = lapack.dpotri(lower, lower=1, overwrite_c=1)[0]  # in the lower triangle; zeros above
    amplitude = float((Y * alpha).sum()) / (n * k)
    diagonal = inverse.diagonal().copy()
    by_noise = 0.5 * noise * (float(np.square(alpha).sum()) / amplitude - k * float(diagonal.sum()))
    gradient = (alpha * (0.5 / amplitude)) @ alpha.T
    inverse[np.diag_indices(n)] = diagonal / 2
    gradient -= k * inverse  # twice its lower triangle in place of both
    value = -0.5 * (k * log_determinant + n * k * (math.log(amplitude) + 1 + math.log(2 * math.pi)))
    return value, gradient, by_noise


def maximise(
    gram: Callable[[Tensor], Tensor],
    Y: np.ndarray,
    starts: Sequence[np.ndarray],
    bounds: Sequence[tuple[float, float]],
    noise: float = FIRST_NOISE,
    precision: float = 1e-8,
) -> Maximum:
    """The maximum over the parameters of a kernel and rho, by L-BFGS with exact gradients, a factorisation a step.

    Parameters
    ----------
    gram : from parameters, a float64 tensor of shape (m,), to the kernel matrix, shape (n, n), differentiable
    Y : float64 array, shape (n, k), not zero
    starts : arrays of parameters, shape (m,), from each of which a search begins
    bounds : of the parameters
    noise : rho at the starts
    precision : a search stops where a step gains less than this share of log p, or less than this
    """

    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        parameters, rho = torch.tensor(theta[:-1], requires_grad=True), math.exp(theta[-1])
        K = gram(parameters)
        try:
            value, gradient, by_noise = log_evidence(K.detach().numpy(), rho, Y)
        except np.linalg.LinAlgError:
            return _INDEFINITE, np.zeros_like(theta)
        (K * torch.from_numpy(gradient)).sum().backward()  # K.backward(gradient) would import SymPy, for seconds
        assert parameters.grad is not None
        return -value, -np.append(parameters.grad.numpy(), by_noise)

    limits = [*bounds, tuple(np.log(NOISE_BOUNDS))]
    options = {"maxiter": _MOST_STEPS, "ftol": precision}
    searches = [
        minimize(
            negative, np.append(start, math.log(noise)), jac=True, method="L-BFGS-B", bounds=limits, options=options
        )
        for start in starts
    ]
    found = np.array([-search.fun for search in searches])
    best = searches[int(found.argmax())].x
    return Maximum(best[:-1], math.exp(best[-1]), float(found.max()), found)


def least_squares(structure: Independent, X: np.ndarray, Y: np.ndarray, path: np.ndarray) -> LeastSquares:
    """Least squares without intercept, factorised for a path of rho: Cholesky for one, eigenvalues for several."""
    problem = WeightedRows.of(structure, X, Y, None).problem("none", precise=True)
    problem.factorise(path / len(X), eigen=len(path) > 1)
    return problem


class Evidence:
    """The log marginal likelihood as a function of rho (Rasmussen and Williams, eq. 2.30)."""

    def __init__(self, problem: LeastSquares, Y: np.ndarray, amplitude: float | None) -> None:
        self._problem, self._given = problem, amplitude
        self.n, self.k = Y.shape
        self._power = float(np.square(Y).sum())

    def __call__(self, noise: float) -> float:
        n, a, factorisation = self.n, self.amplitude(noise), self._problem.factorisation
        assert isinstance(factorisation, Eigen | Cholesky)
        size = len(factorisation.right)
        determinant = factorisation.log_determinant(noise / n) + size * np.log(n)  # of the second moments or K, + rho I
        spread = determinant + (n - size) * np.log(noise) + n * np.log(a)
        return float(-0.5 * (self._quadratic(noise) / a + self.k * (spread + n * np.log(2 * np.pi))))

    def amplitude(self, noise: float) -> float:
        if self._given is not None:
            return self._given
        return self._quadratic(noise) / (self.n * self.k) or 1.0  # 1 if all targets are zero

    def maximised_near(self, noise: float, path: np.ndarray) -> float:
        """The maximiser between the neighbours of ``noise``, the best value of the path, or that value if better."""
        i = int(np.searchsorted(path, noise))
        bounds = np.log(path[max(i - 1, 0)]), np.log(path[min(i + 1, len(path) - 1)])
        found = float(np.exp(minimize_scalar(lambda log: -self(np.exp(log)), bounds=bounds, method="bounded").x))
        return found if self(found) > self(noise) else noise

    def _quadratic(self, noise: float) -> float:
        """y^T (K + rho I)^-1 y, summed over outputs."""
        factorisation, regularization = self._problem.factorisation, noise / self.n
        z, right = factorisation.solve(regularization)[0], factorisation.right
        if isinstance(self._problem, Dual):
            return float((right * z).sum()) / self.n
        residual = self._power - self.n * float((z * (right + regularization * z)).sum())
        return float(np.square(z).sum()) + max(residual, 0.0) / noise


def evidence_of_features(psi: np.ndarray, Y: np.ndarray) -> float:
    """The largest log marginal likelihood over a and rho of the covariance a (psi psi^T + rho I).

    Parameters
    ----------
    psi, Y : arrays, shapes (n, F) and (n, k); Y not zero
    """
    path = np.geomspace(*NOISE_BOUNDS, 19)
    problem = least_squares(Independent(), psi, Y, path)
    evidence = Evidence(problem, Y, None)
    best, _ = best_of_path(path, evidence)
    return evidence(evidence.maximised_near(best, path))
