"""The linear hyperkernel: no second layer."""

from __future__ import annotations

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from orbit.core.component import Component
from orbit.kernels.structure import OperatorFeatures, unpacked
from orbit.registry import register


@register("hyper", "linear")
class Linear(OneToOneFeatureMixin, TransformerMixin, Component):
    """The inner product of orbit-averaged features itself: they pass as they are.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> orbit.build("hyper", "linear").fit_transform(np.ones((3, 2))).shape
    (3, 2)
    """

    def points_wanted(self, n: int) -> int:
        """0: nothing is settled on points."""
        return 0

    def fit(self, X, y=None):
        """Note the number of features of ``X``, shape (n, d)."""
        validate_data(self, unpacked(X)[1], dtype=[np.float64, np.float32])
        return self

    def transform(self, X):
        """``X`` itself."""
        check_is_fitted(self)
        structure, X = unpacked(X)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return X if structure is None else OperatorFeatures(X, structure)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
