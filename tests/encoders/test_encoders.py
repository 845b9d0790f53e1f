"""Encoders: patch features against the exact compositional kernel, gradients, networks from ONNX files."""

import itertools
import pickle

import numpy as np
import oracles
import pytest
import torch
from scipy.spatial.distance import pdist

import orbit
from orbit import (
    Exact,
    Gaussian,
    InputError,
    NoisySort,
    ParameterError,
    Permutation,
    RandomFourier,
    Rotation,
    representations,
)
from orbit.core.grid import grid_axes
from orbit.encoders import (
    BySize,
    FittedEncoder,
    Gradients,
    GridPooling,
    Layer,
    MelSpectrogram,
    NoEncoder,
    Onnx,
    Patches,
    PointPairs,
    PrincipalComponents,
    Quantiles,
    Slopes,
    UnionEncoder,
    UpperTriangle,
)
from orbit.testing import ComponentContract, EncoderContract
from orbit.testing.samples import smooth_images


def encoded(encoder, X):
    return encoder.encode(torch.from_numpy(np.ascontiguousarray(X))).numpy()


def symmetric(rng, n, side):
    X = rng.random((n, side, side))
    return X + X.swapaxes(1, 2)


def test_no_encoder_flattens():
    X = np.arange(8.0).reshape(2, 2, 2)
    np.testing.assert_array_equal(encoded(NoEncoder().fit(X), X), X.reshape(2, 4))


def test_gradients_are_the_representation_of_moved_points(rng):
    for shape in ((9, 8), (7, 9, 3)):
        X = rng.random((4, *shape))
        encoder = Gradients(n_directions=4, norm="mean").fit(X)
        expected = representations.gradients.Gradients(n_directions=4, norm="mean").fit_transform(X)
        np.testing.assert_array_equal(encoded(encoder, X), expected.reshape(4, -1))
        assert encoder.n_outputs_ == expected[0].size
    assert Gradients().get_params() == representations.gradients.Gradients().get_params()
    with pytest.raises(InputError, match=r"^encoder=gradients takes images .* of at least 2 x 2 pixels, found vectors"):
        Gradients().fit(np.ones((3, 4)))


@pytest.mark.parametrize("encoder", [NoEncoder(), Patches([Layer(size=2, n_components=3)]), Gradients()], ids=repr)
def test_encode_outside_the_engine_returns_an_ordinary_tensor(encoder, rng):
    X = rng.random((3, 6, 6))
    points = torch.from_numpy(X)
    assert not encoder.fit(X, 0).encode(points).is_inference()
    np.testing.assert_array_equal(points.numpy(), X)
    copied = pickle.loads(pickle.dumps(encoder))
    assert not [key for key in vars(copied) if key.startswith("_kept")]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize(("bands", "frames", "window"), [(32, 20, 0.032), (5, 1, 0.01), (12, 9, 0.0801)])
def test_spectrograms_are_those_of_the_plain_formula(rng, bands, frames, window, dtype, tolerance):
    X = rng.standard_normal((3, 700)) * np.hanning(700) + np.sin(np.arange(700) / 3)
    X[1] *= 1e-3
    encoder = MelSpectrogram(bands, frames, window=window, floor=10.0)
    found = encoded(encoder.fit(X), X.astype(dtype))
    assert found.dtype == dtype
    settings = bands, frames, 8000.0, round(8000 * window), 10.0
    expected = np.stack([oracles.mel_spectrogram(x, *settings).ravel() for x in X])
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    assert expected.min() == 0 or frames == 1


@pytest.mark.parametrize("frequency", [300, 700, 1500, 3000])
def test_a_tone_has_its_maximum_in_the_band_of_its_frequency(frequency):
    tone = np.sin(2 * np.pi * frequency * np.arange(4000) / 8000)[None]
    encoder = MelSpectrogram(32, 20).fit(tone)
    picture = encoded(encoder, 0.2 * tone).reshape(32, 20)
    mel = 2595 * np.log10(1 + np.array([frequency, 4000]) / 700)
    expected = 31 - (mel[0] / mel[1] * 33 - 1)  # the highest band is the first row
    assert np.all(np.abs(picture.argmax(0) - expected) <= 1)
    assert picture.max() == 1
    assert picture.min() >= 0
    np.testing.assert_allclose(encoded(encoder, tone)[0], picture.ravel(), atol=1e-9, err_msg="loudness has no effect")


