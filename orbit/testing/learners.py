"""Contracts of classifiers and regressors, and of the selection of a regularisation strength."""

import pickle
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

from orbit.core.errors import ParameterError
from orbit.core.params import parameters
from orbit.learners.protocols import GivesProbabilities, SharesPath
from orbit.testing.component import ComponentContract


class LearnerContract(ComponentContract):
    """A learner that can fit at least linear functions.

    Attributes
    ----------
    fixed : parameters with which no hyperparameter is chosen from data
    float32_error : largest absolute difference of predictions in float32 and float64
    exactness : largest absolute error of predictions that must be linear in the targets
    weights_error : largest absolute error of scores with ``sample_weight``
    weights_repeat : whether a weight of 2 is equivalent to repeating the point
    """

    fixed: ClassVar[dict[str, Any]] = {"regularization": 0.1}
    float32_error: ClassVar[float] = 1e-3
    exactness: ClassVar[float] = 1e-8
    weights_error: ClassVar[float] = 1e-8
    weights_repeat: ClassVar[bool] = True

    def seeded(self, seed: int, **params) -> Any:
        takes_seed = "random_state" in parameters(type(self.create()))
        return self.create(**({"random_state": seed} if takes_seed else {}), **params)

    def scores(self, fitted, X: Any) -> np.ndarray:
        method = ("decision_function", "predict_proba", "predict")
        return next(getattr(fitted, name) for name in method if hasattr(fitted, name))(X)

    def problem(self, rng, n: int = 120) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def test_learns_a_linear_problem(self, rng):
        X, y = self.problem(rng, 240)
        assert self.create().fit(X[:120], y[:120]).score(X[120:], y[120:]) > 0.85

    def test_same_seed_same_model(self, rng):
        X, y = self.problem(rng)
        one, two = (self.seeded(3).fit(X, y) for _ in range(2))
        np.testing.assert_array_equal(self.scores(one, X), self.scores(two, X))

    def test_fitted_component_pickles(self, rng):
        X, y = self.problem(rng)
        fitted = self.create().fit(X, y)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))

    def test_predict_before_fit_is_refused(self, rng):
        learner = self.create()
        for call in (lambda: learner.predict(self.problem(rng)[0]), learner.metrics, learner.selection_curve):
            with pytest.raises(NotFittedError):
                call()

    def test_float32_is_close_to_float64(self, rng):
        X, y = self.problem(rng)
        single_X = X.astype(np.float32)
        double, single = self.seeded(0).fit(X, y), self.seeded(0).fit(single_X, y)
        np.testing.assert_allclose(single.predict(single_X), double.predict(X), atol=self.float32_error)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("n_more", [0, 194], ids=["n > d", "n < d"])
    def test_tensors_are_fitted_as_arrays(self, rng, dtype, n_more):
        if not self.create().fits_tensors:
            pytest.skip("takes no tensors")
        X, y = self.problem(rng)
        X = np.hstack([X, 0.1 * rng.standard_normal((len(X), n_more))]).astype(dtype)
        tensor, atol = torch.from_numpy(X), 1e-10 if dtype is np.float64 else self.float32_error
        for params in (self.fixed, {}):
            for weights in ({}, {"sample_weight": rng.random(len(X))}):
                expected, found = (self.seeded(0, **params).fit(each, y, **weights) for each in (X, tensor))
                scores = self.scores(found, tensor)
                assert type(scores) is np.ndarray
                np.testing.assert_allclose(scores, self.scores(expected, X), atol=atol)

    def test_sample_weights_are_relative_and_zero_drops_a_point(self, rng):
        if not has_fit_parameter(self.create(), "sample_weight"):
            pytest.skip("takes no sample weights")
        X, y = self.problem(rng, 60)
        weights = rng.integers(0, 3, 60)
        fit = lambda X, y, w: self.seeded(0, **self.fixed).fit(X, y, sample_weight=w)  # noqa: E731
        expected = self.scores(fit(X, y, weights), X)
        if self.weights_repeat:
            expected = self.scores(fit(np.repeat(X, weights, axis=0), np.repeat(y, weights), None), X)
        assert np.abs(expected - self.scores(fit(X, y, None), X)).max() > 1e-3, "weights matter"
        for scale in (1, 10.0):
            np.testing.assert_allclose(self.scores(fit(X, y, scale * weights), X), expected, atol=self.weights_error)


