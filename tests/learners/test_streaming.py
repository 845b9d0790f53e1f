"""Learning from batches: equal to learning from all features at once, in memory independent of their number."""

import numpy as np
import pytest
import torch
from command_line import fitted, quickly_composed
from samples import batches, noisy_digits, npy_files, points_in_clusters
from sklearn.base import clone

from orbit import Arrays, AveragedMap, Engine, Gaussian, InputError, RandomFourier, UnitNorm
from orbit.learners import (
    AdaGradClassifier,
    AdaGradRegressor,
    KernelRidgeRegressor,
    NetworkClassifier,
    RidgeClassifier,
    RidgeRegressor,
    SteinRegressor,
    SVMClassifier,
)
from orbit.learners.streaming import FeatureStream, fit_stream
from orbit.solvers.selection import DEFAULT_PATH
from runners.config.plan import plan
from runners.job import stores

PATH = [1e-6, 1e-4, 1e-2]


@pytest.mark.parametrize("cls", [RidgeRegressor, KernelRidgeRegressor, SteinRegressor, AdaGradRegressor])
@pytest.mark.parametrize("memory", [1.0, 1e-6], ids=["moments", "passes"])
def test_targets_far_from_zero_are_learned_as_others_from_float32(rng, cls, memory):
    X = rng.standard_normal((200, 15)).astype(np.float32)
    y = X[:, 0] + 0.1 * rng.standard_normal(200)

    def predicted(offset):
        stream = FeatureStream(lambda x: x, X, 15, Engine(memory=memory, progress=False), random_state=0)
        learner = cls(random_state=0)
        return fit_stream(learner, stream, offset + y, "regression").predict(X) - offset

    np.testing.assert_allclose(predicted(1e9), predicted(0.0), atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("learner", "memory"),
    [
        (RidgeRegressor(selection="gcv"), 1.0),
        (RidgeRegressor(list(DEFAULT_PATH), selection="gcv"), 1.0),
        (SteinRegressor(), 1.0),
        (KernelRidgeRegressor(selection="gcv"), 1.0),
        (RidgeRegressor(selection="gcv"), 1e-4),
        (KernelRidgeRegressor(selection="gcv"), 1e-4),
    ],
    ids=["ridge", "given path", "stein", "krr", "ridge in passes", "krr in passes"],
)
@pytest.mark.filterwarnings("ignore:conjugate gradients stopped", "ignore:the chosen regularization")
def test_streams_of_fewer_rows_than_columns_choose_as_in_memory(learner, memory, dtype):
    """Interpolations leave residuals and degrees of freedom that are rounding errors, of which no score may be made."""
    for seed in range(3 if memory == 1 else 1):
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((560, 6))
        y = np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2] / 2 + 0.1 * rng.standard_normal(560)
        X = RandomFourier(Gaussian(2.0), n_components=100, random_state=0).fit(Z).transform(Z).astype(dtype)
        stream = FeatureStream(lambda x: x.copy(), X[:60], X.shape[1], Engine(memory=memory, progress=False))
        streamed = fit_stream(clone(learner), stream, y[:60], "regression")
        whole = clone(learner).fit(X[:60].astype(np.float64), y[:60])
        errors = [np.square(model.predict(X[60:]) - y[60:]).mean() for model in (streamed, whole)]
        assert errors[0] < (1.1 if memory == 1 else 1.3) * errors[1], "in passes, degrees of freedom are estimated"