def test_silence_has_a_finite_spectrogram():
    assert not encoded(MelSpectrogram(8, 8).fit(np.zeros((2, 800))), np.zeros((2, 800))).any()


def test_spectrograms_need_a_window_of_samples():
    message = r"encoder=mel_spectrogram takes signals of at least 256 samples \(window=0.032 s, rate=8000\), found %s"
    for X, found in (
        (np.zeros((2, 255)), "vectors of length 255"),
        (np.zeros((2, 30, 30)), r"points of shape \(30, 30\)"),
    ):
        with pytest.raises(InputError, match=message % found):
            MelSpectrogram().fit(X)


@pytest.mark.parametrize(("keeps", "metric"), [("l2", "euclidean"), ("l1", "cityblock"), ("triangle", "cityblock")])
def test_upper_triangles_have_the_distances_that_they_keep(rng, keeps, metric):
    X = symmetric(rng, 6, 5)
    found = encoded(UpperTriangle(keeps=keeps).fit(X), X)
    assert found.shape == (6, 15)
    whole = X[:, *np.triu_indices(5)] if keeps == "triangle" else X.reshape(6, -1)
    np.testing.assert_allclose(pdist(found, metric), pdist(whole, metric))


def test_features_of_permuted_matrices_are_those_of_their_upper_triangles(rng):
    X = symmetric(rng, 30, 5)
    orb = orbit.Orbit(Permutation(mode="rows_columns"), NoisySort(0.3), size=20, rule="monte_carlo", random_state=0)
    whole, half = (Exact(Gaussian(2.0), orb, encoder=encoder).fit(X).gram(X) for encoder in (None, UpperTriangle()))
    np.testing.assert_allclose(half, whole, rtol=1e-10)


@pytest.mark.parametrize("shape", [(5,), (5, 4), (5, 5, 2), (5, 5)])
def test_upper_triangles_need_symmetric_matrices(rng, shape):
    with pytest.raises(InputError, match="encoder=upper_triangle takes symmetric matrices.*, found"):
        UpperTriangle().fit(rng.random((3, *shape)))


def test_upper_triangles_of_moved_matrices_that_are_not_symmetric_are_refused(rng):
    orb = orbit.Orbit(Rotation(), size=5, random_state=0)
    with pytest.raises(InputError, match="symmetric matrices, also after the group has acted, found points of shape"):
        RandomFourier(orbit=orb, encoder=UpperTriangle()).fit(symmetric(rng, 8, 5))


def pairs_by_loops(cloud, ranks, neighbors, normals):
    """The numbers of the pairs of points, by their definition; those of features, after the third column, are last."""
    places, features = cloud[:, :3], cloud[:, 3:]
    order = [sorted(range(len(places)), key=lambda j, x=x: np.linalg.norm(x - places[j])) for x in places]
    n = [np.linalg.svd(places[near[:neighbors]] - places[near[:neighbors]].mean(0))[2][-1] for near in order]
    radii = np.linalg.norm(places - places.mean(0), axis=1)
    spread = [np.linalg.norm(places[near[neighbors - 1]] - places[near[0]]) for near in order]
    found = []
    for i, rank in itertools.product(range(len(places)), ranks):
        j = order[i][rank]
        distance = np.linalg.norm(places[j] - places[i])
        angles = [abs(normal @ (places[j] - places[i])) / distance for normal in (n[i], n[j])]
        with_normals = [max(angles), min(angles), abs(n[i] @ n[j])]
        without = [both([v[i], v[j]]) for v in (radii, spread) for both in (max, min)]
        of_features = [both([v[i], v[j]]) for v in features.T for both in (max, min)]
        found.append([distance, *(with_normals if normals else without), *of_features])
    return np.array(found)


