"""Generated data with several outputs: the loaders' contract, and the targets."""

import numpy as np
import pytest
import torch

from orbit.data import VectorField
from orbit.testing import DatasetContract
from papers.low_rank import LowRankMultitask


class TestVectorField(DatasetContract):
    component, params = VectorField, {"size": 60, "test_size": 40}
    sizes = (60, 40)

    @pytest.mark.parametrize("field", ["curl_free", "divergence_free"])
    def test_field_is_the_gradient_of_five_bumps_or_its_rotation(self, rng, field):
        centres, signs = torch.tensor([[0.0, 0], [0, 1], [0, -1], [-1, 0], [1, 0]]), torch.tensor([1.0, 1, 1, -1, -1])
        potential = lambda x: (signs * (-(x - centres).square().sum(1) / (2 * 0.4**2)).exp()).sum()  # noqa: E731
        X = rng.uniform(-2, 2, (20, 2))
        gradient = torch.func.vmap(torch.func.grad(potential))(torch.from_numpy(X)).numpy()
        turn = np.eye(2) if field == "curl_free" else np.array([[0.0, -1], [1, 0]])
        np.testing.assert_allclose(VectorField(field, width=0.4).values(X), gradient @ turn.T, atol=1e-6)

    def test_noise_is_of_the_given_size_in_both_parts(self):
        loader = VectorField(noise=0.3, size=5000, test_size=5000)
        data = loader.load(0)
        for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
            assert (y - loader.values(X)).std() == pytest.approx(0.3, rel=0.05)


class TestLowRankMultitask(DatasetContract):
    component, params = LowRankMultitask, {"size": 60, "test_size": 40, "n_waves": 100}
    sizes = (60, 40)

    def test_outputs_are_one_function(self):
        data = self.create().load(0)
        assert np.linalg.matrix_rank(np.concatenate([data.y_train, data.y_test]), tol=1e-10) == 1

    def test_what_a_user_does_to_the_data_does_not_reach_the_next_load(self):
        noisy = self.create(noise=True)
        first, again = noisy.load(0), noisy.load(0)
        np.testing.assert_array_equal(first.y_train, again.y_train)
        first.X_train[:], first.y_train[:] = 0, 0
        np.testing.assert_array_equal(noisy.load(0).X_train, again.X_train)
        np.testing.assert_array_equal(noisy.load(0).y_train, again.y_train)
        assert (noisy.load(1).X_train != again.X_train).any()

    def test_noise_has_the_norm_of_the_paper(self):
        clean, noisy = (LowRankMultitask(noise, 100, 4000, 10).load(0) for noise in (False, True))
        np.testing.assert_array_equal(clean.X_train, noisy.X_train)
        np.testing.assert_array_equal(clean.y_test, noisy.y_test)
        both = LowRankMultitask(True, 100, 4000, 4000, test_noise=True).load(0)
        whole = LowRankMultitask(False, 100, 4000, 4000).load(0)
        parts = (both.y_train - whole.y_train, both.y_test - whole.y_test)
        first, second = (np.linalg.norm(np.cov(part.T), 2) for part in parts)
        assert second == pytest.approx(first, rel=0.1)
        covariance = np.cov((noisy.y_train - clean.y_train).T)
        spread = np.concatenate([clean.y_train, clean.y_test]).var(0).mean()
        assert np.linalg.norm(covariance, 2) == pytest.approx(np.sqrt(spread), rel=0.1)