class TestRidge:
    @pytest.mark.parametrize("band_from", [1800, 1], ids=["eigen", "band"])
    def test_a_stream_gives_the_solution_of_all_data(self, problem, band_from, monkeypatch):
        monkeypatch.setattr("orbit.solvers.factorisations.BAND_FROM", band_from)
        X, Y = problem
        whole, stream = RidgeRegressor(PATH).fit(X, Y), RidgeRegressor(PATH)
        for batch in batches(X, Y):
            stream.partial_fit(*batch)
        stream.finalize()
        assert stream.regularization_ == whole.regularization_
        np.testing.assert_allclose(stream.coef_, whole.coef_, atol=1e-9)
        np.testing.assert_allclose(stream.intercept_, whole.intercept_, atol=1e-8)

    def test_gcv_scores_are_those_of_all_data(self, problem):
        X, Y = problem
        stream = RidgeRegressor(PATH, "gcv").partial_fit(X, Y).finalize()
        np.testing.assert_allclose(stream.path_scores_, RidgeRegressor(PATH, "gcv").fit(X, Y).path_scores_, rtol=1e-8)
        assert stream.selection_curve().criterion == "gcv"
        assert RidgeRegressor(PATH).fit(X, Y).selection_curve().criterion == "loo"

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("cls", [RidgeRegressor, KernelRidgeRegressor])
    def test_leave_one_out_of_a_short_stream_is_that_of_all_data(self, problem, rng, weighted, cls):
        X, Y = problem
        w = rng.integers(0, 4, len(X)) * 1.0 if weighted else np.ones(len(X))
        stream = cls(PATH)
        for x, y, weights in batches(X, Y, w):
            stream.partial_fit(x, y, sample_weight=weights if weighted else None)
        stream.finalize()
        whole = cls(PATH).fit(X, Y, sample_weight=w if weighted else None)
        np.testing.assert_allclose(stream.path_scores_, whole.path_scores_, rtol=1e-6)
        assert stream.selection_curve().criterion == "loo"

    @pytest.mark.parametrize("seed", range(3))
    def test_leave_one_out_of_a_long_stream_is_estimated_from_some_rows(self, seed, monkeypatch):
        """Half of the points in clusters, so that generalised cross-validation chooses too small a value."""
        monkeypatch.setattr("orbit.solvers.ridge.SAMPLED_ROWS", 300)
        path = [1e-4, 1e-3, 1e-2]
        points, y = points_in_clusters(np.random.default_rng(seed), 800)
        X = RandomFourier(Gaussian(1.0), n_components=300, random_state=0).fit(points).transform(points)
        exact, stream = RidgeRegressor(path).fit(X, y), RidgeRegressor(path)
        for x, targets in batches(X, y):
            stream.partial_fit(x, targets)
        stream.finalize()
        assert RidgeRegressor(path, "gcv").fit(X, y).regularization_ < exact.regularization_
        np.testing.assert_allclose(stream.path_scores_, exact.path_scores_, rtol=0.3)  # of four seeds the worst is 0.15
        assert stream.regularization_ == exact.regularization_

    def test_classes(self, rng):
        X = rng.standard_normal((200, 5))
        y = np.array(["owl", "cat", "eel"])[X[:, :3].argmax(1)]
        whole, stream = RidgeClassifier(PATH).fit(X, y), RidgeClassifier(PATH)
        for x, labels in batches(X, y):
            stream.partial_fit(x, labels, classes=["cat", "eel", "owl"])
        np.testing.assert_allclose(stream.decision_function(X), whole.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(stream.predict(X), whole.predict(X))

    def test_predictions_in_between_do_not_end_the_stream(self, problem):
        X, Y = problem
        stream = RidgeRegressor(PATH).partial_fit(X[:150], Y[:150])
        first = stream.predict(X)
        np.testing.assert_allclose(first, RidgeRegressor(PATH).fit(X[:150], Y[:150]).predict(X), atol=1e-8)
        stream.partial_fit(X[150:], Y[150:])
        np.testing.assert_allclose(stream.predict(X), RidgeRegressor(PATH).fit(X, Y).predict(X), atol=1e-8)

    def test_an_unknown_label_is_refused(self):
        for learner in (RidgeClassifier(), AdaGradClassifier()):
            with pytest.raises(ValueError, match="label 3 is not one of the classes"):
                learner.partial_fit(np.eye(2), [0, 1]).partial_fit(np.eye(2), [0, 3])

    def test_fit_forgets_a_stream(self, problem):
        X, Y = problem
        learner = RidgeRegressor(PATH).partial_fit(X[:50], Y[:50]).fit(X, Y)
        np.testing.assert_array_equal(learner.predict(X), RidgeRegressor(PATH).fit(X, Y).predict(X))

    def test_passes_forget_a_stream(self, problem):
        X, Y = problem

        def in_passes(learner: RidgeRegressor) -> RidgeRegressor:
            return learner.fit_passes(lambda: iter([(X.copy(), Y, np.ones(len(X)))]), 2**20)

        learner = in_passes(RidgeRegressor(1e-3).partial_fit(X[:50], -Y[:50]))
        np.testing.assert_array_equal(learner.predict(X), in_passes(RidgeRegressor(1e-3)).predict(X))

    def test_passes_refuse_targets_that_fit_refuses(self, problem):
        X, Y = problem
        with pytest.raises(InputError, match="RidgeRegressor: the largest target must be between"):
            RidgeRegressor(1e-3).fit_passes(lambda: iter([(X.copy(), 1e30 * Y, np.ones(len(X)))]), 2**20)

    @pytest.mark.parametrize("learner", [RidgeClassifier(), AdaGradClassifier(), NetworkClassifier()], ids=repr)
    def test_a_stream_of_one_class_or_of_numbers_is_refused(self, learner):
        for y, message in ((np.zeros(4), "at least 2 classes"), (np.array([0.1, 0.2, 0.3, 0.4]), "continuous")):
            for call in (clone(learner).fit, clone(learner).partial_fit):
                with pytest.raises(ValueError, match=message):
                    call(np.eye(4), y)


class TestStream:
    def test_batches_are_the_features_of_their_rows(self, rng):
        X = rng.random((50, 3))
        stream = FeatureStream(lambda x: x**2, X, 3, Engine(memory=800 / 2**30), 0)
        for shuffle in (False, True, True):
            found = list(stream.batches(shuffle))
            assert len(found) > 3
            rows = np.concatenate([rows for rows, _ in found])
            np.testing.assert_array_equal(np.sort(rows), np.arange(50))
            np.testing.assert_array_equal(np.concatenate([psi for _, psi in found]), X[rows] ** 2)

    def test_points_read_ahead_are_those_read_in_between(self, rng, monkeypatch):
        X, noise = rng.random((50, 3)), lambda points, rng: points + rng.standard_normal(points.shape)
        streams = [FeatureStream(np.square, X, 3, Engine(memory=800 / 2**30), 0, noise) for _ in range(2)]
        expected = [batch for _ in range(2) for batch in streams[0].batches(True)]
        monkeypatch.setattr(Engine, "torch_device", lambda self: torch.device("cuda"))
        found = [batch for _ in range(2) for batch in streams[1].batches(True)]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[1], other[1])
        assert streams[1].state == streams[0].state

    @pytest.mark.parametrize(
        ("approx", "learner", "passes"),
        [("rf", "adagrad", 5), ("nystrom", "adagrad", 5), ("cdf", "adagrad", 5), ("rf", "ridge", 1)],
    )
    def test_a_run_whose_features_stay_on_the_device_is_the_same(self, approx, learner, passes, monkeypatch):
        settings = "dataset=digits", f"approx={approx}", "approx.n_components=30", "dataset.n_train=300", "orbit.size=4"
        settings += f"learner={learner}", "engine.stream=true", "engine.memory=0.001", "feature_cache=0"
        settings += ("kernel.lengthscale=median",)
        expected, calls = fitted(*settings), []
        transform = AveragedMap.transform_on_device
        counted = lambda self, X: calls.append(len(X)) or transform(self, X)  # noqa: E731
        monkeypatch.setattr(AveragedMap, "transform_on_device", counted)
        monkeypatch.setattr("runners.experiments.fitting._stay_on_device", lambda model, engine: True)
        found = fitted(*settings)
        assert sum(calls) == 300 * passes
        coef, other = (each.model["learner"].coef_ for each in (found, expected))
        # moments in float32, whose products may be those of another library
        np.testing.assert_allclose(coef, other, rtol=0, atol=1e-4 * abs(other).max() if learner == "ridge" else 0)
        assert found.metrics["test/accuracy"] == expected.metrics["test/accuracy"] > 0.5

    def test_a_learner_that_needs_all_data_is_rejected(self, rng):
        stream = FeatureStream(lambda x: x, rng.random((5, 2)), 2, Engine())
        with pytest.raises(InputError, match="the learner 'svm' needs all features at once"):
            fit_stream(SVMClassifier(), stream, np.arange(5), "classification")

    @pytest.mark.parametrize("learner", ["ridge", "adagrad"])
    def test_a_streamed_run_is_the_run(self, learner):
        settings = (
            f"learner={learner}",
            *(["learner.epochs=60"] if learner == "adagrad" else []),
            "approx=rf",
            "approx.n_components=40",
            "dataset.n_train=300",
            "dataset=digits",
        )
        settings += ("engine.memory=0.0002", "orbit.size=4", "engine.dtype=float64", "engine.progress=false")
        results = [fitted(*settings, f"engine.stream={value}").metrics for value in ("false", "true")]
        expected = results[0]["test/accuracy"]
        assert expected > 0.5
        # adagrad's order of points differs, ridge has none
        assert results[1]["test/accuracy"] == pytest.approx(expected, abs=1e-12 if learner == "ridge" else 0.06)


