"""The cache that all others are made of."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from orbit.core.lru import Lru


def test_is_bounded_by_bytes_and_number_and_the_last_used_stay():
    cache, made = Lru(limit_bytes=40, most=3), list[object]()

    def get(key: object, size: int) -> None:
        assert cache.get(key, lambda: made.append(key) or np.zeros(size, np.uint8)).nbytes == size

    for size in (10, 20, 10, 30, 20, 10, 30):
        get(size, size)
    assert made == [10, 20, 30, 20, 10, 30], "30 drops 20, which drops both others, and so on"
    for _ in range(2):
        get(41, 41)
    assert made[-2:] == [41, 41], "it is larger than all that may be cached"
    for key in "abcd":
        get(key, 1)
    made.clear()
    for key in "dcba":
        get(key, 1)
    assert made == ["a"], "three are cached"
    assert cache.nbytes == 3


def test_an_entry_takes_the_place_of_that_of_the_same_key():
    cache = Lru[str, int](limit_bytes=10)
    for size in (4, 6, 11):
        cache.put("key", size, size)
        assert (cache.find("key"), cache.nbytes) == ((size, size) if size < 11 else (None, 0))


def test_a_pickle_is_empty_and_has_the_same_limits():
    cache = Lru[str, int](limit_bytes=8, most=2)
    cache.put("key", 1, 8)
    copied = pickle.loads(pickle.dumps(cache))
    assert (copied.values(), copied.limit_bytes, copied.most) == ([], 8, 2)


def test_threads_share_it():
    cache = Lru[int, np.ndarray](limit_bytes=8 * 10)
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda i: cache.get(i % 20, lambda: np.array([i % 20]))[0] - i % 20, range(2000))
        assert not any(found)
    assert cache.nbytes == 8 * len(cache.values()) == 80