@pytest.mark.parametrize("normals", [True, False])
@pytest.mark.parametrize("columns", [2, 3, 5])
def test_products_of_clouds_are_the_mean_kernel_of_their_pairs(rng, columns, normals):
    X = rng.standard_normal((4, 30, columns))
    encoder = PointPairs(20_000, n_ranks=3, n_neighbors=6, lengthscale=1.5, normals=normals)
    vectors = encoded(encoder.fit(X, 0), X)
    pairs = np.stack([pairs_by_loops(cloud, (1, 15, 29), 6, normals) for cloud in X])
    pairs = (pairs - pairs.mean((0, 1))) / pairs.std((0, 1))
    without = pairs[..., : 4 if normals else 5]  # features: the mean of the kernels with them and without
    expected = [
        [np.mean([Gaussian(1.5).gram(p[i], p[j]).mean() for p in (pairs, without)]) for j in range(4)] for i in range(4)
    ]
    np.testing.assert_allclose(vectors @ vectors.T, expected, atol=5 * 20_000**-0.5)


@pytest.mark.parametrize("normals", [True, False])
@pytest.mark.parametrize(("any_size", "factor"), [(False, 1.0), (True, 1.0), (True, 7.0)])
def test_clouds_have_the_same_vector_in_any_order_at_any_place_turned_and_mirrored(rng, any_size, factor, normals):
    X = rng.standard_normal((3, 300, 4))  # more points than a block, with a feature
    moved = X[:, rng.permutation(300)]
    moved[..., :3] = factor * (moved[..., :3] @ np.linalg.qr(rng.standard_normal((3, 3)))[0] + rng.standard_normal(3))
    encoder = PointPairs(n_components=16, any_size=any_size, normals=normals).fit(X, 0)
    np.testing.assert_allclose(encoded(encoder, moved), encoded(encoder, X), atol=1e-10)


@pytest.mark.parametrize("normals", [True, False])
@pytest.mark.parametrize("cloud", [np.ones((6, 3)), np.repeat(np.eye(3), 2, axis=0)])
def test_equal_points_of_a_cloud_have_finite_vectors(cloud, normals):
    assert np.isfinite(encoded(PointPairs(any_size=True, normals=normals).fit(cloud[None], 0), cloud[None])).all()


@pytest.mark.parametrize("normals", [True, False])
def test_rows_of_zeros_at_the_end_of_a_cloud_are_no_points(rng, normals):
    X = rng.standard_normal((4, 30, 4))
    X[0, 20:], X[1, 1:], X[2] = 0, 0, 0
    encoder = PointPairs(32, n_ranks=3, n_neighbors=6, normals=normals).fit(X, 0)
    vectors = encoded(encoder, X)
    assert not vectors[1:3].any()
    pairs = pairs_by_loops(X[0, :20], (1, 10, 19), 6, normals)
    waves = (pairs - encoder.mean_) * encoder.scale_ @ encoder.frequencies_
    expected = np.concatenate([np.cos(waves).mean(0), np.sin(waves).mean(0)]) * 20 / 30 / 32**0.5
    np.testing.assert_allclose(vectors[0], expected, atol=1e-10)


def test_clouds_of_a_plane_may_have_features(rng):
    X = rng.standard_normal((4, 30, 3))
    turned = X.copy()
    turned[..., :2] = X[..., :2] @ np.array([[0.6, 0.8], [-0.8, 0.6]]) + 1
    encoder = PointPairs(16, coordinates=2).fit(X, 0)
    np.testing.assert_allclose(encoded(encoder, turned), encoded(encoder, X), atol=1e-10)
    other = np.concatenate([X[..., :2], 2 * X[..., 2:]], axis=2)
    assert np.abs(encoded(encoder, other) - encoded(encoder, X)).max() > 0.01


@pytest.mark.parametrize(("shape", "found"), [((5,), "vectors of length 5"), ((3, 3), "points of shape"), ((9, 1), "")])
def test_point_pairs_need_clouds_of_more_points_than_coordinates(shape, found):
    with pytest.raises(InputError, match=f"encoder=point_pairs takes clouds .* of two or more coordinates.*{found}"):
        PointPairs().fit(np.ones((4, *shape)))


