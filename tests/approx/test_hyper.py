"""The second layer."""

from typing import ClassVar

import numpy as np
import pytest

import orbit
from orbit import Engine, GaussianLayer, LinearLayer, ParameterError
from orbit.testing import HyperContract, oracles
from orbit.testing.samples import smooth_images, unit_mean_norm


class TestLinear(HyperContract):
    component = LinearLayer

    def test_returns_features_unchanged(self, X):
        np.testing.assert_array_equal(self.create().fit_transform(X), X)


class GaussianContract(HyperContract):
    """Inner products against the exact hyperkernel, with the parameters ``for_gram``."""

    approx: ClassVar[str]
    for_gram: ClassVar[dict[str, int]]
    gram_error: ClassVar[float]

    def create(self, **params):
        return GaussianLayer(approx=self.approx, **{"n_components": 12, "random_state": 0, **params})

    def test_inner_products_are_the_hyperkernel(self, X):
        second = self.create(**self.for_gram, lengthscale=0.8).fit_transform(X)
        expected = [[oracles.gaussian(x, z, 0.8) for z in X] for x in X]
        assert np.abs(second @ second.T - expected).max() < self.gram_error

    def test_the_median_is_that_of_the_features(self, X):
        distances = [np.linalg.norm(X[i] - X[j]) for i in range(len(X)) for j in range(i)]
        automatic = self.create().fit(X)
        assert automatic.map_.kernel_.lengthscale_ == pytest.approx(np.median(distances))

    def test_seeds_and_names(self, X):
        one, two, other = (self.create(random_state=seed).fit(X) for seed in (0, 0, 1))
        np.testing.assert_array_equal(one.transform(X), two.transform(X))
        assert np.abs(one.transform(X) - other.transform(X)).max() > 1e-3
        assert len(one.get_feature_names_out()) == one.transform(X).shape[1]

    def test_rules_are_passed_on(self, X):
        for kind, name in (("frequencies", "monte_carlo"), ("landmarks", "kmeans")):
            layer = orbit.build("hyper", "gaussian", approx=self.approx, n_components=12, **{kind: name}).fit(X)
            part = getattr(layer.map_, kind, None)
            assert part is None or part.name == name
        engine = Engine(workers=1)
        assert self.create(engine=engine).fit(X).map_.engine_ is engine


class TestGaussianByRandomFeatures(GaussianContract):
    approx = "rf"
    for_gram = {"n_components": 4000}
    gram_error = 0.05


class TestGaussianByNystrom(GaussianContract):
    approx = "nystrom"
    for_gram = {"n_components": 20}  # all points: exact
    gram_error = 1e-8


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lengthscale": 0.0}, "lengthscale: expected"),
        ({"approx": "exact"}, "approx: expected one of 'rf', 'nystrom'"),
        ({"frequencies": "random"}, "frequencies: expected one of auto, .*, found 'random'"),
        ({"landmarks": "all"}, "landmarks: expected one of .*uniform, found 'all'"),
    ],
)
def test_invalid_parameters_raise_errors_that_name_them(params, message):
    with pytest.raises(ParameterError, match=message):
        orbit.build("hyper", "gaussian", **params).fit(np.ones((3, 2)))


def test_the_hyperkernel_depends_on_the_distance_of_orbit_embeddings(rng):
    """Turned images have the same embedding, so the hyperkernel of an image and its turn is one."""
    X = unit_mean_norm(smooth_images(rng, 12, 8, 8))
    X = np.concatenate([X, np.rot90(X, axes=(1, 2))])
    orb = orbit.Orbit(orbit.build("group", "dihedral"))
    psi = orbit.build("approx", "rf", orbit=orb, n_components=50, random_state=0).fit_transform(X)
    second = GaussianLayer(approx="nystrom", n_components=24, random_state=0).fit_transform(psi)
    similar = second @ second.T
    np.testing.assert_allclose(np.diag(similar[:12, 12:]), 1, atol=1e-6)
    assert similar[:12, :12][~np.eye(12, dtype=bool)].max() < 0.999
