"""Gaussian processes beside those of scikit-learn, on the same points: error, negative log density and time.

    python -m benchmarks.gaussian_processes [--seeds 5]

Prints Markdown, a row for each data set: the means over the seeds. Both are fitted in turns.
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

from orbit import Exact, Gaussian, GaussianProcess

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


class OfOrbit:
    """A Gaussian process with lengthscales by marginal likelihood: one for each column."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> OfOrbit:
        self.features = Exact(Gaussian("evidence"), residual=True, precomputed=True, random_state=0)
        self.learner = GaussianProcess().fit(self.features.fit_transform(X, y), y)
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means, and standard deviations of observations."""
        mean, std = self.learner.predict(self.features.transform(X), return_std=True)
        return mean, np.hypot(std, self.learner.noise_std())


class OfSklearn:
    """The same model by scikit-learn, from its own starting values."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> OfSklearn:
        kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
        self.model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.model.predict(X, return_std=True)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(parser.parse_args().seeds)
    warnings.simplefilter("ignore")  # scikit-learn's, of lengthscales at their bounds
    print("| data | training points | orbit: RMSE, nlpd | scikit-learn: RMSE, nlpd | orbit, s | scikit-learn, s |")
    print("|---|---:|---:|---:|---:|---:|")
    for table, n in TABLES.items():
        parts = [split(table(seed), n, seed) for seed in seeds]
        found = np.array([[scores(model(), *part) for model in (OfOrbit, OfSklearn)] for part in parts]).mean(0)
        errors = [f"{rmse:.4g}, {nlpd:.3f}" for rmse, nlpd, _ in found]
        times = [f"{seconds:.2g}" for *_, seconds in found]
        print("|", " | ".join([table.__name__, str(n), *errors, *times]), "|", flush=True)


if __name__ == "__main__":
    main()