@pytest.mark.parametrize("n", [12, 60])
def test_principal_components_are_those_of_the_centred_points(rng, n):
    X = rng.random((n, 6, 5)) * np.linspace(0.1, 3.0, 5) + 7
    encoder = PrincipalComponents(n_components=4).fit(X, 0)
    U, scales, V = np.linalg.svd(X.reshape(n, 30) - X.reshape(n, 30).mean(0), full_matrices=False)
    np.testing.assert_allclose(np.abs(encoded(encoder, X)), np.abs(U * scales)[:, :4], atol=1e-8)
    np.testing.assert_allclose(np.abs(encoder.components_ @ V[:4].T), np.eye(4), atol=1e-8)
    assert encoder.explained_variance_ratio_.sum() == pytest.approx((scales[:4] ** 2).sum() / (scales**2).sum())


@pytest.mark.parametrize("offset", [1e2, 1e3, 1e4])
def test_principal_components_of_float32_points_with_a_large_mean(rng, offset):
    X = (rng.standard_normal((300, 20)) * np.geomspace(1, 0.01, 20) + offset).astype(np.float32)
    encoder = PrincipalComponents(n_components=5).fit(X, 0)
    centred = X.astype(np.float64) - X.mean(0, dtype=np.float64)
    kept = np.square(centred @ encoder.components_.T).sum() / np.square(centred).sum()
    scales = np.linalg.svd(centred, compute_uv=False)
    assert kept == pytest.approx(np.square(scales[:5]).sum() / np.square(scales).sum(), abs=1e-4)
    assert encoder.explained_variance_ratio_.sum() == pytest.approx(kept, abs=1e-3)


@pytest.mark.parametrize(("components", "error"), [(64, 1e-10), (24, 0.02)])
def test_the_kernel_of_principal_components_is_that_of_moved_points_but_for_the_variance_left_out(
    rng, components, error
):
    X = smooth_images(rng, 100, 8, 8)
    X += 1e-3 * rng.standard_normal(X.shape)  # points of full rank, so that 64 components hold every moved point
    orb, encoder = orbit.Orbit(Rotation(), size=5), PrincipalComponents(components)
    plain, encoded = (Exact(Gaussian(2.0), orb, encoder=each).fit(X).gram(X) for each in (None, encoder))
    assert np.abs(encoded - plain).max() < error
    assert np.all(encoded >= plain - 1e-10)  # distances never grow


class TestNoEncoder(EncoderContract):
    component = NoEncoder


@pytest.mark.parametrize(
    ("shape", "length"),
    [
        ((63,), 63),
        ((64,), 2 * 4 * 32 * (3 + 2)),
        ((100, 6), 2 * 4 * 32 * (4 + 3)),
        ((15,), 15),
        ((8, 8), 64),
        ((28, 28), (7**2 + 6**2) * 32),
        ((48, 50, 3), 3 * 64),
        ((8, 8, 8), 2 * 64),
    ],
    ids=str,
)
def test_settings_follow_from_the_size(shape, length, rng):
    X = rng.standard_normal((70, *shape)).astype(np.float32)
    assert encoded(orbit.build("encoder", "by_size").fit(X, 0), X).shape == (70, length)


@pytest.mark.parametrize(
    ("shape", "given", "length"),
    [
        ((80,), {"series": "samples"}, 80),
        ((80,), {"series": "samples", "values": "beside"}, 80 + 32),
        ((80, 2), {"series": "slopes"}, 70 * 2),
        ((16,), {"series": "slopes"}, 6),
        ((16,), {"series": "patches"}, 2 * 4 * 32),
        ((16,), {"values": "alone"}, 32),
        ((15,), {"series": "patches"}, 15),
    ],
    ids=str,
)
def test_series_have_patches_or_places(shape, given, length, rng):
    X = rng.standard_normal((70, *shape))
    assert encoded(orbit.build("encoder", "by_size", axes=1, **given).fit(X, 0), X).shape == (70, length)


@pytest.mark.parametrize("shape", [(30,), (30, 2)], ids=str)
@pytest.mark.parametrize("size", [2, 5, 30])
def test_slopes_are_those_of_regression_lines(shape, size, rng):
    X = rng.standard_normal((4, *shape))
    series = X.reshape(4, 30, -1)
    starts, channels = range(30 - size + 1), range(series.shape[2])
    slopes = [[np.polyfit(np.arange(size), x[u : u + size, c], 1)[0] for u in starts for c in channels] for x in series]
    expected = np.array(slopes) / np.linalg.norm(slopes, axis=1)[:, None]
    np.testing.assert_allclose(encoded(Slopes(size).fit(X), X), expected, atol=1e-10)
    np.testing.assert_allclose(encoded(Slopes(size).fit(X), 3 * X + 7), expected, atol=1e-10)


