"""Networks of skeletons: the plain formula, choices, errors, and training resumed from a checkpoint."""

import json

import numpy as np
import oracles
import pytest
import torch
from command_line import folders, mlflow_client

from orbit import AdaGradClassifier, Engine, ImageAugmentation, InputError, NetworkClassifier, RawPoints
from orbit.learners.streaming import FeatureStream, fit_stream
from orbit.testing import ClassifierContract, FeatureMapContract
from runners.experiments.training import Training
from runners.tracking.record import RunFolder

LAYERS = [{"kind": "conv", "size": 3, "stride": 2, "padding": 1}, {"kind": "conv", "size": [2, 1]}, {"kind": "full"}]


class TestPoints(FeatureMapContract):
    component, params = RawPoints, {"random_state": 0}
    gram_error = 1e-10
    random = False

    def evaluate(self, fitted, points, points_fit):
        return np.tensordot(fitted.orbit_.weights_, points, 1)

    def expected_gram(self, fitted, points):
        mean = np.tensordot(fitted.orbit_.weights_, points, 1)
        return mean @ mean.T


class TestNetworkClassifier(ClassifierContract):
    component, params = NetworkClassifier, {"width": 24, "learning_rate": 0.05, "epochs": 15, "random_state": 0}
    float32_error = 0.05  # of logits, after many steps


def test_the_network_is_the_plain_formula(rng):
    X, y = rng.standard_normal((30, 6 * 5 * 2)), rng.integers(0, 3, 30)
    model = NetworkClassifier(LAYERS, [6, 5, 2], channels=4, width=7, learning_rate=0.01, epochs=2, random_state=0)
    values = [p.detach().numpy() for p in model.fit(X, y).network_.parameters()]
    assert [v.shape for v in values] == [(4, 2, 3, 3), (4,), (4, 4, 2, 1), (4,), (7, 24), (7,), (3, 7), (3,)]
    expected = np.array([oracles.network(x.reshape(6, 5, 2), values) for x in X])
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-12)


def test_training_continues_with_the_best_rate_of_the_first_epoch(rng):
    X = rng.standard_normal((200, 5))
    y = (X[:, 0] > 0).astype(int)
    make = lambda rates: NetworkClassifier(width=16, learning_rate=rates, epochs=4, random_state=0).fit(X, y)  # noqa: E731
    together, alone = make([1e-6, 0.05]), make(0.05)
    assert together.learning_rate_ == 0.05
    assert len(together.path_scores_) == 2
    assert len(together.history_) == 4
    np.testing.assert_array_equal(together.decision_function(X), alone.decision_function(X))


@pytest.mark.parametrize("tf32", [False, True])
def test_products_and_convolutions_are_rounded_on_a_gpu_only_if_asked_for(rng, monkeypatch, tf32):
    seen, step = set(), NetworkClassifier._step

    def watched(self, x, y):
        seen.add((torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32))
        return step(self, x, y)

    monkeypatch.setattr(NetworkClassifier, "_step", watched)
    before = torch.backends.cudnn.allow_tf32
    learner = NetworkClassifier(width=4, learning_rate=0.01, epochs=1, engine=Engine(tf32=tf32), random_state=0)
    learner.fit(rng.random((20, 3)), np.arange(20) % 2)
    assert seen == {(tf32, tf32)}
    assert torch.backends.cudnn.allow_tf32 == before


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"layers": [{"kind": "full", "activation": "exp"}]},
            r"^learner.layers\[0\]: a network has activations relu and identity, found exp",
        ),
        ({"layers": [{"kind": "conv"}]}, r"^learner.layers\[0\]: size"),
        ({"layers": LAYERS}, "convolutions take images, found points of shape"),
        ({"layers": LAYERS, "shape": [1, 6, 1]}, "do not fit points of shape"),
        ({"shape": [2, 2]}, "points of shape .2, 2. are rows of 4 numbers, found 6"),
    ],
    ids=str,
)
def test_invalid_networks_are_rejected(params, message):
    with pytest.raises((InputError, ValueError), match=message):
        NetworkClassifier(**params).fit(np.ones((4, 6)), [0, 1, 0, 1])


