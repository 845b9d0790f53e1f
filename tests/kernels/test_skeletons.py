"""Skeletons: exact kernels by loops and closed forms, random features by their expectation, merging, errors."""

import math
from collections import Counter

import numpy as np
import oracles
import pytest
import torch
from scipy import stats

from orbit import ArcCos, Exact, Gaussian, InputError, Orbit, RandomSkeleton, SkeletonKernel
from orbit.groups import Dihedral, Permutation, Reflection
from orbit.kernels.skeletons import from_nodes, make_activation, stack
from orbit.kernels.skeletons.activations import RELU_MAX_DEGREE, ReLU, _relu_distribution
from orbit.kernels.skeletons.sampling import Features, Sampler
from orbit.kernels.skeletons.spaces import CircleSpace, make_space
from orbit.testing import KernelContract, KernelMapContract

EXP, CONV = {"name": "exp", "c": 0.25}, "conv"
DEEP = [
    {"kind": CONV, "size": 3, "stride": 2, "activation": "exp"},
    {"kind": CONV, "size": 2, "activation": "relu"},
    {"kind": "full", "activation": "relu"},
]
NODES = [
    {"name": "top", "inputs": ["a", "b", 0]},
    {"name": "a", "inputs": [0, 1, 1], "activation": {"name": "exp", "c": 0.8}},
    {"name": "b", "inputs": ["a", 2, 3], "activation": [0.1, 0.3, 0.0, 0.6]},
]


def test_blocks_are_pixels_of_pictures_and_whole_vectors():
    def blocks(name, shape):
        space = make_space(name, shape, None, 1.0, None, np.zeros((1, *shape)))
        return space.n_inputs, space.block

    assert blocks("sphere", (4, 5, 3)) == blocks("gaussian", (4, 5, 3)) == (20, 3)
    assert blocks("sphere", (4, 5)) == blocks("gaussian", (20,)) == (1, 20)
    assert blocks("circle", (4, 5, 3)) == (60, 1)


class TestSkeletonKernel(KernelContract):
    component, params = SkeletonKernel, {"nodes": NODES}

    def evaluate(self, x, z):
        k = np.cos(x - z)
        a = np.exp(0.8 * ((k[0] + 2 * k[1]) / 3 - 1))
        rho = (a + k[2] + k[3]) / 3
        b = 0.1 + 0.3 * rho + 0.6 * rho**3
        return oracles.relu_dual((a + b + k[0]) / 3)


class TestRandomSkeleton(KernelMapContract):
    """A skeleton whose one node is the identity of one Gaussian input is the Gaussian kernel."""

    gram_error = 0.1

    def create(self, **params):
        params = {"kernel": Gaussian(self.lengthscale), "n_components": 400, "random_state": 0, **params}
        if isinstance(params["kernel"], Gaussian):
            lengthscale = params["kernel"].lengthscale
            scale = 1.0 if lengthscale == "median" else 1 / lengthscale
            params["kernel"] = SkeletonKernel(base="gaussian", scale=scale, activation="identity")
        return RandomSkeleton(**params)

    def expected_gram(self, fitted, points):
        return oracles.exact_gram(points, points, fitted.orbit_.weights_, 1 / fitted.kernel_.scale)

    def evaluate(self, fitted, points, points_fit):
        np.testing.assert_array_equal(fitted.features_.counts, 1)
        return oracles.fourier_pairs(points, fitted.orbit_.weights_, fitted.features_.exponents.toarray())

    test_median_lengthscale_is_computed_once_from_the_data = None  # a skeleton has a scale


# ---- exact values ----------------------------------------------------------------------------------------------------