def test_slopes_of_a_constant_are_zeros():
    X = np.full((3, 20), 1e6 + 0.1, dtype=np.float32)
    assert not encoded(Slopes().fit(X), X).any()


@pytest.mark.parametrize(
    ("shape", "message"),
    [((10,), "at least size=11 samples, .* found vectors of length 10"), ((20, 2, 2), "points of shape")],
    ids=str,
)
def test_slopes_take_series_that_are_long_enough(shape, message):
    with pytest.raises(InputError, match=message):
        Slopes().fit(np.zeros((3, *shape)))


def test_slopes_need_two_samples():
    with pytest.raises(ParameterError, match=r"encoder.size: expected at least 2 samples, found 1"):
        Slopes(1).check()


@pytest.mark.parametrize(
    ("shape", "given", "expected"),
    [
        ((47, 60, 3), {"values": None}, [(None, None)]),
        ((48, 60), {}, [(False, None), (True, None)]),
        ((48, 60, 3), {}, [(False, None), (True, "together"), (True, "apart"), (True, "both")]),
        ((48, 60, 3), {"textures": True}, [(True, "together"), (True, "apart"), (True, "both")]),
        ((48, 60, 3), {"channels": "apart"}, [(False, "apart"), (True, "apart")]),
        ((48, 60, 3), {"textures": False}, [(False, None)]),
        ((48, 60, 3), {"values": "alone"}, [(None, None)]),
        ((15,), {"values": None}, [(None, None)]),
        ((9, 9, 9), {}, [(None, None)] * 2),
        ((9, 9, 9), {"contrast": True}, [(None, None)]),
    ],
    ids=str,
)
def test_what_is_left_open_is_compared(shape, given, expected):
    compared = orbit.build("encoder", "by_size", **{"values": "none"} | given).compared(shape)
    assert [(encoder.textures, encoder.channels) for encoder in compared] == expected


@pytest.mark.parametrize(
    ("shape", "given", "key", "values"),
    [
        ((200, 2), {}, "series", ["patches", "patches", "samples", "slopes"]),
        ((64,), {"differences": False}, "series", ["patches", "samples", "slopes"]),
        ((63,), {}, "series", ["samples", "patches", "patches", "slopes"]),
        ((16, 2), {"series": "patches"}, "differences", [True, False]),
        ((200,), {"series": "samples"}, "values", ["none", "alone", "beside"]),
        ((63,), {"series": "slopes", "values": "beside"}, "values", ["beside"]),
        ((15,), {"series": "patches"}, "values", [None]),
        ((200,), {"values": "none"}, "differences", [True, False]),
        ((200, 2), {"series": "patches", "differences": True}, "values", ["none", "alone", "beside"]),
        ((200, 2), {"differences": True, "values": "beside"}, "values", ["beside"]),
        ((9, 9, 9, 2), {}, "values", ["none", "alone", "beside", "none", "beside"]),
        ((9, 9, 9, 2), {}, "contrast", [False, None, False, True, True]),
        ((9, 9, 9, 2), {"values": "beside"}, "contrast", [False, True]),
        ((48, 60), {}, "textures", [False, True]),
        ((48, 60), {"textures": True}, "contrast", [False, None, False, True, True]),
        ((48, 60), {"textures": True, "contrast": True}, "values", ["none", "alone", "beside"]),
        ((48, 60), {"textures": False}, "values", [None]),
        ((48, 60, 3), {"textures": True}, "channels", ["together", "apart", "both"]),
        ((48, 60, 3), {"textures": True, "channels": "apart"}, "contrast", [False, None, False, True, True]),
    ],
    ids=str,
)
def test_patches_are_compared_before_quantiles(shape, given, key, values):
    compared = orbit.build("encoder", "by_size", **given).compared(shape)
    assert [getattr(encoder, key) for encoder in compared] == values
    patches = [encoder for encoder in compared if encoder.values != "alone"]
    assert all(getattr(encoder, name) == value for encoder in patches for name, value in given.items())
    assert {repr(encoder) for encoder in compared if encoder.values == "alone"} <= {"BySize(values='alone')"}


