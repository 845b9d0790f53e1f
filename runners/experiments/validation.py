"""Model selection by validation: a grid of settings, and splits of the training points."""

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from orbit.core.component import Component
from orbit.core.errors import InputError, ParameterError
from orbit.core.params import Fraction, Range
from orbit.core.parts import Split, k_folds
from orbit.core.random import RandomState, hold_out
from orbit.data.base import Dataset
from orbit.data.splits import split_clusters
from orbit.registry import register

Folds = Annotated[int, Range(low=2)]


@dataclass(eq=False, repr=False)
class Selection(Component):
    """Base class: a grid of settings, and splits of the training points. The test part is not used.

    Parameters
    ----------
    grid : dict of lists, or None
        Configuration key -> the values to try, ``{kernel.lengthscale: [1, 2, 4]}``;
        with several keys, all combinations.
    metric : str or None
        The metric to optimise, named as in the results without ``test/``; None is
        ``accuracy`` for classification and ``rmse`` for regression.
    """

    grid: dict[str, Any] | None = None
    metric: str | None = None

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
            If a key is no text, or has no list of values.
        """
        grid = self.grid or {}
        for key, values in grid.items():
            if not isinstance(key, str):
                raise self.wrong("grid", "configuration keys, each with a list of values to try")
            if not isinstance(values, list) or not values:
                raise ParameterError(f"grid.{key}", "a list of values to try", values, self.section)
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] if grid else []

    @abstractmethod
    def splits(self, data: Dataset, random_state: RandomState = None) -> list[Split]:
        """One or several splits of the training points, by index, into points to fit to and points to validate on."""


@register("selection", "none")
class NoSelection(Component):
    """No selection: settings are used as given."""

    grid = None

    def points(self) -> list[dict[str, Any]]:
        return []


@register("selection", "k_fold")
@dataclass(eq=False, repr=False)
class KFolds(Selection):
    """k random folds, each the validation part once, stratified by class: scikit-learn's.

    For data with clusters, all points of one are in one fold. Classes of fewer than k points are in as many folds as
    they have points; folds are not stratified if all classes are so small.

    Parameters
    ----------
    grid, metric : see :class:`Selection`
    folds : int >= 2
        Number of folds.

    Examples
    --------
    >>> import orbit
    >>> data = orbit.data.Digits(n_train=100).load(0)
    >>> [len(validation) for fit, validation in KFolds(folds=4).splits(data, 0)]
    [25, 25, 25, 25]
    """

    folds: Folds = 5

    def splits(self, data: Dataset, random_state: RandomState = None) -> list[Split]:
        y, clusters = data.y_train, data.clusters
        n, what = (len(y), "training points") if clusters is None else (len(np.unique(clusters)), "groups")
        if self.folds > n:
            raise self.wrong("folds", f"at most {n}, the number of {what}")
        return k_folds(self.folds, len(y), y if data.task == "classification" else None, clusters, random_state)


@register("selection", "hold_out")
@dataclass(eq=False, repr=False)
class HoldOut(Selection):
    """One random validation part, stratified by class, or of whole clusters: the cheapest selection.

    Parameters
    ----------
    grid, metric : see :class:`Selection`
    fraction : float in (0, 1)
        Share of the training points in the validation part.
    """

    fraction: Fraction = 0.2

    def splits(self, data: Dataset, random_state: RandomState = None) -> list[Split]:
        labels = data.y_train if data.task == "classification" else None
        if data.clusters is not None:
            return [split_clusters(data.clusters, self.fraction, random_state, labels)]
        return [hold_out(len(data.X_train), self.fraction, labels, random_state)]


@register("selection", "given")
class GivenFolds(Selection):
    """The published folds of the data set, or its validation part, each the validation part once.

    Parameters
    ----------
    grid, metric : see :class:`Selection`
    """

    def splits(self, data: Dataset, random_state: RandomState = None) -> list[Split]:
        if data.folds is None:
            raise InputError(f"{self.label()}: {data.name} has no published folds; use selection=k_fold")
        folds = np.unique(data.folds[data.folds >= 0])
        if not len(folds) or (data.folds == folds[0]).all():
            raise InputError(f"{self.label()}: {data.name} has a single fold here; use selection=hold_out")
        return [(np.flatnonzero(data.folds != fold), np.flatnonzero(data.folds == fold)) for fold in folds]
