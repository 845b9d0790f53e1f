"""The base class of learners, and learners that wrap scikit-learn's solvers and choose a parameter from a path."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, mean_squared_error
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_array, check_is_fitted, check_non_negative, validate_data
from torch import Tensor

from orbit.core.component import Estimator
from orbit.core.device_matrix import DeviceMatrix, as_matrix
from orbit.core.errors import InputError
from orbit.core.params import check_params
from orbit.core.parts import Split, validation_parts
from orbit.core.random import RandomState, spawn
from orbit.core.threads import threads_for
from orbit.core.tiled_matrix import TiledMatrix
from orbit.core.warned import warn, with_warnings
from orbit.learners.targets import check_classes
from orbit.solvers.selection import (
    DEFAULT_PATH,
    best_of_path,
    normalized_weights,
    positive,
    subset_weights,
    warn_at_end,
)
from orbit.solvers.structure import GramStructure, Independent, unpacked

#: ``balanced`` weighs points so that all classes count the same; a mapping has the weights of classes.
ClassWeight = Literal["balanced"] | dict | None

#: The precisions of features that a learner takes.
FLOATS = [np.float64, np.float32]

# Numbers that are converted to float64 at once for a product.
_CONVERTED = 2**22


@dataclass(frozen=True)
class Curve:
    """The scores by which a learner has chosen a parameter.

    Attributes
    ----------
    parameter : its name
    path, scores : arrays, shape (m,)
        Values in ascending order and their scores, higher is better; NaN where a value was not tried.
    chosen : the value in use
    criterion : the kind of score: ``gcv``, ``loo``, ``hold_out``, ``k_fold``, ``hold_out_log_loss``,
        ``k_fold_log_loss`` or ``marginal_likelihood``
    errors : array, shape (m,), or None
        Standard errors of the scores, where there are several validation parts.
    """

    parameter: str
    path: np.ndarray
    scores: np.ndarray
    chosen: float
    criterion: str
    errors: np.ndarray | None = None


class Learner(Estimator):
    """Base class of classifiers and regressors, which offer what they implement of :mod:`~orbit.learners.protocols`.

    Attributes
    ----------
    operator_valued : bool
        Uses the structure of operator-valued features (``OperatorRandomFourier`` or ``OperatorExact``).
    takes_points : bool
        Is fitted to raw points, not to features of a kernel.
    needs_norms : bool
        Needs |psi(x)|^2 to be the prior variance of x, for which exact features have an additional column.
    takes_gram : bool
        Takes kernel values with the training points (``Exact(precomputed=True)``) as features, and factorises their
        matrix.
    path_parameter : str or None
        The constructor parameter that is a number or a list of numbers to choose from, or None;
        the chosen one is the fitted attribute of that name with ``_``.
    default_path : sequence of float
        The values to choose from if that parameter is None.
    negligible_score : float
        Differences of scores on the path up to this one do not matter: the largest value is chosen.
    fits_tensors : bool
        ``fit`` and ``predict`` also take features as a tensor, float32 or float64: what is as large as they are stays
        on its device.
    takes_tensors : bool
        ``partial_fit`` also takes features as a tensor on the device of its engine, whose values are not checked.
    auto_lengthscale : str
        What a run takes for a lengthscale of the kernel that is ``auto``.
    takes_from_kernel : tuple of str
        Names of parameters that a run takes from the kernel where they are None.
    """

    operator_valued: ClassVar[bool] = False
    takes_points: ClassVar[bool] = False
    needs_norms: ClassVar[bool] = False
    takes_gram: ClassVar[bool] = False
    fits_tensors: ClassVar[bool] = False
    takes_tensors: ClassVar[bool] = False
    path_parameter: ClassVar[str | None] = None
    class_weight: ClassWeight = None
    default_path: ClassVar[Sequence[float]] = DEFAULT_PATH
    negligible_score: ClassVar[float] = 0.0
    auto_lengthscale: ClassVar[str] = "auto"
    takes_from_kernel: ClassVar[tuple[str, ...]] = ()

    n_features_in_: int
    path_: np.ndarray
    path_scores_: np.ndarray
    path_errors_: np.ndarray | None = None

    def check(self) -> None:
        """Raise ``ParameterError`` if a parameter has the wrong type or range."""
        check_params(self)
        if self.path_parameter is not None:
            self._path()

    def fit_bytes(self, n: int, d: int) -> int:
        """Bytes that ``fit`` takes at least, besides ``n`` rows of ``d`` features."""
        return 0

    def operations(self, n: int, d: int) -> float:
        """Operations of ``fit`` to ``n`` rows of ``d`` features, up to a factor: passes over all numbers."""
        return float(n) * d

    def metrics(self) -> dict[str, float]:
        """Fitted values for the record of a run, by names ``learner/...``; ``NotFittedError`` before ``fit``."""
        check_is_fitted(self)
        if self.path_parameter is None:
            return {}
        found = {f"learner/{self.path_parameter}": float(self._chosen())}
        if self.path_errors_ is not None:
            found["learner/score_std_error"] = float(self.path_errors_[self.path_ == self._chosen()][0])
        return found

    def selection_curve(self) -> Curve | None:
        """The scores by which the parameter was chosen; None if there was no choice."""
        check_is_fitted(self)
        if self.path_parameter is None or len(self.path_) < 2 or not np.isfinite(self.path_scores_).any():
            return None
        scores, errors = self.path_scores_, self.path_errors_
        return Curve(self.path_parameter, self.path_, scores, self._chosen(), self._criterion(), errors)

    def predict_with_probabilities(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Classes, shape (n,), and their probabilities, shape (n, k), of a learner with ``predict_proba``."""
        return self.predict(X), self.predict_proba(X)

    def _point_weights(self, sample_weight: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray | None:
        """Validated sample weights, shape (n,), times those of the classes; None if all are equal."""
        weights = None if sample_weight is None else checked_weights(sample_weight, X)
        if self.class_weight is None:
            return weights
        of_classes = compute_sample_weight(self.class_weight, y)
        return of_classes if weights is None else of_classes * weights

    def _validated(self, X, y, reset: bool) -> tuple[Any, np.ndarray]:
        """Features and targets of the kind that the learner takes, checked by scikit-learn."""
        numbers = isinstance(self, RegressorMixin)
        if numbers:
            _refuse_classes(y, type(self).__name__)
        if self.fits_tensors and isinstance(X, Tensor | TiledMatrix):
            y = validate_data(self, y=y, reset=reset, multi_output=numbers, y_numeric=numbers)
            return self._matrix(X, reset, y), y
        return validate_data(self, X, y, reset=reset, dtype=FLOATS, multi_output=numbers, y_numeric=numbers)

    def _points(self, X) -> Any:
        """Validated features for a prediction."""
        check_is_fitted(self, "path_")
        X = unpacked(X)[1]
        if self.fits_tensors and isinstance(X, Tensor | TiledMatrix):
            return self._matrix(X, reset=False)
        return validate_data(self, X, reset=False, dtype=FLOATS)

    def _matrix(self, X: Any, reset: bool, y: np.ndarray | None = None) -> DeviceMatrix | TiledMatrix:
        """Features on a device or in tiles, validated with targets as scikit-learn validates arrays."""
        X = self._checked_tensor(X, reset, y)
        if isinstance(X, TiledMatrix):
            return X
        if not bool(X.sum().isfinite()) and not bool(X.isfinite().all()):  # a sum may overflow
            raise ValueError("Input X contains NaN or infinity.")
        return as_matrix(X)

    def _checked_tensor(self, X: Any, reset: bool, y: np.ndarray | None = None) -> Any:
        """Features as a tensor or in tiles, whose shape and type are checked."""
        width, known = None if reset else self.n_features_in_, (torch.float32, torch.float64, *FLOATS)
        if X.ndim != 2 or X.dtype not in known or X.shape[1] != (width or X.shape[1]):
            expected = f"a tensor of shape (m, {width or 'd'}), float32 or float64"
            raise ValueError(f"X: expected {expected}, found {tuple(X.shape)}, {X.dtype}")
        if y is not None and len(X) != len(y):
            raise ValueError(f"y: expected as many targets as points, {len(X)}, found {len(y)}")
        self.n_features_in_ = X.shape[1]
        return X

    def _accepted(self, X) -> tuple[Independent, Any]:
        """The structure of features, as far as the learner uses it, and the features without it.

        Raises
        ------
        InputError
            For kernel values and operator-valued features that this learner does not take.
        """
        structure, X = unpacked(X)
        learner = type(self).__name__
        if isinstance(structure, GramStructure) and not self.takes_gram:
            raise InputError(f"{learner} takes no kernel values: set precomputed=False for the features")
        if isinstance(structure, GramStructure) or self.operator_valued:
            return structure or Independent(), X
        if structure is not None and structure.is_coupled:
            raise InputError(
                f"{learner} fits each output by itself, and outputs of these operator-valued features depend on one "
                "another: choose SteinRegressor, GaussianProcess, SteinClassifier or CGRegressor"
            )
        return Independent(), X

    def _path(self) -> np.ndarray:
        """The values to choose from, ascending, float64."""
        name = str(self.path_parameter)
        values = getattr(self, name)
        try:
            path = np.atleast_1d(np.asarray(self.default_path if values is None else values, dtype=np.float64))
        except (TypeError, ValueError):
            raise self.wrong(name, "a number or a list of numbers") from None
        if len(path) == 0:
            raise self.wrong(name, "at least one value")
        return np.sort(path)

    def _criterion(self) -> str:
        return "hold_out" if self.path_errors_ is None else "k_fold"

    def _chosen(self) -> float:
        assert self.path_parameter is not None
        return float(vars(self)[f"{self.path_parameter}_"])


def _refuse_classes(y: Any, learner: str) -> None:
    """Raise ``InputError`` for targets of a regressor that are texts and no numbers."""
    values = np.asarray(y)
    try:
        if values.dtype.kind in "OSU":
            values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{learner}: expected numbers as targets ({error}); classes need a classifier, such as RidgeClassifier"
        ) from error