def test_contrast_and_quantiles_must_be_clearly_better():
    compared = BySize(textures=True).compared((48, 60))
    ranked = sorted(compared, key=lambda encoder: encoder.complexity)
    assert [(encoder.values, bool(encoder.contrast)) for encoder in ranked] == [
        ("none", False),
        ("alone", False),
        ("none", True),
        ("beside", False),
        ("beside", True),
    ]


@pytest.mark.parametrize("shape", [(70, 2), (26, 26, 2), (48, 48, 2), (8, 8, 9, 2)], ids=str)
def test_settings_by_size_take_channels_apart(shape, rng):
    encoder = orbit.build("encoder", "by_size", channels="apart", axes=len(shape) - 1)
    fitted = encoder.fit(rng.standard_normal((70, *shape)), 0).encoder_
    for part in getattr(fitted, "encoders_", [fitted]):
        assert {layer.shape_in_[0] for layer in part.layers_} == {1}


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"series": None}, {"series": "patches"}),
        ({"series": "patches"}, {"series": "samples"}),
        ({"series": "patches", "values": "none"}, {"series": "slopes"}),
        ({"series": "patches", "values": "none"}, {"series": "patches", "values": "alone"}),
        ({"series": "patches", "values": "alone"}, {"series": "patches", "values": "beside"}),
    ],
    ids=str,
)
def test_what_says_more_must_be_clearly_better(less, more):
    one, other = (orbit.build("encoder", "by_size", **given) for given in (less, more))
    assert one.complexity < other.complexity


@pytest.mark.parametrize(
    ("series", "values", "expected"),
    [(None, None, False), ("patches", "none", False), ("samples", None, True), ("slopes", "none", True)]
    + [("slopes", "beside", False), ("samples", "alone", False)],
)
def test_samples_and_slopes_are_linear(series, values, expected):
    assert orbit.build("encoder", "by_size", series=series, values=values).is_linear is expected


def test_objects_of_any_size_have_about_as_many_positions(rng):
    encoder = orbit.build("encoder", "by_size", textures=False)
    assert not encoder.is_global((130, 120))
    parts = encoder.fit(rng.random((12, 130, 120)), 0).encoder_.encoders_
    fitted = [
        (part.downsample, layer.size, layer.stride, len(layer.windows_[1])) for part in parts for layer in part.layers_
    ]
    assert fitted == [(3, 3, 1, 7), (3, 5, 1, 6)]


def test_small_points_are_not_encoded():
    encoder = BySize()
    assert encoder.for_shape((23, 40)).is_identity
    assert not encoder.for_shape((24, 40)).is_identity


@pytest.mark.parametrize(
    ("shape", "expected"), [((8, 8), False), ((28, 28), False), ((64, 64, 3), True), ((100,), True)], ids=str
)
def test_one_window_spans_series_and_textures(shape, expected):
    assert BySize().is_global(shape) is expected


def test_parts_of_series_count_the_same(rng):
    X = rng.standard_normal((70, 80)).cumsum(1)
    encoder = BySize(values="beside").fit(X, 0).encoder_
    patches, values = encoder.encoders_
    assert [(each.layers_[0].size, each.differences) for each in patches.encoders_] == [
        *((size, differences) for differences in (False, True) for size in (9, 25))
    ]
    vectors = np.split(encoded(encoder, X), [patches.n_outputs_], axis=1)
    np.testing.assert_allclose(vectors[1], encoded(values, X) / np.sqrt(2), rtol=1e-12)
    assert [np.square(each).sum(1).mean() for each in vectors] == pytest.approx([0.5, 0.5])
    ends = np.cumsum([each.n_outputs_ for each in patches.encoders_])
    parts = np.split(vectors[0], ends[:-1], axis=1)
    assert [np.square(each).sum(1).mean() for each in parts] == pytest.approx([0.125] * 4)


