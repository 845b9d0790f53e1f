"""Contracts of representations and augmentations."""

from typing import ClassVar

import numpy as np
import pytest

from orbit.groups import Rotation
from orbit.testing.component import FLOATS, ComponentContract, TransformerContract


class RepresentationContract(TransformerContract):
    """A scikit-learn transformer that keeps precision and maps each input independently once fitted.

    Attributes
    ----------
    shape : shape of an input
    float32_error : largest difference of float32 results from float64 ones
    """

    kind = "representation"
    shape: ClassVar[tuple[int, ...]] = (5,)
    float32_error: ClassVar[float] = 1e-5

    @pytest.fixture
    def X(self, rng):
        return rng.random((7, *self.shape))

    def test_float32_is_close_to_float64(self, X):
        single, double = self.create().fit_transform(X.astype(np.float32)), self.create().fit_transform(X)
        np.testing.assert_allclose(single, double, atol=self.float32_error)

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
