"""Seeds."""

import numpy as np

from orbit.core.random import generator, spawn


def test_integers_give_the_same_seeds_every_time():
    assert spawn(5, 3) == spawn(5, 3) == spawn(np.int64(5), 3)
    assert len({*spawn(5, 3), *spawn(6, 3)}) == 6
    assert all(type(seed) is int for seed in spawn(5, 3))


def test_a_random_state_advances():
    state = np.random.RandomState(0)
    first, second = spawn(state, 2), spawn(state, 2)
    assert first != second
    assert spawn(np.random.RandomState(0), 2) == first


def test_none_gives_a_new_seed_every_time():
    assert spawn(None, 1) != spawn(None, 1)


def test_integers_do_not_touch_or_read_the_global_state():
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    one = generator(3).random(4)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    np.random.seed(1)
    np.testing.assert_array_equal(generator(3).random(4), one)