class _AfterTwo:
    """Keeps the content of the checkpoint after the second epoch, and stops there."""

    def after_epoch(self, learner, stream):
        if learner.epochs_done_ == 2:
            self.arrays, self.state = learner.checkpoint(), json.dumps(stream.state)
            raise KeyboardInterrupt


@pytest.mark.parametrize("n", [120, 16])  # of 16 points, learning rates are still compared after two epochs
@pytest.mark.parametrize("kind", [AdaGradClassifier, NetworkClassifier], ids=lambda kind: kind.__name__)
def test_a_learner_continues_from_a_checkpoint(rng, kind, n):
    X = rng.standard_normal((n, 4, 4))
    y = (X[:, 0, 0] > 0).astype(int)

    def parts():
        augment = ImageAugmentation(shift=1).apply
        stream = FeatureStream(lambda points: points.reshape(len(points), -1), X, 16, Engine(memory=1e-5), 3, augment)
        return kind(learning_rate=[0.01, 0.1], epochs=4, random_state=0), stream

    whole = fit_stream(*parts(), y, "classification")
    watch = _AfterTwo()
    with pytest.raises(KeyboardInterrupt):
        fit_stream(*parts(), y, "classification", callback=watch)
    learner, stream = parts()
    stream.state = json.loads(watch.state)
    learner.resume(watch.arrays)
    resumed = fit_stream(learner, stream, y, "classification")
    assert resumed.history_ == whole.history_
    assert len(whole.history_) == 4
    points = X.reshape(n, -1)
    assert len(watch.arrays["_rates"]) == (1 if n == 120 else 2)
    np.testing.assert_array_equal(resumed.decision_function(points), whole.decision_function(points))


def test_an_interrupted_run_ends_with_the_same_result(run, tmp_path, monkeypatch):
    layers = "kernel.layers=[{kind: conv, size: 3, stride: 2}, {kind: full}]"
    settings = ["approx=skeleton", "approx.n_components=30", "kernel=skeleton", layers, "group=identity"]
    settings += ["learner=adagrad", "learner.learning_rate=[0.01,0.1]", "learner.epochs=4"]
    settings += ["dataset=digits", "dataset.n_train=150", "dataset.n_test=50", "representation=raw"]
    settings += ["engine.stream=true", "engine.memory=0.0001", "augmentation=image", "augmentation.shift=1"]
    settings += ["runner.save_model=false"]

    assert run(*settings, "run_name=a-whole")[0] == 0
    after_epoch = Training.after_epoch

    def stopped(self, learner, stream):
        after_epoch(self, learner, stream)
        if learner.epochs_done_ == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Training, "after_epoch", stopped)
        assert run(*settings, "run_name=b-stopped", "tracking.enabled=false")[0] == 130
    assert len(list((tmp_path / "out" / "checkpoints").iterdir())) == 1
    assert run(*settings, "run_name=c-resumed", "resume=true", "tracking.enabled=false")[0] == 0
    whole, _, resumed = (RunFolder(folder) for folder in folders(tmp_path))
    timeless = [
        {key: value for key, value in folder.read_metrics().items() if not key.startswith(("time/", "memory/"))}
        for folder in (whole, resumed)
    ]
    assert timeless[0] == timeless[1]
    assert "time/earlier_s" not in whole.read_metrics()
    assert resumed.read_metrics()["time/earlier_s"] > resumed.read_metrics()["time/earlier_processor_s"] / 64 > 0
    assert resumed.read_history() == whole.read_history()
    assert not list((tmp_path / "out" / "checkpoints").iterdir())
    assert {"epochs.png", "skeleton.png"} <= {path.name for path in (whole.path / "figures").iterdir()}
    steps = mlflow_client(tmp_path).get_metric_history(whole.read_record().run_id, "epoch/score")
    assert [(m.step, m.value) for m in steps] == list(enumerate(whole.read_history()["epoch/score"], 1))
