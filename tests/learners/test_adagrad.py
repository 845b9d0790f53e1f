"""AdaGrad: steps by their formula, scales of targets and features, the choice of the learning rate, checkpoints."""

import copy
import pickle
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from orbit import AdaGradClassifier, AdaGradRegressor, InputError, NetworkClassifier, RandomFourier
from orbit.testing import ClassifierContract, RegressorContract


class TestAdaGradClassifier(ClassifierContract):
    component, params = AdaGradClassifier, {"epochs": 20, "random_state": 0}


class TestAdaGradRegressor(RegressorContract):
    component, params = AdaGradRegressor, {"epochs": 100, "random_state": 0}
    linear_in_targets = False


class TestAdaGrad:
    @pytest.mark.parametrize(("offset", "factor"), [(100.0, 1.0), (-1e4, 1.0), (300.0, 1e3), (0.0, 1e-4)])
    def test_predictions_move_with_the_targets(self, offset, factor):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 5))
        Y = X @ rng.standard_normal((5, 2)) + 0.1 * rng.standard_normal((400, 2))
        for learner in (AdaGradRegressor(random_state=0), AdaGradRegressor(0.1, regularization=0.1, random_state=0)):
            expected = factor * learner.fit(X, Y).predict(X) + offset
            np.testing.assert_allclose(learner.fit(X, factor * Y + offset).predict(X), expected, rtol=1e-7)
            assert learner.history_[-1] == pytest.approx(-np.square(factor * Y + offset - expected).mean(), rel=0.5)
        stream = AdaGradRegressor(random_state=0)
        for _ in range(5):
            for rows in np.array_split(np.arange(400), 4):
                stream.partial_fit(X[rows], factor * Y[rows] + offset)
            stream.end_epoch()
        assert stream.finalize().score(X, factor * Y + offset) > 0.98

    def test_targets_of_different_scale_are_learned_as_each_by_itself(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((1500, 4))
        psi = RandomFourier(n_components=100, random_state=0).fit_transform(X)
        Y = np.stack([np.sin(X[:, 0]) + X[:, 1], 1000 * np.cos(X[:, 0]) - 3000, np.full(1500, 7.0)], axis=1)
        together, alone = (AdaGradRegressor(0.1, random_state=0) for _ in range(2))
        predicted = together.fit(psi, Y).predict(psi)
        for k in range(3):
            np.testing.assert_allclose(predicted[:, k], alone.fit(psi, Y[:, k]).predict(psi), rtol=1e-7)
        assert together.history_[-1] == pytest.approx(-np.square(predicted - Y).mean(), rel=0.5)

    @pytest.mark.parametrize("n", [20, 50, 64, 100])
    def test_learning_rates_are_compared_on_few_points(self, n):
        rng = np.random.default_rng(n)
        X = rng.standard_normal((n, 5))
        y = X @ rng.standard_normal(5)
        regressor = AdaGradRegressor(epochs=50, random_state=0).fit(X, y)
        assert len(set(regressor.path_scores_)) == len(regressor.path_)
        assert regressor.score(X, y) > 0.99
        assert AdaGradClassifier(epochs=50, random_state=0).fit(X, y > 0).score(X, y > 0) > 0.9

    @pytest.mark.parametrize("kind", [AdaGradRegressor, AdaGradClassifier])
    @pytest.mark.parametrize("epochs", [1, 2, 3, 4, 5])
    def test_few_steps_do_not_choose_the_largest_learning_rate(self, kind, epochs):
        X = np.random.default_rng(0).standard_normal((60, 5))
        y = X[:, 0] if kind is AdaGradRegressor else X[:, 0] > 0
        learner = kind(learning_rate=[0.1, 0.3, 1e3], epochs=epochs, random_state=0).fit(X, y)
        assert learner.learning_rate_ <= 0.3 or kind is AdaGradClassifier  # whose predictions do not depend on a scale
        assert learner.score(X, y) > (0 if kind is AdaGradRegressor else 0.65)
        # before the first step all scores are equal, and after one step all accuracies
        assert len(set(learner.path_scores_)) > 1 or epochs <= (1 if kind is AdaGradRegressor else 2)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("factor", [1e-23, 1.0, 1e22])
    def test_the_choice_does_not_depend_on_the_scale_of_targets(self, dtype, factor):
        X = np.random.default_rng(0).standard_normal((1000, 5)).astype(dtype)
        chosen = [AdaGradRegressor([0.1, 0.3, 100.0], random_state=0).fit(X, f * X[:, 0]) for f in (1.0, factor)]
        assert chosen[0].learning_rate_ == chosen[1].learning_rate_ < 100
        scores = chosen[1].path_scores_ / factor**2
        np.testing.assert_allclose(scores, chosen[0].path_scores_, rtol=1e-2)

    def test_equal_targets_of_any_size_are_learned_exactly(self, rng):
        X = rng.standard_normal((300, 3))
        for value in (3.3e-9, 0.1, 7e9):  # of which the mean is another number
            np.testing.assert_allclose(AdaGradRegressor().fit(X, np.full(300, value)).predict(X), value, rtol=1e-12)

    @pytest.mark.parametrize("value", [4.15642819882917e-11, 9.2e25])
    def test_equal_features_have_no_size_whatever_their_mean_is_by_rounding(self, value, rng):
        X, y = np.full((897, 5), value, np.float32), rng.standard_normal(897)
        assert np.any(X.mean(0) != X[0])
        found = AdaGradRegressor(random_state=0).fit(X, y).predict(X)
        np.testing.assert_allclose(found, y.mean(), atol=0.1)

    @pytest.mark.parametrize("kind", [AdaGradRegressor, AdaGradClassifier])
    def test_features_whose_squares_float32_does_not_hold_are_learned_in_float64_only(self, kind):
        X = np.random.default_rng(0).standard_normal((300, 5))
        y = X[:, 0] if kind is AdaGradRegressor else X[:, 0] > 0
        expected = kind(random_state=0).fit(X, y).predict(X)
        for size in (1e-24, 1e20):
            np.testing.assert_allclose(kind(random_state=0).fit(size * X, y).predict(size * X), expected, rtol=1e-6)
            with pytest.raises(InputError, match=r"distance of features.* between 1\.1e-15 and 1\.8e\+15 in float32"):
                kind(random_state=0).fit((size * X).astype(np.float32), y)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_equal_targets_in_the_first_batch_have_no_scale(self, dtype):
        X = np.random.default_rng(0).standard_normal((1000, 5)).astype(dtype)
        y = (X[:, 0] + 0.1).astype(dtype)
        y[:63] = 0.1
        learner = AdaGradRegressor(random_state=0)
        for _ in range(5):
            for rows in (slice(0, 63), *(slice(start, start + 64) for start in range(63, 1000, 64))):
                learner.partial_fit(X[rows], y[rows])
            learner.end_epoch()
        assert learner.finalize().score(X[63:], y[63:]) > 0.95

    @pytest.fixture
    def digits(self):
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X / 16, y

    @pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
    def test_steps_are_the_plain_formula(self, rng, loss):
        X, y = rng.standard_normal((40, 4)), rng.integers(0, 3, 40)
        learner = AdaGradClassifier(loss, learning_rate=0.2, regularization=0.01, batch_size=16)
        learner.partial_fit(X, y, classes=[0, 1, 2])
        W, b = np.zeros((4, 3)), np.zeros(3)
        squares, squares_b = np.full((4, 3), 1e-8), np.full(3, 1e-8)
        Y = 2.0 * np.eye(3)[y] - 1
        for start in (0, 16, 32):
            x, t = X[start : start + 16] - X.mean(0), Y[start : start + 16]
            s = x @ W + b
            if loss == "logistic":
                e = np.exp(s - s.max(1, keepdims=True))
                slope = e / e.sum(1, keepdims=True) - (t > 0)
            else:
                slope = -t * (s * t < 1) if loss == "hinge" else 2 * (s - t)
            slope = slope / len(x)
            gradient, gradient_b = x.T @ slope + 0.02 * W, slope.sum(0)
            squares, squares_b = squares + gradient**2, squares_b + gradient_b**2
            W, b = W - 0.2 * gradient / np.sqrt(squares), b - 0.2 * gradient_b / np.sqrt(squares_b)
        np.testing.assert_allclose(learner.coef_, W.T, atol=1e-12)
        np.testing.assert_allclose(learner.intercept_, b - X.mean(0) @ W, atol=1e-12)

    @pytest.mark.parametrize("cls", [AdaGradClassifier, AdaGradRegressor])
    def test_tensors_are_learned_from_as_arrays_are(self, digits, cls):
        X, y = digits[0].astype(np.float32), digits[1]
        known = {"classes": range(10)} if cls is AdaGradClassifier else {}
        by_array, by_tensor = (cls(epochs=2, random_state=0) for _ in range(2))
        for rows in (slice(0, 900), slice(900, None)):
            by_array.partial_fit(X[rows], y[rows], **known)
            by_tensor.partial_fit(torch.from_numpy(X[rows]), y[rows], **known)
        assert by_tensor.n_features_in_ == 64
        np.testing.assert_array_equal(by_tensor.coef_, by_array.coef_)
        np.testing.assert_array_equal(by_tensor.predict(X), by_array.predict(X))

    @pytest.mark.parametrize(
        ("wrong", "targets", "message"),
        [
            (torch.ones(5, 1), 5, r"X: expected a tensor of shape \(m, 4\), float32 or float64, found \(5, 1\)"),
            (torch.ones(4), 4, r"found \(4,\)"),
            (torch.ones(5, 4, dtype=torch.float16), 5, "found .*float16"),
            (torch.ones(5, 4), 1, "y: expected as many targets as points, 5, found 1"),
        ],
    )
    def test_tensors_of_another_shape_are_refused(self, wrong, targets, message):
        learner = AdaGradClassifier().partial_fit(torch.ones(6, 4), np.arange(6) % 2)
        with pytest.raises(ValueError, match=message):
            learner.partial_fit(wrong, np.zeros(targets, dtype=int))

    def test_a_fit_after_one_that_was_interrupted_in_its_first_epoch_is_as_any_other(self, digits, monkeypatch):
        expected = AdaGradClassifier(epochs=1, random_state=0).fit(*digits).coef_
        learner = AdaGradClassifier(epochs=1, random_state=0)
        with monkeypatch.context() as patch:
            patch.setattr(AdaGradClassifier, "_batch_scores", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                learner.fit(*digits)
        assert learner.finalize().predict(digits[0]).shape == (len(digits[0]),)
        np.testing.assert_array_equal(learner.fit(*digits).coef_, expected)

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
    @pytest.mark.parametrize("cls", [AdaGradClassifier, AdaGradRegressor])
    def test_a_copy_keeps_its_model_while_the_learner_is_trained_further(self, digits, cls, copied):
        X, y = digits
        learner = cls(random_state=0).partial_fit(X[:900], y[:900])
        kept, expected = copied(learner), copy.deepcopy(learner).predict(X)
        learner.partial_fit(X[900:], y[900:])
        np.testing.assert_array_equal(kept.predict(X), expected)
        assert not np.array_equal(learner.predict(X), expected)

    def test_coefficients_of_two_classes_give_the_decision_function(self, digits):
        X, y = digits
        learner = AdaGradClassifier(epochs=1, random_state=0).fit(X, y > 4)
        assert (learner.coef_.shape, learner.intercept_.shape) == ((1, 64), (1,))
        scores = X @ learner.coef_.T + learner.intercept_
        np.testing.assert_allclose(learner.decision_function(X), scores[:, 0], atol=1e-10)

    def test_batches_of_many_numbers_take_the_same_steps_with_several_threads(self, digits, monkeypatch):
        X, y = digits
        seen, step = [], AdaGradClassifier._step

        def watched(*batch):
            seen.append(torch.get_num_threads())
            return step(*batch)

        monkeypatch.setattr(AdaGradClassifier, "_step", watched)
        monkeypatch.setattr("orbit.learners.epochs.default_threads", lambda: 2)
        narrow = AdaGradClassifier(epochs=2, random_state=0).fit(X, y)
        assert set(seen) == {1}
        seen.clear()
        monkeypatch.setattr("orbit.learners.epochs._WIDE_BATCH", 64 * X.shape[1])
        wide = AdaGradClassifier(epochs=2, random_state=0).fit(X, y)
        assert set(seen) == {2}
        np.testing.assert_allclose(wide.coef_, narrow.coef_, atol=1e-12)

    def test_the_number_of_threads_is_restored(self, rng, monkeypatch):
        monkeypatch.setattr("orbit.learners.epochs._WIDE_BATCH", 0)
        before = torch.get_num_threads()
        X, y = rng.standard_normal((80, 5)), rng.integers(0, 2, 80)
        for learner in (AdaGradClassifier(epochs=1), NetworkClassifier(width=4, epochs=1, threads=before + 1)):
            learner.fit(X, y)
            assert torch.get_num_threads() == before

    def test_a_batch_is_not_modified(self, digits):
        X, y = digits
        before = X.copy()
        AdaGradClassifier(random_state=0).partial_fit(X, y)
        np.testing.assert_array_equal(X, before)

    def test_rates_side_by_side_are_rates_one_by_one(self, digits):
        X, y = digits
        together = AdaGradClassifier(learning_rate=[0.01, 0.3], random_state=0).fit(X, y)
        alone = [AdaGradClassifier(learning_rate=rate, random_state=0).fit(X, y) for rate in (0.01, 0.3)]
        np.testing.assert_allclose(together.path_scores_, [learner.path_scores_[0] for learner in alone])
        best = alone[int(np.argmax(together.path_scores_))]
        np.testing.assert_allclose(together.coef_, best.coef_, atol=1e-10)

    def test_scores_of_rates_are_on_points_not_yet_seen(self, rng):
        X, y = rng.standard_normal((400, 300)), rng.integers(0, 2, 400)  # nothing to learn
        learner = AdaGradClassifier(learning_rate=[0.1, 1.0], epochs=20, random_state=0).fit(X, y)
        assert learner.score(X, y) > 0.95  # learnt by heart
        assert np.all(np.abs(learner.path_scores_ - 0.5) < 0.1)


@pytest.mark.parametrize("cls", [AdaGradClassifier, NetworkClassifier])
def test_a_checkpoint_can_be_resumed_from_twice_and_later_steps_do_not_change_it(rng, cls):
    X, y = rng.standard_normal((300, 12)), rng.integers(0, 3, 300)
    learner = cls(learning_rate=[0.1, 0.3], random_state=0).partial_fit(X, y)
    learner.end_epoch()
    saved = learner.checkpoint()
    expected = learner.partial_fit(X, y).decision_function(X)
    for _ in range(2):
        again = cls(learning_rate=[0.1, 0.3], random_state=0)
        again.resume(saved)
        np.testing.assert_array_equal(again.partial_fit(X, y).decision_function(X), expected)


@pytest.mark.parametrize("first", [np.float32, np.float64])
@pytest.mark.parametrize("cls", [AdaGradClassifier, NetworkClassifier])
def test_batches_have_the_precision_of_the_first(rng, cls, first):
    X, y = rng.standard_normal((100, 5)).astype(np.float32), rng.integers(0, 3, 100)
    one, other = (cls(learning_rate=0.1, random_state=0).partial_fit(X.astype(first), y) for _ in range(2))
    for learner, dtype in ((one, np.float32), (other, np.float64)):
        learner.partial_fit(X.astype(dtype), y)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_default_learning_rates_suit_features_of_any_scale(rng, scale):
    X = rng.standard_normal((400, 30))
    y = (X[:, 0] > 0).astype(int)
    one, other = (AdaGradClassifier(epochs=3, random_state=0).fit(X * factor, y) for factor in (1.0, scale))
    np.testing.assert_allclose(other.path_, one.path_ / scale, rtol=1e-9)
    np.testing.assert_allclose(other.decision_function(X * scale), one.decision_function(X), rtol=1e-6)