def test_convolutions_are_the_loops_over_positions(rng):
    X = rng.random((5, 8, 9, 2)) * 3
    layers = [(3, 2, "exp"), (2, 1, "relu"), (0, 1, "relu")]
    expected = [[oracles.convolution_kernel(x, z, layers) for z in X] for x in X]
    np.testing.assert_allclose(SkeletonKernel(layers=DEEP).gram(X), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("size", [1e-25, 1e20])
def test_blocks_on_the_sphere_whose_squares_float32_does_not_hold(size, rng):
    X = rng.standard_normal((6, 4))
    X[0] = 0
    small = (X * size).astype(np.float32)
    units = small.astype(np.float64) / np.maximum(np.linalg.norm(small.astype(np.float64), axis=1), 1e-40)[:, None]
    kernel = SkeletonKernel(base="sphere", activation="identity")
    np.testing.assert_allclose(Exact(kernel=kernel).fit(small).gram(small), units @ units.T, atol=1e-6)
    skeleton = RandomSkeleton(kernel=kernel, n_components=40, random_state=0).fit(X)
    np.testing.assert_allclose(skeleton.transform(small), skeleton.transform(units), atol=1e-5)


def test_fully_connected_rectified_layers_on_the_sphere_are_the_composed_arc_cosine_kernel(rng):
    X = rng.standard_normal((6, 7))
    cosines = X @ X.T / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(X, axis=1))
    expected = np.vectorize(lambda rho: oracles.relu_dual(oracles.relu_dual(oracles.relu_dual(rho))))(cosines)
    kernel = SkeletonKernel(base="sphere", layers=[{"kind": "full"}] * 3)
    np.testing.assert_allclose(kernel.gram(X), expected, atol=2e-8)  # the oracle's arccos near one
    once = SkeletonKernel(base="sphere").gram(X)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(once, ArcCos(1).gram(units), atol=1e-12)


def test_one_exponential_node_is_a_gaussian_kernel_on_the_circles(rng):
    """exp((rho - 1) / 4) with rho = 1 - |z - z'|^2 / (2 n): lengthscale 2 sqrt(n) in the plane (RFS section 6)."""
    X = rng.random((6, 9)) * 4
    plane = np.hstack([np.cos(1.7 * X), np.sin(1.7 * X)])
    kernel = SkeletonKernel(activation=EXP, scale=1.7)
    np.testing.assert_allclose(kernel.gram(X), Gaussian(2 * math.sqrt(9)).gram(plane), rtol=1e-12)


def test_padding_averages_over_what_lies_inside(rng):
    X = rng.random((4, 3, 3)) * 3
    kernel = SkeletonKernel(
        layers=[
            {"kind": CONV, "size": 3, "padding": 1, "activation": "exp"},
            {"kind": "full", "activation": "identity"},
        ]
    )
    K = np.zeros((4, 4))
    for i in range(3):
        for j in range(3):
            rows, columns = slice(max(i - 1, 0), i + 2), slice(max(j - 1, 0), j + 2)
            patches = X[:, rows, columns].reshape(4, -1)
            K += np.exp((np.cos(patches[:, None] - patches).mean(2) - 1) / 4) / 9
    np.testing.assert_allclose(kernel.gram(X), K, atol=1e-13)


def test_base_kernels():
    X = np.array([[0.0, 1.0, 2.0, 4.0], [1.0, 1.0, 5.0, -2.0]])
    gram = lambda **params: SkeletonKernel(activation="identity", **params).gram(X)[0, 1]  # noqa: E731
    assert gram(base="binary") == pytest.approx((1 + 1 + 1 - 1) / 4)
    assert gram(base="categorical", categories=3) == pytest.approx(3 / 4)  # 2 = 5 and 4 = -2 modulo 3
    assert gram(base="categorical") == pytest.approx(2 / 4)  # six classes: 4 = -2 again
    assert gram(base="gaussian", block=2, scale=0.5) == pytest.approx((np.exp(-1 / 8) + np.exp(-(9 + 36) / 8)) / 2)
    cosines = 1 / np.sqrt(2), (10 - 8) / np.sqrt(20 * 29)
    assert gram(base="sphere", block=2) == pytest.approx(np.mean(cosines))


def test_blocks_of_pairs_change_nothing(rng, monkeypatch):
    X, Z = rng.random((9, 8, 8)), rng.random((7, 8, 8))
    whole = SkeletonKernel(layers=DEEP).gram(X, Z)
    monkeypatch.setattr("orbit.kernels.skeleton.MAX_VALUES", 100)
    np.testing.assert_allclose(SkeletonKernel(layers=DEEP).gram(X, Z), whole, atol=1e-14)


def test_one_fully_connected_node_is_invariant_under_permutations(rng):
    X = rng.random((5, 4)) * 3
    kernel, group = SkeletonKernel(), Permutation()
    assert kernel.is_invariant_under(group, (4,))
    assert not SkeletonKernel(layers=DEEP).is_invariant_under(Reflection(), (8, 8))
    orb = Orbit(group, rule="quadrature", size=24)
    exact = Exact(kernel, orb).fit(X)
    assert len(exact._single.weights_) == 24
    moved = group.act(exact.orbit_.elements_, X)
    expected = np.mean([kernel.gram(a, b) for a in moved for b in moved], axis=0)
    np.testing.assert_allclose(exact.gram(X), expected, atol=1e-12)