@pytest.mark.parametrize("more", [{"unit_norm": False, "standardize": True}, {"reduce": 5}, {}], ids=str)
def test_patches_of_differences_are_those_of_the_differenced_points(rng, more):
    X = rng.standard_normal((30, 40, 2)).cumsum(1)
    one, other = (Patches([Layer(pooling=GridPooling(1))], axes=1, differences=each, **more) for each in (True, False))
    found, expected = encoded(one.fit(X, 0), X), encoded(other.fit(np.diff(X, axis=1), 0), np.diff(X, axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert one.mean_square(torch.from_numpy(X)) == pytest.approx(np.square(expected).sum(1).mean())


@pytest.mark.parametrize("shape", [(3,), (1,), (40, 2), (7, 6), (8, 8, 8, 2)], ids=str)
def test_quantiles_are_those_of_numpy(shape, rng):
    X = rng.standard_normal((20, *shape)) * 10 + 100
    encoder, axes = Quantiles(n_levels=9).fit(X), grid_axes(shape)
    nodes, weights = np.polynomial.legendre.leggauss(9)
    channels = X.reshape(20, int(np.prod(shape[:axes])), -1)
    expected = np.quantile(channels, (nodes + 1) / 2, axis=1).transpose(1, 2, 0)
    expected = (expected - expected.mean(0)) * np.sqrt(weights / 2)
    expected /= np.sqrt(np.square(expected).sum(2).mean(0))[:, None]
    np.testing.assert_allclose(encoded(encoder, X), expected.reshape(20, -1), atol=1e-10)


def test_squared_distances_of_quantiles_are_those_of_wasserstein(rng):
    X = rng.gamma(2, size=(40, 500)) * rng.uniform(0.5, 2, (40, 1)) + rng.standard_normal((40, 1))
    vectors = encoded(Quantiles().fit(X), X)
    ordered = np.sort(X, axis=1)
    exact = np.square(ordered[1:] - ordered[:1]).mean(1)
    found = np.square(vectors[1:] - vectors[:1]).sum(1)
    np.testing.assert_allclose(found / found.mean(), exact / exact.mean(), atol=0.03)


def test_quantiles_of_a_channel_that_is_everywhere_the_same_are_zero(rng):
    X = np.stack([rng.standard_normal((20, 9, 9)), np.full((20, 9, 9), 0.1)], -1)
    vectors = encoded(Quantiles(4).fit(X), X).reshape(20, 2, 4)
    assert np.any(vectors[:, 0])
    assert not np.any(vectors[:, 1])


class TestQuantiles(EncoderContract):
    component = Quantiles


class TestSlopes(EncoderContract):
    component, shape = Slopes, (20, 2)


class TestBySize(EncoderContract):
    component, shape = BySize, (24, 24)


class TestBySizeOfSeries(TestBySize):
    shape = (64,)


class TestGradients(EncoderContract):
    component = Gradients


class TestMelSpectrogram(EncoderContract):
    component, params = MelSpectrogram, {"bands": 6, "frames": 5, "window": 0.004}
    shape = (100,)


class TestPrincipalComponents(EncoderContract):
    component, params = PrincipalComponents, {"n_components": 3}


class TestPointPairs(EncoderContract):
    component, params, shape = PointPairs, {"n_components": 8}, (20, 3)


class TestPointPairsOfFeatures(EncoderContract):
    component, params, shape = PointPairs, {"n_components": 8, "normals": False}, (20, 5)


@pytest.mark.parametrize(("group", "rank"), [(Rotation(), 30), (orbit.build("group", "identity"), 5)])
def test_few_points_are_moved_several_times_for_the_encoder(rng, group, rank):
    """Five images have five principal directions, and their turned copies as many as asked for."""
    encoder = Patches([Layer(size=3, n_components=8)], reduce=30)
    features = RandomFourier(Gaussian(), orbit.Orbit(group, size=4), encoder=encoder, random_state=0)
    assert features.fit(rng.random((5, 8, 8))).encoder_.n_outputs_ == rank


def test_a_fitted_encoder_is_taken_as_it_is(rng):
    X = rng.random((30, 8, 8))
    orb = orbit.Orbit(Rotation(), size=4)
    first = RandomFourier(Gaussian(0.5), orb, encoder=Patches([Layer(size=3, n_components=8)]), random_state=0).fit(X)
    taken = RandomFourier(Gaussian(0.5), orb, encoder=FittedEncoder(first.encoder_), random_state=0).fit(X[:5])
    assert taken.encoder_.encoder is first.encoder_
    np.testing.assert_array_equal(taken.transform(X), first.transform(X))


def test_large_points_are_moved_as_often_as_memory_allows(rng, monkeypatch):
    monkeypatch.setattr("orbit.approx.base._ENCODER_NUMBERS", 2 * 5 * 64 + 1)
    encoder = Patches([Layer(size=3, n_components=8)], reduce=30)
    features = RandomFourier(Gaussian(), orbit.Orbit(Rotation(), size=4), encoder=encoder, random_state=0)
    assert features.fit(rng.random((5, 8, 8))).encoder_.n_outputs_ == 10  # of five images, twice


class TestUnion(EncoderContract):
    component, params = UnionEncoder, {"parts": [{"name": "pca", "n_components": 3}, {"name": "none"}]}


@pytest.mark.parametrize(("weights", "shares"), [(None, [1 / 3] * 3), ([4.0, 3.0, 1.0], [1 / 2, 3 / 8, 1 / 8])])
def test_a_union_has_the_mean_squared_distance_of_its_scaled_parts(rng, weights, shares):
    X = rng.random((40, 12, 12))
    parts = [Gradients(), {"name": "patches", "size": 3, "n_components": 8}, NoEncoder()]
    vectors = encoded(UnionEncoder(parts, weights).fit(X, 0), X)
    one = UnionEncoder(parts, weights).fit(X, 0)
    distances = 0.0
    for part, share in zip(one.encoders_, shares, strict=True):
        of_part = encoded(part, X)
        distances += share * pdist(of_part, "sqeuclidean") / np.square(of_part).sum(1).mean()
    np.testing.assert_allclose(pdist(vectors, "sqeuclidean"), distances, rtol=1e-6)
    joined = one.joined([torch.from_numpy(encoded(part, X)) for part in one.encoders_])
    np.testing.assert_allclose(joined, vectors, rtol=1e-6, atol=1e-12)
    equal = UnionEncoder([{"name": "patches"}] * 2).fit(X, 0).encoders_
    assert not np.array_equal(equal[0].layers_[0].templates_, equal[1].layers_[0].templates_)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], r"^encoder.parts: expected at least one section"),
        ([{"name": "none"}, {"name": "patches", "size": 0}], r"^encoder.parts\[1\]"),
        ([{"name": "patches", "size": 20}], r"^encoder.parts\[0\].size: expected at most 12"),
        ([{"size": 3}], r"^encoder.parts\[0\]: expected a section with the name of a encoder"),
    ],
)
def test_wrong_parts_are_refused_by_their_place(parts, message):
    with pytest.raises(InputError, match=message):
        UnionEncoder(parts).fit(np.zeros((3, 12, 12)))


