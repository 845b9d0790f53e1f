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
from scipy.linalg import blas, lapack
from scipy.optimize import minimize_scalar
from torch import Tensor

from orbit.core.threads import threads_for
from orbit.solvers.least_squares import Dual, LeastSquares
from orbit.solvers.selection import best_of_path
from orbit.solvers.structure import Independent
from orbit.solvers.weighted_rows import WeightedRows

#: The range of rho, of kernel values of about one.
NOISE_BOUNDS = 1e-8, 10.0

#: rho from which searches start.
FIRST_NOISE = 0.1

# Steps of a search, and times that one is shortened.
_MOST_STEPS, _MOST_SHORTER = 100, 20

# The share of the gain that the slope promises which a step must have.
_SUFFICIENT = 1e-4

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
    inverse_hessian : of -log p by the parameters and log rho, as the search has estimated it, shape (m + 1, m + 1)
    """

    parameters: np.ndarray
    noise: float
    log_evidence: float
    found: np.ndarray
    inverse_hessian: np.ndarray


#: From parameters to a kernel matrix K, and from a matrix G to tr(G^T dK) by the parameters.
Covariance = Callable[[np.ndarray], tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]]


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
    A = K.T.copy(order="F")  # symmetric
    A.ravel("K")[:: n + 1] += noise
    lower, failed = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("K + rho I is indefinite")
    alpha = lapack.dpotrs(lower, Y, lower=1)[0]
    log_determinant = 2 * float(np.log(lower.diagonal()).sum())
    inverse = lapack.dpotri(lower, lower=1, overwrite_c=1)[0]  # in the lower triangle; zeros above
    diagonal = inverse.ravel("K")[:: n + 1]
    amplitude = float((Y * alpha).sum()) / (n * k)
    by_noise = 0.5 * noise * (float(np.square(alpha).sum()) / amplitude - k * float(diagonal.sum()))
    # twice the lower triangle in place of both
    gradient = blas.dsyrk(1 / amplitude, alpha, beta=-k, c=inverse, lower=1, overwrite_c=1)
    gradient.ravel("K")[:: n + 1] /= 2
    value = -0.5 * (k * log_determinant + n * k * (math.log(amplitude) + 1 + math.log(2 * math.pi)))
    return value, gradient.T, by_noise


def differentiated(gram: Callable[[Tensor], Tensor]) -> Covariance:
    """The covariance of :func:`maximise` from a differentiable function of tensors."""

    def covariance(parameters: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        given = torch.tensor(parameters, requires_grad=True)
        K = gram(given)
        # K.backward(gradient) would import SymPy, for seconds
        return K.detach().numpy(), lambda G: torch.autograd.grad((K * torch.from_numpy(G)).sum(), given)[0].numpy()

    return covariance


def maximise(
    covariance: Covariance,
    Y: np.ndarray,
    starts: Sequence[np.ndarray],
    bounds: tuple[float, float],
    noise: float = FIRST_NOISE,
    precision: float = 1e-6,
    inverse_hessian: np.ndarray | None = None,
) -> Maximum:
    """The maximum over the parameters of a kernel and rho, by BFGS with exact gradients.

    Parameters
    ----------
    covariance : from parameters, shape (m,), to the kernel matrix, shape (n, n), and from G to tr(G^T dK) by parameters
    Y : float64 array, shape (n, k), not zero
    starts : arrays of parameters, shape (m,), from each of which a search begins
    bounds : of all parameters
    noise : rho at the starts
    precision : a search stops where a step gains less than this of log p
    inverse_hessian : that of -log p to begin with, by the parameters and log rho; None is not known
    """
    low, high = np.array([*[bounds] * len(starts[0]), np.log(NOISE_BOUNDS)]).T

    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        K, gradient_of = covariance(theta[:-1])
        try:
            value, gradient, by_noise = log_evidence(K, math.exp(theta[-1]), Y)
        except np.linalg.LinAlgError:
            return _INDEFINITE, np.zeros_like(theta)
        return -value, -np.append(gradient_of(gradient), by_noise)

    with threads_for(float(len(Y)) ** 3):
        searches = [
            _search(negative, np.append(start, math.log(noise)), (low, high), inverse_hessian, precision)
            for start in starts
        ]
    found = np.array([-value for _, value, _ in searches])
    theta, _, hessian = searches[int(found.argmax())]
    return Maximum(theta[:-1], math.exp(theta[-1]), float(found.max()), found, hessian)


def _search(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    x: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    inverse: np.ndarray | None,
    gain: float,
) -> tuple[np.ndarray, float, np.ndarray]:
    """A minimum by BFGS from x, its value, and the inverse Hessian; it ends with a step that gains less than ``gain``.

    A step ends at the bounds, and is shortened until it gains enough (Nocedal and Wright 2006, algorithm 6.1 with 3.1):
    each takes little more than one evaluation, of which a line search to the curvature condition takes nearly two.
    """
    low, high = bounds
    x = np.clip(x, low, high)
    value, slope = function(x)
    is_known = inverse is not None
    H = np.eye(len(x)) / max(1.0, float(np.linalg.norm(slope))) if inverse is None else inverse
    for _ in range(_MOST_STEPS):
        free = np.where(slope > 0, x > low, x < high)
        step, share = -(free * (H @ (free * slope))), 1.0
        for _ in range(_MOST_SHORTER):
            moved = np.clip(x + share * step, low, high)
            expected = float(slope @ (moved - x))
            if expected >= 0 or (is_known and share == 1 and -expected / 2 < gain):
                return x, value, H
            after, slope_after = function(moved)
            if after <= value + _SUFFICIENT * expected:
                break
            # the minimum of the parabola through both values, with the slope at x
            share *= min(max(-expected / (2 * (after - value - expected)), 0.1), 0.5)
        else:
            return x, value, H
        step, change, gained = moved - x, slope_after - slope, value - after
        x, value, slope = moved, after, slope_after
        curvature = float(step @ change)
        if curvature > 0:
            if not is_known:
                H, is_known = np.eye(len(x)) * curvature / float(change @ change), True
            turned = np.eye(len(x)) - np.outer(step, change) / curvature
            H = turned @ H @ turned.T + np.outer(step, step) / curvature
        if gained < gain:
            break
    return x, value, H


def least_squares(structure: Independent, X: np.ndarray, Y: np.ndarray, path: np.ndarray) -> LeastSquares:
    """Least squares without intercept, factorised for a path of rho."""
    problem = WeightedRows.of(structure, X, Y, None).problem("none", precise=True)
    problem.factorise(path / len(X))
    return problem


class Evidence:
    """The log marginal likelihood as a function of rho (Rasmussen and Williams, eq. 2.30)."""

    def __init__(self, problem: LeastSquares, Y: np.ndarray, amplitude: float | None) -> None:
        self._problem, self._given = problem, amplitude
        self.n, self.k = Y.shape
        self._power = float(np.square(Y).sum())

    def __call__(self, noise: float) -> float:
        n, a, factorisation = self.n, self.amplitude(noise), self._problem.factorisation
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
