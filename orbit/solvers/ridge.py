"""Ridge regression with lambda chosen from a path: of rows in memory, of a stream, or of a stream in many passes."""

import copy
import dataclasses
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from orbit.core.parts import Split, validation_parts
from orbit.core.random import RandomState, hold_out
from orbit.core.threads import threads_for
from orbit.core.tiled_matrix import TiledMatrix
from orbit.solvers.least_squares import LeastSquares, Primal
from orbit.solvers.moments import Centering, Moments, System
from orbit.solvers.output_matrix import learn_output
from orbit.solvers.passes import SMALLEST_IN_PASSES, Batches, StreamedSystem
from orbit.solvers.repeats import Repeats
from orbit.solvers.sample import RowSample
from orbit.solvers.selection import (
    SAMPLED_ROWS,
    Choice,
    LeaveOneOut,
    Score,
    Solution,
    best_of_path,
    choose,
    gcv,
    gcv_scores,
    held_out,
    in_float32,
    positive,
)
from orbit.solvers.structure import Constant, Independent, Operator, Structure
from orbit.solvers.tiled_system import TiledSystem
from orbit.solvers.weighted_rows import WeightedRows

# From scores, shape (m, k), to classes, shape (m,).
Decide = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class RidgeSolver:
    """Minimises (1/n) sum_i w_i |W^T x_i + b - y_i|^2 + lambda |W|^2, every lambda of a path from one factorisation.

    Attributes
    ----------
    path : array of lambda, ascending, shape (l,)
    trim : whether values too small for the precision of the products are left out of the path: a default path
    selection : {"loo", "gcv", "hold_out", "two_fold"}
        How lambda is chosen; ``two_fold`` is cross-validation with two halves.
    validation_fraction : share of the points held out, or in a fold of clusters
    random_state : seed of the hold-out split
    centering : see :data:`~orbit.solvers.moments.Centering`
    coupled : whether a given path of systems of any size takes products of float32 rows in float32
    """

    path: np.ndarray
    trim: bool
    selection: str
    validation_fraction: float = 0.2
    random_state: RandomState = None
    centering: Centering = "both"
    coupled: bool = False

    def fit(
        self,
        structure: Independent,
        X: Any,
        Y: np.ndarray,
        weights: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        decide: Decide | None = None,
        clusters: np.ndarray | None = None,
    ) -> Solution:
        """Choose lambda and solve, for points, shapes (n, F) and (n, k), with weights >= 0, shape (n,).

        Features may be a :class:`~orbit.core.device_matrix.DeviceMatrix`: what is as large as they are stays on its
        device. For a :class:`~orbit.core.tiled_matrix.TiledMatrix` lambda is chosen by ``gcv``. ``labels``, shape (n,),
        are the class labels of a classifier, whose score of a part that is held out is the accuracy by ``decide``. With
        ``clusters``, shape (n,), lambda is chosen by folds of them.
        """
        if isinstance(X, TiledMatrix):
            return TiledSystem(X, Y, weights, self.centering).fit(self.path, self.trim)
        kept, rows = positive(weights), WeightedRows.of(structure, X, Y, weights)
        labels, clusters = (None if each is None else each[kept] for each in (labels, clusters))
        with threads_for(rows.X.shape[0] * rows.X.shape[1] * float(min(rows.X.shape))):
            choice = self._choice(rows, labels, decide, clusters)
            return _solution(choice, structure, kept)

    def path_solutions(
        self, structure: Independent, X: Any, Y: np.ndarray, weights: np.ndarray | None, path: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """W and b for each lambda of ``path``, from one factorisation; with a learned output matrix from one each."""
        if isinstance(X, TiledMatrix):
            yield from ((one.W, one.b) for one in TiledSystem(X, Y, weights, self.centering).solutions(path))
            return
        rows, kept = WeightedRows.of(structure, X, Y, weights), positive(weights)
        for part in path[:, None] if structure.learns_output else [path]:
            ascending = np.sort(part)
            problem = self._problem(rows, ascending, float32=False)
            problem.factorise(ascending)
            for regularization in part:
                yield structure.for_features(*problem.solve(float(regularization)), kept)

    def fit_passes(self, batches: Batches, memory: float) -> Solution:
        """Solve by conjugate gradients (:class:`~orbit.solvers.passes.StreamedSystem`), lambda chosen by ``gcv``."""
        system = StreamedSystem(batches, memory, centering=self.centering)
        path = self.path[self.path >= SMALLEST_IN_PASSES[system.dtype]] if self.trim else self.path
        solutions = system.solve(path)
        value, scores = best_of_path(path, lambda one: gcv(system.n, *solutions[one][1:]))
        W = solutions[value][0]
        return Solution(W, system.y_offset - system.x_offset @ W, value, path, scores)

    def _choice(
        self, rows: WeightedRows, labels: np.ndarray | None, decide: Decide | None, clusters: np.ndarray | None
    ) -> Choice:
        """The chosen value of the path, and the factorised problem of all rows."""
        size = math.inf if rows.is_refined or (self.coupled and not self.trim) else min(rows.X.shape)
        float32 = in_float32(rows.X.dtype, size, self.path, self.trim)
        if len(self.path) == 1:
            return self._choose_from(rows, self.path, float32, gcv_scores)
        if clusters is not None or self.selection not in ("gcv", "loo"):
            parts = self._parts(rows, labels, clusters)
            of_parts = None if self.selection in ("gcv", "loo") else decide  # which are squared errors
            value, path, scores = self._choose_on_parts(rows, float32, of_parts, parts)
            fitted = self._choose_from(rows, np.array([value]), float32, gcv_scores)
            return dataclasses.replace(fitted, path=path, scores=scores)
        repeats = Repeats.find(rows.X, rows.Y, rows.weights)

        def scorer(problem: LeastSquares) -> Score:
            if self.selection == "gcv":
                return gcv_scores(problem, repeats)
            return LeaveOneOut(problem, rows.X, rows.Y, rows.weights, repeats)

        return self._choose_from(rows, self.path, float32, scorer)

    def _choose_from(
        self, rows: WeightedRows, path: np.ndarray, float32: bool, scorer: Callable[[LeastSquares], Score]
    ) -> Choice:
        """Choose from a path by scores of the problem of some rows; once more in float64 if float32 is too coarse."""
        problem, trim = self._problem(rows, path, float32), self.trim and len(path) > 1
        try:
            choice = choose(problem, path, trim, float32, scorer, self.selection == "loo")
        finally:
            problem.release()
        if not choice.below_float32:
            return choice
        if problem.gains_by_float64:
            return self._choose_from(rows, path, False, scorer)
        if len(path) > 1:
            warnings.warn(
                f"the chosen regularization={choice.value:.4g} is among the smallest that kernel values in float32 "
                "resolve, so a smaller one may be better: set engine.dtype=float64",
                stacklevel=2,
            )
        return choice

    def _parts(self, rows: WeightedRows, labels: np.ndarray | None, clusters: np.ndarray | None) -> list[Split]:
        if clusters is not None:
            return validation_parts(rows.n_points, self.validation_fraction, labels, clusters, self.random_state)
        if self.selection == "hold_out":
            return [hold_out(rows.n_points, self.validation_fraction, labels, self.random_state)]
        one, two = hold_out(rows.n_points, 0.5, labels, self.random_state)
        return [(one, two), (two, one)]

    def _choose_on_parts(
        self, rows: WeightedRows, float32: bool, decide: Decide | None, parts: list[Split]
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The value with the best mean score of the parts, the values tried in all of them, and these means."""
        found = list[dict[float, float]]()
        for points in parts:
            fit, held = rows.split(points)
            scorer = partial(held_out, X=held.X, Y=held.Y, weights=held.weights, decide=decide)
            choice = self._choose_from(fit, self.path, float32, scorer)
            found.append(dict(zip(choice.path, choice.scores, strict=True)))
        path = np.array(sorted(set.intersection(*map(set, found))))
        value, scores = best_of_path(path, lambda each: float(np.mean([part[each] for part in found])))
        return value, path, scores

    def _problem(self, rows: WeightedRows, path: np.ndarray, float32: bool) -> LeastSquares:
        if rows.structure.learns_output:
            return _primal(rows.operator, rows.system(self.centering, not float32), rows.structure, path)
        return rows.problem(self.centering, not float32)


class RidgeStream:
    """The moments of the batches of a stream so far, and some of their rows for the leave-one-out error.

    With ``selection="loo"`` the leave-one-out error is exact up to 1,000 rows, and above estimated from that many,
    which are drawn at random and kept. Any other ``selection`` is generalised cross-validation, since no part is held
    out.

    Parameters
    ----------
    solver : RidgeSolver
    structure : Independent or Structure
    dtype : of the features
    n_outputs : columns of the targets
    precise : whether products of float32 features are taken in float64
    first_row : number of rows in the processes before this one

    Attributes
    ----------
    changed : whether batches were added since the learner's solution
    """

    def __init__(
        self,
        solver: RidgeSolver,
        structure: Independent,
        dtype: np.dtype,
        n_outputs: int,
        precise: bool,
        first_row: int,
    ) -> None:
        self.solver, self.structure, self.dtype = solver, structure, dtype
        self.n_outputs, self.changed = n_outputs, False
        self.float32 = in_float32(dtype, math.inf, solver.path, solver.trim) and not precise
        self.criterion = "loo" if solver.selection == "loo" else "gcv"
        self.moments = Moments(not self.float32, shared=True)
        self.sample = RowSample(SAMPLED_ROWS, first_row) if self.criterion == "loo" and len(solver.path) > 1 else None

    def add(self, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> None:
        """Take in a batch: features and targets of points, shapes (m, F) and (m, k), and weights, shape (m,)."""
        X, Y = self.structure.rows(X, Y)
        if weights is not None:
            weights = np.repeat(weights, self.structure.rows_per_point)
        self.moments.add(X, Y, weights)
        if self.sample is not None:
            self.sample.add(X, Y, np.ones(len(X)) if weights is None else weights)
        self.changed = True

    def gather(self) -> None:
        """Sum the moments of all processes of a distributed job."""
        self.moments.all_reduce()
        if self.sample is not None:
            self.sample.gather()

    def solve(self) -> Solution:
        """Choose lambda and solve. Ends the stream; a copy of it, if ``changed`` is reset, may go on."""
        solver, moments = self.solver, self.moments
        targets = moments.like_targets() if self.structure.is_coupled else moments.y_shift[None]
        operator = self.structure.operator(targets)
        system = moments.system(solver.centering if self.structure.has_intercept else "none")
        problem = _primal(operator, system, self.structure, solver.path)
        choice = choose(problem, solver.path, solver.trim, self.float32, self._scores, self.sample is not None)
        return _solution(choice, self.structure)

    def solution_so_far(self) -> Solution:
        """:meth:`solve` for a copy, so that the stream can go on."""
        self.changed = False
        return copy.deepcopy(self).solve()

    def _scores(self, problem: LeastSquares) -> Score:
        """The scores of the factorised problem of all rows: leave-one-out if there is a sample of them."""
        if self.sample is None:
            return gcv_scores(problem)
        X, Y, weights = self.sample.rows()
        # weights have a mean of one over all rows
        return LeaveOneOut(problem, X, Y, weights * (self.moments.n / self.moments.weight), n_distinct=problem.n)


def _solution(choice: Choice, structure: Independent, kept: slice | np.ndarray = slice(None)) -> Solution:
    operator = choice.problem.operator
    W, b = structure.for_features(*choice.problem.solve(choice.value), kept)
    known = isinstance(operator, Constant) and isinstance(structure, Structure)
    output_matrix = operator.output_matrix if known else None  # type: ignore[union-attr]
    path, scores, error = choice.path, choice.scores, choice.problem.error
    below, left_out = choice.below_float32, choice.left_out
    return Solution(W, b, choice.value, path, scores, below, output_matrix, error=error, left_out=left_out)


def _primal(operator: Operator, system: System, structure: Independent, path: np.ndarray) -> Primal:
    """The primal problem of a system; a learned output matrix is computed first."""
    if not structure.learns_output or not isinstance(operator, Constant):
        return Primal(operator, system)
    value = float(path[0])
    if len(path) > 1:
        independent = Primal(operator, system)
        independent.factorise(path, eigen=True)
        value = best_of_path(path, gcv_scores(independent))[0]
    return Primal(learn_output(system.A, system.cross, value), system)