class PathContract(LearnerContract):
    """A learner with a regularisation strength that is given, or chosen from a path on the training data.

    Inherit from it together with the contract of the kind.

    Attributes
    ----------
    path : four values of the strength, not in order
    """

    path: ClassVar[list] = [1e-1, 1e-5, 10.0, 1e-3]

    def strength(self, value) -> dict[str, Any]:
        return {self.create().path_parameter: value}

    def size(self, fitted, X: np.ndarray) -> float:
        """A norm of the fitted function."""
        if hasattr(fitted, "coef_"):
            return float(np.linalg.norm(fitted.coef_))
        return float(self.scores(fitted, X).std())

    def test_given_strength_is_used(self, rng):
        value = min(self.path)
        learner = self.create(**self.strength(value)).fit(*self.problem(rng))
        assert getattr(learner, f"{learner.path_parameter}_") == value
        np.testing.assert_array_equal(learner.path_, [value])
        assert np.isnan(learner.path_scores_).all(), "one value needs no scores"

    def test_strength_is_the_best_of_the_path(self, rng):
        learner = self.seeded(0, **self.strength(self.path)).fit(*self.problem(rng))
        np.testing.assert_array_equal(learner.path_, sorted(self.path))
        assert learner.path_scores_.shape == (4,)
        best = learner.path_[learner.path_scores_ >= learner.path_scores_.max() - learner.negligible_score]
        assert getattr(learner, f"{learner.path_parameter}_") == best.max(), "the larger of equally good ones"

    def test_more_regularisation_gives_smaller_functions(self, rng):
        X, y = self.problem(rng)
        sizes = [self.size(self.create(**self.strength(value)).fit(X, y), X) for value in sorted(self.path)[1:]]
        assert sizes[0] > sizes[1] > sizes[2] > 0

    @pytest.mark.parametrize(
        ("value", "found"), [(0.0, "0.0"), (-1, "-1"), ("big", "'big'"), ([], r"\[\]"), ([0.1, 0.0], r"\[0.1, 0.0\]")]
    )
    def test_impossible_strengths_are_refused(self, rng, value, found):
        name = self.create().path_parameter
        with pytest.raises(ParameterError, match=f"^learner.{name}: expected .*found {found}$"):
            self.create(**self.strength(value)).fit(*self.problem(rng))

    @pytest.mark.parametrize("fraction", [0.0, 1.0, 1.5])
    def test_impossible_validation_fractions_are_refused(self, fraction):
        if "validation_fraction" not in parameters(type(self.create())):
            pytest.skip("holds nothing out")
        with pytest.raises(ParameterError, match="validation_fraction"):
            self.create(validation_fraction=fraction).check()

    def test_path_predictions_are_those_of_one_fit_for_each_value(self, rng):
        X, y = self.problem(rng)
        learner = self.create()
        if not isinstance(learner, SharesPath):
            pytest.skip("shares no path")
        weighted = has_fit_parameter(learner, "sample_weight")
        for weights in [{}, {"sample_weight": rng.random(120)}] if weighted else [{}]:
            found = list(learner.path_predictions(X, y, np.array(self.path), X[:7] + 0.1, **weights))
            for value, predicted in zip(self.path, found, strict=True):
                expected = self.create(**self.strength(value)).fit(X, y, **weights).predict(X[:7] + 0.1)
                assert predicted.dtype == expected.dtype
                if expected.dtype.kind == "f":
                    np.testing.assert_allclose(predicted, expected, atol=1e-8)
                else:
                    np.testing.assert_array_equal(predicted, expected)


class ClassifierContract(LearnerContract):
    kind = "classifier"

    def problem(self, rng, n: int = 120):
        centres = 2 * np.random.default_rng(5).standard_normal((3, 6))
        labels = rng.integers(0, 3, n)
        return centres[labels] + 0.7 * rng.standard_normal((n, 6)), labels

    @pytest.mark.parametrize("names", [[3, 8, 1], ["owl", "cat", "eel"], [2, 9], ["no", "yes"], [True, False]], ids=str)
    def test_labels_of_any_type_are_accepted(self, rng, names):
        X, labels = self.problem(rng)
        keep = labels < len(names)
        X, y = X[keep], np.array(names)[labels[keep]]
        classifier = self.create().fit(X, y)
        np.testing.assert_array_equal(classifier.classes_, np.unique(names))
        assert classifier.score(X, y) > 0.85
        if hasattr(classifier, "decision_function"):
            scores = classifier.decision_function(X)
            assert scores.shape == ((len(X), 3) if len(names) == 3 else (len(X),))
            chosen = scores.argmax(1) if len(names) == 3 else (scores > 0).astype(int)
            np.testing.assert_array_equal(classifier.classes_[chosen], classifier.predict(X))
        if isinstance(classifier, GivesProbabilities):
            labels, shares = classifier.predict_with_probabilities(X)
            np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)
            np.testing.assert_array_equal(np.unique(names)[shares.argmax(1)], labels)
            np.testing.assert_array_equal(classifier.predict(X), labels)
            np.testing.assert_array_equal(classifier.predict_proba(X), shares)

    def test_one_class_is_refused(self, rng):
        with pytest.raises(ValueError, match="at least 2 classes, found one class"):
            self.create().fit(self.problem(rng)[0], np.zeros(120, dtype=int))

    def test_continuous_labels_are_refused(self, rng):
        with pytest.raises(ValueError, match="continuous"):
            self.create().fit(self.problem(rng)[0], rng.random(120))


class RegressorContract(LearnerContract):
    """A regressor.

    Attributes
    ----------
    linear_in_targets : whether predictions are linear in the training targets
    """

    kind = "regressor"
    linear_in_targets: ClassVar[bool] = True

    def problem(self, rng, n: int = 120):
        X = rng.standard_normal((n, 6))
        return X, X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0, 1.0]) + 4 + 0.1 * rng.standard_normal(n)

    def test_outputs_are_shaped_as_targets(self, rng):
        X, y = self.problem(rng)
        assert self.create().fit(X, y).predict(X).shape == y.shape
        Y = np.column_stack([y, 2 * y + 1])
        predicted = self.create(**self.fixed).fit(X, Y).predict(X)
        assert predicted.shape == Y.shape
        if self.linear_in_targets:
            np.testing.assert_allclose(predicted[:, 1], 2 * predicted[:, 0] + 1, atol=self.exactness)

    def test_targets_far_from_zero_are_predicted_as_others_from_float32(self, rng):
        X, y = self.problem(rng)
        X = X.astype(np.float32)
        expected, found = (self.seeded(0).fit(X, offset + y).predict(X) - offset for offset in (0.0, 1e9))
        np.testing.assert_allclose(found, expected, atol=self.float32_error)