# ---- activations -----------------------------------------------------------------------------------------------------

ACTIVATIONS = {
    "relu": "relu",
    "exp": {"name": "exp", "c": 0.7},
    "identity": "identity",
    "polynomial": {"name": "polynomial", "degree": 3},
    "coefficients": [0.2, 0.0, 0.5, 0.3],
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_degrees_generate_the_activation(name):
    """E rho^l = sigma(rho), at several rho, within five standard errors; and sigma'(1) is the mean degree."""
    activation = make_activation(ACTIVATIONS[name])
    rho = torch.tensor([-1.0, -0.6, 0.0, 0.3, 0.9, 1.0], dtype=torch.float64)
    powers = rho.numpy() ** activation.sample(100_000, np.random.default_rng(0))[:, None]
    values = activation.apply_(rho.clone()).numpy()
    assert np.all(np.abs(powers.mean(0) - values) <= 5 * powers.std(0) / math.sqrt(len(powers)) + 1e-12)
    step = 1e-7
    near = activation.apply_(torch.tensor([1 - step, 1.0], dtype=torch.float64)).numpy()
    assert (near[1] - near[0]) / step == pytest.approx(activation.mean_degree, rel=1e-3)


def test_relu_degrees_sum_to_the_arc_cosine_kernel_and_their_tail_is_bounded():
    probabilities = np.diff(_relu_distribution(), prepend=0)
    degrees = np.arange(len(probabilities))
    for rho in (-0.99, -0.5, 0.2, 0.9, 0.999):
        assert probabilities @ rho**degrees == pytest.approx(oracles.relu_dual(rho), abs=1e-9)
    np.testing.assert_allclose(probabilities[:5], [1 / np.pi, 0.5, 1 / (2 * np.pi), 0, 1 / (24 * np.pi)], rtol=1e-8)
    for low in (10, 100, 1000, 10_000):
        assert probabilities[low + 1 :].sum() < 0.086 * low**-1.5
        assert probabilities[low + 1 :].sum() > 0.08 * low**-1.5, "the bound says what the tail is"
    assert 2 * 0.086 * RELU_MAX_DEGREE**-1.5 < 2e-10
    assert 1 - probabilities @ degrees < 3e-4


def test_relu_degrees_follow_their_distribution_into_the_tail():
    drawn = ReLU().sample(300_000, np.random.default_rng(1))
    probabilities = np.diff(_relu_distribution(), prepend=0)
    edges = [0, 1, 2, 4, 6, 10, 16, 18, 40, 100]
    expected = [probabilities[a : b or None].sum() for a, b in zip(edges, [*edges[1:], None], strict=True)]
    found = [np.sum((drawn >= a) & (drawn < (b or np.inf))) for a, b in zip(edges, [*edges[1:], None], strict=True)]
    assert stats.chisquare(found, np.array(expected) / sum(expected) * len(drawn)).pvalue > 1e-3


# ---- random features -------------------------------------------------------------------------------------------------

BASES = {"circle": {}, "binary": {}, "gaussian": {"block": 2}, "categorical": {"categories": 4}, "sphere": {"block": 3}}


def product_errors(kernel: SkeletonKernel, X: np.ndarray, draws: int, **params) -> np.ndarray:
    """Errors of the mean product of the features of ``draws`` draws, in standard errors, for every pair of points."""
    fitted = RandomSkeleton(kernel, n_components=draws, deduplicate=False, random_state=0, **params).fit(X)
    psi = fitted.transform(X) * math.sqrt(draws)
    psi = psi.reshape(len(X), -1, draws)  # columns of one draw together
    products = np.einsum("nck,mck->nmk", psi, psi)
    error = products.mean(2) - kernel.gram(X)
    return error / (products.std(2) / math.sqrt(draws) + 1e-9)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feature_products_average_to_the_kernel(base, activation):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (4, 6)).astype(float) if base == "categorical" else rng.standard_normal((4, 6))
    for layers in (None, [{"kind": "full", "activation": EXP}, {"kind": "full"}]):
        kernel = SkeletonKernel(layers=layers, activation=ACTIVATIONS[activation], base=base, **BASES[base])
        assert np.abs(product_errors(kernel, X, 20_000)).max() < 5


