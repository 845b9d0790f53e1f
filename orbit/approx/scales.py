"""A lengthscale chosen by leave-one-out error: multiples of the median, scored by small models.

Of classes the squared error also counts how far scores shrink to the class frequencies, and may prefer a lengthscale
too small for the best accuracy. So a multiple replaces the median only if fewer points are classified wrongly too. Of
numbers absolute errors must fall too, of which a few large ones decide less than of squares.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from orbit.approx.kernel_sums import KernelSums
from orbit.core.linalg import pivoted_root
from orbit.core.threads import in_threads, threads_for
from orbit.engine.embedding import Scratch
from orbit.engine.memory import slices
from orbit.kernels import OperatorKernel
from orbit.kernels.operator_valued import FieldKernel
from orbit.kernels.radial import RadialColumns, squared_distances
from orbit.solvers.evidence import evidence_of_features
from orbit.solvers.left_out import encoded_targets, left_out, rows_of
from orbit.solvers.structure import Structure, StructuredFeatures

# Multiples of the median, from 1/16 to 128. Tried are those in steps of a factor 4, then those a factor 2, and at last
# its root, from the best so far.
_MULTIPLES = 2.0 ** np.arange(-4, 7.25, 0.5)
_STEPS = 4, 2, 1
_OF_MEDIAN = 8

# A multiple is taken for better than the median if errors fall by so many standard errors. Those of classification are
# smoothed, logistic functions of margins with this slope. Both constants were chosen by test errors of classes, and
# confirmed on other seeds (docs/results/discover.md).
_CLEAR, _SLOPE = 1.75, 8.0

# Points and landmarks of a small model, rows of a tile. Operations of its kernel values, which take about a second on
# one core; more moved points than this affords with the fewest landmarks are left out, down to the fewest. Few
# landmarks prefer a larger lengthscale than the many of the final map, so they are more where that is affordable.
_POINTS, _FEWEST_POINTS, _ROWS = 1000, 100, 256
_LANDMARKS, _FEWEST_LANDMARKS = 384, 256
_OPERATIONS, _OF_VALUES = 2e10, 1000

# Numbers of all moved points, 512 MiB in float32; large points are fewer than the fewest above.
_NUMBERS = 2**27

# Numbers of the moved points that are encoded, unless a tenth of all points have more: about a second of patches.
_ENCODED = 1e6

# Frequencies of the model of a kernel of vector fields.
_FREQUENCIES = 128

# From some multiples to the features of some points for each of them.
Features = Callable[[np.ndarray], Iterator[Any]]


@dataclass(frozen=True)
class ScaleChoice:
    """A scale chosen from multiples of a first guess.

    Attributes
    ----------
    name : the parameter
    value : float
    multiple : ``value`` over the first guess
    multiples : ascending array, shape (m,)
    errors : array, shape (m,)
        Leave-one-out errors as shares of the variance of the targets, or negative log marginal likelihoods; infinite
        where none was computed.
    criterion : what was best
    """

    name: str
    value: float
    multiple: float
    multiples: np.ndarray
    errors: np.ndarray
    criterion: str = "leave-one-out error"

    @property
    def end(self) -> Literal["smallest", "largest"] | None:
        """Which end of the range the choice is; None if it is none."""
        ends: dict[float, Any] = {self.multiples[0]: "smallest", self.multiples[-1]: "largest"}
        return ends.get(self.multiple)

    def __str__(self) -> str:
        text = f"{self.value:.3g}, {self.multiple:.2g} times the median, by {self.criterion}"
        return text if self.end is None else f"{text} (the {self.end} multiple tried)"


def sample_size(n: int, orbit_size: int, d: int, size: int | None = None) -> int:
    """The number of points, of ``n``, of the small models, for vectors of ``d`` numbers, encoded from ``size``."""
    affordable = min(_POINTS, _affordable_values(orbit_size, d) // _FEWEST_LANDMARKS)
    if size is not None:
        affordable = min(affordable, max(n // 10, int(_ENCODED / (orbit_size * size))))
    return min(n, max(_FEWEST_POINTS, affordable), max(2, _NUMBERS // (orbit_size * d)))


def landmark_rows(n: int, orbit_size: int, d: int) -> np.ndarray:
    """Which of the ``n`` points of the small models are landmarks, for vectors of ``d`` numbers."""
    affordable = max(_FEWEST_LANDMARKS, _affordable_values(orbit_size, d) // n)
    return np.linspace(0, n, min(n, _LANDMARKS, affordable), endpoint=False).astype(int)


def _affordable_values(orbit_size: int, d: int) -> int:
    """Averages over an orbit of kernel values of vectors of ``d`` numbers, at all multiples tried."""
    return int(_OPERATIONS / (orbit_size * (2 * len(_STEPS) * d + _OF_VALUES)))


def choose_lengthscale(
    kernel: Any, features: Features, y: np.ndarray, clusters: np.ndarray | None, by_evidence: bool = False
) -> ScaleChoice:
    """The multiple of a kernel's lengthscale with the smallest leave-one-out error, or the largest evidence.

    It is 1 unless absolute errors, or points classified wrongly, are fewer than with 1 by more than chance.

    Parameters
    ----------
    kernel : fitted, with the median lengthscale
    features : the features of some points for each of some multiples
    y, clusters : their targets, and their clusters or None, as for ``FeatureMap.fit``
    by_evidence : whether to maximise the marginal likelihood, which knows no clusters
    """
    targets, of_classes = encoded_targets(y, together=isinstance(kernel, FieldKernel))
    errors, tried = np.full(len(_MULTIPLES), np.inf), list(range(0, len(_MULTIPLES), _STEPS[0]))
    wrong = dict[int, np.ndarray]()
    for finer in (*_STEPS[1:], 0):
        with threads_for(0):  # many small factorisations, in which a second thread mostly waits
            for i, psi in zip(tried, features(_MULTIPLES[tried]), strict=True):
                if by_evidence:
                    errors[i] = -_evidence(psi, targets)
                    continue
                predicted, _ = left_out(psi, targets, clusters)
                errors[i] = np.square(predicted - targets).sum(1).mean()
                wrong[i] = errors_of(predicted, targets, of_classes)
        allowed = _better(wrong, clusters) if wrong else range(len(errors))
        best = min(allowed, key=lambda i: (errors[i], abs(i - _OF_MEDIAN)))
        tried = [i for i in (best - finer, best + finer) if 0 <= i < len(errors)]
    multiple = float(_MULTIPLES[best])
    criterion = "marginal likelihood" if by_evidence else "leave-one-out error"
    return ScaleChoice("lengthscale", multiple * kernel.lengthscale_, multiple, _MULTIPLES, errors, criterion)


def _better(wrong: dict[int, np.ndarray], clusters: np.ndarray | None) -> list[int]:
    """The median, and multiples of which some error, shape (kinds, n), is smaller by more than chance."""
    return [_OF_MEDIAN, *(i for i, each in wrong.items() if clearly_lower(each, wrong[_OF_MEDIAN], clusters))]


def clearly_lower(errors: np.ndarray, others: np.ndarray, clusters: np.ndarray | None) -> bool:
    """Whether errors of some kind, shape (kinds, n), are lower by more than chance, for independent clusters."""
    n = errors.shape[1]
    numbers = np.arange(n) if clusters is None else np.unique(clusters, return_inverse=True)[1]

    def is_clear(differences: np.ndarray) -> bool:
        falls = np.bincount(numbers, differences)
        return bool(falls.sum() > _CLEAR * np.sqrt(len(falls)) * falls.std())

    return any(map(is_clear, others - errors))


def errors_of(predicted: np.ndarray, targets: np.ndarray, of_classes: bool) -> np.ndarray:
    """The errors that decide whether predictions are better, shape (kinds, n): absolute ones, or those of classes."""
    if of_classes:
        return _class_errors(predicted, targets)
    return np.sqrt(np.square(predicted - targets).sum(1))[None]


def _class_errors(predicted: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Smoothed errors, logistic functions of negative margins, and plain ones, 0 or 1; shape (2, n).

    The margin is the prediction of a point's class less the largest of the others. Where all margins are small, as
    those of few points in many dimensions are, only plain errors tell multiples apart.
    """
    scores, is_own = predicted / targets.max(), targets > 0
    behind = np.where(is_own, -np.inf, scores).max(1) - np.where(is_own, scores, -np.inf).max(1)
    return np.stack([expit(_SLOPE * behind), behind >= 0])


