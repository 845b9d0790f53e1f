"""Linear models of features for regression and classification: targets, and a solver of least squares."""

import copy
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from orbit.core.device_matrix import as_matrix
from orbit.core.errors import InputError
from orbit.core.params import PositiveFloat
from orbit.core.random import RandomState
from orbit.core.tiled_matrix import TiledMatrix
from orbit.learners.base import Learner, checked_weights, linear_predictions
from orbit.learners.targets import Labels, Numbers, check_classes, check_outputs
from orbit.solvers.moments import Centering
from orbit.solvers.ridge import RidgeSolver, RidgeStream, Solution
from orbit.solvers.selection import warn_at_end
from orbit.solvers.structure import GramStructure, unpacked


class LinearLearner(Learner):
    """Base class of linear learners: holds targets, numbers or labels; a subclass gives the solver.

    Attributes
    ----------
    path_, path_scores_ : arrays
        The values tried and their scores, higher is better; NaN for a single one.
    regularization_ : float
        The lambda in use.
    solution_error_ : float or None
        The relative error of the coefficients, as measured, of a kernel matrix in float32; None for others.
    solution_residual_ : float or None
        What the solution for a kernel matrix that is not held leaves of the targets, as a share of them, as measured;
        None for others.
    """

    path_parameter = "regularization"

    regularization: PositiveFloat | list[PositiveFloat] | None
    validation_fraction: float
    random_state: RandomState

    solution_error_: float | None = None
    solution_residual_: float | None = None

    _targets: Numbers | Labels

    def _targets_of(self, y: np.ndarray, classes: np.ndarray | None = None) -> Numbers | Labels:
        """What targets like ``y`` are; ``classes`` are all labels if ``y`` is a part."""
        return Numbers(type(self).__name__, y.ndim == 1)

    @abstractmethod
    def _solver(self) -> Any:
        """A solver with the method :meth:`~orbit.solvers.ridge.RidgeSolver.fit`."""

    def fit(self, X, y, sample_weight=None, clusters=None):
        """Fit to features ``X``, shape (n, d), targets ``y``, and weights, shape (n,); None: equal.

        Learners with ``fits_tensors`` take features as a tensor too, also on a GPU, and compute there. ``y`` are class
        labels, shape (n,), or real targets, shape (n,) or (n, k). With ``clusters``, shape (n,), lambda is chosen by
        folds of clusters: points of one are left out together.
        """
        self.check()
        structure, X = self._accepted(X)
        X, y = self._validated(X, y, reset=True)
        self._targets = self._targets_of(y)
        Y, weights = self._encoded(y), self._point_weights(sample_weight, X, y)
        decide, clusters = self._targets.decide, None if clusters is None else np.asarray(clusters)
        solution = self._solver().fit(structure, X, Y, weights, y if decide else None, decide, clusters)
        # coefficients of kernel values are large and of both signs
        self._set_solution(solution, np.dtype(np.float64) if isinstance(structure, GramStructure) else X.dtype)
        return self

    def _encoded(self, y: np.ndarray) -> np.ndarray:
        """Targets as columns of numbers, float64, shape (n, k)."""
        return self._targets.encode(y).astype(np.float64, copy=False)

    def _set_solution(self, solution: Solution, dtype: np.dtype) -> None:
        """Set the fitted attributes, for features of ``dtype``."""
        self.regularization_, self.path_, self.path_scores_ = solution.value, solution.path, solution.scores
        warn_at_end(solution.path, solution.scores, solution.value)
        if solution.output_matrix is not None:
            self.output_matrix_ = solution.output_matrix
        self.solution_error_, self.solution_residual_ = solution.error, solution.residual
        self._coefficients, self._intercept = solution.W.astype(dtype), solution.b
        self.coef_, self.intercept_ = self._targets.linear_model(self._coefficients, self._intercept)

    def metrics(self) -> dict[str, float]:
        measured = {
            "learner/solution_error": self.solution_error_,
            "learner/solution_residual": self.solution_residual_,
        }
        return super().metrics() | {name: value for name, value in measured.items() if value is not None}

    def _scores(self, X) -> np.ndarray:
        return linear_predictions(self._points(X), self._coefficients, self._intercept)

    def predict(self, X) -> np.ndarray:
        """Predictions: class labels, shape (n,), or real numbers shaped like the targets, (n,) or (n, k)."""
        scores = self._scores(X)
        return self._targets.decode(scores)


