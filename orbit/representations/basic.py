"""What is done to the data before any group acts on it: scaling, and polar sampling of images."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.core.params import PositiveFloat, PositiveInt
from orbit.core.threads import in_threads
from orbit.groups.resample import Resampling, bilinear, gather, pixels_first
from orbit.registry import register

Norm = Literal["none", "mean", "each"]

# Images whose pixels and rings stay in a core's second-level cache.
_SAMPLED_AT_ONCE = 256


class Representation(TransformerMixin, Component, BaseEstimator):
    """Base class: a scikit-learn transformer that keeps float32 and float64 and the natural shape of points.

    Attributes
    ----------
    group_params : dict
        Parameters that a group behind this representation takes where none are
        given, such as how images are sampled.
    """

    group_params: ClassVar[dict[str, Any]] = {}

    def fit(self, X, y=None):
        """Settle scales and shapes. ``X``: array, shape ``(n, *shape)``."""
        self.check()
        X = self._validate(X, reset=True)
        self.shape_in_ = X.shape[1:]
        self._fit(X)
        return self

    def transform(self, X):
        """The represented points, shape ``(n, *new_shape)``. ``X``: array, shape ``(n, *shape)``."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if X.shape[1:] != self.shape_in_:
            raise ValueError(
                f"{type(self).__name__} was fitted on points of shape {self.shape_in_}, found {X.shape[1:]}"
            )
        return self._transform(X)

    def _fit(self, X: np.ndarray) -> None:
        """Nothing to settle."""

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return X

    def _validate(self, X, reset: bool) -> np.ndarray:
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], allow_nd=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.three_d_array = True
        return tags


@register("representation", "raw")
class Raw(Representation):
    """The data as it is.

    Examples
    --------
    >>> from orbit.representations import Raw
    >>> Raw().fit_transform([[1.0, 2.0]])
    array([[1., 2.]])
    """

    def __init__(self) -> None:
        pass


@register("representation", "unit_norm")
class UnitNorm(Representation):
    """Points scaled to Euclidean norm one: each by itself, or all by the training mean norm.

    Parameters
    ----------
    norm : {"mean", "each"}
        ``mean`` divides by the mean norm of the training points, so that
        lengthscales around 1/2 suit any data; ``each`` by the point's own norm.

    Examples
    --------
    >>> from orbit.representations import UnitNorm
    >>> UnitNorm("each").fit_transform([[3.0, 4.0]])
    array([[0.6, 0.8]])
    """

    def __init__(self, norm: Literal["mean", "each"] = "mean") -> None:
        self.norm = norm

    def _fit(self, X: np.ndarray) -> None:
        self.scale_ = mean_norm(X) if self.norm == "mean" else 1.0

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return scale(X, self.norm, self.scale_)


@register("representation", "standardize")
class Standardize(Representation):
    """Each feature shifted and scaled to mean 0 and standard deviation 1 over the training points.

    Constant features are only shifted. Scaling pixels one by one does not
    commute with a rotation; use it on vectors.

    Examples
    --------
    >>> from orbit.representations import Standardize
    >>> Standardize().fit_transform([[1.0], [3.0]])
    array([[-1.],
           [ 1.]])
    """

    def __init__(self) -> None:
        pass

    def _fit(self, X: np.ndarray) -> None:
        # float64 sums: a float32 mean of many equal values is not that value
        self.mean_ = X.mean(0, dtype=np.float64)
        deviation = X.std(0, dtype=np.float64)
        constant = (X[:1] == X).all(0)  # a rounded mean would leave a constant feature a tiny deviation
        self.mean_ = np.where(constant, X[0], self.mean_)
        self.scale_ = np.where(constant, 1.0, deviation)

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return ((X - self.mean_) / self.scale_).astype(X.dtype)


