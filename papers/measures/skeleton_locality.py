"""runner=skeleton_locality: which pixels occur together in a random feature (Daniely et al. 2017, Figure 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from orbit import plots
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt, allows
from orbit.registry import register
from runners.config.plan import Plan
from runners.experiments.changes import check_changes, entries
from runners.job.job import Job
from runners.job.runner import Runner
from runners.measure.results import Result


@register("runner", "skeleton_locality")
class SkeletonLocality(Runner):
    """Correlation, over random features, of the occurrence of a few pixels with that of every pixel.

    Parameters
    ----------
    kernels : dict of dict, at least one
        Label -> changes to the configuration; one map each.
    shape : list of int >= 1
        Height and width of the images, and the number of channels if there are several.
    pixels : list of list of int >= 0
        Row and column of each chosen pixel.
    n_features : int >= 1
        Number of draws; equal draws are not merged.
    """

    def __init__(
        self,
        kernels: dict[str, Any] | None = None,
        shape: list[PositiveInt] = [24, 24, 3],  # noqa: B006  never changed: the schema reads it
        pixels: list[list] = [[5, 5], [5, 18], [18, 5], [18, 18]],  # noqa: B006
        n_features: PositiveInt = 500_000,
    ) -> None:
        self.kernels = kernels
        self.shape = shape
        self.pixels = pixels
        self.n_features = n_features

    def check(self) -> None:
        super().check()
        check_changes("runner.kernels", self.kernels, "skeleton_locality")
        if len(self.shape) not in (2, 3):
            raise InputError(f"runner.shape: expected height, width and perhaps channels, found {self.shape}")
        for pixel in self.pixels:
            if len(pixel) != 2 or not all(
                allows(i, int) and 0 <= i < n for i, n in zip(pixel, self.shape, strict=False)
            ):
                raise InputError(f"runner.pixels: expected rows and columns inside {self.shape[:2]}, found {pixel}")

    def plans(self, base: Plan) -> list[Plan]:
        """The plan of every kernel."""
        return [*self._plans(base).values()]

    def _plans(self, base: Plan) -> dict[str, Plan]:
        if (name := base.config["approx"]["name"]) != "skeleton":
            raise InputError(f"approx={name}: runner=skeleton_locality needs approx=skeleton")
        return {label: base.variant(changes) for label, changes in entries(self.kernels).items()}

    def run(self, job: Job) -> None:
        plans, maps = self._plans(job.plan), {}
        for label, plan in plans.items():
            approx = plan.approx(n_components=self.n_features, deduplicate=False)
            approx.fit(np.zeros((1, *self.shape)))
            maps[label] = self._correlations(approx.features_.exponents)
            near, far = self._tiers(maps[label])
            job.log_metrics({f"locality/{label}/near": near, f"locality/{label}/far": far})
            job.log_result(Result("within 2 pixels", label, "mean correlation", [near]))
            job.log_result(Result("beyond 12 pixels", label, "mean correlation", [far]))
            job.row(label, f"mean correlation within 2 pixels {near:.4f}, beyond 12 pixels {far:.4f}")
            job.log_skeleton(approx.kernel_, label)
        job.log_figure("locality", plots.locality, maps, self.pixels)

    def _correlations(self, exponents: sparse.csr_matrix) -> np.ndarray:
        """Correlations of the occurrence of chosen pixels with all pixels', shape ``(chosen, height, width)``."""
        height, width = self.shape[:2]
        channels = exponents.shape[1] // (height * width)
        shape = exponents.shape[0], height * width
        ones = np.ones(exponents.nnz)
        occurs = sparse.csr_matrix((ones, exponents.indices // channels, exponents.indptr), shape)
        occurs.sum_duplicates()
        occurs.data[:] = 1
        chosen = [row * width + column for row, column in self.pixels]
        mean = np.asarray(occurs.mean(0)).ravel()
        together = (occurs[:, chosen].T @ occurs).toarray() / occurs.shape[0]
        deviation = np.sqrt(mean * (1 - mean))
        spread = np.outer(deviation[chosen], deviation)
        covariance = together - np.outer(mean[chosen], mean)
        correlation = np.divide(covariance, spread, out=np.zeros_like(spread), where=spread > 0)
        return correlation.reshape(len(chosen), height, width)

    def _tiers(self, maps: np.ndarray) -> tuple[float, float]:
        """Mean correlation with other pixels at most 2 and more than 12 pixels away."""
        rows, columns = np.mgrid[: self.shape[0], : self.shape[1]]
        near, far = [], []
        for (row, column), values in zip(self.pixels, maps, strict=True):
            distance = np.maximum(abs(rows - row), abs(columns - column))
            near.append(values[(distance > 0) & (distance <= 2)])
            far.append(values[distance > 12])
        apart = np.concatenate(far)
        return float(np.concatenate(near).mean()), float(apart.mean()) if len(apart) else 0.0