class LeastSquaresLearner(LinearLearner):
    """Least squares in closed form, from rows or from a stream of batches.

    Attributes
    ----------
    centering : see :data:`~orbit.solvers.moments.Centering`
    fit_intercept : whether there is an intercept; a parameter of some learners
    """

    centering: ClassVar[Centering] = "both"
    fit_intercept: bool = True

    selection: str
    first_row = 0
    _stream: RidgeStream | None = None
    _chosen_by: str | None = None
    _precise = False
    _below_float32 = False

    def _solver(self) -> RidgeSolver:
        return RidgeSolver(
            self._path(),
            trim=self.regularization is None,
            selection=self.selection,
            validation_fraction=self.validation_fraction,
            random_state=self.random_state,
            centering=self.centering if self.fit_intercept else "none",
            coupled=self.operator_valued,
        )

    def fit(self, X, y, sample_weight=None, clusters=None):
        self._stream, self._chosen_by = None, None if clusters is None else "k_fold"
        if isinstance(unpacked(X)[1], TiledMatrix):
            self._chosen_by = "gcv"
        return super().fit(X, y, sample_weight, clusters)

    fit.__doc__ = LinearLearner.fit.__doc__

    def path_predictions(self, X, y, path: np.ndarray, X_new, sample_weight=None) -> Iterator[np.ndarray]:
        """Predictions for ``X_new`` after a fit with each lambda of ``path``, from one factorisation.

        A learned output matrix depends on lambda, and needs one for each.
        """
        (structure, X), y = self._accepted(X), np.asarray(y)
        X, values = as_matrix(X), as_matrix(unpacked(X_new)[1])
        targets = copy.copy(self)._targets_of(y)
        Y = targets.encode(y).astype(np.float64, copy=False)
        weights = self._point_weights(sample_weight, X, y)
        for W, b in self._solver().path_solutions(structure, X, Y, weights, path):
            yield targets.decode(values @ W + b)

    def fit_bytes(self, n: int, d: int) -> int:
        return 3 * 8 * min(n, d) ** 2  # second moments or a Gram matrix, and what its factorisation takes

    def operations(self, n: int, d: int) -> float:
        return float(n) * d * min(n, d)  # second moments or a Gram matrix, and its factorisation

    def gather(self) -> None:
        """Sum the moments of all processes of a distributed job; call before :meth:`finalize`."""
        assert self._stream is not None
        self._stream.gather()

    def finalize(self):
        """End a stream: choose lambda, solve, and free the moments.

        How lambda is chosen: :class:`~orbit.solvers.ridge.RidgeStream`. If it has not been called, :meth:`predict` does
        the same on a copy, so that the stream can continue.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            self._set_stream_solution(stream, stream.solve())
        return self

    def needs_float64(self) -> bool:
        """Whether a finalized stream should be repeated in float64, after :meth:`restart`.

        True if the best lambda may be smaller than float32 products resolve.
        """
        return self._below_float32

    def restart(self) -> None:
        """Restart the stream, with products in float64."""
        self._stream, self._precise = None, True

    def _partial(self, X, y, sample_weight, classes=None):
        self.check()
        first = self._stream is None
        structure, X = self._accepted(X)
        if isinstance(structure, GramStructure):
            raise InputError("partial_fit takes no kernel values: set precomputed=False for the features")
        if self.class_weight is not None:
            raise InputError("learner.class_weight=balanced needs the labels of all points: fit to all of them at once")
        X, y = self._validated(X, y, reset=first)
        if first:
            self._targets = self._targets_of(y, classes)
        Y = self._encoded(y)
        if self._stream is not None:
            check_outputs(Y, self._stream.n_outputs)
        weights = None if sample_weight is None else checked_weights(sample_weight, X, of_batch=True)
        if self._stream is None:
            self._stream = RidgeStream(self._solver(), structure, X.dtype, Y.shape[1], self._precise, self.first_row)
            self._precise = False
        self._stream.add(X, Y, weights)
        return self

    def _set_stream_solution(self, stream: RidgeStream, solution: Solution) -> None:
        self._chosen_by = stream.criterion
        self._set_solution(solution, stream.dtype)

    def _scores(self, X) -> np.ndarray:
        stream = self._stream
        if stream is not None and stream.changed:  # batches were added since the last solution
            self._set_stream_solution(stream, stream.solution_so_far())
        return super()._scores(X)

    def _criterion(self) -> str:
        return self._chosen_by or self.selection

    def _set_solution(self, solution: Solution, dtype: np.dtype) -> None:
        self._below_float32 = solution.below_float32
        super()._set_solution(solution, dtype)


class LeastSquaresRegressor(MultiOutputMixin, RegressorMixin, LeastSquaresLearner):
    """Regressors by least squares."""

    def partial_fit(self, X, y, sample_weight=None):
        """Take in a batch of a stream, of which d x d moments are kept. See :meth:`finalize`.

        The first batch after ``fit`` or ``finalize`` begins a new stream; ``coef_`` is that of the stream from the next
        call of ``predict`` or ``finalize`` on.

        Parameters
        ----------
        X : array, shape (m, d)
        y : array, shape (m,) or (m, k)
        sample_weight : array, shape (m,), or None
        """
        return self._partial(X, y, sample_weight)


class LeastSquaresClassifier(ClassifierMixin, LeastSquaresLearner):
    """Classifiers by least squares on labels that ``_code`` turns into numbers."""

    _targets: Labels
    _code: ClassVar[staticmethod]

    def _targets_of(self, y, classes=None) -> Labels:
        self.classes_ = check_classes(y if classes is None else np.asarray(classes))
        return Labels(self.classes_, self._code)

    def decision_function(self, X) -> np.ndarray:
        """Scores, shape (n, k); for two classes the scores of the second, shape (n,)."""
        scores = self._scores(X)
        return self._targets.decision(scores)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Take in a batch of a stream, of which d x d moments are kept. See :meth:`finalize`.

        The first batch after ``fit`` or ``finalize`` begins a new stream; ``coef_`` is that of the stream from the next
        call of ``predict`` or ``finalize`` on.

        Parameters
        ----------
        X : array, shape (m, d)
        y : array, shape (m,)
        classes : array or None
            All labels of the stream, given with the first batch; None: those in that batch.
        sample_weight : array, shape (m,), or None
        """
        return self._partial(X, y, sample_weight, classes)
