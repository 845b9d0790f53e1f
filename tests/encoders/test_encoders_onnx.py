"""Frozen networks from ONNX files as encoders; the networks are written here."""

import pickle
import sys

import numpy as np
import pytest
import torch

import orbit
from orbit import Dihedral, Exact, Gaussian, InputError, Onnx

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, numpy_helper = onnx.helper, onnx.numpy_helper


def write(path, nodes, weights, shape, outputs, element=onnx.TensorProto.FLOAT):
    """A network of one input ``x`` of the given shape."""
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info(name, element, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return str(path)


@pytest.fixture
def filters(rng):
    return rng.standard_normal((4, 2, 3, 3)).astype(np.float32)


@pytest.fixture
def network(tmp_path, filters):
    """A convolution, and its rectified maps as a second output; images of 2 channels, 6 x 5 pixels."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["maps"]), helper.make_node("Relu", ["maps"], ["positive"])]
    return write(tmp_path / "network.onnx", nodes, {"w": filters}, ["n", 2, 6, 5], ["maps", "positive"])


def encode(encoder, X):
    return encoder.encode(torch.from_numpy(X)).numpy()


def test_a_convolution_is_that_of_torch(network, filters, rng):
    X = rng.random((150, 6, 5, 2)).astype(np.float32)
    expected = torch.conv2d(torch.from_numpy(2 * X - 1).permute(0, 3, 1, 2), torch.from_numpy(filters))
    maps = Onnx(network, scale=2.0, shift=-1.0).fit(X[:3])
    np.testing.assert_allclose(encode(maps, X), expected.flatten(1).numpy(), atol=1e-5)
    positive = Onnx(network, output="positive", scale=[2.0, 2.0], shift=[-1.0]).fit(X[:3])
    np.testing.assert_allclose(encode(positive, X), expected.relu().flatten(1).numpy(), atol=1e-5)
    assert positive.n_outputs_ == 4 * 4 * 3
    assert encode(positive, X.astype(np.float64)).dtype == np.float64


def test_channels_are_scaled_separately(network, rng):
    X = rng.random((2, 6, 5, 2)).astype(np.float32)
    scaled = X * np.array([0.5, 3.0], np.float32) + np.array([1.0, -2.0], np.float32)
    found = encode(Onnx(network, scale=[0.5, 3.0], shift=[1.0, -2.0]).fit(X), X)
    np.testing.assert_allclose(found, encode(Onnx(network).fit(X), scaled), atol=1e-5)


def test_channels_apart_are_pictures_of_their_own(network, filters, rng):
    X = rng.random((70, 6, 5, 3)).astype(np.float32)
    pair = np.repeat(X.transpose(0, 3, 1, 2)[:, :, None], 2, axis=2)  # every channel in both of the network
    pair = pair * np.array([2.0, 1.0], np.float32)[:, None, None] + np.array([0.0, -1.0], np.float32)[:, None, None]
    expected = torch.conv2d(torch.from_numpy(pair.reshape(210, 2, 6, 5)), torch.from_numpy(filters))
    encoder = Onnx(network, channels="apart", scale=[2.0, 1.0], shift=[0.0, -1.0]).fit(X[:3])
    np.testing.assert_allclose(encode(encoder, X), expected.reshape(70, -1).numpy(), atol=1e-5)
    grey = Onnx(network, channels="apart").fit(X[..., 0])
    np.testing.assert_allclose(encode(grey, X[..., 0]), encode(Onnx(network).fit(X[..., [0, 0]]), X[..., [0, 0]]))


def test_pictures_are_resized_for_the_network(tmp_path, rng):
    weights = {"two": np.array(2.0, np.float32)}
    nodes = [helper.make_node("Mul", ["x", "two"], ["y"])]
    path = write(tmp_path / "double.onnx", nodes, weights, ["n", 1, 4, 4], ["y"])
    X = np.repeat(np.repeat(rng.random((5, 2, 2)), 4, axis=1), 4, axis=2)
    smaller = encode(Onnx(path, resize=4).fit(X), X).reshape(5, 4, 4)
    np.testing.assert_allclose(smaller[:, ::3, ::3], 2 * X[:, ::7, ::7], rtol=1e-6)  # corners, which are constant
    np.testing.assert_allclose(smaller.mean((1, 2)), 2 * X.mean((1, 2)), rtol=1e-5)
    larger = encode(Onnx(path, resize=4).fit(X[:, ::4, ::4]), X[:, ::4, ::4]).reshape(5, 4, 4)
    between = np.array([[1, 0.75, 0.25, 0], [0, 0.25, 0.75, 1]])  # linear between the centres of pixels
    np.testing.assert_allclose(larger, 2 * between.T @ X[:, ::4, ::4] @ between, rtol=1e-5)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_maps_are_averaged_over_places(layout, tmp_path, rng):
    X = rng.random((9, 6, 5, 2))
    shape = ["n", 2, 6, 5] if layout == "NCHW" else ["n", 6, 5, 2]
    nodes = [helper.make_node("Mul", ["x", "x"], ["squares"])]
    path = write(tmp_path / "squares.onnx", nodes, {}, shape, ["squares"])
    pooled = Onnx(path, layout=layout, pooling="mean").fit(X)
    assert pooled.n_outputs_ == 2
    np.testing.assert_allclose(encode(pooled, X), (X**2).mean((1, 2)), rtol=1e-6)


def test_vectors_are_standardised_over_the_sample(network, rng):
    X = rng.random((40, 6, 5, 2)).astype(np.float32)
    X[:, :3, :3] = 0.0  # a coordinate of every map is constant
    plain = encode(Onnx(network).fit(X), X).astype(np.float64)
    found = encode(Onnx(network, standardize=True).fit(X), X)
    deviation = plain.std(0)
    constant = deviation < 1e-7
    assert 0 < constant.sum() < len(constant)
    assert not found[:, constant].any()
    expected = (plain - plain.mean(0))[:, ~constant] / deviation[~constant]
    np.testing.assert_allclose(found[:, ~constant], expected, atol=1e-4)


@pytest.mark.parametrize("shape", [["n", 3, 4, 1], [2, 3, 4, 1], [1, 3, "w", "c"]], ids=str)
def test_images_with_channels_last_and_batches_of_one_size(shape, tmp_path, rng):
    weights = {"two": np.array(2.0, np.float32)}
    path = write(tmp_path / "double.onnx", [helper.make_node("Mul", ["x", "two"], ["y"])], weights, shape, ["y"])
    X = rng.random((7, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(encode(Onnx(path, layout="NHWC").fit(X), X), 2 * X.reshape(7, 12), rtol=1e-6)


def test_vectors_in_double_precision(tmp_path, rng):
    w = rng.standard_normal((5, 3))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = write(tmp_path / "linear.onnx", nodes, {"w": w}, ["n", 5], ["y"], onnx.TensorProto.DOUBLE)
    X = rng.standard_normal((4, 5))
    np.testing.assert_allclose(encode(Onnx(path, layout="none").fit(X), X), X @ w, rtol=1e-12)


def test_an_output_without_places_cannot_be_pooled(tmp_path, rng):
    path = write(tmp_path / "flat.onnx", [helper.make_node("Flatten", ["x"], ["y"])], {}, ["n", 1, 3, 4], ["y"])
    with pytest.raises(InputError, match=r"^encoder.pooling: expected none for an output that is no maps: y has shape"):
        Onnx(path, pooling="mean").fit(rng.random((2, 3, 4)))


def test_a_fitted_encoder_does_not_need_the_file(network, rng):
    X = rng.random((3, 6, 5, 2)).astype(np.float32)
    encoder = Onnx(network).fit(X)
    expected = encode(encoder, X)
    saved = pickle.dumps(encoder)
    open(network, "w").close()
    np.testing.assert_array_equal(encode(pickle.loads(saved), X), expected)


def test_its_outputs_are_averaged_over_the_orbit(tmp_path, rng):
    w = rng.standard_normal((3, 1, 2, 2)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    path = write(tmp_path / "conv.onnx", nodes, {"w": w}, ["n", 1, 5, 5], ["y"])
    X = rng.random((6, 5, 5)).astype(np.float32)
    quarters = orbit.Orbit(Dihedral(mirror=False))
    exact = Exact(Gaussian(2.0), quarters, encoder=Onnx(path), engine=orbit.Engine(workers=2)).fit(X)
    moved = np.stack([np.rot90(X, k, axes=(1, 2)) for k in range(4)])
    vectors = [torch.conv2d(torch.tensor(np.ascontiguousarray(each))[:, None], torch.tensor(w)) for each in moved]
    points = torch.stack(vectors).flatten(2).double().numpy()
    expected = sum(Gaussian(2.0).gram(a, b) for a in points for b in points) / 16
    np.testing.assert_allclose(exact.gram(X), expected, rtol=1e-5)
    np.testing.assert_allclose(exact.transform(np.ascontiguousarray(moved[1])), exact.transform(X), atol=1e-4)


def test_errors_are_one_line(network, tmp_path, rng):
    X = rng.random((3, 6, 5, 2)).astype(np.float32)
    (tmp_path / "text.onnx").write_text("no network")
    two = [helper.make_node("Add", ["x", "z"], ["y"])]
    graph = helper.make_graph(
        two,
        "two",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3]) for name in "xz"],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    (tmp_path / "two.onnx").write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    )
    wrong = [
        (Onnx(), X, r"^encoder.path: expected the path of a network \(.onnx file\), found None$"),
        (
            Onnx(str(tmp_path / "none.onnx")),
            X,
            r"^encoder.path: expected the path of a network \(.onnx file\), found '.*none.onnx'$",
        ),
        (Onnx(str(tmp_path / "text.onnx")), X, r"^encoder.path=.*text.onnx: onnxruntime cannot read this file \("),
        (Onnx(str(tmp_path / "two.onnx"), layout="none"), X[:, 0, 0], r"takes networks with one input, found x, z in"),
        (
            Onnx(network, output="positiv"),
            X,
            r"^encoder.output=positiv: no such output in .*; did you mean 'positive'\? It",
        ),
        (Onnx(network, layout="NHWC"), X, r"has shape \(n, 2, 6, 5\), points of shape \(6, 5, 2\) have \(n, 6, 5, 2\)"),
        (Onnx(network), X[..., 0], r"has shape \(n, 2, 6, 5\), points of shape \(6, 5\) have \(n, 1, 6, 5\)"),
        (
            Onnx(network),
            X.reshape(3, 60),
            r"^encoder=onnx takes images .* in encoder.layout=NCHW, found vectors of length 60",
        ),
        (
            Onnx(network, scale=[1.0, 1.0, 1.0]),
            X,
            r"^encoder.scale: expected a number, or one for each of 2 channels, found",
        ),
        (
            Onnx(network, channels="apart", scale=[1.0, 1.0, 1.0]),
            X,
            r"^encoder.scale: expected a number, or one for each of 2 channels, found",
        ),
        (Onnx(network), X[:, 1:], r"change it or the points, or set encoder.resize or encoder.channels=apart$"),
        (Onnx(network, layout="none", resize=8), X, r"^encoder.resize: expected None in encoder.layout=none, "),
        (Onnx(network, layout="HWC"), X, r"^encoder.layout: expected one of 'NCHW', 'NHWC', 'none', found 'HWC'$"),
    ]
    for encoder, points, message in wrong:
        with pytest.raises(InputError, match=message) as error:
            encoder.fit(points)
        assert "\n" not in str(error.value)


def test_error_without_onnxruntime_names_the_package_to_install(network, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"^encoder=onnx needs onnxruntime: pip install 'orbit-kernels\[onnx\]'$"):
        Onnx(network).check()
