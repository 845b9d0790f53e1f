"""Feature maps with encoders: psi(x) = sum_i w_i phi(E(g_i x)), by every approximation, and on the command line."""

import pickle

import numpy as np
import pytest
import torch

import orbit
from orbit import Engine, Exact, Gaussian, InputError, Nystrom, Orbit, RandomFourier, Rotation, VonMises
from orbit.encoders import Gradients, Layer, NoEncoder, Patches
from orbit.kernels.landmarks import KMeans, Uniform
from orbit.testing.samples import smooth_images

PATCHES = Patches([Layer(size=3, n_components=6)])


@pytest.fixture
def images(rng):
    return smooth_images(rng, 12, 9, 9)


def turns(size=5):
    return Orbit(Rotation(), VonMises(0.4), size=size, rule="quadrature")


def vectors(feature_map, X):
    """E(g_i x), shape (r, n, d)."""
    orb, encoder = feature_map.orbit_, feature_map.encoder_
    moved = orb.points(torch.from_numpy(X), slice(None))
    return np.stack([encoder.encode(each).numpy() for each in moved])


def encoded_kernel(feature_map, X, Z):
    """sum_ij w_i w_j k(E(g_i x), E(g_j z)) by explicit sums."""
    v, total = feature_map.orbit_.weights_, 0.0
    for a, at_x in zip(v, vectors(feature_map, X), strict=True):
        for b, at_z in zip(v, vectors(feature_map, Z), strict=True):
            total = total + a * b * feature_map.kernel_.gram(at_x, at_z)
    return total


@pytest.mark.parametrize(("of_engine", "of_matrix"), [(0, 0), (1, 0), (0, 1e9)])
@pytest.mark.parametrize("encoder", [PATCHES, Gradients()], ids=repr)
def test_exact_is_the_kernel_of_encoded_orbit_points(encoder, of_engine, of_matrix, images, monkeypatch):
    monkeypatch.setattr("orbit.approx.exact._ENCODED_SHARE", of_engine)
    monkeypatch.setattr("orbit.approx.exact._OF_MATRIX", of_matrix)
    exact = Exact(Gaussian(0.5), turns(), encoder=encoder, random_state=0).fit(images)
    expected = encoded_kernel(exact, images, images)
    np.testing.assert_allclose(exact.gram(images), expected, rtol=1e-10)
    np.testing.assert_allclose(exact.diagonal(images), expected.diagonal(), rtol=1e-10)
    psi = exact.transform(images)
    np.testing.assert_allclose(psi @ psi.T, expected, atol=1e-8)


@pytest.mark.parametrize(("of_matrix", "times"), [(0, 2), (1e9, 1)])
def test_exact_encodes_moved_points_once_where_they_are_small_beside_its_matrix(of_matrix, times, images, monkeypatch):
    encoded = list[int]()

    def encode(self, X):
        encoded.append(len(X))
        return X.flatten(1)

    monkeypatch.setattr("orbit.approx.exact._ENCODED_SHARE", 0)
    monkeypatch.setattr("orbit.approx.exact._OF_MATRIX", of_matrix)
    monkeypatch.setattr(Gradients, "encode", encode)
    exact = Exact(Gaussian(0.5), turns(), encoder=Gradients(), precomputed=True).fit(images)
    encoded.clear()
    exact.transform(images)
    assert sum(encoded) == times * len(images) * len(exact.orbit_.weights_)


