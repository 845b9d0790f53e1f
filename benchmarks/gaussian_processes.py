"""Gaussian processes beside those of scikit-learn, on the same points: error, negative log density and time.

    python -m benchmarks.gaussian_processes [--seeds 5] [--first 0] [--isotropic | --defaults]

Prints Markdown, a row for each table and each field: the means over the seeds. Both are fitted in turns. ``--defaults``
compares the defaults of the command line for tables, and ``approx=nystrom``, with scikit-learn.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hydra import compose, initialize_config_dir
from scipy.stats import norm
from sklearn.datasets import load_diabetes, load_wine, make_friedman1, make_friedman2
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import runners.components  # noqa: F401  registers what a plan is made of
from orbit import DivergenceFree, Exact, Gaussian, GaussianProcess
from orbit.approx import OperatorExact
from runners.config import config_dirs
from runners.config.plan import plan
from runners.config.schema import register_schemas
from runners.experiments.fitting import fit_and_score
from runners.job.job import Stopwatch

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


def gap(seed: int) -> Points:
    """A wave over [-6, 6]; of the first 40 points none is between -3 and 3."""
    rng = np.random.default_rng(seed)
    train, test = rng.uniform(3, 6, 40) * rng.choice([-1, 1], 40), rng.uniform(-6, 6, 500)
    X = np.append(train, test)[:, None]
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(len(X))


#: Training points of each table; the others are for testing.
TABLES: dict[Callable[[int], Points], int] = {
    diabetes: 332,
    proline: 133,
    friedman1: 600,
    friedman2: 300,
    heteroscedastic: 400,
}


#: The same for the comparison of defaults.
OF_DEFAULTS: list[tuple[Callable[[int], Points], int]] = [
    (friedman1, 100),
    (friedman1, 600),
    (diabetes, 332),
    (gap, 40),
]


def taylor_green(X: np.ndarray) -> np.ndarray:
    x, z = X.T
    return np.column_stack([np.cos(x) * np.sin(z), -np.sin(x) * np.cos(z)])


def layers(X: np.ndarray) -> np.ndarray:
    """The flow with the stream function sin(3 x) cos(z / 2), which changes faster along x than along z."""
    x, z = 3 * X[:, 0], X[:, 1] / 2
    return np.column_stack([-0.5 * np.sin(x) * np.sin(z), -3 * np.cos(x) * np.cos(z)])


def abc(X: np.ndarray) -> np.ndarray:
    """The flow of Arnold, Beltrami and Childress."""
    return np.sin(np.roll(X, 1, axis=1)) + np.cos(np.roll(X, -1, axis=1))


#: Fields without divergence, their coordinates and numbers of training points; noise has a standard deviation of 0.1.
FIELDS: list[tuple[Callable[[np.ndarray], np.ndarray], int, int]] = [
    (taylor_green, 2, 100),
    (taylor_green, 2, 300),
    (abc, 3, 200),
    (layers, 2, 100),
    (layers, 2, 300),
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


class OfDefaults:
    """``python run.py dataset=table group=identity learner=gp`` with further settings."""

    def __init__(self, *settings: str) -> None:
        self.settings = settings

    def scores(self, train: Points, test: Points) -> tuple[float, ...]:
        """As the function of that name."""
        with tempfile.TemporaryDirectory() as folder:
            for name, (X, y) in {"path": train, "test_path": test}.items():
                pd.DataFrame(X).assign(y=y).to_csv(Path(folder, f"{name}.csv"), index=False)
            places = [f"dataset.{name}={folder}/{name}.csv" for name in ("path", "test_path")]
            made = plan(self._composed(*places, "dataset.target=y", "dataset.task=regression"))
            data = made.load()
        start = time.process_time()
        found = fit_and_score(made, data, Stopwatch()).metrics
        seconds = time.process_time() - start
        return (*(found[f"test/{name}"] for name in ("rmse", "nlpd", "coverage")), seconds)

    def _composed(self, *overrides: str) -> Any:
        own = config_dirs.own()
        register_schemas(own, *config_dirs.of_plugins())
        given = ["dataset=table", "group=identity", "learner=gp", "engine.progress=false", *self.settings, *overrides]
        with initialize_config_dir(str(own), version_base="1.3"):
            return compose("config", overrides=given)


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


def scores(model: Any, train: Points, test: Points) -> tuple[float, ...]:
    """RMSE, mean negative log density and coverage of 95 % intervals of test points; processor seconds of the fit."""
    if isinstance(model, OfDefaults):
        return model.scores(train, test)
    start = time.process_time()
    model.fit(*train)
    seconds = time.process_time() - start
    mean, std = model.predict(test[0])
    squared = np.square(mean - test[1])
    nlpd = float((np.log(2 * np.pi * std**2) + squared / std**2).mean() / 2)
    return float(np.sqrt(squared.mean())), nlpd, float((squared < (norm.ppf(0.975) * std) ** 2).mean()), seconds


def split(points: Points, n: int, seed: int, in_order: bool = False) -> tuple[Points, Points]:
    """Training and test points, with columns in units of the deviations of the training points."""
    X, y = points
    rows = np.arange(len(X)) if in_order else np.random.default_rng(seed).permutation(len(X))
    X = (X - X[rows[:n]].mean(0)) / X[rows[:n]].std(0)
    return (X[rows[:n]], y[rows[:n]]), (X[rows[n:]], y[rows[n:]])


def row(name: str, parts: list[tuple[Points, Points]], models: Sequence[Any], coverage: bool = False) -> str:
    """A row of the table."""
    found = np.array([[scores(model, *part) for model in models] for part in parts]).mean(0)
    errors = [f"{rmse:.4g}, {nlpd:.3f}" + f", {covered:.0%}" * coverage for rmse, nlpd, covered, _ in found]
    times = [f"{seconds:.2g}" for *_, seconds in found]
    return f"| {' | '.join([name, str(len(parts[0][0][0])), *errors, *times])} |"


def compare_defaults(seeds: range) -> None:
    """Print the table of the command line's defaults."""
    models = {"defaults": OfDefaults(), "nystrom": OfDefaults("approx=nystrom"), "scikit-learn": OfSklearn()}
    columns = [*(f"{name}: RMSE, nlpd, coverage" for name in models), *(f"{name}, s" for name in models)]
    print(f"| data | training points | {' | '.join(columns)} |")
    print(f"|---|{'---:|' * (len(columns) + 1)}")
    for table, n in OF_DEFAULTS:
        parts = [split(table(seed), n, seed, in_order=table is gap) for seed in seeds]
        print(row(table.__name__, parts, list(models.values()), coverage=True), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    choices = parser.add_mutually_exclusive_group()
    choices.add_argument("--isotropic", action="store_true", help="one lengthscale for all columns in scikit-learn")
    choices.add_argument("--defaults", action="store_true", help="the command line with its defaults")
    given = parser.parse_args()
    seeds, beside = range(given.first, given.first + given.seeds), OfSklearn(given.isotropic)
    warnings.simplefilter("ignore")  # scikit-learn's, of lengthscales at their bounds
    if given.defaults:
        compare_defaults(seeds)
        return
    print("| data | training points | orbit: RMSE, nlpd | scikit-learn: RMSE, nlpd | orbit, s | scikit-learn, s |")
    print("|---|---:|---:|---:|---:|---:|")
    for function, d, n in FIELDS:
        parts = [field(function, d, n, seed) for seed in seeds]
        print(row(function.__name__, parts, [OfOrbit(True), beside]), flush=True)
    for table, n in TABLES.items():
        print(row(table.__name__, [split(table(seed), n, seed) for seed in seeds], [OfOrbit(), beside]), flush=True)


if __name__ == "__main__":
    main()
