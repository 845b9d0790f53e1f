"""Regularised least squares, on rows in memory or on streams, every lambda of a path from one factorisation."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from orbit.core.errors import InputError
from orbit.core.params import Fraction, PositiveFloat
from orbit.core.random import RandomState, hold_out
from orbit.core.threads import threads_for
from orbit.learners.base import checked_weights
from orbit.learners.linear import LinearLearner
from orbit.learners.targets import Labels, check_classes, check_outputs
from orbit.solvers.least_squares import Dual, Gram, LeastSquares, Primal
from orbit.solvers.moments import Moments, System
from orbit.solvers.output_matrix import learn_output
from orbit.solvers.passes import Batches, StreamedSystem
from orbit.solvers.repeats import Repeats
from orbit.solvers.sample import RowSample
from orbit.solvers.selection import (
    SAMPLED_ROWS,
    Choice,
    Score,
    best_of_path,
    choose,
    drop_zero_weights,
    gcv,
    gcv_scores,
    held_out,
    in_float32,
    leave_one_out,
    normalized_weights,
    subset_weights,
    warn_at_end,
)
from orbit.solvers.structure import Constant, GramStructure, Operator, Structure

Selection = Literal["loo", "gcv", "hold_out"]

# Features, targets and weights of the rows of a least-squares problem.
_Rows = tuple[np.ndarray, np.ndarray, np.ndarray | None]

# Values whose iterations converge within the passes that are allowed, with features of norm one.
_SMALLEST_IN_PASSES = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-10}


class LeastSquaresLearner(LinearLearner):
    """Least squares in closed form, from rows or from a stream of batches."""

    selection: str
    first_row = 0
    _stream: _Stream | None = None
    _chosen_by: str | None = None
    _precise = False
    _below_float32 = False

    def path_predictions(self, X, y, path: np.ndarray, X_new, sample_weight=None) -> Iterator[np.ndarray]:
        """Predictions for ``X_new`` after a fit with each lambda of ``path``, from one factorisation.

        A learned output matrix depends on lambda, and needs one for each.
        """
        model, values = copy.copy(self), np.asarray(X_new)
        structure, X = model._unpacked(X)
        model._targets = model._targets_of(np.asarray(y))
        X, Y, weights = model._rows(structure, X, model._encoded(np.asarray(y)), sample_weight)
        weights, X, Y = drop_zero_weights(weights, X, Y)
        learns = isinstance(structure, Structure) and structure.learns_output  # an output matrix for each lambda
        for part in path[:, None] if learns else [path]:
            ascending = np.sort(part)
            problem = model._problem(structure, (X, Y, weights), ascending, float32=False)
            problem.factorise(ascending)
            for regularization in part:
                W, b = model._for_map(structure, *problem.solve(float(regularization)))
                yield model._targets.decode(values @ W + b)

    def fit_bytes(self, n: int, d: int) -> int:
        return 3 * 8 * min(n, d) ** 2  # second moments or a Gram matrix, and what its factorisation takes

    def operations(self, n: int, d: int) -> float:
        return float(n) * d * min(n, d)  # second moments or a Gram matrix, and its factorisation

    def _fit_rows(self, structure, X, Y, weights, labels) -> None:
        self._stream, self._chosen_by = None, None
        with threads_for(X.shape[0] * X.shape[1] * float(min(X.shape))):
            choice = self._choice(structure, X, Y, weights, labels)
            self._set_solution(choice, structure, X.dtype)

    def _choice(
        self,
        structure: Structure | None,
        X: np.ndarray,
        Y: np.ndarray,
        weights: np.ndarray | None,
        labels: np.ndarray | None,
    ) -> Choice:
        """The chosen value of the path, and the factorised problem of all rows."""
        path, trim, whole = self._path(), self.regularization is None, (X, Y, weights)
        # for a given path, operator-valued systems of any size take products in float32
        size = min(X.shape) if trim or not self.operator_valued else math.inf
        float32 = in_float32(X.dtype, size, path, trim)
        if len(path) == 1:
            return self._choose_from(structure, whole, path, float32, gcv_scores)
        if self.selection not in ("gcv", "loo"):
            part = self._choose_on_parts(structure, whole, path, float32, labels)
            fitted = self._choose_from(structure, whole, np.array([part.value]), float32, gcv_scores)
            return dataclasses.replace(part, problem=fitted.problem)
        repeats = Repeats.find(X, Y, weights)

        def scorer(problem: LeastSquares) -> Score:
            if self.selection == "gcv":
                return gcv_scores(problem, repeats)
            return leave_one_out(problem, X, Y, weights, repeats)

        return self._choose_from(structure, whole, path, float32, scorer)

    def _choose_from(
        self,
        structure: Structure | None,
        rows: _Rows,
        path: np.ndarray,
        float32: bool,
        scorer: Callable[[LeastSquares], Score],
    ) -> Choice:
        """Choose from a path by scores of the problem of some rows; once more in float64 if float32 is too coarse."""
        problem, trim = self._problem(structure, rows, path, float32), self.regularization is None and len(path) > 1
        choice = choose(problem, path, trim, float32, scorer, self.selection == "loo")
        return self._choose_from(structure, rows, path, False, scorer) if choice.below_float32 else choice

    def _choose_on_parts(
        self, structure: Structure | None, whole: _Rows, path: np.ndarray, float32: bool, labels: np.ndarray | None
    ) -> Choice:
        """Choose from a path on a part that is held out, or with ``two_fold`` on both halves in turn."""
        X, Y, weights = whole
        share = 0.5 if self.selection == "two_fold" else self.validation_fraction
        rows_per_point = structure.rows_per_point if structure is not None else 1
        fit, validation = hold_out(len(X) // rows_per_point, share, labels, self.random_state, rows_per_point)
        w_fit, w_validation = subset_weights(weights, fit, validation)

        def scorer(problem: LeastSquares) -> Score:
            score = held_out(problem, X[validation], Y[validation], w_validation, self._targets.decide)
            if self.selection != "two_fold":
                return score
            rows = X[validation], Y[validation], normalized_weights(w_validation)
            turned = self._problem(structure, rows, path, False)
            turned.factorise(path, False)
            other = held_out(turned, X[fit], Y[fit], w_fit, self._targets.decide)
            return lambda regularization: (score(regularization) + other(regularization)) / 2

        return self._choose_from(structure, (X[fit], Y[fit], normalized_weights(w_fit)), path, float32, scorer)

    def _problem(self, structure: Structure | None, rows: _Rows, path: np.ndarray, float32: bool) -> LeastSquares:
        X, Y, weights = rows
        operator, centering = self._operator(structure, Y, weights), self._centering(structure)
        learns = structure is not None and structure.learns_output
        if learns or operator.n_rows(len(X)) >= operator.n_parameters(X.shape[1]):
            system = System.from_rows(X, Y, weights, centering, not float32)
            return _primal(operator, system, structure, path)
        return Dual(operator, X, Y, weights, centering, not float32)

    def gather(self) -> None:
        """Sum the moments of all processes of a distributed job; call before :meth:`finalize`."""
        assert self._stream is not None
        self._stream.moments.all_reduce()
        if self._stream.sample is not None:
            self._stream.sample.gather()

    def finalize(self):
        """End a stream: choose lambda, solve, and free the moments.

        With ``selection="loo"`` the leave-one-out error is exact up to 1,000 rows, and above estimated from that many,
        which are drawn at random and kept. Any other ``selection`` is generalised cross-validation here, since no
        part is held out. If it has not been called, :meth:`predict` does the same on a copy, so that the stream can
        continue.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            self._solve_stream(stream)
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
        structure, X = self._unpacked(X)
        if isinstance(structure, GramStructure):
            raise InputError("partial_fit takes no kernel values: set precomputed=False for the features")
        X, y = self._validated(X, y, reset=first)
        if first:
            self._targets = self._targets_of(y, classes)
        encoded = self._encoded(y)
        if self._stream is not None:
            check_outputs(encoded, self._stream.n_outputs)
        X, Y, weights = self._rows(structure, X, encoded, sample_weight, of_batch=True)
        if self._stream is None:
            self._stream = self._new_stream(structure, X.dtype, encoded.shape[1])
        self._stream.add(X, Y, weights)
        return self

    def _new_stream(self, structure: Structure | None, dtype: np.dtype, n_outputs: int) -> _Stream:
        path = self._path()
        float32 = in_float32(dtype, math.inf, path, self.regularization is None) and not self._precise
        self._precise = False
        sample = RowSample(SAMPLED_ROWS, self.first_row) if self.selection == "loo" and len(path) > 1 else None
        return _Stream(structure, Moments(not float32), sample, dtype, n_outputs)

    def _solve_stream(self, stream: _Stream) -> None:
        stream.changed, self._chosen_by = False, "loo" if self.selection == "loo" else "gcv"
        path, moments = self._path(), stream.moments
        like_targets = moments.y_shift[None] if stream.structure is None else moments.like_targets()
        operator = self._operator(stream.structure, like_targets)
        system = moments.system(self._centering(stream.structure))
        problem = _primal(operator, system, stream.structure, path)
        float32 = stream.dtype == np.float32 and not moments.precise
        leverages = stream.sample is not None
        choice = choose(problem, path, self.regularization is None, float32, stream.scores, leverages)
        self._set_solution(choice, stream.structure, stream.dtype)

    def _scores(self, X) -> np.ndarray:
        stream = self._stream
        if stream is not None and stream.changed:  # batches were added since the last solution
            self._solve_stream(copy.deepcopy(stream))
            stream.changed = False
        return super()._scores(X)

    def _criterion(self) -> str:
        return self._chosen_by or self.selection

    def _set_solution(self, choice: Choice, structure: Structure | None, dtype: np.dtype) -> None:
        """Set the fitted attributes from a choice and its solution."""
        self.regularization_, self.path_, self.path_scores_ = choice.value, choice.path, choice.scores
        self._below_float32 = choice.below_float32
        warn_at_end(choice.path, choice.scores, choice.value)
        operator = choice.problem.operator
        if structure is not None and isinstance(operator, Constant):
            self.output_matrix_ = operator.output_matrix
        self._keep(*self._for_map(structure, *choice.problem.solve(choice.value)), dtype)


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


