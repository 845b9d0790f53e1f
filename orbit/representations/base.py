"""The base class of representations, computed before any group acts on the points."""

import math
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from orbit.core.component import Component, validated_points
from orbit.core.errors import InputError
from orbit.core.linalg import row_norms
from orbit.representations.neighbours import has_cells

Norm = Literal["none", "mean", "each"]

# Means outside of this range divide points in float64, because float32 cannot hold them to full precision.
_FITS_FLOAT32 = 1e-30, 1e30


class Representation(OneToOneFeatureMixin, TransformerMixin, Component):
    """Base class: a scikit-learn transformer that keeps float32 and float64 and the natural shape of points.

    A subclass implements ``_transform`` and, if it depends on the data, ``_fit``.

    Attributes
    ----------
    group_params : dict
        Default parameters for a group that acts on the represented points, such as
        the sampling of images.
    takes_vectors : bool
        Whether points may be vectors; otherwise they need at least two axes.
    takes_cells : bool
        Whether points may be atoms in the cells of crystals, ``orbit.representations.neighbours.CELL``.
    precision : {"float32", "float64"}
        That of features on the command line, unless ``engine.dtype`` is given.
    shape_in_, shape_out_ : tuple of int
        Shapes of a point before and after.
    """

    group_params: ClassVar[dict[str, Any]] = {"sampling": "cartesian"}
    takes_vectors: ClassVar[bool] = True
    takes_cells: ClassVar[bool] = False
    precision: ClassVar[Literal["float32", "float64"]] = "float32"

    def fit(self, X, y=None):
        """Learn scales and shapes. ``X``: array, shape ``(n, *shape_in_)``."""
        self.check()
        X = validated_points(self, X, reset=True)
        if not self.takes_cells and has_cells(X):
            raise InputError(
                f"{self.label()} has no neighbours in other cells, which crystals need: expected "
                "representation=many_body, or atom_environment with dataset.per_atom"
            )
        self.shape_in_ = X.shape[1:]
        self._fit(X)
        self.shape_out_ = self._transform(X[:1]).shape[1:]
        return self

    def transform(self, X):
        """The represented points, shape ``(n, *shape_out_)``. ``X``: array, shape ``(n, *shape_in_)``."""
        check_is_fitted(self)
        return self._transform(validated_points(self, X, reset=False))

    def get_feature_names_out(self, input_features=None):
        """Names of the entries of a represented point, flattened.

        Vectors that remain vectors of equal length keep their names; other names are
        ``polar0``, ``polar1`` and so on.
        """
        check_is_fitted(self)
        if self.shape_in_ == self.shape_out_ and len(self.shape_in_) == 1:
            return super().get_feature_names_out(input_features)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(math.prod(self.shape_out_))], dtype=object)

    # scikit-learn stores and reads the setting of set_output here. Represented images stay arrays, because data frames
    # have two axes.
    @property
    def _sklearn_output_config(self) -> dict[str, str]:
        if len(getattr(self, "shape_out_", ())) > 1:
            return {"transform": "default"}
        return self.__dict__.setdefault("_sklearn_output_config", {})

    @_sklearn_output_config.setter
    def _sklearn_output_config(self, config: dict[str, str]) -> None:
        self.__dict__["_sklearn_output_config"] = config

    def _fit(self, X: np.ndarray) -> None:
        """Validate the points and set the fitted attributes of ``_transform``; nothing by default."""

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return X

    def _refuse(self, X: np.ndarray, expected: str) -> InputError:
        return InputError(
            f"{self.label()} takes {expected}, found points of shape {X.shape[1:]}: change dataset or representation"
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.two_d_array = self.takes_vectors
        tags.input_tags.three_d_array = True
        return tags


class ImageRepresentation(Representation):
    """A representation of images ``(height, width)`` or ``(height, width, channels)``."""

    takes_vectors = False

    def _check_images(self, X: np.ndarray, side: int) -> None:
        if X.ndim not in (3, 4) or min(X.shape[1:3]) < side:
            raise self._refuse(X, f"images of at least {side} x {side} pixels, with or without channels")


def mean_norm(X: np.ndarray) -> float:
    """The mean Euclidean norm of the points; 1 if they are all zero.

    Raises
    ------
    InputError
        If it exceeds float64.
    """
    norms = row_norms(X)
    with np.errstate(over="ignore"):
        mean = float(norms.mean())
        if math.isfinite(mean):
            return mean or 1.0
        exponent = np.frexp(float(norms.max()))[1]
        mean = float(np.ldexp(np.ldexp(norms.astype(np.float64), -exponent).mean(), exponent))
    if not math.isfinite(mean):
        raise InputError(f"the norm of point {norms.argmax()} exceeds float64: divide the points by a constant")
    return mean


def scale(X: np.ndarray, norm: Norm, mean: float) -> np.ndarray:
    """Points divided by ``mean`` or by their own norms; a zero point stays zero."""
    if norm == "none":
        return X
    if norm == "mean":
        divisor = mean if _FITS_FLOAT32[0] < mean < _FITS_FLOAT32[1] else np.float64(mean)
        return (X / divisor).astype(X.dtype, copy=False)
    norms = row_norms(X)
    return (X / np.where(norms > 0, norms, 1).reshape(-1, *[1] * (X.ndim - 1))).astype(X.dtype, copy=False)
