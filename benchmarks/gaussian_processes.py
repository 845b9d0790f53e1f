"""Gaussian processes beside those of scikit-learn, on the same points: error, negative log density and time.

    python -m benchmarks.gaussian_processes [--seeds 5] [--isotropic]

Prints Markdown, a row for each table and each field: the means over the seeds. Both are fitted in turns.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_wine, make_friedman1, make_friedman2
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from orbit import DivergenceFree, Exact, Gaussian, GaussianProcess
from orbit.approx import OperatorExact

Points = tuple[np.ndarray, np.ndarray]


def diabetes(seed: int) -> Points:
    return load_diabetes(return_X_y=True, scaled=False)


def proline(seed: int) -> Points:
    """The last column of the wines from the others."""
    X = load_wine().data
    return X[:, :-1], X[:, -1]


def friedman1(seed: int) -> Points:
    return make_friedman1(1600, 10, noise=1.0, random_state=seed)


def friedman2(seed: int) -> Points:
    return make_friedman2(1300, noise=50.0, random_state=seed)


def heteroscedastic(seed: int) -> Points:
    """Noise of standard deviation 0.05 to 0.35, which grows with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (1400, 2))
    f = np.sin(3 * X[:, 0]) * np.exp(-(X[:, 1] ** 2) / 2)
    return X, f + (0.05 + 0.15 * np.abs(X[:, 0])) * rng.standard_normal(len(X))


#: Training points of each table; the others are for testing.
TABLES: dict[Callable[[int], Points], int] = {
    diabetes: 332,
    proline: 133,
    friedman1: 600,
    friedman2: 300,
    heteroscedastic: 400,
}


def taylor_green(X: np.ndarray) -> np.ndarray:
    x, z = X.T
    return np.column_stack([np.cos(x) * np.sin(z), -np.sin(x) * np.cos(z)])


def abc(X: np.ndarray) -> np.ndarray:
    """The flow of Arnold, Beltrami and Childress."""
    return np.sin(np.roll(X, 1, axis=1)) + np.cos(np.roll(X, -1, axis=1))


#: Fields without divergence, their coordinates and numbers of training points; noise has a standard deviation of 0.1.
FIELDS: list[tuple[Callable[[np.ndarray], np.ndarray], int, int]] = [
    (taylor_green, 2, 100),
    (taylor_green, 2, 300),
    (abc, 3, 200),
]


def field(function: Callable[[np.ndarray], np.ndarray], d: int, n: int, seed: int) -> tuple[Points, Points]:
    """Training points in a box of side 4 with noisy values, and 1,000 test points with values without noise."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.uniform(-2, 2, (n, d)), rng.uniform(-2, 2, (1000, d))
    return (X, function(X) + 0.1 * rng.standard_normal((n, d))), (X_test, function(X_test))


class OfOrbit:
    """A Gaussian process with lengthscales by marginal likelihood: one for each column of a table."""

    def __init__(self, is_field: bool = False) -> None:
        self.features: Any = Exact(Gaussian("evidence"), residual=True, precomputed=True, random_state=0)
        if is_field:
            self.features = OperatorExact(DivergenceFree(lengthscale="evidence"), random_state=0)

    def fit(self, X: np.ndarray, y: np.ndarray) -> OfOrbit:
        self.learner = GaussianProcess().fit(self.features.fit_transform(X, y), y)
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means, and standard deviations of observations of a table, or of the values of a field."""
        mean, std = self.learner.predict(self.features.transform(X), return_std=True)
        return mean, std if mean.ndim > 1 else np.hypot(std, self.learner.noise_std())


class OfSklearn:
    """The same model by scikit-learn, from its own starting values; of a field one for each component."""

    def __init__(self, isotropic: bool = False) -> None:
        self.isotropic = isotropic

    def fit(self, X: np.ndarray, y: np.ndarray) -> OfSklearn:
        kernel = ConstantKernel() * RBF(1.0 if self.isotropic else np.ones(X.shape[1])) + WhiteKernel()
        outputs = y.reshape(len(y), -1).T
        self.models = [GaussianProcessRegressor(kernel, normalize_y=True).fit(X, each) for each in outputs]
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means, stds = zip(*(model.predict(X, return_std=True) for model in self.models), strict=True)
        if len(means) == 1:
            return means[0], stds[0]
        noises = [model.kernel_.k2.noise_level * model._y_train_std**2 for model in self.models]
        variances = np.square(np.column_stack(stds)) - noises  # of the function: a WhiteKernel adds the noise
        return np.column_stack(means), np.sqrt(variances)


def scores(model: Any, train: Points, test: Points) -> tuple[float, float, float]:
    """RMSE and mean negative log density of test points, and seconds of the fit."""
    start = time.perf_counter()
    model.fit(*train)
    seconds = time.perf_counter() - start
    mean, std = model.predict(test[0])
    squared = np.square(mean - test[1])
    return float(np.sqrt(squared.mean())), float((np.log(2 * np.pi * std**2) + squared / std**2).mean() / 2), seconds


def split(points: Points, n: int, seed: int) -> tuple[Points, Points]:
    """Training and test points, with columns in units of the deviations of the training points."""
    X, y = points
    rows = np.random.default_rng(seed).permutation(len(X))
    X = (X - X[rows[:n]].mean(0)) / X[rows[:n]].std(0)
    return (X[rows[:n]], y[rows[:n]]), (X[rows[n:]], y[rows[n:]])


def row(name: str, parts: list[tuple[Points, Points]], is_field: bool, isotropic: bool) -> str:
    """A row of the table."""
    models = OfOrbit(is_field), OfSklearn(isotropic)
    found = np.array([[scores(model, *part) for model in models] for part in parts]).mean(0)
    errors = [f"{rmse:.4g}, {nlpd:.3f}" for rmse, nlpd, _ in found]
    times = [f"{seconds:.2g}" for *_, seconds in found]
    return f"| {' | '.join([name, str(len(parts[0][0][0])), *errors, *times])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--isotropic", action="store_true", help="one lengthscale for all columns in scikit-learn")
    given = parser.parse_args()
    seeds, isotropic = range(given.seeds), given.isotropic
    warnings.simplefilter("ignore")  # scikit-learn's, of lengthscales at their bounds
    print("| data | training points | orbit: RMSE, nlpd | scikit-learn: RMSE, nlpd | orbit, s | scikit-learn, s |")
    print("|---|---:|---:|---:|---:|---:|")
    for function, d, n in FIELDS:
        print(row(function.__name__, [field(function, d, n, seed) for seed in seeds], True, isotropic), flush=True)
    for table, n in TABLES.items():
        print(row(table.__name__, [split(table(seed), n, seed) for seed in seeds], False, isotropic), flush=True)


if __name__ == "__main__":
    main()
