"""Which pixels occur together in a random feature of a skeleton."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from orbit.core.errors import InputError
from orbit.core.params import PositiveInt, allows
from orbit.plots.axes import hide_ticks, plain, row_of_axes
from papers.measures.base import Lines, Quantity
from runners.config.plan import Plan
from runners.job.job import Job
from runners.job.runner import these
from runners.measure.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class SkeletonLocality(Quantity):
    """Mean correlation, over random features, of the occurrence of a few pixels with that of others, near and far.

    Equal features are not merged. They are those of the configuration's own seed, the same in every repeat; results and
    figure have the last of ``runner.sizes``.

    Parameters
    ----------
    shape : list of int >= 1
        Height and width of the images, and the number of channels if there are several.
    pixels : list of list of int >= 0
        Row and column of each chosen pixel.

    References
    ----------
    Daniely et al. 2017, Figure 4
    """

    parts: ClassVar[Mapping[str, str]] = dict.fromkeys(("within 2 pixels", "beyond 12 pixels"), "mean correlation")

    shape: list[PositiveInt] = these(24, 24, 3)
    pixels: list[list] = these([5, 5], [5, 18], [18, 5], [18, 18])

    def check(self) -> None:
        super().check()
        if len(self.shape) not in (2, 3):
            raise InputError(f"runner.options.shape: expected height, width and perhaps channels, found {self.shape}")
        for pixel in self.pixels:
            inside = [allows(i, int) and 0 <= i < n for i, n in zip(pixel, self.shape, strict=False)]
            if len(pixel) != 2 or not all(inside):
                raise InputError(
                    f"runner.options.pixels: expected rows and columns inside {self.shape[:2]}, found {pixel}"
                )

    def check_plan(self, plan: Plan, label: str) -> None:
        if (name := plan.config["approx"]["name"]) != "skeleton":
            raise InputError(f"approx={name}: runner.measure=skeleton_locality needs approx=skeleton")

    def start(self, job: Job, n_points: int) -> None:
        self.maps_: dict[str, np.ndarray] = {}

    def values(self, job: Job, plan: Plan, label: str, sizes: Sequence[int], seed: int) -> dict[str, Any]:
        found = []
        for size in sizes:
            approx = plan.approx(n_components=size, deduplicate=False).fit(np.zeros((1, *self.shape)))
            self.maps_[label] = self._correlations(approx.features_.exponents)
            found.append(self._tiers(self.maps_[label]))
        job.log_skeleton(approx.kernel_, label)
        return dict(zip(self.parts, zip(*found, strict=True), strict=True))

    def results(self, part: str, lines: Lines) -> list[Result]:
        return [Result(part, label, self.parts[part], [values[0, -1]]) for label, (_, values) in lines.items()]

    def draw(self, job: Job, found: dict[str, dict[str, Lines]]) -> None:
        job.log_figure("locality", locality, self.maps_, self.pixels)

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


def locality(maps: dict[str, np.ndarray], pixels: list[list[int]]) -> Figure:
    """Correlation of each pixel with the chosen pixels (the largest over them); the chosen pixels are blue.

    Parameters
    ----------
    maps : dict
        Name of a kernel -> correlations, shape (chosen, height, width).
    pixels : list of [row, column]
        The chosen pixels.
    """
    rows, columns = np.transpose(pixels)
    figure, axes = row_of_axes(len(maps), 2.6, 2.9)
    for ax, (name, correlations) in zip(axes, maps.items(), strict=True):
        largest = correlations.max(0)
        largest[rows, columns] = np.nan
        # near and far pixels differ by factors of ten: the square root shows both
        shown = np.sqrt(np.clip(largest, 0, None))
        ax.imshow(shown, cmap="gray", vmin=0, vmax=max(0.05, np.nanmax(shown)))
        ax.plot(columns, rows, "s", color="C0", ms=4)
        ax.set_title(plain(name), fontsize=9)
        hide_ticks(ax)
    return figure
