"""Choosing settings by validation: which values are tried, and which training points judge them."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from typing import Annotated, Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from orbit.core.component import Component
from orbit.core.errors import InputError, ParameterError
from orbit.core.params import Fraction, Range
from orbit.core.random import RandomState, hold_out, spawn
from orbit.data.base import Dataset
from orbit.registry import register

Folds = Annotated[int, Range(low=2)]
Split = tuple[np.ndarray, np.ndarray]  # indices of training points to fit to, and to judge by


class Selection(Component):
    """Base class: a grid of settings, and ways to split the training points. The test part plays no role.

    Parameters
    ----------
    grid : dict of lists, or None
        Configuration key -> the values to try, ``{kernel.lengthscale: [1, 2, 4]}``;
        with several keys, all combinations.
    metric : str or None
        The figure of merit, as in the results without ``test/``; None is ``accuracy``
        for classes and ``rmse`` for numbers.
    """

    grid: dict[str, Any] | None
    metric: str | None

    def check(self) -> None:
        super().check()
        self.points()

    def points(self) -> list[dict[str, Any]]:
        """Every combination of values, as changes of a configuration; none without a grid.

        >>> by = HoldOut(grid={"a.b": [1, 2], "c.d": ["x"]})
        >>> by.points()
        [{'a.b': 1, 'c.d': 'x'}, {'a.b': 2, 'c.d': 'x'}]

        Raises
        ------
        ParameterError
            If a key has no list of values.
        """
        grid = self.grid or {}
        for key, values in grid.items():
            if not isinstance(values, list) or not values:
                raise ParameterError(f"grid.{key}", "a list of values to try", values)
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] if grid else []

    @abstractmethod
    def splits(self, data: Dataset, random_state: RandomState = None) -> list[Split]:
        """Indices of the training points, to fit to and to judge by, once or several times."""


@register("selection", "none")
class NoSelection(Component):
    """Settings are used as they are given."""

    grid = None

    def points(self) -> list[dict[str, Any]]:
        return []


@register("selection", "k_fold")
class KFolds(Selection):
    """Every training point judges once: k folds at random, stratified where classes are large enough.

    Parameters
    ----------
    grid, metric : see :class:`Selection`
    folds : int >= 2

    Examples
    --------
    >>> import orbit
    >>> data = orbit.data.Digits(n_train=100).load(0)
    >>> [len(judge) for fit, judge in orbit.build("selection", "k_fold", folds=4).splits(data, 0)]
    [25, 25, 25, 25]
    """

    def __init__(self, grid: dict[str, Any] | None = None, metric: str | None = None, folds: Folds = 5) -> None:
        self.grid = grid
        self.metric = metric
        self.folds = folds

    def splits(self, data: Dataset, random_state: RandomState = None) -> list[Split]:
        n = len(data.X_train)
        if self.folds > n:
            raise InputError(
                f"selection.folds: expected at most {n}, the number of training points, found {self.folds}"
            )
        stratified = (
            data.task == "classification" and np.unique(data.y_train, return_counts=True)[1].min() >= self.folds
        )
        folds = (StratifiedKFold if stratified else KFold)(
            self.folds, shuffle=True, random_state=spawn(random_state, 1)[0]
        )
        return list(folds.split(np.zeros(n), data.y_train))


@register("selection", "hold_out")
class HoldOut(Selection):
    """One random part of the training points judges, stratified by class; the cheapest.

    Parameters
    ----------
    grid, metric : see :class:`Selection`
    fraction : float in (0, 1)
        The share that judges.
    """

    def __init__(self, grid: dict[str, Any] | None = None, metric: str | None = None, fraction: Fraction = 0.2) -> None:
        self.grid = grid
        self.metric = metric
        self.fraction = fraction

    def splits(self, data: Dataset, random_state: RandomState = None) -> list[Split]:
        labels = data.y_train if data.task == "classification" else None
        return [hold_out(len(data.X_train), self.fraction, labels, random_state)]


@register("selection", "given")
class GivenFolds(Selection):
    """The folds that the data set came with, each judging once.

    Parameters
    ----------
    grid, metric : see :class:`Selection`
    """

    def __init__(self, grid: dict[str, Any] | None = None, metric: str | None = None) -> None:
        self.grid = grid
        self.metric = metric

    def splits(self, data: Dataset, random_state: RandomState = None) -> list[Split]:
        if data.folds is None:
            raise InputError(f"selection=given: dataset={data.name} has no folds of its own; use selection=k_fold")
        folds = np.unique(data.folds)
        if len(folds) < 2:
            raise InputError(f"selection=given: dataset={data.name} has one fold only here; use selection=hold_out")
        return [(np.flatnonzero(data.folds != fold), np.flatnonzero(data.folds == fold)) for fold in folds]
