"""Contracts of kernels: values, blocks of columns, spectra, invariance."""

from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from orbit.core.errors import InputError
from orbit.groups import Identity, Rotation
from orbit.kernels import Polynomial
from orbit.testing.component import ComponentContract


class KernelContract(ComponentContract):
    """A positive semidefinite kernel on vectors.

    A subclass supplies a kernel whose parameters do not depend on data, and its formula ``evaluate``.

    Attributes
    ----------
    n_features : length of the vectors
    far_error : tolerance of float32 far from the origin

    Examples
    --------
    >>> import orbit
    >>> class TestExponential(KernelContract):
    ...     component = orbit.kernels.Matern
    ...     params = {"lengthscale": 2.0, "nu": 0.5}
    ...     def evaluate(self, x, z):
    ...         return np.exp(-np.linalg.norm(x - z) / 2.0)
    >>> X, Z = np.random.default_rng(0).standard_normal((2, 4, 5))
    >>> TestExponential().test_gram_is_the_formula(X, Z)
    """

    kind = "kernel"
    n_features: ClassVar[int] = 5
    far_error: ClassVar[dict[str, Any]] = {"rtol": 1e-7, "atol": 2e-4}

    def evaluate(self, x: np.ndarray, z: np.ndarray) -> float:
        """k(x, z) by its formula."""
        raise self.lacks("evaluate", "k(x, z) by its formula")

    def oracle(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.array([[self.evaluate(x, z) for z in Z] for x in X])

    @pytest.fixture
    def X(self, rng):
        return rng.standard_normal((9, self.n_features))

    @pytest.fixture
    def Z(self, rng):
        return rng.standard_normal((7, self.n_features)) + 0.3

    def test_gram_is_the_formula(self, X, Z):
        np.testing.assert_allclose(self.create().gram(X, Z), self.oracle(X, Z), rtol=1e-10, atol=1e-12)

    def test_gram_is_symmetric_positive_semidefinite(self, X):
        K = self.create().gram(X)
        np.testing.assert_allclose(K, K.T, atol=1e-13)
        assert np.linalg.eigvalsh(K).min() > -1e-12
        np.testing.assert_allclose(K, self.create().gram(X, X), atol=1e-13)

    def test_points_of_other_shapes_are_refused(self, X):
        with pytest.raises(InputError, match=f"Z: expected points of {self.n_features} numbers.*{self.n_features + 1}"):
            self.create().gram(X, np.ones((4, self.n_features + 1)))
        with pytest.raises(InputError, match="X: expected an array of points, found one of shape"):
            self.create().gram(X[:0])

    def test_points_of_any_shape_are_flattened(self, X):
        np.testing.assert_array_equal(self.create().gram(X[..., None]), self.create().gram(X))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_columns_do_not_depend_on_blocks(self, X, Z, dtype):
        A, B = torch.from_numpy(X).to(dtype), torch.from_numpy(Z).to(dtype)
        columns = self.create().fit(X).against(B)
        whole = torch.empty(len(A), len(B), dtype=dtype)
        returned = columns(A, slice(0, len(B)), whole)
        assert returned.data_ptr() == whole.data_ptr()
        np.testing.assert_allclose(whole, self.oracle(X, Z), atol=1e-12 if dtype == torch.float64 else 1e-5)
        for rows, part in ((slice(0, 4), slice(0, 3)), (slice(4, 9), slice(3, 7))):
            piece = columns(A[rows], part, torch.empty(rows.stop - rows.start, part.stop - part.start, dtype=dtype))
            np.testing.assert_allclose(piece, whole[rows, part], atol=1e-12 if dtype == torch.float64 else 1e-6)

    def test_float32_is_accurate_far_from_the_origin(self, X, Z):
        A, B = (torch.from_numpy((P + 100).astype(np.float32)) for P in (X, Z))
        expected = self.oracle(A.double().numpy(), B.double().numpy())
        values = self.create().fit(X).against(B)(A, slice(0, len(B)), torch.empty(len(A), len(B)))
        np.testing.assert_allclose(values, expected, **self.far_error)

    def test_fit_changes_no_parameter(self, X):
        kernel = self.create()
        before = repr(kernel)
        kernel.gram(X)
        kernel.fit(X, 0)
        assert repr(kernel) == before

    def test_mean_wave_over_the_spectrum_is_the_kernel(self, X, Z):
        kernel = self.create().fit(X)
        if not kernel.has_spectrum:
            with pytest.raises(InputError, match=f"kernel={kernel.name} is not shift invariant"):
                kernel.sample_spectrum(3, self.n_features, np.random.default_rng(0))
            return
        size = 40_000
        frequencies = kernel.sample_spectrum(size, self.n_features, np.random.default_rng(0))
        assert frequencies.shape == (size, self.n_features)
        for x, z in zip(X, Z, strict=False):
            waves = np.cos(frequencies @ (x - z))
            assert waves.mean() == pytest.approx(self.evaluate(x, z), abs=5 * waves.std() / np.sqrt(size) + 1e-12)

    @pytest.mark.parametrize(
        ("group", "shape"),
        [(Identity(), (3, 5)), (Rotation("polar"), (3, 5)), (Rotation("polar"), (3, 6)), (Rotation(), (6, 6))],
        ids=str,
    )
    def test_is_invariant_under_only_where_it_holds(self, rng, group, shape):
        kernel = self.create()
        if not kernel.is_invariant_under(group, shape):
            return
        X = rng.standard_normal((5, *shape))
        moved = group.act(np.array([0.7]) if isinstance(group, Rotation) else group.identity(), X)[0]
        np.testing.assert_allclose(kernel.gram(moved), kernel.gram(X), atol=1e-10)


class DotProductKernelContract(KernelContract):
    """A kernel of inner products: far from the origin its values are large, so errors are tested relative to them."""

    far_error = {"rtol": 2e-4}


class OperatorKernelContract(ComponentContract):
    """A matrix-valued kernel K(x, z) = K0(x - z) with a Gaussian base of lengthscale 1.3.

    A subclass supplies the kernel and its formula ``evaluate``.
    """

    kind = "kernel"
    n_features: ClassVar[int] = 3

    def evaluate(self, delta: np.ndarray) -> np.ndarray:
        """K0(delta) by its formula, shape ``(d, d)``."""
        raise self.lacks("evaluate", "K0(delta) by its formula")

    @pytest.fixture
    def delta(self, rng):
        return np.concatenate([np.zeros((1, self.n_features)), rng.standard_normal((6, self.n_features))])

    def test_signature_is_the_formula(self, delta):
        kernel = self.create().fit(delta)
        np.testing.assert_allclose(kernel.signatures(delta), [self.evaluate(x) for x in delta], atol=1e-13)

    def test_mean_wave_is_the_signature(self, delta):
        kernel, size = self.create().fit(delta), 40_000
        W = kernel.base_.sample_spectrum(size, self.n_features, np.random.default_rng(0))
        A = kernel.spectral_matrices(W)
        for x, exact in zip(delta, kernel.signatures(delta), strict=True):
            draws = np.cos(W @ x)[:, None, None] * A
            np.testing.assert_array_less(abs(draws.mean(0) - exact), 5 * draws.std(0) / np.sqrt(size) + 1e-12)

    def test_gram_is_symmetric_positive_semidefinite(self, delta):
        K = self.create().fit(delta).gram(delta)
        assert K.shape == (len(delta) * self.n_features,) * 2
        np.testing.assert_allclose(K, K.T, atol=1e-12)
        assert np.linalg.eigvalsh(K).min() > -1e-10

    def test_a_base_without_spectrum_is_refused(self):
        kernel = self.create().set_params(base=Polynomial(), lengthscale=None)
        with pytest.raises(InputError, match="not shift invariant"):
            kernel.check()

    def test_fit_changes_no_parameter(self, delta):
        kernel = self.create()
        before = repr(kernel)
        kernel.fit(delta, 0)
        assert repr(kernel) == before