class TestSample:
    """The sample that the maps of a stream are fitted to."""

    @pytest.fixture
    def settings(self, tmp_path, rng, monkeypatch):
        monkeypatch.setattr("orbit.learners.streaming.SAMPLE_ROWS", 100)
        files = npy_files(tmp_path, *noisy_digits(rng, 800))
        return *files, "approx.n_components=40", "engine.dtype=float64", "engine.progress=false", "orbit.size=4"

    @pytest.mark.parametrize("learner", ["ridge", "adagrad"])
    def test_a_file_by_rows_is_the_same_points_in_memory(self, settings, learner, monkeypatch):
        settings = (*settings, f"learner={learner}", "approx=rf", "engine.stream=true", "engine.memory=0.0002")
        by_rows = fitted(*settings)
        monkeypatch.setattr(Arrays, "_load_lazily", Arrays._load)
        in_memory = fitted(*settings)
        np.testing.assert_allclose(by_rows.model["learner"].coef_, in_memory.model["learner"].coef_, rtol=1e-7)
        assert by_rows.metrics["test/accuracy"] == in_memory.metrics["test/accuracy"] > 0.5

    def test_nothing_larger_than_the_sample_is_represented_at_once(self, settings, monkeypatch):
        sizes = []
        for step in ("_fit", "_transform"):
            original = getattr(UnitNorm, step)
            monkeypatch.setattr(UnitNorm, step, lambda self, X, f=original: sizes.append(len(X)) or f(self, X))
        fitted(*settings, "approx=rf", "engine.stream=true", "engine.memory=0.0001")
        assert max(sizes) == 100  # of 600 training points
        sizes.clear()
        fitted(*settings, "approx=rf", "engine.stream=false")
        assert max(sizes) == 600

    @pytest.mark.parametrize(
        ("changes", "size"),
        [
            (("approx=rf",), 100),
            (("approx=nystrom",), 100),
            (("approx=nystrom", "approx.n_components=150"), 150),
            (("approx=nystrom", "landmarks=kmeans"), 160),
            (("approx=nystrom", "landmarks=kmeans", "approx.n_components=400"), 600),
            (("approx=exact", "~approx.n_components"), 600),
            (("approx=ovk", "group=identity", "learner=stein", "~approx.n_components"), 600),
            (("approx=rf", "hyper=gaussian", "hyper.approx=nystrom", "hyper.n_components=130"), 130),
            (("approx=rf", "hyper=gaussian", "hyper.approx=rf", "hyper.n_components=130"), 100),
        ],
    )
    def test_is_as_large_as_the_maps_need(self, settings, changes, size):
        settings = [s for s in settings if f"~{s.partition('=')[0]}" not in changes]
        changes = [change for change in changes if not change.startswith("~")]
        sample = plan(quickly_composed(*settings, *changes, "engine.stream=true")).sample(600)
        assert len(np.unique(sample)) == len(sample) == size
        assert 0 <= sample.min() <= sample.max() < 600

    def test_a_second_layer_gets_its_landmarks(self, settings):
        layer = (
            "approx=rf",
            "hyper=gaussian",
            "hyper.approx=nystrom",
            "hyper.n_components=130",
            "hyper.lengthscale=0.3",
        )
        model = fitted(*settings, *layer, "engine.stream=true", "engine.memory=0.0002").model
        assert len(model["hyper"].map_.landmarks_) == 130

    def test_the_exact_kernel_stays_exact(self, settings):
        settings = [s for s in settings if not s.startswith("approx")]
        coordinates = (*settings, "approx=exact", "approx.precomputed=false")
        found = [fitted(*coordinates, f"engine.stream={value}") for value in ("true", "false")]
        assert found[0].metrics["test/accuracy"] == pytest.approx(found[1].metrics["test/accuracy"], abs=1e-12)
        assert found[0].metrics["features/dim"] == found[1].metrics["features/dim"] > 300


