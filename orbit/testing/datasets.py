"""Contract of data sets."""

from typing import ClassVar

import numpy as np
import pytest

import orbit
from orbit.core.errors import InputError, ParameterError
from orbit.orbits import Orbit
from orbit.testing.component import FLOATS, ComponentContract


class DatasetContract(ComponentContract):
    """A data set: complete, reproducible from a seed, cut to any size, without a test point in training.

    Attributes
    ----------
    sizes : numbers of training and test points without ``n_train`` and ``n_test``

    Examples
    --------
    >>> import orbit
    >>> class TestDigits(DatasetContract):
    ...     component = orbit.get("dataset", "digits")
    ...     sizes = (1000, 797)
    >>> TestDigits().test_no_test_point_is_in_training()
    """

    kind = "dataset"
    sizes: ClassVar[tuple[int, int]]

    def test_data_set_is_complete(self):
        data = self.create().load(0)
        assert (len(data.X_train), len(data.X_test)) == self.sizes
        assert data.X_train.shape[1:] == data.X_test.shape[1:]
        assert data.X_train.dtype == data.X_test.dtype
        assert data.X_train.dtype in FLOATS
        assert data.name == self.create().name
        assert data.source
        assert "\n" not in data.source
        for size in self.sizes:
            assert str(size) in data.describe()

    def test_task_and_representation_are_as_declared(self):
        dataset = self.create()
        data = dataset.load(0)
        assert dataset.fixed_task in (None, data.task)
        if data.task == "classification":
            assert set(data.y_test) <= set(data.y_train)
        choice = dict(dataset.representation_for(dataset.get_params()))
        orbit.build("representation", choice.pop("name"), **choice).fit(data.X_train[:20])

    def test_default_group_can_be_made(self):
        moves = dict(type(self.create()).default_moves({}))
        Orbit(**moves.pop("orbit", {}))
        for kind, section in moves.items():
            orbit.build(kind, **section).check()

    def test_same_seed_same_data(self):
        one, two = self.create(n_train=7, n_test=6).load(3), self.create(n_train=7, n_test=6).load(3)
        for part in ("X_train", "y_train", "X_test", "y_test"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part))

    def test_lazy_points_are_the_points(self):
        dataset = self.create(n_train=7, n_test=6)
        eager, lazy = dataset.load(3), dataset.load(3, lazy=True)
        for part in ("X_train", "y_train", "X_test", "y_test"):
            np.testing.assert_array_equal(np.asarray(getattr(lazy, part)), getattr(eager, part))

    def test_subsets_are_drawn_from_the_whole_by_the_seed(self):
        whole, small = self.create().load(0), self.create(n_train=9, n_test=8).load(0)
        other = self.create(n_train=9, n_test=8).load(1)
        assert small.X_train.shape == (9, *whole.X_train.shape[1:])
        assert small.y_test.shape[:1] == (8,)
        assert not np.array_equal(small.X_train, other.X_train)
        index = {x.tobytes(): i for i, x in enumerate(whole.X_train)}
        for x, y in zip(small.X_train, small.y_train, strict=True):
            assert np.array_equal(whole.y_train[index[x.tobytes()]], y)

    def test_no_test_point_is_in_training(self):
        data = self.create().load(0)
        assert not {x.tobytes() for x in data.X_train} & {x.tobytes() for x in data.X_test}

    def test_sizes_above_those_available_are_refused(self):
        n_train, n_test = self.sizes
        self.create(n_train=n_train, n_test=n_test).load(0)
        with pytest.raises(InputError, match=rf"n_train: expected at most {n_train}.*found {n_train + 1}"):
            self.create(n_train=n_train + 1).load(0)
        with pytest.raises(InputError, match=rf"n_test: expected at most {n_test}.*found {n_test + 1}"):
            self.create(n_test=n_test + 1).load(0)

    @pytest.mark.parametrize("size", [0, -3, 2.5, "all"])
    def test_impossible_sizes_are_refused(self, size):
        with pytest.raises(ParameterError, match="n_train: expected an integer >= 1 or null"):
            self.create(n_train=size).load(0)
