"""Contract of encoders."""

import pickle
from typing import ClassVar

import numpy as np
import pytest
import torch

from orbit.core.errors import InputError
from orbit.testing.component import ComponentContract


class EncoderContract(ComponentContract):
    """A map from inputs to vectors, fitted without labels, that maps each input on its own.

    Attributes
    ----------
    shape : shape of an input

    Examples
    --------
    >>> import orbit
    >>> class TestNoEncoder(EncoderContract):
    ...     component = orbit.get("encoder", "none")
    >>> TestNoEncoder().test_wrong_shape_is_refused_after_fit(np.random.default_rng(0))
    """

    kind = "encoder"
    shape: ClassVar[tuple[int, ...]] = (6, 6)

    def inputs(self, rng: np.random.Generator, n: int = 5) -> np.ndarray:
        """Inputs of the contract, shape (n, *shape)."""
        return rng.random((n, *self.shape))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_vectors_have_the_declared_length_and_precision(self, rng, dtype):
        X = self.inputs(rng)
        encoder = self.create().fit(X, 0)
        vectors = encoder.encode(torch.from_numpy(X).to(dtype))
        assert vectors.shape == (5, encoder.n_outputs_)
        assert vectors.dtype == dtype
        np.testing.assert_allclose(vectors, encoder.encode(torch.from_numpy(X)), atol=1e-4)

    def test_points_are_mapped_one_by_one_and_not_modified(self, rng):
        X = self.inputs(rng)
        encoder, points = self.create().fit(X, 0), torch.from_numpy(X.copy())
        one_by_one = torch.cat([encoder.encode(points[i : i + 1]) for i in range(5)])
        np.testing.assert_allclose(one_by_one, encoder.encode(points), atol=1e-10)
        np.testing.assert_array_equal(points, X)

    def test_fitted_encoder_pickles_and_the_seed_fixes_it(self, rng):
        X = self.inputs(rng)
        one, two = (self.create().fit(X, 3) for _ in range(2))
        expected = one.encode(torch.from_numpy(X))
        for same in (two, pickle.loads(pickle.dumps(one))):
            np.testing.assert_array_equal(same.encode(torch.from_numpy(X)), expected)

    def test_wrong_shape_is_refused_after_fit(self, rng):
        encoder = self.create().fit(self.inputs(rng), 0)
        with pytest.raises(InputError, match=f"encoder={encoder.name} was fitted on points of shape"):
            encoder.encode(torch.zeros(2, self.shape[0] + 1, *self.shape[1:]))