def _evidence(psi: Any, targets: np.ndarray) -> float:
    rows, targets = rows_of(psi, targets - targets.mean(0))
    size = np.sqrt(np.square(rows).sum(1).mean())
    return evidence_of_features(rows / size, targets) if targets.any() and size > 0 else 0.0


class _SharedDistances(KernelSums):
    """Sums of radial kernels of several lengthscales, each distance computed once."""

    def __init__(self, columns: list[Any], n_points: int) -> None:
        super().__init__(columns, n_points)
        self.distances = squared_distances(columns)

    def add(self, points: Tensor, weight: float, units: slice, total: Tensor, scratch: Scratch) -> None:
        squares, values = (scratch.matrix(i, len(points), units.stop - units.start) for i in range(2))
        self.distances(points, units, squares)
        for i, columns in enumerate(self.columns):
            torch.mul(squares, columns.factor, out=values)
            self._sums(i, units, total).add_(columns.of_squares(values), alpha=weight)


def kernel_features(kernel: Any, landmarks: np.ndarray, moved: np.ndarray, weights: np.ndarray) -> Features:
    """Nyström features, averaged over the orbit, for each of some multiples of the kernel's lengthscale.

    Parameters
    ----------
    kernel : fitted
    landmarks : array, shape (m, d), of the precision of the features
    moved : orbit points, shape (r, n, d)
    weights : of the elements, shape (r,)
    """
    scalar = kernel.base_ if isinstance(kernel, OperatorKernel) else kernel
    points, of_orbit = torch.from_numpy(np.array(landmarks)), torch.from_numpy(moved)
    precision, m, n = float(np.finfo(landmarks.dtype).eps), len(landmarks), moved.shape[1]

    def features(multiples: np.ndarray) -> Iterator[np.ndarray]:
        kernels = [scalar.rescaled(multiple) for multiple in multiples]
        columns: list[Any] = [kernel.against(points) for kernel in kernels]
        sums = (_SharedDistances if isinstance(columns[0], RadialColumns) else KernelSums)(columns, m)
        total = points.new_zeros(n, len(kernels) * m)

        def add(rows: slice) -> None:
            scratch = Scratch(2, rows.stop - rows.start, m, points)
            for each, weight in zip(of_orbit, weights, strict=True):
                sums.add(each[rows], float(weight), slice(0, m), total[rows], scratch)

        in_threads(add, slices(n, _ROWS))
        for of_kernel, each in zip(np.split(total.numpy(), len(kernels), axis=1), kernels, strict=True):
            pivots, root = pivoted_root(each.gram(landmarks), precision=precision)
            yield of_kernel[:, pivots] @ root.T

    return features


def field_features(kernel: FieldKernel, moved: np.ndarray, weights: np.ndarray) -> Features:
    """Random Fourier features of a kernel of vector fields for each of some multiples of its lengthscale.

    Parameters
    ----------
    kernel : fitted
    moved : orbit points, shape (r, n, d)
    weights : of the elements, shape (r,)
    """
    d, moved = moved.shape[2], moved.astype(np.float64)
    frequencies = kernel.base_.sample_spectrum(_FREQUENCIES, d, np.random.default_rng(0))

    def features(multiples: np.ndarray) -> Iterator[StructuredFeatures]:
        for multiple in multiples:
            angles = moved @ (frequencies / multiple).T
            waves = np.tensordot(weights, np.concatenate([np.cos(angles), np.sin(angles)], axis=2), axes=1)
            structure = Structure(kernel, frequencies / multiple, waves.shape[1], None, d)
            yield StructuredFeatures(waves / np.sqrt(_FREQUENCIES), structure)

    return features