def linear_predictions(X: Any, W: np.ndarray, b: np.ndarray | float) -> np.ndarray:
    """``X W + b``, the product in the wider precision of both; the sum in that of ``b``, which may be far from zero.

    Parameters
    ----------
    X : array or matrix on a device, shape (n, d)
    W, b : arrays, shapes (d, k) or (d,), and (k,) or ()
    """
    if X.dtype == np.float32 and W.dtype == np.float64:  # a block of rows at a time
        step = max(1, _CONVERTED // max(1, X.shape[1]))
        blocks = [X[start : start + step].astype(W.dtype) @ W for start in range(0, len(X), step)]
        return np.concatenate(blocks or [X @ W]) + b
    return X @ W.astype(X.dtype, copy=False) + b


def checked_weights(sample_weight: Any, X: np.ndarray, of_batch: bool = False) -> np.ndarray:
    """Validated weights, float64, shape (n,), none negative; all may be zero only in a batch of a stream."""
    if of_batch and not np.any(sample_weight):
        return np.zeros(len(X))
    if sample_weight is None or isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), 1.0 if sample_weight is None else sample_weight)
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (len(X),):
        raise ValueError(f"sample_weight: expected an array of shape ({len(X)},), found one of {weights.shape}")
    check_non_negative(weights, "`sample_weight`")
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


