"""Contracts of model selection: the settings that are tried, and the splits of the training points."""

import numpy as np
import pytest

from orbit import Dataset, ParameterError
from orbit.testing.component import ComponentContract


class SelectionContract(ComponentContract):
    """A model selection, without any settings to try by default."""

    kind = "selection"

    def test_without_a_grid_nothing_is_tried(self):
        assert self.create().points() == []


class SplittingContract(SelectionContract):
    """A model selection that splits training points into parts for fitting and validation."""

    def data(self, n: int = 30) -> Dataset:
        X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2
        return Dataset("rows", "classification", X, y, X[:3] - 1, y[:3], "made here", folds=np.arange(n) % 3)

    def test_validation_points_are_training_points_outside_the_fit(self):
        splits = self.create().splits(self.data(), 0)
        assert splits
        for fit, validation in splits:
            assert len(validation) > 0
            assert sorted([*fit, *validation]) == list(range(30))
            part = self.data().split(fit, validation)
            assert not {tuple(x) for x in part.X_test} & {tuple(x) for x in self.data().X_test}, "never the test part"
            assert set(part.y_test) == {0, 1}

    def test_same_seed_same_splits(self):
        for one, two in zip(*(self.create().splits(self.data(), 4) for _ in range(2)), strict=True):
            np.testing.assert_array_equal(one[1], two[1])

    def test_points_are_all_combinations(self):
        grid = {"kernel.lengthscale": [1, 2], "approx": [{"name": "rf"}]}
        expected = [{"kernel.lengthscale": value, "approx": {"name": "rf"}} for value in (1, 2)]
        assert self.create(grid=grid).points() == expected

    @pytest.mark.parametrize("values", [[], 3, None])
    def test_a_key_without_values_is_refused(self, values):
        with pytest.raises(ParameterError, match=r"^selection.grid.seed: expected a list of values to try, found"):
            self.create(grid={"seed": values}).check()
