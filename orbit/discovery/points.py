"""Points, and the leave-one-out errors of kernels averaged over an orbit of theirs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import numpy as np
import torch
from scipy import stats
from sklearn.base import clone
from sklearn.utils import check_X_y
from torch import Tensor

from orbit.core.errors import InputError
from orbit.core.linalg import pivoted_root
from orbit.core.random import generator
from orbit.core.threads import default_threads, in_threads, threads_for
from orbit.data.base import Task
from orbit.data.splits import guess_task
from orbit.discovery.result import CLEAR, RELEVANT, SIGNIFICANT, Trial
from orbit.encoders import Encoder, NoEncoder, UnionEncoder
from orbit.kernels.base import median_distance
from orbit.orbits import Orbit, random_orbit_points
from orbit.solvers.left_out import encoded_targets, left_out

# The fewest points, and clusters, of which errors of points that are left out are compared. Three clusters were chosen
# when errors of generated spectra of four days were known.
_FEWEST, _FEWEST_CLUSTERS = 10, 3

# Of the moved points: the model takes so many principal components, few or, if the error is lower, many, and means of
# so many copies of each point as landmarks. On 300 rotated digits and 400 of MNIST, errors with all copies were at most
# a tenth lower, at 4 times the cost, and those with all components higher; shifts of spectrograms need many components.
_FEW, _MANY, _COPIES, _FITTED = 64, 256, 4, 2000
_FITTED_NUMBERS = 2**24  # of all copies of points that components and an encoder are fitted to

# Lengthscales as multiples of the median distance.
MULTIPLES = 2.0 ** np.arange(-4, 8)


@dataclass(frozen=True)
class LabelledPoints:
    """Points and their targets, which orbits are compared on.

    Attributes
    ----------
    X : float32 or float64 array, shape (n, *shape)
        Kernels are computed in its precision.
    targets : array, shape (n, p)
        Of variance 1 in sum; a column for each class of labels.
    clusters : int array, shape (n,)
        From 0; equal points are of one cluster.
    vectors : dict of tensor
        Of the points by encoders without a group, by a hash of the encoder.
    """

    X: np.ndarray
    targets: np.ndarray
    of_classes: bool
    clusters: np.ndarray
    encoder: Encoder
    seed: int
    vectors: dict[str, Tensor] = field(default_factory=dict)

    def trials(
        self,
        tried: list[tuple[Orbit, Encoder | None]],
        multiples: float | np.ndarray,
        done: Callable[[], object] = lambda: None,
    ) -> list[Trial]:
        """:meth:`trial` of several orbits, at the same time: matrices are too small for several threads each."""
        found, count = dict[int, Trial](), default_threads()

        def work(i: int) -> None:
            orbit, encoder = tried[i]
            found[i] = self.trial(orbit, multiples, encoder)

        with threads_for(0):
            in_threads(work, range(len(tried)), count, done)
        return [found[i] for i in range(len(tried))]

    def trial(self, orbit: Orbit, multiples: float | np.ndarray, encoder: Encoder | None = None) -> Trial:
        """The errors with an orbit, at the best of given lengthscales, or of those in steps from a given one.

        ``encoder`` takes the place of the one that all other trials have.
        """
        start = time.perf_counter()
        moved, weights, unit = self._moved(clone(orbit).set_params(random_state=self.seed), encoder or self.encoder)
        landmarks, shares = self._copies(moved, weights)
        many, tried = moved.shape[2], dict[tuple[int, float], np.ndarray]()
        grid = set(itertools.product((min(_FEW, many), many), MULTIPLES))
        waiting = {(min(_FEW, many), multiple) for multiple in np.atleast_1d(multiples)}
        while waiting:
            for d, multiple in sorted(waiting):
                parts = moved[..., :d], weights, landmarks[..., :d], shares
                tried[d, multiple] = self._predicted(*parts, multiple * unit)
            d, multiple = best = min(tried, key=lambda settings: self._errors(tried[settings]).mean())
            waiting = {(d, multiple / 2), (d, multiple * 2)} & grid - set(tried) or {(many, multiple)} - set(tried)
        right = tried[best].argmax(1) == self.targets.argmax(1) if self.of_classes else None
        return Trial(orbit, self._errors(tried[best]), right, multiple, time.perf_counter() - start, encoder)

    def _errors(self, predicted: np.ndarray) -> np.ndarray:
        return np.square(predicted - self.targets).sum(1)

    def _moved(self, orbit: Orbit, encoder: Encoder) -> tuple[Tensor, np.ndarray, float]:
        """Vectors of all moved points, shape (r, n, d), the weights of the elements, and the median distance."""
        from sklearn.decomposition import PCA

        orbit.fit(self.X)
        encoder = encoder.for_shape(self.X.shape[1:])
        if orbit.group is None:
            vectors = self._encoded(encoder).numpy()
            moved = iter([vectors])
        else:
            some = random_orbit_points(orbit, self.X, min(_FITTED, _FITTED_NUMBERS // self.X[0].size), self.seed)
            encode = clone(encoder).fit(some, self.seed).encode
            vectors = encode(torch.from_numpy(some)).numpy()
            points, elements = torch.from_numpy(self.X), range(len(orbit.weights_))
            moved = (encode(orbit.points(points, slice(i, i + 1))[0]).numpy() for i in elements)
        components = PCA(min(_MANY, *vectors.shape), random_state=self.seed).fit(vectors)
        projected = np.stack([components.transform(each) for each in moved])
        return torch.from_numpy(projected), orbit.weights_, median_distance(components.transform(vectors))

    def _encoded(self, encoder: Encoder) -> Tensor:
        """Vectors of the points, shape (n, d), which are kept: encoders that are compared have parts in common."""
        if isinstance(encoder, UnionEncoder):
            return encoder.joined([self._encoded(part) for part in encoder.built()])
        key = joblib.hash(encoder)
        if key not in self.vectors:
            self.vectors[key] = clone(encoder).fit(self.X, self.seed).encode(torch.from_numpy(self.X))
        return self.vectors[key]

    def _copies(self, moved: Tensor, weights: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """A few of the moved copies of each point, shape (c, n, d), and their weights."""
        if len(weights) <= _COPIES:
            return moved, weights
        n = moved.shape[1]
        drawn = generator(self.seed).choice(len(weights), (_COPIES, n), p=weights)
        return moved[torch.from_numpy(drawn), torch.arange(n)], np.full(_COPIES, 1 / _COPIES)

    def _predicted(
        self, moved: Tensor, weights: np.ndarray, landmarks: Tensor, shares: np.ndarray, lengthscale: float
    ) -> np.ndarray:
        gram = _mean_kernel(landmarks, shares, landmarks, shares, lengthscale)
        pivots, root = pivoted_root((gram + gram.T) / 2, precision=float(np.finfo(self.X.dtype).eps))
        sums = _mean_kernel(moved, weights, landmarks, shares, lengthscale)
        return left_out(sums[:, pivots] @ root.T, self.targets, self.clusters)[0]

    def p_value(self, one: Trial, two: Trial) -> float:
        """The two-sided p of the paired t test of absolute errors, summed over clusters; 1 for equal errors.

        A few points with large errors, which energies of molecules have, decide the variance of squared errors.
        """
        differences = np.bincount(self.clusters, np.sqrt(one.errors) - np.sqrt(two.errors))
        return float(np.nan_to_num(stats.ttest_1samp(differences, 0.0).pvalue, nan=1.0))

    def falls(self, trial: Trial, other: Trial) -> bool:
        """Whether the error of a trial is lower than that of another by more than chance, for these two alone."""
        return trial.error < other.error and self.p_value(trial, other) < SIGNIFICANT

    def _is_far(self, trial: Trial, lowest: Trial) -> bool:
        is_lower = lowest.error < (1 - RELEVANT) * trial.error and self.falls(lowest, trial)
        return is_lower or lowest.error < (1 - CLEAR) * trial.error

    def tested(self, trials: list[Trial]) -> list[Trial]:
        """Trials with their tests against the first, the identity, and against the one with the lowest error."""
        lowest = min(trials, key=lambda trial: trial.error)
        trials = [replace(trial, is_near=not self._is_far(trial, lowest)) for trial in trials]
        plain, others = trials[0], trials[1:]
        p = _holm([self.p_value(trial, plain) for trial in others])
        return [plain, *(replace(trial, p=float(value)) for trial, value in zip(others, p, strict=True))]


def _mean_kernel(A: Tensor, v: np.ndarray, B: Tensor, w: np.ndarray, lengthscale: float) -> np.ndarray:
    """sum_ij v_i w_j exp(-|A_ix - B_jz|^2 / (2 lengthscale^2)), shape (n, m), for A (r, n, d) and B (c, m, d)."""
    total = A.new_zeros(A.shape[1], B.shape[1])
    A, B = A / lengthscale, B / lengthscale
    # so that one product gives <a, b> - |a|^2 / 2 - |b|^2 / 2
    left = torch.cat([A, A.square().sum(2, keepdim=True) / -2, torch.ones_like(A[..., :1])], 2)
    right = torch.cat([B, torch.ones_like(B[..., :1]), B.square().sum(2, keepdim=True) / -2], 2)
    for (i, points), (j, landmarks) in itertools.product(enumerate(left), enumerate(right)):
        total.add_((points @ landmarks.T).exp_(), alpha=float(v[i] * w[j]))
    return total.double().numpy()


def sampled(
    X: Any, y: Any, task: Task | None, clusters: Any, encoder: Encoder | None, most: int, random_state: int
) -> LabelledPoints:
    """At most so many of the points, checked."""
    X, y = check_X_y(X, y, allow_nd=True, multi_output=True, dtype=[np.float32, np.float64])
    task = task or guess_task(y)
    what, least = ("points", _FEWEST) if clusters is None else ("clusters", _FEWEST_CLUSTERS)
    clusters = X.reshape(len(X), -1) if clusters is None else np.asarray(clusters)
    if len(X) > most:
        rows = np.sort(generator(random_state).choice(len(X), most, replace=False))
        X, y, clusters = X[rows], y[rows], clusters[rows]
    found, numbers = np.unique(clusters, axis=0, return_inverse=True)
    if len(found) < least:
        raise InputError(f"X: expected at least {least} different {what}, found {len(found)}")
    if len(X) < _FEWEST:
        raise InputError(f"X: expected at least {_FEWEST} points, found {len(X)}")
    targets, of_classes = encoded_targets(y, task)
    return LabelledPoints(X, targets, of_classes, numbers.reshape(-1), encoder or NoEncoder(), random_state)


def _holm(p: list[float]) -> np.ndarray:
    """Probabilities corrected for their number (Holm 1979).

    >>> _holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p)
    corrected = np.maximum.accumulate(np.asarray(p)[order] * np.arange(len(p), 0, -1))
    found = np.empty(len(p))
    found[order] = np.minimum(corrected, 1.0)
    return found