class SolverLearner(Learner):
    """A learner that wraps a scikit-learn estimator, with one hyperparameter given or chosen by validation.

    A subclass implements ``_solver``, and names the parameter that may be a path. It is chosen by accuracy or the mean
    square error, unless the subclass says otherwise, on the parts of :func:`~orbit.core.parts.validation_parts`.

    Attributes
    ----------
    path_parameter : str
        The constructor parameter that is a value, or a list of them to choose
        from; the chosen one is the fitted attribute of that name with ``_``.
    published : fitted attributes that are copied from scikit-learn's estimator
    """

    path_parameter = "regularization"
    default_path: ClassVar[Sequence[float]] = tuple(10.0**k for k in range(-6, 0))
    value_type: ClassVar[type] = float
    published: ClassVar[tuple[str, ...]] = ()

    validation_fraction: float
    random_state: RandomState

    @abstractmethod
    def _solver(self, value: Any, y: np.ndarray, weights: np.ndarray | None, seed: int) -> Any:
        """scikit-learn's estimator for one value of the hyperparameter, to be fitted to the weighted targets ``y``."""

    def _score(self, solver: Any, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> float:
        """Score of a fitted solver on the validation part, higher is better."""
        if isinstance(self, ClassifierMixin):
            return float(accuracy_score(y, solver.predict(X), sample_weight=weights))
        return -float(mean_squared_error(y, solver.predict(X), sample_weight=weights))

    def _fit(self, X, y, sample_weight: Any = None, clusters: Any = None):
        self.check()
        X, y = self._validated(self._accepted(X)[1], y, reset=True)
        if isinstance(self, ClassifierMixin):
            self.classes_ = check_classes(y)
        else:
            y = y.astype(np.float64)
        weights = normalized_weights(self._point_weights(sample_weight, X, y))
        seed = spawn(self.random_state, 1)[0]
        self.path_, self._unconverged = self._path(), set[float]()
        parts = list[Split]()
        if len(self.path_) > 1:
            labels = y if isinstance(self, ClassifierMixin) else None
            parts = validation_parts(len(X), self.validation_fraction, labels, clusters, seed)
        value, self.path_scores_ = self._choose(X, y, weights, parts, seed)
        if self.value_type is float:  # numbers of neighbours have their own ends
            warn_at_end(self.path_, self.path_scores_, value, f"learner.{self.path_parameter}")
        setattr(self, f"{self.path_parameter}_", self.value_type(value))
        self.estimator_ = self._trained(value, X, y, weights, seed)
        for name in self.published:
            setattr(self, name, getattr(self.estimator_, name))
        unconverged = ", ".join(f"{each:.3g}" for each in sorted(self._unconverged))
        del self._unconverged
        if unconverged:
            steps = more = ""
            if "max_iter" in (parameters := self.get_params(deep=False)):  # a learner of one's own may have none
                steps, more = f" after learner.max_iter={parameters['max_iter']} steps", ", or more steps"
            warnings.warn(
                f"the solver stopped{steps} before it converged for learner.{self.path_parameter}={unconverged}: "
                f"give larger values{more}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _choose(self, X, y, weights, parts: list[Split], seed: int) -> tuple[float, np.ndarray]:
        """The value of the path with the best mean score of the parts, and these means.

        Values are tried from the largest on. The path ends before one at which the solver does not converge on the
        first part and scores lower than a larger value did there: it and smaller ones, which take the longest, have
        NaN.
        """
        parts = [part for part in parts if not isinstance(self, ClassifierMixin) or len(np.unique(y[part[0]])) > 1]
        scores = np.full((len(parts), len(self.path_)), np.nan)
        for k in reversed(range(len(self.path_) if parts else 0)):
            value = float(self.path_[k])
            score = partial(self._score_of_part, value, X, y, weights, seed)
            scores[0, k] = score(parts[0])
            if value in self._unconverged and (scores[0, k] < scores[0, k + 1 :]).any():
                self._unconverged.discard(value)
                scores[0, k] = np.nan
                break
            scores[1:, k] = [score(part) for part in parts[1:]]
        self.path_errors_ = None
        if len(scores) > 1:
            self.path_errors_ = scores.std(0, ddof=1) / np.sqrt(len(scores))
        means = scores.mean(0) if len(scores) else np.full(len(self.path_), np.nan)
        return best_of_path(self.path_, dict(zip(self.path_, means, strict=True)).__getitem__, self.negligible_score)

    def _score_of_part(self, value: float, X, y, weights: np.ndarray | None, seed: int, part: Split) -> float:
        fit, validation = part
        w_fit, w_validation = subset_weights(weights, fit, validation)
        solver = self._trained(value, X[fit], y[fit], w_fit, seed)
        return float(self._score(solver, X[validation], y[validation], w_validation))

    def _trained(self, value: float, X, y, weights: np.ndarray | None, seed: int) -> Any:
        weighted = {}
        if weights is not None:
            kept = positive(weights)  # libsvm miscounts points of weight zero
            weights, X, y = normalized_weights(weights[kept]), X[kept], y[kept]
            weighted = {"sample_weight": weights}
        solver = self._solver(self.value_type(value), y, weights, seed)
        with threads_for(float(X.size)):  # the solvers take many small products
            fitted, caught = with_warnings(lambda: solver.fit(X, y, **weighted))
        others = tuple(one for one in caught if not issubclass(one[1], ConvergenceWarning))
        if len(others) < len(caught):  # their text names no parameter of this learner
            self._unconverged.add(float(value))
        warn(others)
        return fitted

    def predict(self, X) -> np.ndarray:
        """Predictions, shape (n,), or (n, k) for several outputs."""
        X = self._points(X)
        return self.estimator_.predict(X)


class SolverClassifier(ClassifierMixin, SolverLearner):
    """A classifier that wraps one of scikit-learn's, which takes sample weights and gives scores of the classes."""

    def fit(self, X, y, sample_weight=None, clusters=None):
        """Fit to ``X``, shape (n, d), class labels ``y``, shape (n,), and weights, shape (n,); None means equal.

        Points of equal ``clusters``, shape (n,), are in one validation part.
        """
        return self._fit(X, y, sample_weight, clusters)

    def decision_function(self, X) -> np.ndarray:
        """Scores, shape (n, k), or (n,) for two classes."""
        X = self._points(X)
        return self.estimator_.decision_function(X)
