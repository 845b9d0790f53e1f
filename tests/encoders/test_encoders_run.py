"""Encoders on the command line: every runner that makes features, streams, a second layer, saved models, errors."""

import json

import numpy as np
import pytest
from command_line import folders

PATCHES = (
    *("representation=raw", "encoder=patches", "encoder.size=3", "encoder.n_components=4", "encoder.pool_stride=2"),
    *("tracking.enabled=false", "engine.workers=1"),
)
SMALL = (
    "dataset.n_train=200",
    "dataset.n_test=100",
    "approx.n_components=80",
    "orbit.size=4",
    "runner.save_model=false",
)


def metrics(tmp_path):
    (folder,) = folders(tmp_path)
    return json.loads((folder / "metrics.json").read_text())


def test_a_fit_names_its_encoder_and_its_model_predicts(run, tmp_path):
    folder = run.finished(*PATCHES, *SMALL[:-1])
    assert "-rotation-patches-nystrom-" in folder.name
    record = json.loads((folder / "run.json").read_text())
    assert record["params"]["encoder.name"] == "patches"
    assert record["params"]["encoder.n_components"] == 4
    assert metrics(tmp_path)["test/accuracy"] > 0.6
    X = np.random.default_rng(0).random((3, 8, 8)).astype(np.float32)
    np.save(tmp_path / "new.npy", X)
    model = f"runner.model={folder}"
    run.ok("runner=predict", model, f"runner.input={tmp_path / 'new.npy'}", "tracking.enabled=false")


@pytest.mark.parametrize(
    "settings",
    [
        ("engine.stream=true", "engine.memory=0.001", *SMALL),
        ("hyper=gaussian", "hyper.n_components=30", *SMALL),
        ("encoder.layers=[{size: 2}, {n_components: 6, pooling: grid}]", "approx=rf", *SMALL),
        ("approx=exact", "learner=kernel_svm", *SMALL[:2], *SMALL[3:]),
        ("runner=measure", "runner.sizes=[8, 30]", "runner.n_points=20", "runner.repeats=1", "orbit.size=3"),
        (
            *("runner.measure=orbit_error", "runner=measure", "runner.sizes=[2, 16]", "runner.n_points=10"),
            *("runner.repeats=1", "runner.options={reference: 64}"),
        ),
    ],
    ids=lambda settings: settings[0],
)
def test_every_runner_works_with_an_encoder(run, tmp_path, settings):
    run.ok(*PATCHES, *settings)
    found = metrics(tmp_path)
    if settings[0] == "runner=measure":
        errors = [found[f"rel_fro_error/error/{size}"] for size in (8, 30)]
        assert errors[1] < 0.5 * errors[0] < 0.1  # of the same encoder
    elif settings[0] == "runner.measure=orbit_error":
        assert found["error/quadrature/16"] < 0.5 * found["error/quadrature/2"]
    else:
        assert found["test/accuracy"] > 0.6
