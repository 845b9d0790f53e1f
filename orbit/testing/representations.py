"""Contracts of representations and augmentations."""

from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from orbit.groups import Rotation
from orbit.testing.component import FLOATS, ComponentContract, no_warnings


class RepresentationContract(ComponentContract):
    """A scikit-learn transformer that keeps precision and maps each input independently once fitted.

    Attributes
    ----------
    shape : shape of an input
    """

    kind = "representation"
    shape: ClassVar[tuple[int, ...]] = (5,)

    @pytest.fixture
    def X(self, rng):
        return rng.random((7, *self.shape))

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_precision_is_kept(self, X, dtype):
        assert self.create().fit_transform(X.astype(dtype)).dtype == dtype

    def test_float32_is_close_to_float64(self, X):
        np.testing.assert_allclose(
            self.create().fit_transform(X.astype(np.float32)), self.create().fit_transform(X), atol=1e-5
        )

    def test_points_are_mapped_one_by_one(self, X):
        fitted = self.create().fit(X)
        whole = fitted.transform(X)
        assert len(whole) == len(X)
        np.testing.assert_allclose(np.concatenate([fitted.transform(x[None]) for x in X]), whole, atol=1e-12)

    def test_input_is_not_modified(self, X):
        X.flags.writeable = False
        before = X.copy()
        with no_warnings():
            self.create().fit_transform(X)
        np.testing.assert_array_equal(X, before)

    def test_inputs_of_zeros_stay_finite(self, X):
        assert np.isfinite(self.create().fit_transform(np.zeros_like(X))).all()
        X[3] = 0
        assert np.isfinite(self.create().fit_transform(X)).all()

    def test_transform_refuses_another_shape(self, X):
        fitted, message = self.create().fit(X), "was fitted on points of shape" if len(self.shape) > 1 else "features"
        with pytest.raises(ValueError, match=message):
            fitted.transform(np.ones((2, self.shape[0] + 1, *self.shape[1:])))
        with pytest.raises(ValueError, match="was fitted on points of shape"):
            fitted.transform(np.ones((2, self.shape[0], 1, *self.shape[1:])))

    def test_transform_before_fit_is_refused(self, X):
        with pytest.raises(NotFittedError):
            self.create().transform(X)

    def test_values_that_are_not_finite_are_refused(self, X):
        X.flat[4] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            self.create().fit(X)

    def test_fitted_component_pickles(self, X):
        fitted = self.create().fit(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))

    def test_group_parameters_are_allowed(self):
        group = Rotation(**{k: v for k, v in self.create().group_params.items() if k == "sampling"})
        group.check()


class AugmentationContract(ComponentContract):
    """A random augmentation of inputs ``(n, *shape)`` that keeps shape and dtype and uses the given generator.

    Attributes
    ----------
    shape : shape of an input
    """

    kind = "augmentation"
    shape: ClassVar[tuple[int, ...]] = (6, 5, 3)

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_shape_and_precision_are_kept_and_input_not_modified(self, rng, dtype):
        X = rng.random((4, *self.shape)).astype(dtype)
        before = X.copy()
        changed = self.create().apply(X, np.random.default_rng(0))
        assert (changed.shape, changed.dtype) == (X.shape, dtype)
        assert np.isfinite(changed).all()
        np.testing.assert_array_equal(X, before)

    def test_same_generator_same_changes(self, rng):
        X = rng.random((4, *self.shape))
        one, two = (self.create().apply(X, np.random.default_rng(3)) for _ in range(2))
        np.testing.assert_array_equal(one, two)