@pytest.mark.parametrize("approx", [Nystrom, RandomFourier, Exact], ids=lambda cls: cls.name)
def test_without_a_group_each_point_of_the_fit_is_encoded_once(approx, images, monkeypatch):
    encoded, original = list[int](), Gradients.encode

    def encode(self, X):
        encoded.append(len(X))
        return original(self, X)

    monkeypatch.setattr(Gradients, "encode", encode)
    options = {"precomputed": True} if approx is Exact else {"n_components": 8}
    features = approx(encoder=Gradients(), random_state=0, **options)
    psi = np.asarray(features.fit_transform(images))
    assert sum(encoded) == len(images)
    again = pickle.loads(pickle.dumps(features))
    np.testing.assert_allclose(again.transform(images), psi, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("approx", [Nystrom, RandomFourier], ids=lambda cls: cls.name)
def test_new_values_in_the_array_of_the_fit_are_encoded(approx, images):
    features = approx(n_components=8, encoder=Gradients(), random_state=0)
    psi = features.fit_transform(images)
    images[:] = images[::-1].copy()
    np.testing.assert_allclose(features.transform(images), psi[::-1], rtol=1e-12, atol=1e-14)


def test_nystrom_with_all_orbit_points_is_exact(images):
    parts = {"encoder": PATCHES, "random_state": 0}
    nystrom = Nystrom(Gaussian(0.5), turns(), 60, Uniform("orbit"), **parts).fit(images)
    psi = nystrom.transform(images)
    np.testing.assert_allclose(psi @ psi.T, encoded_kernel(nystrom, images, images), atol=1e-7)


def test_landmarks_are_vectors_of_moved_points(images):
    for rule in (Uniform("orbit"), Uniform("data"), KMeans("orbit")):
        nystrom = Nystrom(Gaussian(0.5), turns(), 7, rule, encoder=PATCHES, random_state=0).fit(images)
        assert nystrom.landmarks_.shape == (7, nystrom.encoder_.n_outputs_)
        points = (
            vectors(nystrom, images) if rule.source == "orbit" else nystrom.encoder_.encode(torch.from_numpy(images))
        )
        distances = np.linalg.norm(np.asarray(points).reshape(-1, 1, points.shape[-1]) - nystrom.landmarks_, axis=2)
        if isinstance(rule, Uniform):
            assert distances.min(0).max() < 1e-12


def test_random_fourier_and_cdf_average_features_of_vectors(images):
    rf = RandomFourier(Gaussian(0.5), turns(), 40, encoder=PATCHES, random_state=0).fit(images)
    angles = vectors(rf, images) @ rf.frequencies_.T
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=2) / np.sqrt(40)
    np.testing.assert_allclose(rf.transform(images), np.tensordot(rf.orbit_.weights_, waves, 1), atol=1e-12)

    cdf = orbit.build("approx", "cdf", orbit=turns(), n_components=8, n_bins=4, encoder=PATCHES, random_state=0)
    psi = cdf.fit(images).transform(images)
    projections = vectors(cdf, images) @ cdf.templates_.T  # of vectors of norm one
    below = (projections[..., None] <= cdf.thresholds_) * cdf.scale_
    np.testing.assert_allclose(psi, np.tensordot(cdf.orbit_.weights_, below, 1).reshape(len(images), -1), atol=1e-12)


def test_the_identity_as_encoder_does_not_change_features(images):
    plain, none = (
        Nystrom(orbit=turns(), n_components=6, encoder=encoder, random_state=0).fit_transform(images)
        for encoder in (None, NoEncoder())
    )
    np.testing.assert_array_equal(none, plain)


def test_lengthscale_and_encoder_are_fitted_to_moved_points_for_any_orbit_size(images):
    maps = [Exact(Gaussian(), turns(size), encoder=PATCHES, random_state=0).fit(images) for size in (3, 9)]
    first, second = ([m.kernel_.lengthscale_, vectors(m, images)[0, 0]] for m in maps)
    assert first[0] == second[0]
    assert 0.01 < first[0] < 1.5  # vectors have norm one; images have several
    for m in maps:
        np.testing.assert_array_equal(m.encoder_.layers_[0].templates_, maps[0].encoder_.layers_[0].templates_)
    other = Exact(Gaussian(), turns(), encoder=PATCHES, random_state=1).fit(images)
    assert other.kernel_.lengthscale_ != first[0]


@pytest.mark.parametrize("approx", ["rf", "nystrom", "exact", "cdf"])
def test_features_depend_on_neither_tiles_nor_workers_and_survive_pickling(approx, images):
    X = np.concatenate([images] * 30).astype(np.float32)

    def features(**engine):
        m = orbit.build("approx", approx, orbit=turns(), encoder=PATCHES, engine=Engine(**engine), random_state=0)
        return m.fit(images.astype(np.float32))

    fitted = features(workers=1)
    psi = fitted.transform(X)
    np.testing.assert_allclose(psi[:12], psi[12:24], atol=1e-5)
    np.testing.assert_allclose(features(workers=2, memory=0.004).transform(X), psi, atol=1e-4)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(fitted)).transform(X), psi, atol=1e-6)


@pytest.mark.parametrize("path", ["template", "spectral"])
def test_other_paths_raise_with_an_encoder(path, images):
    rf = RandomFourier(orbit=turns(), n_components=5, encoder=PATCHES, engine=Engine(path=path), random_state=0)
    with pytest.raises(InputError, match=rf"engine.path={path} needs points without an encoder, found approx=rf"):
        rf.fit(images).transform(images)


def test_maps_without_encoders_reject_them():
    with pytest.raises(InputError, match="approx=skeleton has no parameter 'encoder'"):
        orbit.build("approx", "skeleton", encoder=PATCHES)
