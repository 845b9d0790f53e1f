"""Signals that may be played backwards."""

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

import orbit
from orbit.approx.base import AveragedMap
from orbit.core.params import Fraction, PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.data.base import Dataset, Loader
from orbit.distributions.base import Distribution
from orbit.engine.embedding import Embedding
from orbit.groups.domains import Finite
from orbit.groups.reordering import Reordering
from orbit.kernels.base import Kernel
from orbit.learners.base import Learner
from runners.job import Runner


@orbit.register("group", "reversal")
class Reversal(Reordering):
    """Signals of shape (length,), forwards (0) and backwards (1)."""

    domain = Finite(2)
    default_size = 2
    default_distribution = {"name": "mostly_forwards"}

    def compose(self, left, right):
        return np.mod(np.add(left, right), 2.0)

    def inverse(self, elements):
        return np.array(elements, dtype=float)

    def check_shape(self, shape):
        if len(shape) != 1:
            raise self._refuse(shape, "signals of shape (length,)")

    def _move(self, element, X):
        return X.flip(1) if element else X


@orbit.register("distribution", "mostly_forwards")
class MostlyForwards(Distribution):
    """Backwards with some probability.

    Parameters
    ----------
    backwards : float in (0, 1)
        Probability of the second element.
    """

    domains = (Finite,)

    def __init__(self, backwards: Fraction = 0.4):
        self.backwards = backwards

    def density(self, domain, coordinates):
        return 2 * np.where(np.ravel(coordinates) == 1, self.backwards, 1 - self.backwards)

    def ppf(self, domain, u):
        return (np.ravel(u) >= 1 - self.backwards).astype(float)

    def quadrature(self, domain, size, phase):
        return np.array([0.0, 1.0]), np.array([1 - self.backwards, self.backwards])


@orbit.register("kernel", "multiquadric")
class Multiquadric(Kernel):
    """k(x, z) = (1 + |x - z|^2 / width^2)^(-1/2).

    Parameters
    ----------
    width : float > 0
    """

    def __init__(self, width: PositiveFloat = 2.0):
        self.width = width

    def against(self, B):
        def columns(A, columns, out):
            return out.copy_((1 + torch.cdist(A, B[columns]).square() / self.width**2).rsqrt())

        return columns


@orbit.register("approx", "thresholds")
class Thresholds(AveragedMap):
    """Averages of tanh(<w, x>) over random w.

    Parameters
    ----------
    n_components : int >= 1
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        orbit: orbit.Orbit | None = None,
        n_components: PositiveInt = 64,
        engine: orbit.Engine | None = None,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.orbit = orbit
        self.n_components = n_components
        self.engine = engine
        self.random_state = random_state

    def _fit_map(self, X, random_state):
        shape = self.n_components, int(np.prod(X.shape[1:]))
        self.weights_ = np.random.default_rng(random_state).standard_normal(shape)
        self._n_features_out = self.n_components

    def _embedding(self, dtype):
        return TanhUnits(self.engine_.tensor(self.weights_, dtype))


class TanhUnits(Embedding):
    def __init__(self, W):
        self.W = W
        self.units = self.width = self.n_outputs = len(W)

    def add(self, points, weight, units, total, scratch):
        total[:, units].add_(torch.tanh(points @ self.W[units].T), alpha=weight)

    def finish(self, total):
        return total


@orbit.register("classifier", "centroids")
class Centroids(ClassifierMixin, Learner):
    """The class whose mean is nearest."""

    def __init__(self):
        pass

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == label].mean(0) for label in self.classes_])
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        return self.classes_[np.linalg.norm(X[:, None] - self.means_, axis=2).argmin(1)]


@orbit.register("dataset", "pulses")
class Pulses(Loader):
    """Signals with a pulse at their ends (1) or in their middle (0).

    Parameters
    ----------
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    """

    fixed_task = "classification"

    def __init__(self, n_train: PositiveInt | None = None, n_test: PositiveInt | None = None):
        self.n_train = n_train
        self.n_test = n_test

    def _load(self, random_state):
        rng = np.random.default_rng(0)
        X, y = 0.3 * rng.standard_normal((150, 12)).astype(np.float32), np.arange(150) % 2
        X[np.arange(150), np.where(y == 1, rng.choice([0, 11], 150), 5)] += 3
        return Dataset(self.name, "classification", X[:100], y[:100], X[100:], y[100:], "generated")


@orbit.register("runner", "orbit_weights")
class OrbitWeights(Runner):
    """Records the weights of the orbit's elements."""

    def __init__(self):
        pass

    def run(self, job):
        fitted = job.plan.orbit().fit(job.load().X_train)
        job.log_metrics({f"weight/{i}": weight for i, weight in enumerate(fitted.weights_)})