@pytest.mark.parametrize("params", [{}, {"variant": "phase"}, {"bottom": "fourier"}], ids=str)
@pytest.mark.parametrize("base", ["circle", "sphere"])
def test_feature_products_of_convolutions_average_to_the_kernel(params, base):
    if "bottom" in params and base == "sphere":
        pytest.skip("random Fourier features of patches are for circles")
    X = np.random.default_rng(3).standard_normal((4, 7, 8, 2))
    kernel = SkeletonKernel(layers=DEEP, base=base, block=2 if base == "sphere" else None)
    assert np.abs(product_errors(kernel, X, 20_000, **params)).max() < 5


def test_feature_products_of_a_graph_average_to_the_kernel():
    X = np.random.default_rng(3).standard_normal((4, 5))
    assert np.abs(product_errors(SkeletonKernel(nodes=NODES), X, 20_000)).max() < 5


def test_the_expected_number_of_factors_is_the_complexity():
    """Exponential and polynomial degrees, whose variance is finite."""
    layers = [
        {"kind": CONV, "size": 3, "stride": 2, "activation": {"name": "exp", "c": 1.5}},
        {"kind": CONV, "size": 2, "activation": {"name": "polynomial", "degree": 3}},
        {"kind": "full", "activation": [0.25, 0.25, 0.5]},
    ]
    skeleton = stack(layers, (7, 7, 1))
    assert skeleton.complexity() == pytest.approx(1.5 * 1.5 * 1.25)
    draws, inputs = Sampler(skeleton, CircleSpace(49, 1, 1.0)).paths(50_000, np.random.default_rng(0))
    factors = np.bincount(draws, minlength=50_000)
    assert factors.mean() == pytest.approx(skeleton.complexity(), abs=5 * factors.std() / math.sqrt(50_000))
    graph = from_nodes(NODES, 4, "relu")
    assert graph.complexity() == pytest.approx((0.8 + (0.3 + 1.8) * (0.8 + 2) / 3 + 1) / 3)
    draws, inputs = Sampler(graph, CircleSpace(4, 1, 1.0)).paths(200_000, np.random.default_rng(0))
    assert len(inputs) / 200_000 == pytest.approx(graph.complexity(), rel=0.02)


def test_paths_choose_inputs_as_often_as_the_graph_leads_to_them():
    # every node with one factor: one path a draw
    graph = from_nodes([{**node, "activation": "identity"} for node in NODES], 4, "identity")
    _, inputs = Sampler(graph, CircleSpace(4, 1, 1.0)).paths(50_000, np.random.default_rng(0))
    a = np.array([1, 2, 0, 0]) / 3
    b = (a + [0, 0, 1, 1]) / 3
    expected = (a + b + [1, 0, 0, 0]) / 3
    assert stats.chisquare(np.bincount(inputs, minlength=4), expected * 50_000).pvalue > 1e-3


@pytest.mark.parametrize("base", ["binary", "circle", "gaussian", "categorical"])
def test_features_are_norm_efficient(rng, base):
    X = rng.integers(0, 4, (5, 4)).astype(float)
    psi = RandomSkeleton(SkeletonKernel(base=base), n_components=300, random_state=0).fit(X).transform(X)
    np.testing.assert_allclose(np.square(psi).sum(1), 1, atol=1e-12)


