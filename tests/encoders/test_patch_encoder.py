"""Patch features: the exact compositional kernel, normalisation, pooling, reduction, errors."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import ndimage

import orbit
from orbit import Gaussian, Layer, Matern, NoPooling, Patches, Polynomial, RationalQuadratic
from orbit.encoders.positions import Positions
from orbit.kernels.landmarks import KMeans, Leverage, RPCholesky, Uniform
from orbit.testing import EncoderContract
from orbit.testing.samples import smooth_images

DEFAULTS = {key: parameter.default for key, parameter in Layer.config_parameters().items()}


def patches_of(**options):
    """The encoder by its keys of the configuration."""
    return orbit.build("encoder", "patches", **options)


def encoded(encoder, X):
    return encoder.encode(torch.from_numpy(np.ascontiguousarray(X))).numpy()


def kappa(t, options):
    """The kernel on the sphere."""
    t = np.clip(t, -1, 1)
    if options["kernel"] == "exponential":
        return np.exp(options["beta"] * (t - 1))
    theta = np.arccos(t)
    if options["kernel"] == "arccos0":
        return 1 - theta / math.pi
    return (np.sin(theta) + (math.pi - theta) * t) / math.pi


def windows(options, length):
    """Pooling weights by the definition, a list of windows."""
    if options["pooling"] == "none":
        return np.eye(length)
    if options["pooling"] == "mean":
        s = options["pool_stride"]
        return [
            [float(u // s == c) / len(range(c * s, min(length, (c + 1) * s))) for u in range(length)]
            for c in range(-(-length // s))
        ]
    if options["pooling"] == "grid":
        cells = [math.floor(u * options["cells"] / length) for u in range(length)]
        return [[float(cell == c) / cells.count(c) for cell in cells] for c in range(options["cells"])]
    s, width = options["pool_stride"], options["pool_width"] or options["pool_stride"] / math.sqrt(2)
    count = (length - 1) // s + 1
    first = (length - 1 - s * (count - 1)) / 2
    rows = [[math.exp(-((u - first - s * c) ** 2) / (2 * width**2)) for u in range(length)] for c in range(count)]
    return [[weight / sum(row) for weight in row] for row in rows]


def layer_kernel(K, options):
    """The kernel K[x, z, i, j, k, l] of x at (i, j) and z at (k, l) after a layer, from that of the maps before."""
    size, stride = options["size"], options["stride"]
    rows, columns = ((side - size) // stride + 1 for side in K.shape[2:4])
    down, across = (slice(None, n * stride, stride) for n in (rows, columns))
    moved = (K[:, :, i:, j:, i:, j:][:, :, down, across, down, across] for i in range(size) for j in range(size))
    products = sum(moved)
    norms = np.sqrt(np.einsum("xxijij->xij", products).clip(0))
    lengths = np.einsum("xij,zkl->xzijkl", norms, norms)
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    values = np.where(lengths > 0, kappa(cosines, options) * (lengths if options["homogeneous"] else 1), 0)
    R, C = np.array(windows(options, rows)), np.array(windows(options, columns))
    return np.einsum("ai,bj,ck,dl,xzijkl->xzabcd", R, C, R, C, values, optimize=True)


def exact_gram(X, layers):
    """sum_c k(x, z; c, c) over positions c of the last layer."""
    images = X if X.ndim == 4 else X[..., None]
    K = np.einsum("xijc,zklc->xzijkl", images, images)
    for options in layers:
        K = layer_kernel(K, options)
    return np.einsum("xzijij->xz", K)


ONE_LAYER = [
    {"size": 3},
    {"size": 3, "stride": 2, "pooling": "none"},
    {"size": 2, "kernel": "arccos1", "pooling": "mean", "pool_stride": 2},
    {"size": 2, "kernel": "arccos0", "pooling": "grid", "cells": 2},
    {"size": 3, "pooling": "gaussian", "pool_stride": 2, "pool_width": 0.8, "beta": 1.5},
    {"size": 3, "homogeneous": False, "pooling": "mean", "pool_stride": 5},
]


@pytest.mark.parametrize("changes", ONE_LAYER, ids=str)
@pytest.mark.parametrize("shape", [(6, 7), (5, 6, 2)], ids=str)
def test_all_patches_as_landmarks_give_the_compositional_kernel(changes, shape, rng):
    X = rng.standard_normal((3, *shape))
    encoder = patches_of(**changes, n_components=1000, landmarks="uniform", unit_norm=False).fit(X, random_state=0)
    found = encoded(encoder, X)
    np.testing.assert_allclose(found @ found.T, exact_gram(X, [DEFAULTS | changes]), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("changes", ONE_LAYER[:2], ids=str)
def test_channels_apart_have_the_sum_of_their_kernels(changes, rng):
    X = rng.standard_normal((3, 6, 7, 3))
    options = {"n_components": 1000, "landmarks": "uniform", "unit_norm": False, **changes}
    apart = sum(exact_gram(X[..., c], [DEFAULTS | changes]) for c in range(3))
    expected = {"apart": apart, "both": apart + exact_gram(X, [DEFAULTS | changes])}
    for channels, gram in expected.items():
        found = encoded(patches_of(channels=channels, **options).fit(X, random_state=0), X)
        np.testing.assert_allclose(found @ found.T, gram, rtol=1e-9, atol=1e-11)


def test_a_single_channel_is_neither_apart_nor_together(rng):
    X = smooth_images(rng, 20, 9, 9)
    single, *others = (encoded(patches_of(channels=each).fit(X, 0), X) for each in ("together", "apart", "both"))
    for other in others:
        np.testing.assert_array_equal(other, single)


@pytest.mark.parametrize(
    "layers",
    [
        [{"size": 2, "pool_stride": 2}, {"size": 2, "kernel": "arccos1", "pooling": "mean", "pool_stride": 2}],
        [{"size": 3, "pooling": "none", "kernel": "arccos1"}, {"size": 2, "beta": 2.0, "pooling": "grid", "cells": 1}],
        [{"size": 2, "pooling": "mean", "pool_stride": 1}, {"size": 2, "stride": 2}, {"size": 1, "beta": 0.5}],
    ],
    ids=str,
)
def test_layers_of_full_rank_give_the_kernel_of_the_kernel(layers, rng):
    X = rng.standard_normal((2, 6, 5))
    encoder = patches_of(layers=layers, n_components=1000, landmarks="uniform", unit_norm=False).fit(X, random_state=0)
    found = encoded(encoder, X)
    np.testing.assert_allclose(found @ found.T, exact_gram(X, [DEFAULTS | each for each in layers]), rtol=1e-8)


def strided_patches(X, axes, size, stride, dilation, padding):
    """Patches by the definition, shape (n, positions, d); any number of axes."""
    reach = (size - 1) * dilation
    X = X.reshape(*X.shape[: axes + 1], -1)
    if padding != "none":
        width = [(0, 0), *[(reach // 2, reach - reach // 2)] * axes, (0, 0)]
        X = np.pad(X, width, {"zero": "constant"}.get(padding, padding))
    starts = itertools.product(*(range(0, side - reach, stride) for side in X.shape[1 : axes + 1]))
    found = [X[:, *(slice(at, at + reach + 1, dilation) for at in place)].reshape(len(X), -1) for place in starts]
    return np.stack(found, axis=1)


@pytest.mark.parametrize("dilation", [1, 2, [1, 2]], ids=str)
@pytest.mark.parametrize(
    ("shape", "axes", "options"),
    [
        ((20,), 1, {"size": 4, "stride": 2}),
        ((20, 3), 1, {"size": 3, "padding": "wrap", "stride": 3}),
        ((7, 9), 2, {"size": 3, "padding": "zero"}),
        ((9, 8, 2), 2, {"size": 3, "stride": 2, "padding": "reflect"}),
        ((8, 8, 8), 3, {"size": 3, "stride": 2, "padding": "edge"}),
        ((6, 5, 5, 2), 3, {"size": 2}),
    ],
    ids=str,
)
def test_patches_along_any_number_of_axes(shape, axes, options, dilation, rng):
    """All patches as landmarks: the sum over pairs of positions of |p| |q| kappa, for each dilation."""
    X = rng.standard_normal((3, *shape))
    settings = {"n_components": 5000, "landmarks": "uniform", "pooling": "grid", "cells": 1, "unit_norm": False}
    found = encoded(patches_of(**options, **settings, dilation=dilation).fit(X, 0), X)
    expected = 0.0
    for step in dilation if isinstance(dilation, list) else [dilation]:
        patches = strided_patches(X, axes, **({"stride": 1, "padding": "none"} | options | {"dilation": step}))
        products = np.einsum("xpd,zqd->xzpq", patches, patches)
        norms = np.linalg.norm(patches, axis=2)
        lengths = np.einsum("xp,zq->xzpq", norms, norms)
        expected = expected + (lengths * np.exp(4 * (products / lengths - 1))).mean((2, 3))
    np.testing.assert_allclose(found @ found.T, expected, rtol=1e-7)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((30,), 1), ((31, 2), 1), ((14, 17), 2), ((16, 15, 3), 2), ((10, 8, 9), 3), ((8, 9, 8, 2), 3)],
    ids=str,
)
def test_downsampled_points_are_means_over_blocks_about_the_middle(shape, axes, rng):
    X = rng.standard_normal((6, *shape))
    blocks = X
    for axis in range(1, axes + 1):
        count = shape[axis - 1] // 3
        kept = np.split(blocks, [(shape[axis - 1] - 3 * count) // 2], axis)[1]
        kept = kept.take(np.arange(3 * count), axis)
        blocks = kept.reshape(*kept.shape[:axis], count, 3, *kept.shape[axis + 1 :]).mean(axis + 1)
    layer = Layer(2, n_components=8, pooling=NoPooling())
    one = Patches([layer], axes=axes, downsample=3).fit(X, 0).encode(torch.from_numpy(X))
    other = Patches([layer], axes=axes).fit(blocks, 0).encode(torch.from_numpy(blocks))
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(("shape", "axes"), [((30,), 1), ((20, 2), 1), ((15, 16, 3), 2), ((9, 10, 9), 3)], ids=str)
def test_blurred_patches_are_those_of_gaussian_means(shape, axes, rng):
    X = rng.standard_normal((3, *shape))
    filtered = [
        ndimage.gaussian_filter(each, 0.5 * 3, mode="constant", truncate=20, axes=range(1, axes + 1))
        for each in (X, np.ones_like(X))
    ]
    means = filtered[0] / filtered[1]
    settings = {
        "size": 3,
        "n_components": 5000,
        "landmarks": "uniform",
        "pooling": "grid",
        "cells": 1,
        "unit_norm": False,
    }

    def gram(points, **options):
        vectors = encoded(patches_of(**settings, **options).fit(points, 0), points)
        return vectors @ vectors.T

    # entries next to each other have no mean
    expected = gram(X) + gram(means, dilation=4)
    np.testing.assert_allclose(gram(X, dilation=[1, 4], blur=0.5), expected, rtol=1e-7)


@pytest.mark.parametrize("kernel", ["exponential", "rectified"])
@pytest.mark.parametrize(("shape", "cells"), [((19,), 2), ((9, 8), [1, 3]), ((8, 8, 8), [2, 1, 3])], ids=str)
def test_statistics_of_similarities_in_cells(shape, cells, kernel, rng, monkeypatch):
    monkeypatch.setattr("orbit.encoders.layer._TILE_NUMBERS", 300)  # several strips and blocks
    X = rng.standard_normal((4, *shape))
    options = {"size": 3, "n_components": 6, "unit_norm": False, "kernel": kernel}
    names = ["maximum", "mean", "positive", "share"]
    encoder = patches_of(**options, pooling="grid", cells=cells, statistics=names).fit(X, 0)
    [layer] = encoder.layers_
    patches = strided_patches(X, len(shape), size=3, stride=1, dilation=1, padding="none")
    norms = np.linalg.norm(patches, axis=2)[..., None]
    if kernel == "exponential":
        directions = layer.templates_[0][:, :-1] / (4 / np.log(2))  # exponents are of base two
        similarities = norms * np.exp(4 * (patches / norms @ directions.T - 1))
        features = similarities @ layer.linear_.T
    else:
        products = patches / norms @ layer.templates_[0].T
        similarities = norms * np.concatenate([np.maximum(products - 0.1, 0), np.maximum(-products - 0.1, 0)], 2)
        features = similarities
    low, high = np.quantile(similarities, [0.7, 0.9], axis=(0, 1))  # all patches are in the sample
    counts = [cells] * len(shape) if isinstance(cells, int) else cells
    cell_of = [[u * n // (side - 2) for u in range(side - 2)] for side, n in zip(shape, counts, strict=True)]
    cell_of = [*itertools.product(*cell_of)]
    expected = []
    for point, whitened in zip(similarities, features, strict=True):
        found = {name: [] for name in names}
        for cell in sorted(set(cell_of)):
            rows = [i for i, each in enumerate(cell_of) if each == cell]
            found["maximum"].append([max(point[i, j] for i in rows) for j in range(len(low))])
            found["mean"].append([sum(whitened[i, j] for i in rows) / len(rows) for j in range(whitened.shape[1])])
            found["positive"].append(
                [sum(max(point[i, j] - low[j], 0) for i in rows) / len(rows) for j in range(len(low))]
            )
            shares = [
                [min(max((point[i, j] - low[j]) / (high[j] - low[j]), 0), 1) for i in rows] for j in range(len(low))
            ]
            found["share"].append([sum(each) / len(rows) for each in shares])
        expected.append(np.concatenate([np.array(found[name]).T.ravel() for name in names]))
    np.testing.assert_allclose(encoded(encoder, X), expected, rtol=1e-7, atol=1e-10)


def test_a_reversal_of_series_patches_is_averaged(rng):
    X = rng.standard_normal((3, 12, 2))
    options = {"size": 12, "pooling": "none", "n_components": 3, "group": {"name": "reflection", "axis": 0}}
    encoder = patches_of(**options).fit(X, random_state=0)
    np.testing.assert_allclose(encoded(encoder, X[:, ::-1]), encoded(encoder, X), rtol=1e-9)


def test_axes_decide_what_is_a_channel(rng):
    X = rng.standard_normal((4, 9, 9))
    as_series = patches_of(size=3, axes=1, n_components=5).fit(X, 0)
    assert as_series.layers_[0].shape_in_ == (9, 9)
    assert patches_of(size=3, n_components=5).fit(X, 0).layers_[0].shape_in_ == (1, 9, 9)


def normalised_patches(X, options):
    """Patches before the division by the norm, shape (n, rows, columns, d), d in the order channels, rows, columns."""
    images = X if X.ndim == 4 else X[..., None]
    size = options["size"]
    found = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    patches = found.reshape(*found.shape[:3], -1, size**2)
    means = patches.mean(-1 if options["channel_means"] else (-2, -1), keepdims=True)
    patches = (patches - means).reshape(*found.shape[:3], -1)
    if options["normalization"] == "mean":
        return patches
    variances = np.square(patches).mean(-1, keepdims=True)
    patches = patches / np.sqrt(variances + options["contrast"] ** 2 * variances.mean())
    if options["normalization"] == "contrast":
        return patches
    flat = patches.reshape(-1, patches.shape[-1])
    covariance = np.cov(flat.T, bias=True) + options["whitening"] * np.eye(flat.shape[1])
    values, vectors = np.linalg.eigh(covariance)
    return (patches - flat.mean(0)) @ (vectors / np.sqrt(values)) @ vectors.T


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("normalization", ["mean", "contrast", "whitening"])
@pytest.mark.parametrize(("shape", "channel_means"), [((6, 7), True), ((5, 6, 3), True), ((5, 6, 3), False)], ids=str)
def test_patches_are_normalised_as_the_formula_says(normalization, shape, channel_means, homogeneous, rng):
    X = rng.standard_normal((4, *shape)) + np.arange(shape[-1])
    options = {"size": 3, "normalization": normalization, "pooling": "none", "homogeneous": homogeneous}
    options["channel_means"] = channel_means
    encoder = patches_of(**options, n_components=1000, landmarks="uniform", unit_norm=False).fit(X, random_state=0)
    found = encoded(encoder, X)
    patches = normalised_patches(X, DEFAULTS | options)
    patches = patches.reshape(len(X), -1, patches.shape[-1])
    norms = np.linalg.norm(patches, axis=2, keepdims=True)
    units = patches / norms
    values = np.exp(4.0 * (np.einsum("xpd,zpd->xzp", units, units) - 1))  # the same position in both
    if homogeneous:
        values *= np.einsum("xpd,zpd->xzp", norms, norms)
    np.testing.assert_allclose(found @ found.T, values.sum(-1), rtol=1e-8)


@pytest.mark.parametrize("kernel", ["exponential", "arccos0", "arccos1"])
def test_random_features_come_near_the_kernel(kernel, rng):
    X = rng.standard_normal((3, 4, 4))
    options = {"size": 3, "kernel": kernel, "pooling": "none", "unit_norm": False}
    exact = encoded(patches_of(**options, n_components=1000, landmarks="uniform").fit(X, random_state=0), X)
    errors = []
    for size in (50, 5000):
        found = encoded(patches_of(**options, approx="rf", n_components=size).fit(X, random_state=0), X)
        errors.append(np.abs(found @ found.T - exact @ exact.T).max() / (exact @ exact.T).max())
    assert errors[1] < 0.03
    assert errors[1] < 0.5 * errors[0]


def test_rectified_features_are_the_two_sides_of_projections_on_patches(rng):
    X = rng.standard_normal((2, 4, 4))
    encoder = patches_of(
        size=3,
        kernel="rectified",
        threshold=0.2,
        landmarks="uniform",
        n_components=8,
        pooling="none",
        homogeneous=False,
        unit_norm=False,
    ).fit(X, random_state=0)
    found = encoded(encoder, X).reshape(2, 2, 8, 4)  # sides, landmarks, positions
    windows_ = np.lib.stride_tricks.sliding_window_view(X, (3, 3), axis=(1, 2)).reshape(2, 4, 9)
    units = windows_ / np.linalg.norm(windows_, axis=2, keepdims=True)
    products = np.einsum("xpd,qd->xqp", units, units.reshape(8, 9))
    expected = np.stack([np.maximum(products - 0.2, 0), np.maximum(-products - 0.2, 0)], axis=1)
    # landmarks are all eight patches in an order of their own
    distances = np.abs(found[:, :, :, None] - expected[:, :, None]).sum((0, 1, 4))
    order = distances.argmin(0)
    assert sorted(order) == list(range(8))
    np.testing.assert_allclose(found[:, :, order], expected, atol=1e-12)


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("kernel", ["exponential", "arccos0", "arccos1", "rectified"])
def test_features_of_whitened_patches_with_kmeans_landmarks_pooled_over_cells(kernel, homogeneous, rng):
    """The layer of ``experiment=cifar10_patches`` from its definition, given the landmarks."""
    X = smooth_images(rng, 30, 9, 8)
    changes = {"size": 4, "normalization": "whitening", "kernel": kernel, "beta": 1.5, "homogeneous": homogeneous}
    changes |= {"n_components": 6, "pooling": "grid", "cells": 2, "unit_norm": False}
    encoder = patches_of(**changes).fit(X, random_state=0)
    patches = normalised_patches(X, DEFAULTS | changes)  # (n, 6, 5, 16)
    norms = np.linalg.norm(patches, axis=3)
    layer = encoder.layers_[0]
    Z = layer.templates_[0][:, :16]
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)  # the exponential kernel keeps them times a factor
    products = np.einsum("xijd,zd->xzij", patches / norms[..., None], Z)
    if kernel == "rectified":
        features = np.concatenate([np.maximum(products - 0.1, 0), np.maximum(-products - 0.1, 0)], axis=1)
    else:
        gram, values = (kappa(each, changes) for each in (Z @ Z.T, products))
        lengths, vectors = np.linalg.eigh(gram)
        features = np.einsum("az,xzij->xaij", (vectors / np.sqrt(lengths)).T, values)
    if homogeneous:
        features = features * norms[:, None]
    down, across = np.array(windows(changes, 6)), np.array(windows(changes, 5))
    expected = np.einsum("ci,ej,xaij->xace", down, across, features).reshape(len(X), -1)
    found = encoded(encoder, X)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=1e-7)


@pytest.mark.parametrize("normalization", ["norm", "whitening"])
def test_a_layer_averaged_over_turns_of_the_patch_does_not_see_them(normalization, rng):
    X = rng.standard_normal((3, 5, 5, 2))
    options = {"size": 5, "normalization": normalization, "pooling": "none", "n_components": 3, "contrast": 0.0}
    encoder = patches_of(**options, group="dihedral").fit(X, random_state=0)
    moved = np.rot90(X, axes=(1, 2))[:, :, ::-1]
    np.testing.assert_allclose(encoded(encoder, moved), encoded(encoder, X), rtol=1e-9)
    plain = patches_of(**options).fit(X, random_state=0)
    assert np.abs(encoded(plain, moved) - encoded(plain, X)).max() > 1e-3


@pytest.mark.parametrize("shape", [(3, 3, 3), (3, 3, 3, 2)])
def test_a_layer_averaged_over_turns_of_the_patch_of_a_volume_does_not_see_them(shape, rng):
    X = rng.standard_normal((5, *shape))
    options = {"size": 3, "pooling": "none", "n_components": 4, "unit_norm": False, "axes": 3}
    encoder = patches_of(**options, group="octahedral").fit(X, random_state=0)
    moved = np.rot90(np.rot90(X, axes=(1, 2)), axes=(2, 3))
    np.testing.assert_allclose(encoded(encoder, moved), encoded(encoder, X), rtol=1e-9)


def test_an_average_over_turns_is_the_mean_of_features_of_turned_images(rng):
    X = rng.standard_normal((3, 3, 3))
    options = {"size": 3, "pooling": "none", "n_components": 1000, "landmarks": "uniform", "unit_norm": False}
    turned = np.concatenate([np.rot90(X, k, axes=(1, 2)) for k in range(4)])
    mirrored = np.concatenate([turned, turned[:, :, ::-1]])
    mean = encoded(patches_of(**options).fit(mirrored, random_state=0), mirrored).reshape(8, 3, -1).mean(0)
    found = encoded(patches_of(**options, group="dihedral").fit(mirrored, random_state=0), X)
    np.testing.assert_allclose(found @ found.T, mean @ mean.T, rtol=1e-8)


def test_features_do_not_depend_on_the_batch_or_the_precision(rng):
    X = smooth_images(rng, 150, 12, 12)
    layers = [{"n_components": 20}, {"size": 2, "n_components": 30, "pooling": "grid", "cells": 2}]
    encoder = patches_of(layers=layers).fit(X.astype(np.float32), random_state=0)
    whole = encoded(encoder, X)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-12)
    parts = np.concatenate([encoded(encoder, X[rows]) for rows in np.split(np.arange(150), [1, 4, 130])])
    np.testing.assert_allclose(parts, whole, rtol=1e-9, atol=1e-12)
    single = encoded(encoder, X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, whole, atol=2e-4)
    assert not np.allclose(encoded(patches_of(layers=layers).fit(X, random_state=1), X), whole)


@pytest.mark.parametrize("normalization", ["norm", "mean", "contrast", "whitening"])
@pytest.mark.parametrize("kernel", ["exponential", "arccos1", "rectified"])
def test_blank_images(kernel, normalization, rng):
    X = np.concatenate([np.zeros((2, 9, 9)), smooth_images(rng, 3, 9, 9), np.ones((1, 9, 9))])
    for dtype in (np.float32, np.float64):
        encoder = patches_of(kernel=kernel, normalization=normalization, n_components=5).fit(X.astype(dtype), 0)
        found = encoded(encoder, X.astype(dtype))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(np.linalg.norm(found[2:5], axis=1), 1, rtol=1e-4)
        if normalization != "whitening":
            assert not found[0].any()
    encoded(patches_of(n_components=5).fit(np.zeros((2, 9, 9)), 0), X)  # a sample without any patch but zero


def test_landmarks_of_kmeans_are_nearer_than_random_patches(rng):
    X = smooth_images(rng, 60, 12, 12)

    def missing(landmarks):
        """Of the squared norm of features of patches, which is that of the patches where nothing is missing."""
        encoder = patches_of(landmarks=landmarks, n_components=12, pooling="none", unit_norm=False).fit(X, 0)
        windows_ = np.lib.stride_tricks.sliding_window_view(X, (5, 5), axis=(1, 2))
        return 1 - np.square(encoded(encoder, X)).sum() / np.square(windows_).sum()

    assert 0 < missing("kmeans") < 0.8 * missing("uniform")


def test_reduced_vectors_are_projections_that_hold_most(rng):
    X = smooth_images(rng, 80, 12, 12)
    whole = encoded(patches_of(n_components=12).fit(X, 0), X)
    reduced = encoded(patches_of(n_components=12, reduce=20).fit(X, 0), X)
    assert reduced.shape == (80, 20)
    best = np.linalg.svd(whole, compute_uv=False)
    lost = 1 - np.square(reduced).sum() / np.square(whole).sum()
    assert lost < 1.05 * np.square(best[20:]).sum() / np.square(best).sum() + 1e-9
    full = encoded(patches_of(n_components=12, reduce=1000).fit(X, 0), X)
    np.testing.assert_allclose(full @ full.T, whole @ whole.T, atol=1e-10)


def test_whitened_reduction_divides_coordinates_by_powers_of_their_root_mean_square(rng):
    X = smooth_images(rng, 60, 12, 12)
    plain = encoded(patches_of(n_components=8, reduce=20).fit(X, 0), X)
    scaled = plain / np.sqrt(np.square(plain).mean(0)) ** 0.5
    scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)
    whitened = encoded(patches_of(n_components=8, reduce=20, reduce_whitening=0.5).fit(X, 0), X)
    np.testing.assert_allclose(whitened, scaled, atol=1e-10)
    flat = encoded(patches_of(n_components=8, reduce=20, reduce_whitening=1.0, unit_norm=False).fit(X, 0), X)
    np.testing.assert_allclose(np.square(flat).mean(0), 1, atol=1e-10)


def test_standardised_coordinates_have_mean_zero_and_variance_one(rng):
    X = smooth_images(rng, 60, 12, 12)
    plain = encoded(patches_of(n_components=8, unit_norm=False).fit(X, 0), X)
    expected = (plain - plain.mean(0)) / plain.std(0)
    found = encoded(patches_of(n_components=8, unit_norm=False, standardize=True).fit(X, 0), X)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    equal = np.repeat(X[:1], 5, axis=0)
    assert not encoded(patches_of(n_components=8, standardize=True).fit(equal, 0), equal).any()


def test_principal_directions_have_several_images_each(rng, monkeypatch):
    monkeypatch.setattr("orbit.encoders.patches._SAMPLE_POINTS", 10)
    X = smooth_images(rng, 400, 12, 12)
    vectors = encoded(patches_of(n_components=12).fit(X, 0), X)
    reduced = encoded(patches_of(n_components=12, reduce=40).fit(X, 0), X)
    assert reduced.shape == (400, 40)
    best = np.linalg.svd(vectors, compute_uv=False) ** 2
    lost, least = 1 - np.square(reduced).sum() / best.sum(), best[40:].sum() / best.sum()
    assert lost < 3 * least


@pytest.mark.parametrize("kernel", [Matern(0.5, nu=1.5), Polynomial(2), RationalQuadratic("median")], ids=repr)
def test_every_kernel_of_the_angle_gives_its_values(kernel, rng):
    X = rng.standard_normal((3, 4, 4))
    layer = Layer(3, kernel=kernel, landmarks=Uniform(), n_components=100, homogeneous=False, pooling=NoPooling())
    found = encoded(Patches([layer], unit_norm=False).fit(X, 0), X).reshape(3, -1, 4)
    patches = np.lib.stride_tricks.sliding_window_view(X, (3, 3), axis=(1, 2)).reshape(12, 9)
    units = patches / np.linalg.norm(patches, axis=1, keepdims=True)
    vectors = found.swapaxes(1, 2).reshape(12, -1)
    np.testing.assert_allclose(vectors @ vectors.T, kernel.gram(units), rtol=1e-6)


@pytest.mark.parametrize("rule", [KMeans(), RPCholesky(), Leverage()], ids=repr)
def test_all_patches_as_landmarks_by_any_rule_give_the_kernel(rule, rng):
    X = rng.standard_normal((3, 5, 5))
    layers = (Layer(3, landmarks=each, n_components=27) for each in (rule, Uniform()))
    found, expected = (encoded(Patches([layer]).fit(X, 0), X) for layer in layers)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=1e-9)


class TestPatches(EncoderContract):
    component, params = Patches, {"layers": [Layer(size=3, n_components=4)]}


class TestPatchesInLayers(EncoderContract):
    component = Patches
    params = {"layers": [Layer(size=3, n_components=4), Layer(kernel=Gaussian(0.7), n_components=4)]}
    shape = (16, 16)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.1, 0.3, 0.7])
def test_a_constant_patch_has_no_contrast(rng, value, dtype):
    X = np.full((4, 12, 12), value)
    X[:, 3:6, 3:6] = rng.random((4, 3, 3))
    encoder = patches_of(
        size=3, normalization="contrast", contrast=0.0, n_components=8, unit_norm=False, pooling="none"
    )
    features = encoded(encoder.fit(X.astype(dtype), 0), X.astype(dtype)).reshape(4, -1, 10, 10)
    assert not features[:, :, 6:, 6:].any()
    assert features[:, :, 3, 3].any(axis=1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalization", ["mean", "contrast", "whitening"])
@pytest.mark.parametrize("contrast", [0.0, 0.1])
def test_equal_patches_are_zero_not_rounding_errors(rng, contrast, normalization, dtype):
    patches = 100 + rng.random((12, 1, 1)) if normalization != "whitening" else 100 + rng.random((3, 3))
    X = np.ascontiguousarray(np.tile(np.broadcast_to(patches, (12, 3, 3)), (1, 2, 2)), dtype=dtype)
    encoder = patches_of(size=3, stride=3, normalization=normalization, contrast=contrast, n_components=4).fit(X, 0)
    assert not encoded(encoder, X).any()
    assert not encoded(encoder, X[:1]).any()


def test_directions_of_black_images_are_finite():
    encoder = patches_of(size=3, n_components=4, reduce=3, reduce_whitening=0.5).fit(np.zeros((6, 8, 8)), 0)
    np.testing.assert_array_equal(encoded(encoder, np.zeros((2, 8, 8))), 0.0)


@pytest.mark.parametrize("shape", [(14, 13), (14, 13, 3), (40,), (9, 8, 7)], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {"normalization": "contrast"},
        {"normalization": "mean", "stride": 2, "padding": "zero", "kernel": "arccos1"},
        {"normalization": "contrast", "kernel": "rectified", "approx": "rf", "dilation": 2, "statistics": "share"},
        {"normalization": "norm"},
    ],
    ids=str,
)
def test_float32_norms_from_sums_over_maps_are_those_of_patches(shape, options, rng):
    """In float64 each patch is centred by itself; in float32 norms follow from sums over maps."""
    X = rng.random((30, *shape))
    X[:, :6] = 0.25  # patches without contrast
    encoder = patches_of(size=3, n_components=8, channel_means=False, unit_norm=False, **options).fit(X, 0)
    expected = encoded(encoder, X)
    np.testing.assert_allclose(encoded(encoder, X.astype(np.float32)), expected, atol=3e-5 * np.abs(expected).max())


@pytest.mark.parametrize("offset", [1.0, 30.0])
def test_bright_images_of_little_contrast_lose_none_in_float32(offset, rng):
    X = np.float32(offset + smooth_images(rng, 20, 12, 12))
    encoder = patches_of(normalization="contrast", n_components=8).fit(X, 0)
    np.testing.assert_allclose(encoded(encoder, X), encoded(encoder, X.astype(np.float64)), atol=2e-5)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("size", range(1, 8))
def test_sums_of_patches_are_those_of_their_entries(size, dilation, stride, rng):
    positions = Positions((15, 18), size, stride, dilation, ("none", "none"))
    maps = torch.from_numpy(rng.standard_normal((2, 15, 18, 3)))
    torch.testing.assert_close(positions.sums(maps), positions.patches(maps).sum((0, 1, 2)))
