"""The same jobs by this project, by scikit-learn, and by GPyTorch where it is installed: fits and predictions."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV

import orbit
from benchmarks.comparisons.base import Comparison
from orbit.core.errors import InputError
from orbit.kernels import Gaussian
from runners.config.plan import Plan

# Points of the jobs with an exact kernel, at most; values of lambda of a path.
EXACT_POINTS = 6000
_PATH = np.logspace(-8, 0, 9)

# Seconds between two looks at resident memory.
_LOOK_S = 0.01

Job = Callable[[], np.ndarray]  # fits, and predicts the labels of the test points


class Problem:
    """Points, labels and settings that all jobs share.

    Attributes
    ----------
    X, T : float32 arrays, shapes (n, d) and (m, d)
    y : labels of X
    Y : 1 for the label of a point and -1 for others, float32, shape (n, k)
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, T: np.ndarray, lengthscale: float, strength: float) -> None:
        self.X, self.y, self.T, self.lengthscale, self.strength = X, y, T, lengthscale, strength
        self.classes = np.unique(y)
        self.Y = np.where(y[:, None] == self.classes, 1, -1).astype(np.float32)
        self.gamma = 1 / (2 * lengthscale**2)

    def first(self, n: int) -> Problem:
        """The problem of the first n points."""
        return Problem(self.X[:n], self.y[:n], self.T, self.lengthscale, self.strength)

    def by_features(self, features: Any, learner: Any) -> np.ndarray:
        learner.fit(features.fit(self.X).transform(self.X), self.y)
        return learner.predict(features.transform(self.T))

    def by_exact(self) -> np.ndarray:
        exact = orbit.Exact(Gaussian(self.lengthscale), precomputed=True).fit(self.X)
        learner = orbit.KernelRidgeRegressor(regularization=self.strength).fit(exact.transform(self.X), self.Y)
        return self.classes[learner.predict(exact.transform(self.T)).argmax(1)]

    def by_kernel_ridge(self) -> np.ndarray:
        mean = self.Y.mean(0)
        model = KernelRidge(kernel="rbf", gamma=self.gamma, alpha=len(self.X) * self.strength)
        return self.classes[(model.fit(self.X, self.Y - mean).predict(self.T) + mean).argmax(1)]

    def by_gpytorch(self) -> np.ndarray:
        """The posterior mean of a Gaussian process for each class, with the kernel and the noise given."""
        import gpytorch
        import torch

        class Process(gpytorch.models.ExactGP):
            def __init__(self, X, Y, likelihood):
                super().__init__(X, Y, likelihood)
                batch = torch.Size([len(Y)])
                self.mean_module = gpytorch.means.ZeroMean(batch_shape=batch)
                self.covar_module = gpytorch.kernels.RBFKernel(batch_shape=batch)

            def forward(self, x):
                return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

        mean = self.Y.mean(0)
        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=gpytorch.constraints.Positive(), batch_shape=torch.Size([self.Y.shape[1]])
        )
        model = Process(torch.from_numpy(self.X), torch.from_numpy((self.Y - mean).T.copy()), likelihood)
        model.covar_module.lengthscale, likelihood.noise = self.lengthscale, len(self.X) * self.strength
        with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
            scores = model.eval()(torch.from_numpy(self.T)).mean.T.numpy()
        return self.classes[(scores + mean).argmax(1)]


def peers(plan: Plan, n_points: int, threads: int) -> Comparison:
    """Fits of ``approx.n_components`` features, and of an exact kernel, to points, and predictions of all test points.

    Metrics are the ``accuracy`` of each case, and in ``memory`` by how many MiB resident memory rises in it.
    """
    data = plan.load()
    if data.task != "classification":
        raise InputError("runner.compare=peers: needs a data set with classes, change dataset")
    represent, strength = plan.component("representation"), plan.config["learner"].get("regularization")
    if not isinstance(strength, float) or plan.config["group"]["name"] != "identity":
        raise InputError("runner.compare=peers: needs one learner.regularization and group=identity")
    X, T = represent.fit_transform(data.X_train[:n_points]), represent.transform(data.X_test)
    X, T = (points.reshape(len(points), -1).astype(np.float32) for points in (X, T))
    lengthscale = plan.component("kernel").fit(X, plan.seed("approx")).lengthscale_
    problem = Problem(X, np.asarray(data.y_train[:n_points]), T, lengthscale, strength)
    cases, metrics = dict[str, Callable[[], object]](), dict[str, float]()
    for name, job in _jobs(problem, plan.approx().n_components, plan.seed("approx")).items():
        cases[name] = _measured(name, job, np.asarray(data.y_test), metrics)
    ratios = {f"{name}/orbit": (name, f"orbit {name.split(' ', 1)[1]}") for name in cases if name[:5] != "orbit"}
    return Comparison(cases, ratios, metrics)


def _jobs(problem: Problem, columns: int, seed: int) -> dict[str, Job]:
    """Name -> job, the name of a library followed by what it computes."""
    kernel, strength, n = Gaussian(problem.lengthscale), problem.strength, len(problem.X)
    exact, by_features = problem.first(EXACT_POINTS), problem.by_features
    theirs = {"n_components": columns, "gamma": problem.gamma, "random_state": seed}

    def random_fourier() -> Any:
        return orbit.RandomFourier(kernel, n_components=columns // 2, random_state=seed)

    def nystrom() -> Any:
        return orbit.Nystrom(kernel, n_components=columns, random_state=seed)

    def path() -> Any:
        return orbit.RidgeClassifier(_PATH.tolist())

    jobs: dict[str, Job] = {
        "orbit rf": lambda: by_features(random_fourier(), orbit.RidgeClassifier(strength)),
        "sklearn rf": lambda: by_features(RBFSampler(**theirs), RidgeClassifier(n * strength)),
        "orbit rf path": lambda: by_features(random_fourier(), path()),
        "sklearn rf path": lambda: by_features(RBFSampler(**theirs), RidgeClassifierCV(n * _PATH)),
        "orbit nystrom": lambda: by_features(nystrom(), orbit.RidgeClassifier(strength)),
        "sklearn nystrom": lambda: by_features(Nystroem(**theirs), RidgeClassifier(n * strength)),
        "orbit nystrom path": lambda: by_features(nystrom(), path()),
        "sklearn nystrom path": lambda: by_features(Nystroem(**theirs), RidgeClassifierCV(n * _PATH)),
        "orbit exact": exact.by_exact,
        "sklearn exact": exact.by_kernel_ridge,
    }
    if importlib.util.find_spec("gpytorch") is not None:
        jobs["gpytorch exact"] = exact.by_gpytorch
    return jobs


def _measured(name: str, job: Job, y: np.ndarray, metrics: dict[str, float]) -> Callable[[], object]:
    """The job, which records accuracy and memory at its first call, the one that is not timed."""

    def run() -> None:
        if f"accuracy/{name}" in metrics:
            job()
            return
        predicted, metrics[f"memory/{name}"] = _rise(job)
        metrics[f"accuracy/{name}"] = float((predicted == y).mean())

    return run


def _rise(job: Job) -> tuple[np.ndarray, float]:
    """The result of a job, and by how many MiB resident memory rises while it runs, as seen by a thread."""
    process, ended = psutil.Process(), threading.Event()
    seen = [process.memory_info().rss]

    def look() -> None:
        while not ended.wait(_LOOK_S):
            seen.append(process.memory_info().rss)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        found = job()
    finally:
        ended.set()
        thread.join()
    return found, (max(seen) - seen[0]) / 2**20