def test_factors_on_the_sphere_are_at_most_the_least_possible(rng):
    d = 5
    X = np.concatenate([rng.standard_normal((200, d)), [[1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]])
    kernel = SkeletonKernel(base="sphere", activation="identity")
    fitted = RandomSkeleton(kernel, n_components=d, random_state=0).fit(X)
    psi = fitted.transform(X) / np.tile(fitted.features_.weights, 2)
    sizes = np.linalg.norm(psi.reshape(len(X), 2, -1), axis=1)
    assert sizes[:-1].max() == pytest.approx(math.sqrt(d / 2), rel=1e-12)
    assert np.all(np.isfinite(sizes))
    np.testing.assert_allclose(sizes[-1], 0, atol=1e-30)


# ---- merging ---------------------------------------------------------------------------------------------------------


def canonical(features: Features, modulus: int = 0) -> list[tuple]:
    """A key for each feature by plain loops: the smaller of its exponents and those of its conjugate."""
    keys = []
    for i, row in enumerate(features.exponents.toarray().astype(int)):
        conjugate = (modulus - row) * (row != 0)
        key = min(tuple(row), tuple(conjugate))
        key += () if features.radii is None else tuple(features.radii.toarray()[i])
        keys.append(key + (() if features.quarters is None else (int(features.quarters[i]),)))
    return keys


@pytest.mark.parametrize("params", [{}, {"variant": "phase"}], ids=str)
@pytest.mark.parametrize("base", ["circle", "binary", "categorical", "sphere"])
def test_merged_features_are_the_draws_themselves(rng, base, params, monkeypatch):
    """Merging is bookkeeping: the same draws, taken one by one, give the same keys, counts and order."""
    X = rng.integers(0, 3, (5, 4)).astype(float)
    block = {"block": 2} if base == "sphere" else {}
    size = {"binary": 12, "categorical": 25}.get(base, 40)  # of 16 and 41 that exist
    kernel = SkeletonKernel(base=base, activation={"name": "exp", "c": 1.2}, **block)
    batches = []
    draw = Sampler.draw

    def recorded(self, size, rng):
        batches.append(draw(self, size, rng))
        return batches[-1]

    monkeypatch.setattr(Sampler, "draw", recorded)
    monkeypatch.setattr("orbit.kernels.skeletons.sampling.BATCH", 40)
    fitted = RandomSkeleton(kernel, n_components=size, random_state=0, **params).fit(X)
    modulus = fitted.kernel_.space_.modulus or 0
    drawn = [key for batch in batches for key in canonical(batch, modulus)]
    expected: Counter = Counter()
    for key in drawn:
        if key not in expected and len(expected) == size:
            break
        expected[key] += 1
    merged = fitted.features_
    assert canonical(merged, modulus) == list(expected)
    np.testing.assert_array_equal(merged.counts, list(expected.values()))
    assert merged.total == sum(expected.values()) < len(drawn)
    assert len(batches) > 1


def test_a_skeleton_of_finite_degree_has_finitely_many_features(rng):
    X = rng.random((6, 5)) * 3
    fitted = RandomSkeleton(SkeletonKernel(activation="identity"), n_components=100, random_state=0).fit(X)
    assert fitted.n_components_ == 5
    assert fitted.transform(X).shape == (6, 10)
    assert fitted.features_.total == 200 * 100


def test_merging_brings_the_error_down(rng):
    X = rng.random((20, 16)) * 3
    kernel = SkeletonKernel(activation=EXP)
    K = kernel.gram(X)

    def error(**params) -> float:
        psi = [RandomSkeleton(kernel, n_components=200, random_state=s, **params).fit_transform(X) for s in range(5)]
        return float(np.mean([np.abs(P @ P.T - K).mean() for P in psi]))

    assert error() < 0.5 * error(deduplicate=False)  # measured 0.3


def test_exponents_are_stored_in_few_bytes(rng):
    fitted = RandomSkeleton(n_components=2000, random_state=0).fit(rng.random((3, 50)))
    assert fitted.features_.exponents.dtype.itemsize <= 2


# ---- orbits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["pairs", "phase"])
def test_averaged_over_a_finite_group_features_are_invariant(rng, variant):
    X = rng.random((6, 8, 8)) * 3
    orb = Orbit(Dihedral(), rule="quadrature")
    kernel = SkeletonKernel(layers=DEEP)
    fitted = RandomSkeleton(kernel, orb, n_components=3000, variant=variant, random_state=0).fit(X)
    psi = fitted.transform(X)
    np.testing.assert_allclose(fitted.transform(np.rot90(X, axes=(1, 2)).copy()), psi, atol=1e-12)
    plain = RandomSkeleton(kernel, n_components=3000, random_state=0).fit(X)
    assert np.abs(plain.transform(np.rot90(X, axes=(1, 2)).copy()) - plain.transform(X)).max() > 1e-3
    assert np.abs(psi @ psi.T - Exact(kernel, orb).fit(X).gram(X)).max() < 0.01


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"layers": []}, r"^kernel.layers: expected a list with at least one layer"),
        ({"layers": [{"size": 3}]}, r"^kernel.layers\[0\]: expected {kind: conv, size: ...} or {kind: full}"),
        ({"layers": [{"kind": CONV, "size": 0}]}, r"^kernel.layers\[0\]: size: expected an integer >= 1"),
        ({"layers": [{"kind": CONV}]}, r"^kernel.layers\[0\]: size: expected an integer >= 1.*found None"),
        ({"layers": [{"kind": CONV, "size": 2, "step": 1}]}, r"^kernel.layers\[0\]: no such key 'step'; a conv has"),
        ({"layers": [{"kind": CONV, "size": 2, "padding": 2}]}, r"^kernel.layers\[0\]: padding: expected less than"),
        ({"layers": [{"kind": "full", "activation": "tanh"}]}, r"^kernel.layers\[0\]: activation: expected one of"),
        ({"nodes": []}, "^kernel.nodes: expected a list with at least one node"),
        ({"nodes": [{"inputs": [0]}]}, r"^kernel.nodes\[0\]: expected a mapping with a name"),
        ({"nodes": [{"name": "a", "inputs": []}]}, r"^kernel.nodes\[0\] \(a\): inputs: expected 'all' or a list"),
        ({"nodes": [{"name": "a", "inputs": ["bb"]}, {"name": "b", "inputs": [0]}]}, "no node is named 'bb'.*did you"),
        ({"nodes": [{"name": "a", "inputs": [0]}] * 2}, r"^kernel.nodes\[1\]: the name 'a' is already"),
        (
            {"nodes": [{"name": "a", "inputs": ["b"]}, {"name": "b", "inputs": ["a"]}]},
            "^kernel.nodes: a cycle runs through a, b",
        ),
        (  # what hangs on a cycle is no part of it
            {"nodes": [{"name": n, "inputs": [u]} for n, u in (("top", "c"), ("a", "b"), ("b", "c"), ("c", "a"))]},
            "^kernel.nodes: a cycle runs through c, a, b; a skeleton must have none",
        ),
        (
            {"nodes": [{"name": "a", "inputs": [0]}, {"name": "b", "inputs": [1]}]},
            "^kernel.nodes: expected one output.*found a, b",
        ),
        ({"nodes": [{"name": "a", "inputs": "all"}], "layers": [{"kind": "full"}]}, "^kernel.nodes: .*found both"),
        ({"activation": [0.5, 0.4]}, "^kernel.activation: expected coefficients that sum to one, found the sum 0.9"),
        ({"activation": [1.5, -0.5]}, "^kernel.activation: expected coefficients >= 0"),
        ({"activation": "rely"}, "^kernel.activation: expected one of.*did you mean 'relu'"),
        ({"activation": {"name": "exp", "c": -1}}, "^kernel.activation: c: expected a number > 0, found -1"),
        ({"activation": {"name": "exp", "d": 1}}, "^kernel.activation: exp has no parameter 'd'; it has c"),
        ({"activation": {"name": "polynomial", "degree": 0}}, "^kernel.activation: degree: expected an integer >= 1"),
    ],
    ids=str,
)
def test_invalid_skeletons_are_rejected_before_fit(params, message):
    with pytest.raises(InputError, match=message):
        SkeletonKernel(**params).check()


