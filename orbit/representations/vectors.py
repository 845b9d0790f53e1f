"""Representations of points of any shape: scaling by norms and by features."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orbit.core.linalg import is_constant, mean_and_deviation, row_norms
from orbit.registry import register
from orbit.representations.base import Representation, mean_norm, scale

# What features of 0 and 1 are divided by.
_OF_INDICATORS = 1 / math.sqrt(2)


@register("representation", "raw")
class Raw(Representation):
    """The data unchanged.

    Examples
    --------
    >>> from orbit.representations import Raw
    >>> Raw().fit_transform([[1.0, 2.0]])
    array([[1., 2.]])
    """


@register("representation", "unit_norm")
@dataclass(eq=False, repr=False)
class UnitNorm(Representation):
    """Points divided by their Euclidean norm, or all by the mean norm of the training points.

    Parameters
    ----------
    norm : {"mean", "each"}
        ``mean`` divides by the mean norm of the training points, so that
        lengthscales around 1/2 suit any data; ``each`` divides by each point's own norm.

    Examples
    --------
    >>> from orbit.representations import UnitNorm
    >>> UnitNorm("each").fit_transform([[3.0, 4.0]])
    array([[0.6, 0.8]])
    """

    norm: Literal["mean", "each"] = "mean"

    def _fit(self, X: np.ndarray) -> None:
        self.scale_ = mean_norm(X) if self.norm == "mean" else 1.0

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return scale(X, self.norm, self.scale_)


@register("representation", "centre")
class Centre(Representation):
    """Clouds of points ``(n_points, d)``, each moved so that the mean of its points is the origin.

    Rotations about the origin are then rotations of a cloud about its own centre, and a shift of
    the whole cloud changes nothing.

    Examples
    --------
    >>> from orbit.representations import Centre
    >>> Centre().fit_transform([[[1.0, 5.0], [3.0, 5.0]]])
    array([[[-1.,  0.],
            [ 1.,  0.]]])
    """

    takes_vectors = False

    def _fit(self, X: np.ndarray) -> None:
        self._transform(X[:1])

    def _transform(self, X: np.ndarray) -> np.ndarray:
        if X.ndim != 3:
            raise self._refuse(X, "clouds of points, of shape (points, coordinates)")
        centred = (X - X.mean(1, keepdims=True, dtype=np.float64)).astype(X.dtype)
        centred[is_constant(row_norms(centred), row_norms(X), X.dtype)] = 0  # all points of the cloud are one
        return centred


@register("representation", "standardize")
class Standardize(Representation):
    """Each feature shifted and scaled to mean 0 and standard deviation 1 over the training points.

    Features of 0 and 1, such as those that stand for the texts of a table, are shifted and multiplied by sqrt(2): two
    rows with different texts are then 2 standard deviations of a number apart, however rare these texts are (Gelman,
    "Scaling regression inputs by dividing by two standard deviations", 2008). With a standard deviation of 1 each, a
    text that one row in a hundred has would be 10 apart from the others.

    Constant features are only shifted, and those that are constant but for rounding are divided by
    their mean, so that rounding errors remain small. Scaling each pixel separately does not
    commute with a rotation: use it on vectors.

    Examples
    --------
    >>> from orbit.representations import Standardize
    >>> Standardize().fit_transform([[1.0], [3.0]])
    array([[-1.],
           [ 1.]])
    """

    def _fit(self, X: np.ndarray) -> None:
        # powers of two, so that neither sums nor squares overflow or underflow; they round nothing
        exponents = np.frexp(np.maximum(X.max(0), -X.min(0)).astype(np.float64))[1]
        scaled = np.ldexp(X.astype(np.float64), -exponents)
        mean, deviation = mean_and_deviation(scaled)
        scales = np.where(is_constant(deviation, mean, X.dtype), np.abs(mean), deviation)
        self.mean_ = np.ldexp(mean, exponents)
        scales = np.where(((X == 0) | (X == 1)).all(0), _OF_INDICATORS, np.ldexp(scales, exponents))
        self.scale_ = np.where(deviation > 0, scales, 1.0)

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return ((X - self.mean_) / self.scale_).astype(X.dtype)
