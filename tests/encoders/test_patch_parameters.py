"""Parameters of the patch encoder, as keys of a configuration and as layers of parts, and its errors."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from test_patch_encoder import encoded, patches_of

from orbit.core.errors import InputError
from orbit.encoders import ContrastNormalization, GridPooling, Layer, MeanRemoval, Patches, Rectified, Whitening
from orbit.groups import Dihedral
from orbit.kernels import Laplacian, Polynomial
from orbit.kernels.landmarks import Leverage, Uniform
from orbit.testing.samples import smooth_images

WRONG = [
    ({"n_components": 0}, r"^encoder.n_components: expected an integer >= 1, found 0$"),
    ({"layers": []}, r"^encoder.layers: expected at least one layer"),
    ({"layers": [{"n_components": 0}]}, r"^encoder.layers\[0\]\.n_components: expected an integer >= 1, found 0$"),
    ({"layers": [{}, {"kernel": "cosine"}]}, r"^encoder.layers\[1\]\.kernel: expected one of 'exponential', "),
    (
        {"layers": [{"n_component": 3}]},
        r"^encoder.layers\[0\]: a layer has no parameter 'n_component'; did you mean 'n_comp",
    ),
    ({"layers": [{"unit_norm": True}]}, r"^encoder.layers\[0\]: a layer has no parameter 'unit_norm'"),
    ({"layers": [3]}, r"^encoder.layers: expected a list, each item a mapping or null, found \[3\]$"),
    ({"group": "rotation"}, r"^encoder.group: expected a finite group that reorders the entries of a patch, or None"),
    ({"layers": [{"group": "turns"}]}, r"^encoder.layers\[0\]: .*no such group"),
]


@pytest.mark.parametrize(("parameters", "message"), WRONG, ids=str)
def test_invalid_parameters_raise_before_the_fit(parameters, message):
    with pytest.raises(InputError, match=message):
        patches_of(**parameters).check()


WRONG_LAYERS = [
    (Layer(size=0), r"^encoder.layers\[0\]\.size: expected an integer >= 1, found 0$"),
    ({"size": 3}, r"^encoder.layers: expected a list, each item a Layer or null"),
    (Layer(kernel=Laplacian()), r"^encoder.layers\[0\]\.kernel: expected a kernel of the angle of unit vectors"),
    (Layer(kernel=Polynomial(), approx="rf"), r"^encoder.layers\[0\]\.approx: expected 'nystrom'"),
    (Layer(landmarks=Uniform("orbit")), r"^encoder.layers\[0\]\.landmarks: expected a rule with source='data'"),
    (
        Layer(kernel=Rectified(), landmarks=Leverage()),
        r"^encoder.layers\[0\]\.landmarks: expected a rule that needs no kernel",
    ),
    (Layer(kernel=Rectified(-1.0)), r"^encoder.layers\[0\]\.kernel\.threshold: expected a finite number >= 0"),
]


@pytest.mark.parametrize(("layer", "message"), WRONG_LAYERS, ids=str)
def test_invalid_layers_raise_before_the_fit(layer, message):
    with pytest.raises(InputError, match=message):
        Patches([layer]).check()


def test_keys_of_the_configuration_are_layers_of_parts(rng):
    keys = {"size": 4, "normalization": "whitening", "whitening": 0.2, "kernel": "rectified", "threshold": 0.3}
    keys |= {"pooling": "grid", "cells": 2, "group": "dihedral", "n_components": 6}
    layer = Layer(4, 1, Whitening(0.2), Rectified(0.3), n_components=6, group=Dihedral(), pooling=GridPooling(2))
    X = smooth_images(rng, 20, 9, 9)
    for by_keys, layers in (
        (patches_of(**keys), [layer]),
        (
            patches_of(layers=[{}, {"size": 2, "group": None}], **keys),
            [layer, clone(layer).set_params(size=2, group=None, normalization__per_channel=False)],
        ),
    ):
        by_objects = Patches([clone(each) for each in layers])
        np.testing.assert_array_equal(encoded(by_keys.fit(X, 0), X), encoded(by_objects.fit(X, 0), X))


REFUSED = [
    ((4,), {}, r"^encoder.size: expected at most 4, for patches of maps with sides \(4,\), found 5"),
    ((8, 12), {"size": 9}, r"^encoder.size: expected at most 8, for patches of maps with sides \(8, 12\), found 9"),
    (
        (8, 12),
        {"layers": [{}, {"size": 3}]},
        r"^encoder.layers\[1\]\.size: expected at most 2, for patches of maps with sides \(2, 3\)",
    ),
    ((20,), {"dilation": [2, 8]}, r"^encoder.dilation: expected at most 4, for patches of maps with sides \(20,\)"),
    ((20,), {"dilation": [1, 2]}, r"^encoder.dilation: expected one, or a padding or pooling='grid'"),
    ((20,), {"pooling": "grid", "cells": [1, 2]}, r"^encoder.pooling: expected one, or one for each of 1 axes"),
    ((20,), {"group": "dihedral"}, r"^encoder.group: .* acts on square images"),
    ((8, 8, 8, 8, 8), {}, r"^encoder=patches takes series, images or volumes"),
]


@pytest.mark.parametrize(("shape", "options", "message"), REFUSED, ids=str)
def test_points_without_such_patches_are_refused(shape, options, message):
    with pytest.raises(InputError, match=message):
        patches_of(**options).fit(np.zeros((3, *shape)))


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("normalization", [MeanRemoval, ContrastNormalization, Whitening])
def test_normalization_returns_the_norms_of_what_it_leaves(normalization, per_channel):
    patches = torch.from_numpy(np.random.default_rng(0).normal(2, 1, (3 * 16, 200)))
    patches[:, :3], patches[:16, 3:6] = 1.5, 0.7  # constant, and with a constant channel
    fitted = normalization(per_channel=per_channel).fit(patches.clone(), lambda points: points[None], 3)
    norms = fitted.apply(patches)
    assert torch.allclose(norms, patches.square().sum(0).sqrt(), rtol=1e-12, atol=0)
    assert normalization is Whitening or not norms[:3].any()