class _Stream:
    """The moments of the batches of a stream so far, and some of their rows for the leave-one-out error."""

    def __init__(
        self, structure: Structure | None, moments: Moments, sample: RowSample | None, dtype: np.dtype, n_outputs: int
    ) -> None:
        self.structure, self.moments, self.sample, self.dtype = structure, moments, sample, dtype
        self.n_outputs, self.changed = n_outputs, False

    def add(self, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> None:
        self.moments.add(X, Y, weights)
        if self.sample is not None:
            self.sample.add(X, Y, np.ones(len(X)) if weights is None else weights)
        self.changed = True

    def scores(self, problem: LeastSquares) -> Score:
        """The scores of the factorised problem of all rows: leave-one-out if there is a sample of them."""
        if self.sample is None:
            return gcv_scores(problem)
        X, Y, weights = self.sample.rows()
        # weights have a mean of one over all rows
        return leave_one_out(problem, X, Y, weights * (self.moments.n / self.moments.weight), n_distinct=problem.n)


class IndependentOutputsMixin(LeastSquaresLearner):
    """Independent outputs: fits kernel values too, and streams in passes whose second moments do not fit in memory."""

    takes_gram = True

    def __init__(
        self,
        regularization: PositiveFloat | list[PositiveFloat] | None = None,
        selection: Selection = "loo",
        validation_fraction: Fraction = 0.2,
        random_state: RandomState = None,
    ) -> None:
        self.regularization = regularization
        self.selection = selection
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _rows(self, structure, X, Y, sample_weight, of_batch=False):
        if structure is None:
            return super()._rows(structure, X, Y, sample_weight, of_batch)
        K, weights = structure.gram(X), None if sample_weight is None else checked_weights(sample_weight, X)
        self._kept = np.ones(len(K), dtype=bool) if weights is None else weights > 0
        return K[:, self._kept], Y, weights

    def _problem(self, structure, rows, path, float32) -> LeastSquares:
        if structure is None:
            return super()._problem(structure, rows, path, float32)
        K, Y, weights = rows
        if len(K) != K.shape[1]:
            raise InputError("selection='hold_out' needs features, not kernel values: set precomputed=False")
        return Gram(Constant.identity(Y.shape[1]), K, Y, weights, self.centering)

    def _for_map(self, structure, W, b):
        if structure is None:
            return W, b
        padded = np.zeros((structure.n + structure.has_prior, W.shape[1]))
        padded[np.flatnonzero(self._kept)] = W
        return padded, b

    def _path_in_passes(self, dtype: np.dtype) -> np.ndarray:
        path = self._path()
        return path[path >= _SMALLEST_IN_PASSES[dtype]] if self.regularization is None else path

    def fit_passes(self, batches: Batches, memory: float, classes: np.ndarray | None = None):
        """Fit by conjugate gradients (:class:`~orbit.solvers.passes.StreamedSystem`), lambda chosen by ``gcv``.

        Parameters
        ----------
        batches : callable
            Returns an iterator over ``(X, y, weights)``, shapes (m, d), (m,) or (m, k) and (m,); the same batches at
            every call. ``X`` may be overwritten.
        memory : float
            Budget in bytes for everything held between batches.
        classes : array or None
            All labels, for classifiers.
        """
        self.check()
        self._stream, self._chosen_by = None, "gcv"
        X, y, _ = next(batches())
        self.n_features_in_ = X.shape[1]
        self._targets = self._targets_of(y, classes)
        path = self._path_in_passes(X.dtype)
        system = StreamedSystem(
            lambda: ((X, self._encoded(y), w) for X, y, w in batches()), memory, centering=self.centering
        )
        solutions = system.solve(path)

        def score(value: float) -> float:
            return gcv(system.n, *solutions[value][1:])

        self.path_ = path
        self.regularization_, self.path_scores_ = best_of_path(path, score)
        self._below_float32 = False
        warn_at_end(path, self.path_scores_, self.regularization_)
        W = solutions[self.regularization_][0]
        self._keep(W, system.y_offset - system.x_offset @ W, system.dtype)
        return self


def _primal(operator: Operator, system: System, structure: Structure | None, path: np.ndarray) -> Primal:
    """The primal problem of a system; a learned output matrix is computed first."""
    if structure is None or not structure.learns_output or not isinstance(operator, Constant):
        return Primal(operator, system)
    value = float(path[0])
    if len(path) > 1:
        independent = Primal(operator, system)
        independent.factorise(path, eigen=True)
        value = best_of_path(path, gcv_scores(independent))[0]
    return Primal(learn_output(system.A, system.cross, value), system)