@register("representation", "polar")
class Polar(Representation):
    """Images sampled on rings about their centre, where a turn is a cyclic shift of the last axis.

    Ring k has radius ``(k + 1/2) radius / n_radii``; samples are bilinear, zero
    outside the image, and weighted by the square root of the radius, so that
    inner products approximate those of the images (``r dr dtheta`` is the area).
    The group behind it becomes exact: see ``Rotation(sampling="polar")``.

    Parameters
    ----------
    n_radii, n_angles : int >= 1 or None
        None is half the longer side (at least 8; one more where that would
        make the grid square), and the power of two next above the outermost
        ring's circumference in pixels, at most 64.
    radius : float > 0 or None
        Outer radius in pixels; None is half the longer side.
    norm : {"mean", "each", "none"}
        Scaling after sampling, as in ``unit_norm``.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Polar
    >>> Polar(n_radii=4, n_angles=16).fit_transform(np.ones((2, 8, 8))).shape
    (2, 4, 16)
    """

    group_params = {"sampling": "polar"}

    def __init__(
        self,
        n_radii: PositiveInt | None = None,
        n_angles: PositiveInt | None = None,
        radius: PositiveFloat | None = None,
        norm: Norm = "mean",
    ) -> None:
        self.n_radii = n_radii
        self.n_angles = n_angles
        self.radius = radius
        self.norm = norm

    def _fit(self, X: np.ndarray) -> None:
        if X.ndim != 3:
            raise InputError(
                f"{self.label()} samples images of shape (height, width), found points of shape {X.shape[1:]}: "
                "change dataset or representation"
            )
        side = max(X.shape[1:])
        self.radius_ = self.radius or side / 2
        n_radii = self.n_radii or max(8, side // 2)
        n_angles = self.n_angles or min(64, 2 ** math.ceil(math.log2(2 * math.pi * self.radius_)))
        if self.n_radii is None and n_radii == n_angles:  # a square grid would look like an image to a rotation
            n_radii += 1
        self.shape_out_ = n_radii, n_angles
        self.scale_ = 1.0
        if self.norm == "mean":
            self.scale_ = mean_norm(self._sample(X))

    def _transform(self, X: np.ndarray) -> np.ndarray:
        # a scale common to all points is free within the sampling, and otherwise one more pass over the memory
        if self.norm == "mean":
            return self._sample(X, self.scale_)
        return scale(self._sample(X), self.norm, self.scale_)

    def _sample(self, X: np.ndarray, divisor: float = 1.0) -> np.ndarray:
        operator = self._operator()
        operator = Resampling(operator.index, operator.weight / divisor)
        out = np.empty((len(X), *self.shape_out_), dtype=X.dtype)

        def sample(start: int) -> None:
            rows = slice(start, start + _SAMPLED_AT_ONCE)
            rings = gather(operator, pixels_first(torch.from_numpy(np.array(X[rows]))))
            torch.from_numpy(out[rows]).flatten(1).copy_(rings.T)

        in_threads(sample, range(0, len(X), _SAMPLED_AT_ONCE))
        return out

    def _operator(self) -> Resampling:
        n_radii, n_angles = self.shape_out_
        height, width = self.shape_in_
        radii = (np.arange(n_radii)[:, None] + 0.5) * self.radius_ / n_radii
        angles = np.arange(n_angles) * (2 * math.pi / n_angles)
        rows = (height - 1) / 2 - radii * np.sin(angles)  # counter-clockwise, rows count downwards
        columns = (width - 1) / 2 + radii * np.cos(angles)
        operator = bilinear(rows, columns, (height, width))
        area = np.repeat(np.sqrt(radii.ravel()), n_angles)
        return Resampling(operator.index, operator.weight * area[:, None])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


@register("representation", "coulomb")
class Coulomb(Representation):
    """Symmetric matrices with a row for each atom, such as Coulomb matrices (LGIKA section 4.1).

    Parameters
    ----------
    order : {"raw", "sorted"}
        ``sorted`` puts rows and columns in the order of falling row norms: one
        fixed order for each molecule, the baseline that noisy sorting randomises.
    triangle : {"none", "l1", "l2"}
        Every pair of atoms stands twice in a symmetric matrix. ``l1`` halves the
        entries off the diagonal and ``l2`` divides them by sqrt(2), so that
        L1 or Euclidean distances are those of the upper triangles.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Coulomb
    >>> Coulomb(order="sorted").fit_transform(np.array([[[1.0, 2.0], [2.0, 5.0]]]))
    array([[[5., 2.],
            [2., 1.]]])
    """

    def __init__(self, order: Literal["raw", "sorted"] = "raw", triangle: Literal["none", "l1", "l2"] = "none") -> None:
        self.order = order
        self.triangle = triangle

    def _fit(self, X: np.ndarray) -> None:
        if X.ndim != 3 or X.shape[1] != X.shape[2]:
            raise InputError(
                f"{self.label()} takes matrices of shape (atoms, atoms), found points of shape {X.shape[1:]}: "
                "change dataset or representation"
            )

    def _transform(self, X: np.ndarray) -> np.ndarray:
        if self.order == "sorted":
            falling = np.argsort(-np.linalg.norm(X, axis=2), axis=1, kind="stable")
            X = np.take_along_axis(np.take_along_axis(X, falling[:, :, None], 1), falling[:, None, :], 2)
        if self.triangle == "none":
            return X
        off_diagonal = 0.5 if self.triangle == "l1" else math.sqrt(0.5)
        weights = np.where(np.eye(X.shape[1], dtype=bool), 1.0, off_diagonal)
        return (X * weights).astype(X.dtype)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


@register("representation", "bag")
class Bag(Representation):
    """Rows of each point added up, which forgets their order: of one-hot letters, a bag of words (GICDF appendix D.1).

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Bag
    >>> Bag().fit_transform(np.eye(3)[[[0, 2, 2]]])
    array([[1., 0., 2.]])
    """

    def __init__(self) -> None:
        pass

    def _fit(self, X: np.ndarray) -> None:
        if X.ndim < 3:
            raise InputError(
                f"{self.label()} adds up the rows of points of shape (rows, columns), found points of shape "
                f"{X.shape[1:]}: change dataset or representation"
            )

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return X.sum(1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


def mean_norm(X: np.ndarray) -> float:
    """The mean Euclidean norm of the points; 1 if they are all zero."""
    return float(np.linalg.norm(X.reshape(len(X), -1), axis=1).mean()) or 1.0


def scale(X: np.ndarray, norm: Norm, mean: float) -> np.ndarray:
    """Points divided by ``mean`` or by their own norms; a zero point stays zero."""
    if norm == "none":
        return X
    if norm == "mean":
        return (X / mean).astype(X.dtype)
    norms = np.linalg.norm(X.reshape(len(X), -1), axis=1)
    return (X / np.where(norms > 0, norms, 1).reshape(-1, *[1] * (X.ndim - 1))).astype(X.dtype)
