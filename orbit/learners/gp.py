"""Gaussian process regression on features: exact posterior, marginal likelihood, noise and amplitude from the data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from orbit.core.errors import InputError
from orbit.core.linalg import is_constant, mean_and_deviation
from orbit.core.params import PositiveFloat
from orbit.learners.base import Learner, linear_predictions
from orbit.learners.targets import Numbers
from orbit.registry import register
from orbit.solvers.evidence import Evidence, least_squares
from orbit.solvers.least_squares import Dual, LeastSquares
from orbit.solvers.output_rows import OutputRows
from orbit.solvers.selection import best_of_path
from orbit.solvers.structure import GramStructure, Independent, Structure


@register("regressor", "gp")
@dataclass(eq=False, repr=False)
class GaussianProcess(MultiOutputMixin, RegressorMixin, Learner):
    """A Gaussian process with covariance a <psi(x), psi(z)>, and independent noise of variance a rho.

    On features of ``Exact(residual=True)`` (which a run sets for this learner) the
    covariance is a k_{q,G} and the posterior is exact; on features of an approximation
    it is the posterior of the approximate kernel, which underestimates variances far
    from the data. With K = <psi(X), psi(X)>:

        mean(x)     = k(x, X) (K + rho I)^-1 y
        variance(x) = a (k(x, x) - k(x, X) (K + rho I)^-1 k(X, x))

    (Rasmussen and Williams 2006, eqs. 2.25, 2.26 and 2.30). Outputs that an operator-valued
    kernel couples, such as those of a field without divergence, are one process on pairs of a
    point and an output, with a noise in units of the mean prior variance, and K(x, x) a matrix
    (Alvarez, Rosasco and Lawrence 2012, section 3). One factorisation, of the second
    moments or of the Gram matrix, whichever is smaller, serves every rho.

    Parameters
    ----------
    noise : float > 0, list of them, or None
        rho, the noise variance in units of the amplitude. A list is a path
        to choose from by marginal likelihood; None maximises it.
    amplitude : float > 0 or None
        a, in units of the targets' variance where they are scaled. None maximises
        the marginal likelihood, which has the closed form y^T (K + rho I)^-1 y / n.
    normalize : bool
        Whether targets are scaled to mean 0 and standard deviation 1 first.

    Attributes
    ----------
    coef_ : array, shape (d,) or (k, d)
    intercept_ : float or array, shape (k,)
    noise_, amplitude_ : float
        The values of rho and a in use.
    log_marginal_likelihood_ : float
        Of the scaled targets, summed over outputs.
    path_, path_scores_ : arrays
        Values of rho tried and their log marginal likelihoods.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.approx import Exact
    >>> from orbit.learners import GaussianProcess
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> exact = Exact(residual=True).fit(X)
    >>> gp = GaussianProcess(noise=1e-6).fit(exact.transform(X), np.sin(X[:, 0]))
    >>> mean, std = gp.predict(exact.transform([[1.0], [9.0]]), return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 1e-3), bool(std[0] < 1e-2 < std[1])
    (True, True)
    """

    noise: PositiveFloat | list[PositiveFloat] | None = None
    amplitude: PositiveFloat | None = None
    normalize: bool = True

    path_parameter = "noise"
    # suits kernel values of about one, and targets scaled to variance one
    default_path = tuple(10.0 ** np.arange(-8, 1.1, 0.5))
    needs_norms = True
    operator_valued = True
    takes_gram = True
    auto_lengthscale = "evidence"

    def fit(self, X, y):
        """Fit to ``X``, shape (n, d), and ``y``, shape (n,) or (n, k): one noise and one amplitude for all outputs."""
        self.check()
        structure, X = self._accepted(X)
        X, y = self._validated(X, y, reset=True)
        self._targets = Numbers(type(self).__name__, y.ndim == 1)
        Y, self._mean, self._scale = self._scaled(self._targets.encode(y), structure)
        structure, rows, X_rows, Y_rows = _rows(structure, X, Y)
        problem = least_squares(structure, X_rows, Y_rows, self._path())
        evidence = Evidence(problem, Y_rows, self.amplitude)
        self._choose(evidence)
        self.amplitude_ = evidence.amplitude(self.noise_)
        self.log_marginal_likelihood_ = evidence(self.noise_)
        W = rows.coefficients(_coefficients(structure, problem, self.noise_)) * self._scale
        self._variance = _Variance(structure, rows, problem, X_rows, self.noise_)
        self.coef_, self.intercept_ = self._targets.linear_model(W.astype(X.dtype), self._mean)
        return self

    def predict(self, X, return_std: bool = False):
        """The posterior mean of the function, and with ``return_std`` its standard deviation.

        Parameters
        ----------
        X : array, shape (n, d)
        return_std : bool

        Returns
        -------
        array, shape (n,) or (n, k) like the targets; with ``return_std`` a pair of such
        arrays. The standard deviation does not include the noise of an observation, :meth:`noise_std`, as that of
        scikit-learn's ``GaussianProcessRegressor`` with ``alpha``; with a ``WhiteKernel`` it is that of an observation.

        Raises
        ------
        InputError
            With ``return_std``, for kernel values without the prior variance, of ``Exact`` without ``residual=True``.
        """
        X = self._points(X)
        mean = linear_predictions(X, self.coef_.T, self.intercept_)
        if not return_std:
            return mean
        variances = np.maximum(np.diagonal(self._variance(X), axis1=1, axis2=2), 0.0)
        std = np.sqrt(self.amplitude_ * variances) * self._scale
        return mean, self._targets.decode(std)

    def output_covariance(self, X) -> np.ndarray:
        """The posterior covariance of the outputs at each point, shape (n, k, k), without the noise.

        Parameters
        ----------
        X : features of operator-valued kernels, such as fields, shape (n, d); of others outputs are independent

        Raises
        ------
        InputError
            As :meth:`predict` with ``return_std``.
        """
        covariances = self.amplitude_ * self._variance(self._points(X))
        if covariances.shape[1] < len(self._scale):
            covariances = covariances * np.eye(len(self._scale))
        return covariances * self._scale[:, None] * self._scale

    def noise_std(self) -> float | np.ndarray:
        """``sqrt(amplitude_ * noise_)`` in units of the targets: a number, or shape (k,)."""
        check_is_fitted(self)
        std = np.sqrt(self.amplitude_ * self.noise_) * self._scale
        return float(std[0]) if self._targets.flat else std

    def path_predictions(self, X, y, path: np.ndarray, X_new) -> Iterator[np.ndarray]:
        """Predictions for ``X_new`` after a fit with each rho of ``path``, from one factorisation."""
        y, (structure, X) = np.asarray(y), self._accepted(X)
        Y, mean, scale = self._scaled(y, structure)
        structure, rows, X_rows, Y_rows = _rows(structure, X, Y)
        problem, X_new = least_squares(structure, X_rows, Y_rows, np.sort(path)), np.asarray(X_new)
        for noise in path:
            scores = X_new @ (rows.coefficients(_coefficients(structure, problem, float(noise))) * scale) + mean
            yield scores.reshape(len(scores), *y.shape[1:])

    def fit_bytes(self, n: int, d: int) -> int:
        return 3 * 8 * min(n, d) ** 2  # second moments or a Gram matrix, and what its factorisation takes

    def operations(self, n: int, d: int) -> float:
        return float(n) * d * min(n, d)  # second moments or a Gram matrix, and its factorisation

    def metrics(self) -> dict[str, float]:
        return super().metrics() | {"learner/log_marginal_likelihood": self.log_marginal_likelihood_}

    def _criterion(self) -> str:
        return "marginal_likelihood"

    def _scaled(self, y: np.ndarray, structure: Independent) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Targets, shape (n, k), and the mean and scale of each; coupled outputs, such as a field, have one scale."""
        Y = y.reshape(len(y), -1).astype(np.float64)
        if not self.normalize:
            return Y, np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        mean, scale = mean_and_deviation(Y)
        if isinstance(structure, Structure) and structure.is_equivariant:
            mean = np.zeros_like(mean)
        if structure.is_coupled:
            scale = np.full_like(scale, np.sqrt(np.square(Y - mean).mean()))
        scale[is_constant(scale, mean, Y.dtype)] = 1.0
        return (Y - mean) / scale, mean, scale

    def _choose(self, evidence: Evidence) -> None:
        self.path_ = self._path()
        self.noise_, self.path_scores_ = best_of_path(self.path_, evidence)
        if self.noise is None:
            self.noise_ = evidence.maximised_near(self.noise_, self.path_)