def test_a_union_has_a_weight_for_each_part():
    with pytest.raises(InputError, match=r"^encoder.weights: expected one number for each of the 2 parts"):
        UnionEncoder([{"name": "none"}, {"name": "pca"}], [1.0]).fit(np.zeros((3, 12, 12)))


class TestUpperTriangle(EncoderContract):
    component = UpperTriangle

    def inputs(self, rng, n=5):
        return symmetric(rng, n, 6)


class TestOnnx(ComponentContract):  # with a file, in test_encoders_onnx.py
    kind, component, params = "encoder", Onnx, {"path": "network.onnx", "scale": [1.0, 2.0]}


def test_principal_components_are_precise_far_from_the_origin(rng):
    X = rng.standard_normal((300, 40)) + 1e4
    encoder = PrincipalComponents(n_components=40).fit(X, 0)
    np.testing.assert_allclose(encoded(encoder, X.astype(np.float32)), encoded(encoder, X), atol=0.004)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_equal_but_for_rounding_have_no_components(rng, dtype):
    X = (100 * (1 + np.finfo(dtype).eps * rng.integers(-1, 2, (50, 5)))).astype(dtype)
    np.testing.assert_array_equal(encoded(PrincipalComponents(n_components=3).fit(X, 0), X), 0)
    np.testing.assert_array_equal(PrincipalComponents(n_components=3).fit(X[[0] * 5], 0).explained_variance_ratio_, 0)
