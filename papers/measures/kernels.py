"""The error of features as an estimate of the exact kernel."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from orbit.approx import Exact
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.core.random import spawn
from papers.measures.base import Quantity
from runners.config.plan import Plan
from runners.job.job import Job

# Independent features computed at once: Fourier features of whole images have thousands of entries each.
_TOGETHER = 2000

_KERNEL = ("kernel", "encoder", "group", "distribution", "orbit")


class KernelError(Quantity):
    """Relative errors of <psi(x), psi(z)> as an estimate of k_{q,G}(x, z), on the first training points.

    Parameters
    ----------
    reference : int >= 1 or None
        Orbit size of the exact kernel. None uses the orbit of each curve, so that
        the error is that of the approximation alone.

    References
    ----------
    Raj et al. 2017, Figure 1
    """

    parts: ClassVar[Mapping[str, str]] = {
        "rel_fro_error": "relative Frobenius error",
        "rel_spectral_error": "relative spectral error",
    }

    def __init__(self, reference: PositiveInt | None = None) -> None:
        self.reference = reference

    def start(self, job: Job, n_points: int) -> None:
        self.points_ = job.plan.component("representation").fit_transform(job.load().X_train[:n_points])

    def start_repeat(self, job: Job, n_points: int, seed: int) -> None:
        self.exact_: dict[str, np.ndarray] = {}

    def values(self, job: Job, plan: Plan, label: str, sizes: Sequence[int], seed: int) -> dict[str, Any]:
        truth = self._exact(job, plan, label, seed)
        found = [kernel_errors(truth, self._gram(plan, size, seed)) for size in sizes]
        return {part: [errors[part] for errors in found] for part in self.parts}

    def _exact(self, job: Job, plan: Plan, label: str, seed: int) -> np.ndarray:
        """The exact kernel matrix, which curves with the same kernel share."""
        if self.reference is not None:
            plan, seed = plan.variant({"orbit.size": self.reference}), seed + 1  # another orbit than that of the curve
        key = json.dumps([plan.config[section] for section in _KERNEL], sort_keys=True)
        if key not in self.exact_:
            kernel, encoder = plan.component("kernel"), plan.component("encoder")
            orbit = plan.orbit(random_state=seed)
            exact = Exact(kernel, orbit=orbit, encoder=encoder, engine=plan.engine(), random_state=seed)
            self.exact_[key] = exact.fit_gram(self.points_)
            job.log_skeleton(exact.kernel_, label)
        return self.exact_[key]

    def _gram(self, plan: Plan, size: int, seed: int) -> np.ndarray:
        orbit = plan.orbit(random_state=seed)
        psi = plan.approx(orbit=orbit, n_components=size, random_state=seed).fit_transform(self.points_)
        return psi.astype(np.float64) @ psi.T.astype(np.float64)


class SkeletonError(KernelError):
    """Four measures of error, on random training points that are drawn again in every repeat.

    Parameters
    ----------
    reference : int >= 1 or None
        Orbit size of the exact kernel; None uses the orbit of each curve.

    References
    ----------
    Daniely et al. 2017, Figure 3
    """

    parts: ClassVar[Mapping[str, str]] = {
        "mean_error": "mean absolute difference",
        "rms_error": "root mean square difference",
        "max_error": "largest difference",
        "correlation": "correlation",
    }
    axis: ClassVar[str] = "features"
    figure: ClassVar[str] = "skeleton_error"

    def start(self, job: Job, n_points: int) -> None:
        X = job.plan.component("representation").fit_transform(job.load().X_train)
        self.all_points_ = job.plan.engine().cast(X)
        if len(X) < n_points:
            raise InputError(f"runner.n_points: expected at most {len(X)}, the training points, found {n_points}")

    def start_repeat(self, job: Job, n_points: int, seed: int) -> None:
        super().start_repeat(job, n_points, seed)
        chosen = np.random.default_rng(seed).choice(len(self.all_points_), n_points, replace=False)
        self.points_ = self.all_points_[chosen]

    def _gram(self, plan: Plan, size: int, seed: int) -> np.ndarray:
        """Independent features are drawn in parts, to save memory."""
        merged = plan.config["approx"].get("deduplicate", False)
        parts = [size] if merged else [min(_TOGETHER, size - done) for done in range(0, size, _TOGETHER)]
        grams = map(super()._gram, itertools.repeat(plan), parts, spawn(seed, len(parts)))
        return np.sum([gram * (part / size) for gram, part in zip(grams, parts, strict=True)], axis=0)


def kernel_errors(truth: np.ndarray, estimate: np.ndarray) -> dict[str, float]:
    """Errors of an estimated kernel matrix.

    Parameters
    ----------
    truth, estimate : arrays, shape (n, n)

    Returns
    -------
    dict
        ``rel_fro_error`` and ``rel_spectral_error`` (relative errors in the Frobenius
        and the spectral norm), ``max_error``, ``mean_error`` and ``rms_error``
        (absolute, over entries), and ``correlation`` of the off-diagonal entries.

    >>> errors = kernel_errors(np.eye(3), np.eye(3) * 1.1)
    >>> round(errors["rel_fro_error"], 6), round(errors["max_error"], 6)
    (0.1, 0.1)
    """
    truth, estimate = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    difference = estimate - truth
    off_diagonal = ~np.eye(len(truth), dtype=bool)
    spread = truth[off_diagonal].std() * estimate[off_diagonal].std()
    covariance = np.cov(truth[off_diagonal], estimate[off_diagonal], ddof=0)[0, 1]
    return {
        "rel_fro_error": float(np.linalg.norm(difference) / np.linalg.norm(truth)),
        "rel_spectral_error": float(np.linalg.norm(difference, 2) / np.linalg.norm(truth, 2)),
        "max_error": float(np.abs(difference).max()),
        "mean_error": float(np.abs(difference).mean()),
        "rms_error": float(np.sqrt(np.square(difference).mean())),
        "correlation": float(covariance / spread) if spread > 0 else 0.0,
    }