@pytest.mark.parametrize(
    ("params", "shape", "message"),
    [
        ({"layers": DEEP}, (64,), "^kernel.layers: convolutions take images.*vectors of length 64"),
        ({"layers": DEEP}, (2, 8), r"^kernel.layers\[0\]: a patch of 3×3 does not fit into 2×8 positions"),
        ({"layers": DEEP[:1]}, (8, 8), "^kernel.layers: the last layer has 9 nodes, expected one"),
        ({"nodes": [{"name": "a", "inputs": [7]}]}, (4,), r"^kernel.nodes\[0\] \(a\): .*numbers of inputs, 0 to 3"),
        ({"base": "sphere", "block": 3}, (4,), r"^kernel.block: blocks of 3 do not divide"),
        ({"base": "circle", "block": 2}, (4,), "^kernel.block: one number is an input of kernel.base=circle"),
        ({"base": "gaussian", "layers": DEEP}, (8, 8), "^kernel.block: inputs of 64 numbers do not divide pixels"),
    ],
    ids=str,
)
def test_skeletons_that_do_not_fit_the_points_are_refused(params, shape, message):
    with pytest.raises(InputError, match=message):
        SkeletonKernel(**params).fit(np.zeros((2, *shape)))


def test_incompatible_parameters_and_kernels_are_rejected(rng):
    with pytest.raises(InputError, match="^approx=skeleton draws features of kernel=skeleton, found kernel=gaussian"):
        RandomSkeleton(Gaussian()).check()
    with pytest.raises(
        InputError, match="^approx.bottom=fourier needs a kernel with kernel.base=circle and activation exp"
    ):
        RandomSkeleton(SkeletonKernel(), bottom="fourier").fit(rng.random((3, 4)))