@pytest.mark.parametrize(
    ("changes", "times"),
    [
        ((), 1),
        (("hyper=gaussian", "hyper.n_components=30"), 1),
        (("learner=ridge", "learner.regularization=0.1", "engine.memory=1e-5"), 1),  # conjugate gradients
        (("learner.epochs=1",), 1),
        (("feature_cache=0",), 3),
        (("feature_cache=1e-6",), 3),  # there is no room
        (("augmentation=image",), 3),
    ],
)
def test_the_first_layer_is_computed_once_for_all_passes(changes, times, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_BYTES_PER_S", 1e18)  # also what takes no time
    computed, in_stream, compute = list[int](), list[int](), RandomFourier.transform

    def counted(self, X):
        if X.shape[1:] == (8, 8):
            computed.append(len(X))
        return compute(self, X)

    def streamed(*arguments):
        before = sum(computed)
        learner = fit_stream(*arguments)
        in_stream.append(sum(computed) - before)
        return learner

    monkeypatch.setattr(RandomFourier, "transform", counted)
    monkeypatch.setattr("runners.experiments.fitting.fit_stream", streamed)
    settings = ("dataset=digits", "dataset.n_train=100", "approx=rf", "approx.n_components=20", "orbit.size=2")
    settings += ("representation=raw", "engine.stream=true", f"outputs={tmp_path}", "engine.device=cpu")
    settings += ("kernel.lengthscale=median",)
    learner = () if "learner=ridge" in changes else ("learner=adagrad", "learner.epochs=3")
    found = fitted(*settings, *learner, *changes).metrics
    assert in_stream == [100 * times]
    expected = fitted(*settings, *learner, *changes, "feature_cache=0").metrics
    assert found["test/accuracy"] == expected["test/accuracy"]
    assert in_stream[1] > 100 or "learner.epochs=1" in changes
    assert list(tmp_path.iterdir()) == []