def _rows(structure: Independent, X: np.ndarray, Y: np.ndarray) -> tuple[Any, OutputRows, np.ndarray, np.ndarray]:
    """The structure of the process of rows, how they follow from features, and the rows and their targets."""
    if isinstance(structure, Structure) and structure.learns_output:
        raise InputError("kernel.output=learned is for learner=stein: choose kernel.output=covariance or another")
    rows = OutputRows.of(structure, X, Y).scaled(X)
    if isinstance(structure, GramStructure):
        return structure, rows, X, Y
    return Independent(), rows, rows(X), rows.targets(Y)


def _coefficients(structure: Independent, problem: LeastSquares, noise: float) -> np.ndarray:
    """Coefficients of the features; zero for the column of the prior variance."""
    return structure.for_features(*problem.solve(noise / problem.n))[0]


class _Variance:
    """Computes K(x, x) - K(x, X) (K + rho I)^-1 K(X, x), shape (n, p, p), from the rows of points."""

    def __init__(self, structure: Independent, rows: OutputRows, problem: LeastSquares, X: np.ndarray, noise: float):
        self._gram = structure if isinstance(structure, GramStructure) else None
        self._factorisation, self._regularization = problem.factorisation, noise / problem.n
        self._n, self._rows, self._training = problem.n, rows, None
        if isinstance(problem, Dual) and self._gram is None:
            self._training = X

    def __call__(self, X: np.ndarray) -> np.ndarray:
        if self._gram is not None:
            if not self._gram.has_prior:
                raise InputError(
                    "return_std=True: expected kernel values with the prior variance k(x, x), found Exact without it: "
                    "set residual=True"
                )
            K, prior = X.astype(np.float64)[:, : self._gram.n], X[:, -1].astype(np.float64)
            return prior[:, None, None] - self._explained(K.T) / self._n
        rows = self._rows(X)
        own = self._products(rows)
        prior = own if self._rows.prior is None else self._rows.prior
        if self._training is not None:
            return prior - self._explained(self._training @ rows.T) / self._n
        return prior - own + self._regularization * self._explained(rows.T)

    def _explained(self, columns: np.ndarray) -> np.ndarray:
        """c^T (A + lambda I)^-1 c' of the columns of each point."""
        in_basis = self._factorisation.to_basis(columns)
        if self._rows.p == 1:
            return self._factorisation.inverse_form(in_basis, self._regularization)[:, None, None]
        return self._products(self._factorisation.half_form(in_basis, self._regularization).T)

    def _products(self, rows: np.ndarray) -> np.ndarray:
        """Inner products of the rows of each point, shape (n, p, p)."""
        of_points = rows.reshape(-1, self._rows.p, rows.shape[1])
        return of_points @ of_points.swapaxes(1, 2)
